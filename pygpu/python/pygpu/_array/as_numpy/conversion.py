"""Conversions between arrays and lists, bytes, numpy's files, and text for notebooks."""

from __future__ import annotations

import operator
from os import PathLike
from types import SimpleNamespace
from typing import IO, Any

import numpy as np

from ..._core import GPUArray, stack
from ..._errors import Error
from .. import Array, DType, Order
from ..advanced_indexing import may_overlap
from ..creation import to_gpu

__all__ = ["array", "asarray", "ascontiguousarray", "asfortranarray", "load", "may_share_memory"]
__all__ += ["save", "shares_memory"]

# Elements that are shown along each of the last two axes, and along the others.
_LAST, _OTHERS = 6, 2


def array(
    object: Array,
    dtype: DType = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    ndmin: int = 0,
) -> GPUArray:
    """Returns a new array from an object, as :func:`numpy.array`."""
    if copy is False and not (isinstance(object, GPUArray) and dtype in (None, object.dtype)):
        raise ValueError("copy is False, but a copy is needed; pass copy=None or True")
    if isinstance(object, list | tuple) and any(isinstance(it, GPUArray) for it in object):
        object = stack([array(it, dtype) for it in object])
    if not isinstance(object, GPUArray):
        return to_gpu(np.array(object, dtype, order=order, ndmin=ndmin))
    made = object if dtype is None or object.dtype == dtype else object.astype(dtype)
    if order == "A":
        order = "F" if made.flags.f_contiguous and not made.flags.c_contiguous else "C"
    if order not in ("C", "F", "K"):
        raise ValueError(f"order is {order!r}; 'C', 'F', 'A' or 'K' is needed")
    fits = {"C": made.flags.c_contiguous, "F": made.flags.f_contiguous}.get(order, True)
    if copy is False and not fits:
        raise ValueError(f"copy is False, and a copy is needed for the order {order}")
    if not fits or (copy and made is object and order in ("C", "F")):
        source, made = made, GPUArray(made.shape, made.dtype, order=order)
        made[...] = source
    elif copy and made is object:
        made = object.copy()
    return made.reshape((*(1,) * (ndmin - made.ndim), *made.shape)) if ndmin > made.ndim else made


def asarray(
    a: Array, dtype: DType = None, order: Order = None, *, copy: bool | None = None
) -> GPUArray:
    """Converts an object, unless it is a GPUArray, to an array, as :func:`numpy.asarray`."""
    return array(a, dtype, copy=copy, order=order or "K")


def ascontiguousarray(a: Array, dtype: DType = None) -> GPUArray:
    """Returns an array in C order, a new one if needed, as :func:`numpy.ascontiguousarray`."""
    return array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a: Array, dtype: DType = None) -> GPUArray:
    """Returns an array in Fortran order, a new one if needed, as :func:`numpy.asfortranarray`."""
    return array(a, dtype, copy=None, order="F")


def may_share_memory(a: Array, b: Array, /, max_work: int | None = None) -> bool:
    """Returns True if the spans of two arrays overlap, as :func:`numpy.may_share_memory`."""
    if max_work is not None:
        operator.index(max_work)
    if not isinstance(a, GPUArray) or not isinstance(b, GPUArray) or a._ordinal != b._ordinal:
        return False
    return may_overlap(a, b)


def shares_memory(a: Array, b: Array, /, max_work: int | None = None) -> bool:
    """Returns True if two arrays have an element in common, as :func:`numpy.shares_memory`."""
    if not may_share_memory(a, b, max_work):
        return False
    # numpy computes it from addresses and strides alone; these arrays are never read.
    first, second = map(_host_view, (a, b))
    return np.shares_memory(first, second, max_work)  # type: ignore[arg-type]


def _host_view(a: Any) -> np.ndarray[Any, Any]:
    described = {"data": (a.ptr, True), "shape": a.shape, "strides": a.strides, "version": 3}
    described["typestr"] = f"|V{a.dtype.itemsize}"
    return np.asarray(SimpleNamespace(__array_interface__=described))


def tobytes(a: GPUArray, order: Order = "C") -> bytes:
    """Returns the bytes of the elements, as numpy's method."""
    return a.get().tobytes(order)


def save(file: str | PathLike[str] | IO[bytes], arr: Array, allow_pickle: bool = True) -> None:
    """Writes an array to a file with the ending ``.npy``, as :func:`numpy.save`."""
    np.save(file, arr.get() if isinstance(arr, GPUArray) else arr, allow_pickle)


def load(
    file: str | PathLike[str] | IO[bytes], mmap_mode: None = None, allow_pickle: bool = False
) -> Any:
    """Returns the array in an ``.npy`` file, or the arrays in ``.npz``, as :func:`numpy.load`."""
    found = np.load(file, mmap_mode, allow_pickle)
    if isinstance(found, np.ndarray):
        return to_gpu(found)
    with found:
        return {name: to_gpu(found[name]) for name in found.files}


def array_html(array: GPUArray) -> str:
    """Returns shape, dtype, device and the first elements in HTML, for a notebook."""
    from html import escape  # for notebooks alone

    shape = array.shape
    most = [_OTHERS] * (array.ndim - 2) + [_LAST] * min(array.ndim, 2)
    try:
        first = array[tuple(slice(length) for length in most)].get()
        values = np.array2string(np.asarray(first), threshold=first.size + 1)
        if any(length > shown for length, shown in zip(shape, most, strict=True)):
            values += "\n..."
    except Error as error:
        # For example, the stream captures.
        values = f"no elements: {error}"
    name = f"{type(array).__name__} {shape} {array.dtype} on {array.device._label()}"
    return f"<div><code>{escape(name)}</code><pre>{escape(values)}</pre></div>"
