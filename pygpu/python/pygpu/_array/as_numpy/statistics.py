"""Statistics: averages, quantiles, and reductions without NaN."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from ... import _core
from ..._arguments import stored
from ..._core import GPUArray, stack
from ..._documentation import member
from .. import Array, Axis, DType, Initial, Mask, Operand, Out, Unset, reductions
from ..reductions import UNSET, degrees_of, fit_mask, mask_of
from ..reductions import mean as mean_of
from ..shapes import broadcast_to, concatenate, vstack
from .operands import axes_of, inexact, is_nan, last_axis, on_device, on_host, ufuncs, with_axes
from .order import sort
from .selection import along


@overload
def average(
    a: Array,
    axis: Axis = ...,
    weights: Array | None = ...,
    returned: Literal[False] = ...,
    *,
    keepdims: bool = ...,
) -> GPUArray: ...
@overload
def average(
    a: Array,
    axis: Axis = ...,
    weights: Array | None = ...,
    *,
    returned: Literal[True],
    keepdims: bool = ...,
) -> tuple[GPUArray, GPUArray]: ...
def average(
    a: Array,
    axis: Axis = None,
    weights: Array | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Returns weighted averages, as :func:`numpy.average`.

    Raises ``ZeroDivisionError`` if weights sum to zero.
    """
    a = on_device(a)
    if weights is None:
        result = inexact(a).mean(axis=axis, keepdims=keepdims)
        total = _core.full(result.shape, result.dtype, a.size / max(result.size, 1))
        return (result, total) if returned else result
    weights = on_device(weights)
    dtype = np.result_type(a.dtype, weights.dtype, *(["f8"] if a.dtype.kind in "biu" else []))
    if weights.shape != a.shape:
        axes = axes_of(axis, a.ndim) if axis is not None else ()
        if weights.shape != tuple(a.shape[it] for it in axes):
            allowed = f"a has shape {a.shape}; its shape or its extent along axis is needed"
            raise ValueError(f"weights have shape {weights.shape}; {allowed}")
        order = sorted(range(len(axes)), key=axes.__getitem__)
        shape = tuple(n if k in axes else 1 for k, n in enumerate(a.shape))
        weights = weights.transpose(tuple(order)).reshape(shape)
    spread = broadcast_to(weights.astype(dtype), a.shape)
    total = spread.sum(axis=axis, keepdims=keepdims)
    if bool((total == 0).any().get()):
        raise ZeroDivisionError("weights sum to zero; they cannot be normalized")
    result = (a * spread).astype(dtype).sum(axis=axis, keepdims=keepdims) / total
    return (result, total) if returned else result


def cov(
    m: Array,
    y: Array | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Array | None = None,
    aweights: Array | None = None,
    *,
    dtype: DType = None,
) -> GPUArray:
    """Returns the covariances of variables, as :func:`numpy.cov`.

    Raises ``ZeroDivisionError`` if weights sum to zero.
    """
    parts = [on_device(it) for it in ((m,) if y is None else (m, y))]
    rowvar = bool(rowvar)
    if parts[0].ndim == 2 and parts[0].shape[0 if rowvar else 1] == 0:
        return _core.full((0, 0), np.float64, 0)
    dtype = np.result_type(*(it.dtype for it in parts), np.float64) if dtype is None else dtype
    rows = []
    for part in parts:
        if part.ndim > 2:
            raise ValueError(f"the ndim of an array is {part.ndim}; at most 2 is allowed")
        part = part.astype(dtype)
        rows.append(part.reshape((1, -1)) if part.ndim < 2 else part if rowvar else part.T)
    x = vstack(rows) if len(rows) > 1 else rows[0]
    ddof = (0 if bias else 1) if ddof is None else ddof
    given: dict[str, Any] = {"fweights": fweights, "aweights": aweights}
    given = {name: on_host(it) for name, it in given.items() if it is not None}
    weights, fact = None, x.shape[1] - ddof
    if given:
        # numpy checks the weights.
        copies = {name: it.copy() for name, it in given.items()}
        np.cov(np.zeros(x.shape[1]), ddof=ddof, **copies)
        weights = np.prod([*given.values()], axis=0, dtype=float)
        total = weights.sum()
        fact = total - ddof * (weights * given.get("aweights", 1)).sum() / total
    center = average(x, 1, weights, keepdims=True)
    if fact <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        fact = 0
    x = x - center
    other = x if weights is None else x * on_device(weights)
    return ((x @ other.T.conj()) * (1 / fact if fact else np.inf)).squeeze()


