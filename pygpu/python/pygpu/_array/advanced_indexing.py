"""Advanced indexing: elements selected by arrays of indices and by masks, as in numpy.

A mask is converted to the indices of its true elements; this waits for the number of them. Indices
in lists and in numpy arrays are checked. Indices in device memory are not, because a check would
wait: an index out of bounds reads zero and stores nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._arguments import along_axis, gpu_array, gpu_arrays, whole, wrong_type
from .._core import GPUArray
from ..compyte.array import span
from . import Array, OnStream, Out, Shape
from .creation import to_gpu

__all__ = ["compress", "flatnonzero", "multi_put", "multi_take", "multi_take_put", "nonzero"]
__all__ += ["take"]

_ALL = slice(None)


class _Named(NamedTuple):
    """Indices into axes of a view that are treated as one axis, in C order."""

    axes: tuple[int, ...]
    indices: Any  # numpy's or a GPUArray


class _Elements(NamedTuple):
    """The elements of ``view`` at ``indices`` along its first axis."""

    view: GPUArray
    merged: GPUArray
    order: tuple[int, ...]
    indices: GPUArray
    # The axes of the result, numbered as in the result of ``take``.
    axes: tuple[int, ...]
    shape: tuple[int, ...]


def _item(item: Any) -> Any:
    """Returns one member of an index; a list becomes an array, and a whole number an int."""
    if isinstance(item, list):
        array = np.asarray(item)
        return array if array.size else array.astype(np.intp)
    if item is None or item is Ellipsis or isinstance(item, slice | bool):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, np.ndarray | GPUArray):
        if item.ndim > 0:
            return item
        return bool(item) if item.dtype == np.bool_ else _checked(item, 0).__index__()
    return item.__index__() if hasattr(item, "__index__") else item


def _consumed(item: Any) -> int:
    """Returns how many axes of the array a member of an index uses."""
    if item is None or isinstance(item, bool):
        return 0
    if isinstance(item, GPUArray | np.ndarray) and item.dtype == np.bool_:
        return item.ndim
    return 1


def _expanded(items: list[Any], ndim: int) -> list[Any]:
    """Returns the index with full slices for an ellipsis and for the remaining axes.

    An ellipsis separates the advanced indices around it even if it stands for no axis.
    """
    used = sum(_consumed(item) for item in items if item is not Ellipsis)
    if used > ndim:
        raise IndexError(f"too many indices: array is {ndim}-dimensional, but {used} were indexed")
    ellipses = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have one ellipsis ('...') only")
    place = ellipses[0] if ellipses else len(items)
    after = items[place + len(ellipses) :]
    return items[:place] + [Ellipsis] + [_ALL] * (ndim - used) + after


def _true_elements(mask: Any, shape: tuple[int, ...]) -> Any:
    for axis, (extent, own) in enumerate(zip(shape, mask.shape, strict=True)):
        if extent != own:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is "
                f"{extent} but size of corresponding boolean axis is {own}"
            )
    if isinstance(mask, np.ndarray):
        return np.flatnonzero(mask)
    return _core.nonzero(mask, np.int32 if mask.size < 2**31 else np.int64)


def _checked(indices: Any, extent: int) -> Any:
    """Returns the indices; refuses fractions, and indices on the host that are out of bounds."""
    if indices.dtype.kind not in "iu":
        allowed = "integer (or boolean) type"
        raise IndexError(f"arrays used as indices must be of {allowed}, not {indices.dtype}")
    if isinstance(indices, np.ndarray) and indices.ndim and indices.size:
        for bound in (int(indices.min()), int(indices.max())):
            if not -extent <= bound < extent:
                raise IndexError(f"index {bound} is out of bounds for an axis of size {extent}")
    return indices


def _plain(a: GPUArray) -> GPUArray:
    """Returns an array as a plain GPUArray, because a view of pygpu.cuda's class may be a copy."""
    return a if type(a) is GPUArray else GPUArray.view(a)


