"""Texture references, by which kernels read texture arrays and linear memory.

Drivers since CUDA 12 have texture objects in place of texture references. In pygpu, a reference is
a variable that holds a texture object: the classes here make the object and write its number to the
variable. The header ``pygpu-texture-references.hpp`` reads the variable."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .. import _arguments, _core
from .._errors import LogicError, Unsupported
from .device import Context
from .enumerations import address_mode, array_format, filter_mode
from .texture_arrays import (
    Array,
    ArrayDescriptor,
    check_textures,
    dtype_to_array_format,
    opened,
    texel_format,
    whole,
)

TRSA_OVERRIDE_FORMAT = 1
TRSF_READ_AS_INTEGER = 1
TRSF_NORMALIZED_COORDINATES = 2
TR_DEFAULT = -1

# The beginning of the structures `texture` and `surface` in the header: the object's number and a
# mark; then the declaration of the texture.
_REFERENCE = struct.Struct("=QI")
_DECLARED = struct.Struct("=QIIIIIII")
_TEXTURE_MARK, _SURFACE_MARK = 0x58455450, 0x52555350


class _Memory(NamedTuple):
    """Device memory that a texture reads, ``offset`` bytes before the bound address.

    The extent is a number of bytes, or the texels of a row, with the number of rows and the pitch.
    """

    pointer: Any
    address: int
    offset: int
    extent: tuple[int, tuple[int, int] | None]


class _State(NamedTuple):
    """The array or memory of a texture reference, and how it is read."""

    source: Array | _Memory | None = None
    format: int = array_format.FLOAT
    channels: int = 1
    modes: tuple[int, int, int] = (address_mode.CLAMP,) * 3
    filter: int = filter_mode.POINT
    flags: int = 0
    object: Any = None

    def make_object(self, as_integer: bool | None) -> Any:
        """Returns the texture object; None while nothing is bound."""
        if self.source is None:
            return None
        flags = self.flags
        if as_integer is not None:
            flags = flags & ~TRSF_READ_AS_INTEGER | (TRSF_READ_AS_INTEGER if as_integer else 0)
        modes = (self.modes, self.filter, flags)
        if isinstance(self.source, Array):
            return _core.texture_of_array(self.source._open("set_array"), modes)
        memory, kind = self.source, (self.format, self.channels)
        return _core.texture_of_memory(memory.pointer, memory.offset, memory.extent, kind, modes)


# Kept with the module, as by a driver: the Python objects of references may be gone.
_STATES: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def _made_of_module(module: Any) -> dict[str, Any]:
    """Returns the states of a module's texture references, by name."""
    return _STATES.setdefault(module, {})


def _reference_bytes(module: Any, name: str, what: str, mark: int) -> bytes:
    """Returns the bytes of a reference of a module."""
    check_textures(what)
    address, size = module.get_global(name)
    content = np.empty(size, np.uint8)
    if size >= _REFERENCE.size:
        _core.copy_to_host(content, address, None, True)
    read = content.tobytes()
    if size < _REFERENCE.size or _REFERENCE.unpack_from(read)[1] != mark:
        raise LogicError(f"{name} is not a {what} reference: declare it as {what}<...>")
    return read


