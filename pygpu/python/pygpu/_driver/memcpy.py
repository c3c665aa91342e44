"""Copies of rows and slices: PyCUDA's ``Memcpy2D`` and ``Memcpy3D``.

Examples
--------
>>> array = driver.matrix_to_array(np.array([[1, 2, 3]], np.uint8), "C")
>>> driver.memcpy_htoa(array, 1, np.array([5, 6], np.uint8))
>>> part = gpuarray.zeros(2, np.uint8)
>>> driver.memcpy_atod(part, array, 1, 2)
>>> driver.memcpy_dtoa(array, 0, part, 2)
>>> row = np.empty(3, np.uint8)
>>> driver.memcpy_atoh(row, array, 0)
>>> row
array([5, 6, 6], dtype=uint8)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments, _core
from .._documentation import documented
from .._errors import LogicError
from .device import Context, on_device, ordinal_of
from .enumerations import address_mode, array3d_flags, array_format, filter_mode, memory_type
from .texture_arrays import (
    Array,
    ArrayDescriptor,
    ArrayDescriptor3D,
    check_textures,
    dtype_to_array_format,
    opened,
)
from .textures import TextureReference


def _size(name: str, value: Any) -> int:
    number = _arguments.whole(name, value)
    if not 0 <= number < 2**64:
        raise LogicError(f"{name} is {number}; allowed are 0 to 2**64 - 1")
    return number


class _Copy:
    """A copy from memory to memory: set source, target and extent, then call it."""

    def __init__(self) -> None:
        self.width_in_bytes = 0
        self.height = 0
        self.depth = 1
        self.src_memory_type = self.dst_memory_type = memory_type.HOST
        self.src_x_in_bytes = self.dst_x_in_bytes = 0
        self.src_y = self.dst_y = 0
        self.src_z = self.dst_z = 0
        self.src_pitch = self.dst_pitch = 0
        self.src_height = self.dst_height = 0
        self.src_device: Any = 0
        self.dst_device: Any = 0
        self.src_array: Any = None
        self.dst_array: Any = None
        self._src_host: Any = None
        self._dst_host: Any = None

    def set_src_host(self, buf_py: Any) -> None:
        """Reads from contiguous host memory: a numpy array or buffer ``buf_py``."""
        self._src_host = _arguments.host_memory("buf_py", buf_py)
        self.src_memory_type = memory_type.HOST

    def set_src_unified(self, buf_py: Any) -> None:
        """Like :meth:`set_src_host`, for memory ``buf_py`` that host and device share."""
        self.set_src_host(buf_py)
        self.src_memory_type = memory_type.UNIFIED

    def set_src_device(self, devptr: Any) -> None:
        """Reads from device memory: a DeviceAllocation, GPUArray or address ``devptr``."""
        self.src_memory_type, self.src_device = memory_type.DEVICE, devptr

    def set_src_array(self, ary: Any) -> None:
        """Reads from a texture array ``ary``; no pitch or height has to be set for it."""
        opened("ary", ary)
        self.src_memory_type, self.src_array = memory_type.ARRAY, ary

    def set_dst_host(self, buf_py: Any) -> None:
        """Writes to contiguous host memory: a numpy array or buffer ``buf_py``."""
        self._dst_host = _arguments.host_memory("buf_py", buf_py)
        self.dst_memory_type = memory_type.HOST

    def set_dst_unified(self, buf_py: Any) -> None:
        """Like :meth:`set_dst_host`, for memory ``buf_py`` that host and device share."""
        self.set_dst_host(buf_py)
        self.dst_memory_type = memory_type.UNIFIED

    def set_dst_device(self, devptr: Any) -> None:
        """Writes to device memory: a DeviceAllocation, GPUArray or address ``devptr``."""
        self.dst_memory_type, self.dst_device = memory_type.DEVICE, devptr

    def set_dst_array(self, ary: Any) -> None:
        """Writes to a texture array ``ary``; no pitch or height has to be set for it."""
        opened("ary", ary)
        self.dst_memory_type, self.dst_array = memory_type.ARRAY, ary

    def _side(self, name: str) -> tuple[Any, bool, tuple[int, int, int, int, int]]:
        kind = getattr(self, f"{name}_memory_type")
        is_host = kind not in (memory_type.DEVICE, memory_type.ARRAY)
        if kind == memory_type.ARRAY:
            memory = opened(f"{name}_array", getattr(self, f"{name}_array"))
        else:
            memory = getattr(self, f"_{name}_host" if is_host else f"{name}_device")
        if memory is None:
            raise LogicError(f"no memory is set: call set_{name}_host or set_{name}_device")
        parts = (f"{name}_{part}" for part in ("x_in_bytes", "y", "z", "pitch", "height"))
        x, y, z, pitch, rows = (_size(part, getattr(self, part)) for part in parts)
        return memory, is_host, (x, y, z, pitch, rows)

    def _copy(self, stream: Any, wait: bool) -> None:
        _core.copy_rows(self._side("dst"), self._side("src"), self._extent(), stream, wait)

    def _extent(self) -> tuple[int, int, int]:
        names = ("width_in_bytes", "height", "depth")
        width, height, depth = (_size(name, getattr(self, name)) for name in names)
        return width, height, depth


class Memcpy2D(_Copy):
    """A copy of ``height`` rows of ``width_in_bytes`` bytes (``cuMemcpy2D``, ``hipMemcpyParam2D``).

    Source and target are host memory, device memory or arrays for textures. Set source, target and
    extent, then call it: with a bool to copy and wait, with a stream to queue the copy.
    ``src_x_in_bytes`` and ``src_y`` are the first byte of a row and the first row; ``src_pitch`` is
    the row pitch in bytes, or 0 for contiguous rows. ``dst_x_in_bytes`` and so on are the target's.

    >>> host = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> memory, pitch = driver.mem_alloc_pitch(3, 2, 4)
    >>> copy = driver.Memcpy2D()
    >>> copy.set_src_host(host)
    >>> copy.set_dst_device(memory)
    >>> copy.width_in_bytes, copy.height = 3, 2
    >>> copy.src_pitch, copy.dst_pitch = 3, pitch
    >>> copy(aligned=True)
    >>> driver.from_device(int(memory) + pitch, 3, np.uint8)
    array([3, 4, 5], dtype=uint8)
    >>> texels = driver.np_to_array(np.zeros((2, 3), np.uint8), "C")
    >>> copy.set_src_unified(host)  # as set_src_host
    >>> copy.set_dst_array(texels)
    >>> copy(True)
    >>> back = np.empty((2, 3), np.uint8)
    >>> copy.set_src_array(texels)
    >>> copy.set_dst_host(back)
    >>> copy.dst_pitch = 3
    >>> copy(True)
    >>> copy.set_src_device(memory)
    >>> copy.set_dst_unified(back)
    >>> copy.src_pitch = pitch
    >>> copy(True)
    >>> back
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """

    def __call__(self, aligned: Any) -> None:
        """If ``aligned`` is a bool, copies and waits; if it is a stream, queues the copy on it."""
        if isinstance(aligned, (bool, int)):
            self._copy(None, True)
        else:
            self._copy(aligned, False)


class Memcpy3D(_Copy):
    """A :class:`Memcpy2D` of ``depth`` slices of rows (``cuMemcpy3D``, ``hipDrvMemcpy3D``).

    Call it without an argument to copy and wait, or with a stream to queue the copy. ``src_z`` and
    ``dst_z`` are the first slice; ``src_height`` and ``dst_height`` the rows from one slice to the
    next, or 0 for contiguous slices.

    >>> host, array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), gpuarray.zeros(8, np.uint8)
    >>> copy = driver.Memcpy3D()
    >>> copy.set_src_host(host)
    >>> copy.set_dst_device(array.gpudata)
    >>> copy.width_in_bytes, copy.height, copy.depth = 2, 2, 2
    >>> copy.src_pitch, copy.src_height, copy.dst_pitch, copy.dst_height = 4, 3, 2, 2
    >>> copy()
    >>> array
    array([ 0,  1,  4,  5, 12, 13, 16, 17], dtype=uint8)
    """

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.src_lod = self.dst_lod = 0

    def __call__(self, stream: Any = None) -> None:
        """Copies and waits, or queues the copy on ``stream``."""
        self._copy(stream, stream is None)


class Memcpy3DPeer(Memcpy3D):
    """A :class:`Memcpy3D` between memory of two contexts, by default the current one.

    >>> from pygpu import autoinit
    >>> source, target = gpuarray.arange(4, dtype=np.uint8), gpuarray.zeros(4, np.uint8)
    >>> copy = driver.Memcpy3DPeer()
    >>> copy.set_src_device(source.gpudata)
    >>> copy.set_dst_device(target.gpudata)
    >>> copy.set_src_context(autoinit.context)
    >>> copy.width_in_bytes, copy.height, copy.depth = 4, 1, 1
    >>> copy()
    >>> target
    array([0, 1, 2, 3], dtype=uint8)
    >>> copy.set_dst_context(autoinit.context)
    """

    def __init__(self) -> None:
        super().__init__()
        self._src_context: Context | None = None
        self._dst_context: Context | None = None

    def set_src_context(self, ctx: Context) -> None:
        """Sets the context ``ctx`` whose memory is read."""
        self._src_context = _arguments.instance("ctx", ctx, Context)

    def set_dst_context(self, ctx: Context) -> None:
        """Sets the context ``ctx`` whose memory is written."""
        self._dst_context = _arguments.instance("ctx", ctx, Context)

    def _copy(self, stream: Any, wait: bool) -> None:
        src, dst = self._side("src"), self._side("dst")
        ordinals = [ordinal_of("ctx", it) for it in (self._dst_context, self._src_context)]
        home = ordinals[1 if dst[1] else 0]
        # A driver copies rows with a pitch, and arrays for textures, on the current device only.
        is_of_one = src[1] or dst[1] or ordinals[0] == ordinals[1]
        is_array = memory_type.ARRAY in (self.src_memory_type, self.dst_memory_type)
        if is_of_one and (src[1] or dst[1] or is_array or home == _core.current_ordinal()):
            with on_device(home):
                super()._copy(stream, wait)
            return
        target, source = (dst[0], ordinals[0], dst[2]), (src[0], ordinals[1], src[2])
        _core.copy_rows_between_devices(target, source, self._extent(), stream, wait)


# Element types that textures do not have, read as integers: the format and the channels.
_CHANNELS = {"d": 2, "F": 2, "D": 4}
_AS_INTEGERS = {np.dtype(it): (array_format.SIGNED_INT32, n) for it, n in _CHANNELS.items()}


def _order(order: str) -> str:
    if not isinstance(order, str) or order.upper() not in ("C", "F"):
        raise LogicError(f"order must be either F or C, not {order!r}")
    return order.upper()


def _format(dtype: np.dtype, as_integers: bool) -> tuple[array_format, int]:
    if as_integers and dtype in _AS_INTEGERS:
        return _AS_INTEGERS[dtype]
    return dtype_to_array_format(dtype), 1


def _filled(descriptor: Any, source: Any, order: Any) -> Array:
    """Returns a new texture array of the descriptor's shape, with the elements of another array."""
    if source.size == 0:
        raise LogicError(f"the array has shape {tuple(source.shape)}; textures have no empty axes")
    array = Array(descriptor)
    if isinstance(source, np.ndarray):
        source = np.asarray(source, order=order)
    elif not (source.flags.c_contiguous if order == "C" else source.flags.f_contiguous):
        raise LogicError(f"the array is not contiguous in the order {order}")
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
    """Copies a ``matrix`` to a new array for textures.

    With ``order`` "F" the array is transposed. With ``allow_double_hack`` float64 is stored as two
    32-bit channels. Raises ``Unsupported`` if the device does not support textures.

    >>> array = driver.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    >>> array.get_descriptor().width, array.get_descriptor().height
    (3, 2)
    """
    order = _order(order)
    check_textures("matrix_to_array")
    height, width = np.shape(matrix)
    descr = ArrayDescriptor()
    descr.height, descr.width = (height, width) if order == "C" else (width, height)
    as_integers = allow_double_hack and matrix.dtype == np.float64
    descr.format, descr.num_channels = _format(matrix.dtype, as_integers)
    return _filled(descr, matrix, order)


