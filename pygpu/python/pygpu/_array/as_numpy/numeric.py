"""Rounding, bounds and comparisons; interpolation, differences, convolution; choices."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ... import _core
from ..._arguments import gpu_array, has_fractions, normalize_axis_index, stored, whole
from ..._core import GPUArray, stack
from .. import Array, Arrays, Axis, Operand, Out, Unset
from ..creation import arange
from ..reductions import UNSET, cumsum
from ..shapes import broadcast_arrays, broadcast_to, concatenate, flip
from .operands import axes_of, inexact, on_device, on_host, ufuncs
from .order import argsort, searchsorted
from .selection import along as elements_along
from .selection import places_of


def clip(
    a: Array,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
    out: Out = None,
    *,
    min: Operand | None = None,
    max: Operand | None = None,
) -> GPUArray:
    """Limits the elements to an interval, as :func:`numpy.clip`; ``out`` may be `a` itself."""
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ValueError("a bound is given twice; use either a_min and a_max or min and max")
    low: Any = a_min if min is None else min
    high: Any = a_max if max is None else max
    a = on_device(a) if isinstance(a, list | tuple | range) else gpu_array("a", a)
    if a.dtype.kind in "iu":
        # Integers that no element can reach bound nothing.
        limits = np.iinfo(a.dtype)
        low = None if type(low) is int and low < limits.min else low
        high = None if type(high) is int and high > limits.max else high
    if low is None and high is None:
        return ufuncs["positive"](a, out=out)
    if low is None:
        return ufuncs["minimum"](a, high, out=out)
    if high is None:
        return ufuncs["maximum"](a, low, out=out)
    return ufuncs["minimum"](ufuncs["maximum"](a, low), high, out=out)


def round(a: GPUArray, decimals: int = 0, out: Out = None) -> GPUArray:
    """Rounds the elements, halves to even, as :func:`numpy.round`; the dtype stays the same."""
    return gpu_array("a", a).round(decimals, out)


def nan_to_num(
    x: GPUArray,
    copy: bool = True,
    nan: Array = 0.0,
    posinf: Array | None = None,
    neginf: Array | None = None,
) -> GPUArray:
    """Replaces NaN and infinities by finite numbers, as :func:`numpy.nan_to_num`."""
    result = gpu_array("x", x).copy() if copy else x
    if not has_fractions(x.dtype):
        return result
    given: tuple[Any, ...] = nan, posinf, neginf
    if x.dtype.kind == "c" and any(map(np.ndim, given)):
        raise TypeError(f"x has dtype {x.dtype}; its replacements must be numbers, not arrays")
    numbers = result[..., None]
    if x.dtype.kind == "c":
        # The real and imaginary parts alternate.
        numbers = numbers.view(np.empty(0, x.dtype).real.dtype)
    scalar = numbers.dtype.type
    # numpy does not know the limits of another package's dtypes.
    package = sys.modules[scalar.__module__] if numbers.dtype.kind == "V" else np
    most = package.finfo(scalar).max
    # Found before one is replaced by another.
    dtype = numbers.dtype
    nan, high, low = (on_device(it).astype(dtype)[..., None] if np.ndim(it) else it for it in given)
    replaced = (
        (ufuncs["isnan"](numbers), nan),
        (numbers == np.inf, most if high is None else high),
        (numbers == -np.inf, -most if low is None else low),
    )
    for where, value in replaced:
        value = value if isinstance(value, GPUArray) else scalar(value)
        _core.select(where, value, numbers, False, numbers)
    return result


def isclose(
    a: Array, b: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> GPUArray:
    """Returns True where elements are equal within a tolerance, as :func:`numpy.isclose`."""
    if not isinstance(a, GPUArray) and not isinstance(b, GPUArray):
        gpu_array("a", a)
    if isinstance(b, int):
        b = float(b)
    elif not isinstance(b, float | complex):
        b = on_device(b)
        b = b if has_fractions(b.dtype) else b.astype(np.float64)
    x: Any = a.astype(np.float64) if isinstance(a, GPUArray) and a.dtype.kind == "b" else a
    size: Any = abs(b)
    close = abs(x - b) <= size * rtol + atol
    # An infinity is close to itself only.
    if isinstance(b, GPUArray):
        close &= ufuncs["isfinite"](b)
    elif not np.isfinite(b):
        close = close & False
    close |= x == b
    if equal_nan:
        close |= ufuncs["logical_and"](x != x, b != b)
    return close


def allclose(
    a: Array, b: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Returns True if all elements are equal within a tolerance, as :func:`numpy.allclose`."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equiv(a1: Array, a2: Array) -> bool:
    """Returns True if the arrays broadcast to equal elements, as :func:`numpy.array_equiv`."""
    a1, a2 = on_device(a1), on_device(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return bool((a1 == a2).all())


def array_equal(a1: Array, a2: Array, equal_nan: bool = False) -> bool:
    """Returns True if shapes and elements are the same, as :func:`numpy.array_equal`."""
    a1, a2 = on_device(a1), on_device(a2)
    if a1.shape != a2.shape:
        return False
    equal = a1 == a2
    if equal_nan:
        equal |= ufuncs["logical_and"](a1 != a1, a2 != a2)
    return bool(equal.all())


def diff(
    a: GPUArray,
    n: int = 1,
    axis: int = -1,
    prepend: Array | Unset = UNSET,
    append: Array | Unset = UNSET,
) -> GPUArray:
    """Returns the differences of neighbours along an axis, as :func:`numpy.diff`."""
    if whole("n", n) < 0:
        raise ValueError(f"n is {n}; order must be non-negative")
    if n == 0:
        return gpu_array("a", a)
    if gpu_array("a", a).ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional; a has no axes")
    axis = normalize_axis_index(axis, a.ndim)
    before = (slice(None),) * axis
    ends = [it if it is UNSET else on_device(it) for it in (prepend, append)]
    parts = [it for it in (ends[0], a, ends[1]) if it is not UNSET]
    if len(parts) > 1:
        beside = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        a = concatenate([it if it.ndim else broadcast_to(it, beside) for it in parts], axis)
    differ = ufuncs["not_equal" if a.dtype == np.bool_ else "subtract"]
    # Nothing is left after as many steps as there are elements.
    for _ in range(min(n, a.shape[axis])):
        a = differ(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


def interp(
    x: Array,
    xp: Array,
    fp: Array,
    left: Array | None = None,
    right: Array | None = None,
    period: float | None = None,
) -> GPUArray:
    """Returns values between points, along straight lines, as :func:`numpy.interp`."""
    x, xp, fp = map(on_device, (x, xp, fp))
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError(f"x has dtype {x.dtype} and xp {xp.dtype}; real numbers are needed")
    x, xp = x.astype(np.float64), xp.astype(np.float64)
    if fp.dtype.kind == "c":
        result = _core.full(x.shape, np.complex128, 0)
        parts = result.reshape(-1).view(np.float64)
        for k, part in enumerate(("real", "imag")):
            first, last = (it if it is None else getattr(on_host(it), part) for it in (left, right))
            parts[k::2] = interp(x, xp, getattr(fp, part), first, last, period).ravel()
        return result
    fp = fp.astype(np.float64)
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        shapes = f"{xp.shape} and {fp.shape}"
        raise ValueError(f"xp and fp have shapes {shapes}; they must be the same")
    if period is not None:
        if period == 0:
            raise ValueError("period is 0; it must be a non-zero value")
        period, left, right = abs(period), None, None
        x, xp = ufuncs["remainder"](x, period), ufuncs["remainder"](xp, period)
        order = argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    n = xp.size
    at = ufuncs["minimum"](ufuncs["maximum"](searchsorted(xp, x, "right") - 1, 0), max(n - 2, 0))
    after = ufuncs["minimum"](at + 1, n - 1)
    x0, y0, x1, y1 = xp[at], fp[at], xp[after], fp[after]
    slope = (y1 - y0) / (x1 - x0)
    result = slope * (x - x0) + y0
    # An infinity at one end may have a value from the other end only.
    result = _core.select(ufuncs["isnan"](result), slope * (x - x1) + y1, result, False)
    is_level = ufuncs["isnan"](result) & (y0 == y1)
    result = _core.select(is_level | (x == x0), y0, result, False)
    result = _core.select(x == x1, y1, result, False)
    first = fp[:1] if left is None else on_device(np.asarray([left], fp.dtype))
    last = fp[-1:] if right is None else on_device(np.asarray([right], fp.dtype))
    result = _core.select(x < xp[:1], broadcast_to(first, (1,)), result, False)
    result = _core.select(x > xp[-1:], last, result, False)
    result = _core.select(x == xp[-1:], fp[-1:], result, False)
    nan = fp.dtype.type(np.nan) if n > 1 else fp[:1]
    return _core.select(ufuncs["isnan"](x), nan, result, False).reshape(x.shape)


@overload
def gradient(f: Array, *varargs: Array, axis: int, edge_order: int = ...) -> GPUArray: ...
@overload
def gradient(f: Array, *varargs: Array, axis: Axis = ..., edge_order: int = ...) -> Any: ...
def gradient(f: Array, *varargs: Array, axis: Axis = None, edge_order: int = 1) -> Any:
    """Returns the gradient by central differences along axes, as :func:`numpy.gradient`."""
    f = inexact(on_device(f))
    axes = axes_of(axis, f.ndim)
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 and not np.ndim(steps[0]) else steps
    if len(steps) != len(axes):
        raise TypeError(f"{len(steps)} of {len(axes)} distances are given; one or all are needed")
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order is {edge_order}; 1 or 2 is needed")
    # Python's numbers do not widen the elements.
    steps = [it if np.isscalar(it) else on_host(it) for it in steps]
    results = [_slope(f, it, step, edge_order) for it, step in zip(axes, steps)]
    return results[0] if len(results) == 1 else tuple(results)


def _slope(f: GPUArray, axis: int, steps: Any, edge_order: int) -> GPUArray:
    """Returns the differences along an axis, from the distance or coordinates of elements."""
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"axis {axis} has extent {n}; at least {edge_order + 1} is needed")
    h = steps
    if np.ndim(steps):
        if steps.shape != (n,):
            raise ValueError(f"the coordinates have shape {steps.shape}; axis {axis} has {n}")
        # Differences of unsigned integers would wrap.
        h = np.diff(steps.astype(np.float64) if steps.dtype.kind in "biu" else steps)
        h = h[0] if (h == h[0]).all() else h
    is_even = np.ndim(h) == 0
    ends = (h, h, h, h) if is_even else (h[0], h[min(1, n - 2)], h[-min(2, n - 1)], h[-1])

    def at(*bounds: Any) -> GPUArray:
        return f[(*(slice(None),) * axis, slice(*bounds))]

    def weighted(factors: Any, parts: Any) -> GPUArray:
        first, *others = (p * (w if np.isscalar(w) else along(w)) for w, p in zip(factors, parts))
        for it in others:
            first = first + it
        return first.astype(f.dtype)

    def along(w: Any) -> GPUArray:
        return on_device(w.reshape(tuple(-1 if k == axis else 1 for k in range(f.ndim))))

    def at_end(one: Any, two: Any) -> Any:
        """Returns weights of three points for a parabola's slope at the first, or the last."""
        if is_even:
            return -1.5 / h, 2.0 / h, -0.5 / h
        both = one + two
        return -(2 * one + two) / (one * both), both / (one * two), -one / (two * both)

    three = lambda k: (at(k, k + 1), at(k + 1, k + 2), at(k + 2, k + 3))  # noqa: E731
    if is_even:
        inside = ((at(2, None) - at(None, -2)) / (2.0 * h)).astype(f.dtype)
    else:
        one, two = h[:-1], h[1:]
        both = one + two
        factors = (-two / (one * both), (two - one) / (one * two), one / (two * both))
        inside = weighted(factors, (at(None, -2), at(1, -1), at(2, None)))
    if edge_order == 1:
        first = ((at(1, 2) - at(0, 1)) / ends[0]).astype(f.dtype)
        last = ((at(n - 1, n) - at(n - 2, n - 1)) / ends[-1]).astype(f.dtype)
    else:
        first = weighted(at_end(*ends[:2]), three(0))
        last = weighted([-it for it in at_end(*ends[:1:-1])[::-1]], three(n - 3))
    return concatenate([first, inside, last], axis)


