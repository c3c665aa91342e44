"""Steps along axes: reductions, cumulative functions, sorting, matrix products."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from comparison import KINDS, Mismatch, Skipped, both, describe, written
from element_steps import has_repeats
from pairs import Pair, outcome

from pygpu import gpuarray

# The relative errors of one operation, and the largest sums whose parts do not overflow.
EPSILON = {"f2": 1e-3, "f4": 1.2e-7, "f8": 2.3e-16, "c8": 1.2e-7, "c16": 2.3e-16}
LARGEST = {"f2": 3e4, "f4": 1e37, "f8": 1e300, "c8": 1e17, "c16": 1e150}


def _code(dtype: np.dtype) -> str:
    return f"{dtype.kind}{dtype.itemsize}"


def _total(host: np.ndarray) -> float:
    """Returns the sum of magnitudes; skips non-finite values, whose result depends on the order."""
    if host.dtype.kind in "fc" and not np.isfinite(host).all():
        raise Skipped
    return float(np.abs(host.astype("c16")).sum())


def draw_axis(random: Random, rank: int, several: bool = True) -> Any:
    """Draws an axis, a tuple of axes or None; occasionally an invalid or a repeated one."""
    rank = max(rank, 1)
    kind = random.random()
    if kind < 0.25:
        return None
    if kind < 0.7 or not several:
        extra = random.random() < 0.08
        return random.randint(-rank - extra, rank - 1 + extra)
    axes = [random.randint(-rank, rank - 1) for _ in range(random.randint(0, rank))]
    return (
        tuple(axes)
        if random.random() < 0.1
        else tuple({axis % rank: axis for axis in axes}.values())
    )


def reduce_axes(seed: int, x: Pair) -> Pair | None:
    """Combines elements along axes, by function or method."""
    random = Random(seed)
    host = x.host
    names = ["sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "ptp"]
    name = random.choice([*names, "count_nonzero", "nansum", "nanprod"])
    given: dict[str, Any] = {"axis": draw_axis(random, host.ndim)}
    if random.random() < 0.4:
        given["keepdims"] = random.random() < 0.7
    error = 0.0
    if name in ("sum", "prod", "mean", "var", "std", "nansum", "nanprod"):
        if random.random() < 0.2 and host.dtype.kind != "c":
            wider = [] if name in ("var", "std") else ["c16"]  # here they are always real
            given["dtype"] = np.dtype(random.choice(["f4", "f8", *wider]))
        exact = host.dtype.kind in "biu" and name in ("sum", "prod") and "dtype" not in given
        if not exact:
            code = _code(given.get("dtype", host.dtype))
            widest = max(EPSILON.get(code, 0.0), EPSILON.get(_code(host.dtype), 0.0), 2.3e-16)
            total = max(_total(host), 1.0)
            if "prod" in name:
                parts = np.abs(host.astype("c16")).ravel()
                total = float(np.prod(np.maximum(parts, 1.0)))
            limit = min(LARGEST.get(code, 1e150), LARGEST.get(_code(host.dtype), 1e150))
            if name in ("var", "std"):
                total = total**2
            if not total < limit:
                raise Skipped
            if name in ("var", "std") and code == "f2":
                raise Skipped
            error = 16 * widest * total
            if name == "std":
                error = max(error, 1.0) ** 0.5 * widest**0.5  # the true deviation may be zero
    if name in ("min", "max", "ptp") and host.dtype.kind == "c":
        raise Skipped
    if name == "ptp" and host.dtype.kind == "f" and not np.isfinite(host).all():
        raise Skipped
    if name in ("nansum", "nanprod") and host.dtype.kind == "c":
        raise Skipped  # complex numbers with NaN in only one part
    theirs_of = getattr(np, name)

    def theirs(a: Any) -> Any:
        if given["axis"] is None and not given.get("keepdims") and name == "sum":
            return np.sum(a, **({"dtype": a.dtype} | given))  # PyCUDA's dtype
        return np.asarray(theirs_of(a, **given))

    if "min" in name and "axis" in given and given["axis"] is None:
        given.pop("axis")
    given.setdefault("axis", None)
    if random.random() < 0.4 and hasattr(gpuarray.GPUArray, name):
        ours = lambda a: getattr(a, name)(**given)  # noqa: E731
    elif random.random() < 0.5 and name != "sum":
        ours = lambda a: theirs_of(a, **given)  # noqa: E731
    else:
        ours = lambda a: getattr(gpuarray, name)(a, **given)  # noqa: E731
    return both(
        f"{name} {given}", theirs, ours, x, atol=error, rtol=error, strides=False, signs=False
    )


def positions(seed: int, x: Pair) -> Pair | None:
    """Finds the positions of extreme elements."""
    random = Random(seed)
    name = random.choice(["argmin", "argmax"])
    if x.host.dtype.kind == "c":
        raise Skipped
    axis = draw_axis(random, x.host.ndim, several=False)
    keeps = random.random() < 0.3
    theirs = lambda a: np.asarray(getattr(np, name)(a, axis=axis, keepdims=keeps))  # noqa: E731
    ours = lambda a: getattr(gpuarray, name)(a, axis=axis, keepdims=keeps)  # noqa: E731
    return both(f"{name} {axis} {keeps}", theirs, ours, x, strides=False)


def running(seed: int, x: Pair) -> Pair | None:
    """Computes cumulative sums and products, and differences."""
    random = Random(seed)
    name = random.choice(["cumsum", "cumprod", "diff"])
    axis = draw_axis(random, x.host.ndim, several=False)
    if name == "diff":
        n = random.choice([1, 2, 5])  # for 0 the result is the array itself
        axis = -1 if axis is None else axis
        theirs = lambda a: np.diff(a, n, axis)  # noqa: E731
        ours = lambda a: gpuarray.diff(a, n, axis)  # noqa: E731
        return both(f"diff {n} {axis}", theirs, ours, x, strides=False, signs=False)
    error = 0.0
    if x.host.dtype.kind in "fc":
        total = max(_total(x.host), 1.0)
        if name == "cumprod":
            total = float(np.prod(np.maximum(np.abs(x.host.astype("c16")).ravel(), 1.0)))
        if not total < LARGEST[_code(x.host.dtype)]:
            raise Skipped
        error = 16 * EPSILON[_code(x.host.dtype)] * total
    theirs = lambda a: getattr(np, name)(a, axis)  # noqa: E731
    ours = lambda a: getattr(gpuarray, name)(a, axis)  # noqa: E731
    return both(
        f"{name} {axis}", theirs, ours, x, atol=error, rtol=error, strides=False, signs=False
    )


def sort(seed: int, x: Pair) -> Pair | None:
    """Returns a sorted copy, or the indices that sort."""
    random = Random(seed)
    axis = draw_axis(random, x.host.ndim, several=False)
    kind = random.choice(["stable", "mergesort"])
    name = random.choice(["sort", "argsort"])
    theirs = lambda a: getattr(np, name)(a, axis=axis, kind=kind)  # noqa: E731
    ours = lambda a: getattr(gpuarray, name)(a, axis=axis, kind=kind)  # noqa: E731
    return both(f"{name} {axis}", theirs, ours, x, strides=False)


def sort_in_place(seed: int, x: Pair) -> None:
    """Sorts an array in place, and so changes arrays that share its memory."""
    random = Random(seed)
    if has_repeats(x.host):
        raise Skipped
    axis = draw_axis(random, x.host.ndim, several=False)
    axis = -1 if axis is None else axis
    told = f"sort({axis}) of {describe(x.host)}"
    expected = outcome(lambda: x.host.sort(axis, kind="stable"))
    result = outcome(lambda: x.device.sort(axis))
    if isinstance(expected, Exception) or isinstance(result, Exception):
        kind = next((kind for kind in KINDS if isinstance(expected, kind)), None)
        if kind is None or not isinstance(result, kind):
            raise Mismatch(f"{told}: numpy: {expected!r}; pygpu: {result!r}")
        return
    written(told, x, 0.0)


def product(seed: int, x: Pair, y: Pair) -> Pair | None:
    """Multiplies matrices of any shapes."""
    random = Random(seed)
    turn = [lambda a: a, lambda a: a.T, lambda a: a[..., 0] if a.ndim and a.shape[-1] else a]
    first, second = random.choice(turn), random.choice(turn)
    left, right = first(x.host), second(y.host)
    dtype = np.promote_types(left.dtype, right.dtype)
    error = 0.0
    if dtype.kind in "fc":
        total = max(_total(left), 1.0) * max(_total(right), 1.0)
        if not total < LARGEST[_code(dtype)]:
            raise Skipped
        error = 16 * EPSILON[_code(dtype)] * total
    theirs = lambda a, b: np.asarray(first(a) @ second(b))  # noqa: E731
    ours = lambda a, b: first(a) @ second(b)  # noqa: E731
    told = f"{describe(left)} @ {describe(right)}"
    return both(told, theirs, ours, x, y, atol=error, rtol=error, strides=False, signs=False)
