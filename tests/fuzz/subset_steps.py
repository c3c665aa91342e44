"""Steps that read and write elements selected by index arrays and masks."""

from __future__ import annotations

import operator
from random import Random
from typing import Any

import numpy as np
from comparison import Mismatch, Skipped, both, check_live, describe
from element_steps import has_repeats, write_to_both
from pairs import INTEGERS, Pair, outcome
from view_steps import draw_number, must_convert

from pygpu import gpuarray


def _indices(random: Random, shape: tuple[int, ...], extent: int, repeats: bool) -> Any:
    """Returns an index array for an axis, mostly in range, in one of numpy's integer types."""
    dtype = random.choice(INTEGERS)
    low = -extent if dtype.kind == "i" else 0
    count = int(np.prod(shape))
    if count and (not extent or (not repeats and count > extent)):
        raise Skipped
    if repeats:
        drawn = [random.randint(low, max(0, extent - 1)) for _ in range(count)]
    else:
        drawn = random.sample(range(extent), count)
        drawn = [one - extent if low and random.random() < 0.3 else one for one in drawn]
    return np.array(drawn, dtype).reshape(shape)


def draw_subset(random: Random, shape: tuple[int, ...], repeats: bool) -> tuple[Any, Any]:
    """Draws the same index, which contains arrays, for numpy and for the device.

    Without `repeats` no array selects an element twice.
    """
    theirs: list[Any] = []
    ours: list[Any] = []
    common = random.choice([(), (0,), (1,), (2,), (3,), (2, 1), (1, 3), (2, 3)])
    few = lambda: tuple(1 if random.random() < 0.2 else n for n in common)  # noqa: E731
    several = 0
    axis = 0
    end = random.randint(0, len(shape))
    while axis < end:
        kind = random.random()
        extent = shape[axis]
        if kind < 0.35 and (repeats or not several):
            named = _indices(random, few() if repeats else common, extent, repeats)
            if random.random() < 0.03:
                wrong = random.choice([extent, -extent - 1, 2**40])
                with np.errstate(all="ignore"):
                    named = np.append(named.astype("i8").ravel(), wrong)
                theirs.append(named)
                ours.append(named)
            else:
                theirs.append(named)
                form = random.randrange(3)
                if form == 0:
                    ours.append(gpuarray.to_gpu(named))
                elif form == 1 and named.size:
                    ours.append(named.tolist())
                    theirs[-1] = named.tolist()
                else:
                    ours.append(named)
            several += 1
        elif kind < 0.5 and (repeats or not several):
            many = random.randint(1, min(2, end - axis))
            extents = shape[axis : axis + many]
            if random.random() < 0.03:
                extents = (*extents[:-1], extents[-1] + 1)
            mask = np.array([random.random() < 0.5 for _ in range(int(np.prod(extents)))], bool)
            mask = mask.reshape(extents)
            if random.random() < 0.3 and many == 2:
                mask = np.asfortranarray(mask)
            theirs.append(mask)
            ours.append(gpuarray.to_gpu(mask) if random.random() < 0.6 else mask)
            axis += many - 1
            several += 1
        elif kind < 0.65 and extent:
            theirs.append(random.randint(-extent, extent - 1))
            ours.append(theirs[-1])
        else:
            low, high = (random.choice([None, random.randint(-extent, extent)]) for _ in "ab")
            theirs.append(slice(low, high, random.choice([None, 1, 2, -1, -2])))
            ours.append(theirs[-1])
        axis += 1
    for odd, part in ((None, 0.15), (Ellipsis, 0.2), (True, 0.05), (False, 0.02)):
        if random.random() < part:
            place = random.randint(0, len(theirs))
            theirs.insert(place, odd)
            ours.insert(place, odd)
    index = tuple(theirs)
    named = outcome(lambda: np.broadcast_to(np.int8(0), shape)[index])
    if isinstance(named, IndexError):
        ours = theirs  # the device accepts indices outside the axis
    elif isinstance(named, np.ndarray) and not named.size:
        raise Skipped  # numpy does not check the indices in this case
    if len(theirs) == 1 and random.random() < 0.7:
        return theirs[0], ours[0]
    return index, tuple(ours)


def _told(index: Any) -> str:
    if not isinstance(index, tuple):
        return describe(index)
    return ", ".join(map(describe, index))


