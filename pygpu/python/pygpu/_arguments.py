"""Checks of arguments, whose errors name the argument."""

from __future__ import annotations

import operator
from typing import Any


def whole(name: str, value: Any) -> int:
    """The value as a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} is of type {type(value).__name__}; a whole number is needed"
        ) from None


def instance(name: str, value: Any, kind: type) -> Any:
    """The value, which has to be an object of a class."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is of type {type(value).__name__}; a {kind.__name__} is needed")
    return value


def array(name: str, value: Any) -> Any:
    """The value, which has to be an array of numpy's, of this library or like them."""
    if not all(hasattr(value, part) for part in ("shape", "dtype", "nbytes")):
        raise TypeError(f"{name} is of type {type(value).__name__}; an array is needed")
    return value
