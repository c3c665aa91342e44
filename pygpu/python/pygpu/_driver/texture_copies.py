"""Texture arrays made from matrices, under PyCUDA's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments
from .._errors import LogicError
from .memcpy import Memcpy2D, Memcpy3D
from .texture_arrays import Array, ArrayDescriptor, ArrayDescriptor3D, check_textures
from .texture_enumerations import address_mode, array3d_flags, array_format, filter_mode
from .textures import TextureReference

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


def _filled(descriptor: Any, source: Any, order: Any) -> Array:
    """A new array with the elements of another, whose axes in memory, slowest first, are those of
    the descriptor: in order "F" the other way round."""
    if source.size == 0:
        raise LogicError(f"the array has shape {tuple(source.shape)}; textures have no empty axes")
    array = Array(descriptor)
    if isinstance(source, np.ndarray):
        source = np.asarray(source, order=order)
    elif not (source.flags.c_contiguous if order == "C" else source.flags.f_contiguous):
        raise LogicError(f"the array is not contiguous in the order {order}, as is said of it")
    rows = descriptor.height * getattr(descriptor, "depth", 1)
    copy: Any = Memcpy3D() if isinstance(descriptor, ArrayDescriptor3D) else Memcpy2D()
    if isinstance(source, np.ndarray):
        copy.set_src_host(source)
    else:
        copy.set_src_device(source)
    copy.set_dst_array(array)
    copy.width_in_bytes = copy.src_pitch = source.size * source.itemsize // rows
    copy.height = copy.src_height = descriptor.height
    if isinstance(copy, Memcpy3D):
        copy.depth = descriptor.depth
        copy()
    else:
        copy(aligned=True)
    return array


def matrix_to_array(matrix: Any, order: str, allow_double_hack: bool = False) -> Array:
    """Copies a matrix to a new array for textures.

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
        The device has no textures.

    Examples
    --------
    >>> from pygpu import driver
    >>> array = driver.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    >>> array.get_descriptor().width, array.get_descriptor().height
    (3, 2)
    """
    order = _order(order)
    check_textures("matrix_to_array")
    height, width = np.shape(matrix)
    descr = ArrayDescriptor()
    descr.height, descr.width = (height, width) if order == "C" else (width, height)
    descr.format, descr.num_channels = _format(
        matrix.dtype, allow_double_hack and matrix.dtype == np.float64
    )
    return _filled(descr, matrix, order)


def _array_like(ary: Any, order: str, allow_surface_bind: bool) -> Array:
    order = _order(order)
    if ary.ndim not in (2, 3):
        raise LogicError(f"the array has {ary.ndim} axes; 2 or 3 are allowed")
    check_textures("Array")
    extents = ary.shape if order == "C" else ary.shape[::-1]
    is_plain = ary.ndim == 2 and not allow_surface_bind
    descr: Any = ArrayDescriptor() if is_plain else ArrayDescriptor3D()
    if not is_plain:
        descr.depth = (1, *extents)[-3]
    descr.height, descr.width = extents[-2:]
    descr.format, descr.num_channels = _format(ary.dtype, True)
    if allow_surface_bind:
        layered = array3d_flags.ARRAY3D_LAYERED if ary.ndim == 2 else 0
        descr.flags = layered | array3d_flags.SURFACE_LDST
    return _filled(descr, ary, order)


def np_to_array(nparray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    """Copies a numpy array to a new array for textures. Elements that textures do not have are
    stored as channels of 32 bits: float64, complex64 and complex128.

    Parameters
    ----------
    nparray : numpy.ndarray
        The array, with 2 or 3 axes.
    order : {"C", "F"}
        Its order in memory; with "F" the new array has its axes the other way round.
    allowSurfaceBind : bool
        Whether surfaces can write it; then one with 2 axes becomes one layer.

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
        The device has no textures.

    Examples
    --------
    >>> from pygpu import driver
    >>> array = driver.np_to_array(np.zeros((2, 3, 4), np.float32), "C")
    >>> array.get_descriptor_3d().depth
    2
    """
    return _array_like(nparray, order, allowSurfaceBind)


def gpuarray_to_array(gpuarray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    """Copies a ``GPUArray`` to a new array for textures, as :func:`np_to_array` a numpy array.

    Parameters
    ----------
    gpuarray : GPUArray
        The array, with 2 or 3 axes.
    order : {"C", "F"}
        Its order in memory; with "F" the new array has its axes the other way round.
    allowSurfaceBind : bool
        Whether surfaces can write it; then one with 2 axes becomes one layer.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        The array has other axes, is in another order, or ``order`` is neither.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> from pygpu import driver, gpuarray
    >>> array = driver.gpuarray_to_array(gpuarray.zeros((2, 3), np.float32), "C")
    >>> array.get_descriptor().width
    3
    """
    return _array_like(gpuarray, order, allowSurfaceBind)


def make_multichannel_2d_array(ndarray: Any, order: str) -> Array:
    """Copies an array with channels to a new 2-D array for textures.

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
        The device has no textures.

    Examples
    --------
    >>> from pygpu import driver
    >>> array = driver.make_multichannel_2d_array(np.zeros((2, 3, 4), np.float32), "C")
    >>> array.get_descriptor().num_channels
    4
    """
    order = _order(order)
    check_textures("make_multichannel_2d_array")
    descr = ArrayDescriptor()
    if order == "C":
        descr.height, descr.width, descr.num_channels = ndarray.shape
    else:
        descr.num_channels, descr.width, descr.height = ndarray.shape
    descr.format = dtype_to_array_format(ndarray.dtype)
    return _filled(descr, ndarray, order)


def bind_array_to_texref(ary: Array, texref: TextureReference) -> None:
    """Has kernels read an array by a texture reference: with the texel at the edge for what lies
    outside, and without interpolation.

    Parameters
    ----------
    ary : Array
        The array.
    texref : TextureReference
        The reference.

    Raises
    ------
    TypeError
        ``ary`` is no ``Array``, or ``texref`` no texture reference.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> from pygpu import driver
    >>> reference = driver.TextureReference()
    >>> array = driver.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    >>> driver.bind_array_to_texref(array, reference)
    >>> reference.get_array() is array
    True
    """
    _arguments.instance("texref", texref, TextureReference)
    texref.set_filter_mode(filter_mode.POINT)
    texref.set_array(ary)
    texref.set_address_mode(0, address_mode.CLAMP)
    texref.set_address_mode(1, address_mode.CLAMP)


def matrix_to_texref(matrix: Any, texref: TextureReference, order: str) -> None:
    """Copies a matrix to a new array that kernels read by a texture reference.

    Parameters
    ----------
    matrix : numpy.ndarray
        The matrix, with two axes.
    texref : TextureReference
        The reference.
    order : {"C", "F"}
        The order of the matrix in memory; with "F" the array has its axes the other way round.

    Raises
    ------
    TypeError
        Textures have no such elements.
    LogicError
        ``order`` is neither.
    Unsupported
        The device has no textures.

    Examples
    --------
    >>> from pygpu import driver
    >>> reference = driver.TextureReference()
    >>> driver.matrix_to_texref(np.zeros((2, 3), np.float32), reference, "C")
    >>> reference.get_array().get_descriptor().height
    2
    """
    bind_array_to_texref(matrix_to_array(matrix, order), texref)
