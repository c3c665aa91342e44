"""Bytes of the host: arguments, page-locked buffers, and handles for other processes."""

from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from .. import _arguments, _core
from .._driver.device import on_device

if TYPE_CHECKING:
    from typing_extensions import Self


# Classes here have methods of this name.
SLICE = slice


def require_pyarrow(why: str) -> Any:
    """Returns the module ``pyarrow``."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError(f"{why} needs pyarrow: pip install pyarrow") from error


def printed(value: Any) -> str:
    """Copies a column or a batch to the host, and returns it as pyarrow prints it."""
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        return repr(value)
    return str(value.copy_to_host())


def no_device_buffer(obj: Any) -> TypeError:
    """Returns the error for an object without device memory: pyarrow's class if pyarrow is
    imported, or else TypeError. The message begins as pyarrow's."""
    kind = type(obj)
    if kind.__module__.partition(".")[0] == "pyarrow":
        begin = f"buffer is not backed by a CudaBuffer, but of type {kind.__name__}"
    else:
        place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        name = f"{place}{kind.__qualname__}"
        begin = f"cannot create device buffer view from object of type '{name}'"
    needed = "a device buffer, a HostBuffer or an object with __cuda_array_interface__ is needed"
    error = getattr(sys.modules.get("pyarrow"), "ArrowTypeError", TypeError)
    return error(f"{begin}: {needed}")


def number_of_device(value: Any) -> int:
    """Returns the number of an existing device."""
    number, count = _arguments.whole("device_number", value), _core.device_count()
    if not 0 <= number < count:
        allowed = f"non-negative less than {count}: device_number is {number}"
        raise ValueError(f"device_number argument must be {allowed}")
    return number


def host_bytes(name: str, data: Any, writable: bool = False) -> np.ndarray:
    """Returns the bytes of an object in host memory as a numpy array, in the order of memory."""
    try:
        view = memoryview(data)
    except TypeError:
        needed = "an object in host memory with the buffer protocol is needed"
        raise _arguments.wrong_type(name, data, needed) from None
    if not view.contiguous:
        raise ValueError(f"{name} has gaps between its elements; copy it first")
    if writable and view.readonly:
        raise ValueError(f"{name} is read-only; the copy writes to it")
    if view.nbytes == 0:
        return np.empty(0, np.uint8)
    if not view.c_contiguous:
        data = np.asarray(view).T
    return np.frombuffer(data, np.uint8)


def slice_of(size: int, key: slice) -> tuple[int, int]:
    """Returns the first element and the number of elements of a slice."""
    start, stop, step = key.indices(size)
    if step != 1:
        raise IndexError(f"the step of the slice is {step}; only 1 is allowed")
    return start, max(stop - start, 0)