def _array_like(ary: Any, order: str, allow_surface_bind: bool) -> Array:
    order = _order(order)
    if ary.ndim not in (2, 3):
        raise LogicError(f"ary.ndim is {ary.ndim}; 2 or 3 is needed")
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


_LIKE = """Copies a {kind} ``{argument}`` with 2 or 3 axes to a new array for textures.

    float64, complex64 and complex128 are stored as 32-bit channels. With ``order`` "F" the new
    array is transposed. With ``allowSurfaceBind`` surfaces can write it, and an array with 2 axes
    becomes one layer.

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

    The axes of ``ndarray`` are height, width and channels with ``order`` "C"; channels, width and
    height with "F". Raises ``Unsupported`` if the device does not support textures.

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
    """Binds ``texref`` to ``ary``; coordinates are clamped, and the nearest texel is read."""
    _arguments.instance("texref", texref, TextureReference)
    texref.set_filter_mode(filter_mode.POINT)
    texref.set_array(ary)
    texref.set_address_mode(0, address_mode.CLAMP)
    texref.set_address_mode(1, address_mode.CLAMP)


def matrix_to_texref(matrix: Any, texref: TextureReference, order: str) -> None:
    """Binds ``texref`` to an array of a ``matrix``: see :func:`matrix_to_array` for ``order``."""
    bind_array_to_texref(matrix_to_array(matrix, order), texref)


def _copy_row(len: int, source: str, src: Any, src_x: int, to: str, dst: Any, dst_x: int) -> None:
    check_textures("memcpy")
    copy = Memcpy2D()
    copy.width_in_bytes, copy.height = _arguments.whole("len", len), 1
    getattr(copy, f"set_src_{source}")(src)
    getattr(copy, f"set_dst_{to}")(dst)
    copy.src_x_in_bytes, copy.dst_x_in_bytes = src_x, dst_x
    copy(aligned=True)


def memcpy_dtoa(ary: Array, index: int, src: Any, len: int) -> None:
    """Copies ``len`` bytes of device memory ``src`` to byte ``index`` of ``ary``'s first row."""
    _copy_row(len, "device", src, 0, "array", ary, index)