def ediff1d(ary: Array, to_end: Array | None = None, to_begin: Array | None = None) -> GPUArray:
    """Returns the differences of neighbours, as :func:`numpy.ediff1d`."""
    flat = on_device(ary).ravel()
    parts = (to_begin, flat[1:] - flat[:-1], to_end)
    given = [on_device(it).ravel() for it in parts if it is not None]
    return concatenate(given, dtype=flat.dtype) if len(given) > 1 else given[0]


def trapezoid(y: Array, x: Array | None = None, dx: Array = 1.0, axis: int = -1) -> GPUArray:
    """Returns integrals by the trapezoidal rule, as :func:`numpy.trapezoid`."""
    y = on_device(y)
    (axis,) = axes_of(axis, y.ndim)
    at = lambda a, *bounds: a[(*(slice(None),) * axis, slice(*bounds))]  # noqa: E731
    if x is None:
        return (dx * (at(y, 1, None) + at(y, None, -1)) / 2.0).sum(axis=axis)
    x = on_device(x)
    if x.ndim == 1:
        x = x.reshape(tuple(-1 if k == axis else 1 for k in range(y.ndim)))
    width = np.diff(x, axis=axis if x.ndim == y.ndim else -1)
    return (width * (at(y, 1, None) + at(y, None, -1)) / 2.0).sum(axis=axis)


