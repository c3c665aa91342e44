"""Columns in device memory, and their conversion to plain data with separate buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from .. import _arguments, _core
from .._core import GPUArray
from . import _export
from ._buffer import Context, CudaBuffer
from ._host import SLICE, printed, slice_of
from ._types import NULLABLE, Field, Layout, Part, dtype_of, format_of, integer_at, layout_of

_DEPTH_LIMIT = 64
_MEMBERS = ("field", "column")
_COLUMN = ("length", "nulls", "offset", "buffers", "children", "dictionary")


class DeviceColumn:
    """An Arrow column in device memory: its buffers and nested columns.

    Columns are made by :meth:`from_gpuarray`, by :func:`from_device_array` and as parts of a
    :class:`DeviceRecordBatch`. Other libraries read them without a copy, by
    ``__arrow_c_device_array__``: ``pyarrow.array(column)`` on the host backend, cuDF on a GPU. On a
    GPU, a library for host memory raises an error: pass the result of :meth:`copy_to_host`.

    >>> column = DeviceColumn.from_gpuarray(gpuarray.to_gpu(np.arange(5, dtype=np.int32)))
    >>> column.format, column.length, column.slice(1, 3).to_gpuarray()
    ('i', 5, array([1, 2, 3], dtype=int32))
    >>> [None if buffer is None else buffer.size for buffer in column.buffers()]
    [None, 20]
    >>> column.copy_to_host().to_pylist()
    [0, 1, 2, 3, 4]
    """

    def __init__(self) -> None:
        raise TypeError("a DeviceColumn is made by from_gpuarray or from_device_array")

    _field: Field
    _layout: Layout
    _context: Context
    _length: int
    _null_count: int
    _offset: int
    _buffers: tuple[CudaBuffer | None, ...]
    _children: tuple[DeviceColumn, ...]
    _dictionary: DeviceColumn | None

    @classmethod
    def _new(
        cls,
        field: Field,
        context: Context,
        length: int,
        null_count: int,
        offset: int,
        buffers: Sequence[CudaBuffer | None],
        children: Sequence[DeviceColumn] = (),
        dictionary: DeviceColumn | None = None,
    ) -> DeviceColumn:
        """Returns a column of parts, and checks their sizes."""
        column = cls.__new__(cls)
        column._field, column._layout, column._context = field, layout_of(field), context
        column._length, column._null_count, column._offset = length, null_count, offset
        parts = column._layout.parts
        if offset + length == 0 and len(parts) > 1 and parts[1].kind == "offsets":
            # Arrow lets writers omit the one offset, which some readers need.
            buffers = [*buffers]
            if len(buffers) > 1 and not buffers[1]:
                buffers[1] = context.buffer_from_data(bytes(parts[1].width))
        column._buffers, column._children = tuple(buffers), tuple(children)
        column._dictionary = dictionary
        column._check()
        return column

    def _check(self) -> None:
        layout, count, what = self._layout, self._offset + self._length, repr(self._field.format)
        if self._length < 0 or self._offset < 0 or not -1 <= self._null_count <= self._length:
            counts = f"the length {self._length}, the offset {self._offset}"
            raise ValueError(f"a column {what} has {counts} and the null count {self._null_count}")
        least, given = len(layout.parts), len(self._buffers)
        if given < least or (given > least and not layout.has_variadic):
            raise ValueError(f"the number of buffers of a column {what} is {given}, not {least}")
        for part, buffer in zip(layout.parts, self._buffers):
            if buffer is None and part.kind == "validity":
                if self._null_count > 0:
                    raise ValueError(f"a column {what} has nulls but no validity bitmap")
                continue
            size = 0 if buffer is None else buffer.size
            if size < part.least(count):
                sizes = f"size {size}; length {count} needs {part.least(count)}"
                raise ValueError(f"the {part.kind} of a column {what} have {sizes}")
        if len(self._children) != len(self._field.children):
            counts = f"{len(self._children)}, not {len(self._field.children)}"
            raise ValueError(f"the number of children of a column {what} is {counts}")
        for child in self._children:
            if layout.child_length is not None and child._length < count * layout.child_length:
                counts = f"length {child._length}; {count * layout.child_length} is needed"
                raise ValueError(f"a child of a column {what} has {counts}")
        if (self._dictionary is None) != (self._field.dictionary is None):
            raise ValueError(f"only one of a column {what} and its type has a dictionary")

    @staticmethod
    def from_gpuarray(
        array: GPUArray, validity: CudaBuffer | GPUArray | None = None, name: str = ""
    ) -> DeviceColumn:
        """Returns a column in the memory of an array, with the field's ``name``.

        ``array`` has one axis without gaps, of integers or floats; ``validity`` is a buffer or
        array with one bit for each element, the lowest bit first: 1 for a value, 0 for a null.
        Raises ``BufferError`` if Arrow does not have the elements or strides.
        """
        _arguments.gpu_array("array", array)
        format = format_of(array.dtype)
        if array.ndim != 1 or (array.size > 1 and array.strides != (array.itemsize,)):
            layout = f"the shape {array.shape} and the strides {array.strides}"
            needed = "a column has one axis without gaps: export a copy"
            raise BufferError(f"the array has {layout}; {needed}")
        context = Context(array._ordinal)
        bits = None if validity is None else context.buffer_from_object(validity)
        data = context.new_buffer(0)
        if array.size:
            data = CudaBuffer._over(array.view("u1"), context, owner=array)
        field = Field(format, name, flags=0 if bits is None else NULLABLE)
        nulls = 0 if bits is None else -1
        return DeviceColumn._new(field, context, array.size, nulls, 0, (bits, data))

    @property
    def format(self) -> str:
        """The type, as a format string of the Arrow C data interface."""
        return self._field.format

    @property
    def name(self) -> str:
        """The name of the field."""
        return self._field.name

    @property
    def type(self) -> Any:
        """The type, as a ``pyarrow.DataType``."""
        return _export.pyarrow_field(self._field).type

    @property
    def length(self) -> int:
        """The number of elements."""
        return self._length

    @property
    def null_count(self) -> int:
        """The number of nulls; -1 if it is unknown."""
        return self._null_count

    @property
    def offset(self) -> int:
        """The index of the column's first element in the buffers."""
        return self._offset

    @property
    def context(self) -> Context:
        """The context of the device that the buffers are on."""
        return self._context

    @property
    def children(self) -> tuple[DeviceColumn, ...]:
        """The nested columns."""
        return self._children

    @property
    def dictionary(self) -> DeviceColumn | None:
        """For a dictionary column, the values; the elements are indices into them."""
        return self._dictionary

    @property
    def validity(self) -> CudaBuffer | None:
        """The validity bits, from bit :attr:`offset` on; None for a column without a bitmap."""
        has = self._layout.parts[:1] and self._layout.parts[0].kind == "validity"
        return self._buffers[0] if has else None

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        own = sum(buffer.size for buffer in self._buffers if buffer is not None)
        dictionary = 0 if self._dictionary is None else self._dictionary.nbytes
        return own + dictionary + sum(child.nbytes for child in self._children)

    def buffers(self) -> list[CudaBuffer | None]:
        """Returns the buffers in the order of Arrow's layouts, the children's last; None for an
        omitted validity bitmap."""
        found = list(self._buffers)
        for child in self._children:
            found += child.buffers()
        return found

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return printed(self)

    def __repr__(self) -> str:
        return f"<DeviceColumn {self._field.name!r} of {self._length} {self.format!r}>"

    def slice(self, offset: int = 0, length: int | None = None) -> DeviceColumn:
        """Returns ``length`` elements from ``offset`` on, by default all, without a copy."""
        offset = _arguments.whole("offset", offset)
        if not 0 <= offset <= self._length:
            raise IndexError(f"offset is {offset}; the length of the column is {self._length}")
        rest = self._length - offset
        length = rest if length is None else min(_arguments.not_negative("length", length), rest)
        nulls = self._null_count if length == self._length or self._null_count == 0 else -1
        if self.format == "n":
            nulls = length
        return self._part(self._field, length, nulls, self._offset + offset)

    def _named(self, field: Field) -> DeviceColumn:
        return self._part(field, self._length, self._null_count, self._offset)

    def _part(self, field: Field, length: int, nulls: int, offset: int) -> DeviceColumn:
        parts = self._buffers, self._children, self._dictionary
        return DeviceColumn._new(field, self._context, length, nulls, offset, *parts)

    def to_gpuarray(self) -> GPUArray:
        """Returns the values as a one-dimensional array over the same memory; nulls are undefined.

        Dates, times and durations are integers. Raises ``BufferError`` for other elements than
        numbers, dates, times and durations.
        """
        dtype = dtype_of(self.format)
        if dtype is None or self._field.dictionary is not None:
            raise BufferError(f"a column {self.format!r} has no values of one dtype")
        data = self._buffers[1]
        if not self._length or data is None:
            return GPUArray((0,), dtype)
        whole = data._part(0, data.size - data.size % dtype.itemsize).to_gpuarray(dtype)
        return whole[self._offset : self._offset + self._length]

    def __reduce__(self) -> tuple[Any, Any]:
        value, buffers = parts_of(self)
        data = [buffer._host_copy() for buffer in buffers]
        return unpickled, (value, data, self._context.device_number)

    def copy_to_host(self) -> Any:
        """Returns a copy as a ``pyarrow.Array``; ``pyarrow`` has checked the content.

        Raises ``ImportError`` if ``pyarrow`` is not installed.
        """
        array = _export.to_pyarrow(self)
        array.validate(full=True)
        return array

    def __arrow_c_schema__(self) -> Any:
        return _export.export_schema(self._field)

    def __arrow_c_device_array__(self, requested_schema: Any = None, **kwargs: Any) -> Any:
        return _export.export_column(self, requested_schema, kwargs)


