"""Copies from and to texture arrays, under PyCUDA's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._enumerations import array3d_flags, array_format
from ._errors import LogicError
from ._textures import Array, ArrayDescriptor, ArrayDescriptor3D, TextureReference, _refuse

_FORMATS = {
    np.dtype(np.uint8): array_format.UNSIGNED_INT8,
    np.dtype(np.uint16): array_format.UNSIGNED_INT16,
    np.dtype(np.uint32): array_format.UNSIGNED_INT32,
    np.dtype(np.int8): array_format.SIGNED_INT8,
    np.dtype(np.int16): array_format.SIGNED_INT16,
    np.dtype(np.int32): array_format.SIGNED_INT32,
    np.dtype(np.float32): array_format.FLOAT,
}


# Elements that textures do not have are read as integers: the format and the channels.
_AS_INTEGERS = {
    np.dtype(np.complex64): (array_format.SIGNED_INT32, 2),
    np.dtype(np.float64): (array_format.SIGNED_INT32, 2),
    np.dtype(np.complex128): (array_format.SIGNED_INT32, 4),
}


def dtype_to_array_format(dtype: Any) -> array_format:
    """Returns the format of an array for textures whose channels have a dtype.

    Parameters
    ----------
    dtype : dtype
        An integer of 8, 16 or 32 bits, or float32.

    Returns
    -------
    array_format
        The format.

    Raises
    ------
    TypeError
        Textures have no such channels.

    Examples
    --------
    >>> print(dtype_to_array_format(np.float32))
    FLOAT
    """
    try:
        return _FORMATS[np.dtype(dtype)]
    except KeyError:
        raise TypeError(
            f"cannot convert dtype '{np.dtype(dtype)}' to array format; allowed are "
            f"{', '.join(map(str, _FORMATS))}"
        ) from None


def _order(order: str) -> str:
    if not isinstance(order, str) or order.upper() not in ("C", "F"):
        raise LogicError(f"order must be either F or C, not {order!r}")
    return order.upper()


def _format(dtype: np.dtype, as_integers: bool) -> tuple[array_format, int]:
    if as_integers and dtype in _AS_INTEGERS:
        return _AS_INTEGERS[dtype]
    return dtype_to_array_format(dtype), 1


def matrix_to_array(matrix: Any, order: str, allow_double_hack: bool = False) -> Array:
    """Copies a matrix to a new array for textures. Raises ``Unsupported``.

    Parameters
    ----------
    matrix : numpy.ndarray
        The matrix, with two axes.
    order : {"C", "F"}
        The order of the matrix in memory; with "F" the array has its axes the other way round.
    allow_double_hack : bool
        Whether float64 is stored as two channels of 32 bits.

    Returns
    -------
    Array
        The array.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        ``order`` is neither.
    Unsupported
        Otherwise: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """
    height, width = np.shape(matrix)
    descr = ArrayDescriptor()
    descr.height, descr.width = (height, width) if _order(order) == "C" else (width, height)
    descr.format, descr.num_channels = _format(
        matrix.dtype, allow_double_hack and matrix.dtype == np.float64
    )
    return Array(descr)


def _array_like(ary: Any, order: str, allow_surface_bind: bool) -> Array:
    _order(order)
    if ary.ndim not in (2, 3):
        raise LogicError(f"the array has {ary.ndim} axes; 2 or 3 are allowed")
    descr = ArrayDescriptor3D()
    descr.depth, descr.height, descr.width = (1, *ary.shape)[-3:]
    descr.format, descr.num_channels = _format(ary.dtype, True)
    if allow_surface_bind:
        layered = array3d_flags.ARRAY3D_LAYERED if ary.ndim == 2 else 0
        descr.flags = layered | array3d_flags.SURFACE_LDST
    return Array(descr)


def np_to_array(nparray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    """Copies a numpy array to a new array for textures. Raises ``Unsupported``.

    Parameters
    ----------
    nparray : numpy.ndarray
        The array, with 2 or 3 axes.
    order : {"C", "F"}
        Its order in memory.
    allowSurfaceBind : bool
        Whether surfaces can write it.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        The array has other axes, or ``order`` is neither.
    Unsupported
        Otherwise: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.np_to_array(np.zeros((2, 3), np.float32), "C")
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """
    return _array_like(nparray, order, allowSurfaceBind)


def gpuarray_to_array(gpuarray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    """Copies a ``GPUArray`` to a new array for textures. Raises ``Unsupported``.

    Parameters
    ----------
    gpuarray : GPUArray
        The array, with 2 or 3 axes.
    order : {"C", "F"}
        Its order in memory.
    allowSurfaceBind : bool
        Whether surfaces can write it.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        The array has other axes, or ``order`` is neither.
    Unsupported
        Otherwise: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver, gpuarray
    >>> driver.gpuarray_to_array(gpuarray.zeros((2, 3), np.float32), "C")
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """
    return _array_like(gpuarray, order, allowSurfaceBind)


def make_multichannel_2d_array(ndarray: Any, order: str) -> Array:
    """Copies an array with channels to a new 2-D array for textures. Raises ``Unsupported``.

    Parameters
    ----------
    ndarray : numpy.ndarray
        The array, with three axes: in order "C" height, width and channels, in "F" channels, width
        and height.
    order : {"C", "F"}
        Its order in memory.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        ``order`` is neither.
    Unsupported
        Otherwise: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.make_multichannel_2d_array(np.zeros((2, 3, 4), np.float32), "C")
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """
    descr = ArrayDescriptor()
    if _order(order) == "C":
        descr.height, descr.width, descr.num_channels = ndarray.shape
    else:
        descr.num_channels, descr.width, descr.height = ndarray.shape
    descr.format = dtype_to_array_format(ndarray.dtype)
    return Array(descr)


def bind_array_to_texref(ary: Array, texref: TextureReference) -> None:
    """Has kernels read an array by a texture reference. Neither of the two can be made, so no call
    gets that far.

    Parameters
    ----------
    ary : Array
        The array.
    texref : TextureReference
        The reference.

    Raises
    ------
    Unsupported
        Always, for arguments of these types.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.bind_array_to_texref(driver.Array(driver.ArrayDescriptor()), None)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """
    texref.set_array(ary)


def matrix_to_texref(matrix: Any, texref: TextureReference, order: str) -> None:
    """Copies a matrix to a new array that kernels read by a texture reference. Raises
    ``Unsupported``.

    Parameters
    ----------
    matrix : numpy.ndarray
        The matrix, with two axes.
    texref : TextureReference
        The reference.
    order : {"C", "F"}
        The order of the matrix in memory.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        ``order`` is neither.
    Unsupported
        Otherwise: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.matrix_to_texref(np.zeros((2, 3), np.float32), None, "C")
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """
    bind_array_to_texref(matrix_to_array(matrix, order), texref)


def memcpy_dtoa(ary: Array, index: int, src: Any, len: int) -> None:
    """Copies device memory to an array for textures (``cuMemcpyDtoA``). Raises ``Unsupported``.

    Parameters
    ----------
    ary : Array
        The array.
    index : int
        Where in the array, in bytes.
    src : DeviceAllocation, GPUArray or int
        The device memory.
    len : int
        The number of bytes.

    Raises
    ------
    Unsupported
        Always: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.memcpy_dtoa(None, 0, driver.mem_alloc(4), 4)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: memcpy_dtoa: there are no arrays for textures and surfaces, ...
    """
    _refuse("memcpy_dtoa")


def memcpy_atod(dest: Any, ary: Array, index: int, len: int) -> None:
    """Copies an array for textures to device memory (``cuMemcpyAtoD``). Raises ``Unsupported``.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    ary : Array
        The array.
    index : int
        Where in the array, in bytes.
    len : int
        The number of bytes.

    Raises
    ------
    Unsupported
        Always: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.memcpy_atod(driver.mem_alloc(4), None, 0, 4)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: memcpy_atod: there are no arrays for textures and surfaces, ...
    """
    _refuse("memcpy_atod")


def memcpy_htoa(ary: Array, index: int, src: Any) -> None:
    """Copies host memory to an array for textures (``cuMemcpyHtoA``). Raises ``Unsupported``.

    Parameters
    ----------
    ary : Array
        The array.
    index : int
        Where in the array, in bytes.
    src : numpy.ndarray or buffer
        The host memory.

    Raises
    ------
    Unsupported
        Always: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.memcpy_htoa(None, 0, np.zeros(4, np.uint8))
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: memcpy_htoa: there are no arrays for textures and surfaces, ...
    """
    _refuse("memcpy_htoa")


def memcpy_atoh(dest: Any, ary: Array, index: int) -> None:
    """Copies an array for textures to host memory (``cuMemcpyAtoH``). Raises ``Unsupported``.

    Parameters
    ----------
    dest : numpy.ndarray or buffer
        The host memory.
    ary : Array
        The array.
    index : int
        Where in the array, in bytes.

    Raises
    ------
    Unsupported
        Always: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.memcpy_atoh(np.zeros(4, np.uint8), None, 0)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: memcpy_atoh: there are no arrays for textures and surfaces, ...
    """
    _refuse("memcpy_atoh")


def memcpy_atoa(dest: Array, dest_index: int, src: Array, src_index: int, len: int) -> None:
    """Copies one array for textures to another (``cuMemcpyAtoA``). Raises ``Unsupported``.

    Parameters
    ----------
    dest, src : Array
        The arrays.
    dest_index, src_index : int
        Where in them, in bytes.
    len : int
        The number of bytes.

    Raises
    ------
    Unsupported
        Always: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.memcpy_atoa(None, 0, None, 0, 4)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: memcpy_atoa: there are no arrays for textures and surfaces, ...
    """
    _refuse("memcpy_atoa")


py_memcpy_htoa = memcpy_htoa
py_memcpy_atoh = memcpy_atoh
