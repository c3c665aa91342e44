"""Device memory shared with other processes, with numba's classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import GPUArray, IPCMemoryHandle
from .._exchange.protocols import extent
from ._driver_copies import host_to_device
from ._layout import prepare
from ._memory_info import device_memory_size, device_pointer
from ._pointer import BYTE, MemoryPointer

if TYPE_CHECKING:
    from ._context import Context

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


class IpcHandle:
    """A part of an allocation that another process opens; it can be pickled.

    Parameters
    ----------
    base : object
        What keeps the memory alive in the exporting process; None in others.
    handle : HandleBytes or bytes
        The driver's handle, which is that of the whole allocation.
    size : int
        The number of bytes of the part.
    source_info : dict, optional
        Where the exporting device is on the bus.
    offset : int
        Where the part starts in the allocation, in bytes.

    Raises
    ------
    ValueError
        ``size`` or ``offset`` is negative, or the handle has not 64 bytes.

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
        self.handle = handle if isinstance(handle, HandleBytes) else HandleBytes(handle)
        for name, value in (("size", size), ("offset", offset)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is {value!r}; an int that is not negative is needed")
        self.size = size
        self.offset = offset
        self.source_info = source_info
        self._opened: MemoryPointer | None = None

    def can_access_peer(self, context: Context) -> bool:
        """Returns True if a context's device can use the memory where it is.

        Parameters
        ----------
        context : Context
            The context.

        Returns
        -------
        bool
            Whether it can.

        Raises
        ------
        RuntimeError
            The handle does not say which device it is from, or this process has no such device.
        """
        source = self._source()
        return source == context.device or context.can_access_peer(source.id)

    def _source(self) -> Any:
        from ._device import Device

        if self.source_info is None:
            raise RuntimeError("the handle does not say which device it is from")
        return Device.from_identity(self.source_info)

    def _refuse_second(self) -> None:
        if self.base is not None:
            raise ValueError("opening IpcHandle from original process")
        if self._opened is not None:
            raise ValueError("IpcHandle is already opened")

    def open(self, context: Context) -> MemoryPointer:
        """Returns the memory: itself where the device can use it, else a copy on the device.

        Parameters
        ----------
        context : Context
            The context that uses the memory.

        Returns
        -------
        MemoryPointer
            The memory or the copy. The handle counts as open until :meth:`close`.

        Raises
        ------
        ValueError
            The handle is open, is of this process, or names more than the allocation has.
        RuntimeError
            This process has no such device.
        """
        is_direct = self.source_info is None or self.can_access_peer(context)
        return self.open_direct(context) if is_direct else self.open_staged(context)

    def open_direct(self, context: Context) -> MemoryPointer:
        """Returns the memory itself.

        Parameters
        ----------
        context : Context
            The context that uses the memory.

        Returns
        -------
        MemoryPointer
            The memory.

        Raises
        ------
        ValueError
            The handle is open, is of this process, or names more than the allocation has.
        """
        self._refuse_second()
        whole = context.open_ipc_handle(self.handle, self.offset + self.size)
        self._opened = whole
        return whole.view(self.offset)

    def open_staged(self, context: Context) -> MemoryPointer:
        """Returns a copy of the memory on another device, which the host carries over.

        Parameters
        ----------
        context : Context
            The context that the copy is for.

        Returns
        -------
        MemoryPointer
            The copy; what either process writes later, the other one does not see.

        Raises
        ------
        RuntimeError
            The handle does not say which device it is from, or this process has no such device.
        ValueError
            The handle names more than the allocation has.
        """
        source = self._source().get_primary_context()
        with source._current():
            elements = self.open_direct(source).elements.get()
        copy = context.memalloc(self.size)
        host_to_device(copy, elements, self.size)
        self._opened = copy
        return copy

    def open_array(self, context: Context, shape: Any, dtype: Any, strides: Any = None) -> Any:
        """Returns the memory as an array.

        Parameters
        ----------
        context : Context
            The context that uses the memory.
        shape : int or tuple of int
            The extents.
        dtype : dtype
            The type of the elements.
        strides : int or tuple of int, optional
            The steps in bytes; without them the array is C-contiguous.

        Returns
        -------
        DeviceNDArray
            The array.

        Raises
        ------
        TypeError
            An extent is no whole number.
        ValueError
            The array does not lie within the memory.
        """
        shape, strides, dtype = prepare(shape, strides, dtype, "C")
        below, above = extent(shape, strides, dtype.itemsize)
        if above - below > self.size or dtype.hasobject:
            raise ValueError(
                f"shape {shape}, strides {strides} and dtype {dtype} span {above - below} bytes; "
                f"the handle has {self.size}"
            )
        from ._array import DeviceNDArray

        first = self.open(context).elements[-below:]
        return DeviceNDArray(shape, strides, dtype, 0, first)

    def close(self) -> None:
        """Ends the use of the memory; arrays in it are to be gone before.

        Raises
        ------
        ValueError
            The handle is not open.
        """
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
    handle = handle if isinstance(handle, HandleBytes) else HandleBytes(handle)
    with context._current():
        imported = IPCMemoryHandle(handle.reserved)
        if size > imported.size:
            raise ValueError(f"the handle names {size} bytes; the allocation has {imported.size}")
        elements = GPUArray((size,), BYTE, gpudata=imported)
    return MemoryPointer.of(context, elements)


class IpcArrayHandle:
    """An array that another process opens, once at a time; it can be pickled.

    ``with handle as array:`` opens and closes it.

    Parameters
    ----------
    ipc_handle : IpcHandle
        The memory that the array spans.
    array_desc : dict
        Its shape, strides and dtype.

    Examples
    --------
    >>> import pickle
    >>> from pygpu import cuda
    >>> handle = cuda.to_device([1, 2, 3]).get_ipc_handle()
    >>> data = pickle.dumps(handle)  # for pickle.loads in another process
    """

    def __init__(self, ipc_handle: IpcHandle, array_desc: dict[str, Any]) -> None:
        self._ipc_handle = ipc_handle
        self._array_desc = array_desc

    def open(self) -> Any:
        """Returns the array, in the memory of the exporting process.

        Returns
        -------
        DeviceNDArray
            The array.

        Raises
        ------
        ValueError
            It is open, is of this process, or does not lie within its memory.

        Examples
        --------
        >>> from pygpu import cuda
        >>> handle = cuda.to_device([1, 2, 3]).get_ipc_handle()
        >>> handle.open()  # works in another process only
        Traceback (most recent call last):
            ...
        ValueError: opening IpcHandle from original process
        """
        from ._devices import current_context

        return self._ipc_handle.open_array(current_context(), **self._array_desc)

    def close(self) -> None:
        """Ends the use of the memory; the array is to be gone before.

        Raises
        ------
        ValueError
            The array is not open.

        Examples
        --------
        >>> from pygpu import cuda
        >>> def receive(handle):  # in another process
        ...     total = handle.open().copy_to_host().sum()
        ...     handle.close()
        ...     return total
        """
        self._ipc_handle.close()

    def __enter__(self) -> Any:
        return self.open()

    def __exit__(self, *_raised: Any) -> None:
        self.close()
