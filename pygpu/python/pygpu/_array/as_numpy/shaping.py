"""Functions that join, pad, repeat and split arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

import numpy as np

from ... import _core
from ..._arguments import extents, normalize_axis_tuple
from ..._core import GPUArray, stack
from ..._documentation import member, named
from .. import Array, Arrays, Axes, Axis, DType, Order, Sections, Shape, shapes
from ..advanced_indexing import nonzero
from ..creation import arange, linspace
from ..shapes import array_split, broadcast_to, concatenate, flip, hstack, moveaxis, swapaxes
from .operands import axes_of, on_device, on_host

__all__ = ["append", "apply_along_axis", "apply_over_axes", "atleast_1d", "atleast_2d"]
__all__ += ["atleast_3d", "block", "column_stack", "diag", "diagflat", "dsplit", "dstack"]
__all__ += ["fftshift", "hsplit", "ifftshift", "meshgrid", "pad", "resize", "rot90"]
__all__ += ["sliding_window_view", "squeeze", "tri", "trim_zeros", "vsplit"]


def elements_at(a: GPUArray, indices: Any, axis: int) -> GPUArray:
    if isinstance(indices, GPUArray) and indices.dtype != np.bool_:
        # In C order, unlike the results of an index, for which numpy has another rule.
        return _core.take(a, indices, axis=axis)
    return a[(*(slice(None),) * axis, indices)]


def squeeze(a: Array, axis: Axis = None) -> GPUArray:
    """Returns a view without axes of one element, as :func:`numpy.squeeze`."""
    a = on_device(a)
    if a.ndim == 0 and axis in (0, -1):
        return a.view()
    axes = axes_of(axis, a.ndim)
    if axis is None:
        axes = tuple(k for k in axes if a.shape[k] == 1)
    for k in axes:
        if a.shape[k] != 1:
            raise ValueError(f"axis {k} has extent {a.shape[k]}; only extent 1 can be removed")
    return a[tuple(0 if k in axes else slice(None) for k in range(a.ndim))]


def flatten(a: GPUArray, order: Order = "C") -> GPUArray:
    """Returns a copy of the elements along one axis, as numpy's method."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order is {order!r}; 'C', 'F', 'A' or 'K' is needed")
    flat = a.ravel(order)
    return flat.copy() if flat._address == a._address else flat


def append(arr: Array, values: Array, axis: int | None = None) -> GPUArray:
    """Returns a copy with values appended, as :func:`numpy.append`."""
    arr, values = on_device(arr), on_device(values)
    if axis is None:
        arr, values, axis = arr.ravel(), values.ravel(), 0
    return concatenate([arr, values], axis)


def diag(v: Array, k: int = 0) -> GPUArray:
    """Returns a diagonal, or a matrix with that diagonal, as :func:`numpy.diag`."""
    v = on_device(v)
    if v.ndim == 2:
        return v.diagonal(k).copy()
    if v.ndim != 1:
        raise ValueError(f"v.ndim is {v.ndim}; 1 or 2 is needed")
    n = v.size + abs(k)
    result = _core.full((n, n), v.dtype, 0)
    result.diagonal(k)[...] = v
    return result


def diagflat(v: Array, k: int = 0) -> GPUArray:
    """Returns a matrix with the elements on its diagonal, as :func:`numpy.diagflat`."""
    return diag(on_device(v).ravel(), k)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DType = float) -> GPUArray:
    """Returns a matrix with ones at and below a diagonal, as :func:`numpy.tri`."""
    return (arange(N).reshape((N, 1)) >= arange(N if M is None else M) - k).astype(np.dtype(dtype))


def trim_zeros(filt: Array, trim: str = "fb", axis: Axis = None) -> GPUArray:
    """Returns the elements without the zeros at the ends of axes, as :func:`numpy.trim_zeros`."""
    filt, trim = on_device(filt), trim.lower()
    if not filt.ndim:
        return filt
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim is {trim!r}; 'f', 'b' or both are needed")
    kept = [slice(None)] * filt.ndim
    for k, at in enumerate(nonzero(filt)):
        if k in axes_of(axis, filt.ndim):
            first = int(at.min()) if at.size and "f" in trim else None
            last = int(at.max()) + 1 if at.size and "b" in trim else None
            kept[k] = slice(first, last) if at.size else slice(0)
    return filt[tuple(kept)]


