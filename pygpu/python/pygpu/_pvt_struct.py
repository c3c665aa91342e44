"""Packing of a kernel's arguments, with the names of ``pycuda._pvt_struct``.

The format codes are those of Python's :mod:`struct`, with ``F`` and ``D`` for complex numbers of
single and double precision. A number is aligned to its size, because a kernel reads it so.
"""

from __future__ import annotations

import re
import struct
from struct import error
from typing import Any

import numpy as np

__all__ = ["Struct", "calcsize", "error", "pack", "pack_into", "unpack", "unpack_from"]

# The code of the two parts of a complex number.
_COMPLEX = {"F": "f", "D": "d"}
_CODE = re.compile(r"(\d*)([a-zA-Z?])")


class Struct:
    """The codes ``format``, for packing and unpacking; ``size`` is the bytes of packed values.

    >>> Struct("bD").size, Struct("F").unpack(Struct("F").pack(1 + 2j))
    (24, ((1+2j),))
    """

    def __init__(self, format: str | bytes) -> None:
        self.format = format.decode() if isinstance(format, bytes) else format
        # True for each value that is a complex number.
        self._is_complex: list[bool] = []
        codes = ""
        if re.sub(_CODE, "", self.format).strip(" \t\n@=<>!"):
            raise error(f"bad char in struct format {self.format!r}")
        for count, code in _CODE.findall(self.format):
            repeat = int(count or 1)
            if code in _COMPLEX:
                codes += f" {2 * repeat}{_COMPLEX[code]}"
                self._is_complex += [True] * repeat
            else:
                codes += f" {count}{code}"
                self._is_complex += [False] * (1 if code in "sp" else 0 if code == "x" else repeat)
        order = self.format.strip()[:1]
        self._struct = struct.Struct((order if order in "@=<>!" else "") + codes)
        self.size = self._struct.size

    def _flat(self, values: tuple[Any, ...]) -> list[Any]:
        if len(values) != len(self._is_complex):
            counts = f"{len(self._is_complex)} items for packing (got {len(values)})"
            raise error(f"pack expected {counts}")
        flat: list[Any] = []
        for value, is_complex in zip(values, self._is_complex):
            if is_complex:
                flat += (complex(value).real, complex(value).imag)
            elif isinstance(value, np.ndarray | np.void):
                flat.append(value.tobytes())
            else:
                flat.append(value.item() if isinstance(value, np.generic) else value)
        return flat

    def pack(self, *args: Any) -> bytes:
        """Returns the bytes of values."""
        return self._struct.pack(*self._flat(args))

    def pack_into(self, buffer: Any, offset: int, *args: Any) -> None:
        """Writes the bytes of values to a buffer, from an offset in bytes."""
        self._struct.pack_into(buffer, offset, *self._flat(args))

    def unpack(self, buffer: Any) -> tuple[Any, ...]:
        """Returns the values that bytes hold."""
        return self.unpack_from(buffer) if len(buffer) == self.size else self._struct.unpack(buffer)

    def unpack_from(self, buffer: Any, offset: int = 0) -> tuple[Any, ...]:
        """Returns the values that a buffer holds, from an offset in bytes."""
        numbers = iter(self._struct.unpack_from(buffer, offset))
        return tuple(
            complex(next(numbers), next(numbers)) if is_complex else next(numbers)
            for is_complex in self._is_complex
        )


def calcsize(fmt: str | bytes) -> int:
    """Returns the bytes of the values that a format describes."""
    return Struct(fmt).size


def pack(fmt: str | bytes, *args: Any) -> bytes:
    """Returns the bytes of values."""
    return Struct(fmt).pack(*args)


def pack_into(fmt: str | bytes, buffer: Any, offset: int, *args: Any) -> None:
    """Writes the bytes of values to a buffer, from an offset in bytes."""
    Struct(fmt).pack_into(buffer, offset, *args)


def unpack(fmt: str | bytes, string: Any) -> tuple[Any, ...]:
    """Returns the values that bytes hold."""
    return Struct(fmt).unpack(string)


def unpack_from(fmt: str | bytes, buffer: Any, offset: int = 0) -> tuple[Any, ...]:
    """Returns the values that a buffer holds, from an offset in bytes."""
    return Struct(fmt).unpack_from(buffer, offset)
