"""Record batches in device memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _arguments
from .._core import GPUArray
from ._buffer import Context
from ._column import DeviceColumn
from ._export import pyarrow_schema, to_pyarrow_batch
from ._host import printed, slice_of
from ._types import Field


class DeviceRecordBatch:
    """Columns of equal length in device memory, with the names of ``pyarrow.RecordBatch``.

    A batch is the same class on every backend, since ``pyarrow`` from PyPI cannot hold a GPU's
    memory. ``pyarrow.record_batch(batch)`` is a view of it on the host backend; on a GPU it raises
    an error, and :meth:`copy_to_host` copies.

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
        """Returns the batch whose columns are the fields of a column of structs."""
        if column.format != "+s":
            raise ValueError(f"a record batch has the format '+s', not {column.format!r}")
        if column.validity is not None and column.null_count != 0:
            raise ValueError("a record batch has no nulls of its own; the structs have")
        start, length = column.offset, column.length
        children = [
            child if start == 0 and child.length == length else child.slice(start, length)
            for child in column.children
        ]
        batch = DeviceRecordBatch.__new__(DeviceRecordBatch)
        batch._column = DeviceColumn._new(
            column._field, column.context, length, 0, 0, (None,), children
        )
        return batch

    @staticmethod
    def from_columns(columns: Mapping[str, GPUArray | DeviceColumn]) -> DeviceRecordBatch:
        """Returns a batch of ``columns``, without a copy: a dict of names, and arrays or columns of
        one length on one device.
        """
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
        return pyarrow_schema(self._column._field)

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return self._column.nbytes

    @property
    def context(self) -> Context:
        """The context of the device that the buffers are on."""
        return self._column.context

    def column(self, i: int | str) -> DeviceColumn:
        """Returns a column by its number ``i``, which counts from the end if it is negative, or by
        name. Raises ``KeyError`` if no column, or more than one, has the name.
        """
        columns = self._column.children
        if isinstance(i, str):
            found = [column for column in columns if column.name == i]
            if len(found) != 1:
                raise KeyError(f"{len(found)} columns have the name {i!r}")
            return found[0]
        number = _arguments.whole("i", i)
        if not -len(columns) <= number < len(columns):
            raise IndexError(f"i is {number}; there are {len(columns)} columns")
        return columns[number]

    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, slice):
            return self.slice(*slice_of(self.num_rows, key))
        return self.column(key)

    def slice(self, offset: int = 0, length: int | None = None) -> DeviceRecordBatch:
        """Returns ``length`` rows from row ``offset`` on, by default all that follow, which share
        the buffers.
        """
        return DeviceRecordBatch._over(self._column.slice(offset, length))

    def copy_to_host(self) -> Any:
        """Returns a copy as a ``pyarrow.RecordBatch``, whose content ``pyarrow`` has checked.

        Raises ``ImportError`` if ``pyarrow`` is not installed.
        """
        batch = to_pyarrow_batch(self._column)
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
