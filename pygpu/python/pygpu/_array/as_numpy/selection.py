"""Functions that select, store, insert and delete elements by indices or a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _core
from ..._arguments import along_axis, extents, gpu_array, stored
from ..._core import GPUArray, stack
from .. import Array, Arrays, Casting, Order, Out, Shape
from ..advanced_indexing import compress, flatnonzero, nonzero
from ..creation import arange
from ..shapes import broadcast_to, moveaxis
from .operands import flat_or_axis, on_device, on_host, ufuncs
from .shaping import elements_at, meshgrid, resize

__all__ = ["argwhere", "copyto", "delete", "extract", "fill_diagonal", "insert", "place"]
__all__ += ["put", "putmask", "ravel_multi_index", "take_along_axis", "unravel_index"]


def take(
    a: Array, indices: Array, axis: int | None = None, out: Out = None, mode: str = "raise"
) -> GPUArray:
    """Returns the elements at indices along an axis, as :func:`numpy.take`.

    It is the arrays' method ``take``; ``gpuarray.take`` is PyCUDA's function.
    """
    a, axis = along_axis(on_device(a), axis)
    if isinstance(indices, list | tuple) and not np.size(indices):
        # numpy makes an empty list float64, and accepts it as indices.
        indices = np.zeros(np.shape(indices), np.intp)
    indices = places_of("indices", on_device(indices), a.shape[axis], mode)
    return stored(elements_at(a, indices, axis), out)


def places_of(name: str, indices: GPUArray, n: int, mode: str) -> GPUArray:
    """Returns the indices; those out of bounds are refused, wrapped or clipped by ``mode``."""
    if indices.dtype.kind not in "biu":
        raise TypeError(f"{name} have dtype {indices.dtype}; integers are needed")
    indices = indices.astype(np.int64) if indices.dtype == np.bool_ else indices
    if mode == "raise":
        _check_bounds(indices, n)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode is {mode!r}; 'raise', 'wrap' or 'clip' is needed")
    if n and mode == "wrap":
        return ufuncs["remainder"](indices.astype(np.int64), n)
    if n and mode == "clip":
        return ufuncs["minimum"](ufuncs["maximum"](indices.astype(np.int64), 0), n - 1)
    return indices


def _check_bounds(indices: GPUArray, n: int) -> None:
    """Waits for the device, to refuse indices out of bounds."""
    if indices.size:
        ends = np.array([indices.min().get(), indices.max().get()])
        check_places("indices", ends, n)


def unravel_index(indices: Array, shape: Shape, order: Order = "C") -> tuple[GPUArray, ...]:
    """Converts flat indices to indices along each axis, as :func:`numpy.unravel_index`."""
    indices, shape = on_device(indices), extents("shape", shape)
    _check_numbers("indices", indices, int(np.prod(shape, dtype=int)))
    rest, places = indices.astype(np.int64), []
    for extent in shape if order == "F" else shape[::-1]:
        places.append(rest % extent)
        rest = rest // extent
    return tuple(places if order == "F" else places[::-1])


def ravel_multi_index(
    multi_index: Arrays, dims: Shape, mode: str | Sequence[str] = "raise", order: Order = "C"
) -> GPUArray:
    """Converts indices along each axis to flat indices, as :func:`numpy.ravel_multi_index`."""
    shape, places = extents("dims", dims), [on_device(it) for it in multi_index]
    modes = [mode] * len(shape) if isinstance(mode, str) else list(mode)
    if not len(shape) == len(places) == len(modes):
        lengths = f"length {len(places)} and mode {len(modes)}"
        raise ValueError(f"multi_index has {lengths}; the length of dims, {len(shape)}, is needed")
    number, axes = _core.full((), np.int64, 0), range(len(shape))
    for k in reversed(axes) if order == "F" else axes:
        if modes[k] == "raise":
            _check_numbers("multi_index", places[k], shape[k])
        place = places_of("multi_index", places[k], shape[k], modes[k])
        number = number * shape[k] + place.astype(np.int64)
    return number


def _check_numbers(name: str, indices: GPUArray, n: int) -> None:
    if indices.dtype.kind not in "biu":
        raise TypeError(f"{name} has dtype {indices.dtype}; integers are needed")
    wrong = [it for it in (indices.min, indices.max) if indices.size and not 0 <= int(it()) < n]
    if wrong:
        raise ValueError(f"{name} has the element {wrong[0]()}; allowed are 0 to {n - 1}")


def argwhere(a: Array) -> GPUArray:
    """Returns the indices of the elements that are not zero, as :func:`numpy.argwhere`."""
    a = on_device(a)
    if a.ndim == 0:
        return _core.full((int(bool(a.get())), 0), np.int64, 0)
    return stack(nonzero(a), axis=1)


def take_along_axis(arr: Array, indices: Array, axis: int | None = -1) -> GPUArray:
    """Returns, for each position, the element at its index, as :func:`numpy.take_along_axis`."""
    indices = on_device(indices)
    if indices.dtype.kind not in "iu":
        raise IndexError(f"indices have dtype {indices.dtype}; integers are needed")
    if axis is None and indices.ndim != 1:
        raise ValueError(f"indices.ndim is {indices.ndim}; without an axis it must be 1")
    arr, axis = flat_or_axis(arr, axis)
    _check_bounds(indices, arr.shape[axis])
    return along(arr, indices, axis)


def along(arr: GPUArray, indices: GPUArray, axis: int) -> GPUArray:
    """Returns, for each position of ``indices``, the element at that index; checks no bounds."""
    if indices.ndim != arr.ndim:
        raise ValueError(f"indices.ndim is {indices.ndim}; arr.ndim is {arr.ndim}")
    places = list(meshgrid(*map(arange, arr.shape), copy=False, sparse=True, indexing="ij"))
    places[axis] = indices
    return arr[tuple(places)]


def delete(arr: Array, obj: Array | slice, axis: int | None = None) -> GPUArray:
    """Returns an array without some of its elements, as :func:`numpy.delete`."""
    arr, axis = flat_or_axis(arr, axis)
    kept = np.delete(np.arange(arr.shape[axis]), _selection(obj))
    return elements_at(arr, on_device(kept), axis)


def _selection(obj: Any) -> Any:
    return on_host(obj) if isinstance(obj, GPUArray) else obj


def insert(arr: Array, obj: Array | slice, values: Array, axis: int | None = None) -> GPUArray:
    """Returns a copy with values inserted before indices, as :func:`numpy.insert`."""
    (arr, axis), values, obj = flat_or_axis(arr, axis), on_device(values), _selection(obj)
    n, values = arr.shape[axis], values.astype(arr.dtype)
    obj = np.arange(*obj.indices(n)) if isinstance(obj, slice) else np.asarray(obj)
    if obj.size and obj.dtype.kind not in "iub":
        raise IndexError(f"obj is {obj}; whole numbers are needed")
    if obj.dtype == np.bool_:
        if obj.ndim != 1:
            raise ValueError(f"obj.ndim is {obj.ndim}; a mask needs one axis")
        obj = np.flatnonzero(obj)
    if obj.size == 1:
        # Several values may be inserted before a single index.
        position = int(obj.reshape(()))
        if not -n <= position <= n:
            raise IndexError(f"obj is {position}; allowed for extent {n} are {-n} to {n}")
        values = values.reshape((*(1,) * (arr.ndim - values.ndim), *values.shape))
        if obj.ndim == 0:
            values = moveaxis(values, 0, axis)
        obj = np.full(values.shape[axis], position % n if position < 0 else position)
    marked = np.insert(np.arange(n), obj, -1 - np.arange(obj.size))
    shape = tuple(len(marked) if k == axis else m for k, m in enumerate(arr.shape))
    result = _core.full(shape, arr.dtype, 0)
    ahead = (slice(None),) * axis
    old, new = np.flatnonzero(marked >= 0), np.flatnonzero(marked < 0)
    result[(*ahead, on_device(old))] = arr
    if not new.size and not values.size:
        return result
    order = -1 - marked[new]
    space = tuple(len(new) if k == axis else m for k, m in enumerate(arr.shape))
    spread = broadcast_to(values, space)
    result[(*ahead, on_device(new))] = elements_at(spread, on_device(order), axis)
    return result


def extract(condition: Array, arr: Array) -> GPUArray:
    """Returns the elements where a condition is true, as :func:`numpy.extract`."""
    return compress(on_device(condition).ravel() != 0, on_device(arr).ravel())


def check_places(name: str, places: np.ndarray[Any, Any], n: int) -> None:
    if places.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {places.dtype}; integers are needed")
    outside = places[(places < -n) | (places >= n)]
    if outside.size:
        raise IndexError(f"{name} is {outside[0]}; allowed for extent {n} are {-n} to {n - 1}")


def put(a: GPUArray, ind: Array, v: Array, mode: str = "raise") -> None:
    """Stores values at flat indices, and repeats them as needed, as :func:`numpy.put`."""
    gpu_array("a", a)
    ind, values = on_device(ind).ravel(), on_device(v).ravel()
    if ind.size and values.size:
        places = places_of("ind", ind, a.size, mode).astype(np.int64)
        places = ufuncs["remainder"](places, a.size)
        a[unravel_index(places, a.shape)] = resize(values, places.shape).astype(a.dtype)


class Flat:
    """The elements of an array along one axis, which can be indexed and set, as in numpy."""

    def __init__(self, base: GPUArray) -> None:
        self.base = base

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Any:
        return iter(self[:])

    def __getitem__(self, index: Any) -> GPUArray:
        return self.base.flatten()[index]

    def __setitem__(self, index: Any, values: Any) -> None:
        put(self.base, arange(self.base.size)[index], values)


def fill_diagonal(a: GPUArray, val: Array, wrap: bool = False) -> None:
    """Stores values on the diagonal, and repeats them as needed, as :func:`numpy.fill_diagonal`."""
    if gpu_array("a", a).ndim < 2:
        raise ValueError(f"a has shape {a.shape}; array must be at least 2-d")
    if a.ndim > 2 and len({*a.shape}) > 1:
        raise ValueError(f"a has shape {a.shape}; all dimensions of input must be of equal length")
    step = 1 + sum(int(np.prod(a.shape[k:], dtype=int)) for k in range(1, a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, a.shape[1] * a.shape[1])
    put(a, arange(0, end, step), val)


def copyto(dst: GPUArray, src: Array, casting: Casting = "same_kind", where: Array = True) -> None:
    """Copies elements into an array, as :func:`numpy.copyto`."""
    gpu_array("dst", dst)
    is_number = isinstance(src, bool | int | float | complex)
    # The dtype of a Python number is the array's, if it is of its kind.
    dtype = np.result_type(dst.dtype, src) if is_number else on_device(src).dtype
    if not np.can_cast(dtype, dst.dtype, casting):
        raise TypeError(f"src has dtype {dtype}, which cannot be cast to {dst.dtype} ({casting})")
    src = on_device(np.asarray(src, dtype) if is_number else src)
    if where is True:
        dst[...] = src
    else:
        chosen = on_device(where)
        dst[...] = _core.select(chosen, src.astype(dst.dtype), dst, False)


def putmask(a: GPUArray, /, mask: Array, values: Array) -> None:
    """Stores ``values[n]`` at each flat index n where a mask is true, as :func:`numpy.putmask`."""
    mask = on_device(mask)
    if mask.size != a.size:
        raise ValueError(f"mask.size is {mask.size}; a.size is {a.size}")
    values = _cast("values", values, a)
    values = resize(values, a.shape).astype(a.dtype) if values.size else a
    a[...] = _core.select(mask.reshape(a.shape) != 0, values, a, False)


def _cast(name: str, values: Any, a: GPUArray) -> GPUArray:
    """Converts the values to the dtype of ``a``. Arrays must be castable to it without loss."""
    if not isinstance(values, GPUArray | np.ndarray):
        return on_device(np.asarray(values, a.dtype))
    if not np.can_cast(values.dtype, a.dtype, "safe"):
        raise TypeError(f"{name} has dtype {values.dtype}, which does not fit {a.dtype}")
    return on_device(values)


def place(arr: GPUArray, mask: Array, vals: Array) -> None:
    """Stores values where a mask is true, one after another, as :func:`numpy.place`."""
    mask = on_device(mask)
    if mask.size != arr.size:
        raise ValueError(f"mask.size is {mask.size}; arr.size is {arr.size}")
    at = flatnonzero(mask.ravel())
    if not at.size:
        return
    vals = _cast("vals", vals, arr)
    if not vals.size:
        raise ValueError("vals is empty; there is nothing to store where the mask is true")
    flat = arr.copy().ravel()
    flat[at] = resize(vals, at.size).astype(arr.dtype)
    arr[...] = flat.reshape(arr.shape)
