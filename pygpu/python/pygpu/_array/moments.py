"""Means, variances and standard deviations along axes, or of all elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._arguments import gpu_array, has_fractions, stored
from .._core import GPUArray
from .._documentation import member
from .reductions import UNSET, fit_mask, mask_of, reduce_some

__all__ = ["mean", "std", "var"]

_ufuncs = _core.universal_functions


def _moment_dtypes(
    a: GPUArray, dtype: Any, out: GPUArray | None = None
) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Returns the dtypes of the computation and of the result of a mean, which are numpy's."""
    if dtype is None and out is not None and has_fractions(a.dtype) and has_fractions(out.dtype):
        dtype = np.promote_types(a.dtype, out.dtype)
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if not has_fractions(a.dtype):
        return np.dtype(np.float64), np.dtype(np.float64)
    return np.dtype(np.float32) if a.itemsize < 4 else a.dtype, a.dtype


def _mean_where(
    a: GPUArray, mask: GPUArray, axis: Any, dtype: np.dtype[Any], keepdims: bool, allocator: Any
) -> tuple[GPUArray, GPUArray]:
    total = reduce_some(
        "sum", a, where=mask, axis=axis, dtype=dtype, keepdims=keepdims, allocator=allocator
    )
    count = fit_mask(mask, a).sum(axis=axis, keepdims=keepdims)
    return (total / count).astype(dtype), count


def mean(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    *,
    where: Any = UNSET,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the mean, in the dtype of `a` or float64 for whole numbers, as :func:`numpy.mean`."""
    gpu_array("a", a)
    given = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    mask = mask_of(where)
    is_whole = dtype is not None and np.dtype(dtype).kind in "iu"
    if mask is None and not (is_whole and a.size == 0):
        return a.mean(**given, stream=stream, allocator=allocator)
    a = a if stream is None else a.on(stream)
    compute, dtype = _moment_dtypes(a, dtype, out)
    mask = _core.full((), np.bool_, True) if mask is None else mask
    result, count = _mean_where(a, mask, axis, compute, keepdims, allocator)
    if is_whole:
        # The processor's conversion of NaN; devices have their own.
        with np.errstate(invalid="ignore"):
            none: Any = np.array(np.nan).astype(dtype)[()]
        result = _core.select(count == 0, none, result, False)
    return stored(result if compute == dtype else result.astype(dtype), out)


def _spread(
    name: str,
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = UNSET,
    mean: Any = UNSET,
    correction: Any = UNSET,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    gpu_array("a", a)
    ddof = degrees_of(ddof, correction)
    given = {"axis": axis, "dtype": dtype, "out": out, "ddof": ddof, "keepdims": keepdims}
    mask = mask_of(where)
    is_plain = mask is None and mean is UNSET
    if is_plain or not (dtype is None or has_fractions(np.dtype(dtype))):
        return getattr(a, name)(**given, stream=stream, allocator=allocator)
    a = a if stream is None else a.on(stream)
    compute, result_dtype = _moment_dtypes(a, dtype)
    mask = _core.full((), np.bool_, True) if mask is None else mask
    center, count = _mean_where(a, mask, axis, compute, True, allocator)
    apart = a.astype(compute) - (center if mean is UNSET else mean)
    if apart.shape != a.shape:
        raise ValueError(f"mean has shape {np.shape(mean)}; {center.shape} is needed (keepdims)")
    squares = (apart * apart.conj()).real if compute.kind == "c" else apart * apart
    total = reduce_some(
        "sum", squares, where=mask, axis=axis, keepdims=keepdims, allocator=allocator
    )
    if dtype is None:
        result_dtype = np.empty(0, result_dtype).real.dtype
    degrees = _ufuncs["maximum"](count.reshape(total.shape) - ddof, 0)
    variance = (total / degrees).astype(result_dtype)
    return stored(variance if name == "var" else _ufuncs["sqrt"](variance), out)


_VAR = "Returns the variance, real also for complex numbers, as :func:`numpy.var`."
var = member(_spread, "var", "var", _VAR)
std = member(_spread, "std", "std", "Returns the standard deviation, as :func:`numpy.std`.")


def degrees_of(ddof: float, correction: Any) -> float:
    """Returns the number that is taken from the number of elements, of two names."""
    if correction is UNSET:
        return ddof
    if ddof != 0:
        raise ValueError(f"ddof is {ddof} and correction {correction}; only one can be given")
    return correction
