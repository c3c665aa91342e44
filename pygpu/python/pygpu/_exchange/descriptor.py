"""Descriptors: checked plain data from which another process opens arrays and columns."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from _thread import allocate_lock
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _core
from .._arguments import instance, wrong_type
from ..compyte.array import span

if TYPE_CHECKING:
    from typing_extensions import Self

HANDLE_OCTETS = 64
VENDORS = ("cuda", "hip", "host")
_VERSION = 1
_LARGEST = 2**63 - 1
_MOST_AXES = 64


def whole(name: str, value: Any, low: int = 0, high: int = _LARGEST) -> int:
    """Returns a whole number of another process, a plain int within bounds."""
    if type(value) is not int:
        raise TypeError(f"{name} is {value!r:.80}; a whole number is needed")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; allowed are {low} to {high}")
    return value


def octets(name: str, value: Any) -> bytes:
    """Returns the 64 octets of a handle, from bytes or from a sequence of numbers."""
    if isinstance(value, list | tuple):
        value = bytes(whole(f"{name}[{at}]", octet, 0, 255) for at, octet in enumerate(value))
    if not isinstance(value, bytes | bytearray):
        raise wrong_type(name, value, "bytes are needed")
    if len(value) != HANDLE_OCTETS:
        raise ValueError(f"{name} has length {len(value)}; {HANDLE_OCTETS} is needed")
    return bytes(value)


def _numbers(name: str, value: Any, low: int) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise wrong_type(name, value, "a tuple of numbers is needed")
    if len(value) > _MOST_AXES:
        raise ValueError(f"{name} has length {len(value)}; at most {_MOST_AXES} is allowed")
    return tuple(whole(f"{name}[{at}]", entry, low) for at, entry in enumerate(value))


def members(name: str, value: Any, required: tuple[str, ...]) -> dict[str, Any]:
    """Returns a JSON object; it must have exactly these members."""
    if not isinstance(value, dict):
        raise wrong_type(name, value, "an object is needed")
    if set(value) != set(required):
        given = f"{sorted(map(str, value))!s:.200}"
        raise ValueError(f"{name} has the members {given}; needed are {sorted(required)}")
    return value


def loads_json(name: str, text: str | bytes) -> Any:
    """Returns the value of a JSON text."""
    try:
        return json.loads(text)
    except ValueError as error:
        shown = text if len(text) < 60 else text[:60]
        raise ValueError(f"{name} is {shown!r}, which is not JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{name} is nested too deep") from None


def in_any_form(kind: Any, name: str, value: Any) -> Any:
    """Returns an object of a class, from the object itself, from its JSON or from its parts."""
    if isinstance(value, str | bytes):
        return kind.from_json(value)
    return kind.from_dict(value) if isinstance(value, dict) else instance(name, value, kind)


# Dtypes that numpy lacks, whose names stand for themselves.
_EXTENSIONS = _core.extension_dtypes()
# numpy's names of dtypes of plain elements: byte order, kind, bytes or characters, a time's unit.
_PLAIN = re.compile(
    r"[<>|=]([biufcVSU][1-9][0-9]{0,5}|[mM]8(\[[0-9]{0,6}([YMWDhms]|[munpfa]s)\])?)"
)
_FIELD = re.compile(r"[^\x00]{1,200}")
_DEEPEST = 8


def name_of(dtype: np.dtype[Any]) -> Any:
    """Returns a dtype as a string for JSON, or as a list of fields for a record."""
    if dtype.name in _EXTENSIONS:
        return dtype.name
    if dtype.names is None and dtype.subdtype is None:
        return dtype.str
    described = np.lib.format.dtype_to_descr(dtype)
    return _lists(described)


def _lists(value: Any) -> Any:
    return [_lists(entry) for entry in value] if isinstance(value, list | tuple) else value


def dtype_of(name: str, value: Any, depth: int = 0) -> np.dtype[Any]:
    """Returns the dtype for a name that another process has sent."""
    if isinstance(value, str):
        if value in _EXTENSIONS:
            try:
                return _core.extension_dtype(value)
            except TypeError as error:
                raise ValueError(f"{name}: {error}") from None
        if not _PLAIN.fullmatch(value):
            raise ValueError(f"{name} is {value!r:.80}; a dtype like '<f4' is needed")
        try:
            return np.dtype(value)
        except TypeError:
            raise ValueError(f"{name} is {value!r}, which is not a dtype") from None
    if not isinstance(value, list):
        raise wrong_type(name, value, "a string or list is needed")
    if depth == _DEEPEST or not 0 < len(value) <= 1000:
        raise ValueError(f"{name} has length {len(value)} and depth {depth}; less is needed")
    try:
        return np.lib.format.descr_to_dtype(
            [_field(f"{name}[{at}]", entry, depth) for at, entry in enumerate(value)]
        )
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"{name} is not a dtype: {error}") from None


def _field(name: str, value: Any, depth: int) -> tuple[Any, ...]:
    """Returns a field of a record for numpy: its name, its dtype, and perhaps a shape."""
    if not isinstance(value, list) or len(value) not in (2, 3):
        raise TypeError(f"{name} is {value!r:.80}; a name and a dtype are needed")
    title, kind, *shape = value
    if not isinstance(title, str) or (title and not _FIELD.fullmatch(title)):
        raise TypeError(f"{name} has the name {title!r:.80}; a string is needed")
    # numpy describes gaps as fields without a name.
    inner = dtype_of(f"{name}.{title}", kind, depth + 1)
    plain: Any = kind if isinstance(kind, str) and kind not in _EXTENSIONS else inner
    if isinstance(kind, list):
        plain = inner.descr
    if not shape:
        return (title, plain)
    extents = shape[0]
    if not isinstance(extents, list) or len(extents) > 32:
        raise TypeError(f"{name} has the shape {extents!r:.80}; a list of numbers is needed")
    total = inner.itemsize
    for extent in extents:
        if type(extent) is not int or not 0 < extent < 2**31:
            raise ValueError(f"{name} has the extent {extent!r:.80}; 1 to 2**31 - 1 are allowed")
        total *= extent
    if total >= 2**31:
        raise ValueError(f"{name} has the size {total}; a smaller one is needed")
    return (title, plain, tuple(extents))


# The exports of this process by number: handle, base address of the allocation, an array over it,
# and the hold on its memory.
_kept: dict[int, tuple[bytes, int, Any, Any]] = {}
_export_numbers = itertools.count(1)
_lock = allocate_lock()


def _after_fork() -> None:
    """Drops the parent's exports, and its lock, which another thread may have held."""
    global _lock
    _lock = allocate_lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def keep(handle: bytes, base: int, array: Any) -> int:
    """Keeps an array's memory for other processes; returns the number of the export."""
    number = next(_export_numbers)
    with _lock:
        _kept[number] = (handle, base, array, _core.hold_memory(array))
    return number


