"""Steps that create arrays, and views and copies of them."""

from __future__ import annotations

import operator
from random import Random
from typing import Any

import numpy as np
from comparison import LIVE, Skipped, both, forget
from pairs import (
    DTYPES,
    Pair,
    numbers,
)

from pygpu import gpuarray


def _cut(random: Random, length: int) -> tuple[int, slice]:
    """Returns the length of an axis, and a slice of it that has `length` elements."""
    step, before = random.choice([1, 1, 1, 2, -1, -2]), random.choice([0, 0, 1])
    if length == 0:
        return before, slice(0, 0)
    first, last = before, before + (length - 1) * abs(step)
    if step > 0:
        return last + 1, slice(first, last + 1, step)
    return last + 1, slice(last, first - 1 if first else None, step)


def create(seed: int, shape: tuple[int, ...], dtype: str) -> Pair:
    """Creates an array of numbers from the whole type: contiguous, stepped, reversed,
    transposed."""
    random = Random(seed)
    special = random.random() < 0.3
    if random.random() < 0.4:
        host = numbers(shape, dtype, seed % 2**32, special)
        pair = Pair(host, gpuarray.to_gpu(host))
    else:
        order = list(range(len(shape)))
        random.shuffle(order)
        cuts = [_cut(random, shape[axis]) for axis in order]
        whole = numbers(tuple(length for length, _ in cuts), dtype, seed % 2**32, special)
        index, axes = tuple(cut for _, cut in cuts), [order.index(x) for x in range(len(shape))]
        device = gpuarray.to_gpu(whole)
        if shape:
            pair = Pair(whole[index].transpose(axes), device[index].transpose(axes))
        else:
            pair = Pair(whole, device)
    LIVE.append(pair)
    return pair


def draw_number(random: Random, dtype: np.dtype) -> Any:
    """Draws a scalar: Python's or numpy's."""
    plain: list[Any] = [0, 1, -1, 2, 3, 7, True, 255, -128]
    if dtype.kind in "fc" or random.random() < 0.3:
        plain += [0.5, -2.5, float("nan"), float("inf"), -0.0, 1e30]
    if dtype.kind == "c":
        plain += [1j, 2 - 3j]
    number = random.choice(plain)
    if random.random() < 0.3:
        with np.errstate(all="ignore"):
            other = np.dtype(random.choice(DTYPES))
            if isinstance(number, complex) and other.kind != "c":
                return number
            if isinstance(number, float) and other.kind not in "fc":
                return number
            return np.asarray(number).astype(other)[()]
    return number


def draw_index(random: Random, shape: tuple[int, ...]) -> Any:
    """Draws an index expression, mostly a valid one."""
    parts: list[Any] = []
    for length in shape[: random.randint(0, len(shape))]:
        kind = random.random()
        if kind < 0.25:
            parts.append(random.randint(-length - (random.random() < 0.05), max(0, length - 1)))
        else:
            low, high = (
                random.choice([None, random.randint(-length - 2, length + 2)]) for _ in "ab"
            )
            parts.append(slice(low, high, random.choice([None, 1, 2, -1, -2, 3, 100, -(2**62)])))
        if random.random() < 0.1:
            parts.append(None)
    if random.random() < 0.3:
        parts.insert(random.randint(0, len(parts)), Ellipsis)
    return parts[0] if len(parts) == 1 and random.random() < 0.5 else tuple(parts)


def getitem(seed: int, x: Pair) -> Pair | None:
    """Makes a view by an index expression."""
    index = draw_index(Random(seed), x.host.shape)
    view = lambda a: a[index] if a is x.device else np.asarray(a[index])  # noqa: E731
    pair = both(f"[{index}]", view, view, x)
    if pair is None or pair.host.ndim or not pair.host.size:
        return pair
    # numpy's element is a copy and pygpu's a view, so they would differ after later writes.
    forget(pair)
    return None


