"""Functions along one axis, and numpy's checks of axes."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._arguments import gpu_array, stored
from .._core import GPUArray, Reduction

try:  # numpy 2
    from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
except ImportError:  # pragma: no cover
    from numpy.core.numeric import (  # type: ignore[no-redef]
        normalize_axis_index,
        normalize_axis_tuple,  # noqa: F401
    )

__all__ = ["argmax", "argmin", "argsort", "cumprod", "cumsum", "sort"]


def along_axis(a: GPUArray, axis: Any) -> tuple[GPUArray, int]:
    """Returns the elements, flattened if axis is None or there are no axes, and the axis."""
    if axis is None:
        return GPUArray.ravel(gpu_array("a", a)), 0
    flat = GPUArray.ravel(a) if gpu_array("a", a).ndim == 0 else a
    return flat, normalize_axis_index(axis, flat.ndim)


def _running(
    reduction: Reduction, a: GPUArray, axis: Any, dtype: Any, out: Any, stream: Any, allocator: Any
) -> GPUArray:
    a, axis = along_axis(a, axis)
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
    """Returns the running sums along an axis, as :func:`numpy.cumsum`; ``out`` may be `a`."""
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
    """Returns the running products along an axis, as :func:`numpy.cumprod`."""
    return _running(Reduction.Product, a, axis, dtype, out, stream, allocator)


def _first(
    a: GPUArray, reduction: Reduction, axis: int | None, out: Any, keepdims: bool
) -> GPUArray:
    """Returns the first index of the element that the reduction returns."""
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
    return stored(result, out)


def argmin(
    a: GPUArray, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False
) -> GPUArray:
    """Returns the index of the smallest element, as :func:`numpy.argmin`."""
    return _first(a, Reduction.Minimum, axis, out, keepdims)


def argmax(
    a: GPUArray, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False
) -> GPUArray:
    """Returns the index of the largest element, as :func:`numpy.argmax`."""
    return _first(a, Reduction.Maximum, axis, out, keepdims)


def sort(a: GPUArray, axis: int | None = -1, kind: str | None = None) -> GPUArray:
    """Returns a sorted copy, as :func:`numpy.sort`; every ``kind`` of sort is stable."""
    return _core.sorted(a, axis, kind)


def argsort(a: GPUArray, axis: int | None = -1, kind: str | None = None) -> GPUArray:
    """Returns the indices that sort the elements, as :func:`numpy.argsort`."""
    return _core.sorted(a, axis, kind, True)
