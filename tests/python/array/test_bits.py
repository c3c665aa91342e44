"""Shifts, divisions with remainders, and rounding, like numpy's."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import BOOL, DTYPES, FLOATS, INTEGERS, Pair, check, check_outcome, numbers, pairs
from tables import each_row

from pygpu import gpuarray

SHIFTS = [operator.lshift, operator.rshift]
IN_PLACE = [operator.ilshift, operator.irshift]


@pytest.mark.parametrize("op", SHIFTS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_place_of_a_shift(op, dtype):
    """Also shifts by at least the number of bits, and by negative counts."""
    limits, bits = np.iinfo(dtype), 8 * dtype.itemsize
    values = np.array([limits.min, limits.max, 0, 1, limits.max // 3], dtype)
    places = [*range(bits + 2), limits.max, limits.min]
    a = np.repeat(values, len(places))
    b = np.tile(np.array(places, dtype), len(values))
    check(op(gpuarray.to_gpu(a), gpuarray.to_gpu(b)), op(a, b))
    for count in (0, 1, bits - 1, bits, min(bits + 1, limits.max)):
        check(op(gpuarray.to_gpu(values), count), op(values, count))
        check(op(count, gpuarray.to_gpu(b)), op(count, b))
        check(op(gpuarray.to_gpu(values), dtype.type(count)), op(values, dtype.type(count)))


@each_row("op", [*SHIFTS, operator.mod, operator.floordiv, divmod])
@each_row("left", DTYPES)
@each_row("right", [np.dtype(t) for t in ("?", "i1", "i8", "u8", "f4", "c8")])
def test_types_of_shifts_and_quotients(op, left, right):
    a, b = numbers(30, left, 1), numbers(30, right, 2)
    if left.kind in "iub" and right.kind in "iub":
        b = np.maximum(b, 1) if right.kind != "b" else np.ones(30, bool)
    if op is divmod:
        for part in range(2):
            check_outcome(
                lambda x, y, part=part: divmod(x, y)[part],
                (a, b),
                (gpuarray.to_gpu(a), gpuarray.to_gpu(b)),
                rtol=None,
            )
        return
    check_outcome(op, (a, b), (gpuarray.to_gpu(a), gpuarray.to_gpu(b)), rtol=None)


@given(pairs(st.sampled_from(INTEGERS + BOOL)), st.integers(0, 70), st.sampled_from(SHIFTS))
def test_a_shift_of_any_view(pair: Pair, places, op):
    check_outcome(op, (pair.host, places), (pair.device, places))


@pytest.mark.parametrize("op", IN_PLACE)
def test_shifts_in_place(op):
    a = np.array([1, 2, -8], np.int16)
    a_gpu = gpuarray.to_gpu(a)
    kept = a_gpu
    a_gpu = op(a_gpu, 2)
    assert a_gpu is kept
    check(a_gpu, op(a.copy(), 2))
    with pytest.raises(TypeError):
        op(a_gpu, 1.5)
    with pytest.raises(TypeError):
        op(gpuarray.zeros(3, np.int16), gpuarray.zeros(3, np.int32) + 0.5)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_divmod_with_numbers(dtype):
    a = np.arange(1, 20).astype(dtype)
    a_gpu = gpuarray.to_gpu(a)
    for got, expected in zip(divmod(a_gpu, 3), divmod(a, 3), strict=True):
        check(got, expected)
    for got, expected in zip(divmod(7, a_gpu), divmod(7, a), strict=True):
        check(got, expected)
    with pytest.raises(TypeError):
        divmod(a_gpu, "x")
    with pytest.raises(TypeError, match="to_gpu"):
        divmod(a_gpu, a)


@each_row("dtype", DTYPES)
@each_row("decimals", [0, 1, 2, -1])
def test_round(dtype, decimals):
    a = numbers((40,), dtype, 3)
    if dtype.kind in "iu":
        # numpy goes through float64, which changes integers beyond 2**53.
        a = np.asarray(a % 120, dtype)
    check_outcome(lambda x: x.round(decimals), (a,), (gpuarray.to_gpu(a),), rtol=None)
    if dtype.kind == "b" and decimals:
        return
    rounded = gpuarray.to_gpu(a).round(decimals)
    check(round(gpuarray.to_gpu(a), decimals), rounded.get())


@pytest.mark.parametrize("decimals", [-(2**31), -(2**31) + 1, 2**31 - 1])
def test_round_to_the_most_decimals(decimals):
    # The scale is infinite: no digits are left, and the call must not panic.
    a = np.array([1.5, -2.5, 0.0], np.float32)
    with np.errstate(all="ignore"):
        scale = np.float64(np.inf)
        expected = np.rint(a * scale) / scale if decimals > 0 else np.rint(a / scale) * scale
    np.testing.assert_array_equal(gpuarray.to_gpu(a).round(decimals).get(), expected)


def test_round_keeps_the_array():
    a = np.array([0.5, 1.5, 2.5, -0.5])
    a_gpu = gpuarray.to_gpu(a)
    check(round(a_gpu), np.array([0.0, 2.0, 2.0, -0.0]))
    check(a_gpu, a)
    check(a_gpu[::-1].round(), a[::-1].round())


def test_truth_values_are_rounded_to_whole_numbers_only():
    a = np.array([True, False])
    check(gpuarray.to_gpu(a).round(), a.round())
    with pytest.raises(TypeError, match="decimals is 5"):
        round(gpuarray.to_gpu(a), 5)


def test_powers_of_truth_values_have_the_type_of_numpy():
    a = np.array([True, False])
    for exponent in (0, 1, 2, 3, 2.0, True, np.int8(2), np.uint8(2), np.int64(2)):
        check(gpuarray.to_gpu(a) ** exponent, a**exponent)


@pytest.mark.parametrize("name", ["sort", "fmin", "fmax", "minimum", "logical_xor"])
def test_results_of_truth_values_are_0_and_1(name):
    numbers = np.array([0, 1, 2, 7, 128, 255, 0, 3], np.uint8)
    operands = [numbers] if name == "sort" else [numbers, numbers[::-1].copy()]
    truths = [gpuarray.to_gpu(it).view(np.bool_) for it in operands]
    result = gpuarray.sort(*truths) if name == "sort" else getattr(np, name)(*truths)
    expected = getattr(np, name)(*(it.astype(bool) for it in operands))
    assert result.dtype == np.bool_
    assert result.view(np.uint8).get().tolist() == expected.astype(np.uint8).tolist()
