"""New device arrays, and arrays over the memory of other objects and other processes.

Examples
--------
>>> array = to_device(np.arange(6).reshape(2, 3))
>>> device_array_like(array).shape, from_array_like(array).strides, is_cuda_array(array)
((2, 3), (24, 8), True)
>>> from_cuda_array_interface(array.__cuda_array_interface__, owner=array)[0, 2]
np.int64(2)
>>> as_cuda_array(gpuarray.to_gpu(np.arange(3.0))).copy_to_host()
array([0., 1., 2.])
>>> from_record_like(np.zeros(1, [("a", "i4"), ("b", "f8")])[0]).dtype.names
('a', 'b')
>>> auto_device(np.arange(3))[1], pinned_array_like(array).shape, pinned_array(2).shape
(True, (2, 3), (2,))
>>> as_cuda_array(mapped_array_like(array)).fill(2).shape, as_cuda_array(managed_array(3)).size
((2, 3), 3)
>>> cuda.synchronize()
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from .. import _core
from .._arguments import wrong_type
from .._core import GPUArray
from .._exchange import protocols
from ..compyte.array import span
from . import _devices, _memory, _stream
from ._array import DeviceNDArray, DeviceNDArrayBase, DeviceRecord
from ._context import IpcHandle

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["as_cuda_array", "device_array", "device_array_like", "from_cuda_array_interface"]
__all__ += ["is_cuda_array", "managed_array", "mapped", "mapped_array", "mapped_array_like"]
__all__ += ["open_ipc_array", "pinned", "pinned_array", "pinned_array_like", "to_device"]

_Target = TypeVar("_Target")
# Device memory that is returned as it is.
_Visible = TypeVar("_Visible", bound="DeviceNDArrayBase | DeviceVisibleNDArray")


def from_cuda_array_interface(
    desc: dict[str, Any], owner: Any = None, sync: bool = True
) -> DeviceNDArray:
    """Returns an array in the memory, and on the stream, that ``desc`` describes.

    ``desc`` is a ``__cuda_array_interface__`` 2 or 3. The array keeps ``owner``, the memory's
    owner. If ``sync`` is True, the default stream waits for that stream. Raises
    ``NotImplementedError`` if ``desc`` has a mask, and ``BufferError`` if the memory is read-only.
    """
    if not isinstance(desc, dict):
        raise wrong_type("desc", desc, "a dict is needed")
    if desc.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    array = protocols.from_description(desc, owner, sync)
    handle = desc.get("stream")
    stream = 0 if handle is None else _stream.external_stream(handle)
    return DeviceNDArray(array.shape, array.strides, array.dtype, stream, array)


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """Returns ``obj``, which has ``__cuda_array_interface__``, as an array in its memory.

    The array keeps ``obj``; ``sync`` is as in :func:`from_cuda_array_interface`. Raises
    ``NotImplementedError`` if the object has a mask.
    """
    if isinstance(obj, DeviceNDArray):
        return obj
    if isinstance(obj, GPUArray):
        return DeviceNDArray(obj.shape, obj.strides, obj.dtype, 0, obj)
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(
            f"*obj* doesn't implement the cuda array interface: it is of type {type(obj).__name__}"
        )
    return from_cuda_array_interface(interface, owner=obj, sync=sync)


def is_cuda_array(obj: Any) -> bool:
    """Returns True if ``obj`` has ``__cuda_array_interface__``; its contents are not checked."""
    return hasattr(obj, "__cuda_array_interface__")


def from_array_like(ary: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceNDArray:
    """Returns an array with the shape, strides and dtype of ``ary``.

    Other arguments are as in :class:`DeviceNDArray`.
    """
    return DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, gpu_data)


def from_record_like(rec: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceRecord:
    """Returns a record with the dtype of ``rec``.

    Other arguments are as in :class:`DeviceNDArray`.
    """
    return DeviceRecord(rec.dtype, stream, gpu_data)


def auto_device(
    obj: Any, stream: Any = 0, copy: bool = True, user_explicit: bool = False
) -> tuple[Any, bool]:
    """Returns ``obj`` as a device array, and True if that is new; ignores ``user_explicit``.

    Other arguments are as in :func:`pygpu.cuda.to_device`. Raises ``NotImplementedError`` if
    ``obj`` has a mask.
    """
    if _memory.is_device_memory(obj) and type(obj) is not GPUArray:
        return obj, False
    if hasattr(obj, "__cuda_array_interface__"):
        return as_cuda_array(obj), False
    device: DeviceNDArrayBase
    if isinstance(obj, np.void):
        device = from_record_like(obj, stream)
    else:
        obj = np.asanyarray(obj)
        _memory.sentry_contiguous(obj)
        device = from_array_like(obj, stream)
    if copy:
        device.copy_to_device(obj, stream)
    return device, True


@overload
def to_device(obj: _Visible, stream: Any = ..., copy: bool = ..., to: None = ...) -> _Visible: ...
@overload
def to_device(
    obj: np.void, stream: Any = ..., copy: bool = ..., to: None = ...
) -> DeviceRecord: ...
@overload
def to_device(obj: Any, stream: Any = ..., copy: bool = ..., to: None = ...) -> DeviceNDArray: ...
@overload
def to_device(obj: Any, stream: Any = ..., copy: bool = ..., *, to: _Target) -> _Target: ...
def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """Returns an object as a device array.

    >>> device = to_device(np.arange(6).reshape(2, 3))
    >>> device[1, 2], device[0].copy_to_host()
    (np.int64(5), array([0, 1, 2]))

    Parameters
    ----------
    obj : object. A record, anything that numpy makes a contiguous array of, or an array with
        ``__cuda_array_interface__`` (its memory is used).
    stream : Stream or 0. The stream of the copy, and of the new array.
    copy : bool. If False, the new array's elements are undefined.
    to : DeviceNDArray, optional. The array to copy into and to return.
    """
    if to is None:
        return auto_device(obj, stream, copy, user_explicit=True)[0]
    if not hasattr(to, "copy_to_device"):
        raise wrong_type("to", to, "a device array is needed")
    if copy:
        to.copy_to_device(obj, stream)
    return to


def device_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
    stream: Any = 0,
) -> DeviceNDArray:
    """Returns a new device array with undefined elements.

    >>> device_array((2, 3), "f4", order="F").strides
    (4, 8)

    Parameters
    ----------
    shape : int or tuple of int. The extents.
    dtype : dtype. The type of the elements.
    strides : int or tuple of int, optional. The steps in bytes.
    order : {"C", "F"}. The order of the axes in memory, without strides.
    stream : Stream or 0. The array's stream.
    """
    shape, strides, dtype = _memory.prepare(shape, strides, dtype, order)
    return DeviceNDArray(shape, strides, dtype, stream)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    """Returns a new array on ``stream`` with the shape, dtype and order of axes of ``ary``."""
    return device_array(ary.shape, ary.dtype, *_memory.strides_like(ary), stream)


@contextlib.contextmanager
def open_ipc_array(
    handle: Any,
    shape: int | Sequence[int],
    dtype: DTypeLike,
    strides: int | Sequence[int] | None = None,
    offset: int = 0,
) -> Iterator[DeviceNDArray]:
    """Opens another process's memory as an array, valid only in the ``with`` block.

    ``handle`` has the 64 bytes of the driver's handle, and the array starts ``offset`` bytes into
    the allocation. Other arguments are as in :func:`device_array`.

    >>> def receive(handle):  # in another process: IpcHandle.handle.reserved
    ...     with open_ipc_array(handle, shape=100, dtype="f4") as array:
    ...         return array.copy_to_host()
    """
    shape, strides, dtype = _memory.prepare(shape, strides, dtype, "C")
    size = _memory.memory_size_from_info(shape, strides, dtype.itemsize)
    opened = IpcHandle(None, handle, size, offset=offset)
    array = opened.open_array(_devices.current_context(), shape, dtype, strides)
    try:
        yield array
    finally:
        opened.close()


class DeviceVisibleNDArray(_memory.Contiguity, np.ndarray):
    """A numpy array in memory that the device also uses; views of it are of this class."""

    gpu_data: Any = None
    stream: Any = 0

    def __array_finalize__(self, source: Any) -> None:
        self.gpu_data = getattr(source, "gpu_data", None)
        self.stream = getattr(source, "stream", 0)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        # Results are in ordinary memory, and are numpy's.
        if array is self:
            return self
        return array[()] if return_scalar else np.asarray(array)

    def device_setup(self, gpu_data: Any, stream: Any = 0) -> None:
        """Sets the ``stream``, and ``gpu_data`` of ``memhostalloc`` or ``memallocmanaged``."""
        self.gpu_data = gpu_data
        self.stream = stream

    @property
    def device_ctypes_pointer(self) -> _memory.DeviceAddress:
        """The address on the device; a copy in ordinary memory raises AttributeError."""
        memory = self.gpu_data
        if memory is not None and not self.size:
            return _memory.DeviceAddress(0)
        offset = None if memory is None else self.ctypes.data - memory.ctypes.data
        if offset is None or not 0 <= offset <= memory.size or not memory.size:
            raise AttributeError("the array is not in memory that a device uses")
        return _memory.DeviceAddress(memory.device_ctypes_pointer.value + offset)

    # numba's own mark would have numba take the array for one of its class.
    @property
    def _is_device_memory(self) -> bool:
        return hasattr(self, "device_ctypes_pointer")

    @property
    def _cuda_memsize_(self) -> int:
        return _memory.bytes_spanned(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array as other libraries use it on the device."""
        address = self.device_ctypes_pointer.value if self.size else 0
        stream = int(self.stream) if self.stream else None
        return protocols.describe(self, address, stream, not self.flags.writeable)

    @overload
    def copy_to_host(self, ary: None = None, stream: Any = 0) -> np.ndarray[Any, Any]: ...
    @overload
    def copy_to_host(self, ary: _Target, stream: Any = 0) -> _Target: ...
    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """Copies to ``ary``, or a new numpy array, after the work of ``stream``, or else of the
        array's stream, or else of the device.
        """
        (stream or self.stream or _devices.current_context()).synchronize()
        if ary is None:
            return np.array(self, subok=False)
        ary[...] = self
        return ary


