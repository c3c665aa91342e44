"""Contexts: they allocate device memory and host memory that the device uses."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _arguments, _core
from .._core import GPUArray, IPCMemoryHandle
from .._driver.device import Context as _DriverContext
from .._driver.device import on_device
from ..compyte.array import span
from . import _memory, _stream

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ._array import DeviceNDArray
    from ._devices import Device

__all__ = ["IpcHandle", "MemoryInfo"]


class MemoryInfo(NamedTuple):
    """The ``free`` and ``total`` bytes of a device's memory.

    >>> free, total = cuda.current_context().get_memory_info()
    >>> free <= total
    True
    """

    free: int
    total: int


class Deallocations:
    """Unused memory whose freeing :func:`pygpu.cuda.defer_cleanup` has deferred."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []
        self._deferrals = 0
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_disabled(self) -> bool:
        """True while freeing is deferred."""
        return self._deferrals > 0

    def release(self, allocation: Any) -> None:
        """Frees memory that nothing else refers to, now or when freeing is no longer deferred."""
        with self._lock:
            if self._deferrals:
                self._waiting.append(allocation)

    def clear(self) -> None:
        """Frees the waiting memory, unless freeing is deferred."""
        with self._lock:
            if self._deferrals:
                return
            waiting, self._waiting = self._waiting, []
        del waiting  # outside the lock

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
    """Page-locked, mapped or managed host memory as an array of bytes."""

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
    def device_ctypes_pointer(self) -> _memory.DeviceAddress:
        """The address on the device as an object of ctypes."""
        if self._device_address is None:
            raise TypeError("the memory is not mapped; a device cannot use it")
        return _memory.DeviceAddress(self._device_address)

    _cuda_memsize_ = np.ndarray.size

    def own(self) -> HostMemory:
        """Returns the memory itself; it lives as long as anything refers to it."""
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
    """A context of ``device`` allocates memory; :func:`pygpu.cuda.current_context` returns one.

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
    ...     del memory  # freed after the block
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
        """The object that allocates memory and has ``deallocations``: the context itself."""
        return self

    def push(self) -> None:
        """Makes the device the current one of this thread."""
        self.device._device.retain_primary_context().push()

    def pop(self) -> None:
        """Makes the device current that was current before :meth:`push`.

        Raises ``RuntimeError`` if the device is not the one that was pushed last.
        """
        current = _DriverContext.get_current()
        if current is None or current._device != self.device._device:
            raise RuntimeError(f"device {self.device.id} is not the one that was pushed last")
        _DriverContext.pop()

    def reset(self) -> None:
        """Frees unused memory, deferred or kept for later arrays; arrays stay valid."""
        self.deallocations.clear()
        with self._current():
            _DriverContext.trim_memory()

    def _current(self) -> contextlib.AbstractContextManager[None]:
        """Makes the extension module allocate on this device, for the ``with`` block."""
        return on_device(self.device.id)

    def synchronize(self) -> None:
        """Waits for all work of the device; raises an error if the work failed."""
        with self._current():
            _core.synchronize()

    def get_memory_info(self) -> MemoryInfo:
        """Returns the device's free and total bytes."""
        with self._current():
            return MemoryInfo(*_core.mem_get_info())

    def allocate(self, bytesize: int) -> GPUArray:
        """Returns ``bytesize`` bytes of new device memory as an array of bytes.

        The memory is plain, as in numba: every stream can use it immediately, and other processes
        can open it. :meth:`defer_cleanup` defers the call that frees it.
        """
        bytesize = _arguments.not_negative("bytesize", bytesize)
        with self._current():
            if not bytesize:
                return GPUArray((0,), _memory.BYTE)
            allocation = _core.mem_alloc(bytesize)
            elements = GPUArray((bytesize,), _memory.BYTE, gpudata=allocation)
        weakref.finalize(elements, self.deallocations.release, allocation).atexit = False
        return elements

    def memalloc(self, bytesize: int) -> _memory.MemoryPointer:
        """Returns ``bytesize`` bytes of new device memory, freed when nothing refers to it."""
        return _memory.MemoryPointer.of(self, self.allocate(bytesize))

    def memhostalloc(
        self, bytesize: int, mapped: bool = False, portable: bool = False, wc: bool = False
    ) -> HostMemory:
        """Returns ``bytesize`` bytes of new page-locked host memory as a numpy array of bytes.

        Kernels can use ``mapped`` memory, and all devices ``portable`` memory. Write-combined
        memory (``wc``) is faster to write on the host, and slow to read there.
        """
        flags = 2 * bool(mapped) | bool(portable) | 4 * bool(wc)
        return self._host_memory(_core.pagelocked_empty, bytesize, flags, bool(mapped))

    def memallocmanaged(self, bytesize: int, attach_global: bool = True) -> HostMemory:
        """Returns ``bytesize`` bytes of new managed memory as a numpy array of bytes.

        At first any stream can use the memory if ``attach_global``, else only the host. Raises
        ``pygpu.driver.Unsupported`` if the device does not support managed memory.
        """
        return self._host_memory(_core.managed_empty, bytesize, 1 if attach_global else 2, True)

    def _host_memory(
        self, allocate: Callable[..., Any], bytesize: int, flags: int, mapped: bool
    ) -> HostMemory:
        bytesize = _arguments.not_negative("bytesize", bytesize)
        if not bytesize:
            return np.empty(0, _memory.BYTE).view(HostMemory)
        with self._current():
            return self._over(allocate((bytesize,), _memory.BYTE, mem_flags=flags), mapped)

    def _over(self, memory: np.ndarray[Any, Any], mapped: bool) -> HostMemory:
        """Returns an array of bytes as a MemoryPointer of this context."""
        result = memory.view(HostMemory)
        result.context = self
        if mapped:
            result._device_address = memory.base.get_device_pointer()  # type: ignore[union-attr]
        return result

    def mempin(self, owner: Any, pointer: int, size: int, mapped: bool = False) -> HostMemory:
        """Page-locks ``size`` bytes of host memory at ``pointer``; keeps their ``owner`` alive.

        The pages are unlocked by ``free`` of the result, or when the result is gone. Kernels can
        use the memory if ``mapped`` is True.

        >>> host = np.zeros(100)
        >>> pinned = cuda.current_context().mempin(host, host.ctypes.data, host.nbytes)
        >>> pinned.free()
        """
        buffer = np.frombuffer(_core.address_as_buffer(pointer, size, owner), _memory.BYTE)
        with self._current():
            registered = _core.register_host_memory(buffer, 2 * bool(mapped))
        return self._over(registered, bool(mapped))

    def get_ipc_handle(self, memory: Any) -> IpcHandle:
        """Returns a picklable handle for another process to open ``memory``; the handle keeps it.

        ``memory`` is a MemoryPointer or an array. Waits for all queued work of the device. Raises
        ``pygpu.driver.Unsupported`` if the backend or the kind of memory cannot be shared.

        >>> context = cuda.current_context()
        >>> context.get_ipc_handle(context.memalloc(100)).size
        100
        """
        address, size = _memory.device_pointer(memory), _memory.device_memory_size(memory)
        if not size:
            raise ValueError("memory has no bytes; there is nothing to share")
        with self._current():
            base, _ = _core.mem_get_address_range(address)
            handle = _core.mem_get_ipc_handle(base)
        identity = self.device.get_device_identity()
        result = IpcHandle(memory, bytes(handle), size, identity, address - base)
        elements = memory if isinstance(memory, GPUArray) else getattr(memory, "elements", None)
        if elements is not None:
            # As long as the handle lives, the memory cannot be freed.
            result._hold = _core.hold_memory(elements)
        return result

    def open_ipc_handle(self, handle: Any, size: int) -> _memory.MemoryPointer:
        """Returns the first ``size`` bytes of another process's allocation.

        ``handle`` is the driver's handle, 64 bytes. Raises ``pygpu.driver.LogicError`` if that
        memory does not exist, or (on CUDA and HIP) belongs to this process.
        """
        handle = HandleBytes(handle)
        with self._current():
            imported = IPCMemoryHandle(handle.reserved)
            if size > imported.size:
                raise ValueError(f"the handle has size {size}; the allocation has {imported.size}")
            elements = GPUArray((size,), _memory.BYTE, gpudata=imported)
        return _memory.MemoryPointer.of(self, elements)

    def can_access_peer(self, peer_device: int) -> bool:
        """Returns True if kernels here can use the memory of another device, ``peer_device``."""
        return _core.can_access_peer(self.device.id, _arguments.whole("peer_device", peer_device))

    def enable_peer_access(self, peer_context: Context, flags: int = 0) -> None:
        """Lets kernels on this device use memory of ``peer_context``'s device; ``flags`` is 0.

        Raises ``pygpu.driver.Error`` if the devices lack this, or if access is enabled already.
        """
        if flags != 0:
            raise ValueError(f"flags is {flags}; only 0 is allowed")
        with self._current():
            _core.set_peer_access(peer_context.device.id, True)

    create_stream = staticmethod(_stream.stream)
    create_external_stream = staticmethod(_stream.external_stream)
    get_default_stream = staticmethod(_stream.default_stream)
    get_legacy_default_stream = staticmethod(_stream.legacy_default_stream)
    get_per_thread_default_stream = staticmethod(_stream.per_thread_default_stream)
    create_event = staticmethod(_stream.event)

    def defer_cleanup(self) -> contextlib.AbstractContextManager[None]:
        """Defers the freeing of memory from :meth:`allocate` until the outermost block ends."""
        return self.deallocations.disable()


