"""Arrays of texels for textures and surfaces, and descriptions of such arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments, _core
from .._errors import LogicError, Unsupported
from .enumerations import array_format


class ArrayDescriptor:
    """The description of a 2-D texture array, in elements, channels and their ``array_format``.

    >>> descriptor = driver.ArrayDescriptor()
    >>> descriptor.width, descriptor.height, descriptor.num_channels = 64, 32, 4
    >>> descriptor.format = driver.array_format.FLOAT
    """

    width: int = 0
    height: int = 0
    format: int = array_format.UNSIGNED_INT8
    num_channels: int = 0


class ArrayDescriptor3D(ArrayDescriptor):
    """The description of a 3-D array: an :class:`ArrayDescriptor` with ``depth`` and ``flags``.

    >>> descriptor = driver.ArrayDescriptor3D()
    >>> descriptor.width, descriptor.height, descriptor.depth = 64, 32, 16
    >>> descriptor.flags = driver.array3d_flags.SURFACE_LDST
    """

    depth: int = 0
    flags: int = 0


def check_textures(name: str) -> None:
    """Raises ``Unsupported`` if the device does not support textures."""
    if _core.has_textures():
        return
    try:
        _core.TextureArray(1, 0, 0, array_format.UNSIGNED_INT8, 1, 0)
    except Unsupported as refusal:
        text = f"{name}: {refusal.detail}; pass a GPUArray to the kernel instead"
        raise Unsupported(text) from None


class Array:
    """An array that textures and surfaces read (``CUarray``).

    The order of its elements is the device's own; only kernels and copies (``memcpy_htoa``,
    ``Memcpy2D``, ``Memcpy3D``) access them. Raises ``Unsupported`` if the device does not support
    textures, or cubemaps.

    ``descriptor`` has the shape and the type of elements. With ``height`` 0 the array has one axis,
    with a ``depth`` three axes. A cubemap has ``depth`` 6, for its faces +x, -x, +y, -y, +z, -z.

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
        """Frees the memory once no queued work and no texture reference uses it."""
        self._open("free")
        self._core = None

    def _describe(self, descriptor: Any) -> Any:
        for part, value in self._shape.items():
            if hasattr(descriptor, part):
                setattr(descriptor, part, value)
        descriptor.format = array_format(self._shape["format"])
        return descriptor

    def get_descriptor(self) -> ArrayDescriptor:
        """Returns the description of a 2-D array."""
        self._open("get_descriptor")
        return self._describe(ArrayDescriptor())

    def get_descriptor_3d(self) -> ArrayDescriptor3D:
        """Returns the description of a 3-D array."""
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
    """Returns the type and number of channels, checked."""
    format, channels = whole("format", format), whole("num_channels", channels)
    if format not in list(array_format):
        raise LogicError(f"format is {format}; allowed are the values of array_format")
    if channels not in (1, 2, 4):
        raise LogicError(f"num_channels is {channels}; allowed are 1, 2 and 4")
    return format, channels


def opened(name: str, array: Any) -> _core.TextureArray:
    """Returns the core's object of an array that was not freed."""
    return _arguments.instance(name, array, Array)._open(name)


_FORMATS = {
    np.dtype(np.uint8): array_format.UNSIGNED_INT8,
    np.dtype(np.uint16): array_format.UNSIGNED_INT16,
    np.dtype(np.uint32): array_format.UNSIGNED_INT32,
    np.dtype(np.int8): array_format.SIGNED_INT8,
    np.dtype(np.int16): array_format.SIGNED_INT16,
    np.dtype(np.int32): array_format.SIGNED_INT32,
    np.dtype(np.float32): array_format.FLOAT,
}


def dtype_to_array_format(dtype: Any) -> array_format:
    """Returns the ``array_format`` of ``dtype``, float32 or an 8-, 16- or 32-bit integer.

    >>> print(dtype_to_array_format(np.float32))
    FLOAT
    """
    try:
        return _FORMATS[np.dtype(dtype)]
    except KeyError:
        allowed = f"allowed are {', '.join(map(str, _FORMATS))}"
        text = f"cannot convert dtype '{np.dtype(dtype)}' to array format; {allowed}"
        raise TypeError(text) from None
