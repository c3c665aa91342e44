"""The devices of the process, the thread's current device, and calls about all of them.

Examples
--------
>>> device = cuda.select_device(0)
>>> cuda.get_current_device() is cuda.list_devices()[0] is cuda.current_context().device is device
True
>>> array = cuda.to_device(range(3), stream=cuda.stream())
>>> cuda.synchronize()
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from .. import _arguments, _core
from .._driver.device import Context as _DriverContext
from .._driver.device import Device as _Device
from .._errors import BackendUnavailable
from ..driver import start_profiler as profile_start
from ..driver import stop_profiler as profile_stop
from ._context import Context

__all__ = ["close", "current_context", "defer_cleanup", "detect", "get_current_device", "gpus"]
__all__ += ["is_available", "list_devices", "profile_start", "profile_stop", "profiling"]
__all__ += ["require_context", "select_device", "synchronize"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Device:
    """The device number ``ordinal`` with numba's attributes, and the driver's in capitals.

    ``device.MULTIPROCESSOR_COUNT`` is an attribute of the driver. ``with cuda.gpus[1]:`` makes a
    device the current one of the thread.

    >>> cuda.gpus[0].id
    0
    >>> device = cuda.get_current_device()
    >>> device.get_primary_context().device == device
    True
    >>> cuda.cudadrv.driver.Device.from_identity(device.get_device_identity()) == device
    True
    """

    def __init__(self, ordinal: int) -> None:
        self._device = _Device(ordinal)
        self._context: Context | None = None
        self._lock = threading.Lock()

    @property
    def id(self) -> int:
        """The device's number."""
        return self._device.ordinal

    @property
    def name(self) -> str:
        """The device's name."""
        return self._device.name()

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability; (8, 0) for the host, since its kernels are compiled for that."""
        return self._device.compute_capability()

    @property
    def uuid(self) -> str | None:
        """The unique identifier, ``"GPU-..."``; None for the host."""
        return self._device.uuid()

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"a device has no attribute {name!r}")
        return getattr(self._device, name)

    def __repr__(self) -> str:
        return f"<CUDA device {self.id} '{self.name}'>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(("pygpu.cuda.Device", self.id))

    def get_device_identity(self) -> dict[str, int]:
        """Returns the domain, bus and device of the PCI address, the same in every process."""
        domain, bus, rest = self._device.pci_bus_id().split(":")
        return {
            "pci_domain_id": int(domain, 16),
            "pci_bus_id": int(bus, 16),
            "pci_device_id": int(rest.split(".")[0], 16),
        }

    @staticmethod
    def from_identity(identity: dict[str, int]) -> Device:
        """Returns the device with this :meth:`get_device_identity`, e.g. from another process.

        Raises ``RuntimeError`` if this process does not see the device of ``identity``.
        """
        for device in gpus:
            if device.get_device_identity() == identity:
                return device
        raise RuntimeError(f"identity is {identity}, which no device of this process has")

    def get_primary_context(self) -> Context:
        """Returns the device's context, the same object for every call."""
        with self._lock:
            if self._context is None:
                self._context = Context(self)
            return self._context

    def reset(self) -> None:
        """Frees unused memory, and resets the device if possible; a reset makes arrays invalid."""
        if self._context is not None:
            self._context.reset()
        if _core.choose_backend() != "host":
            self._device.reset()

    def __enter__(self) -> None:
        self.get_primary_context().push()

    def __exit__(self, *_raised: Any) -> None:
        self.get_primary_context().pop()


class _Devices:
    """The devices, by number; ``gpus.current`` is the one of this thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._devices: list[Device] = []

    @property
    def lst(self) -> list[Device]:
        """The devices as a list."""
        with self._lock:
            if not self._devices:
                self._devices = [Device(number) for number in range(_core.device_count())]
            return self._devices

    @overload
    def __getitem__(self, devnum: int) -> Device: ...
    @overload
    def __getitem__(self, devnum: slice) -> list[Device]: ...
    def __getitem__(self, devnum: Any) -> Any:
        devices = self.lst
        if isinstance(devnum, slice):
            return devices[devnum]
        number = _arguments.whole("devnum", devnum)
        if not -len(devices) <= number < len(devices):
            raise IndexError(f"devnum is {number}; {_arguments.ordinals(len(devices))}")
        return devices[number]

    def __iter__(self) -> Iterator[Device]:
        return iter(self.lst)

    def __len__(self) -> int:
        return len(self.lst)

    def __str__(self) -> str:
        return ", ".join(map(str, self.lst))

    @property
    def current(self) -> Device:
        """The device that arrays of this thread go to."""
        return self.lst[_core.current_ordinal()]


gpus = _Devices()


def current_context(devnum: int | None = None) -> Context:
    """Returns the context of this thread's device, which is first set to ``devnum`` if given."""
    if devnum is None:
        return gpus.current.get_primary_context()
    context = gpus[devnum].get_primary_context()
    if _DriverContext.get_current() is None or _core.current_ordinal() != context.device.id:
        context.push()
    return context


def require_context(fn: _F) -> _F:
    """Returns the function ``fn`` unchanged: pygpu's functions select a device themselves."""
    return fn


def select_device(device_id: int) -> Device:
    """Makes the device number ``device_id`` the current one of this thread; returns it."""
    return current_context(device_id).device


def get_current_device() -> Device:
    """Returns the device that arrays of this thread go to."""
    return gpus.current


def list_devices() -> _Devices:
    """Returns the devices of this process by number: ``cuda.gpus``."""
    return gpus


def close() -> None:
    """Ends this thread's selections of devices; in the main thread also resets the devices used.

    Arrays from before a reset are refused afterwards.
    """
    while _DriverContext.get_current() is not None:
        _DriverContext.pop()
    if threading.current_thread() is threading.main_thread():
        for device in gpus:
            if device._context is not None:
                device.reset()


def is_available() -> bool:
    """Returns True if the backend can be opened and has a device; the host counts."""
    try:
        return _core.device_count() > 0
    except BackendUnavailable:
        return False


def detect() -> bool:
    """Prints the devices; returns True if there is one. The host counts, unlike in numba."""
    devices = list(gpus) if is_available() else []
    print(f"Found {len(devices)} CUDA devices")
    for device in devices:
        print(f"id {device.id}    {device.name!r:>20} {'[SUPPORTED]':>40}")
        rows = {
            "Compute Capability": "{}.{}".format(*device.compute_capability),
            "PCI Bus ID": device._device.pci_bus_id(),
            "UUID": device.uuid,
            "Backend": _core.choose_backend(),
        }
        for name, value in rows.items():
            print(f"{name:>40}: {value}")
    print(f"Summary:\n\t{len(devices)}/{len(devices)} devices are supported")
    return bool(devices)


def synchronize() -> None:
    """Waits for all work of the current device; raises an error if the work failed."""
    _core.synchronize()


def defer_cleanup() -> contextlib.AbstractContextManager[None]:
    """Defers the freeing of device memory for the ``with`` block; blocks may be nested.

    Freeing plain memory waits for the device. Around time-critical work, freeing is deferred until
    the outermost block ends.
    """
    return current_context().defer_cleanup()


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """Records in the profiler for the ``with`` block; see :func:`profile_start`."""
    profile_start()
    try:
        yield
    finally:
        profile_stop()
