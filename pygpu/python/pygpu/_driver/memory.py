"""Device memory: functions of ``pycuda.driver`` that allocate, and copy between contexts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments, _core
from .._arguments import plain_dtype
from .._core import DeviceAllocation, Stream, mem_alloc, memcpy_dtoh, memcpy_htod
from .._documentation import documented
from .device import Context, ordinal_of


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
        as MPI. Only the host backend's memory can be read through it on the host.
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


def from_device(devptr: Any, shape: Any, dtype: Any, order: str | None = "C") -> np.ndarray:
    """Copies device memory ``devptr`` to a new numpy array of ``shape``, ``dtype`` and ``order``.

    >>> driver.from_device(driver.to_device(np.arange(3)), 3, np.int64)
    array([0, 1, 2])
    """
    result = np.empty(shape, plain_dtype(dtype), order)  # type: ignore[call-overload, arg-type]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> np.ndarray:
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
