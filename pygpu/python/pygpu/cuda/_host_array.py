"""Page-locked, mapped and managed host memory as numpy's arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from .. import _core
from .._arguments import wrong_type
from .._exchange import protocols
from .._exchange.protocols import extent
from . import _devices
from ._array import DeviceNDArray
from ._layout import prepare, strides_like
from ._memory import DeviceAddress, bytes_spanned, host_memory_extents, memory_size_from_info

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "pinned",
    "pinned_array",
    "pinned_array_like",
]


class DeviceVisibleNDArray(np.ndarray):
    """A numpy array in memory that the device uses, too; views of it are of this class."""

    gpu_data: Any = None
    stream: Any = 0

    def __array_finalize__(self, source: Any) -> None:
        self.gpu_data = getattr(source, "gpu_data", None)
        self.stream = getattr(source, "stream", 0)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        # Results lie in ordinary memory, and are numpy's.
        if array is self:
            return self
        return array[()] if return_scalar else np.asarray(array)

    def device_setup(self, gpu_data: Any, stream: Any = 0) -> None:
        """Sets the memory that the array lies in, ``gpu_data``, which ``memhostalloc`` or
        ``memallocmanaged`` returned, and the ``stream`` of its users.
        """
        self.gpu_data = gpu_data
        self.stream = stream

    @property
    def device_ctypes_pointer(self) -> DeviceAddress:
        """The address of the first element on the device, as an object of ctypes; a copy in
        ordinary memory has none, and raises AttributeError."""
        memory = self.gpu_data
        if memory is not None and not self.size:
            return DeviceAddress(0)
        offset = None if memory is None else self.ctypes.data - memory.ctypes.data
        if offset is None or not 0 <= offset <= memory.size or not memory.size:
            raise AttributeError("the array does not lie in memory that a device uses")
        return DeviceAddress(memory.device_ctypes_pointer.value + offset)

    # numba's own mark would have numba take the array for one of its class.
    @property
    def _is_device_memory(self) -> bool:
        return hasattr(self, "device_ctypes_pointer")

    @property
    def _cuda_memsize_(self) -> int:
        return bytes_spanned(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array as other libraries use it on the device."""
        address = self.device_ctypes_pointer.value if self.size else 0
        stream = int(self.stream) if self.stream else None
        return protocols.describe(self, address, stream, not self.flags.writeable)

    def is_c_contiguous(self) -> bool:
        """Returns True if the elements follow each other in C order."""
        return self.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        """Returns True if the elements follow each other in Fortran order."""
        return self.flags.f_contiguous

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """Copies the elements to ``ary``, a numpy array that they broadcast to, or to a new one,
        once the work of ``stream``, of the array's own or of the device has run.
        """
        (stream or self.stream or _devices.current_context()).synchronize()
        if ary is None:
            return np.array(self, subok=False)
        ary[...] = self
        return ary


class MappedNDArray(DeviceVisibleNDArray):
    """A numpy array in page-locked host memory that kernels use, too: what
    :func:`pygpu.cuda.mapped_array` returns.

    Arguments are as in :class:`numpy.ndarray`.

    >>> array = mapped_array(3)
    >>> array[:] = 7
    >>> array.copy_to_host()
    array([7., 7., 7.])
    """


class ManagedNDArray(DeviceVisibleNDArray):
    """A numpy array in memory that moves to where it is used, host or device: what
    :func:`pygpu.cuda.managed_array` returns.

    Arguments are as in :class:`numpy.ndarray`.

    >>> from pygpu import cuda
    >>> array = cuda.managed_array(3)
    >>> array[:] = 7
    >>> array.is_c_contiguous(), array.is_f_contiguous()
    (True, True)
    >>> array.copy_to_host()
    array([7., 7., 7.])
    >>> array.device_setup(array.gpu_data, cuda.stream())
    """


_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])


def _made(kind: type[_Array], allocate: Callable[[int], Any], *layout: Any) -> tuple[_Array, Any]:
    """Returns an array of a class in new memory, and the memory."""
    shape, strides, dtype = prepare(*layout)
    memory = allocate(memory_size_from_info(shape, strides, dtype.itemsize))
    low, _ = extent(shape, strides, dtype.itemsize)
    return kind(shape, dtype, memory.view(np.ndarray), -low, strides), memory


def pinned_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
) -> np.ndarray[Any, Any]:
    """Returns a new numpy array in page-locked memory, whose copies can be asynchronous.

    Its elements are undefined. Arguments are as in :func:`pygpu.cuda.device_array`.

    >>> array = pinned_array((2, 3))
    >>> array[:] = 1
    >>> array.sum()
    np.float64(6.0)
    """
    allocate = _devices.current_context().memhostalloc
    return _made(np.ndarray, allocate, shape, strides, dtype, order)[0]


