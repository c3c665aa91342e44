"""Columns as plain data and a list of buffers, for what passes them on in pieces."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._exchange.descriptor import members, whole
from ._buffer import CudaBuffer
from ._column import DeviceColumn
from ._context import Context
from ._types import Field, Layout, Part

_DEPTH_LIMIT = 64
_MEMBERS = ("field", "column")
_COLUMN = ("length", "nulls", "offset", "buffers", "children", "dictionary")


def parts_of(column: DeviceColumn) -> tuple[dict[str, Any], list[CudaBuffer]]:
    """Returns a column's type and sizes as what JSON has, and its buffers.

    Of a slice only the bytes of its elements are among them, to the byte of a bitmap; texts and the
    elements of lists are whole, since their offsets count from the first.
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
    # Bitmaps are cut between bytes. Ends of runs count from the first element.
    first = 0 if column.format == "+r" else offset - offset % 8
    count = offset - first + column._length
    sizes: list[int | None] = []
    for part, buffer in zip(_kinds(layout, len(column._buffers)), column._buffers):
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


def _kinds(layout: Layout, count: int) -> list[Part]:
    """Returns what each buffer of a column is: those beyond its layout are data."""
    return [*layout.parts, *[Part("data")] * (count - len(layout.parts))]


def _bytes_of(part: Part, first: int, count: int, size: int) -> tuple[int, int]:
    """Returns the first byte and the bytes of some elements of a buffer."""
    if part.kind == "data":
        return 0, size
    start = first // 8 if part.kind in ("validity", "bits") else first * part.width
    return start, min(part.least(count), size - start)


def column_of(value: Any, buffers: list[CudaBuffer], context: Context) -> DeviceColumn:
    """Returns the column of what :func:`parts_of` returned, all sizes checked.

    Parameters
    ----------
    value : dict
        The type and the sizes, which may come from another process.
    buffers : list of CudaBuffer
        The buffers.
    context : Context
        Where they are.

    Raises
    ------
    TypeError, ValueError
        A part is missing or wrong, or a buffer too small.
    """
    parts = members("the column", value, _MEMBERS)
    return _restored(_field_of(parts["field"], _DEPTH_LIMIT), parts["column"], buffers, context)


def _field_of(value: Any, depth: int) -> Field:
    if not isinstance(value, list) or len(value) != 6 or depth == 0:
        raise ValueError(f"field is {value!r:.80}; six entries are needed, {_DEPTH_LIMIT} deep")
    format, name, metadata, flags, children, dictionary = value
    if not isinstance(format, str) or not isinstance(name, str) or not isinstance(children, list):
        raise TypeError(f"field is {value!r:.80}; a format, a name and children are needed")
    if metadata is not None and not isinstance(metadata, str):
        raise TypeError(f"metadata is of type {type(metadata).__name__}; a string is needed")
    return Field(
        format,
        name,
        None if metadata is None else metadata.encode("latin-1"),
        whole("flags", flags),
        tuple(_field_of(child, depth - 1) for child in children),
        None if dictionary is None else _field_of(dictionary, depth - 1),
    )


def _restored(
    field: Field, value: Any, buffers: list[CudaBuffer], context: Context
) -> DeviceColumn:
    parts = members("a column", value, _COLUMN)
    numbers, children = parts["buffers"], parts["children"]
    if not isinstance(numbers, list) or not isinstance(children, list):
        raise TypeError("buffers and children of a column are lists")
    if len(children) != len(field.children) or (parts["dictionary"] is None) != (
        field.dictionary is None
    ):
        raise ValueError(f"a column {field.format!r} has other children than its type")
    own = [
        None if number is None else buffers[whole("buffers", number, 0, len(buffers) - 1)]
        for number in numbers
    ]
    dictionary = None
    if field.dictionary is not None:
        dictionary = _restored(field.dictionary, parts["dictionary"], buffers, context)
    return DeviceColumn._new(
        field,
        context,
        whole("length", parts["length"]),
        whole("nulls", parts["nulls"], -1),
        whole("offset", parts["offset"]),
        own,
        [_restored(kind, child, buffers, context) for kind, child in zip(field.children, children)],
        dictionary,
    )


def unpickled(value: Any, data: list[Any], device_number: int) -> DeviceColumn:
    """Returns a pickled column; on device 0 if the one that it was on is not here."""
    context = Context(device_number if device_number < _core.device_count() else 0)
    return column_of(value, [context.buffer_from_data(entry) for entry in data], context)
