"""Device memory shared with other processes, with numba's classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import GPUArray, IPCMemoryHandle
from .._exchange.protocols import extent
from ._layout import prepare
from ._memory import BYTE, MemoryPointer, device_memory_size, device_pointer, host_to_device

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ._context import Context

__all__ = ["IpcHandle"]

_HANDLE_BYTES = 64


class HandleBytes:
    """The 64 bytes of a driver's handle, as ``reserved``."""

    def __init__(self, reserved: Any) -> None:
        self.reserved = bytes(reserved)
        if len(self.reserved) != _HANDLE_BYTES:
            raise ValueError(
                f"the handle has {len(self.reserved)} bytes; {_HANDLE_BYTES} are needed"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HandleBytes) and self.reserved == other.reserved

    def __hash__(self) -> int:
        return hash(self.reserved)


def _handle_bytes(handle: Any) -> HandleBytes:
    return handle if isinstance(handle, HandleBytes) else HandleBytes(handle)


class IpcHandle:
    """A part of an allocation that another process opens, once at a time; it can be pickled.

    Parameters
    ----------
    base : object. What keeps the memory alive in the exporting process; None in others.
    handle : HandleBytes or bytes. The driver's handle, which is that of the whole allocation.
    size : int. The number of bytes of the part.
    source_info : dict, optional. Where the exporting device is on the bus.
    offset : int. Where the part starts in the allocation, in bytes.

    Examples
    --------
    >>> from pygpu import cuda
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

    # Set where it is defined, since arrays export themselves by this module.

    def __init__(
        self,
        base: Any,
        handle: Any,
        size: int,
        source_info: dict[str, int] | None = None,
        offset: int = 0,
    ) -> None:
        self.base = base
        self._hold: Any = None
        self.handle = _handle_bytes(handle)
        for name, value in (("size", size), ("offset", offset)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is {value!r}; an int that is not negative is needed")
        self.size = size
        self.offset = offset
        self.source_info = source_info
        self._opened: MemoryPointer | None = None

    def can_access_peer(self, context: Context) -> bool:
        """Returns True if the device of ``context`` can use the memory where it is. Raises
        ``RuntimeError`` if the handle does not say which device it is from, or this process has no
        such device.
        """
        source = self._source(context)
        return source == context.device or context.can_access_peer(source.id)

    def _source(self, context: Context) -> Any:
        if self.source_info is None:
            raise RuntimeError("the handle does not say which device it is from")
        return context.device.from_identity(self.source_info)

    def open(self, context: Context) -> MemoryPointer:
        """Returns the memory for ``context``: itself where the device can use it, else a copy on
        the device.

        The handle counts as open until :meth:`close`. Raises ``RuntimeError`` if this process has
        no device.
        """
        is_direct = self.source_info is None or self.can_access_peer(context)
        return self.open_direct(context) if is_direct else self.open_staged(context)

    def open_direct(self, context: Context) -> MemoryPointer:
        """Returns the memory itself, for ``context``."""
        if self.base is not None:
            raise ValueError("opening IpcHandle from original process")
        if self._opened is not None:
            raise ValueError("IpcHandle is already opened")
        whole = context.open_ipc_handle(self.handle, self.offset + self.size)
        self._opened = whole
        return whole.view(self.offset)

    def open_staged(self, context: Context) -> MemoryPointer:
        """Returns a copy of the memory on the device of ``context``, which the host carries over.

        Neither process sees what the other one writes later. Raises ``RuntimeError`` if this
        process has no such device.
        """
        source = self._source(context).get_primary_context()
        with source._current():
            elements = self.open_direct(source).elements.get()
        copy = context.memalloc(self.size)
        host_to_device(copy, elements, self.size)
        self._opened = copy
        return copy

    def open_array(
        self,
        context: Context,
        shape: int | Sequence[int],
        dtype: DTypeLike,
        strides: int | Sequence[int] | None = None,
    ) -> Any:
        """Returns the memory, opened for ``context``, as an array, which has to lie within it.

        Other arguments are as in :func:`pygpu.cuda.device_array`.
        """
        shape, strides, dtype = prepare(shape, strides, dtype, "C")
        below, above = extent(shape, strides, dtype.itemsize)
        if above - below > self.size or dtype.hasobject:
            raise ValueError(
                f"shape {shape}, strides {strides} and dtype {dtype} span {above - below} bytes; "
                f"the handle has {self.size}"
            )
        first = self.open(context).elements[-below:]
        # It imports this module. A process that unpickles a handle has imported nothing else.
        from ._array import DeviceNDArray

        return DeviceNDArray(shape, strides, dtype, 0, first)

    def close(self) -> None:
        """Ends the use of the memory; arrays in it are to be gone before."""
        if self._opened is None:
            raise ValueError("IpcHandle not opened")
        self._opened = None

    def __reduce__(self) -> tuple[Any, ...]:
        state = (None, self.handle.reserved, self.size, self.source_info, self.offset)
        return (IpcHandle, state)


def export(context: Context, memory: Any) -> IpcHandle:
    """Returns a handle for device memory, an array or a pointer, once its writers are done."""
    address, size = device_pointer(memory), device_memory_size(memory)
    if not size:
        raise ValueError("memory has no bytes; there is nothing to share")
    with context._current():
        base, _ = _core.mem_get_address_range(address)
        handle = _core.mem_get_ipc_handle(base)
    identity = context.device.get_device_identity()
    result = IpcHandle(memory, bytes(handle), size, identity, address - base)
    elements = memory if isinstance(memory, GPUArray) else getattr(memory, "elements", None)
    if elements is not None:
        # As long as the handle lives, the memory cannot be freed.
        result._hold = _core.hold_memory(elements)
    return result


def import_memory(context: Context, handle: Any, size: int) -> MemoryPointer:
    """Returns the first ``size`` bytes of another process's allocation."""
    handle = _handle_bytes(handle)
    with context._current():
        imported = IPCMemoryHandle(handle.reserved)
        if size > imported.size:
            raise ValueError(f"the handle names {size} bytes; the allocation has {imported.size}")
        elements = GPUArray((size,), BYTE, gpudata=imported)
    return MemoryPointer.of(context, elements)
