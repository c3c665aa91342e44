"""Views of the same elements with other axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._arguments import gpu_array, gpu_arrays, whole
from .._core import GPUArray
from .axes import normalize_axis_index, normalize_axis_tuple


def strided_view(a: GPUArray, shape: Any, strides: Any, offset: int = 0) -> GPUArray:
    """Returns a view of `a` with another shape and strides, `offset` bytes from its start."""
    if 0 in shape or a.size == 0:
        return _core.new_like(a, tuple(shape))
    return _core.strided_view(a, tuple(shape), list(strides), offset)


def transpose(a: GPUArray, axes: Any = None) -> GPUArray:
    """Returns the view with its axes in another order.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axes : sequence of int, optional
        The axes in their new order; reversed without it.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray.
    ValueError
        The axes do not name each axis once.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.transpose(gpuarray.zeros((2, 3))).shape
    (3, 2)
    """
    return gpu_array("a", a).transpose(axes)


def reshape(a: GPUArray, *shape: Any, **kwargs: Any) -> GPUArray:
    """Returns the elements under another shape; see `GPUArray.reshape`.

    Parameters
    ----------
    a : GPUArray
        The elements.
    *shape : int, or one sequence of int
        The extents; one may be -1, which is worked out from the others.
    order : {"C", "F", "A"}, optional
        The order in which elements are read and placed.

    Returns
    -------
    GPUArray
        A view where strides allow it, else a copy.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray.
    ValueError
        The sizes differ, more than one extent is -1, or ``order`` is another name.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.reshape(gpuarray.arange(4), 2, -1).get()
    array([[0, 1],
           [2, 3]])
    """
    return gpu_array("a", a).reshape(*shape, **kwargs)


def swapaxes(a: GPUArray, axis1: int, axis2: int) -> GPUArray:
    """Returns the view with two axes exchanged.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis1, axis2 : int
        The axes.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray.
    IndexError, ValueError
        There is no such axis: ``numpy.exceptions.AxisError`` is both.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.swapaxes(gpuarray.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    order = list(range(gpu_array("a", a).ndim))
    first, second = (normalize_axis_index(axis, a.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return a.transpose(order) if order else a.view()


def moveaxis(a: GPUArray, source: Any, destination: Any) -> GPUArray:
    """Returns the view with some axes at other positions, the others in their order.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    source, destination : int or sequence of int
        The axes, and the position that each comes to.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray.
    ValueError
        There are more or fewer sources than destinations, an axis is named twice, or there is none
        such.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.moveaxis(gpuarray.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
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


def expand_dims(a: GPUArray, axis: Any) -> GPUArray:
    """Returns a view with new axes of extent 1.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        The elements.
    axis : int or tuple of int
        The positions of the new axes in the result.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray.
    ValueError
        There is no such axis (``numpy.exceptions.AxisError``), or one is named twice.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.expand_dims(gpuarray.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = gpu_array("a", a).ndim + len(axes)
    places = normalize_axis_tuple(axes, ndim)
    return a[tuple(None if place in places else slice(None) for place in range(ndim))]


def broadcast_to(array: GPUArray, shape: Any) -> GPUArray:
    """Returns a view that repeats the elements to a larger shape, by numpy's rule.

    PyCUDA has no such function.

    Parameters
    ----------
    array : GPUArray
        The elements.
    shape : int or sequence of int
        The shape of the view.

    Returns
    -------
    GPUArray
        A view that cannot be written where it repeats an element.

    Raises
    ------
    TypeError
        ``array`` is no GPUArray.
    ValueError
        The shape of `array` does not broadcast to `shape`.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.broadcast_to(gpuarray.arange(3), (2, 3)).get()
    array([[0, 1, 2],
           [0, 1, 2]])
    """
    given = shape if isinstance(shape, tuple | list) else (shape,)
    shape = tuple(whole("shape", extent) for extent in given)
    own, missing = gpu_array("array", array).shape, len(shape) - array.ndim
    if missing < 0 or any(a not in (1, b) for a, b in zip(own, shape[missing:], strict=True)):
        raise ValueError(f"an array of shape {own} could not be broadcast to shape {shape}")
    strides = [0 if extent == 1 else step for extent, step in zip(own, array.strides, strict=True)]
    return strided_view(array, shape, (*[0] * missing, *strides))


def broadcast_arrays(*args: GPUArray) -> tuple[GPUArray, ...]:
    """Returns views of arrays that all have the shape which they broadcast to.

    PyCUDA has no such function.

    Parameters
    ----------
    *args : GPUArray
        The arrays.

    Returns
    -------
    tuple of GPUArray
        The views.

    Raises
    ------
    TypeError
        An argument is no GPUArray.
    ValueError
        The shapes do not broadcast.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> a, b = gpuarray.broadcast_arrays(gpuarray.zeros((2, 1)), gpuarray.zeros(3))
    >>> a.shape, b.shape
    ((2, 3), (2, 3))
    """
    arrays = gpu_arrays("args", args)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def flip(m: GPUArray, axis: Any = None) -> GPUArray:
    """Returns the view with the elements along axes in reverse order.

    PyCUDA has no such function.

    Parameters
    ----------
    m : GPUArray
        The elements.
    axis : int or tuple of int, optional
        The axes; all without it.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``m`` is no GPUArray.
    IndexError, ValueError
        There is no such axis: ``numpy.exceptions.AxisError`` is both.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.flip(gpuarray.arange(3)).get()
    array([2, 1, 0])
    """
    ndim = gpu_array("m", m).ndim
    axes = range(ndim) if axis is None else normalize_axis_tuple(axis, ndim)
    return m[tuple(slice(None, None, -1 if place in axes else None) for place in range(ndim))]


def fliplr(m: GPUArray) -> GPUArray:
    """Returns the view with the elements along the second axis in reverse order.

    PyCUDA has no such function.

    Parameters
    ----------
    m : GPUArray
        An array of two axes or more.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``m`` is no GPUArray.
    ValueError
        ``m`` has fewer axes than two.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.fliplr(gpuarray.arange(4).reshape(2, 2)).get()
    array([[1, 0],
           [3, 2]])
    """
    if gpu_array("m", m).ndim < 2:
        raise ValueError(f"Input must be >= 2-d; m has {m.ndim} axes")
    return flip(m, 1)


def flipud(m: GPUArray) -> GPUArray:
    """Returns the view with the elements along the first axis in reverse order.

    PyCUDA has no such function.

    Parameters
    ----------
    m : GPUArray
        An array of one axis or more.

    Returns
    -------
    GPUArray
        A view.

    Raises
    ------
    TypeError
        ``m`` is no GPUArray.
    ValueError
        ``m`` has no axes.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.flipud(gpuarray.arange(4).reshape(2, 2)).get()
    array([[2, 3],
           [0, 1]])
    """
    if gpu_array("m", m).ndim < 1:
        raise ValueError("Input must be >= 1-d; m has no axes")
    return flip(m, 0)


def diagonal(a: GPUArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> GPUArray:
    """Returns the diagonal of two axes.

    PyCUDA has no such function.

    Parameters
    ----------
    a : GPUArray
        An array of two axes or more.
    offset : int
        How far the diagonal is above the main one.
    axis1, axis2 : int
        The axes; the diagonal is the last axis of the result.

    Returns
    -------
    GPUArray
        A view, which can be written, unlike numpy's.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray.
    ValueError
        ``a`` has fewer axes than two or no such axis, or both axes are the same.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> gpuarray.diagonal(gpuarray.arange(9).reshape(3, 3), 1).get()
    array([1, 5])
    """
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
