"""Device memory: the functions of ``pycuda.driver`` that allocate, fill and copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec

import numpy as np

from .. import _arguments, _core
from .._arguments import plain_dtype
from .._core import DeviceAllocation, Stream, mem_alloc
from .._documentation import Decorator, documented, member
from .._errors import LogicError
from .device import Context, ordinal_of

_P = ParamSpec("_P")


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


# -- fills ---------------------------------------------------------------------------------

_FILL = """{verb} device memory ``dest`` with ``count`` {bits}-bit elements ``data``{stream}.

    >>> memory = driver.mem_alloc({size})
    >>> driver.{name}(memory, 7, 3{queue})
    >>> driver.from_device(memory, 3, np.uint{bits})
    array([7, 7, 7], dtype=uint{bits})
    """
_FILL_ROWS = """{verb} ``height`` rows of ``width`` {bits}-bit elements ``data``{stream}.

    The rows are in device memory ``dest``, ``pitch`` bytes apart.

    >>> memory, pitch = driver.mem_alloc_pitch({size}, 2, 4)
    >>> driver.{name}(memory, pitch, 7, 3, 2{queue})
    >>> driver.from_device(int(memory) + pitch, 3, np.uint{bits})
    array([7, 7, 7], dtype=uint{bits})
    """
_STREAM = " on ``stream``, by default the default stream"


_WIDTHS = (8, 16, 32)


def _of_widths(
    family: Callable[Concatenate[int, _P], None], name: str, text: str, **words: str
) -> Iterator[Callable[_P, None]]:
    """Yields a fill for each width of elements in bits, the first argument of the family."""
    for bits in _WIDTHS:
        own = name.format(bits)
        doc = text.format(name=own, bits=bits, size=3 * bits // 8, **words)
        yield member(family, bits, own, doc)


def _unsigned(data: int, width: int) -> int:
    data = _arguments.whole("data", data)
    limit = 1 << (8 * width)
    if not -(limit >> 1) <= data < limit:
        raise OverflowError(f"data is {data}; it must fit a {8 * width}-bit integer")
    return data % limit


def _queue_fill(bits: int, dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    count = _arguments.whole("count", count)
    if count < 0:
        raise LogicError(f"count is {count}; it must not be negative")
    _core.fill_memory(dest, _unsigned(data, bits // 8), bits // 8, count, stream)


def _fill(bits: int, dest: Any, data: int, count: int) -> None:
    _queue_fill(bits, dest, data, count)


def _queue_fill_of_rows(
    bits: int,
    dest: Any,
    pitch: int,
    data: int,
    width: int,
    height: int,
    stream: Stream | None = None,
) -> None:
    pitch = _arguments.whole("pitch", pitch)
    width, height = _arguments.whole("width", width), _arguments.whole("height", height)
    if min(pitch, width, height) < 0:
        given = f"pitch is {pitch}, width {width} and height {height}"
        raise LogicError(f"{given}; none may be negative")
    element = bits // 8
    _core.fill_rows(dest, pitch, _unsigned(data, element), element, width, height, stream)


def _fill_rows(bits: int, dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    _queue_fill_of_rows(bits, dest, pitch, data, width, height)


_NOW = {"verb": "Fills", "stream": "", "queue": ""}
_QUEUED = {"verb": "Queues a fill of", "stream": _STREAM, "queue": ", driver.Stream()"}

memset_d8, memset_d16, memset_d32 = _of_widths(_fill, "memset_d{}", _FILL, **_NOW)
memset_d8_async, memset_d16_async, memset_d32_async = _of_widths(
    _queue_fill, "memset_d{}_async", _FILL, **_QUEUED
)
memset_d2d8, memset_d2d16, memset_d2d32 = _of_widths(_fill_rows, "memset_d2d{}", _FILL_ROWS, **_NOW)
memset_d2d8_async, memset_d2d16_async, memset_d2d32_async = _of_widths(
    _queue_fill_of_rows, "memset_d2d{}_async", _FILL_ROWS, **_QUEUED
)


# -- copies --------------------------------------------------------------------------------

_HOST_TO_DEVICE = """{verb} host memory ``src`` to device memory ``dest``{stream}.

    ``src`` is contiguous. {done}

    >>> a = np.arange(3)
    >>> memory = driver.mem_alloc(a.nbytes)
    >>> driver.{name}(memory, a{queue})
    >>> driver.from_device(memory, 3, np.int64)
    array([0, 1, 2])
    """
_DEVICE_TO_HOST = """{verb} device memory ``src`` to host memory ``dest``{stream}.

    ``dest`` is contiguous. {done}

    >>> memory = driver.to_device(np.arange(3))
    >>> a = driver.pagelocked_empty(3, np.int64)
    >>> driver.{name}(a, memory{queue})
    >>> driver.Context.synchronize()
    >>> a
    array([0, 1, 2])
    """
_ON_DEVICE = """{verb} ``size`` bytes from ``src`` to ``dest``, both on the device{stream}.

    {done}

    >>> src, dest = driver.to_device(np.arange(3)), driver.mem_alloc(24)
    >>> driver.{name}(dest, src, 24{queue})
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """
_BETWEEN_DEVICES = """{verb} ``size`` bytes from one context's memory to another's ({done}){stream}.

    ``src`` is of ``src_context``, and ``dest`` of ``dest_context``; by default the current one.

    >>> from pygpu import autoinit
    >>> src, dest = driver.to_device(np.arange(3)), driver.mem_alloc(24)
    >>> driver.{name}(dest, src, 24, src_context=autoinit.context{queue})
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """


def _copies(text: str, done: str) -> Decorator:
    return documented(text, verb="Copies", done=done, stream="", queue="")


def _queues_copy(text: str, done: str, argument: str = "") -> Decorator:
    queue = f", {argument}driver.Stream()"
    return documented(text, verb="Queues a copy of", done=done, stream=_STREAM, queue=queue)


@_copies(_HOST_TO_DEVICE, "It may be changed once the call returns.")
def memcpy_htod(dest: Any, src: Any) -> None:
    _core.copy_to_device(dest, src, None, True)


_PAGED = "once the copy has run, other memory once the call returns."


@_queues_copy(_HOST_TO_DEVICE, f"Page-locked memory may be changed {_PAGED}")
def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    _core.copy_to_device(dest, src, stream, False)


@_copies(_DEVICE_TO_HOST, "Waits for the copy.")
def memcpy_dtoh(dest: Any, src: Any) -> None:
    _core.copy_to_host(dest, src, None, True)


@_queues_copy(_DEVICE_TO_HOST, f"Page-locked memory has the bytes {_PAGED}")
def memcpy_dtoh_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    _core.copy_to_host(dest, src, stream, False)


@_copies(_ON_DEVICE, "The host does not wait for the copy; later uses do.")
def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    _core.copy_on_device(dest, src, size, None, True)


@_queues_copy(_ON_DEVICE, "Later uses of the memory wait for it.")
def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    _core.copy_on_device(dest, src, size, stream, False)


@_copies(_BETWEEN_DEVICES, "``cuMemcpyPeer``")
def memcpy_peer(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
) -> None:
    to, from_ = ordinal_of("dest_context", dest_context), ordinal_of("src_context", src_context)
    _core.copy_between_devices(dest, to, src, from_, size, None, True)


@_queues_copy(_BETWEEN_DEVICES, "``cuMemcpyPeerAsync``", "stream=")
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