def last_offset(buffer: CudaBuffer | None, width: int, count: int) -> int:
    """Returns the offset after the last of ``count`` elements, read from the device."""
    if buffer is None or count == 0:
        return 0
    value = integer_at(buffer._read(count * width, width))
    if value < 0:
        raise ValueError(f"the offset after element {count - 1} is {value}")
    return value


def _checks() -> Any:
    """Returns the module of checks, whose dataclasses take time, and which few programs need."""
    from .._exchange import descriptor

    return descriptor


def parts_of(column: DeviceColumn) -> tuple[dict[str, Any], list[CudaBuffer]]:
    """Returns a column's type and sizes as plain data, and its buffers.

    Buffers of a slice have only the bytes of the slice. Texts and elements of lists are all kept,
    because offsets count from the first of them.
    """
    buffers: list[CudaBuffer] = []
    return {"field": _field(column._field), "column": _column(column, buffers)}, buffers


def _field(field: Field) -> list[Any]:
    metadata = None if field.metadata is None else field.metadata.decode("latin-1")
    dictionary = None if field.dictionary is None else _field(field.dictionary)
    children = [_field(child) for child in field.children]
    return [field.format, field.name, metadata, field.flags, children, dictionary]


def _column(column: DeviceColumn, buffers: list[CudaBuffer]) -> dict[str, Any]:
    layout, offset, children = column._layout, column._offset, column._children
    # Bitmaps are split between bytes. Ends of runs count from the first element.
    first = 0 if column.format == "+r" else offset - offset % 8
    count = offset - first + column._length
    sizes: list[int | None] = []
    # Buffers beyond the layout are data.
    more = [Part("data")] * (len(column._buffers) - len(layout.parts))
    for part, buffer in zip([*layout.parts, *more], column._buffers):
        sizes.append(None if buffer is None else len(buffers))
        if buffer is not None:
            start, size = _bytes_of(part, first, count, buffer.size)
            buffers.append(buffer if size == buffer.size else buffer._part(start, size))
    if layout.child_length is not None:
        each = layout.child_length
        children = tuple(child.slice(first * each, count * each) for child in children)
    dictionary = column._dictionary
    return {
        "length": column._length,
        "nulls": column._null_count,
        "offset": offset - first,
        "buffers": sizes,
        "children": [_column(child, buffers) for child in children],
        "dictionary": None if dictionary is None else _column(dictionary, buffers),
    }


