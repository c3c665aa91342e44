"""Elements combined along axes, or all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._arguments import gpu_array
from .._core import GPUArray


def sum(
    a: GPUArray,
    dtype: Any = None,
    stream: Any = None,
    allocator: Any = None,
    *,
    axis: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the sum of the elements, along axes or of all; see `GPUArray.sum`.

    Parameters
    ----------
    a : GPUArray
        The elements.
    dtype : dtype, optional
        What elements are added in. Without it the dtype of `a` if all elements are added, as in
        PyCUDA; with `axis` or `keepdims` that of numpy, which widens small integers. An axis in
        its place is taken as one.
    stream : Stream, optional
        Where the work is queued.
    allocator : callable, optional
        Where the result's memory comes from.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        The sums: an array without axes if all elements are added.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import gpuarray
    >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    >>> gpuarray.sum(a).get()
    array(15, dtype=int32)
    >>> gpuarray.sum(a, axis=1).get()
    array([ 3, 12])
    """
    gpu_array("a", a)
    if dtype is None and axis is None and not keepdims:
        dtype = a.dtype
    return a.sum(dtype, stream, allocator, axis=axis, out=out, keepdims=keepdims)


def prod(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    *,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the product of the elements, along axes or of all, as numpy does.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    dtype : dtype, optional
        What elements are multiplied in; without it that of numpy, which widens small integers.
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
        The products.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.prod(gpuarray.arange(1, 5)).get()
    array(24)
    """
    given = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    return gpu_array("a", a).prod(**given, stream=stream, allocator=allocator)


def any(
    a: GPUArray,
    stream: Any = None,
    allocator: Any = None,
    *,
    axis: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
) -> GPUArray:
    """Returns True if any element is not zero, along axes or of all.

    PyCUDA's function has no ``axis``, ``out`` and ``keepdims``: it combines all elements.

    Parameters
    ----------
    a : GPUArray
        The elements.
    stream : Stream, optional
        Where the work is queued. An axis in its place is taken as one.
    allocator : callable, optional
        Where the result's memory comes from.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        Truth values.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.any(gpuarray.arange(6).reshape(2, 3), axis=0).get()
    array([ True,  True,  True])
    """
    gpu_array("a", a)
    return a.any(stream, allocator, axis=axis, out=out, keepdims=keepdims)


def all(
    a: GPUArray,
    stream: Any = None,
    allocator: Any = None,
    *,
    axis: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
) -> GPUArray:
    """Returns True if no element is zero, along axes or of all.

    PyCUDA's function has no ``axis``, ``out`` and ``keepdims``: it combines all elements.

    Parameters
    ----------
    a : GPUArray
        The elements.
    stream : Stream, optional
        Where the work is queued. An axis in its place is taken as one.
    allocator : callable, optional
        Where the result's memory comes from.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        Truth values.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, or ``out`` has another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.all(gpuarray.arange(6).reshape(2, 3), axis=0).get()
    array([False,  True,  True])
    """
    gpu_array("a", a)
    return a.all(stream, allocator, axis=axis, out=out, keepdims=keepdims)


def min(
    a: GPUArray,
    stream: Any = None,
    *,
    axis: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    allocator: Any = None,
) -> GPUArray:
    """Returns the smallest element, along axes or of all; NaN if any element is.

    PyCUDA's function has no ``axis``, ``out`` and ``keepdims``: it combines all elements.

    Parameters
    ----------
    a : GPUArray
        The elements.
    stream : Stream, optional
        Where the work is queued. An axis in its place is taken as one.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The smallest elements.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, ``out`` has another shape, or an element of the
        result has no elements to choose from.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.min(gpuarray.arange(6).reshape(2, 3), axis=1).get()
    array([0, 3])
    """
    gpu_array("a", a)
    return a.min(stream, axis=axis, out=out, keepdims=keepdims, allocator=allocator)


def max(
    a: GPUArray,
    stream: Any = None,
    *,
    axis: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    allocator: Any = None,
) -> GPUArray:
    """Returns the largest element, along axes or of all; NaN if any element is.

    PyCUDA's function has no ``axis``, ``out`` and ``keepdims``: it combines all elements.

    Parameters
    ----------
    a : GPUArray
        The elements.
    stream : Stream, optional
        Where the work is queued. An axis in its place is taken as one.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.
    allocator : callable, optional
        Where the result's memory comes from.

    Returns
    -------
    GPUArray
        The largest elements.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, ``out`` has another shape, or an element of the
        result has no elements to choose from.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.max(gpuarray.arange(6).reshape(2, 3), axis=1).get()
    array([2, 5])
    """
    gpu_array("a", a)
    return a.max(stream, axis=axis, out=out, keepdims=keepdims, allocator=allocator)


amin, amax = min, max


def ptp(
    a: GPUArray, axis: Any = None, out: GPUArray | None = None, keepdims: bool = False
) -> GPUArray:
    """Returns the distance from the smallest to the largest element, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        The distances, of the dtype of `a`.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, one is named twice, ``out`` has another shape, or an element of the
        result has no elements to choose from.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.ptp(gpuarray.arange(6).reshape(2, 3), axis=0).get()
    array([3, 3, 3])
    """
    gpu_array("a", a)
    largest = a.max(axis=axis, keepdims=keepdims)
    smallest = a.min(axis=axis, keepdims=keepdims)
    if out is None:
        out = largest
    return _core.universal_functions["subtract"](largest, smallest, out=_same_shape(out, largest))


def _same_shape(out: GPUArray, result: GPUArray) -> GPUArray:
    """Returns the output, which has to have the shape of the result."""
    if gpu_array("out", out).shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; the result has shape {result.shape}")
    return out


def count_nonzero(a: GPUArray, axis: Any = None, *, keepdims: bool = False) -> GPUArray:
    """Returns how many elements are not zero, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        The numbers, of dtype int64.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, or one is named twice.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.count_nonzero(gpuarray.arange(6).reshape(2, 3), axis=0).get()
    array([1, 2, 2])
    """
    flags = gpu_array("a", a) if a.dtype == np.bool_ else a != 0
    return flags.sum(axis=axis, keepdims=keepdims)
