"""Device buffers as files, and messages of Arrow's IPC format in device memory.

The metadata of a message is read on the host; its body stays on the device. Both may come from
another process: every count, size and offset is checked against the bytes before it is used.

Examples
--------
>>> import pyarrow as pa
>>> batch = pa.record_batch({"x": [1, 2, 3]})
>>> buffer = serialize_record_batch(batch, Context())
>>> read_message(buffer).type
'record batch'
>>> read_record_batch(buffer, batch.schema)["x"].to_gpuarray()
array([1, 2, 3])
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _arguments, _core
from ._buffer import Context, CudaBuffer
from ._column import DeviceColumn, DeviceRecordBatch
from ._host import host_bytes, require_pyarrow
from ._types import Field, layout_of

_CONTINUATION = 0xFFFFFFFF
_TYPES = {1: "schema", 2: "dictionary", 3: "record batch", 4: "tensor", 5: "sparse tensor"}
# MetadataVersion: V4 differs from V5 in unions alone.
_VERSIONS = {3: "V4", 4: "V5"}
_DEPTH_LIMIT = 64


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
        """Sets and returns the position: ``position`` bytes from the start (``whence`` 0), the
        present position (1) or the end (2). A writer is flushed first.
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
    """Reads the device buffer ``obj`` like a file, as buffers without a copy or as bytes.

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
        """Fills ``b``, a writable buffer, with the next bytes; returns the number copied."""
        target = host_bytes("b", b, writable=True)
        part = self.read_buffer(target.size)
        part._read_into(target[: part.size], 0)
        return part.size


class BufferWriter(_File):
    r"""Writes the device buffer ``buffer`` as a file.

    Each write is a copy to the device. With :attr:`buffer_size` set, host memory of this size
    collects small writes until it is full, or until :meth:`flush`, :meth:`seek` or :meth:`close`.

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
        """Writes ``data``, a buffer in host memory, at the position; returns the byte count."""
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
        """Writes ``data``, a buffer in host memory, at ``position``; the position moves past it."""
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


class Table:
    """A table in the bytes of a flatbuffer; reading outside the bytes raises ValueError."""

    # The "vtable" has the offsets of the fields; see "FlatBuffers internals" in its documentation.

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._vtable = place - self._number("<i", place)
        self._size = self._number("<H", self._vtable)

    @staticmethod
    def root(data: bytes) -> Table:
        """Returns the table that a flatbuffer begins with."""
        if len(data) < 4:
            raise ValueError(f"the metadata has length {len(data)}; a flatbuffer has 4 or more")
        return Table(data, struct.unpack_from("<I", data)[0])

    def _number(self, form: str, place: int) -> int:
        size = struct.calcsize(form)
        if not 0 <= place <= len(self._data) - size:
            size = len(self._data)
            raise ValueError(f"the metadata has size {size}, and refers to byte {place}")
        return struct.unpack_from(form, self._data, place)[0]

    def _field(self, number: int) -> int | None:
        """Returns the offset of a field; None if the table does not have the field."""
        entry = 4 + 2 * number
        if entry + 2 > self._size:
            return None
        offset = self._number("<H", self._vtable + entry)
        return self._place + offset if offset else None

    def integer(self, number: int, form: str, default: int = 0) -> int:
        """Returns a number field; ``form`` is its format for :mod:`struct`."""
        place = self._field(number)
        return default if place is None else self._number(form, place)

    def table(self, number: int) -> Table | None:
        """Returns a field that is a table; None if the field is missing."""
        place = self._field(number)
        return None if place is None else Table(self._data, place + self._number("<I", place))

    def structs(self, number: int, form: str) -> list[tuple[int, ...]]:
        """Returns a field that is a vector; ``form`` is its elements' format for :mod:`struct`."""
        place = self._field(number)
        if place is None:
            return []
        start = place + self._number("<I", place)
        count, size = self._number("<I", start), struct.calcsize(form)
        if count * size > len(self._data) - start - 4:
            vector = f"at {start} a vector of length {count}"
            raise ValueError(f"the metadata has length {len(self._data)}, and {vector}")
        return list(struct.iter_unpack(form, self._data[start + 4 : start + 4 + count * size]))


