"""New device arrays, and those that other processes share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _devices
from ._array import DeviceNDArray
from ._interface import auto_device
from ._ipc import IpcHandle
from ._layout import parse_shape, prepare, strides_like


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """Returns an object as a device array.

    Parameters
    ----------
    obj : object
        A numpy array without gaps, a record, a number; or an array that is on the device already,
        whose memory is used.
    stream : Stream or 0
        The stream in whose order elements are copied, which becomes the new array's.
    copy : bool
        Whether elements are copied; else the new array's are undefined.
    to : DeviceNDArray, optional
        An array to copy into, which is returned.

    Returns
    -------
    DeviceNDArray or DeviceRecord
        The array. Its strides are those of ``obj``.

    Raises
    ------
    ValueError
        ``obj`` has gaps, or does not fit ``to``.
    TypeError
        ``to`` is no device array.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import cuda
    >>> device = cuda.to_device(np.arange(6).reshape(2, 3))
    >>> device[1, 2], device[0].copy_to_host()
    (np.int64(5), array([0, 1, 2]))
    """
    if to is None:
        return auto_device(obj, stream, copy, user_explicit=True)[0]
    if not hasattr(to, "copy_to_device"):
        raise TypeError(f"to is of type {type(to).__name__}; a device array is needed")
    if copy:
        to.copy_to_device(obj, stream)
    return to


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceNDArray:
    """Returns a new device array, whose elements are undefined.

    Parameters
    ----------
    shape : int or tuple of int
        The extents.
    dtype : dtype
        The type of the elements.
    strides : int or tuple of int, optional
        The steps in bytes.
    order : {"C", "F"}
        The order of the axes in memory, without strides.
    stream : Stream or 0
        The array's stream.

    Returns
    -------
    DeviceNDArray
        The array.

    Raises
    ------
    TypeError, ValueError
        An argument is not as above.

    Examples
    --------
    >>> from pygpu import cuda
    >>> cuda.device_array((2, 3), "f4", order="F").strides
    (4, 8)
    """
    shape, strides, dtype = prepare(shape, strides, dtype, order)
    return DeviceNDArray(shape, strides, dtype, stream)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    """Returns a new device array with the shape, dtype and order of axes of another array.

    Parameters
    ----------
    ary : array
        A numpy array or a device array.
    stream : Stream or 0
        The new array's stream.

    Returns
    -------
    DeviceNDArray
        The array, its elements undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import cuda
    >>> cuda.device_array_like(np.zeros((2, 3), order="F")).strides
    (8, 16)
    """
    strides, order = strides_like(ary)
    return device_array(ary.shape, ary.dtype, strides, order, stream)


@contextlib.contextmanager
def open_ipc_array(
    handle: Any, shape: Any, dtype: Any, strides: Any = None, offset: int = 0
) -> Iterator[DeviceNDArray]:
    """Opens another process's memory as an array for the ``with`` block.

    Parameters
    ----------
    handle : bytes
        The 64 bytes of the driver's handle.
    shape : int or tuple of int
        The extents.
    dtype : dtype
        The type of the elements.
    strides : int or tuple of int, optional
        The steps in bytes; without them the array is C-contiguous.
    offset : int
        Where the array starts in the allocation, in bytes.

    Yields
    ------
    DeviceNDArray
        The array, which must not be used after the block.

    Raises
    ------
    TypeError
        An extent is no whole number.
    ValueError
        The array does not lie within the allocation.

    Examples
    --------
    >>> from pygpu import cuda
    >>> def receive(handle):  # in another process: cuda.IpcHandle.handle.reserved
    ...     with cuda.open_ipc_array(handle, shape=100, dtype="f4") as array:
    ...         return array.copy_to_host()
    """
    shape, strides, dtype = prepare(parse_shape(shape), strides, dtype, "C")
    size = sum((side - 1) * abs(step) for side, step in zip(shape, strides)) + dtype.itemsize
    opened = IpcHandle(None, handle, size if 0 not in shape else 0, offset=offset)
    array = opened.open_array(_devices.current_context(), shape, dtype, strides)
    try:
        yield array
    finally:
        opened.close()