_HANDLE_BYTES = 64


class HandleBytes:
    """The 64 bytes of a driver's handle; ``reserved`` is bytes or another HandleBytes."""

    def __init__(self, reserved: Any) -> None:
        self.reserved = bytes(getattr(reserved, "reserved", reserved))
        if len(self.reserved) != _HANDLE_BYTES:
            raise ValueError(f"handle has length {len(self.reserved)}; {_HANDLE_BYTES} is needed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HandleBytes) and self.reserved == other.reserved

    def __hash__(self) -> int:
        return hash(self.reserved)


class IpcHandle:
    """A picklable handle of a part of an allocation; another process can open it once at a time.

    ``base`` owns the memory in the exporting process, and is None in others. ``handle`` is the
    driver's handle of the allocation: the part is ``size`` bytes from ``offset`` on.
    ``source_info`` says where the exporting device is on the bus.

    >>> handle = cuda.IpcHandle(None, bytes(64), 800, offset=16)
    >>> handle.size, handle.offset
    (800, 16)
    >>> def receive(handle):  # in another process
    ...     context = cuda.current_context()
    ...     total = handle.open_array(context, (100,), "f8").copy_to_host().sum()
    ...     handle.close()
    ...     if handle.can_access_peer(context):  # `handle.open(context)` asks for this
    ...         memory = handle.open_direct(context)
    ...     else:
    ...         memory = handle.open_staged(context)
    ...     handle.close()
    """

    def __init__(
        self, base: Any, handle: Any, size: int, source_info: Any = None, offset: int = 0
    ) -> None:
        self.base = base
        self._hold: Any = None
        self.handle = HandleBytes(handle)
        for name, value in (("size", size), ("offset", offset)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is {value!r}; an int that is not negative is needed")
        self.size = size
        self.offset = offset
        self.source_info = source_info
        self._opened: _memory.MemoryPointer | None = None

    def can_access_peer(self, context: Context) -> bool:
        """Returns True if the device of ``context`` can use the memory in place. Raises
        ``RuntimeError`` if the handle's device is unknown, or not of this process.
        """
        source = self._source(context)
        return source == context.device or context.can_access_peer(source.id)

    def _source(self, context: Context) -> Any:
        if self.source_info is None:
            raise RuntimeError("the handle does not say which device it is from")
        return context.device.from_identity(self.source_info)

    def open(self, context: Context) -> _memory.MemoryPointer:
        """Returns the memory for ``context``: in place if the device can use it, else a copy.

        The handle is open until :meth:`close`. Raises ``RuntimeError`` as :meth:`can_access_peer`.
        """
        is_direct = self.source_info is None or self.can_access_peer(context)
        return self.open_direct(context) if is_direct else self.open_staged(context)

    def open_direct(self, context: Context) -> _memory.MemoryPointer:
        """Returns the memory itself, for ``context``."""
        if self.base is not None:
            raise ValueError("opening IpcHandle from original process")
        if self._opened is not None:
            raise ValueError("IpcHandle is already opened")
        whole = context.open_ipc_handle(self.handle, self.offset + self.size)
        self._opened = whole
        return whole.view(self.offset)

    def open_staged(self, context: Context) -> _memory.MemoryPointer:
        """Returns a copy, through the host, on the device of ``context``.

        Neither process sees later writes of the other. Raises ``RuntimeError`` if the exporting
        device is not one of this process.
        """
        source = self._source(context).get_primary_context()
        with source._current():
            elements = self.open_direct(source).elements.get()
        copy = context.memalloc(self.size)
        _memory.host_to_device(copy, elements, self.size)
        self._opened = copy
        return copy

    def open_array(
        self,
        context: Context,
        shape: int | Sequence[int],
        dtype: DTypeLike,
        strides: int | Sequence[int] | None = None,
    ) -> DeviceNDArray:
        """Returns an array within the memory, opened for ``context``.

        Other arguments are as in :func:`pygpu.cuda.device_array`.
        """
        shape, strides, dtype = _memory.prepare(shape, strides, dtype, "C")
        below, above = span(shape, strides, dtype.itemsize)
        if above - below > self.size or dtype.hasobject:
            raise ValueError(
                f"shape {shape}, strides {strides} and dtype {dtype} span {above - below}; "
                f"the size of the handle is {self.size}"
            )
        first = self.open(context).elements[-below:]
        # It imports this module. A process that unpickles a handle has imported nothing else.
        from ._array import DeviceNDArray

        return DeviceNDArray(shape, strides, dtype, 0, first)

    def close(self) -> None:
        """Ends the use of the memory. The program must not use arrays in it afterwards."""
        if self._opened is None:
            raise ValueError("IpcHandle not opened")
        self._opened = None

    def __reduce__(self) -> tuple[Any, ...]:
        return IpcHandle, (None, self.handle.reserved, self.size, self.source_info, self.offset)