def corrcoef(
    x: Array, y: Array | None = None, rowvar: bool = True, *, dtype: DType = None
) -> GPUArray:
    """Returns the correlation coefficients of variables, as :func:`numpy.corrcoef`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    scale = ufuncs["sqrt"](c.diagonal().real)
    c = c / scale.reshape((-1, 1)) / scale
    return c if c.dtype.kind == "c" else c.clip(-1, 1)


# The position of a quantile among n sorted elements is n q + alpha + q (1 - alpha - beta) - 1, from
# Hyndman and Fan, "Sample quantiles in statistical packages", 1996.
_CONTINUOUS = {
    "linear": (1, 1),
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
# The positions of the methods whose results are elements.
_ELEMENTS: dict[str, Any] = {
    "lower": lambda q, n: np.floor(q * (n - 1)),
    "higher": lambda q, n: np.ceil(q * (n - 1)),
    "nearest": lambda q, n: np.rint(q * (n - 1)),
    "inverted_cdf": lambda q, n: np.ceil(q * n - 1),
    "closest_observation": lambda q, n: _closest(q * n - 1.5),
}
_OTHERS = ("linear", "midpoint", "averaged_inverted_cdf")


def _closest(at: Any) -> Any:
    """Returns an odd whole number itself; for other numbers, the next larger whole number."""
    below = np.floor(at)
    return np.where((at == below) & (below % 2 == 1), below, below + 1)


def _places(q: Any, n: int, method: str) -> Any:
    """Returns the positions of quantiles among ``n`` sorted elements, fractions between two."""
    if method in _ELEMENTS:
        at = np.asarray(_ELEMENTS[method](q, n)).astype(np.int64)
    elif method == "linear":
        at = q * (n - 1)
    elif method == "midpoint":
        at = 0.5 * (np.floor(q * (n - 1)) + np.ceil(q * (n - 1)))
    elif method == "averaged_inverted_cdf":
        at = q * n - 1
        at = np.where(at == np.floor(at), at + 0.5, np.ceil(at)).astype(at.dtype)
    elif method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = n * q + (alpha + q * (1 - alpha - beta)) - 1
    else:
        allowed = ", ".join(dict.fromkeys([*_CONTINUOUS, *_ELEMENTS, *_OTHERS]))
        raise ValueError(f"method is {method!r}; allowed are {allowed}")
    return np.clip(np.asarray(at), 0, n - 1)


def _real(a: Any) -> GPUArray:
    a = on_device(a)
    if a.dtype.kind == "c":
        raise TypeError(f"a has dtype {a.dtype}; quantiles are of real numbers")
    return a


def _prepared(a: Any, q: Any, method: str, whole: int) -> tuple[GPUArray, np.ndarray[Any, Any]]:
    """Returns the array in the result's dtype, and the checked ``q`` as fractions of ``whole``."""
    a, is_weak = _real(a), type(q) in (int, float)
    q = on_host(q)
    if q.dtype.kind not in "biuf":
        raise TypeError(f"q has dtype {q.dtype}; real numbers are needed")
    if not ((q >= 0) & (q <= whole)).all():
        raise ValueError(f"q is {q}; numbers from 0 to {whole} are needed")
    if q.ndim > 2:
        raise ValueError(f"q.ndim is {q.ndim}; a number or one axis is needed")
    q = q.astype(np.int64) if q.dtype.kind == "b" else q
    q = q if whole == 1 else np.asarray(q / whole)
    dtype = _places(q, 2, method).dtype
    if method not in _ELEMENTS and not (method == "linear" and dtype.kind in "iu"):
        a = inexact(a) if is_weak else a.astype(np.result_type(a.dtype, dtype))
    return a, q