def _bytes_of(part: Part, first: int, count: int, size: int) -> tuple[int, int]:
    if part.kind == "data":
        return 0, size
    start = first // 8 if part.kind in ("validity", "bits") else first * part.width
    return start, min(part.least(count), size - start)


def column_of(value: Any, buffers: list[CudaBuffer], context: Context) -> DeviceColumn:
    """Returns the column of the results of :func:`parts_of`, also in another process."""
    parts = _checks().members("the column", value, _MEMBERS)
    return _remade(_field_of(parts["field"], _DEPTH_LIMIT), parts["column"], buffers, context)


def _field_of(value: Any, depth: int) -> Field:
    if not isinstance(value, list) or len(value) != 6 or depth == 0:
        raise ValueError(f"field is {value!r:.80}; six entries are needed, {_DEPTH_LIMIT} deep")
    format, name, metadata, flags, children, dictionary = value
    if not isinstance(format, str) or not isinstance(name, str) or not isinstance(children, list):
        raise TypeError(f"field is {value!r:.80}; a format, a name and children are needed")
    if metadata is not None and not isinstance(metadata, str):
        raise _arguments.wrong_type("metadata", metadata, "a string is needed")
    encoded = None if metadata is None else metadata.encode("latin-1")
    flags = _checks().whole("flags", flags)
    nested = tuple(_field_of(child, depth - 1) for child in children)
    values = None if dictionary is None else _field_of(dictionary, depth - 1)
    return Field(format, name, encoded, flags, nested, values)


