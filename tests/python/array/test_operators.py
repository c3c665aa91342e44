"""Operators compared with numpy: every pair of types, any strides, broadcasting, scalars."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import (
    BOOL,
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    SIGNED,
    Pair,
    broadcast_shapes,
    check,
    check_outcome,
    numbers,
    outcome,
    pairs,
    rounding,
    same_strides,
    seeds,
    shapes,
    ulp,
)
from tables import each_row

from pygpu import driver, gpuarray

ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.iand,
    operator.ior,
    operator.ixor,
]
EXACT = {operator.add, operator.sub, operator.iadd, operator.isub}

dtypes = st.sampled_from(DTYPES)


def tolerance(op, *operands) -> float | None:
    """Returns 0 for sums and real arithmetic, which round like numpy; complex products may
    differ."""
    is_complex = any(np.asarray(operand).dtype.kind == "c" for operand in operands)
    return None if is_complex and op not in EXACT else 0.0


@st.composite
def operand_pairs(draw: st.DrawFn, left=dtypes, right=dtypes) -> tuple[Pair, Pair]:
    one, other = draw(broadcast_shapes())
    return draw(pairs(left, one)), draw(pairs(right, other))


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS)
@given(operands=operand_pairs())
def test_array_with_array(op, operands):
    (a, a_gpu), (b, b_gpu) = operands
    check_outcome(op, (a, b), (a_gpu, b_gpu), tolerance(op, a, b))


@each_row("op", ARITHMETIC + COMPARISONS)
@each_row("left", DTYPES)
def test_result_type_of_every_pair_of_types(op, left):
    for right in DTYPES:
        a, b = numbers(7, left, 1), numbers(7, right, 2)
        check_outcome(op, (a, b), (gpuarray.to_gpu(a), gpuarray.to_gpu(b)), tolerance(op, a, b))


@pytest.mark.parametrize("op", [*ARITHMETIC[:4], *COMPARISONS])
@given(data=st.data())
def test_nan_infinity_and_signed_zero(op, data):
    one, other = data.draw(broadcast_shapes())
    floats = st.sampled_from(FLOATS)
    a, a_gpu = data.draw(pairs(floats, one, special=True))
    b, b_gpu = data.draw(pairs(floats, other, special=True))
    check_outcome(op, (a, b), (a_gpu, b_gpu))


def test_division_keeps_the_sign_of_zero():
    a = np.array([1.0, -1.0, 0.0, -0.0], "f4")
    b = np.array([-np.inf, np.inf, -2.0, 2.0], "f4")
    quotient = (gpuarray.to_gpu(a) / gpuarray.to_gpu(b)).get()
    assert np.array_equal(np.signbit(quotient), np.signbit(a / b))


@each_row("divide", [operator.truediv, operator.floordiv, operator.mod])
@each_row("dtype", INTEGERS)
def test_integer_division_by_zero(divide, dtype):
    a = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 3, 0], dtype)
    for divisor in (0, 1, 2) if dtype.kind == "u" else (0, 1, 2, -1, -2):
        b = np.full_like(a, divisor)
        check_outcome(divide, (a, b), (gpuarray.to_gpu(a), gpuarray.to_gpu(b)))


# ---- power --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(dtype):
    a = numbers(40, dtype, 3)
    b = (np.arange(40) % 6).astype(dtype)
    check(gpuarray.to_gpu(a) ** gpuarray.to_gpu(b), a**b)
    check(gpuarray.to_gpu(a) ** 3, a**3)


@pytest.mark.parametrize("dtype", SIGNED)
def test_integer_to_a_negative_power(dtype):
    # numpy refuses, and so does pygpu if the exponent is on the host. Reading an exponent on the
    # device would wait for the device, so the result is then the truncated quotient.
    a = np.array([2, -2, 1, -1, -1, 3], dtype)
    check_outcome(operator.pow, (a, -2), (gpuarray.to_gpu(a), -2))
    b = np.array([-1, -1, -1, -1, -2, 0], dtype)
    expected = np.array([0, 0, 1, -1, 1, 1], dtype)
    check(gpuarray.to_gpu(a) ** gpuarray.to_gpu(b), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_power(dtype):
    a = np.abs(numbers(50, dtype, 4)) + dtype.type(0.25)
    b = np.clip(numbers(50, dtype, 5), -3, 3)
    rtol = 4 * rounding(dtype)
    check(gpuarray.to_gpu(a) ** gpuarray.to_gpu(b), a**b, rtol)
    for exponent in (0, 1, 2, 3, -1, 0.5, 2.5):
        check(gpuarray.to_gpu(a) ** exponent, a**exponent, rtol)
    check(2.0 ** gpuarray.to_gpu(b), 2.0**b, rtol)
    check(pow(gpuarray.to_gpu(a), 2), a**2, rtol)


def test_float_power_of_special_values_follows_c99():
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf, np.nan])
    a, b = np.meshgrid(special, special)
    with np.errstate(all="ignore"):
        expected = a**b
    check(gpuarray.to_gpu(a) ** gpuarray.to_gpu(b), expected, ulp(4, a.dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_power(dtype):
    a = numbers(30, dtype, 6)
    b = np.clip(numbers(30, dtype, 7).real, -2, 2).astype(dtype)
    a = np.where(a == 0, dtype.type(1), a)
    check(gpuarray.to_gpu(a) ** gpuarray.to_gpu(b), a**b, 50 * rounding(dtype), 1e-6)
    check(gpuarray.to_gpu(a) ** 2, a**2, 50 * rounding(dtype), 1e-6)


# ---- unary --------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [operator.neg, operator.invert, abs])
@given(pair=pairs(special=True))
def test_unary(op, pair):
    a, a_gpu = pair
    check_outcome(op, (a,), (a_gpu,), None if a.dtype.kind == "c" else 0.0)


def test_unary_results_are_new_arrays():
    a = gpuarray.to_gpu(np.arange(4.0))
    for op in (operator.neg, abs):
        result = op(a)
        result.fill(9)
        check(a, np.arange(4.0))


def test_plus_is_the_array_itself():
    a = gpuarray.to_gpu(np.arange(4.0))
    assert +a is a


# ---- scalars, by NEP 50 -------------------------------------------------------------------------

python_scalars = st.one_of(
    st.booleans(),
    st.integers(-300, 300),
    st.sampled_from([2**31, 2**63, -(2**63), 2**64, -1]),
    st.floats(-100, 100, allow_nan=False).map(lambda x: round(x, 2)),
    st.sampled_from([float("inf"), float("nan"), 1e39, 1e300, -0.0]),
    st.builds(complex, st.integers(-3, 3), st.integers(-3, 3)),
)


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS)
@given(pair=pairs(), scalar=python_scalars, swapped=st.booleans())
def test_python_scalar(op, pair, scalar, swapped):
    a, a_gpu = pair
    host, device = ((scalar, a), (scalar, a_gpu)) if swapped else ((a, scalar), (a_gpu, scalar))
    rtol = None if isinstance(scalar, complex) else tolerance(op, a)
    check_outcome(op, host, device, rtol)


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS)
@given(pair=pairs(), dtype=dtypes, seed=seeds, swapped=st.booleans())
def test_numpy_scalar(op, pair, dtype, seed, swapped):
    a, a_gpu = pair
    scalar = numbers(1, dtype, seed)[0]
    host, device = ((scalar, a), (scalar, a_gpu)) if swapped else ((a, scalar), (a_gpu, scalar))
    check_outcome(op, host, device, tolerance(op, a, scalar))


@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [
        ("u1", 3, "u1"),
        ("i8", True, "i8"),
        ("?", 3, "i8"),
        ("?", 1.5, "f8"),
        ("i4", 1.5, "f8"),
        ("f4", 1.5, "f4"),
        ("f2", 3, "f2"),
        ("f4", 1j, "c8"),
        ("f8", 1j, "c16"),
        ("f4", np.float64(1.5), "f8"),
        ("i4", np.int64(1), "i8"),
        ("i4", np.float32(1), "f8"),
        ("i2", np.float32(1), "f4"),
    ],
)
def test_type_of_a_result_with_a_scalar(dtype, scalar, expected):
    a = gpuarray.zeros(3, dtype)
    assert (a + scalar).dtype == np.dtype(expected)
    assert (scalar + a).dtype == np.dtype(expected)


def test_python_integer_that_the_type_cannot_hold():
    a = gpuarray.zeros(3, np.uint8)
    for scalar in (256, -1, 2**70):
        with pytest.raises(OverflowError, match=str(scalar)):
            a + scalar
    # The comparison still returns a result.
    check(a < 256, np.ones(3, bool))
    check(a > -1, np.ones(3, bool))
    check(a == 2**70, np.zeros(3, bool))


# Neighbours that float64 does not distinguish, and the limits of both types.
LARGE = [0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("code", ["i1", "i8"])
def test_signed_and_unsigned_integers_are_compared_exactly(compare, code):
    limits = np.iinfo(code)
    unsigned = np.array(LARGE, "u8")
    signed = np.array(
        [
            value
            for value in (*LARGE, -1, -(2**53) - 1, -(2**63))
            if limits.min <= value <= limits.max
        ],
        code,
    )[:, np.newaxis]
    ours, theirs = gpuarray.to_gpu(signed), gpuarray.to_gpu(unsigned)
    check(compare(ours, theirs), compare(signed, unsigned))
    check(compare(theirs, ours), compare(unsigned, signed))
    check(compare(ours.T, theirs[::-1][:1]), compare(signed.T, unsigned[::-1][:1]))
    for scalar in unsigned:
        check(compare(ours, scalar), compare(signed, scalar))
    for scalar in signed[:, 0]:
        check(compare(theirs, scalar), compare(unsigned, scalar))


def test_mixed_comparisons_of_many_elements():
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, 70_001, "u8")
    signed = np.where(rng.random(bits.size) < 0.5, bits, bits - rng.integers(0, 2, bits.size, "u8"))
    signed = signed.view("i8")
    check(
        gpuarray.to_gpu(signed) < gpuarray.to_gpu(bits),
        np.array([int(a) < int(b) for a, b in zip(signed, bits, strict=True)]),
    )


HUGE = [2**64, -(2**64), 2**127, 2**200, -(2**200), 10**400, -(10**400)]


@each_row("number", HUGE, ids=lambda number: f"{len(str(number))} digits")
@each_row("code", ["?", "u1", "i8", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_python_integers_beyond_every_type(code, number):
    """Returns numpy's value, or raises numpy's error."""
    a = np.ones(3, code)
    operations = [lambda x, n: x + n, lambda x, n: n * x, lambda x, n: x / n, *COMPARISONS]
    for operation in operations:
        check_outcome(operation, (a, number), (gpuarray.to_gpu(a), number))


def test_zero_dimensional_arrays_are_arrays_not_scalars():
    a = gpuarray.to_gpu(np.arange(3, dtype="f4"))
    b = gpuarray.to_gpu(np.array(2.0))
    assert (a * b).dtype == np.float64
    check(b * b, np.array(4.0))


def test_a_numpy_array_with_one_element_counts_as_its_element():
    a = np.arange(6, dtype="f4").reshape(2, 3)
    a_gpu = gpuarray.to_gpu(a)
    for one in (np.array([2.5]), np.array([3], "i4"), np.array([1j])):
        check(a_gpu * one, a * one)
        check(one - a_gpu, one - a)
    a_gpu += np.array([1], "f4")
    check(a_gpu, a + 1)
    check(gpuarray.maximum(a_gpu, np.array([2], "f4")), np.maximum(a + 1, 2))
    a_gpu.fill(np.array([2.5]))
    check(a_gpu, np.full((2, 3), 2.5, "f4"))
    for other in (np.ones(3), np.ones((1, 1)), np.ones(0)):
        with pytest.raises(TypeError, match="to_gpu"):
            a_gpu * other


# ---- in place -----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", IN_PLACE)
@given(data=st.data())
def test_in_place_with_array(op, data):
    a, a_gpu = data.draw(pairs())
    smaller = data.draw(st.integers(0, a.ndim))
    b, b_gpu = data.draw(pairs(shape=a.shape[smaller:]))
    before = a.copy()
    expected, result = outcome(op, a.copy(), b), outcome(op, a_gpu, b_gpu)
    if isinstance(expected, Exception):
        kind = TypeError if isinstance(expected, TypeError) else ValueError
        assert isinstance(result, kind), f"numpy: {expected!r}; pygpu: {result!r}"
        check(a_gpu, before)
        return
    assert result is a_gpu
    check(a_gpu, expected, tolerance(op, a, b) or rounding(expected.dtype) * (a.dtype.kind == "c"))


@pytest.mark.parametrize("op", IN_PLACE)
@given(pair=pairs(), scalar=python_scalars)
def test_in_place_with_scalar(op, pair, scalar):
    a, a_gpu = pair
    before = a.copy()
    expected, result = outcome(op, a.copy(), scalar), outcome(op, a_gpu, scalar)
    if isinstance(expected, Exception):
        assert isinstance(result, (TypeError, OverflowError)), f"{expected!r}; {result!r}"
        check(a_gpu, before)
        return
    assert result is a_gpu
    check(a_gpu, expected, rounding(expected.dtype) if a.dtype.kind == "c" else 0.0)


def test_in_place_writes_through_views_and_aliases():
    a = np.arange(12.0).reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    alias = a_gpu
    alias += 1
    view = a_gpu[1:, ::2]
    view *= 10
    expected = a + 1
    expected[1:, ::2] *= 10
    check(a_gpu, expected)


def test_in_place_power():
    a = np.arange(1, 6, dtype="f4")
    a_gpu = gpuarray.to_gpu(a)
    a_gpu **= 2
    check(a_gpu, a**2)
    a_gpu **= gpuarray.to_gpu(np.full(5, 0.5))
    check(a_gpu, a, 1e-6)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (slice(1, None), slice(None, -1)),
        (slice(None, -1), slice(1, None)),
        (slice(None), slice(None, None, -1)),
        (slice(1, 9, 2), slice(0, 4)),
    ],
)
@pytest.mark.parametrize("length", [10, 100_000])
def test_in_place_over_overlapping_views_reads_before_it_writes(target, source, length):
    a = numbers(length, "f8", 8)
    a_gpu = gpuarray.to_gpu(a)
    written, read = a_gpu[target], a_gpu[source]
    written += read
    expected = a.copy()
    expected[target] = a[target] + a[source]
    check(a_gpu, expected)


def test_in_place_with_its_own_transpose():
    a = numbers((60, 60), "f4", 9)
    a_gpu = gpuarray.to_gpu(a)
    a_gpu += a_gpu.T
    check(a_gpu, a + a.T)


def test_in_place_cannot_grow():
    a = gpuarray.zeros((1, 3), np.float32)
    with pytest.raises(ValueError, match=r"\(1, 3\)|\(2, 3\)"):
        a += gpuarray.zeros((2, 3), np.float32)


def test_in_place_same_kind():
    a = gpuarray.zeros(3, np.int32)
    with pytest.raises(TypeError, match="float64"):
        a += 1.5
    with pytest.raises(TypeError, match="float64"):
        a /= gpuarray.ones(3, np.int32)
    b = gpuarray.zeros(3, np.float32)
    b += gpuarray.ones(3, np.float64)
    assert b.dtype == np.float32
    with pytest.raises(TypeError, match="complex"):
        b += 1j


# ---- the result's place in memory ---------------------------------------------------------------


@given(pair=pairs(), op=st.sampled_from([operator.add, operator.eq]))
def test_result_keeps_the_operands_order(pair, op):
    a, a_gpu = pair
    assert same_strides(op(a_gpu, a_gpu), op(a, a))
    assert same_strides(op(a_gpu, 1), op(a, 1))


@pytest.mark.parametrize("order", ["C", "F"])
def test_result_of_contiguous_operands_is_contiguous(order):
    a = np.asarray(numbers((3, 4, 5), "f4", 10), order=order)
    a_gpu = gpuarray.to_gpu(a)
    for result in (a_gpu + a_gpu, a_gpu * 2, -a_gpu, abs(a_gpu), a_gpu > 0, a_gpu.astype("f8")):
        assert result.flags.c_contiguous == (order == "C")
        assert result.flags.f_contiguous == (order == "F")


def test_operands_survive():
    a, b = numbers((4, 5), "f4", 11), numbers((4, 5), "f4", 12)
    a_gpu, b_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    for op in (*ARITHMETIC[:6], *COMPARISONS):
        op(a_gpu, b_gpu)
    check(a_gpu, a)
    check(b_gpu, b)


@pytest.mark.parametrize("size", [1, 31, 1023, 4097, 300_001])
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8", "c8"])
def test_sizes_around_the_blocks_of_a_kernel(size, dtype):
    a, b = numbers(size, dtype, 13), numbers(size, dtype, 14)
    a_gpu, b_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    check(a_gpu + b_gpu, a + b)
    check(a_gpu[::-1] - b_gpu, a[::-1] - b)
    check(a_gpu[::2] * b_gpu[::2], a[::2] * b[::2], rounding(a.dtype) if dtype == "c8" else 0.0)


def test_large_transposed_and_broadcast_operands():
    a, row = numbers((700, 300), "f4", 15), numbers(300, "f4", 16)
    a_gpu, row_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(row)
    check(a_gpu + row_gpu, a + row)
    check(a_gpu.T + a_gpu.T, a.T + a.T)
    square, square_gpu = a[:300], a_gpu[:300]
    check(square_gpu + square_gpu.T, square + square.T)
    column, column_gpu = a[:, :1], a_gpu[:, :1]
    check(column_gpu * row_gpu, column * row)


# ---- astype -------------------------------------------------------------------------------------


def convertible(source: np.dtype, target: np.dtype):
    """Returns numbers whose conversion C defines: no NaN, infinity or overflow into an integer."""

    def values(shape, dtype, seed):
        whole = numbers(shape, dtype, seed)
        if target.kind in "iu" and source.kind in "fc":
            low = -100 if target.kind == "i" else 0
            whole = np.clip(whole.real, low, 100).astype(dtype)
        return whole

    return values


@pytest.mark.parametrize("source", DTYPES)
@given(data=st.data(), target=dtypes)
def test_astype(source, data, target):
    a, a_gpu = data.draw(pairs(source, values=convertible(source, target)))
    expected = outcome(lambda: a.astype(target))
    result = a_gpu.astype(target)
    check(result, expected)
    assert same_strides(result, expected)


# In C the conversion of NaN and infinity to an integer is undefined.
@pytest.mark.parametrize("target", [*BOOL, *FLOATS, *COMPLEX])
def test_astype_of_special_floats(target):
    a = numbers(200, "f8", 17, special=True)
    with np.errstate(all="ignore"):
        check(gpuarray.to_gpu(a).astype(target), a.astype(target))


def test_astype_same_type_copies():
    a = gpuarray.to_gpu(np.arange(3.0))
    b = a.astype(np.float64)
    b.fill(7)
    check(a, np.arange(3.0))


@given(shape=shapes)
def test_mul_add(shape):
    a, b = numbers(shape, "f8", 18), numbers(shape, "f8", 19)
    a_gpu, b_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    check(a_gpu.mul_add(2, b_gpu, 3), 2 * a + 3 * b, 1e-14, 1e-14)
    out = gpuarray.empty_like(a_gpu)
    assert a_gpu.mul_add(0.5, b_gpu, -1, out=out) is out
    check(out, 0.5 * a - b, 1e-14, 1e-14)


def test_mul_add_calls_the_timer_as_pycuda_does():
    a = gpuarray.to_gpu(np.arange(6, dtype=np.float32))
    calls = []
    found = a.mul_add(2, a, 3, add_timer=lambda *given: calls.append(given))
    [(elements, seconds)] = calls
    assert found.get().tolist() == [0, 5, 10, 15, 20, 25]
    assert elements == 3 * a.size
    assert seconds() >= 0
    with pytest.raises(ZeroDivisionError):
        a.mul_add(2, a, 3, add_timer=lambda *_: 1 / 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_integers_compare_with_numbers_outside_their_type(dtype):
    limits = np.iinfo(dtype)
    host = np.array([limits.min, 0, limits.max], dtype)
    device = gpuarray.to_gpu(host)
    for number in (limits.min - 1, limits.max + 1):
        for compare in (operator.eq, operator.ne, operator.lt, operator.ge):
            np.testing.assert_array_equal(compare(device, number).get(), compare(host, number))


def test_operations_on_a_chosen_stream():
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    a_gpu, stream = gpuarray.to_gpu(a), driver.Stream()
    view = a_gpu.on(stream)
    assert (view.shape, view.strides, view.ptr) == (a_gpu.shape, a_gpu.strides, a_gpu.ptr)
    assert view.base is a_gpu
    event = driver.Event()
    result = view[:, 1:] * 2 + 1
    event.record(stream)
    event.synchronize()
    check(result, a[:, 1:] * 2 + 1)
    view += 5  # Runs after the other streams' uses of the memory.
    check(a_gpu, a + 5)
    check(a_gpu.on(None), a + 5)
    for wrong in (1.5, "stream", object()):
        with pytest.raises(TypeError, match="stream"):
            a_gpu.on(wrong)
