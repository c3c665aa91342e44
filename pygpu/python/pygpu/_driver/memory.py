"""Device memory, host memory for copies, and a pool that reports allocations."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, TextIO
from weakref import WeakKeyDictionary

import numpy as np
from numpy import ndarray

from .. import _arguments, _core
from .._arguments import plain_dtype
from .._array import DType, Order, Shape
from .._core import (
    DeviceAllocation,
    DeviceMemoryPool,
    PagelockedHostAllocation,
    PooledDeviceAllocation,
    RegisteredHostMemory,
    Stream,
    managed_empty,
    mem_alloc,
    mem_get_info,
    memcpy_dtoh,
    memcpy_htod,
    pagelocked_empty,
)
from .._documentation import documented
from .._errors import LogicError
from .device import Context, ordinal_of

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AlignedHostAllocation", "HostPointer", "PointerHolderBase", "aligned_empty"]
__all__ += ["aligned_empty_like", "aligned_zeros", "aligned_zeros_like", "from_device"]
__all__ += ["from_device_like", "managed_empty_like", "managed_zeros", "managed_zeros_like"]
__all__ += ["mem_alloc_like", "memcpy_peer", "memcpy_peer_async", "pagelocked_empty_like"]
__all__ += ["pagelocked_zeros", "pagelocked_zeros_like", "to_device"]


class PointerHolderBase:
    """The base of a program's own allocations, whose ``get_pointer`` returns a device address.

    Objects of a subclass are accepted as device memory.

    >>> class Part(driver.PointerHolderBase):
    ...     def __init__(self, memory, offset):
    ...         self.memory, self.offset = memory, offset
    ...
    ...     def get_pointer(self):
    ...         return int(self.memory) + self.offset
    >>> memory = driver.to_device(np.arange(4, dtype=np.uint8))
    >>> driver.from_device(Part(memory, 2), 2, np.uint8)
    array([2, 3], dtype=uint8)
    >>> Part(memory, 2).as_buffer(2).nbytes, Part(memory, 0).get_pointer() == int(memory)
    (2, True)
    """

    def get_pointer(self) -> int:
        """Returns the device address. Raises ``NotImplementedError`` unless overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no get_pointer")

    def __int__(self) -> int:
        return self.get_pointer()

    def __index__(self) -> int:
        return self.get_pointer()

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Returns a buffer of ``size`` bytes, ``offset`` bytes into the memory, for libraries such
        as MPI. The host can read the memory through the buffer only on the host backend.
        """
        return _core.address_as_buffer(self.get_pointer() + offset, size, self)


def mem_alloc_like(ary: Any) -> DeviceAllocation:
    """Allocates device memory of the size of an array ``ary``, with undefined values.

    >>> driver.mem_alloc_like(np.zeros(4, np.float32)).size
    16
    """
    return mem_alloc(_arguments.array("ary", ary).nbytes)


_BETWEEN_CONTEXTS = """{verb} ``size`` bytes from a context's memory to another's ({call}){stream}.

    ``src`` is of ``src_context``, and ``dest`` of ``dest_context``; by default the current one.

    >>> from pygpu import autoinit
    >>> src, dest = driver.to_device(np.arange(3)), driver.mem_alloc(24)
    >>> driver.{name}(dest, src, 24, src_context=autoinit.context{queue})
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """
_QUEUED = {
    "verb": "Queues a copy of",
    "call": "``cuMemcpyPeerAsync``",
    "stream": " on ``stream``, by default the default stream",
    "queue": ", stream=driver.Stream()",
}


@documented(_BETWEEN_CONTEXTS, verb="Copies", call="``cuMemcpyPeer``", stream="", queue="")
def memcpy_peer(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
) -> None:
    to, from_ = ordinal_of("dest_context", dest_context), ordinal_of("src_context", src_context)
    _core.copy_between_devices(dest, to, src, from_, size, None, True)


@documented(_BETWEEN_CONTEXTS, **_QUEUED)
def memcpy_peer_async(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
    stream: Stream | None = None,
) -> None:
    to, from_ = ordinal_of("dest_context", dest_context), ordinal_of("src_context", src_context)
    _core.copy_between_devices(dest, to, src, from_, size, stream, False)


def to_device(bf_obj: Any) -> DeviceAllocation:
    """Allocates device memory for a numpy array or buffer ``bf_obj``, and copies it there.

    >>> driver.to_device(np.arange(3)).size
    24
    """
    result = mem_alloc(_core.host_memory_size("bf_obj", bf_obj, False))
    memcpy_htod(result, bf_obj)
    return result


def from_device(devptr: Any, shape: Shape, dtype: DType, order: Order = "C") -> ndarray:
    """Copies device memory ``devptr`` to a new numpy array of ``shape``, ``dtype`` and ``order``.

    >>> driver.from_device(driver.to_device(np.arange(3)), 3, np.int64)
    array([0, 1, 2])
    """
    result = np.empty(shape, plain_dtype(dtype), order)  # type: ignore[call-overload, arg-type]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> ndarray:
    """Copies device memory ``devptr`` to a new numpy array with ``other_ary``'s shape and dtype.

    >>> driver.from_device_like(driver.to_device(np.arange(3)), np.empty(3, np.int64))
    array([0, 1, 2])
    """
    dtype = plain_dtype(_arguments.array("other_ary", other_ary).dtype)
    if not isinstance(other_ary, np.ndarray):
        # numpy takes only shape and order from it.
        shape, strides = other_ary.shape, other_ary.strides
        other_ary = np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result


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
        """Returns the device address of mapped memory, for kernels."""
        raise LogicError("the memory is not page-locked: register_host_memory locks it")


HostPointer.register(PagelockedHostAllocation)
HostPointer.register(RegisteredHostMemory)


class AlignedHostAllocation(HostPointer):
    """Ordinary memory of ``size`` bytes at a multiple of ``alignment``, from :func:`aligned_empty`.

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
        """Does nothing: the memory is freed when the last array over the memory is gone."""


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