def _remade(field: Field, value: Any, buffers: list[CudaBuffer], context: Context) -> DeviceColumn:
    checks = _checks()
    parts = checks.members("a column", value, _COLUMN)
    numbers, children = parts["buffers"], parts["children"]
    if not isinstance(numbers, list) or not isinstance(children, list):
        raise TypeError("buffers and children of a column are lists")
    has_values = (parts["dictionary"] is not None, field.dictionary is not None)
    if len(children) != len(field.children) or has_values[0] != has_values[1]:
        raise ValueError(f"a column {field.format!r} has other children than its type")
    own = [
        None if number is None else buffers[checks.whole("buffers", number, 0, len(buffers) - 1)]
        for number in numbers
    ]
    dictionary = None
    if field.dictionary is not None:
        dictionary = _remade(field.dictionary, parts["dictionary"], buffers, context)
    lows = {"length": 0, "nulls": -1, "offset": 0}
    length, nulls, offset = (checks.whole(name, parts[name], n) for name, n in lows.items())
    pairs = zip(field.children, children)
    nested = [_remade(kind, child, buffers, context) for kind, child in pairs]
    return DeviceColumn._new(field, context, length, nulls, offset, own, nested, dictionary)


def unpickled(value: Any, data: list[Any], device_number: int) -> DeviceColumn:
    """Returns a pickled column, on the same device as before, or on device 0 if that is missing."""
    context = Context(device_number if device_number < _core.device_count() else 0)
    return column_of(value, [context.buffer_from_data(entry) for entry in data], context)


