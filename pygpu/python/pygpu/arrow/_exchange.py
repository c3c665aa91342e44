"""The Arrow C device data interface: columns for other libraries, and theirs here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._arguments import ordinals
from .._core import Event, GPUArray, Stream
from .._exchange.protocols import _CPU, _LEGACY, _kind, _wait, host_memory
from ._buffer import CudaBuffer
from ._column import DeviceColumn, last_offset
from ._context import Context, on_device
from ._host import require_pyarrow
from ._types import Field, layout_of

_DISABLE_TIMING = 2


# -- export --------------------------------------------------------------------------------


def export_schema(field: Field) -> Any:
    """Returns the capsule "arrow_schema" of a field."""
    return _core.arrow_schema_capsule(field.tree())


def export_array(array: GPUArray, requested_schema: Any = None, **kwargs: Any) -> Any:
    """Returns the capsules of an array: what ``GPUArray.__arrow_c_device_array__`` does."""
    return export_column(DeviceColumn.from_gpuarray(array), requested_schema, kwargs)


def export_column(column: DeviceColumn, requested_schema: Any, kwargs: dict[str, Any]) -> Any:
    """Returns the capsules "arrow_schema" and "arrow_device_array" of a column.

    The consumer's work is ordered behind the work on the column by the event in the structure; on
    the host, where there is none, the work has run when the call returns.

    Raises
    ------
    NotImplementedError
        Another type is requested, or an argument is not known.
    """
    unknown = [name for name, value in kwargs.items() if value is not None]
    if unknown:
        raise NotImplementedError(f"the arguments {unknown} are not known")
    if requested_schema is not None:
        requested = Field.of_tree(_core.arrow_schema(requested_schema))
        if not column._field.is_like(requested):
            raise NotImplementedError(
                f"the format {requested.format!r} is requested; the column has "
                f"{column.format!r}, and is not converted"
            )
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
            event = _event_behind(column)
            handle = event.handle
            keeper.append(event)
    device = (kind, -1 if kind == _CPU else number)
    tree = _tree(column, held, keeper)
    array = _core.arrow_device_array_capsule(tree, keeper, device, handle)
    return export_schema(column._field), array


def _event_behind(column: DeviceColumn) -> Event:
    """Returns an event behind the work on the streams of a column's arrays."""
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
    """Returns a column as the extension module writes it; ``keeper`` keeps what it points to."""
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


# -- pyarrow -------------------------------------------------------------------------------


class _Exporter:
    """Hands capsules to ``pyarrow``."""

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


# -- import --------------------------------------------------------------------------------


def from_device_array(obj: Any, /, *, copy: bool | None = None) -> DeviceColumn:
    """Returns a column of another library, by the Arrow C device data interface.

    Work on the result is ordered behind the event that the other library has recorded.

    Parameters
    ----------
    obj : object with ``__arrow_c_device_array__``
        A column, or a record batch, which becomes a column of structs:
        :meth:`DeviceRecordBatch.from_columns` and ``children`` lead from one to the other.
    copy : bool, optional
        Whether the buffers are copied. By default they are not, but for ordinary memory on the host
        backend, whose devices have memory of their own; False refuses that, too, and True also
        copies memory of the host to a GPU.

    Returns
    -------
    DeviceColumn
        A column in the memory of ``obj``, which it keeps alive, or in new memory.

    Raises
    ------
    BufferError
        The memory is not on a device of this backend, or the structures break the interface's
        rules.
    TypeError
        ``obj`` has no such method.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import arrow, gpuarray
    >>> array = gpuarray.to_gpu(np.arange(4, dtype=np.float32))
    >>> column = arrow.from_device_array(array)
    >>> column.to_gpuarray().ptr == array.ptr
    True
    """
    export = getattr(obj, "__arrow_c_device_array__", None)
    if export is None:
        raise TypeError(
            f"obj is of type {type(obj).__name__}; an object with __arrow_c_device_array__ is "
            "needed"
        )
    capsules = export()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        raise TypeError("__arrow_c_device_array__ returned no pair of capsules")
    owner, tree, (device_type, device_id), event = _core.arrow_device_array(capsules[1])
    field = Field.of_tree(_core.arrow_schema(capsules[0]))
    kind = _kind()
    is_here = device_type in (kind.own, *kind.others)
    if not is_here and not (device_type == _CPU and copy):
        raise BufferError(
            f"obj is on the device type {device_type} of Arrow; this backend's is {kind.own}"
            + ("; copy=True copies it" if device_type == _CPU else "")
        )
    number = _core.current_ordinal() if device_type == _CPU else device_id
    if not 0 <= number < _core.device_count():
        raise BufferError(f"obj is on device {number}; {ordinals(_core.device_count())}")
    context = Context(number)
    with on_device(number):
        if event and device_type != _CPU:
            _core.wait_for_external_event(event, None)
        try:
            return _column(field, tree, _Source(context, owner, device_type == _CPU, copy))
        except ValueError as error:
            raise BufferError(f"obj cannot be read: {error}") from error