def mapped_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
    stream: Any = 0,
    portable: bool = False,
    wc: bool = False,
) -> MappedNDArray:
    """Returns a new numpy array in page-locked memory that kernels use, too, on ``stream``.

    All devices can use it if it is ``portable``; if it is write-combined (``wc``), it is faster to
    write on the host, and slow to read there. Other arguments are as in
    :func:`pygpu.cuda.device_array`.

    >>> from pygpu import cuda
    >>> array = cuda.mapped_array(3, dtype="i4")
    >>> array[:] = 1
    >>> cuda.as_cuda_array(array).fill(2).get()
    array([2, 2, 2], dtype=int32)
    >>> cuda.synchronize()
    >>> array.sum()
    np.int64(6)
    """
    context = _devices.current_context()
    allocate = lambda nbytes: context.memhostalloc(nbytes, True, portable, wc)  # noqa: E731
    result, memory = _made(MappedNDArray, allocate, shape, strides, dtype, order)
    result.device_setup(memory, stream)
    return result


def managed_array(
    shape: int | Sequence[int],
    dtype: DTypeLike = np.float64,
    strides: int | Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
    stream: Any = 0,
    attach_global: bool = True,
) -> ManagedNDArray:
    """Returns a new numpy array in managed memory, which the host and kernels use.

    Any stream can use it if ``attach_global`` is True, else the host first. Other arguments are as
    in :func:`mapped_array`. Raises ``pygpu.driver.Unsupported`` if the device has no managed
    memory.

    >>> from pygpu import cuda
    >>> array = cuda.managed_array(3, dtype="i4")
    >>> cuda.as_cuda_array(array).fill(2).get()
    array([2, 2, 2], dtype=int32)
    """
    context = _devices.current_context()
    allocate = lambda nbytes: context.memallocmanaged(nbytes, attach_global)  # noqa: E731
    result, memory = _made(ManagedNDArray, allocate, shape, strides, dtype, order)
    result.device_setup(memory, stream)
    return result


def pinned_array_like(ary: Any) -> np.ndarray[Any, Any]:
    """Returns a new page-locked array with the shape, dtype and order of axes of ``ary``.

    >>> from pygpu import cuda
    >>> cuda.pinned_array_like(cuda.device_array((2, 3))).shape
    (2, 3)
    """
    return pinned_array(ary.shape, ary.dtype, *strides_like(ary))


def mapped_array_like(
    ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False
) -> MappedNDArray:
    """Returns a new mapped array with the shape, dtype and order of axes of ``ary``.

    Other arguments are as in :func:`mapped_array`.

    >>> from pygpu import cuda
    >>> cuda.mapped_array_like(cuda.device_array((2, 3))).shape
    (2, 3)
    """
    return mapped_array(ary.shape, ary.dtype, *strides_like(ary), stream, portable, wc)


def _pin(ary: Any, mapped: bool) -> Any:
    if not isinstance(ary, np.ndarray):
        raise wrong_type("an argument", ary, "numpy arrays are needed")
    start, end = host_memory_extents(ary)
    return _devices.current_context().mempin(ary, start, end - start, mapped)


@contextlib.contextmanager
def pinned(*arylist: np.ndarray[Any, Any]) -> Iterator[None]:
    """Page-locks the numpy arrays ``*arylist`` for the ``with`` block.

    >>> from pygpu import cuda
    >>> host, stream = np.arange(1000.0), cuda.stream()
    >>> with cuda.pinned(host), stream.auto_synchronize():
    ...     device = cuda.to_device(host, stream=stream)
    >>> device[999]
    np.float64(999.0)
    """
    with contextlib.ExitStack() as stack:
        for ary in arylist:
            stack.callback(_pin(ary, False).free)
        yield


@contextlib.contextmanager
def mapped(*arylist: np.ndarray[Any, Any], stream: Any = 0) -> Iterator[Any]:
    """Lets kernels use the numpy arrays ``*arylist`` for the ``with`` block, as device arrays on
    ``stream``: one, or a list.

    Uses after the block raise ``LogicError``; so does its end while another library's array or a
    buffer still uses an array, which stays mapped.

    >>> from pygpu import cuda
    >>> host = np.arange(3.0)
    >>> with cuda.mapped(host) as device:
    ...     _ = device.fill(7)
    ...     cuda.synchronize()
    >>> host
    array([7., 7., 7.])
    """
    with contextlib.ExitStack() as stack:
        arrays = []
        for ary in arylist:
            memory = _pin(ary, True)
            start, _ = host_memory_extents(ary)
            address = memory.device_ctypes_pointer.value + ary.ctypes.data - start
            source = _Address(address, memory)
            arrays.append(DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, source))
            stack.callback(_unmap, arrays[-1], memory)
        yield arrays[0] if len(arrays) == 1 else arrays


def _unmap(array: DeviceNDArray, memory: Any) -> None:
    """Ends the uses of a mapped array, and its mapping."""
    _core.end_foreign_memory(array)
    memory.free()


class _Address:
    """An address on the device, and the host memory that it stands for."""

    def __init__(self, address: int, memory: Any) -> None:
        self.device_ctypes_pointer = DeviceAddress(address)
        self.memory = memory