def forget(number: int) -> None:
    """Ends :func:`keep`; does nothing the second time."""
    with _lock:
        kept = _kept.pop(number, None)
    del kept  # without the lock: freeing waits for the device


def own_export(handle: bytes) -> tuple[int, Any] | None:
    """Returns base address and array if a handle is an export of this process itself."""
    with _lock:
        for exported, base, array, _ in _kept.values():
            if exported == handle:
                return base, array
    return None


class Closing:
    """An object that the end of a ``with`` block closes."""

    close: Callable[[], None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Plain(Closing):
    """A description that is sent as JSON."""

    _what: ClassVar[str]
    to_dict: ClassVar[Callable[..., dict[str, Any]]]
    from_dict: ClassVar[Callable[..., Any]]

    def to_json(self) -> str:
        """Returns the parts as JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Returns the object with the parts in a ``text`` of :meth:`to_json`."""
        return cls.from_dict(loads_json(cls._what, text))


@dataclass(frozen=True, eq=True, repr=False)
class Descriptor(_Plain):
    """An array of another process, as plain data that is pickled or sent as JSON.

    :meth:`GPUArray.ipc_handle` makes one, :func:`pygpu.ipc.open` opens it. All parts are checked.

    >>> from pygpu import ipc
    >>> descriptor = ipc.empty((2, 3), "f4")[1].ipc_handle()
    >>> descriptor.shape, descriptor.strides, descriptor.offset, descriptor.nbytes
    ((3,), (4,), 12, 24)
    >>> ipc.Descriptor.from_json(descriptor.to_json()) == descriptor
    True
    >>> descriptor.close()
    >>> ipc.Descriptor.from_dict(descriptor.to_dict()) == descriptor
    True
    >>> other = ipc.Descriptor.from_node(descriptor.to_node(), descriptor.vendor, "f4")
    >>> other.shape, other.offset, other.nbytes
    ((3,), 12, 24)

    Parameters
    ----------
    dtype : dtype. The type of the elements.
    shape, strides : tuple of int. The extents of the axes, and the steps in bytes along each.
    offset, nbytes : int. The first element's offset, and the allocation's size, in bytes.
    device : int. The number of the device that the memory is on.
    vendor : {"cuda", "hip", "host"}. The backend of the handle.
    handle : bytes. The 64 octets with which the driver opens the allocation.
    """

    _what = "the descriptor"
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    nbytes: int
    device: int
    vendor: str
    handle: bytes
    # The number of the export in the exporting process; None in others.
    _export: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, np.dtype):
            raise wrong_type("dtype", self.dtype, "a dtype is needed")
        if self.dtype.hasobject or self.dtype.itemsize == 0:
            raise ValueError(f"dtype is {self.dtype}, whose elements are not plain bytes")
        place = object.__setattr__
        place(self, "shape", _numbers("shape", self.shape, 0))
        place(self, "strides", _numbers("strides", self.strides, -_LARGEST))
        place(self, "handle", octets("handle", self.handle))
        whole("offset", self.offset)
        whole("nbytes", self.nbytes)
        whole("device", self.device, 0, 2**31 - 1)
        if self.vendor not in VENDORS:
            raise ValueError(f"vendor is {self.vendor!r:.80}; allowed are {', '.join(VENDORS)}")
        if len(self.strides) != len(self.shape):
            counts = f"length {len(self.strides)} and shape {len(self.shape)}"
            raise ValueError(f"strides has {counts}; they must be the same")
        if self._export is not None:
            whole("_export", self._export)
        self._check_bounds()

    def _check_bounds(self) -> None:
        if self.size * self.dtype.itemsize > _LARGEST:
            raise ValueError(f"shape is {self.shape}; its elements exceed the address space")
        if self.size == 0:
            return
        ends = span(self.shape, self.strides, self.dtype.itemsize)
        low, end = (self.offset + it for it in ends)
        if low < 0 or end > self.nbytes:
            raise ValueError(
                f"offset {self.offset}, shape {self.shape} and strides {self.strides} reach from "
                f"byte {low} to {end}; nbytes is {self.nbytes}"
            )

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return (
            f"Descriptor(dtype={str(self.dtype)!r}, shape={self.shape}, strides={self.strides}, "
            f"offset={self.offset}, nbytes={self.nbytes}, device={self.device}, "
            f"vendor={self.vendor!r}, handle=<{HANDLE_OCTETS} octets>)"
        )

    def close(self) -> None:
        """Releases the memory that this process keeps for others: :func:`pygpu.ipc.release`."""
        if self._export is not None:
            forget(self._export)

    def to_dict(self) -> dict[str, Any]:
        """Returns the parts as numbers, strings and lists."""
        return {
            "version": _VERSION,
            "vendor": self.vendor,
            "device": self.device,
            "handle": list(self.handle),
            "nbytes": self.nbytes,
            "dtype": name_of(self.dtype),
            "shape": list(self.shape),
            "strides": list(self.strides),
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, value: Any) -> Descriptor:
        """Returns the descriptor with the parts ``value``, a result of :meth:`to_dict`."""
        names = ("shape", "strides", "offset", "nbytes", "device", "vendor", "handle")
        parts = members("the descriptor", value, ("version", "dtype", *names))
        if type(parts["version"]) is not int or parts["version"] != _VERSION:
            raise ValueError(f"version is {parts['version']!r:.80}; allowed is {_VERSION}")
        return cls(dtype_of("dtype", parts["dtype"]), *(parts[name] for name in names))

    def to_node(self) -> dict[str, Any]:
        """Returns node-rapids' object: ``device``, ``handle``, ``byteOffset``, ``byteLength``."""
        step = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent > 1 and stride != step and self.size:
                given = f"strides are {self.strides} for shape {self.shape}"
                raise ValueError(f"{given}; node-rapids shares runs of bytes in C order")
            step *= extent
        length = self.size * self.dtype.itemsize
        device, handle = self.device, list(self.handle)
        return {"device": device, "handle": handle, "byteOffset": self.offset, "byteLength": length}

    @classmethod
    def from_node(cls, value: Any, vendor: str, dtype: Any = np.uint8) -> Descriptor:
        """Returns the descriptor of a vector for a result of :meth:`to_node`, or for its JSON.

        ``value`` lacks the backend, ``vendor``, and the type of the elements, ``dtype``.
        """
        if isinstance(value, str | bytes):
            value = loads_json("the handle", value)
        parts = members("the handle", value, ("device", "handle", "byteOffset", "byteLength"))
        dtype = np.dtype(dtype)
        itemsize = max(1, dtype.itemsize)
        offset = whole("byteOffset", parts["byteOffset"])
        length = whole("byteLength", parts["byteLength"])
        if length % itemsize:
            raise ValueError(f"byteLength is {length}, not a multiple of the size of {dtype}")
        # The object does not have the size of the allocation, which has at least these bytes.
        nbytes = whole("byteOffset + byteLength", offset + length)
        layout = (length // itemsize,), (dtype.itemsize,), offset, nbytes
        return cls(dtype, *layout, parts["device"], vendor, parts["handle"])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.to_json(),)

    def __setstate__(self, state: Any) -> None:
        raise ValueError("the parts of a descriptor cannot be set after they were checked")


