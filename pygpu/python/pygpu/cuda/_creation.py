"""New device arrays, and those over the memory of other objects and other processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._arguments import wrong_type
from .._core import GPUArray
from .._exchange import protocols
from . import _devices, _stream
from ._array import DeviceNDArray, DeviceRecord
from ._array_base import DeviceNDArrayBase
from ._ipc import IpcHandle
from ._layout import prepare, sentry_contiguous, strides_like
from ._memory import is_device_memory, memory_size_from_info

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "as_cuda_array",
    "device_array",
    "device_array_like",
    "from_cuda_array_interface",
    "is_cuda_array",
    "open_ipc_array",
    "to_device",
]


def from_cuda_array_interface(
    desc: dict[str, Any], owner: Any = None, sync: bool = True
) -> DeviceNDArray:
    """Returns an array in the memory that a ``__cuda_array_interface__`` describes, on its stream.

    Raises ``NotImplementedError`` if the description has a mask, and ``BufferError`` if the memory
    is for reading only.

    Parameters
    ----------
    desc : dict. The description, of version 2 or 3.
    owner : object, optional. What keeps the memory alive; it is kept as long as the array.
    sync : bool. Whether work on the default stream is ordered behind the stream that the
        description names.

    Examples
    --------
    >>> array = to_device([1, 2, 3])
    >>> from_cuda_array_interface(array.__cuda_array_interface__, owner=array)[2]
    np.int64(3)
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
    """Returns ``obj``, which has ``__cuda_array_interface__``, as an array in its memory, which
    keeps it.

    ``sync`` is that of :func:`from_cuda_array_interface`. Raises ``NotImplementedError`` if the
    object has a mask.

    >>> as_cuda_array(gpuarray.to_gpu(np.arange(3.0))).copy_to_host()
    array([0., 1., 2.])
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
    """Returns True if ``obj`` has ``__cuda_array_interface__``; what that says is not checked.

    >>> is_cuda_array(device_array(3)), is_cuda_array([1, 2, 3])
    (True, False)
    """
    return hasattr(obj, "__cuda_array_interface__")


def from_array_like(ary: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceNDArray:
    """Returns an array with the shape, strides and dtype of ``ary``.

    Other arguments are as in :class:`DeviceNDArray`.

    >>> from_array_like(np.zeros((2, 3), "f4")).shape
    (2, 3)
    """
    return DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, gpu_data)


def from_record_like(rec: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceRecord:
    """Returns a record with the dtype of ``rec``.

    Other arguments are as in :class:`DeviceNDArray`.

    >>> record = np.zeros(1, [("a", "i4"), ("b", "f8")])[0]
    >>> from_record_like(record).dtype.names
    ('a', 'b')
    """
    return DeviceRecord(rec.dtype, stream, gpu_data)


def auto_device(
    obj: Any, stream: Any = 0, copy: bool = True, user_explicit: bool = False
) -> tuple[Any, bool]:
    """Returns an object as a device array, and whether the array is a new one; ``user_explicit``
    has no effect.

    Other arguments are as in :func:`pygpu.cuda.to_device`. Raises ``NotImplementedError`` if
    ``obj`` has a mask.

    >>> array, is_new = auto_device(np.arange(3))
    >>> array.copy_to_host(), is_new
    (array([0, 1, 2]), True)
    """
    if is_device_memory(obj) and type(obj) is not GPUArray:
        return obj, False
    if hasattr(obj, "__cuda_array_interface__"):
        return as_cuda_array(obj), False
    device: DeviceNDArrayBase
    if isinstance(obj, np.void):
        device = from_record_like(obj, stream)
    else:
        obj = np.asanyarray(obj)
        sentry_contiguous(obj)
        device = from_array_like(obj, stream)
    if copy:
        device.copy_to_device(obj, stream)
    return device, True


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """Returns an object as a device array.

    Parameters
    ----------
    obj : object. What numpy makes an array of, without gaps, or a record; or an array of this
        package or with ``__cuda_array_interface__``, whose memory is used.
    stream : Stream or 0. The stream in whose order elements are copied, which becomes the new
        array's.
    copy : bool. Whether elements are copied; else the new array's are undefined.
    to : DeviceNDArray, optional. An array to copy into, which is returned.

    Examples
    --------
    >>> device = to_device(np.arange(6).reshape(2, 3))
    >>> device[1, 2], device[0].copy_to_host()
    (np.int64(5), array([0, 1, 2]))
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
    """Returns a new device array, whose elements are undefined.

    Parameters
    ----------
    shape : int or tuple of int. The extents.
    dtype : dtype. The type of the elements.
    strides : int or tuple of int, optional. The steps in bytes.
    order : {"C", "F"}. The order of the axes in memory, without strides.
    stream : Stream or 0. The array's stream.

    Examples
    --------
    >>> device_array((2, 3), "f4", order="F").strides
    (4, 8)
    """
    shape, strides, dtype = prepare(shape, strides, dtype, order)
    return DeviceNDArray(shape, strides, dtype, stream)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    """Returns a new device array, on ``stream``, with the shape, dtype and order of axes of
    ``ary``.

    >>> device_array_like(np.zeros((2, 3), order="F")).strides
    (8, 16)
    """
    return device_array(ary.shape, ary.dtype, *strides_like(ary), stream)


@contextlib.contextmanager
def open_ipc_array(
    handle: Any,
    shape: int | Sequence[int],
    dtype: DTypeLike,
    strides: int | Sequence[int] | None = None,
    offset: int = 0,
) -> Iterator[DeviceNDArray]:
    """Opens another process's memory as an array, which must not be used after the block.

    ``handle`` has the 64 bytes of the driver's handle, and the array starts ``offset`` bytes into
    the allocation. Other arguments are as in :func:`device_array`.

    >>> def receive(handle):  # in another process: IpcHandle.handle.reserved
    ...     with open_ipc_array(handle, shape=100, dtype="f4") as array:
    ...         return array.copy_to_host()
    """
    shape, strides, dtype = prepare(shape, strides, dtype, "C")
    size = memory_size_from_info(shape, strides, dtype.itemsize)
    opened = IpcHandle(None, handle, size, offset=offset)
    array = opened.open_array(_devices.current_context(), shape, dtype, strides)
    try:
        yield array
    finally:
        opened.close()
