"""Sorting along an axis."""

from __future__ import annotations

from . import _core
from ._core import GPUArray


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
