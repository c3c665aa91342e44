"""Running sums and products along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import GPUArray, Reduction
from .axes import along_axis


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
    """Returns the running sums along an axis.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int, optional
        The axis; without it all elements are read as along one axis.
    dtype : dtype, optional
        What elements are added in; without it that of `a`, small integers widened.
    out : GPUArray, optional
        Receives the result; `a` itself is allowed.
    stream : Stream, optional
        Where the work is queued.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The sums up to each element, itself included.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.cumsum(gpuarray.arange(6).reshape(2, 3), axis=1).get()
    array([[ 0,  1,  3],
           [ 3,  7, 12]])
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
    """Returns the running products along an axis.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int, optional
        The axis; without it all elements are read as along one axis.
    dtype : dtype, optional
        What elements are multiplied in; without it that of `a`, small integers widened.
    out : GPUArray, optional
        Receives the result; `a` itself is allowed.
    stream : Stream, optional
        Where the work is queued.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The products up to each element, itself included.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.cumprod(gpuarray.arange(1, 5)).get()
    array([ 1,  2,  6, 24])
    """
    return _running(Reduction.Product, a, axis, dtype, out, stream, allocator)
