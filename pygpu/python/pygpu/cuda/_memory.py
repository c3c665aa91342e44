"""Device memory by its address, the sizes of memory, and copies of its bytes.

Examples
--------
>>> array = gpuarray.arange(6, dtype="u1")
>>> device_pointer(array) == array.ptr, device_memory_size(array[::2]), is_device_memory(array)
(True, 5, True)
>>> host = np.zeros(6, "u1")
>>> host_pointer(host) == host.ctypes.data, host_memory_size(host[::2])
(True, 5)
>>> device_to_host(host, array, 6)
>>> host_to_device(array, host[::-1].copy(), 6)
>>> device_to_device(array, array[3:], 2)
>>> device_memset(array, 7, 1)
>>> array
array([7, 1, 3, 2, 1, 0], dtype=uint8)
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .. import _arguments, _core
from .._arguments import whole, wrong_type
from .._core import GPUArray
from ..compyte.array import span

BYTE = np.dtype(np.uint8)


def stream_or_none(stream: Any) -> Any:
    """Returns a stream argument of numba's as the core takes it: 0 is the default stream."""
    return None if isinstance(stream, int) and stream == 0 else stream


class DeviceAddress(ctypes.c_size_t):
    """A device address as a ctypes object that Python can also use as an integer.

    >>> int(cuda.device_array(4).device_ctypes_pointer) > 0
    True
    """

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


