"""Host and device memory: the functions of ``pycuda.driver`` that allocate, copy and fill."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from . import _arguments, _core
from ._context import Context, ordinal_of
from ._core import (
    DeviceAllocation,
    PagelockedHostAllocation,
    RegisteredHostMemory,
    Stream,
    managed_empty,
    mem_alloc,
    pagelocked_empty,
)
from ._errors import LogicError

# -- host memory --------------------------------------------------------------------------


def pagelocked_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    """A numpy array of zeros in page-locked memory."""
    result = pagelocked_empty(shape, dtype, order, mem_flags)
    result.fill(0)
    return result


def _order(array: Any) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def pagelocked_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """A numpy array like ``array`` in page-locked memory, its elements undefined."""
    _arguments.array("array", array)
    return pagelocked_empty(array.shape, array.dtype, _order(array), mem_flags)


def pagelocked_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """A numpy array of zeros like ``array`` in page-locked memory."""
    _arguments.array("array", array)
    return pagelocked_zeros(array.shape, array.dtype, _order(array), mem_flags)


def _plain(dtype: Any) -> np.dtype:
    """The dtype of elements whose bytes can be copied."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"dtype is {dtype}: its elements are Python objects, not plain bytes")
    return dtype


class HostPointer(ABC):
    """Host memory that was made for copies: the base of the classes of such memory."""

    @abstractmethod
    def free(self) -> None:
        """Ends the use of the memory."""

    def get_device_pointer(self) -> int:
        """Returns the address that kernels use for memory that was mapped.

        Raises
        ------
        LogicError
            The memory is not page-locked.
        """
        raise LogicError("the memory is not page-locked: register_host_memory locks it")


HostPointer.register(PagelockedHostAllocation)
HostPointer.register(RegisteredHostMemory)


class AlignedHostAllocation(HostPointer):
    """Ordinary memory with an aligned address: the base of an array of :func:`aligned_empty`.

    The device address of memory that :func:`register_host_memory` has page-locked is that of the
    object which it returns.
    """

    def __init__(self, size: int, alignment: int) -> None:
        block = np.empty(size + alignment, np.uint8)
        start = -block.ctypes.data % alignment
        self._bytes = block[start : start + size]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._bytes.__array_interface__

    def free(self) -> None:
        """Does nothing: the memory is freed when the last array in it is gone."""


def aligned_empty(
    shape: Any, dtype: Any, order: str | None = "C", alignment: int = 4096
) -> np.ndarray:
    """A numpy array in ordinary memory whose address is a multiple of ``alignment``."""
    alignment = _arguments.whole("alignment", alignment)
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment is {alignment}; a power of two is needed")
    dtype = _plain(dtype)
    size = int(np.prod(shape, dtype=np.intp)) * dtype.itemsize
    memory = np.asarray(AlignedHostAllocation(size, alignment))
    return memory.view(dtype).reshape(shape, order=order)  # type: ignore[call-overload]


def aligned_zeros(
    shape: Any, dtype: Any, order: str | None = "C", alignment: int = 4096
) -> np.ndarray:
    """As :func:`aligned_empty`, filled with zeros."""
    result = aligned_empty(shape, dtype, order, alignment)
    result.fill(0)
    return result


def aligned_empty_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """As :func:`aligned_empty`, with shape, dtype and order of ``array``."""
    _arguments.array("array", array)
    return aligned_empty(array.shape, array.dtype, _order(array), alignment)


def aligned_zeros_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """As :func:`aligned_zeros`, with shape, dtype and order of ``array``."""
    _arguments.array("array", array)
    return aligned_zeros(array.shape, array.dtype, _order(array), alignment)


# -- memory that host and device share -----------------------------------------------------


def managed_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    """A numpy array of zeros in memory that host and device share."""
    result = managed_empty(shape, dtype, order, mem_flags)
    result.fill(0)
    return result


def managed_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """A numpy array like ``array`` in memory that host and device share."""
    _arguments.array("array", array)
    return managed_empty(array.shape, array.dtype, _order(array), mem_flags)


def managed_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """A numpy array of zeros like ``array`` in memory that host and device share."""
    _arguments.array("array", array)
    return managed_zeros(array.shape, array.dtype, _order(array), mem_flags)


# -- device memory ------------------------------------------------------------------------


class PointerHolderBase:
    """The base of a program's own allocations: a subclass has ``get_pointer``, which gives the
    device address."""

    def get_pointer(self) -> int:
        """The device address."""
        raise NotImplementedError(f"{type(self).__name__} has no get_pointer")

    def __int__(self) -> int:
        return self.get_pointer()

    def __index__(self) -> int:
        return self.get_pointer()

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """A memoryview of the memory for libraries that take device addresses as buffers."""
        return _core.address_as_buffer(self.get_pointer() + offset, size, self)


def mem_alloc_like(ary: Any) -> DeviceAllocation:
    """Device memory for as many bytes as an array has."""
    return mem_alloc(_arguments.array("ary", ary).nbytes)


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copies host memory to the device."""
    _core.copy_to_device(dest, src, None, True)


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of host memory to the device."""
    _core.copy_to_device(dest, src, stream, False)