def _cleared(array: np.ndarray) -> ndarray:
    """Clears all bytes of an array, also those between fields, as ``numpy.zeros`` does."""
    ctypes.memset(array.ctypes.data, 0, array.nbytes)
    return array


def _like(array: Any) -> tuple[Any, Any, Order]:
    _arguments.array("array", array)
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return array.shape, array.dtype, "F" if is_fortran else "C"


@documented(_NEW, values=_ZEROS, **_PAGE_LOCKED)
def pagelocked_zeros(shape: Shape, dtype: DType, order: Order = "C", mem_flags: int = 0) -> ndarray:
    return _cleared(pagelocked_empty(shape, dtype, order, mem_flags))


@documented(_LIKE, values=_UNDEFINED, **_PAGE_LOCKED)
def pagelocked_empty_like(array: Any, mem_flags: int = 0) -> ndarray:
    return pagelocked_empty(*_like(array), mem_flags)


@documented(_LIKE, values=_ZEROS, **_PAGE_LOCKED)
def pagelocked_zeros_like(array: Any, mem_flags: int = 0) -> ndarray:
    return pagelocked_zeros(*_like(array), mem_flags)


@documented(_NEW, values=_UNDEFINED, **_ALIGNED)
def aligned_empty(shape: Shape, dtype: DType, order: Order = "C", alignment: int = 4096) -> ndarray:
    alignment = _arguments.whole("alignment", alignment)
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment is {alignment}; a power of two is needed")
    dtype = plain_dtype(dtype)
    extents = _arguments.extents("shape", shape)
    size = math.prod(extents) * dtype.itemsize
    if size + alignment > sys.maxsize:
        raise MemoryError(f"shape is {extents}; its bytes, {size}, exceed the address space")
    memory = np.asarray(AlignedHostAllocation(size, alignment))
    return memory.view(dtype).reshape(extents, order=order)  # type: ignore[arg-type]


@documented(_NEW, values=_ZEROS, **_ALIGNED)
def aligned_zeros(shape: Shape, dtype: DType, order: Order = "C", alignment: int = 4096) -> ndarray:
    return _cleared(aligned_empty(shape, dtype, order, alignment))


@documented(_LIKE, values=_UNDEFINED, **_ALIGNED)
def aligned_empty_like(array: Any, alignment: int = 4096) -> ndarray:
    return aligned_empty(*_like(array), alignment)