def _parts(a: GPUArray, index: Any) -> tuple[GPUArray, list[_Named], int | None]:
    """Returns a view by the basic indices, the advanced indices, and their axis in the result.

    The axis is None, which means the first one, if the advanced indices are not adjacent.
    """
    items = [_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    basic: list[Any] = []
    named: list[_Named] = []
    axis = consumed = 0
    groups: list[int] = []  # the axes of the result before each run of advanced members
    adjacent = False
    for item in _expanded(items, a.ndim):
        if item is Ellipsis:
            adjacent = False
            continue
        if item is None or isinstance(item, slice):
            basic.append(item)
            axis, consumed = axis + 1, consumed + (item is not None)
            adjacent = False
            continue
        if not adjacent:
            groups.append(axis - sum(len(it.axes) for it in named))
            adjacent = True
        if isinstance(item, bool):
            basic.append(None)
            named.append(_Named((axis,), np.zeros(int(item), np.intp)))
            axis += 1
        elif not isinstance(item, GPUArray | np.ndarray):
            basic.append(item)
            consumed += 1
        elif item.dtype == np.bool_:
            axes = tuple(range(axis, axis + item.ndim))
            extents = a.shape[consumed : consumed + item.ndim]
            basic += [_ALL] * item.ndim
            named.append(_Named(axes, _true_elements(item, extents)))
            axis, consumed = axis + item.ndim, consumed + item.ndim
        else:
            basic.append(_ALL)
            named.append(_Named((axis,), _checked(item, a.shape[consumed])))
            axis, consumed = axis + 1, consumed + 1
    return a[tuple(basic)], named, groups[0] if len(groups) == 1 else None


def _combined(named: list[_Named], extents: list[int]) -> GPUArray:
    """Joins indices along axes to indices of one axis, out of bounds where one of them is."""
    if len(named) == 1:
        indices = named[0].indices
        return to_gpu(indices) if isinstance(indices, np.ndarray) else indices
    try:
        np.broadcast_shapes(*(it.indices.shape for it in named))
    except ValueError:
        shapes = " ".join(str(it.indices.shape) for it in named)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    if all(isinstance(it.indices, np.ndarray) for it in named):
        flat = np.zeros((), np.int64)
        for it, extent in zip(named, extents):
            indices = it.indices.astype(np.int64)
            flat = flat * extent + np.where(indices < 0, indices + extent, indices)
        return to_gpu(flat)
    total: Any = 0
    inside: Any = None
    for it, extent in zip(named, extents):
        indices = it.indices
        indices = to_gpu(indices) if isinstance(indices, np.ndarray) else indices
        indices = indices.astype(np.int64)
        indices = _core.select(indices < 0, indices + extent, indices, False)
        total = total * extent + indices
        own = (indices >= 0) & (indices < extent)
        inside = own if inside is None else inside & own
    return _core.select(inside, total, math.prod(extents), False)


def _elements(view: GPUArray, named: list[_Named], place: int | None) -> _Elements:
    extents = [math.prod(view.shape[axis] for axis in it.axes) for it in named]
    indices = _combined(named, extents)
    front = tuple(axis for it in named for axis in it.axes)
    rest = tuple(axis for axis in range(view.ndim) if axis not in front)
    order = front + rest
    turned = view.transpose(order)
    merged = turned
    if len(front) > 1:
        merged = turned.reshape((math.prod(extents), *turned.shape[len(front) :]))
    # The result of `take` has the axes of the indices, then the rest.
    many, last = indices.ndim, indices.ndim + len(rest)
    place = many + (place or 0)
    axes = (*range(many, place), *range(many), *range(place, last))
    shape = indices.shape + merged.shape[1:]
    return _Elements(view, merged, order, indices, axes, tuple(shape[axis] for axis in axes))


def get_elements(a: GPUArray, index: Any) -> GPUArray:
    """Returns ``a[index]``, a new array, for an index that contains arrays."""
    a = _plain(a)
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(mask, GPUArray) and mask.ndim and mask.shape == a.shape and mask.dtype == bool:
        return _core.compress(a, mask)
    view, named, place = _parts(a, index)
    if not named:
        # Arrays without axes count as numbers, but numpy copies the elements.
        return view.copy()
    found = _elements(view, named, place)
    taken = _core.take(found.merged, found.indices, axis=0)
    return taken if found.axes == tuple(range(taken.ndim)) else taken.transpose(found.axes)


def may_overlap(a: GPUArray, b: GPUArray) -> bool:
    """Returns True if the memory between the ends of two arrays overlaps."""
    if a.size == 0 or b.size == 0:
        return False
    (low, high), (start, end) = (span(it.shape, it.strides, it.itemsize) for it in (a, b))
    return a._address + low < b._address + end and b._address + start < a._address + high


def _apart(a: GPUArray, from_: GPUArray) -> GPUArray:
    """Returns ``from_``, or a copy of it if it may share memory with ``a``."""
    return from_.copy() if may_overlap(a, from_) else from_


def _values(a: GPUArray, value: Any) -> GPUArray:
    """Returns the assigned value as an array of the dtype of ``a``."""
    if not isinstance(value, GPUArray):
        if np.ndim(value) == 0:
            one = _core.new_like(a, ())
            one[...] = value
            return one
        # numpy converts dtypes that the device cannot.
        value = to_gpu(np.asarray(value, a.dtype if a.dtype.kind in "mMSUV" else None))
    value = _plain(value)
    return value if value.dtype == a.dtype else value.astype(a.dtype)


def set_elements(a: GPUArray, index: Any, value: Any) -> None:
    """Assigns ``a[index] = value`` for an index with arrays; an element gets one of its values."""
    a = _plain(a)
    value = _values(a, value)
    is_mask = isinstance(index, GPUArray) and index.dtype == bool and 0 < index.ndim <= a.ndim
    if is_mask and value.ndim == 0 and index.shape == a.shape[: index.ndim]:
        mask = index.reshape(*index.shape, *(1,) * (a.ndim - index.ndim))
        _core.select(_apart(a, mask), value, a, False, a)
        return
    view, named, place = _parts(a, index)
    if not named:
        view[...] = value
        return
    found = _elements(view, named, place)
    extra = value.ndim - len(found.shape)
    if extra > 0 and all(extent == 1 for extent in value.shape[:extra]):
        value = value.reshape(value.shape[extra:]) if len(found.shape) else value.reshape(())
    padded = (1,) * (len(found.shape) - value.ndim) + value.shape
    fits = len(padded) == len(found.shape)
    if not fits or any(own not in (1, want) for own, want in zip(padded, found.shape)):
        raise ValueError(
            f"shape mismatch: value array of shape {value.shape} could not be broadcast to "
            f"indexing result of shape {found.shape}"
        )
    if math.prod(found.shape) == 0:
        return
    value = value.reshape(padded) if padded else value
    back = [found.axes.index(axis) for axis in range(len(found.axes))]
    value = _apart(a, value.transpose(back) if back else value)
    merged, view = found.merged, found.view
    _core.put(merged, _apart(a, found.indices), value, axis=0)
    if merged._address != view.transpose(found.order)._address:
        # The named axes are not one axis in memory: the values were stored into a copy.
        turned = view.transpose(found.order)
        turned[...] = merged.reshape(turned.shape)


def flatnonzero(a: GPUArray) -> GPUArray:
    """Returns the indices of the elements that are not zero, as :func:`numpy.flatnonzero`.

    Waits for their number. The result is undefined if another thread writes ``a`` meanwhile.
    """
    return _core.nonzero(gpu_array("a", a), np.int64)


def nonzero(a: GPUArray) -> tuple[GPUArray, ...]:
    """Returns the indices of nonzero elements, an array per axis, as :func:`numpy.nonzero`."""
    if gpu_array("a", a).ndim == 0:
        raise ValueError("a has no axes; nonzero needs at least one")
    rest = flatnonzero(a)
    found = []
    for extent in a.shape[:0:-1]:
        extent = max(extent, 1)
        found.append(rest % extent)
        rest = rest // extent
    return (rest, *reversed(found))


def compress(condition: Array, a: GPUArray, axis: int | None = None, out: Out = None) -> GPUArray:
    """Returns the elements along an axis at which a condition is true, as :func:`numpy.compress`.

    Waits for the number of them, as :func:`flatnonzero` does.
    """
    gpu_array("a", a)
    if np.ndim(condition) != 1:
        raise ValueError(f"condition has {np.ndim(condition)} axes; one is needed")
    a, axis = along_axis(a, axis)
    extent = a.shape[axis]
    if isinstance(condition, GPUArray):
        if condition.size > extent and condition[extent:].any():
            raise IndexError(
                f"condition.size is {condition.size}, with true elements beyond the axis, whose "
                f"extent is {extent}"
            )
        if out is None and a.shape == condition.shape and condition.dtype == np.bool_:
            return _core.compress(a, condition)
        indices = flatnonzero(condition)
    else:
        indices = to_gpu(_checked(np.flatnonzero(np.asarray(condition)), extent))
    return _core.take(a, indices, out, axis=axis)


def take(a: GPUArray, indices: GPUArray, out: Out = None, stream: OnStream = None) -> GPUArray:
    """Returns the elements of ``a``, seen as one axis, at ``indices``.

    The result has the shape of the indices. A negative index counts from the end. The element at an
    index out of bounds is zero; :func:`numpy.take` raises an error. ``out`` receives the result,
    and the work is queued on ``stream``.

    >>> a = gpuarray.arange(4) * 10
    >>> gpuarray.take(a, gpuarray.arange(3, 0, -1)).get()
    array([30, 20, 10])
    """
    return _core.take(a, indices, out, stream)


def _outputs(arrays: Any, out: Any, shape: Any) -> list[GPUArray]:
    if out is None:
        return [GPUArray(shape, a.dtype, a.allocator) for a in arrays]
    gpu_arrays("out", out)
    if len(out) != len(arrays):
        lengths = f"they have {len(out)} and {len(arrays)}"
        raise ValueError(f"out and arrays must have the same length; {lengths}")
    for one, a in zip(out, arrays):
        if one.dtype != a.dtype:
            message = f"not {a.dtype} and {one.dtype}"
            raise TypeError(f"arrays and out must have the same dtype, {message}")
    return out


def multi_take(
    arrays: Sequence[GPUArray],
    indices: GPUArray,
    out: Sequence[GPUArray] | None = None,
    stream: OnStream = None,
) -> list[GPUArray]:
    """Returns :func:`take` of each of the ``arrays``, as a list of arrays, or in ``out``.

    Other arguments are as in :func:`take`.

    >>> a = gpuarray.arange(4)
    >>> [x.get() for x in gpuarray.multi_take([a, a * 2], gpuarray.arange(2))]
    [array([0, 1]), array([0, 2])]
    """
    arrays = gpu_arrays("arrays", arrays)
    gpu_array("indices", indices)
    out = _outputs(arrays, out, indices.shape)
    for number, one in enumerate(out):
        if one.shape != indices.shape:
            raise ValueError(f"out[{number}] has shape {one.shape}; indices have {indices.shape}")
    for a, one in zip(arrays, out):
        take(a, indices, one, stream)
    return out


def _check_targets(out: list[GPUArray]) -> None:
    for number, one in enumerate(out):
        if not one.flags.c_contiguous:
            raise ValueError(f"out[{number}] is not contiguous")


def _check_index_vectors(dest_indices: GPUArray, src_indices: GPUArray) -> None:
    gpu_array("dest_indices", dest_indices)
    gpu_array("src_indices", src_indices)
    for what in ("dtype", "shape"):
        one, other = getattr(src_indices, what), getattr(dest_indices, what)
        if what == "shape" and len(one) != 1:
            raise ValueError(f"src_indices must be 1D; its shape is {one}")
        if one != other:
            raise (TypeError if what == "dtype" else ValueError)(
                f"src_indices and dest_indices must have the same {what}, not {one} and {other}"
            )


def multi_take_put(
    arrays: Sequence[GPUArray],
    dest_indices: GPUArray,
    src_indices: GPUArray,
    dest_shape: Shape | None = None,
    out: Sequence[GPUArray] | None = None,
    stream: OnStream = None,
    src_offsets: Sequence[int] | None = None,
) -> list[GPUArray]:
    """Copies elements of each array at ``src_indices`` to an output, at ``dest_indices``.

    Returns the list of outputs. The other elements of a new output are undefined.

    >>> out = gpuarray.zeros(3, int)
    >>> two = gpuarray.arange(2)
    >>> _ = gpuarray.multi_take_put([gpuarray.arange(5)], two, two + 3, out=[out])
    >>> out.get()
    array([3, 4, 0])

    Parameters
    ----------
    arrays : sequence of GPUArray. The arrays to copy from.
    dest_indices, src_indices : GPUArray. Indices of outputs and arrays, of one shape and dtype.
    dest_shape : tuple of int, optional. The shape of new outputs.
    out : sequence of GPUArray, optional. The outputs, of the dtypes of the arrays.
    stream : Stream, optional. The stream of the work.
    src_offsets : sequence of int, optional. A number for each array, added to ``src_indices``.
    """
    arrays = gpu_arrays("arrays", arrays)
    _check_index_vectors(dest_indices, src_indices)
    out = _outputs(arrays, out, dest_shape)
    if src_offsets is None:
        src_offsets = [0] * len(arrays)
    elif not isinstance(src_offsets, Sequence | np.ndarray):
        raise wrong_type("src_offsets", src_offsets, "a sequence of whole numbers is needed")
    elif len(src_offsets) != len(arrays):
        lengths = f"{len(arrays)} and {len(src_offsets)}"
        raise ValueError(f"arrays and src_offsets must have the same length, not {lengths}")
    _check_targets(out)
    offsets = [whole(f"src_offsets[{number}]", offset) for number, offset in enumerate(src_offsets)]
    # The sum of a narrow index and an offset may be wider.
    wide = src_indices.astype(np.int64) if any(offsets) else src_indices
    for a, one, offset in zip(arrays, out, offsets):
        source = wide + offset if offset else src_indices
        _core.put(one, dest_indices, take(a, source, stream=stream), stream)
    return out


def multi_put(
    arrays: Sequence[GPUArray],
    dest_indices: GPUArray,
    dest_shape: Shape | None = None,
    out: Sequence[GPUArray] | None = None,
    stream: OnStream = None,
) -> list[GPUArray]:
    """Copies the first elements of each of the ``arrays`` to an output, at ``dest_indices``.

    Other arguments are as in :func:`multi_take_put`.

    >>> out = gpuarray.zeros(3, int)
    >>> _ = gpuarray.multi_put([gpuarray.arange(1, 3)], gpuarray.arange(2, 0, -1), out=[out])
    >>> out.get()
    array([0, 2, 1])
    """
    arrays = gpu_arrays("arrays", arrays)
    gpu_array("dest_indices", dest_indices)
    if len(dest_indices.shape) != 1:
        raise ValueError(f"dest_indices must be 1D; its shape is {dest_indices.shape}")
    count = dest_indices.size
    for number, a in enumerate(arrays):
        if a.size < count:
            raise ValueError(f"arrays[{number}].size is {a.size}; there are more indices, {count}")
    out = _outputs(arrays, out, dest_shape)
    _check_targets(out)
    for a, one in zip(arrays, out):
        _core.put(one, dest_indices, a if a.size == count else a.ravel()[:count], stream)
    return out
