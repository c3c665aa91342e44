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
    """Describes a 2-D array for textures.

    Attributes
    ----------
    width, height : int
        Lengths of the axes, in elements.
    format : array_format
        The type of each channel.
    num_channels : int
        Numbers in one element: 1, 2 or 4.

    Examples
    --------
    >>> from pygpu import driver
    >>> descriptor = driver.ArrayDescriptor()
    >>> descriptor.width, descriptor.height, descriptor.num_channels = 64, 32, 4
    >>> descriptor.format = driver.array_format.FLOAT
    """

    width: int = 0
    height: int = 0
    format: int = array_format.UNSIGNED_INT8
    num_channels: int = 0


class ArrayDescriptor3D(ArrayDescriptor):
    """Describes a 3-D array for textures or surfaces.

    Attributes
    ----------
    depth : int
        Length of the third axis, in elements.
    flags : array3d_flags
        How it is made.

    Examples
    --------
    >>> from pygpu import driver
    >>> descriptor = driver.ArrayDescriptor3D()
    >>> descriptor.width, descriptor.height, descriptor.depth = 64, 32, 16
    >>> descriptor.flags = driver.array3d_flags.SURFACE_LDST
    """

    depth: int = 0
    flags: int = 0


class Array:
    """An array that textures and surfaces read (``CUarray``). Making one raises ``Unsupported``.

    Parameters
    ----------
    descriptor : ArrayDescriptor
        Its shape and the type of its elements.

    Raises
    ------
    TypeError
        ``descriptor`` is none.
    Unsupported
        Otherwise: this library makes no such arrays.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.Array(driver.ArrayDescriptor())
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: Array: there are no arrays for textures and surfaces, ...
    """

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
    """A variable of a module that kernels read and write an array by. Making one raises
    ``Unsupported``: drivers since CUDA 12 have no surface references.

    Raises
    ------
    Unsupported
        Always.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.SurfaceReference()
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: SurfaceReference: there are no arrays for textures and surfaces, ...
    """

    def __init__(self) -> None:
        _refuse("SurfaceReference")

    def set_array(self, array: Array, flags: int = 0) -> None:
        """Sets the array."""
        _refuse("SurfaceReference.set_array")

    def get_array(self) -> Array:
        """Returns the array."""
        _refuse("SurfaceReference.get_array")


class TextureReference:
    """A variable of a module that kernels read an array by. Making one raises ``Unsupported``:
    drivers since CUDA 12 have no texture references.

    Raises
    ------
    Unsupported
        Always.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.TextureReference()
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: TextureReference: there are no arrays for textures and surfaces, ...
    """

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


# The names under which PyCUDA's extension has them; its documentation has the others.
py_memcpy_htoa = memcpy_htoa
py_memcpy_atoh = memcpy_atoh
