"""Dot products, and reductions of the elements that an array of indices names."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import GPUArray
from ._core import Reduction as _Reduction
from ._indexing import take


def dot(
    a: GPUArray, b: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """The sum of the products of corresponding elements, as an array without axes."""
    return _core.dot(a, b, dtype, stream, allocator)


def subset_sum(
    subset: GPUArray, a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """The sum of the elements of ``a`` that the indices in ``subset`` name."""
    return _core.reduce_subset(_Reduction.Sum, subset, a, dtype, stream, allocator)


def subset_dot(
    subset: GPUArray,
    a: GPUArray,
    b: GPUArray,
    dtype: Any = None,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """The dot product of the elements of ``a`` and ``b`` that ``subset`` names."""
    x, y = take(a, subset, stream=stream), take(b, subset, stream=stream)
    return _core.dot(x, y, dtype, stream, allocator)


def subset_min(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """The smallest of the elements of ``a`` that ``subset`` names."""
    return _core.reduce_subset(_Reduction.Minimum, subset, a, None, stream)


def subset_max(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """The largest of the elements of ``a`` that ``subset`` names."""
    return _core.reduce_subset(_Reduction.Maximum, subset, a, None, stream)