def _ranked(
    family: tuple[Callable[..., GPUArray], int],
    a: Array,
    q: Array,
    axis: Axis = None,
    out: Out = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> GPUArray:
    """Returns quantiles by a function whose ``q`` are fractions of 1 or percentages."""
    function, whole = family
    return function(*_prepared(a, q, method, whole), axis, out, method, keepdims)


def _quantile(a: GPUArray, q: Any, axis: Any, out: Any, method: str, keepdims: bool) -> GPUArray:
    values, axes = last_axis(a, axis)
    n = values.shape[-1]
    if n == 0:
        shape = (*q.shape, *with_axes(values[..., :0].sum(axis=-1), axes, keepdims).shape)
        return stored(_core.full(shape, inexact(a).dtype, np.nan), out)
    ordered = sort(values)
    nan = is_nan(ordered)
    is_invalid = None if nan is None else nan[..., n - 1]
    parts = []
    for at in _places(q, n, method).ravel().tolist():
        below = int(at)
        found = ordered[..., below]
        if at != below:
            # Exact at both ends.
            high, part = ordered[..., min(below + 1, n - 1)], at - below
            step = high - found
            found = found + step * part if part < 0.5 else high - step * (1 - part)
        if is_invalid is not None:
            found = _core.select(is_invalid, ordered[..., n - 1], found, False)
        parts.append(with_axes(found, axes, keepdims))
    return _collected(parts, q, with_axes(ordered[..., 0], axes, keepdims), out)


def _collected(parts: list[GPUArray], q: Any, like: GPUArray, out: Any) -> GPUArray:
    """Returns the values for each of ``q``, each of the shape and dtype of another array."""
    if q.ndim == 0:
        return stored(parts[0].copy() if parts[0].base is not None else parts[0], out)
    shape = (*q.shape, *like.shape)
    return stored(stack(parts).reshape(shape) if parts else _core.full(shape, like.dtype, 0), out)


_RANKED = "Returns {0}s along axes, as :func:`numpy.{0}`."
quantile = member(_ranked, (_quantile, 1), "quantile", _RANKED.format("quantile"))
percentile = member(_ranked, (_quantile, 100), "percentile", _RANKED.format("percentile"))


def median(
    a: Array,
    axis: Axis = None,
    out: Out = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> GPUArray:
    """Returns medians along axes, as :func:`numpy.median`."""
    a = inexact(on_device(a))
    values, axes = last_axis(a, axis)
    n = values.shape[-1]
    if n == 0:
        return _quantile(a, np.float64(0.5), axis, out, "linear", keepdims)
    ordered = sort(values)
    middle = ordered[..., (n - 1) // 2 : n // 2 + 1].mean(axis=-1)
    nan = is_nan(ordered)
    if nan is not None:
        middle = _core.select(nan[..., n - 1], ordered[..., n - 1], middle, False)
    return stored(with_axes(middle, axes, keepdims), out)


# numpy's warnings of slices of nothing but NaN would wait for the device, and are left out.


def _numbers(a: GPUArray, where: Any = UNSET) -> Any:
    """Returns the mask of the selected elements that are not NaN; True if it selects all."""
    nan, mask = is_nan(a), mask_of(where)
    if nan is None:
        return True if mask is None else mask
    numbers = ufuncs["logical_not"](nan)
    return numbers if mask is None else numbers & mask


def _extreme(
    name: str,
    a: Array,
    axis: Axis = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Initial = UNSET,
    where: Mask = UNSET,
) -> GPUArray:
    a, reduce = on_device(a), getattr(reductions, name)
    numbers = _numbers(a, where)
    given = {"axis": axis, "out": out, "keepdims": keepdims}
    if numbers is True or a.size == 0 or (initial is UNSET and mask_of(where) is not None):
        return reduce(a, **given, initial=initial, where=where)
    if initial is not UNSET:
        return reduce(a, **given, initial=initial, where=numbers)
    found = reduce(a, axis=axis, keepdims=keepdims, initial=_LEAST[name], where=numbers)
    is_any = numbers.any(axis=axis, keepdims=keepdims)
    return stored(_core.select(is_any, found, found.dtype.type(np.nan), False), out)


def _arg_extreme(
    name: str, a: Array, axis: int | None = None, out: Out = None, *, keepdims: bool = False
) -> GPUArray:
    a, function = on_device(a), getattr(reductions, f"arg{name}")
    numbers = _numbers(a)
    if numbers is not True and not bool(numbers.any(axis=axis).all().get()):
        raise ValueError("All-NaN slice encountered")
    a = reductions.without_nan(a, _LEAST[name])
    return function(a, axis=axis, out=out, keepdims=keepdims)


def _running(
    name: str, a: Array, axis: int | None = None, dtype: DType = None, out: Out = None
) -> GPUArray:
    numbers = reductions.without_nan(on_device(a), reductions.REDUCTIONS[name][0])
    return getattr(reductions, f"cum{name}")(numbers, axis, dtype, out)


# The value that no other value loses to.
_LEAST = {"max": -np.inf, "min": np.inf}
_OF_NUMBERS = "Returns the {} elements that are not NaN, as :func:`numpy.{}`."
nanmax = member(_extreme, "max", "nanmax", _OF_NUMBERS.format("largest", "nanmax"))
nanmin = member(_extreme, "min", "nanmin", _OF_NUMBERS.format("smallest", "nanmin"))
_PLACES = "Returns indices of the {} elements that are not NaN, as :func:`numpy.{}`."
nanargmax = member(_arg_extreme, "max", "nanargmax", _PLACES.format("largest", "nanargmax"))
nanargmin = member(_arg_extreme, "min", "nanargmin", _PLACES.format("smallest", "nanargmin"))
_SUMS = "Returns running sums, NaN counted as 0, as :func:`numpy.nancumsum`."
nancumsum = member(_running, "sum", "nancumsum", _SUMS)
_PRODUCTS = "Returns running products, NaN counted as 1, as :func:`numpy.nancumprod`."
nancumprod = member(_running, "prod", "nancumprod", _PRODUCTS)


def nanmean(
    a: Array,
    axis: Axis = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    where: Mask = UNSET,
) -> GPUArray:
    """Returns the means of the elements that are not NaN, as :func:`numpy.nanmean`."""
    a = on_device(a)
    return mean_of(a, axis, dtype, out, keepdims, where=_numbers(a, where))


def _spread(
    name: str,
    a: Array,
    axis: Axis = None,
    dtype: DType = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Mask = UNSET,
    mean: Operand | Unset = UNSET,
    correction: float | Unset = UNSET,
) -> GPUArray:
    a, spread = on_device(a), getattr(reductions, name)
    numbers, ddof = _numbers(a, where), degrees_of(ddof, correction)
    if is_nan(a) is None:
        return spread(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)
    found = spread(a, axis, dtype, None, ddof, keepdims, where=numbers, mean=mean)
    is_free = fit_mask(numbers, a).sum(axis=axis, keepdims=keepdims) > ddof
    return stored(_core.select(is_free, found, found.dtype.type(np.nan), False), out)


_SPREAD = "Returns the {} of the elements that are not NaN, as :func:`numpy.{}`."
nanvar = member(_spread, "var", "nanvar", _SPREAD.format("variances", "nanvar"))
nanstd = member(_spread, "std", "nanstd", _SPREAD.format("standard deviations", "nanstd"))


def nanmedian(
    a: Array,
    axis: Axis = None,
    out: Out = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> GPUArray:
    """Returns medians of the elements that are not NaN, as :func:`numpy.nanmedian`."""
    return _nanquantile(inexact(on_device(a)), np.float64(0.5), axis, out, "linear", keepdims, True)


def _nanquantile(
    a: GPUArray, q: Any, axis: Any, out: Any, method: str, keepdims: bool, is_median: bool = False
) -> GPUArray:
    nan = is_nan(a)
    if nan is None or a.size == 0:
        return _quantile(a, q, axis, out, method, keepdims)
    if method != "linear":
        raise TypeError(f"method is {method!r}; without NaN the device supports only 'linear'")
    values, axes = last_axis(a, axis)
    ordered = sort(values)
    count = _numbers(ordered).sum(axis=-1, keepdims=True)
    parts = []
    for one in q.ravel():
        at = ufuncs["maximum"]((count - 1) * float(one), 0.0)
        below, above = (ufuncs[it](at).astype(np.int64) for it in ("floor", "ceil"))
        low, high = (along(ordered, it, ordered.ndim - 1) for it in (below, above))
        part = (at - below).astype(a.dtype)
        if is_median:
            found = concatenate([low, high], -1).mean(axis=-1, keepdims=True)
        else:
            difference = high - low
            upper = high - difference * (1 - part)
            found = _core.select(part < 0.5, low + difference * part, upper, False)
        if not is_median or a.dtype.kind != "c":
            found = _core.select(part == 0, low, found, False)
        found = _core.select(count == 0, a.dtype.type(np.nan), found, False)
        parts.append(with_axes(found[..., 0], axes, keepdims))
    return _collected(parts, q, with_axes(ordered[..., 0], axes, keepdims), out)


def _nan_ranked(a: GPUArray, q: Any, axis: Any, out: Any, method: str, keepdims: bool) -> GPUArray:
    """Returns quantiles; for an empty array, the result has the shape of a mean, as in numpy."""
    if not a.size:
        return nanmean(a, axis, None, out, keepdims)
    return _nanquantile(a, q, axis, out, method, keepdims)


_NANRANKED = """Returns {0}s of the elements that are not NaN, as :func:`numpy.nan{0}`.

    The one method on the device is ``"linear"``.
    """
_families = (_nan_ranked, 1), (_nan_ranked, 100)
nanquantile = member(_ranked, _families[0], "nanquantile", _NANRANKED.format("quantile"))
nanpercentile = member(_ranked, _families[1], "nanpercentile", _NANRANKED.format("percentile"))
