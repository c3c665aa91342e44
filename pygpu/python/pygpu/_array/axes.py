"""Functions along one axis, and numpy's checks of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._arguments import gpu_array
from .._core import GPUArray, Reduction

# numpy has them in another place before version 2.
try:
    from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple  # noqa: F401
except ImportError:  # pragma: no cover
    from numpy.core.numeric import (  # type: ignore[no-redef]
        normalize_axis_index,
    )

__all__ = ["argmax", "argmin", "argsort", "cumprod", "cumsum", "sort"]


def along_axis(a: GPUArray, axis: Any) -> tuple[GPUArray, int]:
    """Returns the elements, and the number of one of their axes.

    Without an axis the elements are read as along one, and so is an array without axes.
    """
    if axis is None:
        return GPUArray.ravel(gpu_array("a", a)), 0
    flat = GPUArray.ravel(a) if gpu_array("a", a).ndim == 0 else a
    return flat, normalize_axis_index(axis, flat.ndim)


def _running(
    reduction: Reduction, a: GPUArray, axis: Any, dtype: Any, out: Any, stream: Any, allocator: Any
) -> GPUArray:
    a, axis = along_axis(a, axis)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.uint64 if a.dtype.kind == "u" else np.int64
    return _core.scan(reduction, a, axis, False, dtype, out, stream, allocator)


def cumsum(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    *,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the running sums along an axis, as :func:`numpy.cumsum`; ``out`` may be `a` itself.

    >>> gpuarray.cumsum(gpuarray.arange(6).reshape(2, 3), axis=1).get().tolist()
    [[0, 1, 3], [3, 7, 12]]
    """
    return _running(Reduction.Sum, a, axis, dtype, out, stream, allocator)


def cumprod(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    *,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the running products along an axis, as :func:`numpy.cumprod`.

    >>> gpuarray.cumprod(gpuarray.arange(1, 5)).get()
    array([ 1,  2,  6, 24])
    """
    return _running(Reduction.Product, a, axis, dtype, out, stream, allocator)


def _first(
    a: GPUArray, reduction: Reduction, axis: int | None, out: Any, keepdims: bool
) -> GPUArray:
    """Returns the least index of an element that the reduction returns."""
    ndim = gpu_array("a", a).ndim
    a, axis = along_axis(a, axis)
    length = a.shape[axis]
    if length == 0:
        raise ValueError(
            f"attempt to get the position of an extreme element of an empty sequence: a has shape "
            f"{a.shape}"
        )
    result = _core.position(reduction, a, axis, keepdims)
    if keepdims and a.ndim != ndim:
        result = result.reshape((1,) * ndim)
    if out is None:
        return result
    if gpu_array("out", out).shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; the result has shape {result.shape}")
    return _core.universal_functions["positive"](result, out=out)


def argmin(
    a: GPUArray,
    axis: int | None = None,
    out: GPUArray | None = None,
    *,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the index of the smallest element, as :func:`numpy.argmin`.

    >>> gpuarray.argmin(gpuarray.to_gpu(np.array([[3, 1], [0, 2]])), axis=1).get()
    array([1, 0])
    """
    return _first(a, Reduction.Minimum, axis, out, keepdims)


def argmax(
    a: GPUArray,
    axis: int | None = None,
    out: GPUArray | None = None,
    *,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the index of the largest element, as :func:`numpy.argmax`.

    >>> gpuarray.argmax(gpuarray.arange(6).reshape(2, 3)).get()
    array(5)
    """
    return _first(a, Reduction.Maximum, axis, out, keepdims)


def sort(a: GPUArray, axis: int | None = -1, kind: str | None = None) -> GPUArray:
    """Returns a sorted copy, as :func:`numpy.sort`; every ``kind`` of sort is stable.

    >>> gpuarray.sort(gpuarray.to_gpu(np.array([3, 1, 2]))).get()
    array([1, 2, 3])
    """
    return _core.sorted(a, axis, kind)


def argsort(a: GPUArray, axis: int | None = -1, kind: str | None = None) -> GPUArray:
    """Returns the indices that sort the elements, as :func:`numpy.argsort`.

    >>> gpuarray.argsort(gpuarray.to_gpu(np.array([3.0, 1.0, 2.0]))).get()
    array([1, 2, 0])
    """
    return _core.sorted(a, axis, kind, True)