class TextureReference:
    """A variable of a module, from ``Module.get_texref``, by which kernels read an array or memory.

    A reference without a module is a texture object, for kernels that take one. A change waits for
    the device's work and takes effect when the call returns. The read mode is in the variable's
    declaration; only a reference without a module takes it from the flags. Reads are not ordered
    after other streams' work on the memory. A graph keeps the bindings of its kernels' modules.
    Raises ``Unsupported`` if the device does not support textures.

    >>> module = compiler.SourceModule('''
    ... texture<float, 2> image;
    ... __global__ void centres(float *out, int width) {
    ...     out[threadIdx.x] = tex2D(image, threadIdx.x + 1.0f, 0.5f);
    ... }''')
    >>> image = module.get_texref("image")
    >>> driver.matrix_to_texref(np.array([[1, 3, 7]], np.float32), image, order="C")
    >>> image.set_filter_mode(driver.filter_mode.LINEAR)
    >>> out = gpuarray.zeros(2, np.float32)
    >>> module.get_function("centres")(out, np.int32(3), block=(2, 1, 1), texrefs=[image])
    >>> out
    array([2., 5.], dtype=float32)
    >>> image.get_array().get_descriptor().width, image.get_format()[1]
    (3, 1)
    >>> print(image.get_address_mode(0), image.get_filter_mode(), image.get_flags())
    CLAMP LINEAR 0
    >>> other = driver.TextureReference()
    >>> other.set_array(image.get_array())
    >>> other.set_address_mode(0, driver.address_mode.WRAP)
    >>> other.set_flags(driver.TRSF_NORMALIZED_COORDINATES)
    >>> print(other.get_address_mode(0), other.get_flags())
    WRAP 2
    >>> other.set_format(driver.array_format.FLOAT, 1)
    >>> row = gpuarray.arange(1024, dtype=np.float32)
    >>> other.set_address(row, row.nbytes, allow_offset=True) >= 0
    True
    >>> other.get_address() == row.ptr
    True
    >>> descr = driver.ArrayDescriptor()
    >>> descr.width, descr.height, descr.num_channels = 256, 4, 1
    >>> descr.format = driver.array_format.FLOAT
    >>> rows, pitch = driver.mem_alloc_pitch(1024, 4, 4)
    >>> other.set_address_2d(rows, descr, pitch)
    """

    def __init__(self) -> None:
        check_textures("TextureReference")
        self._module: Any = None
        self._name = ""
        self._as_integer: bool | None = None
        self._states: dict[str, _State] = {"": _State()}

    @classmethod
    def _of_module(cls, module: Any, name: str) -> TextureReference:
        content = _reference_bytes(module, name, "texture", _TEXTURE_MARK)
        fields = _DECLARED.unpack_from(content)
        _, _, channel, channels, read_mode, normalized, filter, address = fields
        reference = cls()
        reference._module, reference._name = module, name
        reference._as_integer = not read_mode
        reference._states = _made_of_module(module)
        as_integer = TRSF_READ_AS_INTEGER if not read_mode and channel != array_format.FLOAT else 0
        declared = _State(
            format=channel,
            channels=channels,
            modes=(address,) * 3,
            filter=filter,
            flags=as_integer | (TRSF_NORMALIZED_COORDINATES if normalized else 0),
        )
        reference._states.setdefault(name, declared)
        return reference

    @property
    def _state(self) -> _State:
        return self._states[self._name]

    def _set(self, **changes: Any) -> None:
        state = self._state._replace(**changes)
        try:
            made = state.make_object(self._as_integer)
        except Unsupported as refusal:
            if len(set(state.modes)) == 1:
                raise
            # A program sets the modes of axes one after the other. A combination that the device
            # does not support is refused at its use.
            made = refusal
            if self._module is not None:
                self._module._refuse(self._name, refusal.detail)
            self._states[self._name] = state._replace(object=made)
            return
        if made is not None and self._module is not None:
            self._module._bind(self._name, made)
        self._states[self._name] = state._replace(object=made)

    @_core.YieldingProperty
    def object(self) -> int:
        """The number of the texture object (``cudaTextureObject_t``), a new one after a change.

        Raises ``Unsupported`` if the device does not support the address modes.
        """
        made = self._bound("object", self._state.object)
        if isinstance(made, Unsupported):
            raise made
        return made.value

    def _bound(self, name: str, value: Any) -> Any:
        if value is None:
            raise LogicError(f"{name}: nothing of that kind is bound to the texture reference")
        return value

    def set_array(self, array: Array) -> None:
        """Sets the ``array`` that kernels read, and keeps it alive (``cuTexRefSetArray``)."""
        opened("array", array)
        self._set(source=array)

    def _set_memory(self, devptr: Any, extent: Any, allow_offset: bool, **changes: Any) -> int:
        address = _arguments.address("devptr", devptr)
        alignment = Context.get_device().TEXTURE_ALIGNMENT
        offset = address % alignment
        if offset and not allow_offset:
            raise LogicError(
                f"devptr is {address:#x}; without allow_offset, a multiple of {alignment} is "
                "needed, the alignment of textures"
            )
        if extent[1] is None:
            extent = (extent[0] + offset, None)
        self._set(source=_Memory(devptr, address, offset, extent), **changes)
        return offset

    def set_address(self, devptr: Any, bytes: int, allow_offset: bool = False) -> int:
        """Sets ``bytes`` bytes of linear memory at ``devptr``, and keeps ``devptr`` unless it is an
        int (``cuTexRefSetAddress``).

        Returns an offset in bytes. It is 0 if the address is a multiple of
        ``device_attribute.TEXTURE_ALIGNMENT``; ``allow_offset`` permits other addresses. Kernels
        add the offset, in texels, to the index.
        """
        return self._set_memory(devptr, (whole("bytes", bytes), None), bool(allow_offset))

    def set_address_2d(self, devptr: Any, descr: ArrayDescriptor, pitch: int) -> None:
        """Sets rows of memory at ``devptr``, ``pitch`` bytes apart (``cuTexRefSetAddress2D``).

        ``descr`` has width, height, format and channels of the texels.
        """
        _arguments.instance("descr", descr, ArrayDescriptor)
        format, channels = texel_format(descr.format, descr.num_channels)
        width, height = whole("width", descr.width), whole("height", descr.height)
        rows = (width, (height, whole("pitch", pitch)))
        self._set_memory(devptr, rows, False, format=format, channels=channels)

    def set_format(self, format: int, num_components: int) -> None:
        """Sets the texel format of linear memory (``cuTexRefSetFormat``); an array has its own.

        ``format`` is an ``array_format``, and ``num_components`` the number of channels: 1, 2 or 4.
        """
        format, channels = texel_format(format, num_components)
        self._set(format=format, channels=channels)

    def set_address_mode(self, dim: int, am: int) -> None:
        """Sets the ``address_mode`` ``am`` of reads out of bounds along axis ``dim``, 0 to 2.

        AMD's devices have one mode for all axes: kernels of the module are refused while the
        modes differ.
        """
        dim = self._dimension(dim)
        if am not in list(address_mode):
            raise LogicError(f"am is {am}; allowed are the values of address_mode")
        modes = list(self._state.modes)
        modes[dim] = int(am)
        self._set(modes=tuple(modes))

    def _dimension(self, dim: int) -> int:
        dim = _arguments.whole("dim", dim)
        if not 0 <= dim < 3:
            raise LogicError(f"dim is {dim}; allowed are 0 to 2")
        return dim

    def set_filter_mode(self, mode: int) -> None:
        """Sets the ``filter_mode`` ``mode`` of reads between texels (``cuTexRefSetFilterMode``)."""
        if mode not in list(filter_mode):
            raise LogicError(f"mode is {mode}; allowed are the values of filter_mode")
        self._set(filter=int(mode))

    def set_flags(self, flags: int) -> None:
        """Sets ``flags``, a sum of ``TRSF_NORMALIZED_COORDINATES`` and ``TRSF_READ_AS_INTEGER``."""
        flags = whole("flags", flags)
        if flags & ~(TRSF_READ_AS_INTEGER | TRSF_NORMALIZED_COORDINATES):
            allowed = "TRSF_READ_AS_INTEGER (1) and TRSF_NORMALIZED_COORDINATES (2)"
            raise LogicError(f"flags is {flags}; allowed are {allowed}")
        self._set(flags=flags)

    def get_address(self) -> int:
        """Returns the address of linear memory."""
        source = self._state.source
        memory = source if isinstance(source, _Memory) else None
        return self._bound("get_address", memory).address

    def get_array(self) -> Array:
        """Returns the array."""
        source = self._state.source
        return self._bound("get_array", source if isinstance(source, Array) else None)

    def get_address_mode(self, dim: int) -> int:
        """Returns the ``address_mode`` of axis ``dim``."""
        return address_mode(self._state.modes[self._dimension(dim)])

    def get_filter_mode(self) -> int:
        """Returns the ``filter_mode``."""
        return filter_mode(self._state.filter)

    def get_format(self) -> tuple[int, int]:
        """Returns the type and the number of channels."""
        source = self._state.source
        if isinstance(source, Array):
            return array_format(source._shape["format"]), source._shape["num_channels"]
        return array_format(self._state.format), self._state.channels

    def get_flags(self) -> int:
        """Returns the flags."""
        return self._state.flags


