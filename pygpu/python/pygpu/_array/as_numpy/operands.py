"""Conversions of these functions' arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._arguments import normalize_axis_tuple
from ..._core import GPUArray
from .. import Axis
from ..creation import to_gpu

ufuncs = _core.universal_functions


def on_device(value: Any) -> GPUArray:
    """Returns the value as an array on the device, copied unless it is one."""
    return value if isinstance(value, GPUArray) else to_gpu(np.asarray(value))


def on_host(value: Any) -> np.ndarray[Any, Any]:
    """Returns the value as a numpy array, for the few arguments that the host has to read."""
    return value.get() if isinstance(value, GPUArray) else np.asarray(value)


def inexact(a: GPUArray) -> GPUArray:
    """Returns the elements in a floating-point or complex dtype; integers become float64."""
    return a if a.dtype.kind in "fcV" else a.astype(np.float64)


def is_nan(a: GPUArray) -> GPUArray | None:
    """Returns a mask of the NaNs; None if the dtype has no NaN."""
    return ufuncs["isnan"](a) if a.dtype.kind in "fcV" else None


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Returns the axes of an argument as non-negative integers; all axes for None."""
    return tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)


def flat_or_axis(value: Any, axis: Axis) -> tuple[GPUArray, int]:
    """Returns an array and its axis; without an axis, the flattened array and 0."""
    a = on_device(value).ravel() if axis is None else on_device(value)
    (axis,) = axes_of(0 if axis is None else axis, a.ndim)
    return a, axis


def last_axis(a: GPUArray, axis: Axis) -> tuple[GPUArray, tuple[int, ...]]:
    """Returns the array with the given axes joined into the last one, and those axes."""
    axes = axes_of(axis, a.ndim)
    kept = [it for it in range(a.ndim) if it not in axes]
    moved = a.transpose((*kept, *axes))
    if len(axes) == 1:
        return moved, axes
    length = int(np.prod([a.shape[it] for it in axes], dtype=int))
    return moved.reshape((*(a.shape[it] for it in kept), length)), axes


def with_axes(result: GPUArray, axes: tuple[int, ...], keepdims: bool) -> GPUArray:
    """Returns the result of a reduction, with reduced axes of extent 1 if ``keepdims`` is set."""
    if not keepdims:
        return result
    ndim, rest = result.ndim + len(axes), iter(result.shape)
    return result.reshape(tuple(1 if it in axes else next(rest) for it in range(ndim)))