class DeviceRecordBatch:
    """Columns of equal length in device memory, with the names of ``pyarrow.RecordBatch``.

    A batch is the same class on every backend, since ``pyarrow`` from PyPI cannot hold a GPU's
    memory. On the host backend, ``pyarrow.record_batch(batch)`` is a view of the batch. On a GPU
    that raises an error: use :meth:`copy_to_host`.

    >>> batch = DeviceRecordBatch.from_columns({"x": gpuarray.to_gpu(np.arange(3.0))})
    >>> batch.num_rows, batch.column_names, batch.column("x").to_gpuarray()
    (3, ['x'], array([0., 1., 2.]))
    >>> batch.slice(1).num_rows, batch.copy_to_host().num_rows
    (2, 3)
    """

    def __init__(self) -> None:
        raise TypeError("a DeviceRecordBatch is made by from_columns or read_record_batch")

    _column: DeviceColumn

    @staticmethod
    def _over(column: DeviceColumn) -> DeviceRecordBatch:
        if column.format != "+s":
            raise ValueError(f"a record batch has the format '+s', not {column.format!r}")
        if column.validity is not None and column.null_count != 0:
            raise ValueError("the structs have nulls, which a record batch cannot have")
        start, length = column.offset, column.length
        children = [
            child if start == 0 and child.length == length else child.slice(start, length)
            for child in column.children
        ]
        batch, context = DeviceRecordBatch.__new__(DeviceRecordBatch), column.context
        struct = DeviceColumn._new(column._field, context, length, 0, 0, (None,), children)
        batch._column = struct
        return batch

    @staticmethod
    def from_columns(columns: Mapping[str, GPUArray | DeviceColumn]) -> DeviceRecordBatch:
        """Returns a batch of ``columns``, a dict of arrays or columns of one length and device."""
        if not columns:
            raise ValueError("columns is empty; a batch has one or more")
        found = []
        for name, column in columns.items():
            if not isinstance(column, DeviceColumn):
                column = DeviceColumn.from_gpuarray(column)
            found.append(column._named(column._field._replace(name=name)))
        lengths, contexts = {c.length for c in found}, {c.context for c in found}
        if len(lengths) > 1 or len(contexts) > 1:
            raise ValueError(f"the columns have the lengths {sorted(lengths)} on {contexts}")
        field = Field("+s", flags=0, children=tuple(column._field for column in found))
        struct = DeviceColumn._new(field, found[0].context, found[0].length, 0, 0, (None,), found)
        return DeviceRecordBatch._over(struct)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._column.length

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return len(self._column.children)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self._column.children]

    @property
    def columns(self) -> list[DeviceColumn]:
        """The columns."""
        return list(self._column.children)

    @property
    def schema(self) -> Any:
        """The names and types of the columns, as a ``pyarrow.Schema``."""
        return _export.pyarrow_schema(self._column._field)

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return self._column.nbytes

    @property
    def context(self) -> Context:
        """The context of the device that the buffers are on."""
        return self._column.context

    def column(self, i: int | str) -> DeviceColumn:
        """Returns a column by index ``i``, negative from the end, or by its name.

        Raises ``KeyError`` if no column, or more than one, has the name.
        """
        columns = self._column.children
        if isinstance(i, str):
            found = [column for column in columns if column.name == i]
            if len(found) != 1:
                raise KeyError(f"the name {i!r} belongs to {len(found)} of the columns")
            return found[0]
        number = _arguments.whole("i", i)
        if not -len(columns) <= number < len(columns):
            raise IndexError(f"i is {number}; the number of columns is {len(columns)}")
        return columns[number]

    @overload
    def __getitem__(self, key: int | str) -> DeviceColumn: ...
    @overload
    def __getitem__(self, key: SLICE) -> DeviceRecordBatch: ...
    def __getitem__(self, key: int | str | SLICE) -> Any:
        if isinstance(key, slice):
            return self.slice(*slice_of(self.num_rows, key))
        return self.column(key)

    def slice(self, offset: int = 0, length: int | None = None) -> DeviceRecordBatch:
        """Returns ``length`` rows from ``offset`` on, by default all, without a copy."""
        return DeviceRecordBatch._over(self._column.slice(offset, length))

    def copy_to_host(self) -> Any:
        """Returns a copy as a ``pyarrow.RecordBatch``; ``pyarrow`` has checked the content.

        Raises ``ImportError`` if ``pyarrow`` is not installed.
        """
        batch = _export.to_pyarrow_batch(self._column)
        batch.validate(full=True)
        return batch

    def __len__(self) -> int:
        return self.num_rows

    def __str__(self) -> str:
        return printed(self)

    def __repr__(self) -> str:
        return f"<DeviceRecordBatch of {self.num_rows} rows and {self.num_columns} columns>"

    def __reduce__(self) -> tuple[Any, Any]:
        return DeviceRecordBatch._over, (self._column,)

    def __arrow_c_schema__(self) -> Any:
        return self._column.__arrow_c_schema__()

    def __arrow_c_device_array__(self, requested_schema: Any = None, **kwargs: Any) -> Any:
        return self._column.__arrow_c_device_array__(requested_schema, **kwargs)
