"""Devices, contexts and deferred freeing with numba's names."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _arguments, _core, driver
from .._core import GPUArray
from . import _ipc, _stream
from ._deallocations import Deallocations
from ._host_memory import HostMemory, new_host_memory
from ._pointer import BYTE, MemoryPointer


class MemoryInfo(NamedTuple):
    """Free and total bytes of a device's memory.

    Parameters
    ----------
    free : int
        Free bytes.
    total : int
        All bytes.

    Examples
    --------
    >>> from pygpu import cuda
    >>> free, total = cuda.current_context().get_memory_info()
    >>> free <= total
    True
    """

    free: int
    total: int


class Device:
    """A device with numba's attributes: ``id``, ``name``, ``compute_capability``, ``uuid``, and the
    driver's attributes under their names in capitals (``MULTIPROCESSOR_COUNT``).

    ``with cuda.gpus[1]:`` makes the device the current one of the thread for the block.

    Parameters
    ----------
    ordinal : int
        The number of the device.

    Examples
    --------
    >>> from pygpu import cuda
    >>> cuda.gpus[0].id
    0
    """

    def __init__(self, ordinal: int) -> None:
        self._device = driver.Device(ordinal)
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
        """The device's generation; (0, 0) for the host."""
        return self._device.compute_capability()

    @property
    def uuid(self) -> str | None:
        """What no other device has, ``"GPU-..."``; None for the host."""
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
        """Returns where the device is on the bus, which is the same in every process."""
        domain, bus, rest = self._device.pci_bus_id().split(":")
        return {
            "pci_domain_id": int(domain, 16),
            "pci_bus_id": int(bus, 16),
            "pci_device_id": int(rest.split(".")[0], 16),
        }

    @staticmethod
    def from_identity(identity: dict[str, int]) -> Device:
        """Returns the device at a place on the bus.

        Raises
        ------
        RuntimeError
            This process has no such device.
        """
        from ._devices import gpus

        for device in gpus:
            if device.get_device_identity() == identity:
                return device
        raise RuntimeError(f"identity is {identity}; no device of this process is there")

    def get_primary_context(self) -> Context:
        """Returns the device's context."""
        with self._lock:
            if self._context is None:
                self._context = Context(self)
            return self._context

    def reset(self) -> None:
        """Frees what waits to be freed, and resets the device where its driver can.

        A reset destroys all that is on the device; arrays from before are refused afterwards.
        """
        if self._context is not None:
            self._context.reset()
        if _core.choose_backend() != "host":
            self._device.reset()

    def __enter__(self) -> None:
        self.get_primary_context().push()

    def __exit__(self, *_raised: Any) -> None:
        self.get_primary_context().pop()


