"""Pairs of equal arrays, numpy's and pygpu's, with the same shape and strides.

Tests compare both with `check` (values) or `check_outcome` (values or errors).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from pygpu import gpuarray

BOOL = [np.dtype(bool)]
SIGNED = [np.dtype(f"i{size}") for size in (1, 2, 4, 8)]
UNSIGNED = [np.dtype(f"u{size}") for size in (1, 2, 4, 8)]
FLOATS = [np.dtype(f"f{size}") for size in (2, 4, 8)]
COMPLEX = [np.dtype(f"c{size}") for size in (8, 16)]
INTEGERS = SIGNED + UNSIGNED
REAL = BOOL + INTEGERS + FLOATS
DTYPES = REAL + COMPLEX

# The error of one operation that is correctly or almost correctly rounded.
ROUNDING = {"f2": 2e-3, "f4": 2e-6, "f8": 1e-14, "c8": 4e-6, "c16": 2e-14}


class Pair(NamedTuple):
    host: np.ndarray
    device: gpuarray.GPUArray


def numbers(
    shape: tuple[int, ...] | int, dtype: Any, seed: int = 0, special: bool = False
) -> np.ndarray:
    """Returns an array of varied numbers: zeros, both signs, the type's whole range for integers.

    `special` adds NaN, both infinities and negative zero to floats.
    """
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        small = np.asarray(rng.integers(max(limits.min, -5), 6, shape), dtype)
        large = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.7, small, large)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        whole = np.empty(shape, dtype)
        whole.real = numbers(shape, part, seed, special)
        whole.imag = numbers(shape, part, seed + 1, special)
        return whole
    values = np.asarray(np.round(rng.normal(0, 3, shape), 1), dtype)
    if special:
        odd = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0], dtype), shape)
        values = np.where(rng.random(shape) < 0.3, odd, values)
    return np.asarray(values, dtype)


shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
some_shapes = st.lists(st.integers(1, 5), max_size=3).map(tuple)
seeds = st.integers(0, 2**16)


@st.composite
def pairs(
    draw: st.DrawFn,
    dtype: st.SearchStrategy[np.dtype] | np.dtype | None = None,
    shape: st.SearchStrategy[tuple[int, ...]] | tuple[int, ...] | None = None,
    special: bool = False,
    values: Callable[[tuple[int, ...], np.dtype, int], np.ndarray] | None = None,
) -> Pair:
    """Draws a pair that is contiguous, transposed, stepped, reversed or offset."""
    chosen = draw(st.sampled_from(DTYPES) if dtype is None else _strategy(dtype))
    final = draw(shapes if shape is None else _strategy(shape))
    seed = draw(seeds)
    plain = draw(st.booleans())
    rank = len(final)
    order = tuple(range(rank)) if plain else tuple(draw(st.permutations(range(rank))))
    cuts = []
    for axis in order:
        count = final[axis]
        step = 1 if plain else draw(st.sampled_from([1, 1, 2, -1, -2]))
        before = 0 if plain else draw(st.integers(0, 1))
        if count == 0:
            cuts.append((before, slice(0, 0)))
            continue
        first, last = before, before + (count - 1) * abs(step)
        if step > 0:
            cuts.append((last + 1, slice(first, last + 1, step)))
        else:
            cuts.append((last + 1, slice(last, first - 1 if first else None, step)))
    stored = tuple(length for length, _ in cuts)
    if values is None:
        whole = numbers(stored, chosen, seed, special)
    else:
        whole = values(stored, chosen, seed)
    index = tuple(cut for _, cut in cuts)
    axes = tuple(order.index(axis) for axis in range(rank))
    device = gpuarray.to_gpu(whole)
    if rank:
        return Pair(whole[index].transpose(axes), device[index].transpose(axes))
    return Pair(whole, device)


@st.composite
def broadcast_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draws two shapes that broadcast together in numpy."""
    result = draw(shapes)
    two = []
    for _ in range(2):
        shape = tuple(1 if draw(st.integers(0, 3)) == 0 else side for side in result)
        two.append(shape[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else shape)
    return two[0], two[1]


def _strategy(value: Any) -> st.SearchStrategy[Any]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def check(result: gpuarray.GPUArray, expected: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Asserts that `result` is a device array of `expected`'s type, shape and values.

    NaN equals NaN; the two zeros are equal.
    """
    expected = np.asarray(expected)
    assert isinstance(result, gpuarray.GPUArray)
    got = result.get()
    assert isinstance(got, np.ndarray)
    assert (got.dtype, result.dtype) == (expected.dtype, expected.dtype)
    assert (got.shape, result.shape) == (expected.shape, expected.shape)
    if rtol == 0.0 and atol == 0.0:
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def rounding(dtype: np.dtype) -> float:
    """Returns the relative error of one rounded operation of `dtype`; 0 for exact types."""
    return ROUNDING.get(f"{dtype.kind}{dtype.itemsize}", 0.0)


def ulp(count: float, dtype: np.dtype) -> float:
    """Returns the largest relative error of `count` units in the last place."""
    return count * float(np.finfo(dtype).eps)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of `function`, or the exception that it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except Exception as error:
            return error


def check_outcome(
    function: Callable[..., Any],
    host: tuple[Any, ...],
    device: tuple[Any, ...],
    rtol: float | None = 0.0,
) -> None:
    """Asserts that `function` does the same with the device's arguments as with the host's: it
    returns the same values, or raises the same type of error. `rtol=None` allows one rounding.
    """
    expected, result = outcome(function, *host), outcome(function, *device)
    if isinstance(expected, Exception):
        # numpy's own subclasses (UFuncTypeError, AxisError) count as their base classes.
        kinds = (TypeError, ValueError, OverflowError, IndexError, ZeroDivisionError)
        kind = next(kind for kind in kinds if isinstance(expected, kind))
        assert isinstance(result, kind), f"numpy: {expected!r}; pygpu: {result!r}"
        return
    if isinstance(result, Exception):
        raise AssertionError(f"numpy gives {expected!r}") from result
    expected = np.asarray(expected)
    check(result, expected, rounding(expected.dtype) if rtol is None else rtol)


def same_strides(device: gpuarray.GPUArray, host: np.ndarray) -> bool:
    """Returns true if both have the same strides, except along axes of length 1."""
    return host.size == 0 or all(
        ours == theirs
        for ours, theirs, side in zip(device.strides, host.strides, host.shape, strict=True)
        if side > 1
    )