def pick(seed: int, x: Pair) -> Pair | None:
    """Reads selected elements into a new array, with the axes in numpy's order."""
    random = Random(seed)
    theirs, ours = draw_subset(random, x.host.shape, repeats=True)
    # Without an array the index makes a view, which other steps test.
    parts = theirs if isinstance(theirs, tuple) else (theirs,)
    if not any(isinstance(part, list | np.ndarray | bool) for part in parts):
        raise Skipped
    read = lambda a: np.asarray(a[theirs]) if a is x.host else a[ours]  # noqa: E731
    return both(f"[{_told(theirs)}]", read, read, x, strides=False)


def store(seed: int, x: Pair, y: Pair) -> None:
    """Assigns to selected elements, each of them once."""
    random = Random(seed)
    if has_repeats(x.host):
        raise Skipped
    theirs, ours = draw_subset(random, x.host.shape, repeats=False)
    kind = random.randrange(4)
    if kind == 0:
        number = draw_number(random, x.host.dtype)
        with np.errstate(all="ignore"):
            must_convert(np.asarray(number), x.host.dtype)
        if x.host.dtype.kind in "iu":
            limits = np.iinfo(x.host.dtype)
            if isinstance(number, complex | np.complexfloating):
                raise Skipped
            if not limits.min <= int(number) <= limits.max:
                raise Skipped
        values: tuple[Any, Any] = (number, number)
    else:
        if y.host.dtype != x.host.dtype:
            raise Skipped  # assignments to views test conversions
        values = (y.host, y.device if kind == 1 else y.host.copy())
        if kind == 3:
            part = outcome(lambda: x.host[theirs])
            if isinstance(part, Exception) or not isinstance(part, np.ndarray):
                raise Skipped
            values = (part[::-1], x.device[ours][::-1]) if part.ndim else (part, part)
    if np.ndim(values[0]) > np.ndim(outcome(lambda: x.host[theirs])):
        raise Skipped  # numpy accepts leading axes of length 1 only for some indices
    told = f"[{_told(theirs)}] = {describe(values[0])} in {describe(x.host)}, kind {kind}"
    with np.errstate(all="ignore"):
        expected = outcome(operator.setitem, x.host, theirs, values[0])
    result = outcome(operator.setitem, x.device, ours, values[1])
    if isinstance(expected, Exception) != isinstance(result, Exception):
        raise Mismatch(f"{told}: numpy: {expected!r}; pygpu: {result!r}")
    check_live(told)


def subset_in_place(seed: int, x: Pair, y: Pair) -> None:
    """Computes `x[mask] += y`: reads, calculates and stores the selected elements."""
    random = Random(seed)
    if has_repeats(x.host):
        raise Skipped
    theirs, ours = draw_subset(random, x.host.shape, repeats=False)
    if not isinstance(outcome(lambda: x.host[theirs]), np.ndarray):
        raise Skipped
    function = random.choice([operator.iadd, operator.isub])

    def change(a: Any, b: Any) -> Any:
        a[theirs if isinstance(a, np.ndarray) else ours] = function(
            a[theirs if isinstance(a, np.ndarray) else ours], b
        )
        return a

    change.__name__ = f"[{_told(theirs)}] {function.__name__}"
    if y.host.dtype != x.host.dtype:
        raise Skipped
    write_to_both(change.__name__, change, x, y, 0.0)


def nonzero(seed: int, x: Pair) -> None:
    """Returns the indices of the nonzero elements."""
    del seed
    expected, result = outcome(np.nonzero, x.host), outcome(gpuarray.nonzero, x.device)
    told = f"nonzero of {describe(x.host)}"
    if isinstance(expected, Exception) or isinstance(result, Exception):
        if type(expected) is not type(result):
            raise Mismatch(f"{told}: numpy: {expected!r}; pygpu: {result!r}")
        return
    for theirs, ours in zip(expected, result, strict=True):
        if not np.array_equal(theirs, ours.get()) or ours.dtype != theirs.dtype:
            raise Mismatch(f"{told}: numpy: {theirs!r}; pygpu: {ours!r}")


def compress(seed: int, x: Pair) -> Pair | None:
    """Selects the elements along an axis where a condition holds."""
    random = Random(seed)
    axis = random.choice([None, *range(-x.host.ndim - 1, x.host.ndim + 1)])
    inside = axis is not None and -x.host.ndim <= axis < x.host.ndim
    extent = x.host.shape[axis] if inside else x.host.size
    flags = [random.random() < 0.5 for _ in range(max(0, extent - random.choice([0, 0, 1])))]
    condition = np.array(flags, bool)
    given = gpuarray.to_gpu(condition) if random.random() < 0.5 else flags
    theirs = lambda a: np.compress(condition, a, axis)  # noqa: E731
    ours = lambda a: gpuarray.compress(given, a, axis)  # noqa: E731
    return both(f"compress {flags} {axis}", theirs, ours, x, strides=False)