class Context:
    """The memory of a device: what :func:`pygpu.cuda.current_context` returns.

    Parameters
    ----------
    device : Device
        The device.

    Examples
    --------
    >>> from pygpu import cuda
    >>> free, total = cuda.current_context().get_memory_info()
    >>> free <= total
    True
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.deallocations = Deallocations()

    def __repr__(self) -> str:
        return f"<CUDA context of device {self.device.id}>"

    def push(self) -> None:
        """Makes the device the current one of this thread."""
        self.device._device.retain_primary_context().push()

    def pop(self) -> None:
        """Makes the device before this one the current one again.

        Raises
        ------
        RuntimeError
            The device is not the one that was pushed last.
        """
        current = driver.Context.get_current()
        if current is None or current._device != self.device._device:
            raise RuntimeError(f"device {self.device.id} is not the one that was pushed last")
        driver.Context.pop()

    def reset(self) -> None:
        """Frees memory that waits to be freed, and what the device keeps for later arrays.

        Arrays that are in use stay valid.
        """
        self.deallocations.clear()
        with self._current():
            driver.Context.trim_memory()

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Has the core allocate on this device, whichever is current."""
        if _core.current_ordinal() == self.device.id:
            yield
            return
        self.push()
        try:
            yield
        finally:
            self.pop()

    def synchronize(self) -> None:
        """Waits for all work of the device."""
        with self._current():
            _core.synchronize()

    def get_memory_info(self) -> MemoryInfo:
        """Returns the device's free and total bytes."""
        with self._current():
            return MemoryInfo(*driver.mem_get_info())

    # -- memory ----------------------------------------------------------------------------

    def allocate(self, bytesize: int) -> GPUArray:
        """Returns new device memory as an array of bytes.

        It is plain memory, as numba's: every stream can use it at once, and other processes can
        open it. Its freeing is deferred by :meth:`defer_cleanup`.
        """
        bytesize = _arguments.whole("bytesize", bytesize)
        if bytesize < 0:
            raise ValueError(f"bytesize is {bytesize}; it must not be negative")
        with self._current():
            if not bytesize:
                return GPUArray((0,), BYTE)
            allocation = driver.mem_alloc(bytesize)
            elements = GPUArray((bytesize,), BYTE, gpudata=allocation)
        weakref.finalize(elements, self.deallocations.release, allocation).atexit = False
        return elements

    def memalloc(self, bytesize: int) -> MemoryPointer:
        """Returns new device memory of a number of bytes."""
        return MemoryPointer.of(self, self.allocate(bytesize))

    def memhostalloc(
        self, bytesize: int, mapped: bool = False, portable: bool = False, wc: bool = False
    ) -> Any:
        """Returns new page-locked host memory: bytes that ``numpy.ndarray(buffer=...)`` and the
        functions of this package take.

        Parameters
        ----------
        bytesize : int
            The number of bytes.
        mapped : bool
            Whether kernels can use it, too.
        portable : bool
            Whether it is page-locked for all devices.
        wc : bool
            Whether it is write-combined: faster to write on the host, and slow to read there.
        """
        flags = 2 * bool(mapped) | bool(portable) | 4 * bool(wc)
        with self._current():
            return new_host_memory(driver.pagelocked_empty, bytesize, flags, self, bool(mapped))

    def memallocmanaged(self, bytesize: int, attach_global: bool = True) -> Any:
        """Returns new memory that both the host and the device use, as bytes.

        Parameters
        ----------
        bytesize : int
            The number of bytes.
        attach_global : bool
            Whether any stream can use it, or the host first.
        """
        with self._current():
            flags = 1 if attach_global else 2
            return new_host_memory(driver.managed_empty, bytesize, flags, self, True)

    def mempin(self, owner: Any, pointer: int, size: int, mapped: bool = False) -> Any:
        """Page-locks host memory until the result is freed or gone.

        Parameters
        ----------
        owner : object
            What the memory belongs to; it is kept.
        pointer : int
            The memory's address.
        size : int
            The number of bytes.
        mapped : bool
            Whether kernels can use it meanwhile.
        """
        buffer = np.frombuffer(_core.address_as_buffer(pointer, size, owner), BYTE)
        with self._current():
            registered = driver.register_host_memory(buffer, 2 * bool(mapped))
        return HostMemory.over(registered, self, bool(mapped))

    # -- other processes, other devices ----------------------------------------------------

    def get_ipc_handle(self, memory: Any) -> _ipc.IpcHandle:
        """Returns a handle with which another process opens device memory.

        Raises
        ------
        pygpu.driver.Unsupported
            The backend or the kind of memory cannot be shared.
        """
        return _ipc.export(self, memory)

    def open_ipc_handle(self, handle: Any, size: int) -> MemoryPointer:
        """Returns the first ``size`` bytes of another process's allocation."""
        return _ipc.import_memory(self, handle, size)

    def can_access_peer(self, peer_device: int) -> bool:
        """Returns True if kernels on this device can use another one's memory."""
        return _core.can_access_peer(self.device.id, _arguments.whole("peer_device", peer_device))

    def enable_peer_access(self, peer_context: Context, flags: int = 0) -> None:
        """Lets kernels on this device use the memory of another one."""
        if flags != 0:
            raise ValueError(f"flags is {flags}; only 0 is allowed")
        with self._current():
            _core.set_peer_access(peer_context.device.id, True)

    # -- streams, events -------------------------------------------------------------------

    def create_stream(self) -> _stream.Stream:
        """Returns a new stream."""
        return _stream.stream()

    def create_external_stream(self, ptr: int) -> _stream.Stream:
        """Returns another library's stream by its handle."""
        return _stream.external_stream(ptr)

    def get_default_stream(self) -> _stream.Stream:
        """Returns the default stream."""
        return _stream.default_stream()

    def get_legacy_default_stream(self) -> _stream.Stream:
        """Returns the legacy default stream."""
        return _stream.legacy_default_stream()

    def get_per_thread_default_stream(self) -> _stream.Stream:
        """Returns the default stream of this thread."""
        return _stream.per_thread_default_stream()

    def create_event(self, timing: bool = True) -> _stream.Event:
        """Returns a new event."""
        return _stream.event(timing)

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Defers the freeing of memory from :meth:`allocate` for the ``with`` block."""
        with self.deallocations.disable():
            yield
