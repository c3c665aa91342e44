"""Contexts: a device's memory, and memory of the host that it uses."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _arguments, _core
from .._core import GPUArray
from .._driver.device import Context as _DriverContext
from .._driver.device import on_device
from . import _ipc, _stream
from ._memory import BYTE, DeviceAddress, MemoryPointer

if TYPE_CHECKING:
    from ._devices import Device

__all__ = ["MemoryInfo"]


class MemoryInfo(NamedTuple):
    """The ``free`` and ``total`` bytes of a device's memory.

    >>> from pygpu import cuda
    >>> free, total = cuda.current_context().get_memory_info()
    >>> free <= total
    True
    """

    free: int
    total: int


class Deallocations:
    """Memory that is no longer used and waits until freeing is allowed again.

    Outside :func:`pygpu.cuda.defer_cleanup` nothing waits: memory is freed with its last use.
    """

    def __init__(self) -> None:
        self._waiting: list[Any] = []
        self._deferrals = 0
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_disabled(self) -> bool:
        """Whether freeing is deferred."""
        return self._deferrals > 0

    def release(self, allocation: Any) -> None:
        """Frees memory that nothing else refers to, now or once it is allowed."""
        with self._lock:
            if self._deferrals:
                self._waiting.append(allocation)

    def clear(self) -> None:
        """Frees what waits, unless freeing is deferred."""
        with self._lock:
            if self._deferrals:
                return
            waiting, self._waiting = self._waiting, []
        # Freed here, outside the lock.
        del waiting

    @contextlib.contextmanager
    def disable(self) -> Iterator[None]:
        """Defers freeing for the ``with`` block; blocks may be nested."""
        with self._lock:
            self._deferrals += 1
        try:
            yield
        finally:
            with self._lock:
                self._deferrals -= 1
            self.clear()


class HostMemory(np.ndarray):
    """Page-locked, mapped or managed host memory as an array of bytes.

    ``handle`` is its address on the host, ``device_ctypes_pointer`` that on the device.
    """

    context: Any = None
    _device_address: int | None = None

    @property
    def __cuda_memory__(self) -> bool:
        return self._device_address is not None

    @property
    def handle(self) -> int:
        """The address on the host."""
        return self.ctypes.data

    @property
    def device_ctypes_pointer(self) -> DeviceAddress:
        """The address on the device as an object of ctypes."""
        if self._device_address is None:
            raise TypeError("the memory is not mapped; a device cannot use it")
        return DeviceAddress(self._device_address)

    @property
    def _cuda_memsize_(self) -> int:
        return self.size

    def own(self) -> HostMemory:
        """Returns the memory itself, which lives as long as anything refers to it."""
        return self

    def free(self) -> None:
        """Ends the page-locking of memory from :meth:`Context.mempin`."""
        owner = self.base
        while isinstance(owner, np.ndarray):
            owner = owner.base
        unregister = getattr(owner, "unregister", None)
        if unregister is not None:
            unregister()


class Context:
    """The memory of ``device``: what :func:`pygpu.cuda.current_context` returns.

    >>> from pygpu import cuda
    >>> context = cuda.current_context()
    >>> free, total = context.get_memory_info()
    >>> free <= total
    True
    >>> memory = context.memalloc(16)
    >>> memory.size, context.allocate(16).dtype
    (16, dtype('uint8'))
    >>> context.memhostalloc(8).nbytes, context.memallocmanaged(8).nbytes
    (8, 8)
    >>> stream = context.create_stream()
    >>> context.create_external_stream(stream.handle)
    <External CUDA stream ...>
    >>> int(context.get_default_stream())
    0
    >>> int(context.get_legacy_default_stream()), int(context.get_per_thread_default_stream())
    (1, 2)
    >>> context.can_access_peer(context.device.id)
    False
    >>> context.synchronize()
    >>> context.create_event(timing=False).query()
    True
    >>> with context.defer_cleanup():
    ...     del memory  # freed behind the block
    >>> context.push()
    >>> context.pop()
    >>> context.reset()
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.deallocations = Deallocations()

    def __repr__(self) -> str:
        return f"<CUDA context of device {self.device.id}>"

    @property
    def memory_manager(self) -> Context:
        """What allocates memory and has ``deallocations``: the context itself."""
        return self

    def push(self) -> None:
        """Makes the device the current one of this thread."""
        self.device._device.retain_primary_context().push()

    def pop(self) -> None:
        """Makes the device before this one the current one again.

        Raises ``RuntimeError`` if the device is not the one that was pushed last.
        """
        current = _DriverContext.get_current()
        if current is None or current._device != self.device._device:
            raise RuntimeError(f"device {self.device.id} is not the one that was pushed last")
        _DriverContext.pop()

    def reset(self) -> None:
        """Frees memory that waits to be freed, and what the device keeps for later arrays.

        Arrays that are in use stay valid.
        """
        self.deallocations.clear()
        with self._current():
            _DriverContext.trim_memory()

    def _current(self) -> contextlib.AbstractContextManager[None]:
        """Has the core allocate on this device, whichever is current."""
        return on_device(self.device.id)

    def synchronize(self) -> None:
        """Waits for all work of the device; raises its failure."""
        with self._current():
            _core.synchronize()

    def get_memory_info(self) -> MemoryInfo:
        """Returns the device's free and total bytes."""
        with self._current():
            return MemoryInfo(*_core.mem_get_info())

    # -- memory ----------------------------------------------------------------------------

    def allocate(self, bytesize: int) -> GPUArray:
        """Returns ``bytesize`` bytes of new device memory as an array of bytes.

        It is plain memory, as numba's: every stream can use it at once, and other processes can
        open it. Its freeing is deferred by :meth:`defer_cleanup`.
        """
        bytesize = _arguments.not_negative("bytesize", bytesize)
        with self._current():
            if not bytesize:
                return GPUArray((0,), BYTE)
            allocation = _core.mem_alloc(bytesize)
            elements = GPUArray((bytesize,), BYTE, gpudata=allocation)
        weakref.finalize(elements, self.deallocations.release, allocation).atexit = False
        return elements

    def memalloc(self, bytesize: int) -> MemoryPointer:
        """Returns ``bytesize`` bytes of new device memory, freed when nothing refers to it."""
        return MemoryPointer.of(self, self.allocate(bytesize))

    def memhostalloc(
        self, bytesize: int, mapped: bool = False, portable: bool = False, wc: bool = False
    ) -> Any:
        """Returns ``bytesize`` bytes of new page-locked host memory as a numpy array of bytes.

        It is ``mapped`` for kernels, ``portable`` to all devices, or write-combined (``wc``):
        faster to write on the host, and slow to read there.
        """
        flags = 2 * bool(mapped) | bool(portable) | 4 * bool(wc)
        return self._host_memory(_core.pagelocked_empty, bytesize, flags, bool(mapped))

    def memallocmanaged(self, bytesize: int, attach_global: bool = True) -> Any:
        """Returns ``bytesize`` bytes of new memory that both the host and the device use, as a
        numpy array of bytes.

        Any stream can use it if ``attach_global`` is True, else the host first. Raises
        ``pygpu.driver.Unsupported`` if the device has no managed memory.
        """
        return self._host_memory(_core.managed_empty, bytesize, 1 if attach_global else 2, True)

    def _host_memory(
        self, allocate: Callable[..., Any], bytesize: int, flags: int, mapped: bool
    ) -> HostMemory:
        bytesize = _arguments.not_negative("bytesize", bytesize)
        if not bytesize:
            return np.empty(0, BYTE).view(HostMemory)
        with self._current():
            return self._over(allocate((bytesize,), BYTE, mem_flags=flags), mapped)

    def _over(self, memory: np.ndarray[Any, Any], mapped: bool) -> HostMemory:
        """Returns an array of bytes from the core as memory of this context."""
        result = memory.view(HostMemory)
        result.context = self
        if mapped:
            result._device_address = memory.base.get_device_pointer()  # type: ignore[union-attr]
        return result

    def mempin(self, owner: Any, pointer: int, size: int, mapped: bool = False) -> Any:
        """Page-locks ``size`` bytes of host memory at ``pointer``, until ``free`` of the result is
        called or the result is gone.

        ``owner`` is what the memory belongs to, which is kept. Kernels can use it meanwhile if
        ``mapped`` is True.

        >>> from pygpu import cuda
        >>> host = np.zeros(100)
        >>> pinned = cuda.current_context().mempin(host, host.ctypes.data, host.nbytes)
        >>> pinned.free()
        """
        buffer = np.frombuffer(_core.address_as_buffer(pointer, size, owner), BYTE)
        with self._current():
            registered = _core.register_host_memory(buffer, 2 * bool(mapped))
        return self._over(registered, bool(mapped))

    # -- other processes, other devices ----------------------------------------------------

    def get_ipc_handle(self, memory: Any) -> _ipc.IpcHandle:
        """Returns a handle with which another process opens ``memory``, a MemoryPointer or an
        array, which it keeps; it can be pickled.

        All work of the device queued so far has run when the call returns. Raises
        ``pygpu.driver.Unsupported`` if the backend or the kind of memory cannot be shared.

        >>> from pygpu import cuda
        >>> context = cuda.current_context()
        >>> context.get_ipc_handle(context.memalloc(100)).size
        100
        """
        return _ipc.export(self, memory)

    def open_ipc_handle(self, handle: Any, size: int) -> MemoryPointer:
        """Returns the first ``size`` bytes of another process's allocation, whose driver's handle
        are the 64 bytes ``handle``.

        It is closed when nothing refers to it. Raises ``pygpu.driver.LogicError`` if the handle is
        none of memory that exists, or (on CUDA and HIP) of this process.
        """
        return _ipc.import_memory(self, handle, size)

    def can_access_peer(self, peer_device: int) -> bool:
        """Returns True if kernels on this device can use the memory of device ``peer_device``, not
        its own.
        """
        return _core.can_access_peer(self.device.id, _arguments.whole("peer_device", peer_device))

    def enable_peer_access(self, peer_context: Context, flags: int = 0) -> None:
        """Lets kernels on this device use the memory of ``peer_context``'s; ``flags`` is 0. Raises
        ``pygpu.driver.Error`` if the devices have no access to each other, or have it already.
        """
        if flags != 0:
            raise ValueError(f"flags is {flags}; only 0 is allowed")
        with self._current():
            _core.set_peer_access(peer_context.device.id, True)

    # -- streams, events -------------------------------------------------------------------

    def create_stream(self) -> _stream.Stream:
        """Returns a new stream."""
        return _stream.stream()

    def create_external_stream(self, ptr: int) -> _stream.Stream:
        """Returns another library's stream of the handle ``ptr``; see
        :func:`pygpu.cuda.external_stream`.
        """
        return _stream.external_stream(ptr)

    def get_default_stream(self) -> _stream.Stream:
        """Returns the default stream."""
        return _stream.default_stream()

    def get_legacy_default_stream(self) -> _stream.Stream:
        """Returns the default stream under the number 1."""
        return _stream.legacy_default_stream()

    def get_per_thread_default_stream(self) -> _stream.Stream:
        """Returns the default stream of this thread under the number 2."""
        return _stream.per_thread_default_stream()

    def create_event(self, timing: bool = True) -> _stream.Event:
        """Returns a new event, whose time can be asked for if ``timing`` is True."""
        return _stream.event(timing)

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Defers the freeing of memory from :meth:`allocate` until the outermost block ends."""
        with self.deallocations.disable():
            yield
