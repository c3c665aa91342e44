"""Which part of a buffer a slice or an index is."""

from __future__ import annotations

from typing import Any

from .. import _arguments


def part_of(size: int, offset: int, length: int | None) -> tuple[int, int]:
    """Checks the arguments of `slice`; returns the first byte and the number of bytes."""
    offset = _arguments.whole("offset", offset)
    if offset < 0 or offset > size or (size and offset == size):
        raise ValueError(f"offset is {offset}; the buffer has {size} bytes")
    rest = size - offset
    length = rest if length is None else _arguments.whole("length", length)
    if length < 0:
        raise ValueError(f"length is {length}; it must not be negative")
    return offset, min(length, rest)


def indexed(size: int, key: Any) -> int | tuple[int, int]:
    """Returns the position of one byte, or the first and the number of a slice's."""
    if isinstance(key, slice):
        start, stop, step = key.indices(size)
        if step != 1:
            raise IndexError(f"the step of the slice is {step}; only 1 is allowed")
        return start, max(stop - start, 0)
    position = _arguments.whole("key", key)
    if not -size <= position < size:
        raise IndexError(f"the index is {position}; the buffer has {size} bytes")
    return position % size