class MemoryPointer:
    """A range of device memory: ``size`` bytes at ``pointer``, a number, in ``context``.

    This object and its views keep ``owner``, the owner of the memory, alive. ``finalizer`` is
    called once this object is gone, or by :meth:`free`.

    >>> memory = cuda.current_context().memalloc(16)
    >>> memory.memset(7)
    >>> memory.view(4, 8).size
    4
    >>> other = memory.own()
    >>> memory.refct
    2
    >>> memory.free()  # does nothing: it has a finalizer only if one is given
    >>> cuda.cudadrv.driver.MemoryPointer.of(None, memory.elements).size
    16
    """

    __cuda_memory__ = True

    def __init__(
        self,
        context: Any,
        pointer: Any,
        size: int,
        owner: Any = None,
        finalizer: Callable[[], Any] | None = None,
    ) -> None:
        self.context = context
        # Numbers of ctypes, whose null pointer has the value None.
        address = getattr(pointer, "value", pointer)
        self.handle = 0 if address is None else whole("pointer", address)
        self.size = size
        self.is_managed = finalizer is not None
        self._owner = owner
        self._elements: GPUArray | None = None
        self._made: weakref.ref[GPUArray] | None = None
        self._views: weakref.WeakSet[MemoryPointer] = weakref.WeakSet()
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)

    @classmethod
    def of(cls, context: Any, elements: GPUArray, owner: Any = None) -> MemoryPointer:
        """Returns a pointer of ``context`` to ``elements``, an array of uint8; keeps ``owner``."""
        result = cls(context, elements.ptr, elements.size, owner=owner)
        result._elements = elements
        return result

    @property
    def elements(self) -> GPUArray:
        """The bytes, as an array of uint8 that keeps the pointer."""
        if self._elements is not None:
            return self._elements
        if not self.size:
            return GPUArray((0,), BYTE)
        made = None if self._made is None else self._made()
        if made is None:
            owner = self._owner.elements if isinstance(self._owner, MemoryPointer) else self._owner
            made = GPUArray((self.size,), BYTE, gpudata=self, base=owner)
            self._made = weakref.ref(made)
        return made

    @property
    def owner(self) -> Any:
        """The pointer that this one is a view of, or the pointer itself if it is not a view."""
        return self if self._owner is None else self._owner

    @property
    def refct(self) -> int:
        """The number of pointers to the memory: this one and its views."""
        return 1 + len(self._views)

    @property
    def device_pointer(self) -> int:
        """The base address."""
        return self.handle

    @property
    def device_pointer_value(self) -> int | None:
        """The base address; None without memory."""
        return self.handle or None

    @property
    def device_ctypes_pointer(self) -> DeviceAddress:
        """The base address as an object of ctypes."""
        return DeviceAddress(self.handle)

    @property
    def _cuda_memsize_(self) -> int:
        return self.size

    def __int__(self) -> int:
        return self.handle

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes at {self.handle:#x}>"

    def own(self) -> MemoryPointer:
        """Returns a pointer to the same memory that keeps this pointer alive."""
        return self.view(0)

    def free(self) -> None:
        """Calls the finalizer now, if there is one.

        Later uses of arrays in the memory raise ``LogicError``. This call also raises it while
        another library's array or a buffer still uses the memory. Raises ``RuntimeError`` if the
        finalizer has been called already.
        """
        if self._finalizer is None:
            return
        if not self._finalizer.alive:
            raise RuntimeError("the memory has been freed already")
        made = None if self._made is None else self._made()
        if made is not None and not isinstance(self._owner, MemoryPointer):
            _core.end_foreign_memory(made)
        self._finalizer()

    def memset(self, byte: int, count: int | None = None, stream: Any = 0) -> None:
        """Sets the first ``count`` bytes, by default all, to ``byte``, on ``stream``."""
        if count is not None and not 0 <= count <= self.size:
            raise ValueError(f"count is {count}; 0 <= count <= {self.size} is needed")
        elements = self.elements if count is None else self.elements[:count]
        elements.fill(byte, stream_or_none(stream))

    def view(self, start: int, stop: int | None = None) -> MemoryPointer:
        """Returns a view of bytes ``start`` to ``stop`` (default: end) that keeps this pointer."""
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ValueError(
                f"start is {start} and stop {stop}; 0 <= start <= stop <= {self.size} is needed"
            )
        root = self.owner if isinstance(self.owner, MemoryPointer) else self
        result = MemoryPointer(self.context, self.handle + start, end - start, owner=root)
        root._views.add(result)
        return result


def memory_size_from_info(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Returns how many bytes an array of ``shape``, ``strides`` and ``itemsize`` spans."""
    if len(shape) != len(strides):
        raise ValueError(f"strides has length {len(strides)} and shape {len(shape)}")
    low, high = span(shape, strides, itemsize)
    return high - low


def bytes_spanned(array: Any) -> int:
    """Returns how many bytes an array spans."""
    return memory_size_from_info(array.shape, array.strides, array.itemsize)


def is_device_memory(obj: Any) -> bool:
    """Returns True if ``obj`` is device memory of this package, or has numba's attributes."""
    marks = ("__cuda_memory__", "_is_device_memory")
    return isinstance(obj, GPUArray) or any(bool(getattr(obj, mark, False)) for mark in marks)


def require_device_memory(obj: Any) -> None:
    """Raises TypeError unless :func:`is_device_memory` is True for ``obj``."""
    if not is_device_memory(obj):
        raise wrong_type("obj", obj, "device memory is needed")


def device_pointer(obj: Any) -> int:
    """Returns the address of the first element or byte of ``obj``, an array or a MemoryPointer."""
    require_device_memory(obj)
    return obj.ptr if isinstance(obj, GPUArray) else obj.device_ctypes_pointer.value or 0


def device_ctypes_pointer(obj: Any) -> DeviceAddress:
    """Returns :func:`device_pointer` of ``obj`` as an object of ctypes; 0 for None."""
    return DeviceAddress(0 if obj is None else device_pointer(obj))


def device_memory_size(obj: Any) -> int:
    """Returns the bytes from start to end of ``obj``, an array or a MemoryPointer."""
    require_device_memory(obj)
    return bytes_spanned(obj) if isinstance(obj, GPUArray) else obj._cuda_memsize_


def device_extents(obj: Any) -> tuple[int, int]:
    """Returns the first address of the allocation of ``obj``, and the address after its end."""
    base, size = _core.mem_get_address_range(device_pointer(obj))
    return base, base + size


def _host_array(obj: Any) -> np.ndarray[Any, Any]:
    if isinstance(obj, np.ndarray):
        return obj
    if isinstance(obj, np.generic):
        return np.frombuffer(obj, BYTE)
    return np.frombuffer(memoryview(obj).cast("B"), BYTE)


def host_pointer(obj: Any, readonly: bool = False) -> int:
    """Returns the address of ``obj``, a numpy array, a buffer (``readonly`` or not) or an int."""
    if isinstance(obj, int):
        return obj
    array = _host_array(obj)
    if not (readonly or array.flags.writeable or isinstance(obj, np.void)):
        raise ValueError("obj is read-only; a writable object is needed")
    return array.ctypes.data


def host_memory_extents(obj: Any) -> tuple[int, int]:
    """Returns the first address of ``obj``, an array or a buffer, and the address after its end."""
    array = _host_array(obj)
    low, high = span(array.shape, array.strides, array.itemsize)
    return array.ctypes.data + low, array.ctypes.data + high


def host_memory_size(obj: Any) -> int:
    """Returns the bytes from start to end of ``obj``, a numpy array or a buffer."""
    return bytes_spanned(_host_array(obj))


def _bytes_of(name: str, obj: Any, size: int) -> Any:
    array = _host_array(obj)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError(f"{name} is not contiguous; a contiguous array is needed")
    flat = array.reshape(-1, order="A").view(BYTE) if array.ndim else array.reshape(1).view(BYTE)
    if not 0 <= size <= flat.size:
        raise ValueError(f"size is {size}; the nbytes of {name} is {flat.size}")
    return flat[:size]


def _device_bytes(name: str, obj: Any, size: int) -> GPUArray:
    available = device_memory_size(obj)
    if not 0 <= size <= available:
        raise ValueError(f"size is {size}; the nbytes of {name} is {available}")
    if isinstance(obj, GPUArray):
        low, _ = span(obj.shape, obj.strides, obj.itemsize)
        return bytes_at(obj, low, size)
    elements = getattr(obj, "elements", None)
    if elements is None:
        # A pointer of the driver's own kind: an array over mapped or managed host memory.
        elements = GPUArray((available,), BYTE, gpudata=device_pointer(obj), base=obj)
    return elements[:size]


def bytes_at(array: GPUArray, offset: int, size: int) -> GPUArray:
    """Returns ``size`` bytes of an array's memory, ``offset`` bytes from its first element."""
    if not size:
        return GPUArray((0,), BYTE)
    return GPUArray((size,), BYTE, gpudata=array.ptr + offset, base=array)


def host_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copies ``size`` bytes from ``src``, a contiguous array or buffer, to device memory ``dst``.

    The copy is queued on ``stream``; if that is 0, it has run when the call returns.
    """
    _device_bytes("dst", dst, size).set(
        _bytes_of("src", src, size), async_=bool(stream), stream=stream_or_none(stream)
    )


def device_to_host(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copies ``size`` bytes of device memory ``src`` to a writable ``dst``, on ``stream``."""
    _device_bytes("src", src, size).get(
        _bytes_of("dst", dst, size), async_=bool(stream), stream=stream_or_none(stream)
    )


def device_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copies ``size`` bytes from ``src`` to ``dst``, both on the device, in order of ``stream``."""
    target, source = _device_bytes("dst", dst, size), _device_bytes("src", src, size)
    copy_elements(target, source, stream)


def copy_elements(target: GPUArray, source: GPUArray, stream: Any = 0) -> None:
    """Copies between arrays with the same strides and without gaps, in a stream's order."""
    _, size = span(target.shape, target.strides, target.itemsize)
    if size:
        _core.copy_on_device(target, source, size, stream_or_none(stream), False)


def device_memset(dst: Any, val: int, size: int, stream: Any = 0) -> None:
    """Sets ``size`` bytes of device memory ``dst`` to the low byte of ``val``, on ``stream``."""
    _device_bytes("dst", dst, size).fill(val & 0xFF, stream_or_none(stream))
    if not stream:
        _core.synchronize()


errmsg_contiguous_buffer = (
    "Array contains non-contiguous buffer and cannot be transferred as a single memory region. "
    "Please ensure contiguous buffer with numpy .ascontiguousarray()"
)


class Contiguity:
    """The methods of numba's arrays that return their contiguity."""

    def is_c_contiguous(self: Any) -> bool:
        """Returns True if the elements are contiguous in C order."""
        return self.flags["C_CONTIGUOUS"]

    def is_f_contiguous(self: Any) -> bool:
        """Returns True if the elements are contiguous in Fortran order."""
        return self.flags["F_CONTIGUOUS"]


class Flags(dict[str, bool]):
    """The flags of an array, with the names of numpy and of numba."""

    @property
    def c_contiguous(self) -> bool:
        """True if the elements are contiguous in C order."""
        return self["C_CONTIGUOUS"]

    @property
    def f_contiguous(self) -> bool:
        """True if the elements are contiguous in Fortran order."""
        return self["F_CONTIGUOUS"]

    @property
    def forc(self) -> bool:
        """True if the elements are contiguous in either order."""
        return self["C_CONTIGUOUS"] or self["F_CONTIGUOUS"]


def contiguous_strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    """Returns the strides of an array without gaps in C or Fortran order."""
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}; allowed are 'C' and 'F'")
    strides, step = [], itemsize
    for side in reversed(shape) if order == "C" else shape:
        strides.append(step)
        step *= side
    return tuple(reversed(strides) if order == "C" else strides)


def prepare(
    shape: Any, strides: Any, dtype: Any, order: str
) -> tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]:
    """Returns shape, strides in bytes and dtype, checked; by default the strides of ``order``."""
    shape, dtype = _arguments.extents("shape", shape), np.dtype(dtype)
    if strides is None:
        return shape, contiguous_strides(shape, dtype.itemsize, order), dtype
    strides = (strides,) if isinstance(strides, int | np.integer) else tuple(strides)
    if len(strides) != len(shape):
        raise ValueError(f"strides has length {len(strides)}, shape {len(shape)}; they must match")
    return shape, strides, dtype


