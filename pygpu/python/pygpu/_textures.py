"""Arrays that textures and surfaces read: descriptions of them, and the refusal to make one.

Drivers since CUDA 12 have no texture and surface references, and this library does not make the
arrays that they read. Programs that import the names run; one that makes an array or a reference
gets :class:`pygpu.driver.Unsupported`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import _arguments
from ._enumerations import array_format
from ._errors import Unsupported

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


# The names under which PyCUDA's extension has them; its documentation has the others.