class Message:
    """A message whose body is in device memory. It is made by :func:`read_message`.

    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"x": [1, 2, 3]})
    >>> buffer = serialize_record_batch(batch, Context())
    >>> read_message(buffer)
    <Message, record batch, with a body of 24 bytes>
    """

    def __init__(self) -> None:
        raise TypeError("a Message is made by read_message")

    _metadata: bytes
    _body: CudaBuffer
    _header: Table | None
    _type: int
    _version: int

    @staticmethod
    def _parse(metadata: bytes, reader: BufferReader) -> Message:
        table = Table.root(metadata)
        message = Message.__new__(Message)
        message._metadata = metadata
        message._version, message._type = table.integer(0, "<h"), table.integer(1, "<B")
        message._header = table.table(2)
        length, rest = table.integer(3, "<q"), reader.size() - reader.tell()
        if message._version not in _VERSIONS or message._type not in _TYPES:
            given = f"the type {message._type} and the metadata version {message._version}"
            known = f"known are {list(_TYPES)} and {list(_VERSIONS)}"
            raise ValueError(f"the message has {given}; {known}")
        if not 0 <= length <= rest:
            raise ValueError(f"the message has a body of size {length}, of which {rest} follow")
        message._body = reader.read_buffer(length)
        return message

    @property
    def type(self) -> str:
        """The kind: "schema", "record batch", "dictionary" or another of Arrow's messages."""
        return _TYPES[self._type]

    @property
    def metadata(self) -> bytes:
        """The metadata, a flatbuffer in host memory."""
        return self._metadata

    @property
    def metadata_version(self) -> str:
        """The version of the metadata, "V4" or "V5"."""
        return _VERSIONS[self._version]

    @property
    def body(self) -> CudaBuffer:
        """The body, in device memory."""
        return self._body

    def __repr__(self) -> str:
        return f"<Message, {self.type}, with a body of {self._body.size} bytes>"


def read_message(source: CudaBuffer | BufferReader, pool: Any = None) -> Message:
    """Reads a message of Arrow's IPC format: the metadata to the host, the body in place.

    If ``source`` is a reader, its position moves past the message. ``pool`` is ignored: it exists
    for pyarrow's signature. Raises ``EOFError`` at the end, or at the mark of a stream's end.
    """
    reader = source if isinstance(source, BufferReader) else BufferReader(source)
    place = reader.tell()
    try:
        head = reader.read(8)
        if head[:4] != struct.pack("<I", _CONTINUATION):
            # Before version 0.15 the size was first.
            reader.seek(place + min(4, len(head)))
            head = bytes(4) + head[:4]
        size = struct.unpack("<i", head[4:])[0] if len(head) == 8 else 0
        if size == 0:
            raise EOFError("the stream has ended; it has no further message")
        rest = reader.size() - reader.tell()
        if not 0 < size <= rest:
            raise ValueError(f"the message has metadata of size {size}, of which {rest} follow")
        return Message._parse(reader.read(size), reader)
    except (EOFError, ValueError):
        reader.seek(place)
        raise


def read_record_batch(
    object: CudaBuffer | Message, schema: Any, *, dictionary_memo: Any = None, pool: Any = None
) -> DeviceRecordBatch:
    """Returns the record batch in a message; the batch's buffers are parts of the device buffer.

    The positions and sizes of the buffers are checked. Offsets inside of the buffers are checked
    only by :meth:`DeviceRecordBatch.copy_to_host`: trust the sender before you read texts and lists
    on the device or with ``pyarrow.record_batch(batch)``. Raises ``NotImplementedError`` if the
    body is compressed, or a column has a dictionary, and ``EOFError`` if ``object`` is a buffer
    without a message.

    Parameters
    ----------
    object : CudaBuffer or Message. The message, such as a result of :func:`serialize_record_batch`.
    schema : pyarrow.Schema or object with ``__arrow_c_schema__``. The columns' names and types.
    dictionary_memo, pool : object, optional. Ignored: columns with dictionaries are refused.
    """
    message = object if isinstance(object, Message) else read_message(object)
    export = getattr(schema, "__arrow_c_schema__", None)
    if export is None:
        raise _arguments.wrong_type("schema", schema, "an object with __arrow_c_schema__ is needed")
    field = Field.of_tree(_core.arrow_schema(export()))
    header = message._header
    if message.type != "record batch" or header is None:
        raise ValueError(f"the message is a {message.type}; a record batch is needed")
    if field.format != "+s":
        raise ValueError(f"schema has the format {field.format!r}; a record batch has '+s'")
    if header.table(3) is not None:
        raise NotImplementedError("the body is compressed; write it with compression=None")
    length = header.integer(0, "<q")
    if length < 0:
        raise ValueError(f"the record batch has the length {length}")
    parts = _Parts(message, header)
    columns = [parts.column(child, _DEPTH_LIMIT) for child in field.children]
    parts.check_end()
    if any(column.length != length for column in columns):
        lengths = sorted({column.length for column in columns})
        raise ValueError(f"the record batch has length {length}, and its columns {lengths}")
    context = message.body.context
    struct = DeviceColumn._new(field, context, length, 0, 0, (None,), columns)
    return DeviceRecordBatch._over(struct)


