"""Arrays in device memory, with the names of ``pycuda.gpuarray``.

Functions broadcast and choose dtypes as numpy does. Where PyCUDA has its own rule (a
reduction keeps the dtype of its array and returns an array without axes) it is PyCUDA's.

An argument ``out`` receives the result: an array of a shape that the arguments broadcast to, and
of a dtype that the result fits within its kind (numpy's rule ``same_kind``).

numpy's own functions refuse a ``GPUArray`` with a ``TypeError`` that says what to call; only
those about shape and dtype (``np.shape``, ``np.ndim``, ``np.size``, ``np.result_type``, ...)
answer. Operators with numpy's scalars work on the device.

An integer to a negative power is refused if the exponent is a number, as by numpy. In an array
of exponents a device cannot refuse it: there the result is what the exact quotient rounds to
towards zero (1 or -1 for a base of 1 or -1, else 0).
"""

from __future__ import annotations

import builtins as _builtins
import functools as _functools
from typing import Any

import numpy as np

from . import _core
from ._arguments import gpu_array as _gpu_array
from ._core import ArrayFlags, GPUArray
from ._core import Reduction as _Reduction
from ._creation import (
    arange,
    empty,
    empty_like,
    full,
    ones,
    ones_like,
    to_gpu,
    to_gpu_async,
    zeros,
    zeros_like,
)
from ._exchange import from_cuda_array_interface, from_dlpack
from ._indexing import multi_put, multi_take, multi_take_put, take
from ._vector_types import vec
from .characterize import has_double_support

__all__ = [
    "ArrayFlags",
    "GPUArray",
    "all",
    "any",
    "arange",
    "concatenate",
    "dot",
    "empty",
    "empty_like",
    "from_cuda_array_interface",
    "from_dlpack",
    "full",
    "has_double_support",
    "if_positive",
    "logical_and",
    "logical_not",
    "logical_or",
    "max",
    "maximum",
    "min",
    "minimum",
    "multi_put",
    "multi_take",
    "multi_take_put",
    "ones",
    "ones_like",
    "reshape",
    "splay",
    "stack",
    "subset_dot",
    "subset_max",
    "subset_min",
    "subset_sum",
    "sum",
    "take",
    "to_gpu",
    "to_gpu_async",
    "transpose",
    "vec",
    "where",
    "zeros",
    "zeros_like",
]


# -- shapes -------------------------------------------------------------------------------


def concatenate(arrays: Any, axis: int = 0, allocator: Any = None) -> GPUArray:
    """Joins arrays along an axis that they have."""
    return _core.concatenate(arrays, axis, allocator)


def stack(arrays: Any, axis: int = 0, allocator: Any = None) -> GPUArray:
    """Joins arrays of one shape along a new axis."""
    return _core.stack(arrays, axis, allocator)


def transpose(a: GPUArray, axes: Any = None) -> GPUArray:
    """The view with its axes in another order; reversed without one."""
    return _gpu_array("a", a).transpose(axes)


def reshape(a: GPUArray, *shape: Any, **kwargs: Any) -> GPUArray:
    """The elements under another shape."""
    return _gpu_array("a", a).reshape(*shape, **kwargs)


_minimum, _maximum, _logical_and, _logical_or, _logical_not = map(
    _core.named_functions["gpuarray"].__getitem__,
    ("minimum", "maximum", "logical_and", "logical_or", "logical_not"),
)

# -- choices ------------------------------------------------------------------------------


