"""Copies of rows from and to texture arrays, under PyCUDA's names."""

from __future__ import annotations

from typing import Any

from .. import _arguments, _core
from .memcpy import Memcpy2D
from .texture_arrays import Array, check_textures


def _row_copy(size: int) -> Memcpy2D:
    """A copy of bytes of one row, whose sides are still to be set."""
    check_textures("memcpy")
    copy = Memcpy2D()
    copy.width_in_bytes, copy.height = _arguments.whole("len", size), 1
    return copy


def memcpy_dtoa(ary: Array, index: int, src: Any, len: int) -> None:
    """Copies device memory to the first row of an array for textures (``cuMemcpyDtoA``).

    Parameters
    ----------
    ary : Array
        The array.
    index : int
        Where in the row, in bytes.
    src : DeviceAllocation, GPUArray or int
        The device memory.
    len : int
        The number of bytes.

    Raises
    ------
    TypeError
        ``ary`` is no ``Array``, ``src`` no device memory, or a number is no whole one.
    LogicError
        The row has fewer bytes.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver, gpuarray
    >>> array = driver.matrix_to_array(np.zeros((1, 4), np.float32), "C")
    >>> driver.memcpy_dtoa(array, 4, gpuarray.ones(2, np.float32), 8)
    >>> row = np.empty(4, np.float32)
    >>> driver.memcpy_atoh(row, array, 0)
    >>> row
    array([0., 1., 1., 0.], dtype=float32)
    """
    copy = _row_copy(len)
    copy.set_src_device(src)
    copy.set_dst_array(ary)
    copy.dst_x_in_bytes = index
    copy(aligned=True)


def memcpy_atod(dest: Any, ary: Array, index: int, len: int) -> None:
    """Copies the first row of an array for textures to device memory (``cuMemcpyAtoD``).

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    ary : Array
        The array.
    index : int
        Where in the row, in bytes.
    len : int
        The number of bytes.

    Raises
    ------
    TypeError
        ``ary`` is no ``Array``, ``dest`` no device memory, or a number is no whole one.
    LogicError
        The row has fewer bytes.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver, gpuarray
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.float32), "C")
    >>> part = gpuarray.zeros(2, np.float32)
    >>> driver.memcpy_atod(part, array, 4, 8)
    >>> part
    array([2., 3.], dtype=float32)
    """
    copy = _row_copy(len)
    copy.set_src_array(ary)
    copy.src_x_in_bytes = index
    copy.set_dst_device(dest)
    copy(aligned=True)


def memcpy_htoa(ary: Array, index: int, src: Any) -> None:
    """Copies host memory to the first row of an array for textures (``cuMemcpyHtoA``).

    Parameters
    ----------
    ary : Array
        The array.
    index : int
        Where in the row, in bytes.
    src : numpy.ndarray or buffer
        The host memory.

    Raises
    ------
    TypeError
        ``ary`` is no ``Array``, ``src`` has no buffer, or ``index`` is no whole number.
    ValueError
        ``src`` is not contiguous.
    LogicError
        The row has fewer bytes.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> array = driver.matrix_to_array(np.zeros((1, 4), np.uint8), "C")
    >>> driver.memcpy_htoa(array, 2, np.array([5, 6], np.uint8))
    >>> row = np.empty(4, np.uint8)
    >>> driver.memcpy_atoh(row, array, 0)
    >>> row
    array([0, 0, 5, 6], dtype=uint8)
    """
    copy = _row_copy(_core.host_memory_size("src", src, False))
    copy.set_src_host(src)
    copy.set_dst_array(ary)
    copy.dst_x_in_bytes = index
    copy(aligned=True)


def memcpy_atoh(dest: Any, ary: Array, index: int) -> None:
    """Copies the first row of an array for textures to host memory (``cuMemcpyAtoH``).

    Parameters
    ----------
    dest : numpy.ndarray or buffer
        The host memory.
    ary : Array
        The array.
    index : int
        Where in the row, in bytes.

    Raises
    ------
    TypeError
        ``ary`` is no ``Array``, ``dest`` has no buffer, or ``index`` is no whole number.
    ValueError
        ``dest`` is not contiguous, or read-only.
    LogicError
        The row has fewer bytes.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
    >>> part = np.empty(2, np.uint8)
    >>> driver.memcpy_atoh(part, array, 1)
    >>> part
    array([2, 3], dtype=uint8)
    """
    copy = _row_copy(_core.host_memory_size("dest", dest, True))
    copy.set_src_array(ary)
    copy.src_x_in_bytes = index
    copy.set_dst_host(dest)
    copy(aligned=True)


def memcpy_atoa(dest: Array, dest_index: int, src: Array, src_index: int, len: int) -> None:
    """Copies between the first rows of two arrays for textures (``cuMemcpyAtoA``).

    Parameters
    ----------
    dest, src : Array
        The arrays.
    dest_index, src_index : int
        Where in their rows, in bytes.
    len : int
        The number of bytes.

    Raises
    ------
    TypeError
        An argument is no ``Array``, or a number is no whole one.
    LogicError
        A row has fewer bytes.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
    >>> other = driver.matrix_to_array(np.zeros((1, 3), np.uint8), "C")
    >>> driver.memcpy_atoa(other, 0, array, 1, 2)
    >>> row = np.empty(3, np.uint8)
    >>> driver.memcpy_atoh(row, other, 0)
    >>> row
    array([2, 3, 0], dtype=uint8)
    """
    copy = _row_copy(len)
    copy.set_src_array(src)
    copy.set_dst_array(dest)
    copy.src_x_in_bytes, copy.dst_x_in_bytes = src_index, dest_index
    copy(aligned=True)


py_memcpy_htoa = memcpy_htoa
py_memcpy_atoh = memcpy_atoh