# Element types that textures do not have: the format, the channels, and the argument that allows
# their storage in it.
_STORED = {
    np.dtype(np.float64): (array_format.SIGNED_INT32, 2, "allow_double_hack"),
    np.dtype(np.complex64): (array_format.UNSIGNED_INT32, 2, "allow_complex_hack"),
    np.dtype(np.complex128): (array_format.SIGNED_INT32, 4, "allow_complex_hack"),
}


def _bytes(ary: Any) -> int:
    """Returns the bytes of the elements; a subclass's ``nbytes`` may be another number."""
    return ary.size * ary.itemsize


def bind_gpuarray(ary: Any, texref: Any, allow_offset: bool) -> float:
    """``GPUArray.bind_to_texref``."""
    _arguments.instance("texref", texref, TextureReference)
    return texref.set_address(ary, _bytes(ary), allow_offset=allow_offset) / ary.itemsize


def bind_gpuarray_as(
    ary: Any, texref: Any, channels: int, allow_offset: bool, **allowed: bool
) -> float:
    """``GPUArray.bind_to_texref_ext``."""
    _arguments.instance("texref", texref, TextureReference)
    if not ary.flags.forc:
        raise RuntimeError("only contiguous arrays may be used as arguments to this operation")
    stored, count, argument = _STORED.get(ary.dtype, (None, 1, ""))
    if stored is not None and allowed[argument]:
        if channels != 1:
            raise ValueError(f"channels is {channels}; textures of {ary.dtype} can have 1")
        format, channels = texel_format(stored, count)
    else:
        format, channels = texel_format(dtype_to_array_format(ary.dtype), channels)
    as_integer = TRSF_READ_AS_INTEGER if format != array_format.FLOAT else 0
    extent, flags = (_bytes(ary), None), texref.get_flags() | as_integer
    kind = {"format": format, "channels": channels, "flags": flags}
    return texref._set_memory(ary, extent, bool(allow_offset), **kind) / ary.itemsize