def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copies device memory to the host."""
    _core.copy_to_host(dest, src, None, True)


def memcpy_dtoh_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of device memory to the host."""
    _core.copy_to_host(dest, src, stream, False)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copies ``size`` bytes inside device memory."""
    _core.copy_on_device(dest, src, size, None, True)


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    """Queues a copy of ``size`` bytes inside device memory."""
    _core.copy_on_device(dest, src, size, stream, False)


def memcpy_peer(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
) -> None:
    """Copies ``size`` bytes from one context's memory to another's; the current one's where
    none is given."""
    _core.copy_between_devices(
        dest,
        ordinal_of("dest_context", dest_context),
        src,
        ordinal_of("src_context", src_context),
        size,
        None,
        True,
    )


def memcpy_peer_async(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
    stream: Stream | None = None,
) -> None:
    """As :func:`memcpy_peer`, queued on a stream."""
    _core.copy_between_devices(
        dest,
        ordinal_of("dest_context", dest_context),
        src,
        ordinal_of("src_context", src_context),
        size,
        stream,
        False,
    )


def _unsigned(data: int, width: int) -> int:
    data = _arguments.whole("data", data)
    limit = 1 << (8 * width)
    if not -(limit >> 1) <= data < limit:
        raise OverflowError(f"data is {data}; it must fit {8 * width} bits")
    return data % limit


def _memset(dest: Any, data: int, width: int, count: int, stream: Any) -> None:
    count = _arguments.whole("count", count)
    if count < 0:
        raise LogicError(f"count is {count}; it must not be negative")
    _core.fill_memory(dest, _unsigned(data, width), width, count, stream)


def memset_d8(dest: Any, data: int, count: int) -> None:
    """Fills ``count`` bytes."""
    _memset(dest, data, 1, count, None)


def memset_d16(dest: Any, data: int, count: int) -> None:
    """Fills ``count`` elements of 16 bits."""
    _memset(dest, data, 2, count, None)


def memset_d32(dest: Any, data: int, count: int) -> None:
    """Fills ``count`` elements of 32 bits."""
    _memset(dest, data, 4, count, None)


def memset_d8_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of ``count`` bytes."""
    _memset(dest, data, 1, count, stream)


def memset_d16_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of ``count`` elements of 16 bits."""
    _memset(dest, data, 2, count, stream)


def memset_d32_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of ``count`` elements of 32 bits."""
    _memset(dest, data, 4, count, stream)


def _memset_rows(
    dest: Any, pitch: int, data: int, element: int, width: int, height: int, stream: Any
) -> None:
    pitch = _arguments.whole("pitch", pitch)
    width, height = _arguments.whole("width", width), _arguments.whole("height", height)
    if min(pitch, width, height) < 0:
        raise LogicError(
            f"pitch is {pitch}, width {width} and height {height}; none may be negative"
        )
    _core.fill_rows(dest, pitch, _unsigned(data, element), element, width, height, stream)


def memset_d2d8(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills ``height`` rows of ``width`` bytes, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 1, width, height, None)


def memset_d2d16(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills ``height`` rows of ``width`` elements of 16 bits, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 2, width, height, None)


def memset_d2d32(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills ``height`` rows of ``width`` elements of 32 bits, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 4, width, height, None)


def memset_d2d8_async(
    dest: Any, pitch: int, data: int, width: int, height: int, stream: Stream | None = None
) -> None:
    """Queues a fill of ``height`` rows of ``width`` bytes, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 1, width, height, stream)


def memset_d2d16_async(
    dest: Any, pitch: int, data: int, width: int, height: int, stream: Stream | None = None
) -> None:
    """Queues a fill of ``height`` rows of ``width`` elements of 16 bits, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 2, width, height, stream)


def memset_d2d32_async(
    dest: Any, pitch: int, data: int, width: int, height: int, stream: Stream | None = None
) -> None:
    """Queues a fill of ``height`` rows of ``width`` elements of 32 bits, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 4, width, height, stream)


def to_device(bf_obj: Any) -> DeviceAllocation:
    """New device memory with the bytes of an object."""
    _core.check_host_memory("bf_obj", bf_obj, False)
    result = mem_alloc(memoryview(bf_obj).nbytes)
    memcpy_htod(result, bf_obj)
    return result


def from_device(devptr: Any, shape: Any, dtype: Any, order: str | None = "C") -> np.ndarray:
    """The bytes at a device address as a numpy array."""
    result = np.empty(shape, _plain(dtype), order)  # type: ignore[call-overload, arg-type]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> np.ndarray:
    """Returns the bytes at a device address as a numpy array with the shape, dtype and order of
    another array, which may be a :class:`~pygpu.gpuarray.GPUArray`."""
    dtype = _plain(_arguments.array("other_ary", other_ary).dtype)
    if not isinstance(other_ary, np.ndarray):
        # Nobody reads the elements: numpy takes shape and order from it.
        other_ary = np.lib.stride_tricks.as_strided(
            np.empty((), dtype), other_ary.shape, other_ary.strides
        )
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result
