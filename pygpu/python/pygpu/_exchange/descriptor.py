"""What a process passes to another one so that it can open an array: plain data, checked."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from .._arguments import instance
from . import dtype_names

HANDLE_OCTETS = 64
VENDORS = ("cuda", "hip", "host")
_VERSION = 1
_LARGEST = 2**63 - 1
_MOST_AXES = 64


def whole(name: str, value: Any, low: int = 0, high: int = _LARGEST) -> int:
    """Returns a whole number of another process, which is a plain int within bounds."""
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
        raise TypeError(f"{name} is of type {type(value).__name__}; bytes are needed")
    if len(value) != HANDLE_OCTETS:
        raise ValueError(f"{name} has {len(value)} octets; one has {HANDLE_OCTETS}")
    return bytes(value)


def _numbers(name: str, value: Any, low: int) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} is of type {type(value).__name__}; a tuple of numbers is needed")
    if len(value) > _MOST_AXES:
        raise ValueError(f"{name} has {len(value)} entries; at most {_MOST_AXES} are allowed")
    return tuple(whole(f"{name}[{at}]", entry, low) for at, entry in enumerate(value))


def members(name: str, value: Any, required: tuple[str, ...]) -> dict[str, Any]:
    """Returns an object of JSON, which has these members and no other one."""
    if not isinstance(value, dict):
        raise TypeError(f"{name} is of type {type(value).__name__}; an object is needed")
    if set(value) != set(required):
        raise ValueError(
            f"{name} has the members {sorted(map(str, value))!s:.200}; "
            f"needed are {sorted(required)}"
        )
    return value


def loads_json(name: str, text: str | bytes) -> Any:
    """Returns what JSON stands for.

    Raises
    ------
    ValueError
        The text is no JSON, or is nested too deep.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        shown = text if len(text) < 60 else text[:60]
        raise ValueError(f"{name} is {shown!r}, which is no JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{name} is nested too deep") from None


def in_any_form(kind: Any, name: str, value: Any) -> Any:
    """Returns an object of a class that is given as one, as its JSON or as the parts in it."""
    if isinstance(value, str | bytes):
        return kind.from_json(value)
    return kind.from_dict(value) if isinstance(value, dict) else instance(name, value, kind)


