"""Arrays of elements in other places: joined, padded, taken out, put in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._arguments import extents, gpu_array
from ..._core import GPUArray
from .. import shapes
from ..advanced_indexing import compress, flatnonzero, nonzero
from ..axes import along_axis, argsort, normalize_axis_tuple, sort
from ..creation import arange
from ..reductions import stored
from ..shapes import array_split, broadcast_to, concatenate, flip, hstack, moveaxis, stack, swapaxes
from .operands import axes_of, on_device, on_host, ufuncs

__all__ = ["append", "apply_along_axis", "apply_over_axes", "argpartition", "argwhere"]
__all__ += ["atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack", "copyto", "delete"]
__all__ += ["diag", "diagflat", "dsplit", "dstack", "extract", "fftshift", "hsplit", "ifftshift"]
__all__ += ["insert", "meshgrid", "pad", "partition", "place", "putmask", "ravel_multi_index"]
__all__ += ["resize", "rot90", "sliding_window_view", "squeeze", "take_along_axis", "tri"]
__all__ += ["trim_zeros", "unravel_index", "vsplit"]


def _along(a: GPUArray, indices: Any, axis: int) -> GPUArray:
    return a[(*(slice(None),) * axis, indices)]


def take(
    a: Any, indices: Any, axis: int | None = None, out: GPUArray | None = None, mode: str = "raise"
) -> GPUArray:
    """Returns the elements at places along an axis, as :func:`numpy.take`.

    It is the arrays' method ``take``; ``gpuarray.take`` is PyCUDA's function.
    """
    a, axis = along_axis(on_device(a), axis)
    indices = places_of("indices", on_device(indices), a.shape[axis], mode)
    return stored(_along(a, indices, axis), out)


def places_of(name: str, indices: GPUArray, n: int, mode: str) -> GPUArray:
    """Returns the indices; those out of bounds are refused, wrapped or clipped by ``mode``."""
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name} have dtype {indices.dtype}; integers are needed")
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
        _check_places("indices", ends, n)


def squeeze(a: Any, axis: Any = None) -> GPUArray:
    """Returns a view without axes of one element, as :func:`numpy.squeeze`."""
    a = on_device(a)
    axes = axes_of(axis, a.ndim)
    if axis is None:
        axes = tuple(k for k in axes if a.shape[k] == 1)
    for k in axes:
        if a.shape[k] != 1:
            raise ValueError(f"axis {k} has extent {a.shape[k]}; only extent 1 can be removed")
    return a[tuple(0 if k in axes else slice(None) for k in range(a.ndim))]


def flatten(a: GPUArray, order: str = "C") -> GPUArray:
    """Returns a copy of the elements along one axis, as numpy's method."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order is {order!r}; 'C', 'F', 'A' or 'K' is needed")
    is_fortran = a.flags.f_contiguous and not a.flags.c_contiguous
    flat = (a.T if order == "F" or (order in "AK" and is_fortran) else a).ravel()
    return flat.copy() if flat._address == a._address else flat


def append(arr: Any, values: Any, axis: int | None = None) -> GPUArray:
    """Returns an array with values after its elements, as :func:`numpy.append`."""
    arr, values = on_device(arr), on_device(values)
    if axis is None:
        arr, values, axis = arr.ravel(), values.ravel(), 0
    dtype = np.result_type(arr.dtype, values.dtype)
    return concatenate([arr.astype(dtype), values.astype(dtype)], axis)


def diag(v: Any, k: int = 0) -> GPUArray:
    """Returns a diagonal, or a matrix with that diagonal, as :func:`numpy.diag`."""
    v = on_device(v)
    if v.ndim == 2:
        return v.diagonal(k).copy()
    if v.ndim != 1:
        raise ValueError(f"v.ndim is {v.ndim}; 1 or 2 is needed")
    n = v.size + abs(k)
    result = _core.full((n, n), v.dtype, 0)
    flat = result.reshape(-1)
    start = k if k >= 0 else -k * n
    flat[start : start + v.size * (n + 1) : n + 1][: v.size] = v
    return result


