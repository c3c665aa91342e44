"""Device buffers as files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _arguments
from ._buffer import CudaBuffer
from ._host import host_bytes


class _File:
    """A position in a device buffer."""

    def __init__(self, buffer: CudaBuffer) -> None:
        self._buffer: CudaBuffer | None = _arguments.instance("buffer", buffer, CudaBuffer)
        self._place = 0

    def _open(self) -> CudaBuffer:
        if self._buffer is None:
            raise ValueError("the file is closed")
        return self._buffer

    @property
    def closed(self) -> bool:
        """True if the file is closed."""
        return self._buffer is None

    def close(self) -> None:
        """Ends the use of the buffer."""
        self._buffer = None

    def __enter__(self) -> Any:
        self._open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def size(self) -> int:
        """Returns the number of bytes of the buffer."""
        return self._open().size

    def tell(self) -> int:
        """Returns the position."""
        self._open()
        return self._place

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def readable(self) -> bool:
        """Returns True for a reader."""
        return isinstance(self, BufferReader)

    def writable(self) -> bool:
        """Returns True for a writer."""
        return isinstance(self, BufferWriter)

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Sets and returns the position: ``position`` bytes from the start, from the present
        position or from the end, as ``whence`` is 0, 1 or 2. A writer is flushed first.
        """
        size, position = self.size(), _arguments.whole("position", position)
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: size}
        if whence not in starts:
            raise ValueError(f"whence is {whence}; allowed are 0, 1 and 2")
        place = starts[whence] + position
        if not 0 <= place <= size:
            raise ValueError(f"position is {position}: {place} of a buffer of size {size}")
        self._place = place
        return place


class BufferReader(_File):
    """Reads the device buffer ``obj`` as a file: buffers without a copy, or bytes.

    >>> from pygpu import arrow
    >>> reader = arrow.BufferReader(arrow.Context().buffer_from_data(b"abcdef"))
    >>> reader.read(2), reader.read_buffer(3).to_pybytes(), reader.tell()
    (b'ab', b'cde', 5)
    >>> reader.readable(), reader.writable(), reader.seekable(), reader.size()
    (True, False, True, 6)
    >>> reader.seek(-2, 2)
    4
    >>> target = bytearray(8)
    >>> reader.readinto(target), bytes(target[:2]), reader.read()
    (2, b'ef', b'')
    >>> reader.close()
    """

    def __init__(self, obj: CudaBuffer) -> None:
        super().__init__(obj)

    def read_buffer(self, nbytes: int | None = None) -> CudaBuffer:
        """Returns the next ``nbytes`` bytes, by default the rest, as a slice, without a copy."""
        buffer, rest = self._open(), self.size() - self._place
        count = rest if nbytes is None else _arguments.whole("nbytes", nbytes)
        count = min(count, rest) if count >= 0 else rest
        part = buffer._part(self._place, count)
        self._place += count
        return part

    def read(self, nbytes: int | None = None) -> bytes:
        """Returns a copy of the next ``nbytes`` bytes, by default of the rest; none at the end."""
        return self.read_buffer(nbytes).to_pybytes()

    def readinto(self, b: Any) -> int:
        """Copies as many next bytes as fit to ``b``, a writable buffer; returns their number."""
        target = host_bytes("b", b, writable=True)
        part = self.read_buffer(target.size)
        part._read_into(target[: part.size], 0)
        return part.size


class BufferWriter(_File):
    r"""Writes the device buffer ``buffer`` as a file.

    Each write is a copy to the device. With :attr:`buffer_size` set, small ones are collected in
    host memory first, until it is full, or :meth:`flush`, :meth:`seek` or :meth:`close` is called.

    >>> from pygpu import arrow
    >>> buffer = arrow.Context().buffer_from_data(bytes(6))
    >>> with arrow.BufferWriter(buffer) as writer:
    ...     writer.buffer_size = 64
    ...     _ = writer.write(b"ab"), writer.write(b"cd"), writer.num_bytes_buffered
    >>> buffer.to_pybytes()
    b'abcd\x00\x00'
    >>> writer = arrow.BufferWriter(buffer)
    >>> writer.readable(), writer.writable()
    (False, True)
    >>> writer.writeat(4, b"ef")
    >>> writer.seek(0)
    0
    >>> writer.flush()
    >>> writer.close()
    >>> buffer.to_pybytes()
    b'abcdef'
    """

    def __init__(self, buffer: CudaBuffer) -> None:
        super().__init__(buffer)
        self._collected = np.empty(0, np.uint8)
        self._count = 0

    def write(self, data: Any) -> int:
        """Writes ``data``, a buffer in host memory, at the position; returns its bytes."""
        source = host_bytes("data", data)
        buffer, rest = self._open(), self.size() - self._place
        if source.size > rest:
            raise ValueError(f"data.size is {source.size}; the room after the position is {rest}")
        if source.size + self._count > self._collected.size:
            self.flush()
        if source.size < self._collected.size:
            self._collected[self._count : self._count + source.size] = source
            self._count += source.size
        else:
            buffer._write(self._place, source)
        self._place += source.size
        return source.size

    def writeat(self, position: int, data: Any) -> None:
        """Writes ``data``, a buffer in host memory, at ``position``, which then is after them."""
        source = host_bytes("data", data)
        place = _arguments.whole("position", position)
        if not 0 <= place <= self.size() - source.size:
            sizes = f"data.size {source.size}; the size of the buffer is {self.size()}"
            raise ValueError(f"position is {place} and {sizes}")
        self.seek(place)
        self.write(source)

    def flush(self) -> None:
        """Copies collected bytes to the device."""
        buffer = self._open()
        if self._count:
            buffer._write(self._place - self._count, self._collected[: self._count])
            self._count = 0

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        self.flush()
        return super().seek(position, whence)

    def close(self) -> None:
        """Copies collected bytes to the device, and ends the use of the buffer."""
        if not self.closed:
            self.flush()
        super().close()

    @property
    def buffer_size(self) -> int:
        """The bytes of host memory in which writes are collected; 0: each write is a copy."""
        return self._collected.size

    @buffer_size.setter
    def buffer_size(self, buffer_size: int) -> None:
        size = _arguments.not_negative("buffer_size", buffer_size)
        self.flush()
        self._collected = np.empty(size, np.uint8)

    @property
    def num_bytes_buffered(self) -> int:
        """The number of bytes that are collected and not yet copied."""
        return self._count
