"""Fills of device memory: the functions of ``pycuda.driver``."""

from __future__ import annotations

from typing import Any

from .. import _arguments, _core
from .._core import Stream
from .._errors import LogicError


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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``data`` or ``count`` is no whole number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 8 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``data`` or ``count`` is no whole number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 16 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``data`` or ``count`` is no whole number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 32 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``data`` or ``count`` is no whole number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 8 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``data`` or ``count`` is no whole number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 16 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``data`` or ``count`` is no whole number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 32 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``pitch``, ``data``, ``width`` or ``height`` is no whole
        number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 8 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``pitch``, ``data``, ``width`` or ``height`` is no whole
        number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 16 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``pitch``, ``data``, ``width`` or ``height`` is no whole
        number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 32 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``pitch``, ``data``, ``width`` or ``height`` is no whole
        number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 8 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``pitch``, ``data``, ``width`` or ``height`` is no whole
        number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 16 bits.

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

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``pitch``, ``data``, ``width`` or ``height`` is no whole
        number.
    LogicError
        The allocation has fewer bytes, or has been freed.
    OverflowError
        The value does not fit 32 bits.

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
