"""Reads tables of flatbuffers, of which nothing is believed.

Every read is checked against the bytes. A table has a table of its fields' places, the "vtable",
before or behind it; the format is that of the page "FlatBuffers internals" of its documentation.
"""

from __future__ import annotations

import struct


class Table:
    """A table in the bytes of a flatbuffer.

    Raises
    ------
    ValueError
        A place lies outside the bytes.
    """

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._vtable = place - self._number("<i", place)
        self._size = self._number("<H", self._vtable)

    @staticmethod
    def root(data: bytes) -> Table:
        """Returns the table that a flatbuffer begins with."""
        if len(data) < 4:
            raise ValueError(f"the metadata has {len(data)} bytes; a flatbuffer has 4 or more")
        return Table(data, struct.unpack_from("<I", data)[0])

    def _number(self, form: str, place: int) -> int:
        size = struct.calcsize(form)
        if not 0 <= place <= len(self._data) - size:
            raise ValueError(
                f"the metadata has {len(self._data)} bytes, and refers to byte {place}"
            )
        return struct.unpack_from(form, self._data, place)[0]

    def _field(self, number: int) -> int | None:
        """Returns the place of a field; None for one that is not there."""
        entry = 4 + 2 * number
        if entry + 2 > self._size:
            return None
        offset = self._number("<H", self._vtable + entry)
        return self._place + offset if offset else None

    def integer(self, number: int, form: str, default: int = 0) -> int:
        """Returns a field that is a number of the form of :mod:`struct`."""
        place = self._field(number)
        return default if place is None else self._number(form, place)

    def table(self, number: int) -> Table | None:
        """Returns a field that is a table; None if it is not there."""
        place = self._field(number)
        return None if place is None else Table(self._data, place + self._number("<I", place))

    def structs(self, number: int, form: str) -> list[tuple[int, ...]]:
        """Returns a field that is a vector of structures of the form of :mod:`struct`."""
        place = self._field(number)
        if place is None:
            return []
        start = place + self._number("<I", place)
        count, size = self._number("<I", start), struct.calcsize(form)
        if count * size > len(self._data) - start - 4:
            raise ValueError(
                f"the metadata has {len(self._data)} bytes, and at {start} a vector of {count} "
                "entries"
            )
        return list(struct.iter_unpack(form, self._data[start + 4 : start + 4 + count * size]))