class _Parts:
    """The nodes and buffers of a message, in the order of the columns."""

    def __init__(self, message: Message, header: Table) -> None:
        self._body, self._version = message.body, message.metadata_version
        self._nodes: Iterator[tuple[int, ...]] = iter(header.structs(1, "<qq"))
        self._places: Iterator[tuple[int, ...]] = iter(header.structs(2, "<qq"))
        self._variadic: Iterator[tuple[int, ...]] = iter(header.structs(4, "<q"))

    def _next(self, what: str) -> tuple[int, ...]:
        entry = next(getattr(self, f"_{what}"), None)
        if entry is None:
            raise ValueError(f"the record batch has fewer {what} than its schema")
        return entry

    def check_end(self) -> None:
        """Raises ValueError if the schema has not used all parts."""
        for what in ("nodes", "places", "variadic"):
            if next(getattr(self, f"_{what}"), None) is not None:
                raise ValueError(f"the record batch has more {what} than its schema")

    def _buffer(self) -> CudaBuffer | None:
        offset, length = self._next("places")
        if length == 0:
            return None
        if offset < 0 or length < 0 or offset % 8 or offset + length > self._body.size:
            body = f"the body has {self._body.size}, and buffers begin at multiples of 8"
            raise ValueError(f"a buffer of size {length} is at {offset}; {body}")
        return self._body._part(offset, length)

    def column(self, field: Field, depth: int) -> DeviceColumn:
        """Returns the column of a field."""
        if field.dictionary is not None:
            raise NotImplementedError(f"the column {field.name!r} has a dictionary")
        if depth == 0:
            raise ValueError(f"the schema is nested more than {_DEPTH_LIMIT} levels deep")
        if field.format.startswith("+u") and self._version == "V4":
            raise NotImplementedError("unions of metadata version V4 are not read")
        length, null_count = self._next("nodes")
        layout = layout_of(field)
        buffers = [self._buffer() for _ in layout.parts]
        if layout.has_variadic:
            (count,) = self._next("variadic")
            if count < 0:
                raise ValueError(f"the column {field.name!r} has {count} variadic buffers")
            buffers += [self._buffer() for _ in range(count)]
        children = [self.column(child, depth - 1) for child in field.children]
        context = self._body.context
        return DeviceColumn._new(field, context, length, null_count, 0, buffers, children)


class _Ranges:
    """A file that ``pyarrow`` writes a batch to; keeps the buffers without a copy."""

    def __init__(self, pyarrow: Any) -> None:
        self._pyarrow = pyarrow
        self._buffers: list[Any] = []
        self.closed = False

    def write(self, data: Any) -> int:
        if not isinstance(data, self._pyarrow.Buffer):
            data = self._pyarrow.py_buffer(data)
        self._buffers.append(data)
        return data.size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def copy_to(self, target: CudaBuffer, skipped: int) -> None:
        """Copies all but the first bytes to a device buffer."""
        ranges = [(buffer.address, buffer.size) for buffer in self._buffers]
        first = 0
        while ranges[first][1] <= skipped:
            skipped -= ranges[first][1]
            first += 1
        address, size = ranges[first]
        ranges[first] = address + skipped, size - skipped
        target._gather(ranges[first:])


def serialize_record_batch(batch: Any, ctx: Context) -> CudaBuffer:
    """Returns a new buffer of context ``ctx`` with a message of ``batch``, a pyarrow.RecordBatch.

    The message does not include a schema. The buffers are copied from the batch without a
    serialised copy on the host. Raises ``ImportError`` if ``pyarrow`` is not installed.
    """
    pyarrow = require_pyarrow("serialize_record_batch")
    _arguments.instance("batch", batch, pyarrow.RecordBatch)
    _arguments.instance("ctx", ctx, Context)
    result = ctx.new_buffer(pyarrow.ipc.get_record_batch_size(batch))
    ranges = _Ranges(pyarrow)
    if any(map(_has_dictionary, batch.schema.types)):
        # A stream has messages of the dictionaries before the batch's.
        ranges.write(batch.serialize())
        ranges.copy_to(result, skipped=0)
    else:
        stream = pyarrow.ipc.new_stream(pyarrow.PythonFile(ranges, mode="w"), batch.schema)
        stream.write_batch(batch)
        # The schema's message comes first.
        ranges.copy_to(result, skipped=batch.schema.serialize().size)
    return result


def _has_dictionary(type: Any) -> bool:
    # An extension type wraps the type that is stored.
    type = getattr(type, "storage_type", type)
    return hasattr(type, "index_type") or any(
        _has_dictionary(type.field(number).type) for number in range(type.num_fields)
    )