def view(seed: int, x: Pair) -> Pair | None:
    """Makes another view of the same memory."""
    random = Random(seed)
    shape, rank = x.host.shape, x.host.ndim
    axes = list(range(rank))
    random.shuffle(axes)
    if random.random() < 0.3:
        axes = [axis - rank for axis in axes]
    kind = random.randrange(6)
    if kind == 0:
        return both(f"transpose{axes}", lambda a: a.transpose(axes), lambda a: a.transpose(axes), x)
    if kind == 1:
        return both("squeeze", lambda a: a.squeeze(), lambda a: a.squeeze(), x)
    if kind == 2:
        return both("T", lambda a: a.T, lambda a: a.T, x)
    if not (x.host.flags.c_contiguous and rank and x.host.size):
        raise Skipped
    if kind == 4:
        # As in PyCUDA, the new elements divide the axis with the least stride; numpy divides the
        # last axis.
        if any(abs(step) <= abs(x.host.strides[-1]) for step in x.host.strides[:-1]):
            raise Skipped
        dtype = random.choice([d for d in DTYPES if d.kind != "b"])
        if dtype.itemsize > x.host.dtype.itemsize:
            raise Skipped  # pygpu refuses memory that is not aligned for the new elements
        return both(f"view({dtype})", lambda a: a.view(dtype), lambda a: a.view(dtype), x)
    count = x.host.size
    sides = [s for s in range(1, 13) if count and count % s == 0]
    new = (random.choice(sides), -1) if sides else (*shape, 1)
    return both(f"reshape{new}", lambda a: a.reshape(new), lambda a: a.reshape(new), x)


def copies(seed: int, x: Pair) -> Pair | None:
    """Makes a new array with the same elements, perhaps in another order or type."""
    random = Random(seed)
    kind = random.randrange(6)
    if kind == 0:
        return both("copy", lambda a: a.copy("K"), lambda a: a.copy(), x)
    if kind == 1:
        order = random.choice("CF")
        shape = (-1,) if random.random() < 0.5 else x.host.shape[::-1]
        both_orders = lambda a: a.reshape(shape, order=order)  # noqa: E731
        done = both(f"reshape({shape}, {order})", both_orders, both_orders, x, strides=False)
        return _alone(done)
    if kind == 2:
        return _alone(both("ravel", lambda a: a.ravel(), lambda a: a.ravel(), x, strides=False))
    if kind == 3 and x.host.ndim == 1:
        return both("reverse", lambda a: a[::-1].copy(), lambda a: a.reverse(), x, strides=False)
    if kind == 4 and x.host.dtype.kind == "c":
        part = random.choice(["real", "imag"])
        part_of = operator.attrgetter(part)
        return _alone(both(part, part_of, part_of, x, strides=False))
    if kind == 5 and x.host.dtype.kind == "c":
        return both("conj", lambda a: a.conj(), lambda a: a.conj(), x)
    dtype = random.choice(DTYPES)
    must_convert(x.host, dtype)
    return both(f"astype({dtype})", lambda a: a.astype(dtype), lambda a: a.astype(dtype), x)


def _alone(pair: Pair | None) -> Pair | None:
    """Returns a copy of the pair without shared memory: numpy and pygpu copy in different cases."""
    if pair is None:
        return None
    forget(pair)
    device = pair.device.copy()
    alone = Pair(device.get(), device)
    LIVE.append(alone)
    return alone


def must_convert(host: np.ndarray, dtype: np.dtype) -> None:
    """Skips a conversion that C leaves undefined: a value outside an integer type's range."""
    if dtype.kind in "iu" and host.dtype.kind in "fc":
        real = np.asarray(host.real, "f8")
        limits = np.iinfo(dtype)
        # Floats cannot represent 2**63 - 1 and 2**64 - 1.
        if not (np.isfinite(real).all() and (real >= float(limits.min)).all()):
            raise Skipped
        if not (np.abs(real) < min(float(limits.max), 2.0**62)).all():
            raise Skipped
