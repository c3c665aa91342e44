"""Arrays joined, and split into views."""

from __future__ import annotations

import operator
from typing import Any

from .. import _core
from .._arguments import gpu_array, gpu_arrays, whole
from .._core import GPUArray
from .axes import along_axis, normalize_axis_index

# Parts of an axis with fewer elements than parts, most of them empty: at most so many.
_EMPTY_PARTS = 1 << 16


def concatenate(arrays: Any, axis: int | None = 0, allocator: Any = None) -> GPUArray:
    """Joins arrays along an axis that they have.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Arrays whose shapes agree except along `axis`.
    axis : int or None
        The axis; None joins all elements along one axis.
    allocator : callable, optional
        Where the result's memory comes from; that of the first array without one.

    Returns
    -------
    GPUArray
        The joined elements, in the dtype that all dtypes have in common.

    Raises
    ------
    TypeError
        An element of ``arrays`` is no GPUArray, or the dtypes have none in common.
    ValueError
        There is no array, the shapes do not fit, or there is no such axis.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.concatenate([gpuarray.arange(2), gpuarray.arange(3)]).get()
    array([0, 1, 0, 1, 2])
    """
    if axis is None:
        arrays, axis = [along_axis(a, None)[0] for a in gpu_arrays("arrays", arrays)], 0
    return _core.concatenate(arrays, axis, allocator)


def stack(arrays: Any, axis: int = 0, allocator: Any = None) -> GPUArray:
    """Joins arrays of one shape along a new axis.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Arrays of one shape.
    axis : int
        The position of the new axis.
    allocator : callable, optional
        Where the result's memory comes from; that of the first array without one.

    Returns
    -------
    GPUArray
        The joined elements, in the dtype that all dtypes have in common.

    Raises
    ------
    TypeError
        An element of ``arrays`` is no GPUArray, or the dtypes have none in common.
    ValueError
        There is no array, the shapes differ, or there is no such axis.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.stack([gpuarray.arange(2), gpuarray.arange(2)], axis=1).get()
    array([[0, 0],
           [1, 1]])
    """
    return _core.stack(arrays, axis, allocator)


def hstack(tup: Any) -> GPUArray:
    """Joins arrays along the second axis; along the only one where they have one.

    PyCUDA has no such function.

    Parameters
    ----------
    tup : sequence of GPUArray
        Arrays whose shapes agree except along that axis.

    Returns
    -------
    GPUArray
        The joined elements, in the dtype that all dtypes have in common.

    Raises
    ------
    TypeError
        An element of ``tup`` is no GPUArray, or the dtypes have none in common.
    ValueError
        There is no array, or the shapes differ along another axis than that of the joint.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.hstack([gpuarray.zeros((1, 2), int), gpuarray.ones((1, 1), int)]).get()
    array([[0, 0, 1]])
    """
    arrays = [a.reshape(1) if a.ndim == 0 else a for a in gpu_arrays("tup", tup)]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1)


def vstack(tup: Any) -> GPUArray:
    """Joins arrays along the first axis; those of one axis become rows.

    PyCUDA has no such function.

    Parameters
    ----------
    tup : sequence of GPUArray
        Arrays whose shapes agree except along that axis.

    Returns
    -------
    GPUArray
        The joined elements, in the dtype that all dtypes have in common.

    Raises
    ------
    TypeError
        An element of ``tup`` is no GPUArray, or the dtypes have none in common.
    ValueError
        There is no array, or the shapes differ along another axis than that of the joint.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.vstack([gpuarray.arange(2), gpuarray.arange(2)]).get()
    array([[0, 1],
           [0, 1]])
    """
    arrays = [a.reshape(1, -1) if a.ndim < 2 else a for a in gpu_arrays("tup", tup)]
    return concatenate(arrays, 0)


def array_split(ary: GPUArray, indices_or_sections: Any, axis: int = 0) -> list[GPUArray]:
    """Splits an array into views, as even as can be.

    PyCUDA has no such function.

    Parameters
    ----------
    ary : GPUArray
        The elements.
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which a part begins.
    axis : int
        The axis that is split.

    Returns
    -------
    list of GPUArray
        Views; the first ones have one more element where the parts cannot be equal.

    Raises
    ------
    TypeError
        ``ary`` is no GPUArray.
    ValueError
        There is no such number of parts or no such axis, or the number is far larger than the
        extent of the axis.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> [part.get() for part in gpuarray.array_split(gpuarray.arange(3), 2)]
    [array([0, 1]), array([2])]
    """
    length = gpu_array("ary", ary).shape[normalize_axis_index(axis, ary.ndim)]
    try:
        bounds = [operator.index(place) for place in indices_or_sections]
    except TypeError:
        count = whole("indices_or_sections", indices_or_sections)
        if count <= 0:
            raise ValueError(
                f"indices_or_sections is {count}; number sections must be larger than 0."
            ) from None
        if count > length and count > _EMPTY_PARTS:
            raise ValueError(
                f"indices_or_sections is {count}; allowed for an axis of extent {length} are 1 to "
                f"{length if length > _EMPTY_PARTS else _EMPTY_PARTS}"
            ) from None
        each, more = divmod(length, count)
        bounds = [part * each + min(part, more) for part in range(1, count)]
    before = (slice(None),) * normalize_axis_index(axis, ary.ndim)
    return [
        ary[(*before, slice(first, last))]
        for first, last in zip([0, *bounds], [*bounds, None], strict=True)
    ]


def split(ary: GPUArray, indices_or_sections: Any, axis: int = 0) -> list[GPUArray]:
    """Splits an array into views of equal size, or at indices.

    PyCUDA has no such function.

    Parameters
    ----------
    ary : GPUArray
        The elements.
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which a part begins.
    axis : int
        The axis that is split.

    Returns
    -------
    list of GPUArray
        The views.

    Raises
    ------
    TypeError
        ``ary`` is no GPUArray.
    ValueError
        The axis has no extent that so many equal parts have, or there is no such axis.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> [part.get() for part in gpuarray.split(gpuarray.arange(4), 2)]
    [array([0, 1]), array([2, 3])]
    """
    if not hasattr(indices_or_sections, "__iter__"):
        extent = gpu_array("ary", ary).shape[normalize_axis_index(axis, ary.ndim)]
        count = whole("indices_or_sections", indices_or_sections)
        if count > 0 and extent % count:
            raise ValueError(
                f"array split does not result in an equal division: {extent} elements, "
                f"{count} sections"
            )
    return array_split(ary, indices_or_sections, axis)
