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
    """Returns a numpy array of zeros in page-locked memory.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    mem_flags : int
        Values of `driver.host_alloc_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Notes
    -----
    The driver's function is ``cuMemHostAlloc``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.pagelocked_zeros(2, np.float32)
    array([0., 0.], dtype=float32)
    """
    result = pagelocked_empty(shape, dtype, order, mem_flags)
    result.fill(0)
    return result


def _order(array: Any) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def pagelocked_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array like another in page-locked memory, its elements undefined.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        Values of `driver.host_alloc_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.pagelocked_empty_like(np.zeros((2, 3))).shape
    (2, 3)
    """
    _arguments.array("array", array)
    return pagelocked_empty(array.shape, array.dtype, _order(array), mem_flags)


def pagelocked_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array of zeros like another in page-locked memory.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        Values of `driver.host_alloc_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.pagelocked_zeros_like(np.ones(2))
    array([0., 0.])
    """
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
    """Returns a numpy array in ordinary memory with an aligned address, its elements undefined.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_empty(3, np.int8).ctypes.data % 4096
    0
    """
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
    """Returns a numpy array of zeros in ordinary memory with an aligned address.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_zeros(2, np.int64)
    array([0, 0])
    """
    result = aligned_empty(shape, dtype, order, alignment)
    result.fill(0)
    return result


def aligned_empty_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """Returns a numpy array like another with an aligned address, its elements undefined.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_empty_like(np.zeros(3)).shape
    (3,)
    """
    _arguments.array("array", array)
    return aligned_empty(array.shape, array.dtype, _order(array), alignment)


def aligned_zeros_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """Returns a numpy array of zeros like another with an aligned address.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    alignment : int
        What the address is a multiple of, in bytes.

    Returns
    -------
    numpy.ndarray
        An array whose `base` is an :class:`AlignedHostAllocation`.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.aligned_zeros_like(np.ones(2))
    array([0., 0.])
    """
    _arguments.array("array", array)
    return aligned_zeros(array.shape, array.dtype, _order(array), alignment)


# -- memory that host and device share -----------------------------------------------------


def managed_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    """Returns a numpy array of zeros in memory that host and device share.

    Parameters
    ----------
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.
    mem_flags : int
        A value of `driver.mem_attach_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Notes
    -----
    The driver's function is ``cuMemAllocManaged``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = driver.managed_zeros(2, np.int64, mem_flags=driver.mem_attach_flags.GLOBAL)
    >>> driver.Context.synchronize()
    >>> a
    array([0, 0])
    """
    result = managed_empty(shape, dtype, order, mem_flags)
    result.fill(0)
    return result


def managed_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array like another in memory that host and device share.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        A value of `driver.mem_attach_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory; its elements are undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = driver.managed_empty_like(np.zeros(3), driver.mem_attach_flags.GLOBAL)
    >>> driver.Context.synchronize()
    >>> a.shape
    (3,)
    """
    _arguments.array("array", array)
    return managed_empty(array.shape, array.dtype, _order(array), mem_flags)


def managed_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """Returns a numpy array of zeros like another in memory that host and device share.

    Parameters
    ----------
    array : numpy.ndarray
        What has the shape, the dtype and the order.
    mem_flags : int
        A value of `driver.mem_attach_flags`.

    Returns
    -------
    numpy.ndarray
        An array whose `base` owns the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = driver.managed_zeros_like(np.ones(2), driver.mem_attach_flags.GLOBAL)
    >>> driver.Context.synchronize()
    >>> a
    array([0., 0.])
    """
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
    """Allocates device memory for as many bytes as an array has.

    Parameters
    ----------
    ary : numpy.ndarray or GPUArray
        What has the number of bytes.

    Returns
    -------
    DeviceAllocation
        The memory, its bytes undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.mem_alloc_like(np.zeros(4, np.float32)).size
    16
    """
    return mem_alloc(_arguments.array("ary", ary).nbytes)


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copies host memory to the device.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    src : numpy.ndarray or buffer
        The host memory, contiguous.

    Raises
    ------
    LogicError
        The device memory is smaller than the host memory.

    Notes
    -----
    The call returns when `src` may be changed. The driver's function is ``cuMemcpyHtoD``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = np.arange(3)
    >>> memory = driver.mem_alloc(a.nbytes)
    >>> driver.memcpy_htod(memory, a)
    >>> driver.from_device(memory, 3, np.int64)
    array([0, 1, 2])
    """
    _core.copy_to_device(dest, src, None, True)


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of host memory to the device.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    src : numpy.ndarray or buffer
        The host memory, contiguous.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Raises
    ------
    LogicError
        The device memory is smaller than the host memory.

    Notes
    -----
    Page-locked memory may be changed when the stream has reached the end of the copy, other memory
    when the call returns. The driver's function is ``cuMemcpyHtoDAsync``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = np.arange(3)
    >>> memory = driver.mem_alloc(a.nbytes)
    >>> stream = driver.Stream()
    >>> driver.memcpy_htod_async(memory, a, stream)
    >>> stream.synchronize()
    """
    _core.copy_to_device(dest, src, stream, False)


def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copies device memory to the host, and waits for it.

    Parameters
    ----------
    dest : numpy.ndarray or buffer
        The host memory, contiguous and writable.
    src : DeviceAllocation, GPUArray or int
        The device memory.

    Raises
    ------
    LogicError
        The device memory is smaller than the host memory.

    Notes
    -----
    The driver's function is ``cuMemcpyDtoH``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> a = np.empty(3, np.int64)
    >>> driver.memcpy_dtoh(a, memory)
    >>> a
    array([0, 1, 2])
    """
    _core.copy_to_host(dest, src, None, True)


