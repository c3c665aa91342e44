"""New arrays: from numpy's, of one value, of evenly spaced numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _core
from ._arguments import gpu_array
from ._core import GPUArray


def to_gpu(ary: Any, allocator: Any = None) -> GPUArray:
    """Copies a numpy array to the device; its axes keep their order in memory."""
    return _core.to_gpu(ary, allocator)


def to_gpu_async(ary: Any, allocator: Any = None, stream: Any = None) -> GPUArray:
    """As :func:`to_gpu`, queued on a stream."""
    return _core.to_gpu(ary, allocator, stream, False)


empty = GPUArray


def full(
    shape: Any, fill_value: Any, dtype: Any = None, allocator: Any = None, order: str | None = "C"
) -> GPUArray:
    """A new array, every element ``fill_value``."""
    if dtype is None:
        dtype = (
            fill_value.dtype if isinstance(fill_value, GPUArray) else np.asarray(fill_value).dtype
        )
    return _core.full(shape, dtype, fill_value, allocator, order)


def zeros(
    shape: Any, dtype: Any = np.float64, allocator: Any = None, order: str | None = "C"
) -> GPUArray:
    """A new array of zeros."""
    return _core.zeros(shape, dtype, allocator, order)


def ones(
    shape: Any, dtype: Any = np.float64, allocator: Any = None, order: str | None = "C"
) -> GPUArray:
    """A new array of ones."""
    dtype = np.dtype(dtype)
    return _core.full(shape, dtype, np.ones((), dtype), allocator, order)


def empty_like(other_ary: GPUArray, dtype: Any = None, order: str | None = "K") -> GPUArray:
    """A new array of the shape of ``other_ary``, and of its dtype unless one is given.

    ``order`` is that of the new array in memory: "C", "F", "A" (F if ``other_ary`` is so
    only) or "K" (as near to that of ``other_ary`` as an array without gaps can be).
    """
    gpu_array("other_ary", other_ary)
    dtype = other_ary.dtype if dtype is None else np.dtype(dtype)
    allocator = other_ary.allocator
    flags = other_ary.flags
    if order == "A":
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if order in ("C", "F"):
        return GPUArray(other_ary.shape, dtype, allocator, order=order)
    if order not in ("K", None):
        raise ValueError(f"Unsupported order: {order!r}; allowed are C, F, A and K")
    if flags.c_contiguous or other_ary.ndim <= 1:
        return GPUArray(other_ary.shape, dtype, allocator)
    axes = sorted(range(other_ary.ndim), key=lambda axis: (-abs(other_ary.strides[axis]), axis))
    strides = [0] * other_ary.ndim
    step = dtype.itemsize
    for axis in reversed(axes):
        strides[axis] = step
        step *= max(1, other_ary.shape[axis])
    return GPUArray(other_ary.shape, dtype, allocator, strides=tuple(strides))


def zeros_like(other_ary: GPUArray, dtype: Any = None, order: str | None = "K") -> GPUArray:
    """As :func:`empty_like`, filled with zeros."""
    result = empty_like(other_ary, dtype, order)
    return result.fill(np.zeros((), result.dtype))


def ones_like(other_ary: GPUArray, dtype: Any = None, order: str | None = "K") -> GPUArray:
    """As :func:`empty_like`, filled with ones."""
    result = empty_like(other_ary, dtype, order)
    return result.fill(np.ones((), result.dtype))


def arange(*args: Any, **kwargs: Any) -> GPUArray:
    """``arange([start,] stop[, step], dtype=None)``: evenly spaced numbers below ``stop``.

    For numbers with fractions the length is ``ceil((stop - start) / step)``.
    """
    names = ("start", "stop", "step")
    dtype = kwargs.pop("dtype", None)
    kwargs.pop("stream", None)
    if args and isinstance(args[-1], (np.dtype, type)):
        if dtype is not None:
            raise ValueError("may not specify 'dtype' by position and keyword")
        args, dtype = args[:-1], args[-1]
    if len(args) > 3:
        raise ValueError(f"too many arguments: {len(args)}; start, stop and step are allowed")
    if len(args) == 3 and not kwargs:
        return _sequence(*args, dtype)
    positions = names[1:2] if len(args) == 1 else names
    given = dict(zip(positions, args))
    for name, value in kwargs.items():
        if name not in names:
            raise ValueError(f"unexpected keyword argument '{name}'")
        if name in given:
            raise ValueError(f"may not specify '{name}' by position and keyword")
        given[name] = value
    if "stop" not in given:
        raise ValueError("stop argument required")
    return _sequence(given.get("start", 0), given["stop"], given.get("step", 1), dtype)


def _sequence(start: Any, stop: Any, step: Any, dtype: Any) -> GPUArray:
    if dtype is None:
        dtype = np.array([start, stop, step]).dtype
    if step == 0:
        raise ValueError("step is 0; it must not be")
    length = max(0, math.ceil((stop - start) / step))
    return _core.sequence(start, step, length, dtype)
