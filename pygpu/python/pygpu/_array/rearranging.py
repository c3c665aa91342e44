"""Elements moved, repeated or left out, in a new array."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._arguments import gpu_array, whole
from .._core import GPUArray
from .axes import along_axis, normalize_axis_tuple
from .creation import empty_like
from .views import broadcast_to, diagonal


def roll(a: GPUArray, shift: Any, axis: Any = None) -> GPUArray:
    """Returns a copy with the elements moved along axes; those beyond the end come in front.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    shift : int or tuple of int
        By how many places.
    axis : int or tuple of int, optional
        The axes; without it the elements are moved as along one axis.

    Returns
    -------
    GPUArray
        A new array of the same shape.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, its elements are records, or ``shift`` is no whole number.
    IndexError, ValueError
        There is no such axis: ``numpy.exceptions.AxisError`` is both.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.roll(gpuarray.arange(5), 2).get()
    array([3, 4, 0, 1, 2])
    """
    if axis is None:
        flat, _ = along_axis(a, None)
        return roll(flat, shift, 0).reshape(a.shape)
    axes = normalize_axis_tuple(axis, gpu_array("a", a).ndim, allow_duplicate=True)
    moves: dict[int, int] = dict.fromkeys(axes, 0)
    for one, place in np.broadcast(shift, axes):
        moves[place] += whole("shift", one)
    result = empty_like(a)
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


def repeat(a: GPUArray, repeats: int, axis: int | None = None) -> GPUArray:
    """Repeats each element.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    repeats : int
        How often: one number for all elements, unlike numpy's, which may be one for each.
    axis : int, optional
        The axis along which copies follow each other; without it the elements are read as along
        one axis.

    Returns
    -------
    GPUArray
        A new array, its extent along the axis `repeats` times as large.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, its elements are records, or ``repeats`` is no whole number.
    ValueError
        ``repeats`` is negative, or there is no such axis.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.repeat(gpuarray.arange(3), 2).get()
    array([0, 0, 1, 1, 2, 2])
    """
    a, axis = along_axis(a, axis)
    repeats = whole("repeats", repeats)
    if repeats < 0:
        raise ValueError(f"repeats is {repeats}; repeats may not contain negative values.")
    before, after = a.shape[: axis + 1], a.shape[axis + 1 :]
    result = _core.new_like(a, (*before, repeats, *after))
    result[...] = a[(slice(None),) * (axis + 1) + (None,)]
    return result.reshape(*before[:-1], before[-1] * repeats, *after)


def tile(A: GPUArray, reps: Any) -> GPUArray:
    """Repeats an array as tiles.

    PyCUDA has no such function.

    Parameters
    ----------
    A : GPUArray
        The tile.
    reps : int or sequence of int
        How often along each of the last axes.

    Returns
    -------
    GPUArray
        A new array.

    Raises
    ------
    TypeError
        ``A`` is no GPUArray, or a number of repetitions is no whole number.
    ValueError
        A number of repetitions is negative.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.tile(gpuarray.arange(2), (2, 2)).get()
    array([[0, 1, 0, 1],
           [0, 1, 0, 1]])
    """
    given = reps if isinstance(reps, tuple | list) else (reps,)
    counts = [whole("reps", count) for count in given]
    if any(count < 0 for count in counts):
        raise ValueError(f"reps is {reps}; numbers of repetitions are not negative")
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
    dtype: Any = None,
    out: GPUArray | None = None,
) -> GPUArray:
    """Returns the sum along a diagonal.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        An array of two axes or more.
    offset : int
        How far the diagonal is above the main one.
    axis1, axis2 : int
        The axes of the diagonal.
    dtype : dtype, optional
        What elements are added in; small integers are widened without it.
    out : GPUArray, optional
        Receives the result; it has the shape of the result.

    Returns
    -------
    GPUArray
        The sums, with the axes of `a` that are not the diagonal's.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, or its elements are records.
    ValueError
        ``a`` has fewer axes than two or no such axis, both axes are the same, or ``out`` has
        another shape.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.trace(gpuarray.arange(9).reshape(3, 3)).get()
    array(12)
    """
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype, out=out)


def _triangle(m: GPUArray, k: int, is_lower: bool) -> GPUArray:
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


def tril(m: GPUArray, k: int = 0) -> GPUArray:
    """Returns a copy with zeros above a diagonal.

    PyCUDA has no such function.

    Parameters
    ----------
    m : GPUArray
        The elements; the last two axes are the matrix. One axis is every row of a square matrix.
    k : int
        How far the diagonal is above the main one.

    Returns
    -------
    GPUArray
        A new array.

    Raises
    ------
    TypeError
        ``m`` is no GPUArray, or its elements are records.
    ValueError
        ``m`` has no axes.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.tril(gpuarray.ones((2, 2), int)).get()
    array([[1, 0],
           [1, 1]])
    """
    return _triangle(m, k, True)


def triu(m: GPUArray, k: int = 0) -> GPUArray:
    """Returns a copy with zeros below a diagonal.

    PyCUDA has no such function.

    Parameters
    ----------
    m : GPUArray
        The elements; the last two axes are the matrix. One axis is every row of a square matrix.
    k : int
        How far the diagonal is above the main one.

    Returns
    -------
    GPUArray
        A new array.

    Raises
    ------
    TypeError
        ``m`` is no GPUArray, or its elements are records.
    ValueError
        ``m`` has no axes.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.triu(gpuarray.ones((2, 2), int)).get()
    array([[1, 1],
           [0, 1]])
    """
    return _triangle(m, k, False)
