"""Host memory that a device can reach, as numpy arrays: the functions of ``pycuda.driver``."""

from __future__ import annotations

import ctypes
import math
import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .. import _arguments
from .._arguments import plain_dtype
from .._core import (
    PagelockedHostAllocation,
    RegisteredHostMemory,
    managed_empty,
    pagelocked_empty,
)
from .._errors import LogicError


def _cleared(array: np.ndarray) -> np.ndarray:
    """Clears all bytes of an array, those between fields too, as ``numpy.zeros`` does."""
    ctypes.memset(array.ctypes.data, 0, array.nbytes)
    return array


def pagelocked_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    """Returns a numpy array of zeros in page-locked memory.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    mem_flags : int
        Values of `driver.host_alloc_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Raises
    ------
    LogicError
        ``mem_flags`` has other bits.
    MemoryError
        There is not so much memory.

    Notes
    -----
    The memory is the process's own, registered with the driver: a reset of the device leaves it.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.pagelocked_zeros(2, np.float32)
    array([0., 0.], dtype=float32)
    """
    result = pagelocked_empty(shape, dtype, order, mem_flags)
    return _cleared(result)


def _order(array: Any) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def pagelocked_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array like another in page-locked memory, its elements undefined.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        Values of `driver.host_alloc_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Raises
    ------
    TypeError
        ``array`` is no array, or its elements are Python objects.
    LogicError
        ``mem_flags`` has other bits.
    MemoryError
        There is not so much memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.pagelocked_empty_like(np.zeros((2, 3))).shape
    (2, 3)
    """
    _arguments.array("array", array)
    return pagelocked_empty(array.shape, array.dtype, _order(array), mem_flags)


def pagelocked_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array of zeros like another in page-locked memory.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        Values of `driver.host_alloc_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Raises
    ------
    TypeError
        ``array`` is no array, or its elements are Python objects.
    LogicError
        ``mem_flags`` has other bits.
    MemoryError
        There is not so much memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.pagelocked_zeros_like(np.ones(2))
    array([0., 0.])
    """
    _arguments.array("array", array)
    return pagelocked_zeros(array.shape, array.dtype, _order(array), mem_flags)


class HostPointer(ABC):
    """Host memory that was made for copies: the base of the classes of such memory, which are
    ``PagelockedHostAllocation``, ``RegisteredHostMemory`` and ``AlignedHostAllocation``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> array = driver.pagelocked_empty(3, np.float32)
    >>> isinstance(array.base, driver.HostPointer)
    True
    >>> array.base.get_device_pointer() != 0
    True
    >>> pinned = array.base
    >>> del array
    >>> pinned.free()
    """

    @abstractmethod
    def free(self) -> None:
        """Ends the use of the memory.

        Raises
        ------
        LogicError
            The memory has been freed already. Where an array still uses it, it is freed with that.
        """

    def get_device_pointer(self) -> int:
        """Returns the address that kernels use for memory that was mapped.

        Returns
        -------
        int
            The address.

        Raises
        ------
        LogicError
            The memory is not page-locked.
        """
        raise LogicError("the memory is not page-locked: register_host_memory locks it")


HostPointer.register(PagelockedHostAllocation)
HostPointer.register(RegisteredHostMemory)


class AlignedHostAllocation(HostPointer):
    """Ordinary memory with an aligned address: the base of an array of :func:`aligned_empty`.

    The device address of memory that :func:`register_host_memory` has page-locked is that of the
    object which it returns.

    Parameters
    ----------
    size : int
        The number of bytes.
    alignment : int
        What the address is a multiple of, in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> memory = driver.AlignedHostAllocation(100, 4096)
    >>> array = np.asarray(memory)
    >>> array.nbytes, array.ctypes.data % 4096
    (100, 0)
    >>> memory.free()
    >>> memory.get_device_pointer()
    Traceback (most recent call last):
        ...
    pygpu._errors.LogicError: the memory is not page-locked: register_host_memory locks it
    """

    def __init__(self, size: int, alignment: int) -> None:
        block = np.empty(size + alignment, np.uint8)
        start = -block.ctypes.data % alignment
        self._bytes = block[start : start + size]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._bytes.__array_interface__

    def free(self) -> None:
        """Does nothing: the memory is freed when the last array in it is gone."""


def aligned_empty(
    shape: Any, dtype: Any, order: str | None = "C", alignment: int = 4096
) -> np.ndarray:
    """Returns a numpy array in ordinary memory with an aligned address, its elements undefined.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Raises
    ------
    TypeError
        The elements are Python objects, or ``shape`` has something else than whole numbers.
    ValueError
        ``alignment`` is no power of two, or ``shape`` has a negative extent.
    MemoryError
        There is not so much memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_empty(3, np.int8).ctypes.data % 4096
    0
    """
    alignment = _arguments.whole("alignment", alignment)
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment is {alignment}; a power of two is needed")
    dtype = plain_dtype(dtype)
    shape = _arguments.extents("shape", shape)
    size = math.prod(shape) * dtype.itemsize
    if size + alignment > sys.maxsize:
        raise MemoryError(f"shape is {shape}; its {size} bytes are more than an address space has")
    memory = np.asarray(AlignedHostAllocation(size, alignment))
    return memory.view(dtype).reshape(shape, order=order)  # type: ignore[call-overload]


def aligned_zeros(
    shape: Any, dtype: Any, order: str | None = "C", alignment: int = 4096
) -> np.ndarray:
    """Returns a numpy array of zeros in ordinary memory with an aligned address.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Raises
    ------
    TypeError
        The elements are Python objects, or ``shape`` has something else than whole numbers.
    ValueError
        ``alignment`` is no power of two, or ``shape`` has a negative extent.
    MemoryError
        There is not so much memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_zeros(2, np.int64)
    array([0, 0])
    """
    result = aligned_empty(shape, dtype, order, alignment)
    return _cleared(result)


def aligned_empty_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """Returns a numpy array like another with an aligned address, its elements undefined.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Raises
    ------
    TypeError
        ``array`` is no array, or its elements are Python objects.
    ValueError
        ``alignment`` is no power of two.
    MemoryError
        There is not so much memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_empty_like(np.zeros(3)).shape
    (3,)
    """
    _arguments.array("array", array)
    return aligned_empty(array.shape, array.dtype, _order(array), alignment)


def aligned_zeros_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """Returns a numpy array of zeros like another with an aligned address.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Raises
    ------
    TypeError
        ``array`` is no array, or its elements are Python objects.
    ValueError
        ``alignment`` is no power of two.
    MemoryError
        There is not so much memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_zeros_like(np.ones(2))
    array([0., 0.])
    """
    _arguments.array("array", array)
    return aligned_zeros(array.shape, array.dtype, _order(array), alignment)


# -- memory that host and device share -----------------------------------------------------


def managed_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    """Returns a numpy array of zeros in memory that host and device share.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    mem_flags : int
        A value of `driver.mem_attach_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Raises
    ------
    LogicError
        ``mem_flags`` is another value.
    MemoryError
        There is not so much memory.
    Unsupported
        The device has no such memory.

    Notes
    -----
    The driver's function is ``cuMemAllocManaged``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = driver.managed_zeros(2, np.int64, mem_flags=driver.mem_attach_flags.GLOBAL)
    >>> driver.Context.synchronize()
    >>> a
    array([0, 0])
    """
    result = managed_empty(shape, dtype, order, mem_flags)
    return _cleared(result)


def managed_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array like another in memory that host and device share.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        A value of `driver.mem_attach_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory; its elements are undefined.

    Raises
    ------
    TypeError
        ``array`` is no array, or its elements are Python objects.
    LogicError
        ``mem_flags`` is another value.
    MemoryError
        There is not so much memory.
    Unsupported
        The device has no such memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = driver.managed_empty_like(np.zeros(3), driver.mem_attach_flags.GLOBAL)
    >>> driver.Context.synchronize()
    >>> a.shape
    (3,)
    """
    _arguments.array("array", array)
    return managed_empty(array.shape, array.dtype, _order(array), mem_flags)


def managed_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array of zeros like another in memory that host and device share.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        A value of `driver.mem_attach_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Raises
    ------
    TypeError
        ``array`` is no array, or its elements are Python objects.
    LogicError
        ``mem_flags`` is another value.
    MemoryError
        There is not so much memory.
    Unsupported
        The device has no such memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = driver.managed_zeros_like(np.ones(2), driver.mem_attach_flags.GLOBAL)
    >>> driver.Context.synchronize()
    >>> a
    array([0., 0.])
    """
    _arguments.array("array", array)
    return managed_zeros(array.shape, array.dtype, _order(array), mem_flags)