def memcpy_dtoh_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of device memory to the host.

    Parameters
    ----------
    dest : numpy.ndarray or buffer
        The host memory, contiguous and writable.
    src : DeviceAllocation, GPUArray or int
        The device memory.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Raises
    ------
    LogicError
        The device memory is smaller than the host memory.

    Notes
    -----
    Page-locked memory has the bytes when the stream has reached the end of the copy, other memory
    when the call returns. The driver's function is ``cuMemcpyDtoHAsync``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> a = driver.pagelocked_empty(3, np.int64)
    >>> stream = driver.Stream()
    >>> driver.memcpy_dtoh_async(a, memory, stream)
    >>> stream.synchronize()
    >>> a
    array([0, 1, 2])
    """
    _core.copy_to_host(dest, src, stream, False)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copies bytes inside device memory.

    Parameters
    ----------
    dest, src : DeviceAllocation, GPUArray or int
        The device memory.
    size : int
        The number of bytes.

    Notes
    -----
    The driver's function is ``cuMemcpyDtoD``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> src = driver.to_device(np.arange(3))
    >>> dest = driver.mem_alloc(24)
    >>> driver.memcpy_dtod(dest, src, 24)
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """
    _core.copy_on_device(dest, src, size, None, True)


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    """Queues a copy of bytes inside device memory.

    Parameters
    ----------
    dest, src : DeviceAllocation, GPUArray or int
        The device memory.
    size : int
        The number of bytes.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemcpyDtoDAsync``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> src = driver.to_device(np.arange(3))
    >>> dest = driver.mem_alloc(24)
    >>> driver.memcpy_dtod_async(dest, src, 24, driver.Stream())
    """
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
    """Fills device memory with bytes of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    data : int
        The value of each element.
    count : int
        The number of bytes.

    Notes
    -----
    The driver's function is ``cuMemsetD8``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.mem_alloc(3)
    >>> driver.memset_d8(memory, 7, 3)
    >>> driver.from_device(memory, 3, np.uint8)
    array([7, 7, 7], dtype=uint8)
    """
    _memset(dest, data, 1, count, None)


def memset_d16(dest: Any, data: int, count: int) -> None:
    """Fills device memory with elements of 16 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    data : int
        The value of each element.
    count : int
        The number of elements of 16 bits.

    Notes
    -----
    The driver's function is ``cuMemsetD16``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.mem_alloc(6)
    >>> driver.memset_d16(memory, 7, 3)
    >>> driver.from_device(memory, 3, np.uint16)
    array([7, 7, 7], dtype=uint16)
    """
    _memset(dest, data, 2, count, None)


