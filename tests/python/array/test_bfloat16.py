"""bfloat16, whose numpy dtype comes from the package `ml_dtypes`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from pairs import DTYPES, check
from processes import run_python
from tables import each_row

from pygpu import _core, cumath, gpuarray

BF = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def _quiet():
    """Ignores the warnings of `ml_dtypes` for NaN and overflow."""
    with np.errstate(all="ignore"):
        yield


def every() -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(BF)


def some(*shape: int) -> np.ndarray:
    values = np.random.default_rng(0).normal(0, 3, shape)
    return values.astype(BF)


def same_bits(got: gpuarray.GPUArray, expected: np.ndarray) -> None:
    """Asserts that the bits are equal; NaNs may have any bits."""
    values = got.get()
    assert got.dtype == values.dtype == expected.dtype == BF
    assert values.shape == expected.shape
    different = (values.view(np.uint16) != expected.view(np.uint16)) & ~(
        np.isnan(values) & np.isnan(expected)
    )
    assert not different.any(), (values[different][:5], expected[different][:5])


def test_every_value_comes_back():
    a = every()
    a_gpu = gpuarray.to_gpu(a)
    assert a_gpu.dtype == BF
    np.testing.assert_array_equal(a_gpu.get().view(np.uint16), a.view(np.uint16))
    np.testing.assert_array_equal(a_gpu.view(np.uint16).get(), a.view(np.uint16))
    same_bits(a_gpu.copy()[::-3], a[::-3])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions(dtype):
    a = every()
    if dtype.kind in "iu":
        # numpy does not define the result for values outside the type's range.
        limits = np.iinfo(dtype)
        wide = a.astype(np.float64)
        a = a[(wide > float(limits.min) - 1) & (wide < float(limits.max))]
    check(gpuarray.to_gpu(a).astype(dtype), a.astype(dtype))
    values = np.concatenate([a.astype(dtype), np.arange(100).astype(dtype)])
    same_bits(gpuarray.to_gpu(values).astype(BF), values.astype(BF))


def test_rounding_of_single_and_double_precision():
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    for lower in (1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        a = (upper | np.uint32(lower)).view(np.float32)
        same_bits(gpuarray.to_gpu(a).astype(BF), a.astype(BF))
        double = a.astype(np.float64) * (1 + 1e-12)
        same_bits(gpuarray.to_gpu(double).astype(BF), double.astype(BF))


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "true_divide", "floor_divide", "mod"]
)
def test_operators(name):
    a, b = every(), np.roll(every(), 12345)
    operators = {"true_divide": "truediv", "floor_divide": "floordiv", "multiply": "mul"}
    method = f"__{operators.get(name, name[:3])}__"
    expected = getattr(np, name)(a, b)
    got = getattr(gpuarray.to_gpu(a), method)(gpuarray.to_gpu(b))
    if name in ("floor_divide", "mod"):
        # numpy's own types and `ml_dtypes` differ for infinities, zeros and overflow.
        usual = np.isfinite(expected) & (abs(a) < 1e3) & (abs(b) > 1e-3) & (abs(b) < 1e3)
        same_bits(gpuarray.to_gpu(got.get()[usual]), expected[usual])
    else:
        same_bits(got, expected)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons(operator):
    a, b = every(), np.roll(every(), 1)
    values = {"a": gpuarray.to_gpu(a), "b": gpuarray.to_gpu(b)}
    check(eval(f"a {operator} b", values), eval(f"a {operator} b", {"a": a, "b": b}))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_promotion(dtype):
    a, b = some(20), np.arange(1, 21).astype(dtype)
    a_gpu, b_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    for function in (np.add, np.multiply):
        expected = function(a, b)
        for got in (
            {np.add: lambda x, y: x + y, np.multiply: lambda x, y: x * y}[function](x, y)
            for x, y in ((a_gpu, b_gpu), (b_gpu, a_gpu))
        ):
            check(got, expected)


@each_row(
    "number",
    [True, 3, -300, 1.5, 2j, *(np.dtype(t).type(2) for t in "?bBhHiIqQefdFD"), BF.type(2.5)],
    ids=repr,
)
def test_numbers(number):
    a = some(20)
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu + number, a + number)
    check(number * a_gpu, number * a)
    check(a_gpu == number, a == number)
    if np.result_type(type(number)).kind != "c":
        a += number
        a_gpu += number
        check(a_gpu, a)


# Both compute the functions in single precision.
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("sqrt", "sqrt"),
        ("exp", "exp"),
        ("log", "log"),
        ("sin", "sin"),
        ("cos", "cos"),
        ("tanh", "tanh"),
        ("atan", "arctan"),
        ("floor", "floor"),
        ("ceil", "ceil"),
        ("rint", "rint"),
        ("trunc", "trunc"),
        ("cbrt", "cbrt"),
        ("expm1", "expm1"),
        ("log1p", "log1p"),
        ("arcsinh", "arcsinh"),
        ("square", "square"),
        ("reciprocal", "reciprocal"),
        ("deg2rad", "deg2rad"),
    ],
)
def test_functions(ours, theirs):
    a = every()
    got = getattr(cumath, ours)(gpuarray.to_gpu(a))
    assert got.dtype == BF
    expected = getattr(np, theirs)(a.astype(np.float32))
    # The last bit of single precision may decide between two neighbouring values.
    values, nearest = got.get(), expected.astype(BF)
    different = values.view(np.uint16) != nearest.view(np.uint16)
    different &= ~(np.isnan(values) & np.isnan(nearest))
    assert different.sum() < 20
    np.testing.assert_allclose(
        values[different].astype("f4"), expected[different], rtol=2.0**-8 * 1.01, atol=1e-38
    )


def test_tests_of_every_value():
    a = every()
    a_gpu = gpuarray.to_gpu(a)
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        check(getattr(cumath, name)(a_gpu), getattr(np, name)(a))
    same_bits(-a_gpu, -a)
    same_bits(abs(a_gpu), abs(a))


def test_reductions_keep_their_digits_in_single_precision():
    a = some(70, 300)
    a_gpu, wide = gpuarray.to_gpu(a), a.astype(np.float64)
    total = gpuarray.sum(a_gpu)
    assert total.dtype == BF
    np.testing.assert_allclose(float(total.get()), wide.sum(), rtol=2.0**-8)
    # Small integers, whose cumulative sums are exact.
    steps = np.random.default_rng(1).integers(-1, 2, (20, 300)).astype(BF)
    check(_core.scan(_core.Reduction.Sum, gpuarray.to_gpu(steps), axis=1), steps.cumsum(1))
    highest = _core.scan(_core.Reduction.Maximum, a_gpu, axis=0)
    check(highest, np.maximum.accumulate(a, axis=0))
    check(gpuarray.max(a_gpu), a.max())
    check(gpuarray.min(a_gpu), a.min())
    with_nan = a.copy()
    with_nan[3, 4] = np.nan
    assert np.isnan(gpuarray.max(gpuarray.to_gpu(with_nan)).get())
    # Accumulated in bfloat16 the sum would stop at 512.
    ones = gpuarray.to_gpu(np.full(1000, 1.0, BF))
    assert gpuarray.sum(ones).get() == 1000
    # Each product is rounded, and their sum only once at its end.
    expected = (a[0] * a[1]).astype(np.float64).sum()
    dot = gpuarray.dot(a_gpu[0], a_gpu[1])
    np.testing.assert_allclose(float(dot.get()), expected, rtol=2.0**-8)


def test_creation():
    for make in ("zeros", "ones"):
        check(getattr(gpuarray, make)((3, 4), BF), getattr(np, make)((3, 4), BF))
    check(gpuarray.zeros(3, "bfloat16"), np.zeros(3, BF))
    check(gpuarray.full(5, 0.3, BF), np.full(5, 0.3, BF))
    for arguments in ((100,), (0.5, 20, 0.3), (5, -5, -1)):
        expected = np.arange(*arguments).astype(np.float32)
        got = gpuarray.arange(*arguments, dtype=BF)
        assert (got.dtype, got.shape) == (BF, expected.shape)
        np.testing.assert_allclose(got.get().astype("f4"), expected, rtol=2.0**-7)
    a_gpu = gpuarray.empty(7, BF)
    a_gpu.fill(1 / 3)
    check(a_gpu, np.full(7, 1 / 3, BF))
    a_gpu.fill(BF.type(2.5))
    check(a_gpu, np.full(7, 2.5, BF))


def test_movement():
    a = some(6, 8)
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu.T.copy(), a.T)
    check(
        gpuarray.take(gpuarray.to_gpu(a[0]), gpuarray.to_gpu(np.array([3, 0, -1]))),
        a[0, [3, 0, -1]],
    )
    condition = a > 0
    check(
        gpuarray.where(gpuarray.to_gpu(condition), a_gpu, -a_gpu),
        np.where(condition, a, -a),
    )
    check(gpuarray.concatenate([a_gpu, a_gpu]), np.concatenate([a, a]))
    a_gpu[2] = 1.5
    a[2] = 1.5
    check(a_gpu, a)
    check(a_gpu[1, 2], a[1, 2])
    assert a_gpu.__cuda_array_interface__["typestr"] == a.__array_interface__["typestr"]


def test_without_the_package():
    run_python(
        """
        import sys
        sys.modules["ml_dtypes"] = None  # as if it were not installed
        import numpy as np
        import pygpu.autoinit
        from pygpu import gpuarray
        assert gpuarray.to_gpu(np.ones(3, np.float16)).get().sum() == 3
        try:
            gpuarray.zeros(3, "bfloat16")
        except TypeError as error:
            assert "ml_dtypes" in str(error)
        else:
            raise AssertionError
        """
    )


def test_the_name_alone_imports_the_package():
    run_python(
        """
        import sys
        import pygpu.autoinit
        from pygpu import gpuarray
        assert "ml_dtypes" not in sys.modules
        a = gpuarray.zeros(3, "bfloat16")
        assert str(a.dtype) == "bfloat16" and "ml_dtypes" in sys.modules
        """
    )
