"""Devices, contexts, streams, events and memory, with the names of ``pycuda.driver``."""

from __future__ import annotations

import threading

from . import _core
from ._core import (
    DeviceAllocation,
    Event,
    PagelockedHostAllocation,
    RegisteredHostMemory,
    Stream,
    mem_alloc,
    mem_get_info,
    pagelocked_empty,
    register_host_memory,
)
from ._errors import (
    BackendUnavailable,
    CompileError,
    Error,
    LaunchError,
    LogicError,
    MemoryError,
    RuntimeError,
    Unsupported,
)
from ._flags import (
    ctx_flags,
    device_attribute,
    event_flags,
    host_alloc_flags,
    mem_host_register_flags,
)
from ._memory import (
    aligned_empty,
    aligned_empty_like,
    aligned_zeros,
    aligned_zeros_like,
    from_device,
    from_device_like,
    mem_alloc_like,
    mem_alloc_pitch,
    memcpy_dtod,
    memcpy_dtod_async,
    memcpy_dtoh,
    memcpy_dtoh_async,
    memcpy_htod,
    memcpy_htod_async,
    memset_d2d8,
    memset_d2d16,
    memset_d2d32,
    memset_d8,
    memset_d8_async,
    memset_d16,
    memset_d16_async,
    memset_d32,
    memset_d32_async,
    pagelocked_empty_like,
    pagelocked_zeros,
    pagelocked_zeros_like,
    to_device,
)

__all__ = [
    "BackendUnavailable",
    "CompileError",
    "Context",
    "Device",
    "DeviceAllocation",
    "Error",
    "Event",
    "LaunchError",
    "LogicError",
    "MemoryError",
    "PagelockedHostAllocation",
    "RegisteredHostMemory",
    "RuntimeError",
    "Stream",
    "Unsupported",
    "aligned_empty",
    "aligned_empty_like",
    "aligned_zeros",
    "aligned_zeros_like",
    "ctx_flags",
    "device_attribute",
    "event_flags",
    "from_device",
    "from_device_like",
    "get_driver_version",
    "get_version",
    "host_alloc_flags",
    "init",
    "mem_alloc",
    "mem_alloc_like",
    "mem_alloc_pitch",
    "mem_get_info",
    "mem_host_register_flags",
    "memcpy_dtod",
    "memcpy_dtod_async",
    "memcpy_dtoh",
    "memcpy_dtoh_async",
    "memcpy_htod",
    "memcpy_htod_async",
    "memset_d2d8",
    "memset_d2d16",
    "memset_d2d32",
    "memset_d8",
    "memset_d8_async",
    "memset_d16",
    "memset_d16_async",
    "memset_d32",
    "memset_d32_async",
    "pagelocked_empty",
    "pagelocked_empty_like",
    "pagelocked_zeros",
    "pagelocked_zeros_like",
    "register_host_memory",
    "to_device",
]


# -- devices and contexts -----------------------------------------------------------------


def init(flags: int = 0) -> None:
    """Opens the backend: the one that ``PYGPU_BACKEND`` names, else the best one here."""
    if flags != 0:
        raise LogicError(f"flags is {flags}; only 0 is allowed")
    _core.init()


def get_driver_version() -> int:
    """The version of the driver, as ``1000 * major + 10 * minor``."""
    return _core.driver_version()


