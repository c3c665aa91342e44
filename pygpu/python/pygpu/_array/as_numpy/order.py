"""Sorts, searches in sorted elements, and their uses: partitions, sets, counts, histograms."""

from __future__ import annotations

import operator
from typing import Any, Literal, overload

import numpy as np

from ... import _core
from ..._core import GPUArray
from .. import Array, Arrays
from ..advanced_indexing import compress, flatnonzero
from ..creation import arange
from ..reductions import cumsum
from ..shapes import broadcast_to, concatenate, flip, moveaxis
from .operands import axes_of, flat_or_axis, is_nan, on_device, on_host, ufuncs
from .selection import along, check_places, unravel_index

__all__ = ["argpartition", "argsort", "bincount", "digitize", "histogram", "histogram2d"]
__all__ += ["histogram_bin_edges", "in1d", "intersect1d", "isin", "lexsort", "partition"]
__all__ += ["searchsorted", "setdiff1d", "setxor1d", "sort", "union1d", "unique"]


def sort(
    a: GPUArray, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> GPUArray:
    """Returns a sorted copy, as :func:`numpy.sort`; every ``kind`` of sort is stable."""
    return _core.sorted(a, axis, kind)


def argsort(
    a: GPUArray, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> GPUArray:
    """Returns the indices that sort the elements, as :func:`numpy.argsort`."""
    return _core.sorted(a, axis, kind, True)


def _precedes(x: GPUArray, y: GPUArray, or_equal: bool) -> GPUArray:
    """Returns True where x comes before y in the order of sorts, in which NaN is last."""
    before = ufuncs["less_equal" if or_equal else "less"](x, y)
    of_x, of_y = is_nan(x), is_nan(y)
    if of_x is None or of_y is None:
        return before
    return before | (of_y if or_equal else of_y & ufuncs["logical_not"](of_x))


def searchsorted(a: Array, v: Array, side: str = "left", sorter: Array | None = None) -> GPUArray:
    """Returns the indices at which to insert elements in order, as :func:`numpy.searchsorted`.

    Few elements are found by binary search; many are sorted together with ``a``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is {side!r}; 'left' or 'right' is needed")
    a, v = on_device(a), on_device(v)
    if a.ndim != 1:
        raise ValueError(f"a has {a.ndim} axes; one is needed")
    dtype = np.result_type(a.dtype, v.dtype)
    a, v = a.astype(dtype), v.astype(dtype)
    if sorter is not None:
        a = a[on_device(sorter)]
    if a.size == 0 or v.size == 0:
        return _core.full(v.shape, np.int64, 0)
    if 8 * v.size > a.size:
        return _by_merge(a, v.ravel(), side).reshape(v.shape)
    low, high = _core.full(v.shape, np.int64, 0), _core.full(v.shape, np.int64, a.size)
    for _ in range(a.size.bit_length()):
        middle = (low + high) >> 1
        goes_on = _precedes(a[ufuncs["minimum"](middle, a.size - 1)], v, side == "right")
        goes_on &= low < high
        low = _core.select(goes_on, middle + 1, low, False)
        high = _core.select(goes_on, high, middle, False)
    return low


def _by_merge(a: GPUArray, v: GPUArray, side: str) -> GPUArray:
    """Returns how many of ``a`` are before each of ``v`` when both are sorted together."""
    first, second = (a, v) if side == "right" else (v, a)
    order = argsort(concatenate([first, second]))
    is_sought = order >= a.size if side == "right" else order < v.size
    before = cumsum(ufuncs["logical_not"](is_sought))
    result = _core.full(v.shape, np.int64, 0)
    at = compress(is_sought, order) - (a.size if side == "right" else 0)
    result[at] = compress(is_sought, before)
    return result


def digitize(x: Array, bins: Array, right: bool = False) -> GPUArray:
    """Returns the index of the bin of each element, as :func:`numpy.digitize`."""
    x, bins = on_device(x), on_device(bins)
    if bins.ndim != 1:
        raise ValueError(f"bins has {bins.ndim} axes; one is needed")
    if x.dtype.kind == "c" or bins.dtype.kind == "c":
        raise TypeError(f"x has dtype {x.dtype} and bins {bins.dtype}; real numbers are needed")
    rises = bool(_precedes(bins[:-1], bins[1:], True).all().get())
    if not rises and not bool(_precedes(bins[1:], bins[:-1], True).all().get()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    return searchsorted(bins, x, side) if rises else bins.size - searchsorted(flip(bins), x, side)


def _begins(ordered: GPUArray, equal_nan: bool = True) -> GPUArray:
    differs, nan = ordered[1:] != ordered[:-1], is_nan(ordered)
    if nan is not None and equal_nan:
        differs = differs & ufuncs["logical_not"](nan[1:] & nan[:-1])
    first = _core.full((min(ordered.size, 1),), np.bool_, True)
    return concatenate([first, differs]) if ordered.size > 1 else first


@overload
def unique(
    ar: Array,
    return_index: Literal[False] = ...,
    return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    sorted: bool = ...,
) -> GPUArray: ...
@overload
def unique(
    ar: Array,
    return_index: bool = ...,
    return_inverse: bool = ...,
    return_counts: bool = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    sorted: bool = ...,
) -> tuple[GPUArray, ...]: ...
def unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Returns the distinct elements in order, as :func:`numpy.unique`."""
    ar = on_device(ar)
    if axis is not None and (ar.ndim > 1 or axes_of(axis, ar.ndim) != (0,)):
        return _unique_parts(ar, axis, return_index, return_inverse, return_counts)
    flat = ar.ravel()
    if not (return_index or return_inverse):
        order, ordered = flat, sort(flat)
    else:
        order = argsort(flat)
        ordered = flat[order]
    begins = _begins(ordered, equal_nan)
    first = compress(begins, ordered)
    found = _found(first, begins, order, return_index, return_inverse, return_counts)
    if return_inverse and axis is None:
        place = 1 + return_index
        found = (*found[:place], found[place].reshape(ar.shape), *found[place + 1 :])
    return found


def _unique_parts(ar: GPUArray, axis: int, *asked: bool) -> Any:
    """Returns the distinct parts along an axis in the order of their elements."""
    (axis,) = axes_of(axis, ar.ndim)
    moved = moveaxis(ar, axis, 0)
    n = moved.shape[0]
    rows = moved.reshape((n, int(np.prod(moved.shape[1:], dtype=int))))
    order = lexsort(flip(rows.T, 0)) if rows.size else arange(n)
    ordered = rows[order]
    differ = (ordered[1:] != ordered[:-1]).any(axis=1)
    begins = concatenate([_core.full((min(n, 1),), np.bool_, True), differ])
    return _found(moveaxis(moved[order[begins]], 0, axis), begins, order, *asked)


def _found(
    first: GPUArray, begins: GPUArray, order: GPUArray, index: bool, inverse: bool, counts: bool
) -> Any:
    """Returns the distinct elements and, if requested, first indices, inverse indices, counts."""
    results = [first]
    if index:
        results.append(compress(begins, order))
    if inverse:
        numbers = _core.full(order.shape, np.int64, 0)
        numbers[order] = cumsum(begins) - 1
        results.append(numbers)
    if counts:
        at = flatnonzero(begins)
        ends = concatenate([at[1:], _core.full((min(at.size, 1),), at.dtype, begins.size)])
        results.append(ends - at)
    return results[0] if len(results) == 1 else tuple(results)


def isin(
    element: Array,
    test_elements: Array,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> GPUArray:
    """Returns True for elements that another array contains, as :func:`numpy.isin`."""
    element, known = on_device(element), on_device(test_elements).ravel()
    dtype = np.result_type(element.dtype, known.dtype)
    element, known = element.astype(dtype), sort(known.astype(dtype))
    if known.size == 0:
        return _core.full(element.shape, np.bool_, invert)
    at = ufuncs["minimum"](searchsorted(known, element), known.size - 1)
    return known[at] != element if invert else known[at] == element


def in1d(ar1: Array, ar2: Array, assume_unique: bool = False, invert: bool = False) -> GPUArray:
    """Like :func:`isin`, with a flattened result, as :func:`numpy.in1d`."""
    return isin(on_device(ar1).ravel(), ar2, invert=invert)


def _joined(ar1: Any, ar2: Any) -> GPUArray:
    return concatenate([on_device(it).ravel() for it in (ar1, ar2)])


def union1d(ar1: Array, ar2: Array) -> GPUArray:
    """Returns the distinct elements of both arrays together, as :func:`numpy.union1d`."""
    return unique(_joined(ar1, ar2))


@overload
def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = ..., return_indices: Literal[False] = ...
) -> GPUArray: ...
@overload
def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = ..., *, return_indices: Literal[True]
) -> tuple[GPUArray, GPUArray, GPUArray]: ...
def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Returns the distinct elements that two arrays share, as :func:`numpy.intersect1d`."""
    if assume_unique:
        ar1, ar2 = on_device(ar1).ravel(), on_device(ar2).ravel()
    first, at_first = unique(ar1, return_index=True)
    second, at_second = unique(ar2, return_index=True)
    is_shared = isin(first, second)
    shared = compress(is_shared, first.astype(np.result_type(first.dtype, second.dtype)))
    if not return_indices:
        return shared
    at = searchsorted(second, shared)
    return shared, compress(is_shared, at_first), at_second[at]


def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> GPUArray:
    """Returns the distinct elements that only the first array has, as :func:`numpy.setdiff1d`."""
    first = on_device(ar1).ravel() if assume_unique else unique(ar1)
    return compress(isin(first, ar2, invert=True), first)


def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> GPUArray:
    """Returns the distinct elements that only one of the arrays has, as :func:`numpy.setxor1d`."""
    first, second = (ar1, ar2) if assume_unique else (unique(ar1), unique(ar2))
    return sort(_joined(setdiff1d(first, second), setdiff1d(second, first)))


def lexsort(keys: Arrays, axis: int = -1) -> GPUArray:
    """Returns indices that sort by several keys, the last key first, as :func:`numpy.lexsort`."""
    first, *others = [on_device(it) for it in keys]
    if not first.ndim:
        operator.index(axis)
        return _core.full((), np.int64, 0)
    (axis,) = axes_of(axis, first.ndim)
    order = argsort(first, axis)
    for key in others:
        if key.shape != first.shape:
            raise ValueError(f"keys have shapes {first.shape} and {key.shape}, which must be equal")
        next_order = argsort(along(key, order, axis), axis)
        order = along(order, next_order, axis)
    return order


# The functions of `at`, each with the one that combines the operands of one element.
_JOINS = {name: name for name in ("add", "multiply", "maximum", "minimum", "fmax", "fmin")}
_JOINS |= {name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")}
_JOINS |= {name: name for name in ("logical_and", "logical_or", "logical_xor")}
_JOINS |= {"divide": "multiply", "subtract": "add"}


def combine_at(ufunc: Any, a: Any, indices: Any, b: Any) -> None:
    """Applies a function at indices, once for each repeated index, as ``ufunc.at`` in numpy.

    For ``add.at`` of floats, the operands for one element are summed before the sum is added.
    """
    join = _JOINS.get(ufunc.__name__)
    if join is None or not isinstance(a, GPUArray):
        raise TypeError(
            f"numpy.{ufunc.__name__}.at does not work on these arguments: it needs a GPUArray, and "
            f"the function must be one of {', '.join(_JOINS)}"
        )
    if isinstance(b, bool | int | float | complex):
        b = np.asarray(b, np.result_type(a.dtype, b))
    places = arange(a.size).reshape(a.shape)[indices]
    values = broadcast_to(on_device(b), places.shape).ravel()
    # Sums of narrower values would wrap.
    dtype = np.bool_ if join.startswith("logical") else np.result_type(a.dtype, values.dtype)
    values = values.astype(dtype)
    places = places.ravel()
    if not places.size:
        return
    order = argsort(places)
    places = places[order]
    at = flatnonzero(_begins(places))
    edges = concatenate([at, _core.full((1,), at.dtype, places.size)])
    joined = _joined_between(edges, values[order], join)
    where = unravel_index(places[at], a.shape)
    result = ufunc(a[where], joined)
    if not np.can_cast(result.dtype, a.dtype, "same_kind"):
        why = f"which an array of {a.dtype} does not hold"
        raise TypeError(f"numpy.{ufunc.__name__}.at has a result of {result.dtype}, {why}")
    a[where] = result.astype(a.dtype)


def running(join: str, values: GPUArray, part: Any = None, longest: Any = None) -> GPUArray:
    """Returns running results of a function, such as sums, along the last axis, in each part.

    Each step adds to an element the sum of the elements before it in the same part; each sum covers
    twice as many elements as in the step before. So no part's rounding or NaN reaches another part.
    """
    step, longest = 1, values.shape[-1] if longest is None else longest
    while step < longest:
        joined = ufuncs[join](values[..., :-step], values[..., step:])
        if part is not None:
            is_one = part[step:] == part[:-step]
            joined = _core.select(is_one, joined, values[..., step:], False)
        values = concatenate([values[..., :step], joined], -1)
        step *= 2
    return values


def _joined_between(edges: GPUArray, weights: GPUArray, join: str = "add") -> GPUArray:
    """Returns the sums, or other results, of the weights from each edge to the next one."""
    lengths = edges[1:] - edges[:-1]
    result = _core.full(lengths.shape, weights.dtype, 0)
    longest = int(lengths.max().get()) if lengths.size else 0
    if not longest:
        return result
    part = searchsorted(edges, arange(weights.size), "right")
    weights = running(join, weights, part, longest)
    return _core.select(lengths > 0, weights[ufuncs["maximum"](edges[1:] - 1, 0)], result, False)


def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> GPUArray:
    """Returns the number of occurrences of each integer, as :func:`numpy.bincount`."""
    x = on_device(x)
    if x.ndim != 1 or x.dtype.kind not in "biu":
        raise TypeError(f"x is of {x.dtype} and shape {x.shape}; integers on one axis are needed")
    if minlength < 0:
        raise ValueError(f"minlength is {minlength}; it must not be negative")
    least, most = (int(x.min().get()), int(x.max().get())) if x.size else (0, -1)
    if least < 0:
        raise ValueError(f"x has a negative element, {least}")
    order = None if weights is None else argsort(x)
    ordered = sort(x) if order is None else x[order]
    edges = searchsorted(ordered.astype(np.int64), arange(max(most + 1, minlength) + 1))
    if order is None or not x.size:
        return edges[1:] - edges[:-1]
    weights = on_device(weights)
    if weights.shape != x.shape or weights.dtype.kind == "c":
        shapes = f"shape {weights.shape} and dtype {weights.dtype}; x has shape {x.shape}"
        raise (TypeError if weights.shape == x.shape else ValueError)(f"weights have {shapes}")
    return _joined_between(edges, weights.astype(np.float64)[order])


def histogram_bin_edges(
    a: Array, bins: Array = 10, range: Array | None = None, weights: Array | None = None
) -> GPUArray:
    """Returns the edges of a histogram's bins, as :func:`numpy.histogram_bin_edges`.

    ``bins`` cannot be the name of a rule.
    """
    a = on_device(a)
    if a.dtype.kind == "c":
        raise TypeError(f"a has dtype {a.dtype}; histograms on the device are of real numbers")
    if isinstance(bins, str):
        raise TypeError(f"bins is {bins!r}; a number of bins or their edges is needed")
    if np.ndim(bins) == 0:
        bins = operator.index(on_host(bins).item())
        ends: Any = range
        if ends is not None:
            ends = tuple(on_host(it)[()] if isinstance(it, GPUArray) else it for it in ends)
        elif a.size:
            ends = (a.min().get()[()], a.max().get()[()])
        none = np.zeros(0, a.dtype if a.dtype.kind in "biuf" else np.float64)
        return on_device(np.histogram_bin_edges(none, bins, ends))
    if range is not None:
        _, _ = on_host(range).tolist()
    if weights is not None and np.shape(weights) != a.shape:
        raise ValueError(f"weights have shape {np.shape(weights)}; a has shape {a.shape}")
    edges = on_device(bins)
    if edges.ndim != 1 or bool((edges[1:] < edges[:-1]).any().get()):
        raise ValueError("bins must be edges along one axis that increase")
    return edges


def histogram(
    a: Array,
    bins: Array = 10,
    range: Array | None = None,
    density: bool | None = None,
    weights: Array | None = None,
) -> tuple[GPUArray, GPUArray]:
    """Returns how many elements are in each bin, and the bins' edges, as :func:`numpy.histogram`.

    ``bins`` cannot be the name of a rule.
    """
    a = on_device(a).ravel()
    a = a.astype(np.uint8) if a.dtype == np.bool_ else a
    edges = histogram_bin_edges(a, bins, range)
    order = None if weights is None else argsort(a)
    ordered = sort(a) if order is None else a[order]
    # The last bin includes its right edge.
    places = [searchsorted(ordered, edges[:-1]), searchsorted(ordered, edges[-1:], "right")]
    at = concatenate(places)
    if order is None:
        counts = at[1:] - at[:-1]
    else:
        weights = on_device(weights).ravel()
        if weights.shape != a.shape:
            raise ValueError(f"weights.size is {weights.size}; a.size is {a.size}")
        dtype = weights.dtype
        wide = weights.astype(np.result_type(dtype, np.float64)) if dtype.kind in "fc" else weights
        counts = _joined_between(at, wide[order])
        counts = counts.astype(dtype) if dtype.kind in "fc" else counts
    if density:
        widths = (edges[1:] - edges[:-1]).astype(np.float64)
        return counts / widths / counts.sum(), edges
    return counts, edges


def histogram2d(
    x: Array,
    y: Array,
    bins: Array = 10,
    range: Array | None = None,
    density: bool | None = None,
    weights: Array | None = None,
) -> tuple[GPUArray, GPUArray, GPUArray]:
    """Returns how many points are in each bin, and the edges, as :func:`numpy.histogram2d`."""
    values = [on_device(it) for it in (x, y)]
    if values[0].shape != values[1].shape or values[0].ndim != 1:
        shapes = f"{values[0].shape} and {values[1].shape}"
        raise ValueError(f"x and y have shapes {shapes}, which must be equal")
    dtype = np.result_type(*(it.dtype for it in values))
    # numpy has them in one array of float64 where ranges are given.
    dtype = dtype if range is None else np.promote_types(dtype, np.float64)
    values = [it.astype(dtype) for it in values]
    pair: Any = bins
    pair = pair if hasattr(pair, "__len__") and len(pair) == 2 else (pair, pair)
    ranges: Any = (None, None) if range is None else range
    if len(ranges) != 2:
        raise ValueError(f"range is {range}; a pair for x and one for y are needed")
    ends = [None if np.ndim(it) else end for it, end in zip(pair, ranges)]
    edges = [histogram_bin_edges(*it) for it in zip(values, pair, ends)]
    at: list[GPUArray] = []
    inside: Any = None
    for value, edge in zip(values, edges):
        place = searchsorted(edge, value, "right")
        # The last bin includes its right edge.
        place = _core.select(value == edge[-1:], edge.size - 1, place, False) - 1
        own = (place >= 0) & (place < edge.size - 1)
        inside = own if inside is None else inside & own
        at.append(place)
    shape = tuple(edge.size - 1 for edge in edges)
    flat = compress(inside, at[0] * shape[1] + at[1])
    if weights is not None:
        weights = compress(inside, on_device(weights))
    counts = bincount(flat, weights, shape[0] * shape[1]).astype(np.float64).reshape(shape)
    if density:
        rows, columns = (edge[1:] - edge[:-1] for edge in edges)
        counts = counts / (rows[:, None] * columns) / counts.sum()
    return counts, edges[0], edges[1]


def partition(
    a: Array, kth: Array, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> GPUArray:
    """Sorts the elements, which also partitions them, as :func:`numpy.partition`."""
    a, axis = _partitioned(a, kth, axis)
    return sort(a, axis)


def partition_in_place(a: GPUArray, *args: Any, **kwargs: Any) -> None:
    """Sorts the elements along an axis, as numpy's method ``partition`` may do."""
    a[...] = partition(a, *args, **kwargs)


def argpartition(
    a: Array, kth: Array, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> GPUArray:
    """Returns the indices that sort, which also partition, as :func:`numpy.argpartition`."""
    a, axis = _partitioned(a, kth, axis)
    return argsort(a, axis)


def _partitioned(a: Any, kth: Any, axis: int | None) -> tuple[GPUArray, int]:
    a, axis = flat_or_axis(a, axis)
    if a.size:
        check_places("kth", on_host(kth), a.shape[axis])
    return a, axis
