"""Where the smallest and the largest elements are."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arguments import gpu_array
from ._axes import along_axis
from ._core import GPUArray
from ._core import Reduction as _Reduction


def _first(
    a: GPUArray, reduction: _Reduction, axis: int | None, out: Any, keepdims: bool
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
    chosen = _core.reduce(reduction, a, axis=axis, keepdims=True)
    table = _core.universal_functions
    is_chosen = table["equal"](a, chosen)
    if a.dtype.kind in "fc":
        # Where there is one that is not a number, it is chosen, and equals nothing.
        table["logical_or"](is_chosen, table["not_equal"](a, a), out=is_chosen)
    dtype = np.dtype(np.int32 if length < 2**31 else np.int64)
    places = _core.sequence(0, 1, length, dtype, a)
    places = places[(slice(None), *[None] * (a.ndim - axis - 1))]
    places = _core.select(is_chosen, places, dtype.type(length), False)
    result = _core.reduce(_Reduction.Minimum, places, axis=axis, keepdims=keepdims).astype(np.int64)
    if keepdims and a.ndim != ndim:
        result = result.reshape((1,) * ndim)
    if out is None:
        return result
    if gpu_array("out", out).shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; the result has shape {result.shape}")
    return table["positive"](result, out=out)


def argmin(
    a: GPUArray,
    axis: int | None = None,
    out: GPUArray | None = None,
    *,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the index of the smallest element, along an axis or of all; of the first NaN if any
    element is.

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
    ValueError
        There are no elements to choose from.

    Notes
    -----
    The work needs five bytes for each element while it is under way.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import gpuarray
    >>> gpuarray.argmin(gpuarray.to_gpu(np.array([[3, 1], [0, 2]])), axis=1).get()
    array([1, 0])
    """
    return _first(a, _Reduction.Minimum, axis, out, keepdims)


def argmax(
    a: GPUArray,
    axis: int | None = None,
    out: GPUArray | None = None,
    *,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the index of the largest element, along an axis or of all; of the first NaN if any
    element is.

    Parameters
    ----------
    a, axis, out, keepdims
        As for :func:`argmin`.

    Returns
    -------
    GPUArray
        The first of the indices, of dtype int64.

    Raises
    ------
    ValueError
        There are no elements to choose from.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.argmax(gpuarray.arange(6).reshape(2, 3)).get()
    array(5)
    """
    return _first(a, _Reduction.Maximum, axis, out, keepdims)