class MappedNDArray(DeviceVisibleNDArray):
    """A numpy array in page-locked host memory of :func:`pygpu.cuda.mapped_array`.

    Arguments are as in :class:`numpy.ndarray`.

    >>> array = mapped_array(3)
    >>> array[:] = 7
    >>> array.copy_to_host()
    array([7., 7., 7.])
    """


class ManagedNDArray(DeviceVisibleNDArray):
    """A numpy array in managed memory, from :func:`pygpu.cuda.managed_array`.

    Arguments are as in :class:`numpy.ndarray`.

    >>> array = cuda.managed_array(3)
    >>> array[:] = 7
    >>> array.is_c_contiguous(), array.is_f_contiguous()
    (True, True)
    >>> array.copy_to_host()
    array([7., 7., 7.])
    >>> array.device_setup(array.gpu_data, cuda.stream())
    """


_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])


def _made(kind: type[_Array], make: Callable[[int], Any], *layout: Any, stream: Any = 0) -> _Array:
    shape, strides, dtype = _memory.prepare(*layout)
    memory = make(_memory.memory_size_from_info(shape, strides, dtype.itemsize))
    low, _ = span(shape, strides, dtype.itemsize)
    result = kind(shape, dtype, memory.view(np.ndarray), -low, strides)
    if isinstance(result, DeviceVisibleNDArray):
        result.device_setup(memory, stream)
    return result


