"""Views with other axes, and functions that join, split, repeat and roll arrays."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._arguments import (
    along_axis,
    gpu_array,
    gpu_arrays,
    normalize_axis_index,
    normalize_axis_tuple,
    stored,
    whole,
)
from .._core import GPUArray
from .._documentation import member
from . import Allocator, Array, Arrays, Axes, Axis, Casting, DType, Order, Out, Sections, Shape

__all__ = ["array_split", "broadcast_arrays", "broadcast_to", "concatenate", "diagonal"]
__all__ += ["expand_dims", "flip", "fliplr", "flipud", "hstack", "moveaxis", "repeat", "reshape"]
__all__ += ["roll", "split", "stack", "swapaxes", "tile", "trace", "transpose", "tril", "triu"]
__all__ += ["vstack"]


def strided_view(
    a: GPUArray, shape: Sequence[int], strides: Sequence[int], offset: int = 0
) -> GPUArray:
    """Returns a view of ``a`` with another shape and strides, ``offset`` bytes from its start."""
    if 0 in shape or a.size == 0:
        return _core.new_like(a, tuple(shape))
    return _core.strided_view(a, tuple(shape), list(strides), offset)


def iterate(a: GPUArray) -> Iterator[GPUArray]:
    """Returns the iterator over the views along the first axis: ``iter(a)``."""
    if a.ndim == 0:
        raise TypeError("iteration over a 0-d array: one without axes has no parts")
    return map(a.__getitem__, range(len(a)))


def transpose(a: GPUArray, axes: Sequence[int] | None = None) -> GPUArray:
    """Returns the view with its axes in another order, as :func:`numpy.transpose`."""
    return gpu_array("a", a).transpose(axes)


def reshape(a: GPUArray, *shape: Shape, order: Order = "C", copy: bool | None = None) -> GPUArray:
    """Returns a view, or a copy if strides do not allow one, as :func:`numpy.reshape`.

    The extents are one sequence or several numbers.
    """
    given = {"order": order} if copy is None else {"order": order, "copy": copy}
    return gpu_array("a", a).reshape(*shape, **given)


def swapaxes(a: GPUArray, axis1: int, axis2: int) -> GPUArray:
    """Returns the view with two axes exchanged, as :func:`numpy.swapaxes`."""
    order = list(range(gpu_array("a", a).ndim))
    first, second = (normalize_axis_index(axis, a.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return a.transpose(order) if order else a.view()


def moveaxis(a: GPUArray, source: Axes, destination: Axes) -> GPUArray:
    """Returns the view with axes moved to other positions, as :func:`numpy.moveaxis`."""
    sources = normalize_axis_tuple(source, gpu_array("a", a).ndim, "source")
    places = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(sources) != len(places):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements, not "
            f"{len(sources)} and {len(places)}"
        )
    order = [axis for axis in range(a.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return a.transpose(order) if order else a.view()


def expand_dims(a: GPUArray, axis: Axes) -> GPUArray:
    """Returns a view with new axes of extent 1, as :func:`numpy.expand_dims`."""
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = gpu_array("a", a).ndim + len(axes)
    places = normalize_axis_tuple(axes, ndim)
    return a[tuple(None if place in places else slice(None) for place in range(ndim))]


def broadcast_to(array: GPUArray, shape: Shape) -> GPUArray:
    """Returns a read-only view that repeats elements, as :func:`numpy.broadcast_to`."""
    given = shape if isinstance(shape, tuple | list) else (shape,)
    shape = tuple(whole("shape", extent) for extent in given)
    own, missing = gpu_array("array", array).shape, len(shape) - array.ndim
    if missing < 0 or any(a not in (1, b) for a, b in zip(own, shape[missing:], strict=True)):
        raise ValueError(f"an array of shape {own} could not be broadcast to shape {shape}")
    strides = [0 if extent == 1 else step for extent, step in zip(own, array.strides, strict=True)]
    return strided_view(array, shape, (*[0] * missing, *strides))


def broadcast_arrays(*args: GPUArray) -> tuple[GPUArray, ...]:
    """Returns views of arrays broadcast to one shape, as :func:`numpy.broadcast_arrays`."""
    arrays = _joined("args", args)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def flip(m: GPUArray, axis: Axis = None) -> GPUArray:
    """Returns the view with the elements along axes in reverse order, as :func:`numpy.flip`."""
    ndim = gpu_array("m", m).ndim
    axes = range(ndim) if axis is None else normalize_axis_tuple(axis, ndim)
    return m[tuple(slice(None, None, -1 if place in axes else None) for place in range(ndim))]


def fliplr(m: GPUArray) -> GPUArray:
    """Returns the view with the second axis reversed, as :func:`numpy.fliplr`."""
    if gpu_array("m", m).ndim < 2:
        raise ValueError(f"Input must be >= 2-d; m.ndim is {m.ndim}")
    return flip(m, 1)


def flipud(m: GPUArray) -> GPUArray:
    """Returns the view with the first axis in reverse order, as :func:`numpy.flipud`."""
    if gpu_array("m", m).ndim < 1:
        raise ValueError("Input must be >= 1-d; m has no axes")
    return flip(m, 0)


def diagonal(a: GPUArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> GPUArray:
    """Returns the diagonal of two axes as a writable view, as :func:`numpy.diagonal`."""
    if gpu_array("a", a).ndim < 2:
        raise ValueError(f"diag requires an array of at least two dimensions; a has {a.ndim}")
    first, second = (normalize_axis_index(axis, a.ndim) for axis in (axis1, axis2))
    if first == second:
        raise ValueError(f"axis1 and axis2 cannot be the same; both are {first}")
    offset = whole("offset", offset)
    rows, columns = a.shape[first] - max(-offset, 0), a.shape[second] - max(offset, 0)
    others = [axis for axis in range(a.ndim) if axis not in (first, second)]
    shape = (*(a.shape[axis] for axis in others), max(0, min(rows, columns)))
    steps = (a.strides[first], a.strides[second])
    start = max(-offset, 0) * steps[0] + max(offset, 0) * steps[1]
    return strided_view(a, shape, (*(a.strides[axis] for axis in others), sum(steps)), start)


def _joined(name: str, arrays: Any) -> list[GPUArray]:
    """Returns the arrays to join; lists and numbers are copied to the device."""
    if isinstance(arrays, GPUArray) and arrays.ndim:
        return list(arrays)
    if isinstance(arrays, list | tuple):
        plain = list | tuple | range | int | float | complex | np.generic
        arrays = [_core.to_gpu(np.asarray(it)) if isinstance(it, plain) else it for it in arrays]
    return gpu_arrays(name, arrays)


# The most parts of an axis that has fewer elements than parts.
_EMPTY_PARTS = 1 << 16


def _converted(arrays: Any, out: Any, dtype: Any, casting: Any) -> Any:
    """Returns arrays converted to a dtype of the result that the caller has chosen."""
    if out is None and dtype is None:
        return arrays
    if out is not None and dtype is not None:
        raise TypeError("out and dtype are given; only one can be")
    dtype = np.dtype(dtype) if out is None else gpu_array("out", out).dtype
    for a in arrays:
        if not np.can_cast(a.dtype, dtype, casting):
            why = f"which cannot be cast to {dtype} with casting {casting!r}"
            raise TypeError(f"an array has dtype {a.dtype}, {why}")
    return [a.astype(dtype) for a in arrays]


def concatenate(
    arrays: Arrays,
    axis: int | None = 0,
    allocator: Allocator = None,
    *,
    out: Out = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
) -> GPUArray:
    """Joins arrays along an existing axis, as :func:`numpy.concatenate`."""
    arrays = _joined("arrays", arrays)
    if axis is None:
        arrays, axis = [along_axis(a, None)[0] for a in arrays], 0
    arrays = _converted(arrays, out, dtype, casting)
    return stored(_core.concatenate(arrays, axis, allocator), out)


def stack(
    arrays: Arrays,
    axis: int = 0,
    allocator: Allocator = None,
    *,
    out: Out = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
) -> GPUArray:
    """Joins arrays of one shape along a new axis, as :func:`numpy.stack`."""
    arrays = _converted(_joined("arrays", arrays), out, dtype, casting)
    return stored(_core.stack(arrays, axis, allocator), out)


def hstack(tup: Arrays, *, dtype: DType = None, casting: Casting = "same_kind") -> GPUArray:
    """Joins arrays along the second axis, vectors along their axis, as :func:`numpy.hstack`."""
    arrays = [a.reshape(1) if a.ndim == 0 else a for a in _joined("tup", tup)]
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return concatenate(arrays, axis, dtype=dtype, casting=casting)


def vstack(tup: Arrays, *, dtype: DType = None, casting: Casting = "same_kind") -> GPUArray:
    """Joins arrays along the first axis, vectors as rows, as :func:`numpy.vstack`."""
    arrays = [a.reshape(1, -1) if a.ndim < 2 else a for a in _joined("tup", tup)]
    return concatenate(arrays, 0, dtype=dtype, casting=casting)


def array_split(ary: GPUArray, indices_or_sections: Sections, axis: int = 0) -> list[GPUArray]:
    """Splits an array into views of about equal size, as :func:`numpy.array_split`."""
    length = gpu_array("ary", ary).shape[normalize_axis_index(axis, ary.ndim)]
    try:
        bounds = [operator.index(place) for place in indices_or_sections]  # type: ignore[union-attr]
    except TypeError:
        count = whole("indices_or_sections", indices_or_sections)
        if count <= 0:
            message = f"{count}; number sections must be larger than 0."
            raise ValueError(f"indices_or_sections is {message}") from None
        if count > length and count > _EMPTY_PARTS:
            raise ValueError(
                f"indices_or_sections is {count}; allowed for an axis of extent {length} are 1 to "
                f"{max(length, _EMPTY_PARTS)}"
            ) from None
        each, more = divmod(length, count)
        bounds = [part * each + min(part, more) for part in range(1, count)]
    before = (slice(None),) * normalize_axis_index(axis, ary.ndim)
    return [
        ary[(*before, slice(first, last))]
        for first, last in zip([0, *bounds], [*bounds, None], strict=True)
    ]


def split(ary: GPUArray, indices_or_sections: Sections, axis: int = 0) -> list[GPUArray]:
    """Splits an array into views of equal size, or at indices, as :func:`numpy.split`."""
    if not np.iterable(indices_or_sections):
        extent = gpu_array("ary", ary).shape[normalize_axis_index(axis, ary.ndim)]
        count = whole("indices_or_sections", indices_or_sections)
        if count > 0 and extent % count:
            sections = f"{count} sections of extent {extent}"
            raise ValueError(f"array split does not result in an equal division: {sections}")
    return array_split(ary, indices_or_sections, axis)


def roll(a: GPUArray, shift: Array, axis: Axis = None) -> GPUArray:
    """Returns a copy with the elements moved along axes, as :func:`numpy.roll`."""
    shift = shift.get() if isinstance(shift, GPUArray) else shift
    if axis is None:
        flat, _ = along_axis(a, None)
        return roll(flat, shift, 0).reshape(a.shape)
    axes = normalize_axis_tuple(axis, gpu_array("a", a).ndim, allow_duplicate=True)
    moves: dict[int, int] = dict.fromkeys(axes, 0)
    pairs = np.broadcast(shift, axes)
    if pairs.ndim > 1:
        raise ValueError(f"shift.ndim is {np.ndim(shift)}; a number or one axis is needed")
    for one, place in pairs:
        moves[place] += whole("shift", one)
    result = _core.new_like(a)
    parts: list[tuple[Any, Any]] = [((), ())]
    for place in range(a.ndim):
        length = a.shape[place]
        by = moves.get(place, 0) % length if length else 0
        pieces = [(slice(None, length - by), slice(by, None))]
        if by:
            pieces.append((slice(length - by, None), slice(None, by)))
        parts = [((*x, p), (*y, q)) for x, y in parts for p, q in pieces]
    for source, target in parts:
        result[target] = a[source]
    return result


def repeat(a: GPUArray, repeats: Array, axis: int | None = None) -> GPUArray:
    """Repeats each element, as :func:`numpy.repeat`; an array of counts is read by the host."""
    a, axis = along_axis(a, axis)
    if np.ndim(repeats):
        counts = repeats.get() if isinstance(repeats, GPUArray) else np.asarray(repeats)
        places = np.repeat(np.arange(a.shape[axis]), counts)
        return _core.take(a, _core.to_gpu(places), axis=axis)
    repeats = whole("repeats", repeats)
    if repeats < 0:
        raise ValueError(f"repeats is {repeats}; repeats may not contain negative values.")
    before, after = a.shape[: axis + 1], a.shape[axis + 1 :]
    result = _core.new_like(a, (*before, repeats, *after))
    result[...] = a[(slice(None),) * (axis + 1) + (None,)]
    return result.reshape(*before[:-1], before[-1] * repeats, *after)


def tile(A: GPUArray, reps: Shape) -> GPUArray:
    """Returns a new array that repeats another one along its axes, as :func:`numpy.tile`."""
    given = reps if isinstance(reps, tuple | list) else (reps,)
    counts = [whole("reps", count) for count in given]
    if any(count < 0 for count in counts):
        raise ValueError(f"reps is {reps}; numbers of repetitions must not be negative")
    ndim = max(gpu_array("A", A).ndim, len(counts))
    counts = [1] * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - A.ndim) + A.shape
    both = [extent for pair in zip(counts, shape, strict=True) for extent in pair]
    result = _core.new_like(A, tuple(both))
    result[...] = A.reshape(*(extent for side in shape for extent in (1, side))) if ndim else A
    final = [count * side for count, side in zip(counts, shape, strict=True)]
    return result.reshape(final) if ndim else result


def trace(
    a: GPUArray,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DType = None,
    out: Out = None,
) -> GPUArray:
    """Returns the sum along a diagonal, as :func:`numpy.trace`."""
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype, out=out)


def _triangle(is_lower: bool, m: GPUArray, k: int = 0) -> GPUArray:
    if gpu_array("m", m).ndim < 1:
        raise ValueError("m has no axes; a triangle needs at least one")
    k = whole("k", k)
    m = m if m.ndim > 1 else broadcast_to(m, (m.size, m.size))
    height, width = m.shape[-2:]
    # No diagonal is farther away than those next to the corners.
    k = max(-height - 1, min(k, width + 1))
    dtype = np.int32 if height + width < 2**31 - 1 else np.int64
    rows = _core.sequence(0, 1, height, dtype, m)[:, None]
    columns = _core.sequence(0, 1, width, dtype, m)
    inside = columns <= rows + k if is_lower else columns >= rows + k
    zero: Any = np.zeros((), m.dtype)[()]
    return _core.select(inside, m, zero, False)


_TRIANGLE = "Returns a copy with zeros {} a diagonal, as :func:`numpy.{}`."
tril = member(_triangle, True, "tril", _TRIANGLE.format("above", "tril"))
triu = member(_triangle, False, "triu", _TRIANGLE.format("below", "triu"))
