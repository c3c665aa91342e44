"""Columns for other libraries: the Arrow C device data interface, and ``pyarrow``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._core import Event, Stream
from .._driver.device import on_device
from .._exchange.protocols import _CPU, _LEGACY, _kind, _wait
from ._buffer import CudaBuffer
from ._host import require_pyarrow
from ._types import Field

if TYPE_CHECKING:
    from ._column import DeviceColumn

_DISABLE_TIMING = 2


def export_schema(field: Field) -> Any:
    """Returns the capsule "arrow_schema" of a field."""
    return _core.arrow_schema_capsule(field.tree())


def export_column(column: DeviceColumn, requested_schema: Any, kwargs: dict[str, Any]) -> Any:
    """Returns the capsules "arrow_schema" and "arrow_device_array" of a column.

    The event in the structure orders the consumer's work after the work on the column; the host has
    no event: there, the work has run when the call returns. Raises ``NotImplementedError`` if
    another type is requested, or an argument is not known.
    """
    unknown = [name for name, value in kwargs.items() if value is not None]
    if unknown:
        raise NotImplementedError(f"the arguments {unknown} are not known")
    if requested_schema is not None:
        requested = Field.of_tree(_core.arrow_schema(requested_schema))
        if not column._field.is_like(requested):
            own = f"the column has {column.format!r}, and is not converted"
            raise NotImplementedError(f"the format {requested.format!r} is requested; {own}")
    number, kind = column.context.device_number, _kind().own
    handle = 0
    keeper: list[Any] = [column]

    def held(buffer: CudaBuffer) -> int:
        keeper.append(_core.hold_memory(buffer._bytes))
        return buffer.address

    with on_device(number):
        if kind == _CPU:
            _core.synchronize()
        else:
            event = _event_after(column)
            handle = event.handle
            keeper.append(event)
    device = (kind, -1 if kind == _CPU else number)
    tree = _tree(column, held, keeper)
    array = _core.arrow_device_array_capsule(tree, keeper, device, handle)
    return export_schema(column._field), array


def _event_after(column: DeviceColumn) -> Event:
    """Returns an event after the work on the streams of a column's arrays."""
    default = Stream.from_handle(_LEGACY)
    for handle in set(_streams(column)) - {None, _LEGACY}:
        _wait(default, handle)
    event = Event(_DISABLE_TIMING)
    event.record()
    return event


def _streams(column: DeviceColumn) -> Iterator[Any]:
    for buffer in column._buffers:
        if buffer is not None:
            yield buffer.__cuda_array_interface__["stream"]
    for nested in (*column._children, column._dictionary):
        if nested is not None:
            yield from _streams(nested)


def _tree(
    column: DeviceColumn, address_of: Callable[[CudaBuffer], int], keeper: list[Any]
) -> tuple[Any, ...]:
    """Returns a column for the extension module; ``keeper`` keeps the memory it points to."""
    addresses = [0 if buffer is None else address_of(buffer) for buffer in column._buffers]
    if column._layout.has_variadic:
        # One more buffer holds the sizes of the variadic ones. It is in host memory on any device.
        variadic = column._buffers[len(column._layout.parts) :]
        sizes = np.array([0 if buffer is None else buffer.size for buffer in variadic], np.int64)
        addresses.append(sizes.ctypes.data)
        keeper.append(sizes)
    children = [_tree(child, address_of, keeper) for child in column._children]
    dictionary = column._dictionary and _tree(column._dictionary, address_of, keeper)
    # pyarrow refuses views of no elements with an offset.
    offset = column.offset if column.length else 0
    return column.length, column.null_count, offset, addresses, children, dictionary


class _Exporter:
    """An object that passes capsules to ``pyarrow``."""

    def __init__(self, schema: Any, array: Any = None) -> None:
        self._schema, self._array = schema, array

    def __arrow_c_schema__(self) -> Any:
        return self._schema

    def __arrow_c_device_array__(self, requested_schema: Any = None, **kwargs: Any) -> Any:
        return self._schema, self._array


def pyarrow_schema(field: Field) -> Any:
    """Returns the ``pyarrow.Schema`` of a record batch's field."""
    return require_pyarrow("a schema").schema(_Exporter(export_schema(field)))


def pyarrow_field(field: Field) -> Any:
    """Returns the ``pyarrow.Field`` of a field."""
    return require_pyarrow("a type").field(_Exporter(export_schema(field)))


def _on_host(column: DeviceColumn) -> _Exporter:
    """Returns an exporter of a copy of a column in host memory."""
    keeper: list[np.ndarray] = []

    def copied(buffer: CudaBuffer) -> int:
        if buffer.size == 0:
            return 0
        # Readers of Arrow may expect addresses that are multiples of 64.
        block = np.empty(buffer.size + 64, np.uint8)
        start = -block.ctypes.data % 64
        keeper.append(block[start : start + buffer.size])
        buffer._read_into(keeper[-1], 0)
        return keeper[-1].ctypes.data

    tree = _tree(column, copied, keeper)
    capsule = _core.arrow_device_array_capsule(tree, keeper, (_CPU, -1), 0)
    return _Exporter(export_schema(column._field), capsule)


def to_pyarrow(column: DeviceColumn) -> Any:
    """Returns a copy of a column as a ``pyarrow.Array``."""
    return require_pyarrow("an array in host memory").array(_on_host(column))


def to_pyarrow_batch(column: DeviceColumn) -> Any:
    """Returns a copy of a column of structs as a ``pyarrow.RecordBatch``."""
    return require_pyarrow("a record batch in host memory").record_batch(_on_host(column))