def pinned_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
) -> np.ndarray[Any, Any]:
    """Returns a new numpy array in page-locked memory; copies of it can be asynchronous.

    Its elements are undefined. Arguments are as in :func:`pygpu.cuda.device_array`.
    """
    allocate = _devices.current_context().memhostalloc
    return _made(np.ndarray, allocate, shape, strides, dtype, order)


def mapped_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
    stream: Any = 0,
    portable: bool = False,
    wc: bool = False,
) -> MappedNDArray:
    """Returns a new numpy array in page-locked memory that kernels also use, on ``stream``.

    All devices can use a ``portable`` array. Write-combined memory (``wc``) is faster to write on
    the host, and slow to read. Other arguments are as in :func:`pygpu.cuda.device_array`.
    """
    context = _devices.current_context()
    allocate = lambda nbytes: context.memhostalloc(nbytes, True, portable, wc)  # noqa: E731
    return _made(MappedNDArray, allocate, shape, strides, dtype, order, stream=stream)


def managed_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
    stream: Any = 0,
    attach_global: bool = True,
) -> ManagedNDArray:
    """Returns a new numpy array in managed memory, for the host and for kernels.

    At first any stream can use the array if ``attach_global``, else only the host. Other
    arguments are as in :func:`mapped_array`. Raises ``pygpu.driver.Unsupported`` without managed
    memory.
    """
    context = _devices.current_context()
    allocate = lambda nbytes: context.memallocmanaged(nbytes, attach_global)  # noqa: E731
    return _made(ManagedNDArray, allocate, shape, strides, dtype, order, stream=stream)


