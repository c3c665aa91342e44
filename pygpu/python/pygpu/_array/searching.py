"""Places of the least and greatest elements, and sorts."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._arguments import gpu_array
from .._core import GPUArray, Reduction
from .axes import along_axis


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
    """Returns the index of the smallest element, along an axis or of all; of the first NaN if any
    element is.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int, optional
        The axis; without it the elements are read as along one axis.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the axis stays, with extent 1.

    Returns
    -------
    GPUArray
        The first of the indices, of dtype int64.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, ``out`` has another shape, or there are no elements to choose from.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import gpuarray
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
    """Returns the index of the largest element, along an axis or of all; of the first NaN if any
    element is.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int, optional
        The axis; without it the elements are read as along one axis.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the axis stays, with extent 1.

    Returns
    -------
    GPUArray
        The first of the indices, of dtype int64.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        There is no such axis, ``out`` has another shape, or there are no elements to choose from.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.argmax(gpuarray.arange(6).reshape(2, 3)).get()
    array(5)
    """
    return _first(a, Reduction.Maximum, axis, out, keepdims)


def sort(a: GPUArray, axis: int | None = -1, kind: str | None = None) -> GPUArray:
    """Returns the elements in ascending order along an axis, in a new array.

    NaN is last. Complex numbers are ordered by their real parts, then by their imaginary ones.
    Equal elements keep their order. PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        Numbers of any dtype.
    axis : int or None, optional
        The axis; with None the elements are read as along one axis.
    kind : {"quicksort", "mergesort", "heapsort", "stable"}, optional
        Accepted as by numpy; every sort is stable.

    Returns
    -------
    GPUArray
        The elements, of the array's shape, or of one axis with None.

    Raises
    ------
    IndexError
        ``a`` has no such axis.
    ValueError
        ``kind`` is another name.
    TypeError
        ``a`` is no GPUArray, or its elements are records.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import gpuarray
    >>> gpuarray.sort(gpuarray.to_gpu(np.array([3, 1, 2]))).get()
    array([1, 2, 3])
    """
    return _core.sorted(a, axis, kind)


def argsort(a: GPUArray, axis: int | None = -1, kind: str | None = None) -> GPUArray:
    """Returns the indices that sort the elements along an axis.

    Equal elements keep their order. PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        Numbers of any dtype.
    axis : int or None, optional
        The axis; with None the elements are read as along one axis.
    kind : {"quicksort", "mergesort", "heapsort", "stable"}, optional
        Accepted as by numpy; every sort is stable.

    Returns
    -------
    GPUArray
        The indices, of dtype int64 and of the array's shape, or of one axis with None.

    Raises
    ------
    IndexError
        ``a`` has no such axis.
    ValueError
        ``kind`` is another name.
    TypeError
        ``a`` is no GPUArray, or its elements are records.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import gpuarray
    >>> gpuarray.argsort(gpuarray.to_gpu(np.array([3.0, 1.0, 2.0]))).get()
    array([1, 2, 0])
    """
    return _core.sorted(a, axis, kind, True)
