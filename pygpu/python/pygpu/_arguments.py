"""Checks of arguments, whose errors name the argument."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._core import GPUArray


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


def gpu_array(name: str, value: Any) -> Any:
    """Returns the value, which has to be a GPUArray."""
    if isinstance(value, GPUArray):
        return value
    hint = "; to_gpu copies a numpy array to the device" if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name} is of type {type(value).__name__}; a GPUArray is needed{hint}")


def gpu_arrays(name: str, values: Any) -> list[GPUArray]:
    """Returns the entries of a sequence of GPUArrays."""
    if isinstance(values, GPUArray) or not _iterable(values):
        raise TypeError(
            f"{name} is of type {type(values).__name__}; a sequence of GPUArrays is needed"
        )
    return [gpu_array(f"{name}[{position}]", value) for position, value in enumerate(values)]


def _iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes)
