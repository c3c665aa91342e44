"""Steps of the search over array programs: each does the same in numpy and on the device.

This is the prelude of that search's cases. Their lines are calls such as `v3 = binary(917, v1,
v2)`. The number seeds the step's random choices. The variables are pairs, or None after both
libraries raised the same error. A difference raises `Mismatch` with the operation and the arrays.
"""

from __future__ import annotations

from random import Random

import numpy as np
from assignment_steps import fill, item_in_place, setitem
from axis_steps import positions, product, reduce_axes, running, sort, sort_in_place
from comparison import LIVE, Mismatch, Skipped, both, describe, guarded, start
from element_steps import binary, choose, function, in_place, in_place_scalar, into, scalar, unary
from pairs import (
    INTEGERS,
    Pair,
)
from protocol_steps import rearrange, ufunc, ufunc_into, ufunc_of_one, ufunc_reduce
from subset_steps import compress, nonzero, pick, store, subset_in_place
from view_steps import copies, create, getitem, view

from pygpu import gpuarray

__all__ = [
    "Mismatch",
    "Skipped",
    "binary",
    "choose",
    "compress",
    "convert",
    "copies",
    "create",
    "fill",
    "function",
    "getitem",
    "guarded",
    "in_place",
    "in_place_scalar",
    "into",
    "item_in_place",
    "join",
    "nonzero",
    "pick",
    "positions",
    "product",
    "rearrange",
    "reduce",
    "reduce_axes",
    "running",
    "scalar",
    "setitem",
    "sort",
    "sort_in_place",
    "start",
    "store",
    "subset_in_place",
    "take",
    "transfer",
    "ufunc",
    "ufunc_into",
    "ufunc_of_one",
    "ufunc_reduce",
    "unary",
    "view",
]


def join(seed: int, x: Pair, y: Pair) -> Pair | None:
    """Joins two arrays along an axis."""
    random = Random(seed)
    rank = max(1, x.host.ndim)
    axis = random.randint(-rank, rank - 1)
    if random.random() < 0.5:
        if not x.host.ndim:
            raise Skipped
        theirs = lambda a, b: np.concatenate([a, b], axis)  # noqa: E731
        ours = lambda a, b: gpuarray.concatenate([a, b], axis)  # noqa: E731
        if x.host.ndim != y.host.ndim:
            raise Skipped
        return both(f"concatenate {axis}", theirs, ours, x, y, strides=False)
    if x.host.shape != y.host.shape:
        raise Skipped
    theirs = lambda a, b: np.stack([a, b], axis)  # noqa: E731
    ours = lambda a, b: gpuarray.stack([a, b], axis)  # noqa: E731
    return both(f"stack {axis}", theirs, ours, x, y, strides=False)


def reduce(seed: int, x: Pair) -> Pair | None:
    """Reduces all elements to one."""
    name = Random(seed).choice(["sum", "min", "max", "any", "all"])
    host, ours = x.host, getattr(gpuarray, name)
    if name == "sum":
        if host.dtype.kind in "fc" and not np.isfinite(host).all():
            raise Skipped
        magnitude = float(np.abs(host.astype("c16")).sum())
        if host.dtype.kind in "fc" and not magnitude < 1e4:
            raise Skipped
        part = {"f2": 4e-3, "f4": 2e-6, "f8": 2e-15, "c8": 2e-6, "c16": 2e-15}
        error = part.get(f"{host.dtype.kind}{host.dtype.itemsize}", 0.0) * magnitude
        theirs = lambda a: np.sum(a, dtype=a.dtype)  # noqa: E731
        return both(name, theirs, ours, x, atol=error, signs=False)
    if name in ("min", "max") and host.dtype.kind == "c":
        raise Skipped
    return both(name, lambda a: np.asarray(getattr(np, name)(a)), ours, x, signs=False)


def take(seed: int, x: Pair) -> Pair | None:
    """Selects elements by an index array."""
    random = Random(seed)
    host = x.host.ravel()
    if not host.size or x.host.ndim != 1:
        raise Skipped
    dtype = random.choice([d for d in INTEGERS if d.itemsize >= 4])
    low = -len(host) if dtype.kind == "i" else 0
    indices = np.array([random.randint(low, len(host) - 1) for _ in range(5)], dtype)
    ours = lambda a: gpuarray.take(a, gpuarray.to_gpu(indices))  # noqa: E731
    return both(f"take {indices}", lambda a: a[indices], ours, x, strides=False)


def transfer(seed: int, x: Pair) -> Pair | None:
    """Copies to the host and back."""
    del seed
    host = x.device.get()
    if host.dtype != x.host.dtype or not np.array_equal(
        host, x.host, equal_nan=host.dtype.kind in "fc"
    ):
        raise Mismatch(f"get of {describe(x.host)} is {describe(host)}")
    pair = Pair(host, gpuarray.to_gpu(host))
    LIVE.append(pair)
    return pair


def convert(seed: int, x: Pair) -> None:
    """Converts to a Python number, a truth value or a length."""
    kind = Random(seed).choice([bool, int, float, complex, len, list])
    if kind is list:
        kind = lambda a: [part.shape for part in a]  # noqa: E731
    if kind in (int, float, complex) and x.host.ndim:
        raise Skipped  # numpy no longer converts one-element arrays that have axes
    if x.host.size == 0 and kind is bool:
        raise Skipped
    if kind in (int, float) and x.host.dtype.kind == "c":
        raise Skipped
    if kind is int and x.host.dtype.kind in "fc" and not np.isfinite(x.host).all():
        raise Skipped
    both(str(kind), kind, kind, x)
