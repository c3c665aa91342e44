"""Copies and fills by pointers, as numba's driver module has them."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import GPUArray
from .._exchange.protocols import extent
from ._memory_info import device_memory_size, device_pointer, host_array, require_device_memory
from ._pointer import BYTE, stream_or_none


def _bytes_of(name: str, obj: Any, size: int) -> Any:
    """Returns ``size`` bytes of host memory as an array without axes but one."""
    array = host_array(obj)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError(f"{name} is not contiguous; a contiguous array is needed")
    flat = array.reshape(-1, order="A").view(BYTE) if array.ndim else array.reshape(1).view(BYTE)
    if not 0 <= size <= flat.size:
        raise ValueError(f"size is {size}; {name} has {flat.size} bytes")
    return flat[:size]


def _device_bytes(name: str, obj: Any, size: int) -> GPUArray:
    require_device_memory(obj)
    available = device_memory_size(obj)
    if not 0 <= size <= available:
        raise ValueError(f"size is {size}; {name} has {available} bytes")
    if isinstance(obj, GPUArray):
        low, _ = extent(obj.shape, obj.strides, obj.itemsize)
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
    """Copies bytes from the host to device memory (``cuMemcpyHtoD``, ``cuMemcpyHtoDAsync``).

    Parameters
    ----------
    dst : device array or MemoryPointer
        The device memory.
    src : numpy.ndarray or buffer
        The host memory, contiguous.
    size : int
        The number of bytes.
    stream : Stream or 0
        Where the copy is queued; without one it has run when the call returns.

    Raises
    ------
    TypeError
        ``dst`` is no device memory.
    ValueError
        Either side has fewer bytes, or ``src`` has gaps.

    Examples
    --------
    >>> from pygpu import cuda
    >>> array = cuda.device_array(3, "u1")
    >>> host_to_device(array, bytes([1, 2, 3]), 3)
    >>> array.copy_to_host()
    array([1, 2, 3], dtype=uint8)
    """
    _device_bytes("dst", dst, size).set(
        _bytes_of("src", src, size), async_=bool(stream), stream=stream_or_none(stream)
    )


def device_to_host(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copies bytes from device memory to the host (``cuMemcpyDtoH``, ``cuMemcpyDtoHAsync``).

    Parameters
    ----------
    dst : numpy.ndarray or buffer
        The host memory, contiguous and writable.
    src : device array or MemoryPointer
        The device memory.
    size : int
        The number of bytes.
    stream : Stream or 0
        Where the copy is queued; without one it has run when the call returns.

    Raises
    ------
    TypeError
        ``src`` is no device memory.
    ValueError
        Either side has fewer bytes, or ``dst`` has gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import cuda
    >>> host = np.zeros(3, "u1")
    >>> device_to_host(host, cuda.to_device(np.arange(3, dtype="u1")), 3)
    >>> host
    array([0, 1, 2], dtype=uint8)
    """
    _device_bytes("src", src, size).get(
        _bytes_of("dst", dst, size), async_=bool(stream), stream=stream_or_none(stream)
    )


def device_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copies bytes inside device memory, in a stream's order (``cuMemcpyDtoDAsync``).

    Parameters
    ----------
    dst, src : device array or MemoryPointer
        The device memory.
    size : int
        The number of bytes.
    stream : Stream or 0
        Where the copy is queued.

    Raises
    ------
    TypeError
        ``dst`` or ``src`` is no device memory.
    ValueError
        Either side has fewer bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import cuda
    >>> source, target = cuda.to_device(np.arange(3)), cuda.device_array(3, int)
    >>> device_to_device(target, source, 24)
    >>> target.copy_to_host()
    array([0, 1, 2])
    """
    target, source = _device_bytes("dst", dst, size), _device_bytes("src", src, size)
    copy_elements(target, source, stream)


def copy_elements(target: GPUArray, source: GPUArray, stream: Any = 0) -> None:
    """Copies between arrays with the same strides and without gaps, in a stream's order."""
    _, size = extent(target.shape, target.strides, target.itemsize)
    if size:
        _core.copy_on_device(target, source, size, stream_or_none(stream), False)


def device_memset(dst: Any, val: int, size: int, stream: Any = 0) -> None:
    """Sets bytes of device memory (``cuMemsetD8``, ``cuMemsetD8Async``).

    Parameters
    ----------
    dst : device array or MemoryPointer
        The device memory.
    val : int
        The byte; of larger numbers the lowest eight bits.
    size : int
        The number of bytes.
    stream : Stream or 0
        Where the work is queued; without one it has run when the call returns.

    Raises
    ------
    TypeError
        ``dst`` is no device memory.
    ValueError
        There are fewer bytes.

    Examples
    --------
    >>> from pygpu import cuda
    >>> array = cuda.device_array(3, "u1")
    >>> device_memset(array, 7, 3)
    >>> array.copy_to_host()
    array([7, 7, 7], dtype=uint8)
    """
    _device_bytes("dst", dst, size).fill(val & 0xFF, stream_or_none(stream))
    if not stream:
        _core.synchronize()