def pinned_array_like(ary: Any) -> np.ndarray[Any, Any]:
    """Returns a new page-locked array with the shape, dtype and order of axes of ``ary``."""
    return pinned_array(ary.shape, ary.dtype, *_memory.strides_like(ary))


def mapped_array_like(
    ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False
) -> MappedNDArray:
    """Returns a new mapped array with the shape, dtype and order of axes of ``ary``.

    Other arguments are as in :func:`mapped_array`.
    """
    return mapped_array(ary.shape, ary.dtype, *_memory.strides_like(ary), stream, portable, wc)


def _pin(ary: Any, mapped: bool) -> Any:
    if not isinstance(ary, np.ndarray):
        raise wrong_type("an argument", ary, "numpy arrays are needed")
    start, end = _memory.host_memory_extents(ary)
    return _devices.current_context().mempin(ary, start, end - start, mapped)


@contextlib.contextmanager
def pinned(*arylist: np.ndarray[Any, Any]) -> Iterator[None]:
    """Page-locks the numpy arrays ``*arylist`` for the ``with`` block.

    >>> host, stream = np.arange(1000.0), cuda.stream()
    >>> with cuda.pinned(host), stream.auto_synchronize():
    ...     device = cuda.to_device(host, stream=stream)
    >>> device[999]
    np.float64(999.0)
    """
    with contextlib.ExitStack() as stack:
        for ary in arylist:
            stack.callback(_pin(ary, False).free)
        yield


@overload
@contextlib.contextmanager
def mapped(ary: np.ndarray[Any, Any], /, *, stream: Any = ...) -> Iterator[DeviceNDArray]: ...
@overload
@contextlib.contextmanager
def mapped(*arylist: np.ndarray[Any, Any], stream: Any = ...) -> Iterator[list[DeviceNDArray]]: ...
@contextlib.contextmanager
def mapped(*arylist: np.ndarray[Any, Any], stream: Any = 0) -> Iterator[Any]:
    """Lets kernels use the arrays ``*arylist`` in the ``with`` block, as arrays on ``stream``.

    The block's value is one array, or a list. Uses after the block raise ``LogicError``. The
    block's end raises it too if a buffer or another library uses an array; that array stays mapped.

    >>> host = np.arange(3.0)
    >>> with cuda.mapped(host) as device:
    ...     _ = device.fill(7)
    ...     cuda.synchronize()
    >>> host
    array([7., 7., 7.])
    """
    with contextlib.ExitStack() as stack:
        arrays = []
        for ary in arylist:
            memory = _pin(ary, True)
            start, _ = _memory.host_memory_extents(ary)
            address = memory.device_ctypes_pointer.value + ary.ctypes.data - start
            source = _Address(address, memory)
            arrays.append(DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, source))
            stack.callback(_unmap, arrays[-1], memory)
        yield arrays[0] if len(arrays) == 1 else arrays


def _unmap(array: DeviceNDArray, memory: Any) -> None:
    _core.end_foreign_memory(array)
    memory.free()


class _Address:
    """An address on the device, and the host memory that it stands for."""

    def __init__(self, address: int, memory: Any) -> None:
        self.device_ctypes_pointer = _memory.DeviceAddress(address)
        self.memory = memory
