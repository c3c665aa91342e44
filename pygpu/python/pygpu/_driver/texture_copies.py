"""Copies to and from texture arrays: whole matrices, and rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments, _core
from .._documentation import documented
from .._errors import LogicError
from .enumerations import address_mode, array3d_flags, array_format, filter_mode
from .memcpy import Memcpy2D, Memcpy3D
from .texture_arrays import (
    Array,
    ArrayDescriptor,
    ArrayDescriptor3D,
    check_textures,
    dtype_to_array_format,
)
from .textures import TextureReference

# Elements that textures do not have are read as integers: the format and the channels.
_AS_INTEGERS = {
    np.dtype(np.complex64): (array_format.SIGNED_INT32, 2),
    np.dtype(np.float64): (array_format.SIGNED_INT32, 2),
    np.dtype(np.complex128): (array_format.SIGNED_INT32, 4),
}


def _order(order: str) -> str:
    if not isinstance(order, str) or order.upper() not in ("C", "F"):
        raise LogicError(f"order must be either F or C, not {order!r}")
    return order.upper()


def _format(dtype: np.dtype, as_integers: bool) -> tuple[array_format, int]:
    if as_integers and dtype in _AS_INTEGERS:
        return _AS_INTEGERS[dtype]
    return dtype_to_array_format(dtype), 1


def _filled(descriptor: Any, source: Any, order: Any) -> Array:
    """A new array with the elements of another, whose axes in memory the descriptor has."""
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

    Raises ``Unsupported`` if the device has no textures.

    Parameters
    ----------
    matrix : numpy.ndarray. The matrix, with two axes.
    order : {"C", "F"}. Its memory order; with "F" the array is transposed.
    allow_double_hack : bool. Whether float64 is stored as two channels of 32 bits.

    Examples
    --------
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


_LIKE = """Copies a {kind} with 2 or 3 axes to a new array for textures. Elements of the types
    float64, complex64 and complex128 are stored as channels of 32 bits.

    Parameters
    ----------
    {argument} : {kind}
        The array.
    order : {{"C", "F"}}
        Its memory order; with "F" the new array is transposed.
    allowSurfaceBind : bool
        Whether surfaces can write it; then an array with 2 axes becomes one layer.

    Examples
    --------
    >>> array = driver.{name}({module}.zeros((2, 3, 4), np.float32), "C")
    >>> array.get_descriptor_3d().depth
    2
    """


@documented(_LIKE, kind="numpy.ndarray", argument="nparray", module="np")
def np_to_array(nparray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    return _array_like(nparray, order, allowSurfaceBind)


@documented(_LIKE, kind="GPUArray", argument="gpuarray", module="gpuarray")
def gpuarray_to_array(gpuarray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    return _array_like(gpuarray, order, allowSurfaceBind)


def make_multichannel_2d_array(ndarray: Any, order: str) -> Array:
    """Copies an array with channels to a new 2-D array for textures.

    Raises ``Unsupported`` if the device has no textures.

    Parameters
    ----------
    ndarray : numpy.ndarray. The array: height, width and channels with "C", channels, width and
        height with "F".
    order : {"C", "F"}. Its memory order.

    Examples
    --------
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
    """Sets the array of a texture reference, which then clamps coordinates and reads the nearest
    texel.

    Parameters
    ----------
    ary : Array. The array.
    texref : TextureReference. The reference.

    Examples
    --------
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
    """Copies a matrix to a new array, and sets it as the array of a texture reference.

    Parameters
    ----------
    matrix : numpy.ndarray. The matrix, with two axes.
    texref : TextureReference. The reference.
    order : {"C", "F"}. Its memory order; with "F" the array is transposed.

    Examples
    --------
    >>> reference = driver.TextureReference()
    >>> driver.matrix_to_texref(np.zeros((2, 3), np.float32), reference, "C")
    >>> reference.get_array().get_descriptor().height
    2
    """
    bind_array_to_texref(matrix_to_array(matrix, order), texref)


# -- rows ----------------------------------------------------------------------------------


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
    ary : Array. The array.
    index, len : int. The first byte in the row, and the number of bytes.
    src : DeviceAllocation, GPUArray or int. The device memory.

    Examples
    --------
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
    >>> driver.memcpy_dtoa(array, 1, gpuarray.zeros(2, np.uint8), 2)
    """
    copy = _row_copy(len)
    copy.set_src_device(src)
    copy.set_dst_array(ary)
    copy.dst_x_in_bytes = index
    copy(aligned=True)


def memcpy_atod(dest: Any, ary: Array, index: int, len: int) -> None:
    """Copies the first row of an array for textures to device memory (``cuMemcpyAtoD``). See
    :func:`memcpy_dtoa`.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int. The device memory.
    ary : Array. The array.
    index, len : int. The first byte in the row, and the number of bytes.

    Examples
    --------
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
    >>> part = gpuarray.zeros(2, np.uint8)
    >>> driver.memcpy_atod(part, array, 1, 2)
    >>> part
    array([2, 3], dtype=uint8)
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
    ary : Array. The array.
    index : int. The first byte in the row.
    src : numpy.ndarray or buffer. The host memory.

    Examples
    --------
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
    >>> driver.memcpy_htoa(array, 1, np.array([5, 6], np.uint8))
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
    dest : numpy.ndarray or buffer. The host memory.
    ary : Array. The array.
    index : int. The first byte in the row.

    Examples
    --------
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
    dest, src : Array. The arrays.
    dest_index, src_index, len : int. The first bytes in the rows, and the number of bytes.

    Examples
    --------
    >>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
    >>> driver.memcpy_atoa(array, 0, driver.matrix_to_array(np.ones((1, 2), np.uint8), "C"), 0, 2)
    >>> row = np.empty(3, np.uint8)
    >>> driver.memcpy_atoh(row, array, 0)
    >>> row
    array([1, 1, 3], dtype=uint8)
    """
    copy = _row_copy(len)
    copy.set_src_array(src)
    copy.set_dst_array(dest)
    copy.src_x_in_bytes, copy.dst_x_in_bytes = src_index, dest_index
    copy(aligned=True)


py_memcpy_htoa = memcpy_htoa
py_memcpy_atoh = memcpy_atoh