class _Source:
    """Makes buffers over, or copies of, the memory of an imported structure."""

    def __init__(self, context: Context, owner: Any, is_host: bool, copy: bool | None) -> None:
        self.context, self.owner = context, owner
        self.is_host, self.copy = is_host, copy

    def buffer(self, address: int, size: int) -> CudaBuffer:
        """Returns a buffer of ``size`` bytes.

        Raises
        ------
        ValueError
            There is no such memory, or it would have to be copied.
        """
        if size == 0:
            return self.context.new_buffer(0)
        if address == 0 or size > np.iinfo(np.intp).max - address:
            raise ValueError(f"a buffer of {size} bytes is at {address:#x}")
        if self.is_host and self.copy:
            return self._copied(address, size)
        try:
            buffer = self.context.foreign_buffer(address, size, self.owner)
        except ValueError:
            # On the host only what its own allocator or page-locking knows is device memory.
            if not self.is_host or self.copy is False:
                raise
            return self._copied(address, size)
        return self.context.buffer_from_data(buffer) if self.copy else buffer

    def _copied(self, address: int, size: int) -> CudaBuffer:
        return self.context.buffer_from_data(host_memory(address, size))


def _column(field: Field, tree: Any, source: _Source) -> DeviceColumn:
    """Returns the column of a structure, whose counts and sizes follow from its type.

    Raises
    ------
    ValueError
        They break the interface's rules.
    """
    length, null_count, offset, addresses, children, dictionary = tree
    layout, count = layout_of(field), offset + length
    fixed, addresses, sizes = len(layout.parts), list(addresses), []
    if layout.has_variadic and len(addresses) > fixed:
        table, number = addresses.pop(), len(addresses) - fixed
        # The sizes of the variadic buffers are in host memory, or in the device's.
        if number:
            sizes = _sizes(table, number, source)
    if len(addresses) != fixed + len(sizes) or len(children) != len(field.children):
        raise ValueError(
            f"a column {field.format!r} has {len(tree[3])} buffers and {len(children)} children; "
            f"its type has {fixed} and {len(field.children)}"
        )
    buffers: list[CudaBuffer | None] = []
    for part, address in zip(layout.parts, addresses):
        size = part.least(count)
        if part.kind == "validity" and (address == 0 or null_count == 0):
            buffers.append(None)
            continue
        if part.kind == "data":
            size = last_offset(buffers[-1], layout.parts[1].width, count)
        buffers.append(source.buffer(address, size))
    buffers += [source.buffer(address, size) for address, size in zip(addresses[fixed:], sizes)]
    nested = [_column(*pair, source) for pair in zip(field.children, children)]
    values = None
    if field.dictionary is not None and dictionary is not None:
        values = _column(field.dictionary, dictionary, source)
    return DeviceColumn._new(
        field, source.context, length, null_count, offset, buffers, nested, values
    )


def _sizes(table: int, number: int, source: _Source) -> list[int]:
    try:
        found = host_memory(table, 8 * number).view(np.int64).tolist()
    except ValueError:
        found = np.frombuffer(source.buffer(table, 8 * number).to_pybytes(), np.int64).tolist()
    if any(size < 0 for size in found):
        raise ValueError(f"the variadic buffers have the sizes {found}")
    return found