@documented(_LIKE, values=_ZEROS, **_ALIGNED)
def aligned_zeros_like(array: Any, alignment: int = 4096) -> ndarray:
    return aligned_zeros(*_like(array), alignment)


@documented(_NEW, values=_ZEROS, **_MANAGED)
def managed_zeros(shape: Shape, dtype: DType, order: Order = "C", mem_flags: int = 0) -> ndarray:
    return _cleared(managed_empty(shape, dtype, order, mem_flags))


@documented(_LIKE, values=_UNDEFINED, **_MANAGED)
def managed_empty_like(array: Any, mem_flags: int = 0) -> ndarray:
    return managed_empty(*_like(array), mem_flags)


@documented(_LIKE, values=_ZEROS, **_MANAGED)
def managed_zeros_like(array: Any, mem_flags: int = 0) -> ndarray:
    return managed_zeros(*_like(array), mem_flags)


class DebugMemoryPool(DeviceMemoryPool):
    """A memory pool that reports the line of each allocation, and the allocations in use.

    An ``interactive`` pool asks on the terminal for a name of each new line of code, and waits for
    Enter at each allocation. PyCUDA keeps the names in a file; here they last as long as the pool.
    ``logfile`` receives the report, by default ``sys.stdout``. ``blocks`` has size and line of each
    allocation in use, ``last_free`` the free bytes at the latest allocation.

    >>> import io
    >>> report = io.StringIO()
    >>> pool = DebugMemoryPool(interactive=False, logfile=report)
    >>> block = pool.allocate(1000)
    >>> "Allocation of size 1000" in report.getvalue()
    True
    """

    def __new__(cls, interactive: bool = True, logfile: TextIO | None = None) -> Self:
        """Makes the pool; the arguments are the class's."""
        return super().__new__(cls)

    def __init__(self, interactive: bool = True, logfile: TextIO | None = None) -> None:
        self.last_free = mem_get_info()[0]
        self.interactive = interactive
        self.logfile = sys.stdout if logfile is None else logfile
        self.blocks: WeakKeyDictionary[PooledDeviceAllocation, Any] = WeakKeyDictionary()
        self.stacktrace_mnemonics: dict[Any, str] = {}

    def allocate(self, size: int) -> PooledDeviceAllocation:
        """Allocates ``size`` bytes of device memory, and reports it."""
        from traceback import extract_stack  # a program that debugs needs it, no other

        description = self.describe(tuple(frame.name for frame in extract_stack()), size)
        in_use = Counter(self.blocks.values())
        # `commonprefix` compares characters, not parts of a path.
        common = os.path.commonprefix([place for _, place in in_use])  # noqa: RUF071
        free, total = mem_get_info()
        print(
            f"\n  Allocation of size {size} occurring "
            f"(mem: last_free:{self.last_free}, free: {free}, total:{total}) "
            f"(pool: held:{self.held_blocks}, active:{self.active_blocks}):"
            f"\n      at: {description}",
            file=self.logfile,
        )
        for (block, place), count in sorted(in_use.items()):
            print(f"  {place[len(common) :]} ({block} bytes): {count}x", file=self.logfile)
        if self.interactive:
            input("  [Enter]")
        result = super().allocate(size)
        self.blocks[result] = size, description
        self.last_free = mem_get_info()[0]
        return result

    def describe(self, stack: tuple[str, ...], size: int) -> str:
        """Returns the name of an allocation's line in the report.

        ``stack`` has the names of the called functions, outermost first, and ``size`` is the
        number of allocated bytes.

        >>> import io
        >>> pool = DebugMemoryPool(interactive=False, logfile=io.StringIO())
        >>> pool.describe(("main", "load"), 1000)
        'main|load'
        """
        if not self.interactive:
            return "|".join(stack)
        while (stack, size) not in self.stacktrace_mnemonics:
            print(size, stack)
            answer = input("Enter mnemonic or [Enter] for more info:")
            if answer:
                self.stacktrace_mnemonics[stack, size] = answer
            else:
                from traceback import print_stack  # as above

                print_stack()
        return self.stacktrace_mnemonics[stack, size]
