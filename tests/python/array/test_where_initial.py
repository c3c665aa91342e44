"""``where=`` and ``initial=`` of reductions: every combination with the other keywords, through
numpy's function with either kind of array and through this package's function."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from device import IS_DOUBLE
from pairs import check, numbers, outcome
from tables import each_row

from pygpu import gpuarray

UNSET = np._NoValue
INITIAL = ("sum", "prod", "min", "max", "nansum", "nanprod")
MOMENTS = ("mean", "var", "std")
FUNCTIONS = (*INITIAL, *MOMENTS, "any", "all")
# On a fake driver each kernel runs the C++ compiler.
DTYPES = ("i1", "f4") if IS_DOUBLE else ("?", "i1", "u2", "i8", "u8", "f2", "f4", "f8", "c8")
SHAPES = ((3, 4), (0, 4)) if IS_DOUBLE else ((3, 4), (0, 4), (2, 0), (), (5,))
# With `PYGPU_TEST_ALL` most of them are tested.
COMBINATIONS = 400 if os.environ.get("PYGPU_TEST_ALL") else 4
RTOL = {"f2": 4e-3, "f4": 1e-5, "f8": 1e-12, "c8": 1e-5, "c16": 1e-12}


def masks(shape):
    """Yields each form of a mask, for numpy and for a device."""
    chosen = np.random.default_rng(7).random(shape) < 0.5
    yield UNSET, UNSET
    for one in (True, False, np.True_, np.False_):
        yield one, one
    yield chosen, gpuarray.to_gpu(np.asarray(chosen))
    if shape:
        row = np.arange(shape[-1]) % 2 == 0
        yield row.tolist(), row.tolist()
        yield row, gpuarray.to_gpu(row)
        column = np.ones((*shape[:-1], 1), bool)
        yield column, gpuarray.to_gpu(column)
        # This mask does not broadcast to the array.
        more = np.ones((2, *shape), bool)
        yield more, gpuarray.to_gpu(more)
    yield np.ones(shape), gpuarray.to_gpu(np.ones(shape))


def arguments(name, dtype, shape):
    """Yields the other keywords in every combination; each call gets its own output."""
    initial = [UNSET]
    if name in INITIAL:
        initial += [0, 2, 1.5, -7, 300, None, True, np.int8(3), np.nan, 1j, np.ones(2)]
    axes = [None, *range(len(shape)), -1, (0,), tuple(range(len(shape))), 5]
    outs = [None, dtype, "f8"] if name not in MOMENTS else [None, "f8"]
    named = itertools.product(initial, axes, (UNSET, True), outs)
    yield from (dict(zip(("initial", "axis", "keepdims", "out"), it)) for it in named)


def thinned(found, count):
    """Returns an evenly spaced selection."""
    found = list(found)
    return found[:: max(1, len(found) // count)]


def result_shape(a, keywords):
    given = {key: keywords[key] for key in ("axis", "keepdims")}
    found = outcome(lambda: np.any(np.zeros(a.shape, bool), **given))
    return () if isinstance(found, Exception) else np.shape(found)


def is_undefined(dtype, keywords):
    """Returns true if numpy casts to the output's dtype by a looser rule than same_kind, or adds
    booleans in the output."""
    out = keywords["out"]
    return out is not None and (out == "?" or not np.can_cast(dtype, out, "same_kind"))


@each_row("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_combination(name, dtype):
    for shape in SHAPES:
        # In complex numbers, operations on infinities depend on their order.
        a = numbers(shape, dtype, special=name not in MOMENTS and dtype != "c8")
        if np.dtype(dtype).kind in "iu":
            a = np.asarray(a % 9, dtype)
        a_gpu = gpuarray.to_gpu(np.asarray(a))
        every = itertools.product(masks(shape), arguments(name, dtype, shape))
        for (where, where_gpu), keywords in thinned(every, 12 if IS_DOUBLE else COMBINATIONS):
            if is_undefined(dtype, keywords):
                continue
            host, device = (a, where), (a_gpu, where_gpu)
            compare(getattr(np, name), getattr(np, name), host, device, keywords)
            if name != "sum" or where is not UNSET or keywords["axis"] is not None:
                # PyCUDA's sum of all elements keeps the dtype.
                compare(getattr(np, name), getattr(gpuarray, name), host, device, keywords)
            if hasattr(a_gpu, name):
                compare(getattr(np.ndarray, name), method(name), host, device, keywords)


def method(name):
    return lambda array, **given: getattr(array, name)(**given)


def compare(theirs, ours, host, device, keywords):
    """Asserts that two functions return the same, or both refuse the call."""
    given = {key: value for key, value in keywords.items() if value is not UNSET and key != "out"}
    shape, made = result_shape(host[0], keywords), (None, None)
    if keywords["out"] is not None:
        made = np.zeros(shape, keywords["out"]), gpuarray.zeros(shape, keywords["out"])
    results = []
    for function, (array, where), out in ((theirs, host, made[0]), (ours, device, made[1])):
        masked = {} if where is UNSET else {"where": where}
        filled = {} if out is None else {"out": out}
        results.append(outcome(lambda: function(array, **given, **masked, **filled)))  # noqa: B023
    expected, result = results
    text = f"{keywords}, where={host[1]!r}, a={host[0]!r}: numpy has {expected!r}, not {result!r}"
    refused = isinstance(expected, Exception), isinstance(result, Exception)
    assert refused[0] == refused[1], text
    if refused[1]:
        assert isinstance(result, TypeError | ValueError | OverflowError | IndexError), text
        return
    try:
        exact = expected.dtype.kind not in "fc"
        check(result, expected, 0.0 if exact else RTOL.get(host[0].dtype.str[1:], 1e-12))
    except AssertionError as error:
        raise AssertionError(text) from error


@each_row("dtype", ("?", "i1", "u1", "i8", "u8", "f4", "c8"))
def test_means_of_no_elements(dtype):
    """numpy's conversion of NaN to the dtype depends on the processor."""
    for shape, axis in (((0,), None), ((0, 2), 0), ((2, 0), 1), ((2, 0), 0)):
        a = np.zeros(shape, "i4")
        for function in (np.mean, gpuarray.mean, method("mean")):
            result = function(gpuarray.to_gpu(a), axis=axis, dtype=dtype)
            check(result, outcome(lambda: np.mean(a, axis=axis, dtype=dtype)))  # noqa: B023


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max"])
def test_methods_take_initial_and_where_by_position(name):
    a = numbers((3, 4), "i4")
    mask = a % 2 == 0
    a_gpu, mask_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(np.asarray(mask))
    own = (None,) if name in ("sum", "prod") else ()
    for first in (
        (0, *own, None, False, 3),
        (None, *own, None, True, 3),
        (1, *own, None, False, -1),
    ):
        for more, more_gpu in (((), ()), ((mask,), (mask_gpu,))):
            expected = getattr(a, name)(*first, *more)
            check(getattr(a_gpu, name)(*first, *more_gpu), expected)
    with pytest.raises(TypeError, match="initial by position and by keyword"):
        getattr(a_gpu, name)(0, *own, None, False, 3, initial=3)


@each_row("name", ("sum", "prod", "min", "max", "any", "all", "mean", "std", "var"))
def test_methods_name_what_they_do_not_take(name):
    a = gpuarray.to_gpu(numbers((3,), "f4"))
    with pytest.raises(TypeError, match=f"{name}\\(\\) got an unexpected keyword argument 'were'"):
        getattr(a, name)(were=True)
    if name in ("any", "all", "mean", "std", "var"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'initial'"):
            getattr(a, name)(initial=1)