class Buffer(_core.BufferExporter):
    """The base of buffers on the host and on a device."""

    _parent: Self | None = None
    _part: ClassVar[Callable[..., Any]]
    _read: ClassVar[Callable[..., bytes]]
    _equals: ClassVar[Callable[..., bool]]

    @property
    def size(self) -> int:
        """The number of bytes."""
        raise NotImplementedError

    @property
    def address(self) -> int:
        """The address; 0 for a device buffer without bytes."""
        raise NotImplementedError

    @property
    def is_mutable(self) -> bool:
        """True: copies can write to it."""
        return True

    @property
    def parent(self) -> Self | None:
        """The buffer that this one is a slice of."""
        return self._parent

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Returns ``length`` bytes from ``offset`` on, by default all, without a copy."""
        size, offset = self.size, _arguments.whole("offset", offset)
        if offset < 0 or offset > size or (size and offset == size):
            raise ValueError(f"offset is {offset}; the size of the buffer is {size}")
        rest = size - offset
        length = rest if length is None else _arguments.not_negative("length", length)
        return self._part(offset, min(length, rest))

    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: SLICE) -> Self: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._part(*slice_of(self.size, key))
        position = _arguments.whole("key", key)
        if not -self.size <= position < self.size:
            raise IndexError(f"the index is {position}; the size of the buffer is {self.size}")
        return self._read(position % self.size, 1)[0]

    def equals(self, other: Self) -> bool:
        """Returns True if ``other``, of this class, has the same bytes."""
        return self._equals(_arguments.instance("other", other, type(self)))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, type(self)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_pybytes(self) -> bytes:
        """Returns a copy of the bytes, made when the work that writes them has run."""
        return self._read(0, self.size)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes at {self.address:#x}>"


class HostBuffer(Buffer):
    """Bytes in page-locked host memory, the fastest memory for copies to and from a device.

    ``memoryview(buffer)``, ``numpy.frombuffer(buffer)`` and ``pyarrow.py_buffer(buffer)`` are views
    of the memory. It is made by :func:`new_host_buffer`.

    >>> buffer = new_host_buffer(6)
    >>> memoryview(buffer)[:] = b"abcdef"
    >>> buffer.slice(2, 3).to_pybytes(), buffer.equals(buffer[:2])
    (b'cde', False)
    """

    _host: np.ndarray

    def __init__(self) -> None:
        raise TypeError("Do not call HostBuffer's constructor directly: use new_host_buffer")

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._host.size

    @property
    def address(self) -> int:
        """The address in host memory."""
        return self._host.ctypes.data

    @property
    def is_cpu(self) -> bool:
        """True: it is host memory."""
        return True

    def _part(self, offset: int, length: int) -> HostBuffer:
        part = HostBuffer.__new__(HostBuffer)
        part._host, part._parent = self._host[offset : offset + length], self
        return part

    def _read(self, position: int, nbytes: int) -> bytes:
        return self._host[position : position + nbytes].tobytes()

    def _equals(self, other: HostBuffer) -> bool:
        return np.array_equal(self._host, other._host)


def new_host_buffer(size: int, device: int = 0) -> HostBuffer:
    """Returns a buffer of ``size`` undefined bytes of page-locked host memory of ``device``.

    >>> from pygpu import arrow
    >>> buffer = arrow.new_host_buffer(8)
    >>> np.frombuffer(buffer, np.int32)[:] = 5
    >>> arrow.Context().buffer_from_data(buffer)[4]
    5
    """
    size = _arguments.not_negative("size", size)
    result = HostBuffer.__new__(HostBuffer)
    with on_device(number_of_device(device)):
        result._host = _core.pagelocked_empty(size, np.uint8)
    return result


# The buffer's bytes, the driver's handle, and a part's start in the allocation: Arrow's C++ library
# writes the first two.
_WHOLE, _PART = struct.Struct("<q64s"), struct.Struct("<q64sq")


class IpcMemHandle:
    """The data with which another process opens a device buffer.

    It is made by :meth:`CudaBuffer.export_for_ipc`, or by :meth:`from_buffer`.

    >>> from pygpu import arrow
    >>> context = arrow.Context()
    >>> sent = context.new_buffer(0).export_for_ipc().to_pybytes()
    >>> context.open_ipc_buffer(arrow.IpcMemHandle.from_buffer(sent)).size
    0
    >>> arrow.IpcMemHandle.from_buffer(context.new_buffer(0).export_for_ipc().serialize())
    <IpcMemHandle of 0 bytes from 0>
    """

    def __init__(self) -> None:
        raise TypeError("an IpcMemHandle is made by export_for_ipc of a CudaBuffer")

    _handle: bytes
    _size: int
    _offset: int
    _keeps: Any

    @staticmethod
    def _new(handle: bytes, size: int, offset: int, keeps: Any = None) -> IpcMemHandle:
        result = IpcMemHandle.__new__(IpcMemHandle)
        result._handle, result._size, result._offset = handle, size, offset
        result._keeps = keeps
        return result

    @staticmethod
    def from_buffer(opaque_handle: Any) -> IpcMemHandle:
        """Returns the handle of :meth:`serialize`'s result, 72 or 80 bytes in ``opaque_handle``."""
        data = host_bytes("opaque_handle", opaque_handle).tobytes()
        if len(data) not in (_WHOLE.size, _PART.size):
            allowed = f"allowed are {_WHOLE.size} and {_PART.size}"
            raise ValueError(f"opaque_handle has length {len(data)}; {allowed}")
        size, handle = _WHOLE.unpack_from(data)
        offset = _PART.unpack(data)[2] if len(data) == _PART.size else 0
        if size < 0 or offset < 0:
            raise ValueError(f"opaque_handle has the size {size} and the offset {offset}")
        return IpcMemHandle._new(handle, size, offset)

    def serialize(self, pool: Any = None) -> Any:
        """Returns the handle as a ``pyarrow.Buffer``, in memory of ``pool``.

        Raises ``ImportError`` if ``pyarrow`` is not installed.
        """
        data = self.to_pybytes()
        buffer = require_pyarrow("serialize").allocate_buffer(len(data), memory_pool=pool)
        host_bytes("buffer", buffer, writable=True)[:] = np.frombuffer(data, np.uint8)
        return buffer

    def to_pybytes(self) -> bytes:
        """Returns the handle as bytes: 72, or 80 for a part of an allocation."""
        if self._offset:
            return _PART.pack(self._size, self._handle, self._offset)
        return _WHOLE.pack(self._size, self._handle)

    def __repr__(self) -> str:
        return f"<IpcMemHandle of {self._size} bytes from {self._offset}>"
