"""Elements that are numbers combined along axes, or all of them."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._arguments import gpu_array, has_fractions
from .._core import GPUArray


def _without_nan(a: GPUArray, value: Any) -> GPUArray:
    """Returns the elements, with a number in the place of each NaN."""
    if not has_fractions(gpu_array("a", a).dtype):
        return a
    is_nan = _core.universal_functions["isnan"](a)
    return _core.select(is_nan, a.dtype.type(value), a, False)


def nansum(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the sum of the elements that are numbers, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements, which are copied if they can be NaN.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    dtype : dtype, optional
        What elements are added in; without it that of numpy, which widens small integers.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        The sums; zero where no element is a number.

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
    >>> gpuarray.nansum(gpuarray.to_gpu(np.array([1.0, np.nan, 2.0]))).get()
    array(3.)
    """
    return _without_nan(a, 0).sum(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def nanprod(
    a: GPUArray,
    axis: Any = None,
    dtype: Any = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the product of the elements that are numbers, along axes or of all.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements, which are copied if they can be NaN.
    axis : int or tuple of int, optional
        The axes along which elements are combined; all without it.
    dtype : dtype, optional
        What elements are multiplied in; without it that of numpy, which widens small integers.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.
    keepdims : bool
        Whether the combined axes stay, with extent 1.

    Returns
    -------
    GPUArray
        The products; one where no element is a number.

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
    >>> gpuarray.nanprod(gpuarray.to_gpu(np.array([3.0, np.nan, 2.0]))).get()
    array(6.)
    """
    return _without_nan(a, 1).prod(axis=axis, dtype=dtype, out=out, keepdims=keepdims)
