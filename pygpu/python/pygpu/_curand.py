"""The names of PyCUDA's extension module for cuRAND: direction vectors and scramble constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arguments, _core
from ._lazy import names as _names

if TYPE_CHECKING:
    from ._driver.enumerations import direction_vector_set
else:
    __getattr__, __dir__ = _names(__name__, {"._driver.enumerations": "direction_vector_set"})

__all__ = ["_get_direction_vectors", "_get_scramble_constants32", "_get_scramble_constants64"]
__all__ += ["direction_vector_set", "get_curand_version"]


def get_curand_version() -> tuple[int, int, int]:
    """Returns (5, 0, 0), the first version of cuRAND for which PyCUDA has all generators.

    >>> from pygpu.curandom import get_curand_version
    >>> get_curand_version() >= (4, 1, 0)
    True
    """
    return (5, 0, 0)


def _bits_of(direction: Any) -> tuple[int, bool]:
    """Returns the bits of a set's vectors, and True if they are scrambled."""
    from ._driver.enumerations import direction_vector_set as names  # made when asked for

    member = _arguments.member("direction", names, direction)
    bits = 64 if member in (names.VECTOR_64, names.SCRAMBLED_VECTOR_64) else 32
    return bits, member in (names.SCRAMBLED_VECTOR_32, names.SCRAMBLED_VECTOR_64)


def _fill(dst: Any, words: np.ndarray) -> None:
    target = np.frombuffer(dst, np.uint32)
    if target.size < words.size:
        raise ValueError(f"dst.nbytes is {target.nbytes}; at least {words.nbytes} is needed")
    target[: words.size] = words


def _get_direction_vectors(set: Any, dst: Any, count: int) -> None:
    bits, scrambled = _bits_of(set)
    _fill(dst, _core.random_direction_vectors(bits, count, scrambled))


def _get_scramble_constants32(dst: Any, count: int) -> None:
    _fill(dst, _core.random_scramble_constants(32, count))


def _get_scramble_constants64(dst: Any, count: int) -> None:
    _fill(dst, _core.random_scramble_constants(64, count))