def memcpy_atod(dest: Any, ary: Array, index: int, len: int) -> None:
    """Copies ``len`` bytes, from byte ``index`` of the first row of ``ary``, to device ``dest``."""
    _copy_row(len, "array", ary, index, "device", dest, 0)


def memcpy_htoa(ary: Array, index: int, src: Any) -> None:
    """Copies host memory ``src`` to ``ary``, from byte ``index`` of the first row on."""
    size = _core.host_memory_size("src", src, False)
    _copy_row(size, "host", src, 0, "array", ary, index)


def memcpy_atoh(dest: Any, ary: Array, index: int) -> None:
    """Fills host memory ``dest`` from the first row of ``ary``, from byte ``index`` on."""
    size = _core.host_memory_size("dest", dest, True)
    _copy_row(size, "array", ary, index, "host", dest, 0)


def memcpy_atoa(dest: Array, dest_index: int, src: Array, src_index: int, len: int) -> None:
    """Copies ``len`` bytes between the first rows of the texture arrays ``src`` and ``dest``.

    The copy begins at byte ``src_index`` of one row and byte ``dest_index`` of the other.
    """
    _copy_row(len, "array", src, src_index, "array", dest, dest_index)


py_memcpy_htoa = memcpy_htoa
py_memcpy_atoh = memcpy_atoh