class SurfaceReference:
    """A variable of a module, from ``Module.get_surfref``, by which kernels access an array.

    A reference without a module is a surface object, for kernels that take one. Raises
    ``Unsupported`` if the device does not support surfaces.

    >>> module = compiler.SourceModule('''
    ... surface<void, cudaSurfaceType2DLayered> image;
    ... __global__ void fill() {
    ...     surf2DLayeredwrite(7.0f, image, threadIdx.x * 4, threadIdx.y, 0);
    ... }''')
    >>> array = driver.np_to_array(np.zeros((2, 3), np.float32), "C", allowSurfaceBind=True)
    >>> module.get_surfref("image").set_array(array)
    >>> module.get_function("fill")(block=(3, 1, 1))
    >>> rows = np.empty((2, 3), np.float32)
    >>> copy = driver.Memcpy3D()
    >>> copy.set_src_array(array)
    >>> copy.set_dst_host(rows)
    >>> copy.width_in_bytes = copy.dst_pitch = 12
    >>> copy.height, copy.depth = 2, 1
    >>> copy()
    >>> rows
    array([[7., 7., 7.],
           [0., 0., 0.]], dtype=float32)
    >>> module.get_surfref("image").get_array() is array
    True
    """

    def __init__(self) -> None:
        check_textures("SurfaceReference")
        self._module: Any = None
        self._name = ""
        self._states: dict[str, tuple[Array, Any]] = {}

    @classmethod
    def _of_module(cls, module: Any, name: str) -> SurfaceReference:
        _reference_bytes(module, name, "surface", _SURFACE_MARK)
        reference = cls()
        reference._module, reference._name = module, name
        reference._states = _made_of_module(module)
        return reference

    def set_array(self, array: Array, flags: int = 0) -> None:
        """Sets the ``array``, made with ``array3d_flags.SURFACE_LDST``; ``flags`` is 0."""
        made = _core.surface_of_array(opened("array", array))
        if whole("flags", flags):
            raise LogicError(f"flags is {flags}; 0 is allowed")
        if self._module is not None:
            self._module._bind(self._name, made)
        self._states[self._name] = (array, made)

    def _bound(self) -> tuple[Array, Any]:
        try:
            return self._states[self._name]
        except KeyError:
            raise LogicError("no array is bound to the surface reference") from None

    def get_array(self) -> Array:
        """Returns the array."""
        return self._bound()[0]

    @_core.YieldingProperty
    def object(self) -> int:
        """The number of the surface object, for a ``cudaSurfaceObject_t`` parameter."""
        return self._bound()[1].value