def get_version() -> tuple[int, int, int]:
    """The version of the driver as three numbers."""
    version = _core.driver_version()
    return (version // 1000, version % 1000 // 10, version % 10)


class Device:
    """A device, by number or by PCI bus id."""

    def __init__(self, number_or_pci_bus_id: int | str) -> None:
        count = _core.device_count()
        if isinstance(number_or_pci_bus_id, str):
            ids = [_core.device_properties(number)[1].lower() for number in range(count)]
            if number_or_pci_bus_id.lower() not in ids:
                raise LogicError(
                    f"no device has the PCI bus id {number_or_pci_bus_id!r}; there are {ids}"
                )
            self._ordinal = ids.index(number_or_pci_bus_id.lower())
            return
        try:
            ordinal = number_or_pci_bus_id.__index__()
        except AttributeError:
            raise TypeError(
                f"a device is named by its number or PCI bus id, not by {number_or_pci_bus_id!r}"
            ) from None
        if not 0 <= ordinal < count:
            raise LogicError(f"device number is {ordinal}; there are {count} devices, from 0")
        self._ordinal = ordinal

    @staticmethod
    def count() -> int:
        """The number of devices."""
        return _core.device_count()

    @property
    def ordinal(self) -> int:
        """The device's number."""
        return self._ordinal

    def name(self) -> str:
        """The device's name."""
        return _core.device_properties(self._ordinal)[0]

    def pci_bus_id(self) -> str:
        """The device's place on the bus."""
        return _core.device_properties(self._ordinal)[1]

    def compute_capability(self) -> tuple[int, int]:
        """The device's generation; (0, 0) for the host."""
        return _core.device_properties(self._ordinal)[2]

    def total_memory(self) -> int:
        """Bytes of device memory."""
        return _core.device_properties(self._ordinal)[3]

    def get_attribute(self, attr: int) -> int:
        """One numbered property."""
        return _core.device_attribute(self._ordinal, int(attr))

    def get_attributes(self) -> dict[device_attribute, int]:
        """All properties that the device knows."""
        result = {}
        for attribute in device_attribute:
            try:
                result[attribute] = self.get_attribute(attribute)
            except Error:
                continue
        return result

    def __getattr__(self, name: str) -> int:
        try:
            attribute = device_attribute[name.upper()]
        except KeyError:
            raise AttributeError(f"Device object has no attribute {name!r}") from None
        return self.get_attribute(attribute)

    def make_context(self, flags: int = 0) -> Context:
        """A new context on the device, made the current one of this thread."""
        context = Context(self, _TOKEN)
        context.push()
        return context

    def retain_primary_context(self) -> Context:
        """The context that libraries share; it is not made the current one."""
        return Context(self, _TOKEN, primary=True)

    def can_access_peer(self, dev: Device) -> bool:
        """True if kernels on this device can use the other one's memory."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._ordinal == other._ordinal

    def __hash__(self) -> int:
        return hash(("Device", self._ordinal))

    def __repr__(self) -> str:
        return f"<Device {self._ordinal}: {self.name()}>"


_TOKEN = object()
_local = threading.local()


def _stack() -> list[Context]:
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def _activate() -> None:
    stack = _stack()
    _core.set_current_device(stack[-1]._device.ordinal if stack else None)


class Context:
    """The use of a device by a thread: a stack of them, the last one current.

    All contexts of a device share its memory and its default stream, as users of a primary
    context do.
    """

    def __init__(self, device: Device, token: object, primary: bool = False) -> None:
        if token is not _TOKEN:
            raise TypeError("contexts are made by Device.make_context")
        self._device = device
        self._uses = 1
        self._primary = primary

    def _check(self) -> None:
        if self._uses < 1:
            raise LogicError("the context has been detached")

    def attach(self, flags: int = 0) -> Context:
        """Counts one more use, ended by :meth:`detach`."""
        self._check()
        self._uses += 1
        return self

    def detach(self) -> None:
        """Ends one use; the last one takes the context from this thread's stack."""
        self._check()
        self._uses -= 1
        stack = _stack()
        if self._uses == 0 and self in stack:
            stack[:] = [context for context in stack if context is not self]
            _activate()

    def push(self) -> None:
        """Makes the context the current one of this thread."""
        self._check()
        _stack().append(self)
        _activate()

    @staticmethod
    def pop() -> None:
        """Makes the context before the current one current again."""
        stack = _stack()
        if not stack:
            raise LogicError("cannot pop: this thread has no current context")
        stack.pop()
        _activate()

    @staticmethod
    def get_current() -> Context | None:
        """The current context of this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    @staticmethod
    def get_device() -> Device:
        """The device of the current context; without one the device that arrays go to."""
        return Device(_core.current_ordinal())

    @staticmethod
    def synchronize() -> None:
        """Waits for all work of the device."""
        _core.synchronize()

    @staticmethod
    def get_api_version() -> int:
        """The version of the interface: that of the driver."""
        return _core.driver_version()
