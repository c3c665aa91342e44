"""Means and deviations of elements, along axes or of all."""

from __future__ import annotations

from typing import Any

from .._arguments import gpu_array
from .._core import GPUArray


def mean(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    *,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the mean of the elements, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    dtype : dtype, optional
        The dtype of the result; without it that of `a` if it has fractions, else float64.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.
    stream : Stream, optional
        Where the work is queued.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The means; NaN where there are no elements.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.mean(gpuarray.arange(6).reshape(2, 3), axis=0).get()
    array([1.5, 2.5, 3.5])
    """
    given = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    return gpu_array("a", a).mean(**given, stream=stream, allocator=allocator)


def var(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the variance of the elements, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    dtype : dtype, optional
        The dtype of the result; without it that of `a` if it has fractions, else float64.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    ddof : number
        What is taken from the number of elements before the sum of squares is divided by it.
    keepdims : bool
        Whether the combined axes stay, with extent 1.
    stream : Stream, optional
        Where the work is queued.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The variances, which are real for complex numbers, too.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, its elements are records, or ``dtype`` is one without fractions.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.var(gpuarray.arange(4)).get()
    array(1.25)
    """
    given = {"axis": axis, "dtype": dtype, "out": out, "ddof": ddof, "keepdims": keepdims}
    return gpu_array("a", a).var(**given, stream=stream, allocator=allocator)


def std(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the standard deviation of the elements, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    dtype : dtype, optional
        The dtype of the result; without it that of `a` if it has fractions, else float64.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    ddof : number
        What is taken from the number of elements before the sum of squares is divided by it.
    keepdims : bool
        Whether the combined axes stay, with extent 1.
    stream : Stream, optional
        Where the work is queued.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The square roots of the variances.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, its elements are records, or ``dtype`` is one without fractions.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.std(gpuarray.arange(0, 8, 4)).get()
    array(2.)
    """
    given = {"axis": axis, "dtype": dtype, "out": out, "ddof": ddof, "keepdims": keepdims}
    return gpu_array("a", a).std(**given, stream=stream, allocator=allocator)
