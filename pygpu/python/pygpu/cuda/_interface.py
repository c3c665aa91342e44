"""Other objects as device arrays: numpy's, and those with ``__cuda_array_interface__``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import GPUArray
from .._exchange import protocols
from . import _stream
from ._array import DeviceNDArray
from ._array_base import DeviceNDArrayBase
from ._layout import sentry_contiguous
from ._memory_info import is_device_memory
from ._record import DeviceRecord


def from_cuda_array_interface(
    desc: dict[str, Any], owner: Any = None, sync: bool = True
) -> DeviceNDArray:
    """Returns an array for a description of ``__cuda_array_interface__``.

    Parameters
    ----------
    desc : dict
        The description, of version 2 or 3.
    owner : object, optional
        What keeps the memory alive; it is kept as long as the array.
    sync : bool
        Whether work on the default stream is ordered behind the stream that the description names.

    Returns
    -------
    DeviceNDArray
        An array in the same memory, whose stream is the one named.

    Raises
    ------
    NotImplementedError
        The description has a mask.
    BufferError
        The memory is for reading only.
    ValueError
        The description is wrong, or there is no memory at its address.
    TypeError
        ``desc`` is no dict.

    Examples
    --------
    >>> from pygpu import cuda
    >>> array = cuda.to_device([1, 2, 3])
    >>> cuda.from_cuda_array_interface(array.__cuda_array_interface__, owner=array)[2]
    np.int64(3)
    """
    if not isinstance(desc, dict):
        raise TypeError(f"desc is of type {type(desc).__name__}; a dict is needed")
    if desc.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    array = protocols.from_description(desc, owner, sync)
    handle = desc.get("stream")
    stream = 0 if handle is None else _stream.external_stream(handle)
    return DeviceNDArray(array.shape, array.strides, array.dtype, stream, array)


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """Returns an object with ``__cuda_array_interface__`` as an array in its memory.

    Parameters
    ----------
    obj : object
        The object, which is kept as long as the array.
    sync : bool
        Whether work on the default stream is ordered behind the stream that the object names.

    Returns
    -------
    DeviceNDArray
        The array; ``obj`` itself if it is one.

    Raises
    ------
    TypeError
        The object has no such interface.
    NotImplementedError
        The object has a mask.
    BufferError
        The memory is for reading only.
    ValueError
        The description is wrong, or there is no memory at its address.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import cuda, gpuarray
    >>> cuda.as_cuda_array(gpuarray.to_gpu(np.arange(3.0))).copy_to_host()
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
    """Returns True if an object has ``__cuda_array_interface__``; what that says is not checked.

    Parameters
    ----------
    obj : object
        Any object.

    Returns
    -------
    bool
        Whether it has.

    Examples
    --------
    >>> from pygpu import cuda
    >>> cuda.is_cuda_array(cuda.device_array(3)), cuda.is_cuda_array([1, 2, 3])
    (True, False)
    """
    return hasattr(obj, "__cuda_array_interface__")


def from_array_like(ary: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceNDArray:
    """Returns an array with the shape, strides and dtype of another one.

    Parameters
    ----------
    ary : array
        A numpy array or a device array.
    stream : Stream or 0
        The stream of the new array.
    gpu_data : MemoryPointer, GPUArray or int, optional
        The memory of the first element; new memory by default.

    Returns
    -------
    DeviceNDArray
        The array, its elements undefined.

    Examples
    --------
    >>> from_array_like(np.zeros((2, 3), "f4")).shape
    (2, 3)
    """
    return DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, gpu_data)


def from_record_like(rec: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceRecord:
    """Returns a record with the dtype of another one.

    Parameters
    ----------
    rec : numpy.void or DeviceRecord
        The other one.
    stream : Stream or 0
        The stream of the new record.
    gpu_data : MemoryPointer or GPUArray, optional
        The memory; new memory by default.

    Returns
    -------
    DeviceRecord
        The record, its fields undefined.

    Examples
    --------
    >>> record = np.zeros(1, [("a", "i4"), ("b", "f8")])[0]
    >>> from_record_like(record).dtype.names
    ('a', 'b')
    """
    return DeviceRecord(rec.dtype, stream, gpu_data)


def auto_device(
    obj: Any, stream: Any = 0, copy: bool = True, user_explicit: bool = False
) -> tuple[Any, bool]:
    """Returns an object as a device array, and whether the array is a new one.

    Parameters
    ----------
    obj : object
        An array of this package or with ``__cuda_array_interface__``, whose memory is used; or
        what numpy makes an array of, without gaps, for which a new one is made.
    stream : Stream or 0
        The stream of the copy, and of the new array.
    copy : bool
        Whether the elements are copied.
    user_explicit : bool
        Taken for numba's sake; there is no warning to be left out.

    Returns
    -------
    array : DeviceNDArray or DeviceRecord
        The device array.
    is_new : bool
        Whether it has memory of its own.

    Raises
    ------
    TypeError
        numpy makes no array of numbers of ``obj``.
    ValueError
        ``obj`` is on the host and has gaps.
    NotImplementedError
        ``obj`` has a mask.

    Examples
    --------
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
