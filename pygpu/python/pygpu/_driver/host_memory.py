"""Host memory that a device can reach, as numpy arrays: the functions of ``pycuda.driver``."""

from __future__ import annotations

import ctypes
import math
import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .. import _arguments
from .._arguments import plain_dtype
from .._core import PagelockedHostAllocation, RegisteredHostMemory, managed_empty, pagelocked_empty
from .._documentation import documented
from .._errors import LogicError


class HostPointer(ABC):
    """Host memory for copies: the base of page-locked, registered and aligned allocations.

    >>> array = driver.pagelocked_empty(3, np.float32)
    >>> isinstance(array.base, driver.HostPointer)
    True
    >>> array.base.get_device_pointer() != 0
    True
    >>> pinned = array.base
    >>> del array
    >>> pinned.free()
    """

    @abstractmethod
    def free(self) -> None:
        """Ends the use of the memory."""

    def get_device_pointer(self) -> int:
        """Returns the address that kernels use for memory that was mapped."""
        raise LogicError("the memory is not page-locked: register_host_memory locks it")


HostPointer.register(PagelockedHostAllocation)
HostPointer.register(RegisteredHostMemory)


class AlignedHostAllocation(HostPointer):
    """Ordinary memory, ``size`` bytes at a multiple of ``alignment``: :func:`aligned_empty`'s base.

    :func:`register_host_memory` page-locks it, and returns an array whose base has the device
    address.

    >>> memory = driver.AlignedHostAllocation(100, 4096)
    >>> array = np.asarray(memory)
    >>> array.nbytes, array.ctypes.data % 4096
    (100, 0)
    >>> memory.free()
    >>> memory.get_device_pointer()
    Traceback (most recent call last):
        ...
    pygpu._errors.LogicError: the memory is not page-locked: register_host_memory locks it
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


_NEW = """Returns a numpy array {values} in {kind} memory.

    Raises ``MemoryError`` without enough memory{unsupported}. {note}

    >>> a = driver.{name}(2, np.float32{flags})
    >>> driver.Context.synchronize()
    >>> a.shape, a.dtype
    ((2,), dtype('float32'))

    Parameters
    ----------
    shape : int or sequence of int. The extents of the axes.
    dtype : dtype. The type of the elements, which are plain bytes.
    order : {{"C", "F"}}. The memory order.
    {argument}
    """
_LIKE = """Returns a numpy array {values} in {kind} memory, like ``array``.

    Shape, dtype and order are the other array's. Raises ``MemoryError`` without enough
    memory{unsupported}.

    >>> driver.{name}(np.ones((2, 3), np.float32){flags}).shape
    (2, 3)

    Parameters
    ----------
    array : numpy.ndarray. The other array.
    {argument}
    """
_PAGE_LOCKED = {
    "kind": "page-locked",
    "argument": "mem_flags : int. Values of `driver.host_alloc_flags`.",
    "note": "The array's `base` owns the memory, which outlives a reset of the device.",
    "unsupported": "",
    "flags": "",
}
_ALIGNED = _PAGE_LOCKED | {
    "kind": "ordinary, aligned",
    "argument": "alignment : int. The divisor of the address, a power of two.",
    "note": "`register_host_memory` page-locks the memory.",
}
_MANAGED = _PAGE_LOCKED | {
    "kind": "managed",
    "argument": "mem_flags : int. A value of `driver.mem_attach_flags`.",
    "note": "Synchronize before the host uses the memory, which it shares with the device.",
    "unsupported": ", and ``Unsupported`` if the device does not support managed memory",
    "flags": ", mem_flags=driver.mem_attach_flags.GLOBAL",
}
_ZEROS, _UNDEFINED = "of zeros", "of undefined elements"


def _cleared(array: np.ndarray) -> np.ndarray:
    """Clears all bytes of an array, also those between fields, as ``numpy.zeros`` does."""
    ctypes.memset(array.ctypes.data, 0, array.nbytes)
    return array


def _like(array: Any) -> tuple[Any, Any, str]:
    _arguments.array("array", array)
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return array.shape, array.dtype, "F" if is_fortran else "C"


@documented(_NEW, values=_ZEROS, **_PAGE_LOCKED)
def pagelocked_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    return _cleared(pagelocked_empty(shape, dtype, order, mem_flags))


@documented(_LIKE, values=_UNDEFINED, **_PAGE_LOCKED)
def pagelocked_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    return pagelocked_empty(*_like(array), mem_flags)


@documented(_LIKE, values=_ZEROS, **_PAGE_LOCKED)
def pagelocked_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    return pagelocked_zeros(*_like(array), mem_flags)


@documented(_NEW, values=_UNDEFINED, **_ALIGNED)
def aligned_empty(
    shape: Any, dtype: Any, order: str | None = "C", alignment: int = 4096
) -> np.ndarray:
    alignment = _arguments.whole("alignment", alignment)
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment is {alignment}; a power of two is needed")
    dtype = plain_dtype(dtype)
    shape = _arguments.extents("shape", shape)
    size = math.prod(shape) * dtype.itemsize
    if size + alignment > sys.maxsize:
        raise MemoryError(f"shape is {shape}; its size in bytes, {size}, exceeds the address space")
    memory = np.asarray(AlignedHostAllocation(size, alignment))
    return memory.view(dtype).reshape(shape, order=order)  # type: ignore[call-overload]


@documented(_NEW, values=_ZEROS, **_ALIGNED)
def aligned_zeros(
    shape: Any, dtype: Any, order: str | None = "C", alignment: int = 4096
) -> np.ndarray:
    return _cleared(aligned_empty(shape, dtype, order, alignment))


@documented(_LIKE, values=_UNDEFINED, **_ALIGNED)
def aligned_empty_like(array: Any, alignment: int = 4096) -> np.ndarray:
    return aligned_empty(*_like(array), alignment)


@documented(_LIKE, values=_ZEROS, **_ALIGNED)
def aligned_zeros_like(array: Any, alignment: int = 4096) -> np.ndarray:
    return aligned_zeros(*_like(array), alignment)


@documented(_NEW, values=_ZEROS, **_MANAGED)
def managed_zeros(
    shape: Any, dtype: Any, order: str | None = "C", mem_flags: int = 0
) -> np.ndarray:
    return _cleared(managed_empty(shape, dtype, order, mem_flags))


@documented(_LIKE, values=_UNDEFINED, **_MANAGED)
def managed_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    return managed_empty(*_like(array), mem_flags)


@documented(_LIKE, values=_ZEROS, **_MANAGED)
def managed_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    return managed_zeros(*_like(array), mem_flags)