def _restore(text: str) -> Descriptor:
    """Returns the descriptor that a pickle stores as text: objects could contain themselves."""
    if not isinstance(text, str):
        raise TypeError(f"the pickle has an object of type {type(text).__name__}; a text is needed")
    return Descriptor.from_json(text)


_MEMBERS = ("vendor", "device", "handle", "nbytes", "dtype", "length", "offset")


@dataclass(frozen=True)
class Column(_Plain):
    """A column of another process, as plain data: :func:`pygpu.ipc.export_column` makes one.

    ``data`` describes the elements: one axis, without gaps. ``mask``, if there is one, describes
    their validity: bits, the least significant first, or bytes.

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

    _what = "the column"
    data: Descriptor
    mask: Descriptor | None = None

    def __post_init__(self) -> None:
        for name, part in (("data", self.data), ("mask", self.mask)):
            if part is None and name == "mask":
                continue
            if not isinstance(part, Descriptor):
                raise wrong_type(name, part, "a Descriptor is needed")
            if len(part.shape) != 1:
                raise ValueError(f"{name} has the shape {part.shape}; a column has one axis")
            if part.size > 1 and part.strides[0] != part.dtype.itemsize:
                given = f"{name} has the strides {part.strides}"
                raise ValueError(f"{given}; a column has no gaps: copy it first")
            if part.offset % part.dtype.itemsize:
                given = f"{name} starts at byte {part.offset}"
                raise ValueError(f"{given}, between elements of {part.dtype}")
        if self.mask is not None:
            dtype = self.mask.dtype
            if dtype.kind not in "bu" or dtype.byteorder == ">":
                allowed = "allowed are unsigned integers, of bits, and bool"
                raise ValueError(f"mask has the dtype {dtype}; {allowed}")
            bits = self.mask.size * (1 if dtype.kind == "b" else 8 * dtype.itemsize)
            if bits < self.data.size:
                raise ValueError(f"the size of mask is {bits}; data.size is {self.data.size}")

    def to_dict(self) -> dict[str, Any]:
        """Returns the parts as plain data; ``length`` and ``offset`` are in elements."""
        return {"data": _part(self.data), "mask": self.mask and _part(self.mask)}

    @classmethod
    def from_dict(cls, value: Any) -> Column:
        """Returns the column with the parts ``value``, a result of :meth:`to_dict`."""
        parts = members("the column", value, ("data", "mask"))
        mask = None if parts["mask"] is None else _descriptor("mask", parts["mask"])
        return cls(_descriptor("data", parts["data"]), mask)

    def close(self) -> None:
        """Releases the memory that this process keeps for others."""
        for part in (self.data, self.mask):
            if part is not None:
                part.close()


def _part(descriptor: Descriptor) -> dict[str, Any]:
    names = ("vendor", "device", "handle", "nbytes", "dtype")
    parts = {name: part for name, part in descriptor.to_dict().items() if name in names}
    offset = descriptor.offset // descriptor.dtype.itemsize
    return {**parts, "length": descriptor.shape[0], "offset": offset}


def _descriptor(name: str, value: Any) -> Descriptor:
    parts = members(name, value, _MEMBERS)
    dtype = dtype_of(f"{name}.dtype", parts["dtype"])
    length = whole(f"{name}.length", parts["length"])
    offset = whole(f"{name}.offset", parts["offset"]) * dtype.itemsize
    rest = (parts[part] for part in ("nbytes", "device", "vendor", "handle"))
    return Descriptor(dtype, (length,), (dtype.itemsize,), offset, *rest)