def if_positive(
    criterion: GPUArray, then_: Any, else_: Any, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """``then_`` where ``criterion`` is greater than zero, else ``else_``."""
    return _core.select(criterion, then_, else_, True, out, stream)


def where(
    criterion: GPUArray, then_: Any, else_: Any, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """``then_`` where ``criterion`` is not zero, else ``else_``."""
    return _core.select(criterion, then_, else_, False, out, stream)


def minimum(a: Any, b: Any, out: GPUArray | None = None, stream: Any = None) -> GPUArray:
    """The smaller of corresponding elements; NaN if either is."""
    return _minimum(a, b, out, stream)


def maximum(a: Any, b: Any, out: GPUArray | None = None, stream: Any = None) -> GPUArray:
    """The larger of corresponding elements; NaN if either is."""
    return _maximum(a, b, out, stream)


def _logical(
    of_arrays: Any, of_numbers: Any, x1: Any, x2: Any, out: Any, allocator: Any
) -> GPUArray:
    is_array = isinstance(x1, GPUArray) or isinstance(x2, GPUArray)
    if not is_array and np.isscalar(x1) and np.isscalar(x2):
        if out is None:
            out = GPUArray((), np.bool_, allocator)
        return out.fill(of_numbers(x1, x2))
    return of_arrays(x1, x2, out)


def logical_and(
    x1: Any, x2: Any, /, out: GPUArray | None = None, *, allocator: Any = None
) -> GPUArray:
    """True where both are not zero."""
    return _logical(_logical_and, np.logical_and, x1, x2, out, allocator)


def logical_or(
    x1: Any, x2: Any, /, out: GPUArray | None = None, *, allocator: Any = None
) -> GPUArray:
    """True where either is not zero."""
    return _logical(_logical_or, np.logical_or, x1, x2, out, allocator)


def logical_not(x: Any, /, out: GPUArray | None = None, *, allocator: Any = None) -> GPUArray:
    """True where the element is zero."""
    if not isinstance(x, GPUArray) and np.isscalar(x):
        out = GPUArray((), np.bool_, allocator) if out is None else out
        return out.fill(np.logical_not(x))
    return _logical_not(x, out)


# -- reductions ---------------------------------------------------------------------------


def sum(a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None) -> GPUArray:
    """The sum of all elements, in ``dtype`` or that of ``a``, as an array without axes."""
    return _core.reduce(_Reduction.Sum, a, dtype, stream, allocator)


def any(a: GPUArray, stream: Any = None, allocator: Any = None) -> GPUArray:
    """True, as an array without axes, if any element is not zero."""
    return _core.reduce(_Reduction.Any, a, None, stream, allocator)


def all(a: GPUArray, stream: Any = None, allocator: Any = None) -> GPUArray:
    """True, as an array without axes, if no element is zero."""
    return _core.reduce(_Reduction.All, a, None, stream, allocator)


def min(a: GPUArray, stream: Any = None) -> GPUArray:
    """The smallest element, as an array without axes."""
    return _core.reduce(_Reduction.Minimum, a, None, stream)


def max(a: GPUArray, stream: Any = None) -> GPUArray:
    """The largest element, as an array without axes."""
    return _core.reduce(_Reduction.Maximum, a, None, stream)


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


# -- launch shapes -----------------------------------------------------------------------


@_functools.lru_cache(maxsize=1024)
def _splay(n: int, multiprocessors: int) -> tuple[tuple[int, int], tuple[int, int, int]]:
    warp, most_threads, most_blocks = 32, 128, 32 * multiprocessors
    per_block = -(-n // most_blocks)
    threads = _builtins.min(most_threads, _builtins.max(warp, -(-per_block // warp) * warp))
    blocks = _builtins.max(1, _builtins.min(most_blocks, -(-n // threads)))
    return (blocks, 1), (threads, 1, 1)


def splay(n: int, dev: Any = None) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """A grid and a block for work on ``n`` elements: blocks of up to 128 threads, as many as
    keep the device busy; each thread then walks over the elements with the grid's stride."""
    ordinal = _core.current_ordinal() if dev is None else dev.ordinal
    return _splay(int(n), _core.device_attribute(ordinal, 16))


# -- pickling ----------------------------------------------------------------------------


def _rebuild(cls: type, data: Any) -> GPUArray:
    """Makes an array from its pickled elements; its class is kept."""
    plain = to_gpu(data)
    if cls is GPUArray:
        return plain
    return cls(plain.shape, plain.dtype, gpudata=plain.gpudata, strides=plain.strides)
