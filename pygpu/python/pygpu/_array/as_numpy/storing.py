"""Elements stored where a mask or a condition is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._arguments import gpu_array
from ..._core import GPUArray
from ..advanced_indexing import flatnonzero
from .operands import on_device
from .shaping import resize

__all__ = ["copyto", "place", "putmask"]


def copyto(dst: GPUArray, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copies elements into an array, as :func:`numpy.copyto`.

    >>> a = gpuarray.zeros(2, int)
    >>> gpuarray.copyto(a, [1, 2])
    >>> a.get()
    array([1, 2])
    """
    gpu_array("dst", dst)
    is_number = isinstance(src, bool | int | float | complex)
    # The dtype of a Python number is the array's, if it is of its kind.
    dtype = np.result_type(dst.dtype, src) if is_number else on_device(src).dtype
    if not np.can_cast(dtype, dst.dtype, casting):
        raise TypeError(f"src has dtype {dtype}, which does not become {dst.dtype} ({casting})")
    src = on_device(np.asarray(src, dtype) if is_number else src)
    if where is True:
        dst[...] = src
    else:
        chosen = on_device(where)
        dst[...] = _core.select(chosen, src.astype(dst.dtype), dst, False)


def putmask(a: GPUArray, /, mask: Any, values: Any) -> None:
    """Stores values where a mask is true, each at its own place, as :func:`numpy.putmask`.

    >>> a = gpuarray.arange(4)
    >>> gpuarray.putmask(a, a > 1, [7])
    >>> a.get()
    array([0, 1, 7, 7])
    """
    mask = on_device(mask)
    if mask.size != a.size:
        raise ValueError(f"mask has {mask.size} elements; a has {a.size}")
    values = _cast("values", values, a)
    values = resize(values, a.shape).astype(a.dtype) if values.size else a
    a[...] = _core.select(mask.reshape(a.shape) != 0, values, a, False)


def _cast(name: str, values: Any, a: GPUArray) -> GPUArray:
    """The values in the dtype of an array: lists become it, arrays have to fit it."""
    if not isinstance(values, GPUArray | np.ndarray):
        return on_device(np.asarray(values, a.dtype))
    if not np.can_cast(values.dtype, a.dtype, "safe"):
        raise TypeError(f"{name} has dtype {values.dtype}, which does not fit {a.dtype}")
    return on_device(values)


def place(arr: GPUArray, mask: Any, vals: Any) -> None:
    """Stores values where a mask is true, one after another, as :func:`numpy.place`.

    >>> a = gpuarray.arange(4)
    >>> gpuarray.place(a, a > 1, [7, 8])
    >>> a.get()
    array([0, 1, 7, 8])
    """
    mask = on_device(mask)
    if mask.size != arr.size:
        raise ValueError(f"mask has {mask.size} elements; arr has {arr.size}")
    at = flatnonzero(mask.ravel())
    if not at.size:
        return
    vals = _cast("vals", vals, arr)
    if not vals.size:
        raise ValueError("vals is empty; there is nothing to store where the mask is true")
    flat = arr.copy().ravel()
    flat[at] = resize(vals, at.size).astype(arr.dtype)
    arr[...] = flat.reshape(arr.shape)