def pad(array: Array, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> GPUArray:
    """Returns an array padded at the ends of its axes, as :func:`numpy.pad`.

    ``mode`` must be a name, and ``reflect_type`` must be ``"even"``.
    """
    a = on_device(array)
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(k, pad_width.get(k - a.ndim, 0)) for k in range(a.ndim)]
        pad_width = [it if np.ndim(it) else (it, it) for it in pad_width]
    widths = _pairs("pad_width", pad_width, a.ndim)
    if callable(mode):
        raise TypeError(f"mode is {mode!r}; call it on the host, np.pad(a.get(), ...)")
    kwargs = {name: on_host(it).tolist() for name, it in kwargs.items()}
    if a.ndim:
        # numpy checks the arguments.
        one: Any = np.zeros([min(n, 1) for n in a.shape])
        np.pad(one, np.minimum(widths, 1), mode, **kwargs)
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0)
        return _constant(a, widths, _pairs("constant_values", values, a.ndim))
    if mode in ("linear_ramp", "maximum", "mean", "median", "minimum"):
        (option,) = kwargs.values() or (0 if mode == "linear_ramp" else None,)
        options = _pairs("kwargs", option, a.ndim)
        for axis, sides in enumerate(zip(widths, options)):
            first, last = (_side(a, axis, mode, *it) for it in zip(*sides, (1, -1)))
            a = concatenate([first, a, last], axis)
        return a
    for axis, (before, after) in enumerate(widths):
        if before or after:
            places = np.pad(np.arange(a.shape[axis]), (before, after), mode, **kwargs)  # type: ignore[call-overload]
            if mode in ("reflect", "symmetric") and kwargs.get("reflect_type") == "odd":
                raise TypeError("reflect_type is 'odd'; the device supports only 'even'")
            a = elements_at(a, on_device(places), axis)
    return a.copy() if a is array else a


