"""Addresses, extents and sizes of memory, as numba's driver module tells them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import GPUArray
from .._exchange.protocols import extent
from ._pointer import BYTE, DeviceAddress


def host_array(obj: Any) -> np.ndarray[Any, Any]:
    if isinstance(obj, np.ndarray):
        return obj
    if isinstance(obj, np.generic):
        return np.frombuffer(obj, BYTE)
    return np.frombuffer(memoryview(obj).cast("B"), BYTE)


def is_device_memory(obj: Any) -> bool:
    """Returns whether an object is device memory.

    Parameters
    ----------
    obj : object
        Any object.

    Returns
    -------
    bool
        True for arrays of this package, pointers to device memory, and objects with numba's marks.

    Examples
    --------
    >>> from pygpu import cuda
    >>> is_device_memory(cuda.device_array(3)), is_device_memory(bytes(3))
    (True, False)
    """
    marks = ("__cuda_memory__", "_is_device_memory")
    return isinstance(obj, GPUArray) or any(bool(getattr(obj, mark, False)) for mark in marks)


def require_device_memory(obj: Any) -> None:
    """Raises an error for what is no device memory.

    Parameters
    ----------
    obj : object
        Any object.

    Raises
    ------
    TypeError
        :func:`is_device_memory` is False for it.

    Examples
    --------
    >>> from pygpu import cuda
    >>> require_device_memory(cuda.device_array(3))
    """
    if not is_device_memory(obj):
        raise TypeError(f"obj is of type {type(obj).__name__}; device memory is needed")


def device_pointer(obj: Any) -> int:
    """Returns the address of device memory.

    Parameters
    ----------
    obj : device array or MemoryPointer
        The memory.

    Returns
    -------
    int
        The address of the first element or byte.

    Raises
    ------
    TypeError
        ``obj`` is no device memory.

    Examples
    --------
    >>> from pygpu import cuda
    >>> array = cuda.to_device([1, 2, 3])
    >>> device_pointer(array) == array.ptr
    True
    """
    require_device_memory(obj)
    return obj.ptr if isinstance(obj, GPUArray) else obj.device_ctypes_pointer.value or 0


def device_ctypes_pointer(obj: Any) -> DeviceAddress:
    """Returns the address of device memory as an object of ctypes.

    Parameters
    ----------
    obj : device array, MemoryPointer or None
        The memory.

    Returns
    -------
    DeviceAddress
        The address; 0 for None.

    Raises
    ------
    TypeError
        ``obj`` is no device memory.

    Examples
    --------
    >>> device_ctypes_pointer(None).value
    0
    """
    return DeviceAddress(0 if obj is None else device_pointer(obj))


def device_memory_size(obj: Any) -> int:
    """Returns how many bytes an array or a pointer of device memory spans.

    Parameters
    ----------
    obj : device array or MemoryPointer
        The memory.

    Returns
    -------
    int
        The bytes from the lowest to the end of the highest, gaps included.

    Raises
    ------
    TypeError
        ``obj`` is no device memory.

    Examples
    --------
    >>> from pygpu import cuda
    >>> device_memory_size(cuda.device_array(6, "f4")[::2])
    20
    """
    require_device_memory(obj)
    if isinstance(obj, GPUArray):
        low, high = extent(obj.shape, obj.strides, obj.itemsize)
        return high - low
    return obj._cuda_memsize_


def device_extents(obj: Any) -> tuple[int, int]:
    """Returns the bounds of the allocation that device memory lies in.

    Parameters
    ----------
    obj : device array or MemoryPointer
        The memory.

    Returns
    -------
    start, end : int
        The base address of the allocation, and the first address behind it.

    Raises
    ------
    TypeError
        ``obj`` is no device memory.

    Examples
    --------
    >>> from pygpu import cuda
    >>> array = cuda.device_array(6, "f4")
    >>> start, end = device_extents(array[2:])
    >>> start == array.ptr, end - start >= 24
    (True, True)
    """
    base, size = _core.mem_get_address_range(device_pointer(obj))
    return base, base + size


def host_pointer(obj: Any, readonly: bool = False) -> int:
    """Returns the address of a host object's bytes.

    Parameters
    ----------
    obj : numpy.ndarray, buffer or int
        The object; an int is the address.
    readonly : bool
        Whether an object for reading only is allowed.

    Returns
    -------
    int
        The address.

    Raises
    ------
    TypeError
        The object has no buffer.
    ValueError
        The object is for reading only, and ``readonly`` is not True.

    Examples
    --------
    >>> array = np.zeros(3)
    >>> host_pointer(array) == array.ctypes.data
    True
    """
    if isinstance(obj, int):
        return obj
    array = host_array(obj)
    if not (readonly or array.flags.writeable or isinstance(obj, np.void)):
        raise ValueError("obj is for reading only; a writable object is needed")
    return array.ctypes.data


def host_memory_extents(obj: Any) -> tuple[int, int]:
    """Returns the bounds of a host object's bytes.

    Parameters
    ----------
    obj : numpy.ndarray or buffer
        The object.

    Returns
    -------
    start, end : int
        The lowest address, and the first one behind the highest byte.

    Raises
    ------
    TypeError
        The object has no buffer.

    Examples
    --------
    >>> start, end = host_memory_extents(np.zeros(6, "f4")[::-2])
    >>> end - start
    20
    """
    array = host_array(obj)
    low, high = extent(array.shape, array.strides, array.itemsize)
    return array.ctypes.data + low, array.ctypes.data + high


def host_memory_size(obj: Any) -> int:
    """Returns how many bytes a host object spans.

    Parameters
    ----------
    obj : numpy.ndarray or buffer
        The object.

    Returns
    -------
    int
        The bytes from the lowest to the end of the highest, gaps included.

    Raises
    ------
    TypeError
        The object has no buffer.

    Examples
    --------
    >>> host_memory_size(np.zeros(6, "f4")[::2])
    20
    """
    low, high = host_memory_extents(obj)
    return high - low


def memory_size_from_info(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Returns how many bytes an array of a shape and strides spans.

    Parameters
    ----------
    shape, strides : tuple of int
        The extents of the axes, and the bytes between neighbours along each.
    itemsize : int
        The bytes of an element.

    Returns
    -------
    int
        The bytes from the lowest to the end of the highest, gaps included.

    Raises
    ------
    ValueError
        There are more or fewer strides than axes.

    Examples
    --------
    >>> memory_size_from_info((3,), (8,), 4)
    20
    """
    if len(shape) != len(strides):
        raise ValueError(f"strides has {len(strides)} entries and shape {len(shape)}")
    low, high = extent(shape, strides, itemsize)
    return high - low