def convolve(a: Array, v: Array, mode: str = "full") -> GPUArray:
    """Returns the convolution of two vectors, as :func:`numpy.convolve`."""
    a, v = on_device(a), on_device(v)
    if v.size > a.size:
        a, v = v, a
    return _slid(a, v, mode)


def correlate(a: Array, v: Array, mode: str = "valid") -> GPUArray:
    """Returns the cross-correlation of two vectors, as :func:`numpy.correlate`."""
    a, v = on_device(a), on_device(v)
    if not a.ndim or not v.ndim:
        raise ValueError("an array has no axes; both need one")
    if v.size > a.size:
        return flip(_slid(v.conj(), flip(a), mode)).copy("C") if v.size else _slid(a, v, mode)
    return _slid(a, flip(v).conj(), mode)


def _slid(a: GPUArray, v: GPUArray, mode: str) -> GPUArray:
    """Returns sums of products of the shorter vector, reversed, with slices of the longer one."""
    if a.ndim > 1 or v.ndim > 1:
        raise ValueError(f"a.ndim is {a.ndim} and v.ndim {v.ndim}; vectors are needed")
    a, v = a.reshape(-1), v.reshape(-1)
    if not a.size or not v.size:
        raise ValueError("an array is empty; both need elements")
    cut = {"full": 0, "same": (v.size - 1) // 2, "valid": v.size - 1}
    if mode not in cut:
        raise ValueError(f"mode is {mode!r}; 'full', 'same' or 'valid' is needed")
    start, dtype = cut[mode], np.result_type(a.dtype, v.dtype)
    count = a.size if mode == "same" else a.size + v.size - 1 - 2 * start
    a, v, result = a.astype(dtype), v.astype(dtype), _core.full((count,), dtype, 0)
    join, combine = ("logical_or", "logical_and") if dtype == np.bool_ else ("add", "multiply")
    for k in range(v.size):
        # Nothing is beyond the ends: zeros would have NaN as products with infinities.
        low, high = max(start, k), min(start + count, k + a.size)
        part = result[low - start : high - start]
        ufuncs[join](part, ufuncs[combine](a[low - k : high - k], v[k]), out=part)
    return result


def polyval(p: Array, x: Array) -> GPUArray:
    """Returns the values of a polynomial, the highest power first, as :func:`numpy.polyval`."""
    p, x = on_device(p), on_device(x)
    y = _core.full(x.shape, x.dtype, 0)
    for k in range(p.size):
        y = y * x + p[k]
    return y


def angle(z: Array, deg: bool = False) -> GPUArray:
    """Returns the angles of complex numbers, as :func:`numpy.angle`."""
    z = on_device(z)
    parts = (z.imag, z.real) if z.dtype.kind == "c" else (0, z)
    radians = ufuncs["arctan2"](*parts)
    return ufuncs["rad2deg"](radians) if deg else radians


def sinc(x: Array) -> GPUArray:
    """Returns sin(pi x) / (pi x), as :func:`numpy.sinc`."""
    x = inexact(on_device(x))
    y = x * x.dtype.type(np.pi)
    least = np.finfo(x.dtype).eps if x.dtype.kind == "f" else x.dtype.type(1e-20)
    y = _core.select(x == 0, least, y, False)
    return ufuncs["sin"](y) / y


def fix(x: Array, out: Out = None) -> GPUArray:
    """Returns the elements rounded towards zero, as :func:`numpy.fix`."""
    return stored(ufuncs["trunc"](on_device(x)), out)


def select(condlist: Sequence[Array], choicelist: Sequence[Array], default: Array = 0) -> GPUArray:
    """Selects each element by the first true condition, as :func:`numpy.select`."""
    if len(condlist) != len(choicelist) or not len(condlist):
        counts = f"{len(condlist)} conditions and {len(choicelist)} choices"
        raise ValueError(f"{counts}; their lengths must be the same")
    conditions = [on_device(it) for it in condlist]
    for it in conditions:
        if it.dtype != np.bool_:
            raise TypeError(f"a condition has dtype {it.dtype}; truth values are needed")
    choices = [it if np.isscalar(it) else on_device(it) for it in (*choicelist, default)]
    dtype = np.result_type(*(it.dtype if isinstance(it, GPUArray) else it for it in choices))
    shape = np.broadcast_shapes(*(np.shape(it) for it in (*conditions, *choices)))
    last = choices[-1]
    result = broadcast_to(last.astype(dtype), shape) if isinstance(last, GPUArray) else None
    result = _core.full(shape, dtype, last) if result is None else result
    for condition, choice in zip(reversed(conditions), reversed(choices[:-1])):
        value = choice.astype(dtype) if isinstance(choice, GPUArray) else dtype.type(choice)
        result = _core.select(condition, value, result, False)
    return result


def piecewise(
    x: Array, condlist: Array, funclist: Sequence[Any], *args: Any, **kw: Any
) -> GPUArray:
    """Computes each element by the function of its condition, as :func:`numpy.piecewise`."""
    x = on_device(x)
    given: Any = condlist
    if isinstance(given, GPUArray | np.ndarray):
        is_one = given.ndim <= x.ndim
    else:
        arrays = list | np.ndarray | GPUArray
        is_one = np.isscalar(given) or not any(isinstance(it, arrays) for it in given)
    conditions = [on_device(it).astype(np.bool_) for it in ([given] if is_one else given)]
    if len(funclist) == len(conditions) + 1:
        conditions.append(ufuncs["logical_not"](stack(conditions).any(axis=0)))
    if len(funclist) != len(conditions):
        lengths = f"condlist has length {len(conditions)} and funclist {len(funclist)}"
        raise ValueError(f"{lengths}; allowed for funclist are the same length and one more")
    result = _core.new_like(x).fill(0)
    for condition, function in zip(conditions, funclist):
        if not callable(function):
            result[condition] = function
        elif (chosen := x[condition]).size:
            result[condition] = function(chosen, *args, **kw)
    return result


def choose(a: Array, choices: Arrays, out: Out = None, mode: str = "raise") -> GPUArray:
    """Selects each element from the array with a given index, as :func:`numpy.choose`."""
    dtype = np.result_type(*(it if np.isscalar(it) else on_device(it).dtype for it in choices))
    values = [on_device(it) for it in choices]
    a = on_device(a)
    places, *values = broadcast_arrays(a, *(it.astype(dtype) for it in values))
    if mode == "raise" and places.size:
        least, most = int(places.min()), int(places.max())
        if least < 0 or most >= len(values):
            wrong = least if least < 0 else most
            raise ValueError(f"a has the element {wrong}; allowed are 0 to {len(values) - 1}")
    places = places_of("elements of a", places, len(values), mode)
    return stored(elements_along(stack(values), places[None], 0)[0].copy(), out)


def vander(x: Array, N: int | None = None, increasing: bool = False) -> GPUArray:
    """Returns a matrix of powers, the highest first, as :func:`numpy.vander`."""
    x = on_device(x)
    if x.ndim != 1:
        raise ValueError(f"x has {x.ndim} axes; one is needed")
    count = x.size if N is None else operator.index(N)
    if count < 0:
        raise ValueError(f"N is {count}; it must not be negative")
    powers = arange(count)
    x = x.astype(np.promote_types(x.dtype, np.int64))
    return x[:, None] ** (powers if increasing else flip(powers))


def unwrap(
    p: Array, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> GPUArray:
    """Returns phases without jumps by whole periods, as :func:`numpy.unwrap`."""
    p = on_device(p)
    (axis,) = axes_of(axis, p.ndim)
    steps: Any = np.diff(p, axis=axis)
    dtype = np.result_type(steps.dtype, period)
    half, odd = divmod(period, 2) if dtype.kind in "iu" else (period / 2, 0)
    rest = ufuncs["remainder"](steps + half, period) - half
    if not odd:
        # Half a period is a step in its own direction.
        rest = _core.select((rest == -half) & (steps > 0), half, rest, False)
    is_small = ufuncs["absolute"](steps) < (period / 2 if discont is None else discont)
    up = p.astype(dtype) if p.dtype != dtype else p.copy()
    later = (*(slice(None),) * axis, slice(1, None))
    up[later] = p[later] + cumsum(_core.select(is_small, 0, rest - steps, False), axis)
    return up
