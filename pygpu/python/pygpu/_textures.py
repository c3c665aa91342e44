"""Arrays that textures and surfaces read: descriptions of them, and the refusal to make one.

Drivers since CUDA 12 have no texture and surface references, and this library does not make the
arrays that they read. Programs that import the names run; one that makes an array or a reference
gets :class:`pygpu.driver.Unsupported`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from . import _arguments
from ._enumerations import array3d_flags, array_format
from ._errors import LogicError, Unsupported

TRSA_OVERRIDE_FORMAT = 1
TRSF_READ_AS_INTEGER = 1
TRSF_NORMALIZED_COORDINATES = 2
TR_DEFAULT = -1


def _refuse(name: str) -> NoReturn:
    raise Unsupported(
        f"{name}: there are no arrays for textures and surfaces, and drivers since CUDA 12 have "
        "no texture and surface references; pass a GPUArray to the kernel instead"
    )


class ArrayDescriptor:
    """What a 2-D array for textures is like.

    Attributes
    ----------
    width, height : int
        Lengths of the axes, in elements.
    format : array_format
        The type of each channel.
    num_channels : int
        Numbers in one element: 1, 2 or 4.
    """

    width: int = 0
    height: int = 0
    format: int = array_format.UNSIGNED_INT8
    num_channels: int = 0


class ArrayDescriptor3D(ArrayDescriptor):
    """What a 3-D array for textures or surfaces is like.

    Attributes
    ----------
    depth : int
        Length of the third axis, in elements.
    flags : array3d_flags
        How it is made.
    """

    depth: int = 0
    flags: int = 0


class Array:
    """An array that textures and surfaces read. Making one raises ``Unsupported``."""

    def __init__(self, descriptor: ArrayDescriptor) -> None:
        _arguments.instance("descriptor", descriptor, ArrayDescriptor)
        _refuse("Array")

    def free(self) -> None:
        """Frees the memory."""
        _refuse("Array.free")

    def get_descriptor(self) -> ArrayDescriptor:
        """Returns the description of a 2-D array."""
        _refuse("Array.get_descriptor")

    def get_descriptor_3d(self) -> ArrayDescriptor3D:
        """Returns the description of a 3-D array."""
        _refuse("Array.get_descriptor_3d")

    @property
    def handle(self) -> int:
        """The driver's handle."""
        _refuse("Array.handle")


class SurfaceReference:
    """A variable of a module that kernels read and write an array by."""

    def __init__(self) -> None:
        _refuse("SurfaceReference")

    def set_array(self, array: Array, flags: int = 0) -> None:
        """Sets the array."""
        _refuse("SurfaceReference.set_array")

    def get_array(self) -> Array:
        """Returns the array."""
        _refuse("SurfaceReference.get_array")


class TextureReference:
    """A variable of a module that kernels read an array by. Making one raises ``Unsupported``."""

    def __init__(self) -> None:
        _refuse("TextureReference")

    def set_array(self, array: Array) -> None:
        """Sets the array."""
        _refuse("TextureReference.set_array")

    def set_address(self, devptr: Any, bytes: int, allow_offset: bool = False) -> int:
        """Sets linear memory; returns the offset in bytes."""
        _refuse("TextureReference.set_address")

    def set_address_2d(self, devptr: Any, descr: ArrayDescriptor, pitch: int) -> None:
        """Sets linear memory with a row pitch in bytes."""
        _refuse("TextureReference.set_address_2d")

    def set_format(self, format: int, num_components: int) -> None:
        """Sets the type and the number of channels."""
        _refuse("TextureReference.set_format")

    def set_address_mode(self, dim: int, am: int) -> None:
        """Sets what is read outside the bounds of an axis."""
        _refuse("TextureReference.set_address_mode")

    def set_filter_mode(self, mode: int) -> None:
        """Sets what is read between elements."""
        _refuse("TextureReference.set_filter_mode")

    def set_flags(self, flags: int) -> None:
        """Sets whether coordinates are normalized and integers are read as such."""
        _refuse("TextureReference.set_flags")

    def get_address(self) -> int:
        """Returns the address of linear memory."""
        _refuse("TextureReference.get_address")

    def get_array(self) -> Array:
        """Returns the array."""
        _refuse("TextureReference.get_array")

    def get_address_mode(self, dim: int) -> int:
        """Returns what is read outside the bounds of an axis."""
        _refuse("TextureReference.get_address_mode")

    def get_filter_mode(self) -> int:
        """Returns what is read between elements."""
        _refuse("TextureReference.get_filter_mode")

    def get_format(self) -> tuple[int, int]:
        """Returns the type and the number of channels."""
        _refuse("TextureReference.get_format")

    def get_flags(self) -> int:
        """Returns the flags."""
        _refuse("TextureReference.get_flags")


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
    """Copies a matrix to a new array for textures. Raises ``Unsupported``."""
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
    """Copies a numpy array of 2 or 3 axes to a new array for textures. Raises ``Unsupported``."""
    return _array_like(nparray, order, allowSurfaceBind)


def gpuarray_to_array(gpuarray: Any, order: str, allowSurfaceBind: bool = False) -> Array:
    """Copies a ``GPUArray`` of 2 or 3 axes to a new array for textures. Raises ``Unsupported``."""
    return _array_like(gpuarray, order, allowSurfaceBind)


def make_multichannel_2d_array(ndarray: Any, order: str) -> Array:
    """Copies an array whose last axis is the channels ("F": its first) to a new array for
    textures. Raises ``Unsupported``."""
    descr = ArrayDescriptor()
    if _order(order) == "C":
        descr.height, descr.width, descr.num_channels = ndarray.shape
    else:
        descr.num_channels, descr.width, descr.height = ndarray.shape
    descr.format = dtype_to_array_format(ndarray.dtype)
    return Array(descr)


def bind_array_to_texref(ary: Array, texref: TextureReference) -> None:
    """Lets kernels read an array by a texture reference. Raises ``Unsupported``."""
    texref.set_array(ary)


def matrix_to_texref(matrix: Any, texref: TextureReference, order: str) -> None:
    """Copies a matrix to a new array that kernels read by a texture reference. Raises
    ``Unsupported``."""
    bind_array_to_texref(matrix_to_array(matrix, order), texref)


def memcpy_dtoa(ary: Array, index: int, src: Any, len: int) -> None:
    """Copies device memory to an array for textures. Raises ``Unsupported``."""
    _refuse("memcpy_dtoa")


def memcpy_atod(dest: Any, ary: Array, index: int, len: int) -> None:
    """Copies an array for textures to device memory. Raises ``Unsupported``."""
    _refuse("memcpy_atod")


def memcpy_htoa(ary: Array, index: int, src: Any) -> None:
    """Copies host memory to an array for textures. Raises ``Unsupported``."""
    _refuse("memcpy_htoa")


def memcpy_atoh(dest: Any, ary: Array, index: int) -> None:
    """Copies an array for textures to host memory. Raises ``Unsupported``."""
    _refuse("memcpy_atoh")


def memcpy_atoa(dest: Array, dest_index: int, src: Array, src_index: int, len: int) -> None:
    """Copies one array for textures to another. Raises ``Unsupported``."""
    _refuse("memcpy_atoa")


# The names under which PyCUDA's extension has them; its documentation has the others.
py_memcpy_htoa = memcpy_htoa
py_memcpy_atoh = memcpy_atoh
