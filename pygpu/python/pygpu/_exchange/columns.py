"""Columns of tables, as cuDF and node-rapids pass them on: elements, and a mask of valid ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtype_names
from .descriptor import Descriptor, in_any_form, loads_json, members, whole

if TYPE_CHECKING:
    from .._core import GPUArray
    from ..ipc import OpenedArray

_MEMBERS = ("vendor", "device", "handle", "nbytes", "dtype", "length", "offset")


@dataclass(frozen=True)
class Column:
    """A column of another process, as plain data: :func:`pygpu.ipc.export_column` makes one.

    Parameters
    ----------
    data : Descriptor
        The elements: one axis, without gaps.
    mask : Descriptor, optional
        Which elements are valid: bits, the least significant first, or bytes, from the first
        element on.

    Raises
    ------
    TypeError
        ``data`` or ``mask`` is no descriptor.
    ValueError
        An array has more axes than one, or gaps; or the mask has too few bits.

    Examples
    --------
    >>> import pygpu.autoinit
    >>> from pygpu import ipc
    >>> with ipc.export_column(ipc.empty(10, "f4")[2:]) as column:
    ...     part = column.to_dict()["data"]
    >>> part["dtype"], part["length"], part["offset"]
    ('<f4', 8, 2)
    >>> ipc.Column.from_json(column.to_json()) == column
    True
    >>> ipc.Column.from_dict(column.to_dict()) == column
    True
    >>> column.close()  # the end of the block has done so already
    """

    data: Descriptor
    mask: Descriptor | None = None

    def __post_init__(self) -> None:
        for name, part in (("data", self.data), ("mask", self.mask)):
            if part is None and name == "mask":
                continue
            if not isinstance(part, Descriptor):
                raise TypeError(f"{name} is of type {type(part).__name__}; a Descriptor is needed")
            if len(part.shape) != 1:
                raise ValueError(f"{name} has the shape {part.shape}; a column has one axis")
            if part.size > 1 and part.strides[0] != part.dtype.itemsize:
                raise ValueError(
                    f"{name} has the strides {part.strides}; a column has no gaps: copy it first"
                )
            if part.offset % part.dtype.itemsize:
                raise ValueError(
                    f"{name} starts at byte {part.offset}, between elements of {part.dtype}"
                )
        if self.mask is not None:
            if self.mask.dtype.kind not in "bu" or self.mask.dtype.byteorder == ">":
                raise ValueError(
                    f"mask has the dtype {self.mask.dtype}; unsigned integers hold bits, bool bytes"
                )
            bits = self.mask.size * (
                1 if self.mask.dtype.kind == "b" else 8 * self.mask.dtype.itemsize
            )
            if bits < self.data.size:
                raise ValueError(f"mask has {bits} entries; data has {self.data.size} elements")

    def to_dict(self) -> dict[str, Any]:
        """Returns ``{"data": {...}, "mask": {...}}`` of what JSON has: ``handle``, ``dtype``, and
        ``length`` and ``offset`` in elements; ``mask`` is None without one.

        Returns
        -------
        dict
            The parts.
        """
        return {"data": _part(self.data), "mask": self.mask and _part(self.mask)}

    @classmethod
    def from_dict(cls, value: Any) -> Column:
        """Returns the column of parts as :meth:`to_dict` returns them.

        Parameters
        ----------
        value : dict
            The parts.

        Returns
        -------
        Column
            The column.

        Raises
        ------
        TypeError, ValueError
            A part is missing, is one too many, or has a type or a value that is not allowed.
        """
        parts = members("the column", value, ("data", "mask"))
        mask = parts["mask"]
        return cls(
            _descriptor("data", parts["data"]),
            None if mask is None else _descriptor("mask", mask),
        )

    def to_json(self) -> str:
        """Returns the parts as JSON.

        Returns
        -------
        str
            The text.
        """
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Column:
        """Returns the column of a text as :meth:`to_json` returns it.

        Parameters
        ----------
        text : str or bytes
            The text.

        Returns
        -------
        Column
            The column.

        Raises
        ------
        TypeError, ValueError
            The text is no JSON, or its parts are none of a column.
        """
        return cls.from_dict(loads_json("the column", text))

    def close(self) -> None:
        """Lets go of the memory that this process keeps for others."""
        for part in (self.data, self.mask):
            if part is not None:
                part.close()

    def __enter__(self) -> Column:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _part(descriptor: Descriptor) -> dict[str, Any]:
    return {
        "vendor": descriptor.vendor,
        "device": descriptor.device,
        "handle": list(descriptor.handle),
        "nbytes": descriptor.nbytes,
        "dtype": dtype_names.name_of(descriptor.dtype),
        "length": descriptor.shape[0],
        "offset": descriptor.offset // descriptor.dtype.itemsize,
    }


def _descriptor(name: str, value: Any) -> Descriptor:
    parts = members(name, value, _MEMBERS)
    dtype = dtype_names.dtype_of(f"{name}.dtype", parts["dtype"])
    return Descriptor(
        dtype,
        (whole(f"{name}.length", parts["length"]),),
        (dtype.itemsize,),
        whole(f"{name}.offset", parts["offset"]) * dtype.itemsize,
        parts["nbytes"],
        parts["device"],
        parts["vendor"],
        parts["handle"],
    )


class OpenedColumn:
    """A column in memory of another process: :func:`pygpu.ipc.open_column` makes it.

    Parameters
    ----------
    data : OpenedArray
        The elements.
    mask : OpenedArray or None
        Which of them are valid.

    Examples
    --------
    >>> import pygpu.autoinit
    >>> from pygpu import ipc
    >>> with ipc.export_column(ipc.empty(3, "f4")) as column, ipc.open_column(column) as opened:
    ...     opened.valid()
    array([ True,  True,  True])
    >>> opened.close()  # the end of the block has done so already
    """

    def __init__(self, data: OpenedArray, mask: OpenedArray | None) -> None:
        self.data = data
        self.mask = mask

    def valid(self) -> np.ndarray:
        """Returns which elements are valid, as a numpy array of bool.

        Returns
        -------
        numpy.ndarray
            As many truth values as ``data`` has elements.

        Raises
        ------
        LogicError
            The column has been closed.
        """
        length = self.data.size
        if self.mask is None:
            return np.ones(length, bool)
        mask = self.mask.get()
        if mask.dtype.kind == "b":
            return mask[:length]
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        return bits[:length].astype(bool)

    def close(self) -> None:
        """Ends the use of the memory, as ``OpenedArray.close`` does."""
        try:
            self.data.close()
        finally:
            if self.mask is not None:
                self.mask.close()

    def __enter__(self) -> OpenedColumn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def export_column(data: GPUArray, mask: GPUArray | None = None, copy: bool | None = None) -> Column:
    """Returns a column with which other processes open elements and their validity.

    Parameters
    ----------
    data : GPUArray
        The elements: one axis without gaps. A slice shares the whole allocation.
    mask : GPUArray, optional
        Bits, the least significant first, or bool, from the first element of ``data`` on.
    copy : bool, optional
        Whether a copy is exported, in new memory. By default it is if the memory cannot be shared;
        False refuses.

    Returns
    -------
    Column
        The column as plain data. This process keeps the memory until ``column.close()``.

    Raises
    ------
    ValueError
        An array has more axes than one, or gaps; or the mask has too few bits.

    Examples
    --------
    >>> import numpy as np
    >>> import pygpu.autoinit
    >>> from pygpu import gpuarray, ipc
    >>> data = ipc.share(gpuarray.arange(3, dtype="f4"))
    >>> mask = ipc.share(gpuarray.to_gpu(np.array([0b101], np.uint8)))
    >>> with export_column(data, mask) as column, open_column(column) as opened:
    ...     opened.valid()
    array([ True, False,  True])
    """
    from ..ipc import export

    exported = [export(data, copy)]
    try:
        if mask is not None:
            exported.append(export(mask, copy))
        return Column(*exported)
    except BaseException:
        for descriptor in exported:
            descriptor.close()
        raise


def open_column(
    column: Column | dict[str, Any] | str | bytes, device: int | None = None
) -> OpenedColumn:
    """Opens a column of another process.

    Parameters
    ----------
    column : Column, dict, str or bytes
        What :func:`pygpu.ipc.export_column` returned, its parts, or their JSON.
    device : int, optional
        The device that the column is to be on; a copy if that is another one than the column's.

    Returns
    -------
    OpenedColumn
        The column.

    Raises
    ------
    TypeError, ValueError
        A part is wrong.
    LogicError
        A handle is none of this backend, is stale or forged; or the exporting process has ended or
        has freed the memory.

    Examples
    --------
    >>> import pygpu.autoinit
    >>> from pygpu import gpuarray, ipc
    >>> with ipc.export_column(ipc.share(gpuarray.arange(3, dtype="f4"))) as column:
    ...     with open_column(column.to_json()) as opened:
    ...         opened.data
    array([0., 1., 2.], dtype=float32)
    """
    from ..ipc import open

    source: Column = in_any_form(Column, "column", column)
    data = open(source.data, device)
    try:
        mask = None if source.mask is None else open(source.mask, device)
    except BaseException:
        data.close()
        raise
    return OpenedColumn(data, mask)
