"""Checks of arguments, whose errors name the argument."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import _core
from ._core import GPUArray

try:  # numpy 2
    from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
except ImportError:  # pragma: no cover
    from numpy.core.numeric import (  # type: ignore[no-redef]
        normalize_axis_index,
        normalize_axis_tuple,  # noqa: F401
    )


def wrong_type(name: str, value: Any, needed: str) -> TypeError:
    """Returns the error for an argument of a wrong type; ``needed`` says which one is allowed."""
    return TypeError(f"{name} is of type {type(value).__name__}; {needed}")


def whole(name: str, value: Any) -> int:
    """Returns the value as a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise wrong_type(name, value, "a whole number is needed") from None


def not_negative(name: str, value: Any) -> int:
    """Returns the value as a whole number, which must not be negative."""
    number = whole(name, value)
    if number < 0:
        raise ValueError(f"{name} is {number}; it must not be negative")
    return number


def has_fractions(dtype: np.dtype[Any]) -> bool:
    """Returns True for floating-point and complex dtypes, whose numbers can be NaN."""
    # To numpy, dtypes of other packages are records without fields.
    return dtype.kind in "fc" or dtype.name in _core.extension_dtypes()


def ordinals(count: int) -> str:
    """Returns the device numbers that exist, as text for an error."""
    return "the only device is number 0" if count == 1 else f"devices are numbers 0 to {count - 1}"


def address(name: str, value: Any) -> int:
    """Returns the address of device memory: an array, an allocation or a whole number."""
    if isinstance(value, GPUArray):
        return value.ptr
    # int() would read a text, and truncate a fraction.
    if isinstance(value, float | np.floating) or not hasattr(value, "__int__"):
        raise wrong_type(name, value, "a GPUArray, an allocation or an address is needed")
    return int(value)


def host_memory(name: str, value: Any) -> Any:
    """Returns the value, a numpy array or another object with the buffer protocol."""
    if not isinstance(value, np.ndarray | np.generic):
        try:
            memoryview(value).release()
        except TypeError:
            needed = "a numpy array or an object with the buffer protocol is needed"
            raise wrong_type(name, value, needed) from None
    return value


def extents(name: str, value: Any) -> tuple[int, ...]:
    """Returns the extents of a shape, which may be one whole number."""
    shape: tuple[int, ...]
    try:
        shape = (operator.index(value),)
    except TypeError:
        try:
            shape = tuple(operator.index(extent) for extent in value)
        except TypeError:
            raise TypeError(f"{name} is {value!r}; whole numbers are needed") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"{name} is {shape}; extents must not be negative")
    return shape


def pair(name: str, value: Any) -> tuple[int, int]:
    """Returns the value, which has to be a sequence of two whole numbers."""
    try:
        first, second = value
        return operator.index(first), operator.index(second)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}; a tuple of two whole numbers is needed") from None


def truth(name: str, value: Any) -> bool | None:
    """Returns the value, which has to be True, False or None."""
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    raise TypeError(f"{name} is {value!r}; True, False or None is needed")


def instance(name: str, value: Any, kind: type) -> Any:
    """Returns the value, which must be an object of the class."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0].lower() in "aeiou" else "a"
        raise wrong_type(name, value, f"{article} {kind.__name__} is needed")
    return value


def member(name: str, members: Any, value: Any) -> Any:
    """Returns the member of an enumeration with a number."""
    number = whole(name, value)
    if number not in members.values:
        raise ValueError(f"{name} is {number}; allowed are the values of {members.__name__}")
    return members(number)


def array(name: str, value: Any) -> Any:
    """Returns the value, which must be a numpy array, a GPUArray or similar."""
    if not all(hasattr(value, part) for part in ("shape", "dtype", "nbytes")):
        raise wrong_type(name, value, "an array is needed")
    return value


def gpu_array(name: str, value: Any) -> Any:
    """Returns the value, which has to be a GPUArray."""
    if isinstance(value, GPUArray):
        return value
    hint = "; to_gpu copies a numpy array to the device" if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name} is of type {type(value).__name__}; a GPUArray is needed{hint}")


def gpu_arrays(name: str, values: Any) -> list[GPUArray]:
    """Returns the entries of a sequence of GPUArrays."""
    if isinstance(values, GPUArray | str | bytes) or not hasattr(values, "__iter__"):
        raise wrong_type(name, values, "a sequence of GPUArrays is needed")
    return [gpu_array(f"{name}[{position}]", value) for position, value in enumerate(values)]


def along_axis(a: GPUArray, axis: Any) -> tuple[GPUArray, int]:
    """Returns the array and the axis; flattened if axis is None or the array has no axes."""
    if axis is None:
        return GPUArray.ravel(gpu_array("a", a)), 0
    flat = GPUArray.ravel(a) if gpu_array("a", a).ndim == 0 else a
    return flat, normalize_axis_index(axis, flat.ndim)


def plain_dtype(dtype: Any) -> np.dtype:
    """Returns the dtype, whose elements must be plain bytes."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"dtype is {dtype}: its elements are Python objects, not plain bytes")
    return dtype


def same_shape(out: GPUArray, result: GPUArray) -> GPUArray:
    """Returns the output, which must have the shape of the result."""
    if gpu_array("out", out).shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; the result has shape {result.shape}")
    return out


def check_holds(out: GPUArray, dtype: np.dtype[Any]) -> None:
    """Refuses an output that does not hold elements of the dtype."""
    if not np.can_cast(dtype, gpu_array("out", out).dtype, "same_kind"):
        why = f"does not hold {dtype} (numpy's rule 'same_kind')"
        raise TypeError(f"out is of dtype {out.dtype}, which {why}")


def stored(result: GPUArray, out: GPUArray | None) -> GPUArray:
    """Returns the result, which is stored in the output if there is one."""
    if out is None:
        return result
    check_holds(out, result.dtype)
    same_shape(out, result)[...] = result
    return out