def _side(a: GPUArray, axis: int, mode: str, width: int, option: Any, step: int) -> GPUArray:
    """Returns a ramp to the start (``step`` 1) or end (-1) of an axis, or a statistic there."""
    a = elements_at(a, slice(None, None, step), axis)
    if mode == "linear_ramp":
        edge = elements_at(a, 0, axis)
        made = linspace(option, edge, width, False, dtype=a.dtype, axis=axis)
        return elements_at(made, slice(None, None, step), axis)
    statistic = getattr(np, {"maximum": "max", "minimum": "min"}.get(mode, mode))
    made = statistic(elements_at(a, slice(option), axis), axis=axis, keepdims=True)
    made = (np.rint(made) if a.dtype.kind in "iu" else made).astype(a.dtype)
    return broadcast_to(made, (*a.shape[:axis], width, *a.shape[axis + 1 :]))


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Returns the values before and after each axis, from a number, a pair or pairs."""
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
    *xi: Array, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[GPUArray, ...]:
    """Returns coordinate arrays of a grid, as :func:`numpy.meshgrid`."""
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


def rot90(m: Array, k: int = 1, axes: Sequence[int] = (0, 1)) -> GPUArray:
    """Returns an array rotated in the plane of two axes, as :func:`numpy.rot90`."""
    m = on_device(m)
    first, second = axes_of(tuple(axes), m.ndim)
    if k % 4 == 0:
        return m.view()
    if k % 4 == 2:
        return flip(flip(m, first), second)
    turned = swapaxes(flip(m, second) if k % 4 == 1 else m, first, second)
    return turned if k % 4 == 1 else flip(turned, second)


def _shifted(sign: int, x: Array, axes: Axis = None) -> GPUArray:
    x = on_device(x)
    places = axes_of(axes, x.ndim)
    if not places:
        raise ValueError(f"axes is {axes} for an array of {x.ndim} axes; at least one is needed")
    return shapes.roll(x, [sign * (x.shape[k] // 2) for k in places], places)


_FFTSHIFT = "Returns the elements with the middle ones first, as :func:`numpy.fft.fftshift`."
fftshift = member(_shifted, 1, "fftshift", _FFTSHIFT)
_IFFTSHIFT = "Returns the elements before :func:`fftshift`, as :func:`numpy.fft.ifftshift`."
ifftshift = member(_shifted, -1, "ifftshift", _IFFTSHIFT)


def sliding_window_view(x: Array, window_shape: Shape, axis: Axis = None) -> GPUArray:
    """Returns a view of windows, as :func:`numpy.lib.stride_tricks.sliding_window_view`."""
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


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Array, *args: Any, **kwargs: Any
) -> GPUArray:
    """Calls a function for each vector along an axis, as :func:`numpy.apply_along_axis`."""
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


def apply_over_axes(func: Callable[..., Any], a: Array, axes: Axes) -> GPUArray:
    """Applies a function along one axis after another, as :func:`numpy.apply_over_axes`."""
    a = on_device(a)
    for axis in np.atleast_1d(axes).tolist():
        found = func(a, axis)
        a = found if found.ndim == a.ndim else shapes.expand_dims(found, axis)
    return a


class _AtLeast(Protocol):
    @overload
    def __call__(self, ary: Array, /) -> GPUArray: ...
    @overload
    def __call__(self, *arys: Array) -> tuple[GPUArray, ...]: ...


def _at_least(ndim: int, axes: str) -> _AtLeast:
    def reshaped(*arys: Array) -> Any:
        made = []
        for a in map(on_device, arys):
            shape = a.shape
            if a.ndim < ndim:
                ahead = 1 if ndim > 1 and a.ndim < 2 else 0
                shape = (1,) * ahead + shape if a.ndim else (1,) * ndim
                shape += (1,) * (ndim - len(shape))
            made.append(a.reshape(shape))
        return made[0] if len(made) == 1 else tuple(made)

    name = f"atleast_{ndim}d"
    text = f"Returns arrays with at least {axes}, as :func:`numpy.{name}`."
    return named(reshaped, name, text)


atleast_1d = _at_least(1, "one axis")
atleast_2d = _at_least(2, "two axes")
atleast_3d = _at_least(3, "three axes")


def column_stack(tup: Arrays) -> GPUArray:
    """Joins vectors as the columns of a matrix, as :func:`numpy.column_stack`."""
    arrays = [on_device(it) for it in tup]
    return hstack([it.reshape((-1, 1)) if it.ndim < 2 else it for it in arrays])


def dstack(tup: Arrays) -> GPUArray:
    """Joins arrays along the third axis, as :func:`numpy.dstack`."""
    return concatenate([atleast_3d(it) for it in tup], 2)


def _split(of: tuple[str, int, int], ary: Array, indices_or_sections: Sections) -> list[GPUArray]:
    (name, axis, least), ary = of, on_device(ary)
    sections: Any = indices_or_sections
    if ary.ndim < least:
        raise ValueError(f"ary.ndim is {ary.ndim}; {name} needs at least {least}")
    axis = min(axis, ary.ndim - 1)
    if np.ndim(sections) == 0 and ary.shape[axis] % sections:
        raise ValueError(f"axis {axis} has extent {ary.shape[axis]}, not {sections} equal parts")
    return array_split(ary, sections, axis)


_SPLIT = "Returns parts {}, as :func:`numpy.{}`."
hsplit = member(_split, ("hsplit", 1, 1), "hsplit", _SPLIT.format("side by side", "hsplit"))
vsplit = member(_split, ("vsplit", 0, 2), "vsplit", _SPLIT.format("above one another", "vsplit"))
dsplit = member(_split, ("dsplit", 2, 3), "dsplit", _SPLIT.format("along the third axis", "dsplit"))


def resize(a: Array, new_shape: Shape) -> GPUArray:
    """Returns an array of another shape with elements repeated, as :func:`numpy.resize`."""
    a = on_device(a).ravel()
    shape = extents("new_shape", new_shape)
    count = int(np.prod(shape, dtype=int))
    if a.size == 0 or count == 0:
        return _core.full(shape, a.dtype, 0)
    return a[arange(count) % a.size].reshape(shape)


def block(arrays: Any) -> GPUArray:
    """Joins nested lists of arrays into one array, as :func:`numpy.block`."""

    def depth_of(part: Any) -> int:
        return 1 + max(map(depth_of, part), default=0) if isinstance(part, list) else 0

    def joined(part: Any, level: int) -> GPUArray:
        if isinstance(part, list):
            if not part:
                raise ValueError("arrays has an empty list; each list needs an array")
            return concatenate([joined(it, level - 1) for it in part], -level)
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
