"""PyCUDA's factories of reductions. Those of subsets take an array of indices, which are not
checked, before the arrays.

Parameters
----------
dtype, dtype_in, dtype_a, dtype_b, dtype_subset : dtype. The dtypes of the arrays, and of indices.
dtype_out : dtype. The dtype of the result; None for that of the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tools import context_dependent_memoize
from .c_types import VectorArg
from .reduction_kernel import ReductionKernel
from .snippets import Declared

__all__ = [
    "get_all_kernel",
    "get_any_kernel",
    "get_dot_kernel",
    "get_minmax_kernel",
    "get_minmax_neutral",
    "get_subset_dot_kernel",
    "get_subset_minmax_kernel",
    "get_subset_sum_kernel",
    "get_sum_kernel",
]

_INFINITY = "#define MY_INFINITY __int_as_float(0x7f800000)"


def _array(dtype: Any, name: str) -> Declared:
    return Declared(VectorArg(dtype, name), True)


@context_dependent_memoize
def get_sum_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction of an array to its sum.

    >>> get_sum_kernel(None, np.float32)(gpuarray.arange(5, dtype=np.float32))
    array(10., dtype=float32)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    return ReductionKernel(dtype_out, "0", "a+b", arguments=[_array(dtype_in, "in")])


@context_dependent_memoize
def get_any_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction of an array to 1 if any element is not zero, else 0.

    >>> get_any_kernel(np.int8, np.int32)(gpuarray.arange(3, dtype=np.int32))
    array(1, dtype=int8)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arguments = [_array(dtype_in, "in")]
    return ReductionKernel(dtype_out, "0", "(a != 0) || (b != 0)", "in[i] != 0", arguments)


@context_dependent_memoize
def get_all_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction of an array to 1 if no element is zero, else 0.

    >>> get_all_kernel(np.int8, np.int32)(gpuarray.arange(3, dtype=np.int32))
    array(0, dtype=int8)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arguments = [_array(dtype_in, "in")]
    return ReductionKernel(dtype_out, "1", "(a != 0) && (b != 0)", "in[i] != 0", arguments)


@context_dependent_memoize
def get_subset_sum_kernel(dtype_out: Any, dtype_subset: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction to the sum of some elements of an array.

    >>> total = get_subset_sum_kernel(None, np.int32, np.float32)
    >>> total(gpuarray.arange(3, dtype=np.int32), gpuarray.full(5, 7, np.float32))
    array(21., dtype=float32)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arguments = [_array(dtype_subset, "lookup_tbl"), _array(dtype_in, "in")]
    return ReductionKernel(dtype_out, "0", "a+b", "in[lookup_tbl[i]]", arguments)


@context_dependent_memoize
def get_dot_kernel(dtype_out: Any, dtype_a: Any, dtype_b: Any) -> ReductionKernel:
    """Returns a reduction to the sum of the products of two arrays' elements.

    >>> x = gpuarray.arange(4, dtype=np.float32)
    >>> get_dot_kernel(np.float32, np.float32, np.float32)(x, x)
    array(14., dtype=float32)
    """
    arguments = [_array(dtype_a, "a"), _array(dtype_b, "b")]
    return ReductionKernel(dtype_out, "0", "a+b", "a[i]*b[i]", arguments)


@context_dependent_memoize
def get_subset_dot_kernel(
    dtype_out: Any, dtype_subset: Any, dtype_a: Any = None, dtype_b: Any = None
) -> ReductionKernel:
    """Returns a reduction to the sum of the products of some elements of two arrays.

    ``dtype_a`` is ``dtype_out`` by default, and ``dtype_b`` that of the first array.

    >>> x = gpuarray.arange(5, dtype=np.float32)
    >>> get_subset_dot_kernel(np.float32, np.int32)(gpuarray.arange(3, dtype=np.int32), x, x)
    array(5., dtype=float32)
    """
    dtype_out = dtype_a if dtype_out is None else dtype_out
    dtype_b = next(it for it in (dtype_b, dtype_a, dtype_out) if it is not None)
    dtype_a = dtype_out if dtype_a is None else dtype_a
    arguments = [_array(dtype_subset, "lookup_tbl"), _array(dtype_a, "a"), _array(dtype_b, "b")]
    mapped = "a[lookup_tbl[i]]*b[lookup_tbl[i]]"
    return ReductionKernel(dtype_out, "0", "a+b", mapped, arguments)


def get_minmax_neutral(what: str, dtype: Any) -> str:
    """Returns what a reduction to the least or the largest element begins with, in CUDA C, as
    ``what`` is ``"min"`` or ``"max"``.

    For floats it is ``MY_INFINITY`` or ``-MY_INFINITY``, which the preamble of a kernel has to
    define.

    >>> get_minmax_neutral("min", np.int8), get_minmax_neutral("max", np.float32)
    ('127', '-MY_INFINITY')
    """
    if what not in ("min", "max"):
        raise ValueError(f'what is {what!r}, not "min" or "max"')
    dtype = np.dtype(dtype)
    if issubclass(dtype.type, np.inexact):
        sign = "" if what == "min" else "-"
        return f"{sign}MY_INFINITY"
    limits = np.iinfo(dtype)
    if what == "min":
        return f"{limits.max}{'ull' if limits.max > np.iinfo(np.int64).max else ''}"
    # The least number has no literal of its own in C.
    return f"({limits.min + 1} - 1)" if limits.min else "0"


def _minmax_expression(what: str, dtype: Any) -> str:
    if dtype == np.float64:
        return f"f{what}(a,b)"
    if dtype == np.float32:
        return f"f{what}f(a,b)"
    if np.dtype(dtype).kind in "iu":
        return f"{what}(a,b)"
    raise TypeError(
        f"unsupported dtype specified: {np.dtype(dtype)}; allowed are integers, float32 and float64"
    )


@context_dependent_memoize
def get_minmax_kernel(what: str, dtype: Any) -> ReductionKernel:
    """Returns a reduction of an array, of integers, float32 or float64, to its least or largest
    element, as ``what`` is ``"min"`` or ``"max"``.

    >>> get_minmax_kernel("max", np.float32)(gpuarray.arange(5, dtype=np.float32))
    array(4., dtype=float32)
    """
    expression, neutral = _minmax_expression(what, dtype), get_minmax_neutral(what, dtype)
    arguments = [_array(dtype, "in")]
    return ReductionKernel(dtype, neutral, expression, None, arguments, preamble=_INFINITY)


@context_dependent_memoize
def get_subset_minmax_kernel(what: str, dtype: Any, dtype_subset: Any) -> ReductionKernel:
    """Returns a reduction to the least or the largest of some elements of an array, as ``what`` is
    ``"min"`` or ``"max"``.

    >>> least = get_subset_minmax_kernel("min", np.float32, np.int32)
    >>> least(gpuarray.arange(1, 3, dtype=np.int32), gpuarray.arange(5, dtype=np.float32))
    array(1., dtype=float32)
    """
    expression, neutral = _minmax_expression(what, dtype), get_minmax_neutral(what, dtype)
    arguments = [_array(dtype_subset, "lookup_tbl"), _array(dtype, "in")]
    mapped = "in[lookup_tbl[i]]"
    return ReductionKernel(dtype, neutral, expression, mapped, arguments, preamble=_INFINITY)
