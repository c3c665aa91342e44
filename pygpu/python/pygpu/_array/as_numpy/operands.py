"""What these functions make of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._core import GPUArray
from ..axes import normalize_axis_tuple
from ..creation import to_gpu

ufuncs = _core.universal_functions


def on_device(value: Any) -> GPUArray:
    """The value as an array on the device: an array there as it is, all else by a copy."""
    return value if isinstance(value, GPUArray) else to_gpu(np.asarray(value))


def on_host(value: Any) -> np.ndarray[Any, Any]:
    """The value as an array of numpy's; for the few arguments that say what is to be done."""
    return value.get() if isinstance(value, GPUArray) else np.asarray(value)


def inexact(a: GPUArray) -> GPUArray:
    """The elements as numbers with fractions: integers become float64."""
    return a if a.dtype.kind in "fcV" else a.astype(np.float64)


def is_nan(a: GPUArray) -> GPUArray | None:
    """Where elements are NaN; None if the dtype has no NaN."""
    return ufuncs["isnan"](a) if a.dtype.kind in "fcV" else None


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that an argument names, from 0 on; all of them for None."""
    return tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)


def last_axis(a: GPUArray, axis: Any) -> tuple[GPUArray, tuple[int, ...]]:
    """The array with the axes that are named joined into its last one, and those axes."""
    axes = axes_of(axis, a.ndim)
    kept = [it for it in range(a.ndim) if it not in axes]
    moved = a.transpose((*kept, *axes))
    if len(axes) == 1:
        return moved, axes
    length = int(np.prod([a.shape[it] for it in axes], dtype=int))
    return moved.reshape((*(a.shape[it] for it in kept), length)), axes


def with_axes(result: GPUArray, axes: tuple[int, ...], keepdims: bool) -> GPUArray:
    """The result of a reduction, with an axis of one element for each that was reduced."""
    if not keepdims:
        return result
    ndim, rest = result.ndim + len(axes), iter(result.shape)
    return result.reshape(tuple(1 if it in axes else next(rest) for it in range(ndim)))