def memset_d32(dest: Any, data: int, count: int) -> None:
    """Fills device memory with elements of 32 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    data : int
        The value of each element.
    count : int
        The number of elements of 32 bits.

    Notes
    -----
    The driver's function is ``cuMemsetD32``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.mem_alloc(12)
    >>> driver.memset_d32(memory, 7, 3)
    >>> driver.from_device(memory, 3, np.uint32)
    array([7, 7, 7], dtype=uint32)
    """
    _memset(dest, data, 4, count, None)


def memset_d8_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of device memory with bytes of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    data : int
        The value of each element.
    count : int
        The number of bytes.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemsetD8Async``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.mem_alloc(3)
    >>> driver.memset_d8_async(memory, 7, 3, driver.Stream())
    >>> driver.from_device(memory, 3, np.uint8)
    array([7, 7, 7], dtype=uint8)
    """
    _memset(dest, data, 1, count, stream)


def memset_d16_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of device memory with elements of 16 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    data : int
        The value of each element.
    count : int
        The number of elements of 16 bits.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemsetD16Async``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.mem_alloc(6)
    >>> driver.memset_d16_async(memory, 7, 3, driver.Stream())
    >>> driver.from_device(memory, 3, np.uint16)
    array([7, 7, 7], dtype=uint16)
    """
    _memset(dest, data, 2, count, stream)


def memset_d32_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of device memory with elements of 32 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    data : int
        The value of each element.
    count : int
        The number of elements of 32 bits.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemsetD32Async``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.mem_alloc(12)
    >>> driver.memset_d32_async(memory, 7, 3, driver.Stream())
    >>> driver.from_device(memory, 3, np.uint32)
    array([7, 7, 7], dtype=uint32)
    """
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
    """Fills rows of device memory with bytes of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    pitch : int
        The bytes from one row to the next.
    data : int
        The value of each element.
    width : int
        The number of bytes of a row.
    height : int
        The number of rows.

    Notes
    -----
    The driver's function is ``cuMemsetD2D8``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory, pitch = driver.mem_alloc_pitch(3, 2, 4)
    >>> driver.memset_d2d8(memory, pitch, 7, 3, 2)
    >>> driver.from_device(memory, 3, np.uint8)
    array([7, 7, 7], dtype=uint8)
    """
    _memset_rows(dest, pitch, data, 1, width, height, None)


def memset_d2d16(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills rows of device memory with elements of 16 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    pitch : int
        The bytes from one row to the next.
    data : int
        The value of each element.
    width : int
        The number of elements of 16 bits of a row.
    height : int
        The number of rows.

    Notes
    -----
    The driver's function is ``cuMemsetD2D16``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory, pitch = driver.mem_alloc_pitch(6, 2, 4)
    >>> driver.memset_d2d16(memory, pitch, 7, 3, 2)
    >>> driver.from_device(memory, 3, np.uint16)
    array([7, 7, 7], dtype=uint16)
    """
    _memset_rows(dest, pitch, data, 2, width, height, None)


