"""Columns of other libraries, by the Arrow C device data interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._arguments import ordinals, wrong_type
from .._core import GPUArray
from .._driver.device import on_device
from .._exchange.protocols import _CPU, _kind, host_memory
from ._buffer import Context, CudaBuffer
from ._column import DeviceColumn, last_offset
from ._export import export_column
from ._types import Field, layout_of


def export_array(array: GPUArray, requested_schema: Any = None, **kwargs: Any) -> Any:
    """Returns the capsules of an array: ``GPUArray.__arrow_c_device_array__``."""
    return export_column(DeviceColumn.from_gpuarray(array), requested_schema, kwargs)


def from_device_array(obj: Any, /, *, copy: bool | None = None) -> DeviceColumn:
    """Returns a column of another library, by the Arrow C device data interface.

    Work on the result is ordered after the event that the other library has recorded. Raises
    ``BufferError`` if the memory is not on a device of this backend, or the structures break the
    interface's rules.

    ``obj`` is a column with ``__arrow_c_device_array__``, or a record batch; a batch becomes a
    column of structs. To get a batch, pass its ``children`` to
    :meth:`DeviceRecordBatch.from_columns`. ``copy`` True copies the buffers, also host memory to a
    GPU. By default only ordinary memory on the host backend is copied; False refuses that.

    >>> array = gpuarray.arange(4, dtype=np.float32)
    >>> column = from_device_array(array)
    >>> column.to_gpuarray().ptr == array.ptr
    True
    """
    export = getattr(obj, "__arrow_c_device_array__", None)
    if export is None:
        raise wrong_type("obj", obj, "an object with __arrow_c_device_array__ is needed")
    capsules = export()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        raise TypeError("__arrow_c_device_array__ returned no pair of capsules")
    owner, tree, (device_type, device_id), event = _core.arrow_device_array(capsules[1])
    field = Field.of_tree(_core.arrow_schema(capsules[0]))
    kind = _kind()
    is_here = device_type in (kind.own, *kind.others)
    if not is_here and not (device_type == _CPU and copy):
        hint = "; copy=True copies it" if device_type == _CPU else ""
        here = f"this backend's is {kind.own}{hint}"
        raise BufferError(f"obj is on the device type {device_type} of Arrow; {here}")
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
        """Returns a buffer of ``size`` bytes."""
        if size == 0:
            return self.context.new_buffer(0)
        if address == 0 or size > np.iinfo(np.intp).max - address:
            raise ValueError(f"a buffer of size {size} is at {address:#x}")
        if self.is_host and self.copy:
            return self._copied(address, size)
        try:
            buffer = self.context.foreign_buffer(address, size, self.owner)
        except ValueError:
            # On the host only memory of its own allocator, or page-locked by it, is device memory.
            if not self.is_host or self.copy is False:
                raise
            return self._copied(address, size)
        return self.context.buffer_from_data(buffer) if self.copy else buffer

    def _copied(self, address: int, size: int) -> CudaBuffer:
        return self.context.buffer_from_data(host_memory(address, size))


def _column(field: Field, tree: Any, source: _Source) -> DeviceColumn:
    """Returns the column of a structure, whose counts and sizes follow from its type."""
    length, null_count, offset, addresses, children, dictionary = tree
    layout, count = layout_of(field), offset + length
    fixed, addresses, sizes = len(layout.parts), list(addresses), []
    if layout.has_variadic and len(addresses) > fixed:
        table, number = addresses.pop(), len(addresses) - fixed
        # The sizes of the variadic buffers are in host memory, or in the device's.
        if number:
            sizes = _sizes(table, number, source)
    if len(addresses) != fixed + len(sizes) or len(children) != len(field.children):
        counts = f"buffers: {len(tree[3])}, children: {len(children)}"
        expected = f"its type needs {fixed} and {len(field.children)}"
        raise ValueError(f"a column {field.format!r} has {counts}; {expected}")
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
    context = source.context
    return DeviceColumn._new(field, context, length, null_count, offset, buffers, nested, values)


def _sizes(table: int, number: int, source: _Source) -> list[int]:
    try:
        found = host_memory(table, 8 * number).view(np.int64).tolist()
    except ValueError:
        found = np.frombuffer(source.buffer(table, 8 * number).to_pybytes(), np.int64).tolist()
    if any(size < 0 for size in found):
        raise ValueError(f"the variadic buffers have the sizes {found}")
    return found
