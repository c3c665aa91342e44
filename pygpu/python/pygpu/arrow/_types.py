"""Types of columns: Arrow's format strings, and the buffers of each type."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

NULLABLE = 2  # ARROW_FLAG_NULLABLE


class Field(NamedTuple):
    """A column's type and name, with the members of ``struct ArrowSchema``."""

    format: str
    name: str = ""
    metadata: bytes | None = None
    flags: int = NULLABLE
    children: tuple[Field, ...] = ()
    dictionary: Field | None = None

    @staticmethod
    def of_tree(tree: Any) -> Field:
        """Returns the field that the extension module has read."""
        format, name, metadata, flags, children, dictionary = tree
        values = None if dictionary is None else Field.of_tree(dictionary)
        nested = tuple(map(Field.of_tree, children))
        return Field(format, name, metadata, flags, nested, values)

    def tree(self) -> tuple[Any, ...]:
        """Returns the field as the extension module writes it."""
        dictionary = None if self.dictionary is None else self.dictionary.tree()
        children = [child.tree() for child in self.children]
        return (self.format, self.name, self.metadata, self.flags, children, dictionary)

    def is_like(self, other: Field) -> bool:
        """Returns True for the same types, whatever their fields' names and metadata."""
        return self._type() == other._type()

    def _type(self) -> tuple[Any, ...]:
        children = tuple(map(Field._type, self.children))
        return self.format, children, self.dictionary and self.dictionary._type()


class Part(NamedTuple):
    """One of the buffers of a type."""

    kind: str
    """"validity", "bits", "fixed", "offsets", "sizes", "views" or "data"."""
    width: int = 0
    """The bytes of an element; 0 for bits and for data, whose size follows from the offsets."""

    def least(self, count: int) -> int:
        """Returns the bytes that ``count`` elements need at least."""
        if self.kind in ("validity", "bits"):
            return (count + 7) // 8
        if self.kind == "offsets":
            return (count + 1) * self.width if count else 0
        return count * self.width


class Layout(NamedTuple):
    """The buffers and children of a column of a type."""

    parts: tuple[Part, ...]
    children: int | None = 0
    """The number of children; None for any number."""
    child_length: int | None = None
    """How many elements of each child an element has; None if that follows from buffers."""
    has_variadic: bool = False
    """True if any number of buffers of data follow."""


_VALIDITY = Part("validity")
_DATA = Part("data")
_WIDTHS = {
    **dict(zip("cCsSiIlLefg", (1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8))),
    **dict.fromkeys(("tdD", "tts", "ttm", "tiM"), 4),
    **dict.fromkeys(("tdm", "ttu", "ttn", "tDs", "tDm", "tDu", "tDn", "tiD"), 8),
    "tin": 16,
}
_FIXED = {
    "n": Layout(()),
    "b": Layout((_VALIDITY, Part("bits"))),
    "z": Layout((_VALIDITY, Part("offsets", 4), _DATA)),
    "u": Layout((_VALIDITY, Part("offsets", 4), _DATA)),
    "Z": Layout((_VALIDITY, Part("offsets", 8), _DATA)),
    "U": Layout((_VALIDITY, Part("offsets", 8), _DATA)),
    "vz": Layout((_VALIDITY, Part("views", 16)), has_variadic=True),
    "vu": Layout((_VALIDITY, Part("views", 16)), has_variadic=True),
    "+l": Layout((_VALIDITY, Part("offsets", 4)), 1),
    "+L": Layout((_VALIDITY, Part("offsets", 8)), 1),
    "+vl": Layout((_VALIDITY, Part("fixed", 4), Part("sizes", 4)), 1),
    "+vL": Layout((_VALIDITY, Part("fixed", 8), Part("sizes", 8)), 1),
    "+m": Layout((_VALIDITY, Part("offsets", 4)), 1),
    "+s": Layout((_VALIDITY,), None, 1),
    "+r": Layout((), 2),
}

# The formats of numpy's dtypes with the same elements in Arrow, where booleans are bits.
_CODES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
_DTYPES = {np.dtype(code): letter for code, letter in zip(_CODES, "cCsSiIlLefg")}


def _number(format: str, text: str, most: int = 1 << 31) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > most:
        raise ValueError(f"the format is {format!r}; {text!r} is not a number up to {most}")
    return int(text)


def layout_of(field: Field) -> Layout:
    """Returns the layout of a field's type."""
    layout = _layout(field.format)
    if layout.children is not None and len(field.children) != layout.children:
        raise ValueError(
            f"format {field.format!r} has the wrong number of children, {len(field.children)}"
        )
    if field.dictionary is not None and field.format not in tuple("cCsSiIlL"):
        raise ValueError(f"the indices into a dictionary have the format {field.format!r}")
    return layout


def _layout(format: str) -> Layout:
    if format in _FIXED:
        return _FIXED[format]
    head, colon, rest = format.partition(":")
    if format in _WIDTHS:
        return Layout((_VALIDITY, Part("fixed", _WIDTHS[format])))
    if colon and head in ("tss", "tsm", "tsu", "tsn"):
        return Layout((_VALIDITY, Part("fixed", 8)))
    if colon and head == "w":
        return Layout((_VALIDITY, Part("fixed", _number(format, rest))))
    if colon and head == "d":
        numbers = rest.split(",")
        bits = _number(format, numbers[2]) if len(numbers) == 3 else 128
        if len(numbers) not in (2, 3) or bits not in (32, 64, 128, 256):
            raise ValueError(f"the format {format!r} is not a decimal of 32, 64, 128 or 256 bits")
        return Layout((_VALIDITY, Part("fixed", bits // 8)))
    if colon and head == "+w":
        return Layout((_VALIDITY,), 1, _number(format, rest))
    if colon and head == "+ud":
        return Layout((Part("fixed", 1), Part("fixed", 4)), None)
    if colon and head == "+us":
        return Layout((Part("fixed", 1),), None, 1)
    raise ValueError(f"the format {format!r} is not one of Arrow's")


def format_of(dtype: np.dtype[Any]) -> str:
    """Returns the format of a dtype. Raises ``BufferError`` if Arrow does not have it."""
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    hint = ": its booleans have one bit; astype(numpy.uint8) has elements for them"
    raise BufferError(
        f"dtype is {dtype}, which Arrow does not support" + (hint if dtype == np.bool_ else "")
    )


def dtype_of(format: str) -> np.dtype[Any] | None:
    """Returns the dtype of a format of numbers, dates, times and durations; None for others."""
    for dtype, letter in _DTYPES.items():
        if letter == format:
            return dtype
    layout = _layout(format)
    if format[:1] == "t" and format != "tiD" and layout.parts[1].width in (4, 8):
        return np.dtype(f"i{layout.parts[1].width}")
    return None


def integer_at(data: bytes) -> int:
    """Returns the signed number in 4 or 8 bytes of an Arrow buffer."""
    return struct.unpack("<i" if len(data) == 4 else "<q", data)[0]