def memset_d2d32(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills rows of device memory with elements of 32 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    pitch : int
        The bytes from one row to the next.
    data : int
        The value of each element.
    width : int
        The number of elements of 32 bits of a row.
    height : int
        The number of rows.

    Notes
    -----
    The driver's function is ``cuMemsetD2D32``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory, pitch = driver.mem_alloc_pitch(12, 2, 4)
    >>> driver.memset_d2d32(memory, pitch, 7, 3, 2)
    >>> driver.from_device(memory, 3, np.uint32)
    array([7, 7, 7], dtype=uint32)
    """
    _memset_rows(dest, pitch, data, 4, width, height, None)


def memset_d2d8_async(
    dest: Any, pitch: int, data: int, width: int, height: int, stream: Stream | None = None
) -> None:
    """Queues a fill of rows of device memory with bytes of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    pitch : int
        The bytes from one row to the next.
    data : int
        The value of each element.
    width : int
        The number of bytes of a row.
    height : int
        The number of rows.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemsetD2D8Async``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory, pitch = driver.mem_alloc_pitch(3, 2, 4)
    >>> driver.memset_d2d8_async(memory, pitch, 7, 3, 2, driver.Stream())
    >>> driver.from_device(memory, 3, np.uint8)
    array([7, 7, 7], dtype=uint8)
    """
    _memset_rows(dest, pitch, data, 1, width, height, stream)


def memset_d2d16_async(
    dest: Any, pitch: int, data: int, width: int, height: int, stream: Stream | None = None
) -> None:
    """Queues a fill of rows of device memory with elements of 16 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    pitch : int
        The bytes from one row to the next.
    data : int
        The value of each element.
    width : int
        The number of elements of 16 bits of a row.
    height : int
        The number of rows.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemsetD2D16Async``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory, pitch = driver.mem_alloc_pitch(6, 2, 4)
    >>> driver.memset_d2d16_async(memory, pitch, 7, 3, 2, driver.Stream())
    >>> driver.from_device(memory, 3, np.uint16)
    array([7, 7, 7], dtype=uint16)
    """
    _memset_rows(dest, pitch, data, 2, width, height, stream)


def memset_d2d32_async(
    dest: Any, pitch: int, data: int, width: int, height: int, stream: Stream | None = None
) -> None:
    """Queues a fill of rows of device memory with elements of 32 bits of one value.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    pitch : int
        The bytes from one row to the next.
    data : int
        The value of each element.
    width : int
        The number of elements of 32 bits of a row.
    height : int
        The number of rows.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Notes
    -----
    The driver's function is ``cuMemsetD2D32Async``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory, pitch = driver.mem_alloc_pitch(12, 2, 4)
    >>> driver.memset_d2d32_async(memory, pitch, 7, 3, 2, driver.Stream())
    >>> driver.from_device(memory, 3, np.uint32)
    array([7, 7, 7], dtype=uint32)
    """
    _memset_rows(dest, pitch, data, 4, width, height, stream)


def to_device(bf_obj: Any) -> DeviceAllocation:
    """Allocates device memory for the bytes of an object, and copies them there.

    Parameters
    ----------
    bf_obj : numpy.ndarray or buffer
        The host memory, contiguous.

    Returns
    -------
    DeviceAllocation
        New memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.to_device(np.arange(3)).size
    24
    """
    _core.check_host_memory("bf_obj", bf_obj, False)
    result = mem_alloc(memoryview(bf_obj).nbytes)
    memcpy_htod(result, bf_obj)
    return result


def from_device(devptr: Any, shape: Any, dtype: Any, order: str | None = "C") -> np.ndarray:
    """Copies bytes at a device address to a new numpy array.

    Parameters
    ----------
    devptr : DeviceAllocation, GPUArray or int
        The device memory.
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.

    Returns
    -------
    numpy.ndarray
        A new array.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> driver.from_device(memory, 3, np.int64)
    array([0, 1, 2])
    """
    result = np.empty(shape, _plain(dtype), order)  # type: ignore[call-overload, arg-type]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> np.ndarray:
    """Copies bytes at a device address to a new numpy array like another.

    Parameters
    ----------
    devptr : DeviceAllocation, GPUArray or int
        The device memory.
    other_ary : numpy.ndarray or GPUArray
        What has the shape, the dtype and the order.

    Returns
    -------
    numpy.ndarray
        A new array.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> driver.from_device_like(memory, np.empty(3, np.int64))
    array([0, 1, 2])
    """
    dtype = _plain(_arguments.array("other_ary", other_ary).dtype)
    if not isinstance(other_ary, np.ndarray):
        # Nobody reads the elements: numpy takes shape and order from it.
        other_ary = np.lib.stride_tricks.as_strided(
            np.empty((), dtype), other_ary.shape, other_ary.strides
        )
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result
