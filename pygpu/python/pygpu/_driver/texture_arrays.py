"""Arrays of texels, which textures and surfaces read, and their descriptions."""

from __future__ import annotations

from typing import Any

from .. import _arguments, _core
from .._errors import LogicError, Unsupported
from .texture_enumerations import array_format


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


def check_textures(name: str) -> None:
    """Raises ``Unsupported`` where the device has no textures, with what it says of an array."""
    if _core.has_textures():
        return
    try:
        _core.TextureArray(1, 0, 0, array_format.UNSIGNED_INT8, 1, 0)
    except Unsupported as refusal:
        raise Unsupported(
            f"{name}: {refusal.detail}; pass a GPUArray to the kernel instead"
        ) from None


class Array:
    """An array that textures and surfaces read (``CUarray``). Its elements lie in an order of the
    device's own: copies (``memcpy_htoa``, ``Memcpy2D``, ``Memcpy3D``) reach them, and kernels.

    Parameters
    ----------
    descriptor : ArrayDescriptor
        Its shape and the type of its elements. The array has one axis with ``height`` 0, three with
        a ``depth``. A cubemap has square faces and a ``depth`` of 6: +x, -x, +y, -y, +z, -z.

    Raises
    ------
    TypeError
        ``descriptor`` is none.
    LogicError
        There is no such array.
    Unsupported
        The device has no textures, or no cubemaps.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> array = driver.matrix_to_array(np.eye(3, dtype=np.float32), "C")
    >>> row = np.empty(3, np.float32)
    >>> driver.memcpy_atoh(row, array, 0)
    >>> row
    array([1., 0., 0.], dtype=float32)
    >>> array.get_descriptor().width, array.get_descriptor_3d().depth
    (3, 0)
    >>> array.free()
    """

    def __init__(self, descriptor: ArrayDescriptor) -> None:
        _arguments.instance("descriptor", descriptor, ArrayDescriptor)
        check_textures("Array")
        parts = ("width", "height", "depth", "format", "num_channels", "flags")
        values = [whole(part, getattr(descriptor, part, 0)) for part in parts]
        self._core: _core.TextureArray | None = _core.TextureArray(*values)
        self._shape = dict(zip(parts, values, strict=True))

    def _open(self, name: str) -> _core.TextureArray:
        if self._core is None:
            raise LogicError(f"{name}: the array was freed already")
        return self._core

    def free(self) -> None:
        """Frees the memory, behind the work that uses it, once no reference has the array.

        Raises
        ------
        LogicError
            It was freed already.
        """
        self._open("free")
        self._core = None

    def _describe(self, descriptor: Any) -> Any:
        for part, value in self._shape.items():
            if hasattr(descriptor, part):
                setattr(descriptor, part, value)
        descriptor.format = array_format(self._shape["format"])
        return descriptor

    def get_descriptor(self) -> ArrayDescriptor:
        """Returns the description of a 2-D array.

        Returns
        -------
        ArrayDescriptor
            A new object; what is changed in it has no effect.

        Raises
        ------
        LogicError
            The array was freed.
        """
        self._open("get_descriptor")
        return self._describe(ArrayDescriptor())

    def get_descriptor_3d(self) -> ArrayDescriptor3D:
        """Returns the description of a 3-D array.

        Returns
        -------
        ArrayDescriptor3D
            A new object; what is changed in it has no effect.

        Raises
        ------
        LogicError
            The array was freed.
        """
        self._open("get_descriptor_3d")
        return self._describe(ArrayDescriptor3D())

    @property
    def handle(self) -> int:
        """The driver's handle."""
        return self._open("handle").handle


def whole(name: str, value: Any) -> int:
    number = _arguments.whole(name, value)
    if number < 0:
        raise LogicError(f"{name} is {number}; it must not be negative")
    return number


def texel_format(format: int, channels: int) -> tuple[int, int]:
    """A type of channels and their number, which were checked."""
    format, channels = whole("format", format), whole("num_channels", channels)
    if format not in list(array_format):
        raise LogicError(f"format is {format}; array_format has the allowed ones")
    if channels not in (1, 2, 4):
        raise LogicError(f"num_channels is {channels}; allowed are 1, 2 and 4")
    return format, channels


def opened(name: str, array: Any) -> _core.TextureArray:
    """The core's object of an :class:`Array` that was not freed."""
    return _arguments.instance(name, array, Array)._open(name)