@dataclass(frozen=True, eq=True, repr=False)
class Descriptor:
    """An array of another process, as plain data.

    :meth:`GPUArray.ipc_handle` makes one, :func:`pygpu.ipc.open` opens it. It is passed on as an
    object (pickled), or as JSON. All parts are checked when it is made, however it came here.

    Parameters
    ----------
    dtype : dtype
        The type of the elements.
    shape : tuple of int
        The extents of the axes.
    strides : tuple of int
        Bytes between neighbours along each axis; they may be negative.
    offset : int
        Bytes from the start of the allocation to the first element.
    nbytes : int
        Bytes of the allocation.
    device : int
        The number of the device that the memory is on.
    vendor : {"cuda", "hip", "host"}
        The backend that the handle belongs to.
    handle : bytes
        The 64 octets with which the driver opens the allocation.

    Raises
    ------
    TypeError
        A part has the wrong type.
    ValueError
        A part has a value that is not allowed, or an element lies outside the allocation.

    Examples
    --------
    >>> import pygpu.autoinit
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
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    nbytes: int
    device: int
    vendor: str
    handle: bytes
    # The number of the export in the exporting process; None in any other one.
    _export: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, np.dtype):
            raise TypeError(f"dtype is of type {type(self.dtype).__name__}; a dtype is needed")
        if self.dtype.hasobject or self.dtype.itemsize == 0:
            raise ValueError(f"dtype is {self.dtype}, whose elements are no plain bytes")
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
            raise ValueError(
                f"strides has {len(self.strides)} entries and shape {len(self.shape)}; "
                "they have as many"
            )
        if self._export is not None:
            whole("_export", self._export)
        self._check_bounds()

    def _check_bounds(self) -> None:
        if self.size * self.dtype.itemsize > _LARGEST:
            raise ValueError(f"shape is {self.shape}, so many elements do not fit")
        if self.size == 0:
            return
        steps = [(extent - 1) * step for extent, step in zip(self.shape, self.strides)]
        low = self.offset + sum(step for step in steps if step < 0)
        end = self.offset + sum(step for step in steps if step > 0) + self.dtype.itemsize
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

    # -- its end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Lets go of the memory that this process keeps for others; see
        :func:`pygpu.ipc.release`."""
        from .. import ipc

        ipc.release(self)

    def __enter__(self) -> Descriptor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- passed on -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Returns the parts as what JSON has: numbers, strings, lists.

        Returns
        -------
        dict
            The parts by their names, with a ``version``.
        """
        return {
            "version": _VERSION,
            "vendor": self.vendor,
            "device": self.device,
            "handle": list(self.handle),
            "nbytes": self.nbytes,
            "dtype": dtype_names.name_of(self.dtype),
            "shape": list(self.shape),
            "strides": list(self.strides),
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, value: Any) -> Descriptor:
        """Returns the descriptor of parts as :meth:`to_dict` returns them.

        Parameters
        ----------
        value : dict
            The parts.

        Returns
        -------
        Descriptor
            The descriptor.

        Raises
        ------
        TypeError, ValueError
            A part is missing, is one too many, or has a type or a value that is not allowed.
        """
        names = ("version", "vendor", "device", "handle", "nbytes", "dtype", "shape", "strides")
        parts = members("the descriptor", value, (*names, "offset"))
        if type(parts["version"]) is not int or parts["version"] != _VERSION:
            raise ValueError(f"version is {parts['version']!r:.80}; allowed is {_VERSION}")
        return cls(
            dtype_names.dtype_of("dtype", parts["dtype"]),
            parts["shape"],
            parts["strides"],
            parts["offset"],
            parts["nbytes"],
            parts["device"],
            parts["vendor"],
            parts["handle"],
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
    def from_json(cls, text: str | bytes) -> Descriptor:
        """Returns the descriptor of a text as :meth:`to_json` returns it.

        Parameters
        ----------
        text : str or bytes
            The text.

        Returns
        -------
        Descriptor
            The descriptor.

        Raises
        ------
        TypeError, ValueError
            The text is no JSON, or its parts are none of a descriptor.
        """
        return cls.from_dict(loads_json("the descriptor", text))

    def to_node(self) -> dict[str, Any]:
        """Returns the object that node-rapids passes on as JSON: ``device``, ``handle``,
        ``byteOffset`` and ``byteLength``.

        Returns
        -------
        dict
            The four parts; dtype, shape and vendor are not among them.

        Raises
        ------
        ValueError
            The elements are not one run of bytes.
        """
        step = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent > 1 and stride != step and self.size:
                raise ValueError(
                    f"strides are {self.strides} for shape {self.shape}; node-rapids shares runs "
                    "of bytes in C order"
                )
            step *= extent
        return {
            "device": self.device,
            "handle": list(self.handle),
            "byteOffset": self.offset,
            "byteLength": self.size * self.dtype.itemsize,
        }

    @classmethod
    def from_node(cls, value: Any, vendor: str, dtype: Any = np.uint8) -> Descriptor:
        """Returns the descriptor of node-rapids' object, or of its JSON: an array with one axis.

        Parameters
        ----------
        value : dict, str or bytes
            ``device``, ``handle``, ``byteOffset`` and ``byteLength``.
        vendor : {"cuda", "hip", "host"}
            The backend that the handle belongs to, which the object does not say.
        dtype : dtype
            The type of the elements.

        Returns
        -------
        Descriptor
            The descriptor.

        Raises
        ------
        TypeError, ValueError
            A part is missing or is not allowed, or the bytes are no whole number of elements.
        """
        if isinstance(value, str | bytes):
            value = loads_json("the handle", value)
        parts = members("the handle", value, ("device", "handle", "byteOffset", "byteLength"))
        dtype = np.dtype(dtype)
        offset = whole("byteOffset", parts["byteOffset"])
        length = whole("byteLength", parts["byteLength"])
        if length % max(1, dtype.itemsize):
            raise ValueError(f"byteLength is {length}, no whole number of elements of {dtype}")
        shape = (length // max(1, dtype.itemsize),)
        # The object does not say how large the allocation is: it has these bytes at least.
        nbytes = whole("byteOffset + byteLength", offset + length)
        return cls(
            dtype,
            shape,
            (dtype.itemsize,),
            offset,
            nbytes,
            parts["device"],
            vendor,
            parts["handle"],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.to_json(),)

    def __setstate__(self, state: Any) -> None:
        raise ValueError("the parts of a descriptor cannot be set after they were checked")


def _restore(text: str) -> Descriptor:
    """Returns the descriptor of a pickle, all parts checked.

    They are text, which unlike the objects of a pickle has no part that contains itself, or another
    one very often.
    """
    if not isinstance(text, str):
        raise TypeError(f"the pickle has an object of type {type(text).__name__}, no text")
    return Descriptor.from_json(text)


PARTS = tuple(entry.name for entry in fields(Descriptor) if not entry.name.startswith("_"))