def diagflat(v: Any, k: int = 0) -> GPUArray:
    """Returns a matrix with the elements on its diagonal, as :func:`numpy.diagflat`."""
    return diag(on_device(v).ravel(), k)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> GPUArray:
    """Returns ones at and below a diagonal, as :func:`numpy.tri`."""
    return (arange(N).reshape((N, 1)) >= arange(N if M is None else M) - k).astype(dtype)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> GPUArray:
    """Returns the elements without the zeros at the ends of axes, as :func:`numpy.trim_zeros`."""
    filt, trim = on_device(filt), trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim is {trim!r}; 'f', 'b' or both are needed")
    kept = [slice(None)] * filt.ndim
    for k, at in enumerate(nonzero(filt)):
        if k in axes_of(axis, filt.ndim):
            first = int(at.min()) if at.size and "f" in trim else None
            last = int(at.max()) + 1 if at.size and "b" in trim else None
            kept[k] = slice(first, last) if at.size else slice(0)
    return filt[tuple(kept)]


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> GPUArray:
    """Returns an array with elements around it, as :func:`numpy.pad`.

    The modes are ``constant``, ``edge``, ``reflect``, ``symmetric``, ``wrap`` and ``empty``.

    >>> gpuarray.pad(gpuarray.arange(1, 3), 1).get()
    array([0, 1, 2, 0])
    """
    a = on_device(array)
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(k, pad_width.get(k - a.ndim, 0)) for k in range(a.ndim)]
        pad_width = [it if np.ndim(it) else (it, it) for it in pad_width]
    widths = _pairs("pad_width", pad_width, a.ndim)
    if any(operand < 0 for pair in widths for operand in pair):
        raise ValueError(f"pad_width is {pad_width}; it must not be negative")
    if mode not in ("constant", "empty", "edge", "reflect", "symmetric", "wrap"):
        raise TypeError(f"mode is {mode!r}; call it on the host, np.pad(a.get(), ...)")
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0)
        if kwargs:
            raise ValueError(f"mode {mode!r} takes no {', '.join(kwargs)}")
        fills = _pairs("constant_values", on_host(values).tolist(), a.ndim)
        return _constant(a, widths, fills)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            places = np.pad(np.arange(a.shape[axis]), (before, after), mode, **kwargs)  # type: ignore[call-overload]
            if mode in ("reflect", "symmetric") and kwargs.get("reflect_type") == "odd":
                raise TypeError("reflect_type is 'odd'; on the device it is 'even'")
            a = _along(a, on_device(places), axis)
    return a.copy() if a is array else a


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Returns pairs, before and after each axis, from a number, a pair or pairs."""
    try:
        return [tuple(it) for it in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]
    except ValueError:
        raise ValueError(f"{name} is {value}; a number, a pair or {ndim} pairs is needed") from None


def _constant(a: GPUArray, widths: Any, fills: Any) -> GPUArray:
    shape = tuple(n + before + after for n, (before, after) in zip(a.shape, widths))
    result = _core.full(shape, a.dtype, 0)
    inside = tuple(slice(before, before + n) for n, (before, _) in zip(a.shape, widths))
    # numpy fills axis by axis, so that the values of the last one are in the corners.
    for axis, ((before, _), (first, last)) in enumerate(zip(widths, fills)):
        ahead = (slice(None),) * axis
        if first:
            result[(*ahead, slice(0, before))] = first
        if last:
            result[(*ahead, slice(before + a.shape[axis], None))] = last
    result[inside] = a
    return result


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[GPUArray, ...]:
    """Returns the coordinates of a grid, as :func:`numpy.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}; 'xy' or 'ij' is needed")
    count = len(xi)
    parts = [
        on_device(x).reshape(tuple(-1 if k == axis else 1 for k in range(count)))
        for axis, x in enumerate(xi)
    ]
    if indexing == "xy" and count > 1:
        parts = [swapaxes(it, 0, 1) for it in parts]
    if not sparse:
        shape = np.broadcast_shapes(*(it.shape for it in parts))
        parts = [broadcast_to(it, shape) for it in parts]
    return tuple(it.copy() for it in parts) if copy else tuple(parts)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> GPUArray:
    """Returns an array turned in the plane of two axes, as :func:`numpy.rot90`."""
    m = on_device(m)
    first, second = axes_of(tuple(axes), m.ndim)
    if k % 4 == 0:
        return m.view()
    if k % 4 == 2:
        return flip(flip(m, first), second)
    turned = swapaxes(flip(m, second) if k % 4 == 1 else m, first, second)
    return turned if k % 4 == 1 else flip(turned, second)


def fftshift(x: Any, axes: Any = None) -> GPUArray:
    """Returns the elements with the middle ones first, as :func:`numpy.fft.fftshift`."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> GPUArray:
    """Returns the elements before :func:`fftshift`, as :func:`numpy.fft.ifftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, sign: int) -> GPUArray:
    x = on_device(x)
    places = axes_of(axes, x.ndim)
    if not places:
        raise ValueError(f"axes is {axes} for an array of {x.ndim} axes; at least one is needed")
    return shapes.roll(x, [sign * (x.shape[k] // 2) for k in places], places)


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> GPUArray:
    """Returns overlapping parts, as :func:`numpy.lib.stride_tricks.sliding_window_view`.

    >>> gpuarray.sliding_window_view(gpuarray.arange(4), 3).get()
    array([[0, 1, 2],
           [1, 2, 3]])
    """
    x, window = on_device(x), extents("window_shape", window_shape)
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim, None, True)
    if len(axes) != len(window):
        raise ValueError(f"window_shape is {window}; its length must be {len(axes)}")
    kept = list(x.shape)
    for k, extent in zip(axes, window):
        kept[k] -= extent - 1
        if kept[k] < 1:
            raise ValueError(f"window_shape is {window}, larger than the shape {x.shape} of x")
    return shapes.strided_view(x, (*kept, *window), (*x.strides, *(x.strides[k] for k in axes)))


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[GPUArray, ...]:
    """Returns the places along axes of numbered elements, as :func:`numpy.unravel_index`."""
    indices, shape = on_device(indices), extents("shape", shape)
    _check_numbers("indices", indices, int(np.prod(shape, dtype=int)))
    rest, places = indices.astype(np.int64), []
    for extent in shape if order == "F" else shape[::-1]:
        places.append(rest % extent)
        rest = rest // extent
    return tuple(places if order == "F" else places[::-1])


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C"
) -> GPUArray:
    """Returns the numbers of elements from their places, as :func:`numpy.ravel_multi_index`."""
    shape, places = extents("dims", dims), [on_device(it) for it in multi_index]
    modes = [mode] * len(shape) if isinstance(mode, str) else list(mode)
    if not len(shape) == len(places) == len(modes):
        raise ValueError(
            f"multi_index has length {len(places)} and mode {len(modes)}; the length of dims, "
            f"{len(shape)}, is needed"
        )
    number, axes = _core.full((), np.int64, 0), range(len(shape))
    for k in axes if order == "C" else reversed(axes):
        if modes[k] == "raise":
            _check_numbers("multi_index", places[k], shape[k])
        number = number * shape[k] + places_of("multi_index", places[k], shape[k], modes[k])
    return number


def _check_numbers(name: str, indices: GPUArray, n: int) -> None:
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {indices.dtype}; integers are needed")
    wrong = [it for it in (indices.min, indices.max) if indices.size and not 0 <= int(it()) < n]
    if wrong:
        raise ValueError(f"{name} has the element {wrong[0]()}; allowed are 0 to {n - 1}")


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> GPUArray:
    """Returns a function's results for vectors, one call each, as :func:`numpy.apply_along_axis`.

    >>> a = gpuarray.arange(4).reshape(2, 2)
    >>> gpuarray.apply_along_axis(lambda row: row.max(), 1, a).get()
    array([1, 3])
    """
    arr = on_device(arr)
    (axis,) = axes_of(axis, arr.ndim)
    moved = moveaxis(arr, axis, -1)
    places = list(np.ndindex(moved.shape[:-1]))
    if not places:
        raise ValueError(f"arr has shape {arr.shape}, without a vector along axis {axis}")
    found = [on_device(func1d(moved[place], *args, **kwargs)) for place in places]
    made = stack(found).reshape((*moved.shape[:-1], *found[0].shape))
    own = range(found[0].ndim)
    return moveaxis(made, [k - len(own) for k in own], [axis + k for k in own])


def apply_over_axes(func: Any, a: Any, axes: Any) -> GPUArray:
    """Returns a function's result for one axis after another, as :func:`numpy.apply_over_axes`."""
    a = on_device(a)
    for axis in np.atleast_1d(axes).tolist():
        found = func(a, axis)
        a = found if found.ndim == a.ndim else shapes.expand_dims(found, axis)
    return a


def argwhere(a: Any) -> GPUArray:
    """Returns the indices of the elements that are not zero, as :func:`numpy.argwhere`."""
    a = on_device(a)
    if a.ndim == 0:
        return _core.full((int(bool(a.get())), 0), np.int64, 0)
    return stack(nonzero(a), axis=1)


def _at_least(ndim: int, arrays: tuple[Any, ...]) -> Any:
    made = []
    for a in map(on_device, arrays):
        shape = a.shape
        if a.ndim < ndim:
            ahead = 1 if ndim > 1 and a.ndim < 2 else 0
            shape = (1,) * ahead + shape if a.ndim else (1,) * ndim
            shape += (1,) * (ndim - len(shape))
        made.append(a.reshape(shape))
    return made[0] if len(made) == 1 else tuple(made)


def atleast_1d(*arys: Any) -> Any:
    """Returns arrays with at least one axis, as :func:`numpy.atleast_1d`."""
    return _at_least(1, arys)


def atleast_2d(*arys: Any) -> Any:
    """Returns arrays with at least two axes, as :func:`numpy.atleast_2d`."""
    return _at_least(2, arys)


def atleast_3d(*arys: Any) -> Any:
    """Returns arrays with at least three axes, as :func:`numpy.atleast_3d`."""
    return _at_least(3, arys)


def column_stack(tup: Any) -> GPUArray:
    """Returns vectors as the columns of a matrix, as :func:`numpy.column_stack`."""
    arrays = [on_device(it) for it in tup]
    return hstack([it.reshape((-1, 1)) if it.ndim < 2 else it for it in arrays])


def dstack(tup: Any) -> GPUArray:
    """Returns arrays joined along the third axis, as :func:`numpy.dstack`."""
    return concatenate([atleast_3d(it) for it in tup], 2)


def hsplit(ary: Any, indices_or_sections: Any) -> list[GPUArray]:
    """Returns parts side by side, as :func:`numpy.hsplit`."""
    ary = on_device(ary)
    return _split("hsplit", ary, indices_or_sections, 1 if ary.ndim > 1 else 0, 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[GPUArray]:
    """Returns parts above one another, as :func:`numpy.vsplit`."""
    return _split("vsplit", on_device(ary), indices_or_sections, 0, 2)


def dsplit(ary: Any, indices_or_sections: Any) -> list[GPUArray]:
    """Returns parts along the third axis, as :func:`numpy.dsplit`."""
    return _split("dsplit", on_device(ary), indices_or_sections, 2, 3)


def _split(name: str, ary: GPUArray, sections: Any, axis: int, least: int) -> list[GPUArray]:
    if ary.ndim < least:
        raise ValueError(f"ary.ndim is {ary.ndim}; {name} needs at least {least}")
    if np.ndim(sections) == 0 and ary.shape[axis] % sections:
        raise ValueError(f"axis {axis} has extent {ary.shape[axis]}, not {sections} equal parts")
    return array_split(ary, sections, axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> GPUArray:
    """Returns the elements at an index for each place, as :func:`numpy.take_along_axis`.

    >>> a = gpuarray.to_gpu([[3, 1], [2, 4]])
    >>> gpuarray.take_along_axis(a, gpuarray.argsort(a), 1).get()
    array([[1, 3],
           [2, 4]])
    """
    arr, indices = on_device(arr), on_device(indices)
    if indices.dtype.kind not in "iu":
        raise IndexError(f"indices have dtype {indices.dtype}; integers are needed")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"indices.ndim is {indices.ndim}; without an axis it must be 1")
        arr, axis = arr.ravel(), 0
    (axis,) = axes_of(axis, arr.ndim)
    _check_bounds(indices, arr.shape[axis])
    return along(arr, indices, axis)


def along(arr: GPUArray, indices: GPUArray, axis: int) -> GPUArray:
    """Returns the elements at an index for each place; those out of bounds are not refused."""
    if indices.ndim != arr.ndim:
        raise ValueError(f"indices.ndim is {indices.ndim}; arr.ndim is {arr.ndim}")
    places = list(meshgrid(*map(arange, arr.shape), copy=False, sparse=True, indexing="ij"))
    places[axis] = indices
    return arr[tuple(places)]


def delete(arr: Any, obj: Any, axis: int | None = None) -> GPUArray:
    """Returns an array without some of its elements, as :func:`numpy.delete`."""
    arr = on_device(arr)
    if axis is None:
        arr, axis = arr.ravel(), 0
    (axis,) = axes_of(axis, arr.ndim)
    kept = np.delete(np.arange(arr.shape[axis]), _selection(obj))
    return _along(arr, on_device(kept), axis)


def _selection(obj: Any) -> Any:
    return on_host(obj) if isinstance(obj, GPUArray) else obj


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> GPUArray:
    """Returns an array with values put in between, as :func:`numpy.insert`."""
    arr, values, obj = on_device(arr), on_device(values), _selection(obj)
    if axis is None:
        arr, axis = arr.ravel(), 0
    (axis,) = axes_of(axis, arr.ndim)
    n, values = arr.shape[axis], values.astype(arr.dtype)
    if not isinstance(obj, slice) and np.size(obj) and np.asarray(obj).dtype.kind not in "iub":
        raise IndexError(f"obj is {obj}; whole numbers are needed")
    if not isinstance(obj, slice) and np.size(obj) == 1:
        # At one place there may be as many values as they have extents along the axis.
        position = int(np.asarray(obj).reshape(()))
        if not -n <= position <= n:
            raise IndexError(f"obj is {position}; allowed for extent {n} are {-n} to {n}")
        values = values.reshape((*(1,) * (arr.ndim - values.ndim), *values.shape))
        if np.ndim(obj) == 0:
            values = moveaxis(values, 0, axis)
        obj = [position % n if position < 0 else position] * values.shape[axis]
    marked = np.insert(np.arange(n), obj, -1 - np.arange(_number(obj, n)))
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
    result[(*ahead, on_device(new))] = _along(spread, on_device(order), axis)
    return result


def _number(obj: Any, n: int) -> int:
    if isinstance(obj, slice):
        return len(range(*obj.indices(n)))
    obj = np.asarray(obj)
    return int(obj.sum()) if obj.dtype == np.bool_ else obj.size


def resize(a: Any, new_shape: Any) -> GPUArray:
    """Returns an array of another shape, its elements repeated, as :func:`numpy.resize`."""
    a = on_device(a).ravel()
    shape = (new_shape,) if np.ndim(new_shape) == 0 else tuple(new_shape)
    count = int(np.prod(shape, dtype=int))
    if min(shape, default=0) < 0:
        raise ValueError(f"new_shape is {new_shape}; extents must not be negative")
    if a.size == 0 or count == 0:
        return _core.full(shape, a.dtype, 0)
    return a[arange(count) % a.size].reshape(shape)


def block(arrays: Any) -> GPUArray:
    """Returns an array of nested lists of arrays, as :func:`numpy.block`."""

    def depth_of(part: Any) -> int:
        return 1 + max(map(depth_of, part), default=0) if isinstance(part, list) else 0

    def joined(part: Any, level: int) -> GPUArray:
        if isinstance(part, list):
            if not part:
                raise ValueError("arrays has an empty list; each list needs an array")
            parts = [joined(it, level - 1) for it in part]
            dtype = np.result_type(*(it.dtype for it in parts))
            return concatenate([it.astype(dtype) for it in parts], -level)
        if level:
            raise ValueError("arrays has lists of several depths; all need the same")
        a = on_device(part)
        return a.reshape((*(1,) * (ndim - a.ndim), *a.shape))

    def extents(part: Any) -> int:
        return max(map(extents, part), default=0) if isinstance(part, list) else np.ndim(part)

    depth = depth_of(arrays)
    ndim = max(depth, extents(arrays))
    result = joined(arrays, depth)
    return result if depth else result.copy()


def extract(condition: Any, arr: Any) -> GPUArray:
    """Returns the elements where a condition is true, as :func:`numpy.extract`."""
    return compress(on_device(condition).ravel() != 0, on_device(arr).ravel())


def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> GPUArray:
    """Returns the elements sorted along an axis, for a partition as :func:`numpy.partition`."""
    a, axis = _partitioned(a, kth, axis)
    return sort(a, axis)


def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> GPUArray:
    """Returns the order along an axis, for a partition as :func:`numpy.argpartition`."""
    a, axis = _partitioned(a, kth, axis)
    return argsort(a, axis)


def _partitioned(a: Any, kth: Any, axis: int | None) -> tuple[GPUArray, int]:
    a = on_device(a).ravel() if axis is None else on_device(a)
    (axis,) = axes_of(-1 if axis is None else axis, a.ndim)
    _check_places("kth", on_host(kth), a.shape[axis])
    return a, axis


def _check_places(name: str, places: np.ndarray[Any, Any], n: int) -> None:
    if places.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {places.dtype}; integers are needed")
    outside = places[(places < -n) | (places >= n)]
    if outside.size:
        raise IndexError(f"{name} is {outside[0]}; allowed for extent {n} are {-n} to {n - 1}")


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
    """Stores values where a mask is true, each at its own place, as :func:`numpy.putmask`."""
    mask = on_device(mask)
    if mask.size != a.size:
        raise ValueError(f"mask.size is {mask.size}; a.size is {a.size}")
    values = _cast("values", values, a)
    values = resize(values, a.shape).astype(a.dtype) if values.size else a
    a[...] = _core.select(mask.reshape(a.shape) != 0, values, a, False)


def _cast(name: str, values: Any, a: GPUArray) -> GPUArray:
    """Returns the values in the dtype of an array, into which arrays have to fit."""
    if not isinstance(values, GPUArray | np.ndarray):
        return on_device(np.asarray(values, a.dtype))
    if not np.can_cast(values.dtype, a.dtype, "safe"):
        raise TypeError(f"{name} has dtype {values.dtype}, which does not fit {a.dtype}")
    return on_device(values)


def place(arr: GPUArray, mask: Any, vals: Any) -> None:
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