def strides_like(ary: Any) -> tuple[tuple[int, ...] | None, Literal["C", "F"]]:
    """Returns strides without gaps in an array's memory order (None for C or F), and the order."""
    c, f = ary.flags["C_CONTIGUOUS"], ary.flags["F_CONTIGUOUS"]
    order: Literal["C", "F"] = "F" if f and not c else "C"
    if c or f or ary.ndim <= 1:
        return None, order
    strides, step = [0] * ary.ndim, ary.dtype.itemsize
    for axis in sorted(range(ary.ndim), key=lambda axis: ary.strides[axis]):
        strides[axis] = step
        step *= ary.shape[axis]
    return tuple(strides), order


def array_core(ary: Any) -> Any:
    """Returns ``ary`` with extent 1 along axes of stride 0, where elements repeat."""
    if not ary.strides or not ary.size or 0 not in ary.strides:
        return ary
    return ary[tuple(0 if stride == 0 else slice(None) for stride in ary.strides)]


def is_contiguous(ary: Any) -> bool:
    """Returns True if ``ary`` is C-contiguous, not counting axes that repeat or have extent 1."""
    size = ary.dtype.itemsize
    for side, stride in zip(reversed(ary.shape), reversed(ary.strides)):
        if side > 1 and stride != 0:
            if size != stride:
                return False
            size *= side
    return True


def sentry_contiguous(ary: Any) -> None:
    """Raises ValueError if ``ary`` is neither C-contiguous nor Fortran-contiguous."""
    # An element of the plain class is an array still.
    flags = array_core(GPUArray.view(ary) if isinstance(ary, GPUArray) else ary).flags
    if not (flags.c_contiguous or flags.f_contiguous):
        raise ValueError(errmsg_contiguous_buffer)


def check_array_compatibility(ary1: Any, ary2: Any) -> None:
    """Raises an error if ``ary1`` and ``ary2`` differ in dtype, shape or strides.

    Axes of extent 1 do not count, nor do the strides of empty arrays.
    """
    if ary1.dtype != ary2.dtype:
        raise TypeError(f"incompatible dtype: {ary1.dtype} vs. {ary2.dtype}")
    axes1, axes2 = (
        [(side, step) for side, step in zip(ary.shape, ary.strides) if side != 1]
        for ary in (ary1, ary2)
    )
    if [side for side, _ in axes1] != [side for side, _ in axes2]:
        raise ValueError(f"incompatible shape: {ary1.shape} vs. {ary2.shape}")
    if ary1.size and axes1 != axes2:
        raise ValueError(f"incompatible strides: {ary1.strides} vs. {ary2.strides}")
