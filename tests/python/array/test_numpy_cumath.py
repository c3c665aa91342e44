"""Functions of pygpu.cumath that PyCUDA does not have, compared with numpy's for every dtype that
numpy supports, and with the standard library's `math`."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from pairs import check, ulp
from tables import each_row

from pygpu import cumath, driver, gpuarray

REAL = ["?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d"]
DTYPES = [*REAL, "F", "D"]

# The name, and the range of fractional arguments.
UNARY = [
    ("arccosh", 1, 60),
    ("arcsinh", -60, 60),
    ("arctanh", -0.99, 0.99),
    ("cbrt", -60, 60),
    ("deg2rad", -400, 400),
    ("exp2", -9, 9),
    ("expm1", -4, 4),
    ("isfinite", -4, 4),
    ("isinf", -4, 4),
    ("isnan", -4, 4),
    ("log1p", -0.9, 60),
    ("log2", 0.01, 60),
    ("positive", -4, 4),
    ("rad2deg", -7, 7),
    ("reciprocal", 0.1, 4),
    ("rint", -4, 4),
    ("sign", -4, 4),
    ("signbit", -4, 4),
    ("square", -60, 60),
    ("trunc", -4, 4),
]
BINARY = [
    "arctan2",
    "copysign",
    "fmax",
    "fmin",
    "gcd",
    "heaviside",
    "hypot",
    "lcm",
    "left_shift",
    "logaddexp",
    "logaddexp2",
    "logical_xor",
    "nextafter",
    "right_shift",
]
# numpy computes these in rounded steps, which are less precise near zeros.
ROUNDED = {"F": 4e-6, "D": 8e-15}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e-7, -1e-7, 3.0, 100.0]


def numbers(dtype, low, high):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        # numpy leaves the reciprocal of integer zero, and of False, undefined.
        return np.array([True] * 6)
    if dtype.kind in "ui":
        least = 1 if dtype.kind == "u" or low >= 0 else -20
        whole = np.arange(least, 60)
        whole = whole[whole != 0].astype(dtype)
        return np.append(whole, np.array([np.iinfo(dtype).max], dtype))
    real = np.linspace(low, high, 257)
    if dtype.kind == "c":
        return (real + 0.7j * real[::-1]).astype(dtype)
    return real.astype(dtype)


def expected_of(function, *arguments):
    """Returns numpy's result, or None if numpy refuses the call."""
    try:
        with np.errstate(all="ignore"):
            return getattr(np, function)(*arguments)
    except TypeError:
        return None


def compare(got, expected):
    dtype = expected.dtype
    assert got.dtype == dtype
    if dtype.kind == "c":
        error = ROUNDED[dtype.char]
        scale = np.maximum(np.abs(expected), 1e-3)
        difference = np.abs(got.get() - expected)
        finite = np.isfinite(expected)
        assert np.all(difference[finite] <= error * scale[finite])
        np.testing.assert_array_equal(np.isfinite(got.get()), finite)
    elif dtype.kind == "f":
        check(got, expected, ulp(4, dtype))
        known = ~np.isnan(expected)
        signs = np.signbit(got.get())[known]
        np.testing.assert_array_equal(signs, np.signbit(expected)[known])
    else:
        check(got, expected)


@each_row("dtype", DTYPES)
@each_row(("name", "low", "high"), UNARY)
def test_function_of_one(name, low, high, dtype):
    if np.dtype(dtype).kind == "c" and name == "sign":
        pytest.skip("numpy 1 and 2 disagree about signs of complex numbers, which are refused")
    a = numbers(dtype, low, high)
    expected = expected_of(name, a)
    function = getattr(cumath, name)
    if expected is None:
        with pytest.raises(TypeError, match="not defined"):
            function(gpuarray.to_gpu(a))
        return
    compare(function(gpuarray.to_gpu(a)), expected)
    compare(function(gpuarray.to_gpu(a)[::-2]), expected[::-2])


@each_row("dtype", ["e", "f", "d"])
@each_row("name", [row[0] for row in UNARY])
def test_special_values_of_one(name, dtype):
    limits = np.finfo(dtype)
    a = np.array([*SPECIAL, limits.max, limits.tiny, -limits.smallest_subnormal], dtype)
    compare(getattr(cumath, name)(gpuarray.to_gpu(a)), expected_of(name, a))


@each_row("dtype", DTYPES)
@each_row("name", BINARY)
def test_function_of_two(name, dtype):
    a = numbers(dtype, -9, 9)
    b = np.roll(a, 5)
    expected = expected_of(name, a, b)
    function = getattr(cumath, name)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    if expected is None:
        with pytest.raises(TypeError, match="not defined"):
            function(x, y)
        return
    compare(function(x, y), expected)
    compare(function(x, b[3].item()), expected_of(name, a, b[3].item()))


@each_row("dtype", ["e", "f", "d"])
@each_row("name", [name for name in BINARY if name not in ("gcd", "lcm")])
def test_special_values_of_two(name, dtype):
    limits = np.finfo(dtype)
    values = [*SPECIAL, limits.max, limits.tiny, -limits.smallest_subnormal]
    a, b = (part.ravel().astype(dtype) for part in np.meshgrid(values, values))
    expected = expected_of(name, a, b)
    if expected is None:
        return
    if name == "hypot":
        # The largest finite number, rounded differently, becomes infinity.
        beside = expected != limits.max
        a, b, expected = a[beside], b[beside], expected[beside]
    got = getattr(cumath, name)(gpuarray.to_gpu(a), gpuarray.to_gpu(b))
    if name in ("fmin", "fmax", "nextafter"):
        # The sign of a zero result depends on the processor in numpy, and differs for half
        # precision.
        got, expected = got + 0, expected + 0
    compare(got, expected)


def by_math(name, x):
    """Returns the standard library's result, or C's value where that function raises."""
    if name in ("gamma", "lgamma") and x <= 0 and (math.isinf(x) or x == math.floor(x)):
        if name == "lgamma":
            return np.inf
        return math.copysign(np.inf, x) if x == 0 else np.nan
    try:
        return getattr(math, name)(x)
    except OverflowError:
        return np.inf


@each_row("dtype", ["e", "f", "d", "i", "?", "B"])
@each_row("name", ["erf", "erfc", "gamma", "lgamma"])
def test_functions_of_the_standard_library(name, dtype):
    values = [*np.linspace(-5.3, 6.7, 301), *np.linspace(0.01, 30, 100), 1e-8, -1e-8, 170.5]
    values += [0.0, 1.0, 2.0, 27.0] if dtype in "i?B" else [0.0, -0.0, -1.0, -2.0, 1.0, 2.0]
    values += [] if dtype in "i?B" else [np.inf, -np.inf, np.nan]
    if dtype in "?B":
        values = np.abs(values)
    with np.errstate(all="ignore"):
        a = np.array(values).astype(dtype)
    got = getattr(cumath, name)(gpuarray.to_gpu(a))
    assert got.dtype == (np.dtype(dtype) if dtype in "efd" else np.float64)
    expected = np.array([by_math(name, float(x)) for x in a])
    with np.errstate(all="ignore"):
        expected = expected.astype(got.dtype)
    found = got.get()
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    # The logarithm is zero at 1, at 2 and between the poles, where its error is absolute; gamma
    # multiplies its argument's error.
    unit = np.finfo(got.dtype).eps
    scale = np.maximum(np.abs(expected), 1 if name == "lgamma" else 0)[finite].astype(np.float64)
    least = np.finfo(got.dtype).smallest_subnormal
    difference = np.abs(found[finite].astype(np.float64) - expected[finite].astype(np.float64))
    assert np.all(difference <= 16 * unit * scale + least)


def test_out_stream_and_names():
    a, b = np.linspace(0.5, 4, 50), np.linspace(3, -2, 50)
    x, y, out = gpuarray.to_gpu(a), gpuarray.to_gpu(b), gpuarray.empty(50, np.float64)
    stream = driver.Stream()
    assert cumath.hypot(x, y, out=out, stream=stream) is out
    compare(out, np.hypot(a, b))
    assert cumath.cbrt(x, out) is out
    compare(out, np.cbrt(a))
    compare(cumath.log1p(x, stream), np.log1p(a))
    with pytest.raises(TypeError, match="x1 and x2 are numbers"):
        cumath.copysign(1.0, 2.0)
    with pytest.raises(TypeError, match="x2"):
        cumath.copysign(x, "1")


def test_shapes_are_broadcast_and_types_promoted():
    a, b = np.arange(12, dtype="i2").reshape(4, 3) - 5, np.linspace(-1, 1, 3, dtype="f4")
    compare(cumath.arctan2(gpuarray.to_gpu(a), gpuarray.to_gpu(b)), np.arctan2(a, b))
    left, right = np.arange(24, dtype="u1"), np.arange(1, 25, dtype="i4")
    compare(cumath.gcd(gpuarray.to_gpu(left), gpuarray.to_gpu(right)), np.gcd(left, right))


def test_zero_has_no_reciprocal_among_integers():
    for dtype in "bhiqBHIQ":
        a = gpuarray.to_gpu(np.array([0, 1, 2], dtype))
        np.testing.assert_array_equal(cumath.reciprocal(a).get(), [0, 1, 0])


@pytest.mark.parametrize("dtype", "FD")
def test_parts_of_complex_reciprocals_have_numpys_signs(dtype):
    parts = np.array([0.0, -0.0, 1, -1, 2, -2, np.inf, -np.inf])
    z = np.zeros((8, 8), dtype)
    z.real, z.imag = parts[:, None], parts
    got = cumath.reciprocal(gpuarray.to_gpu(z)).get()
    with np.errstate(all="ignore"):
        expected = np.reciprocal(z)
    for ours, theirs in ((got.real, expected.real), (got.imag, expected.imag)):
        np.testing.assert_array_equal(ours, theirs)
        known = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(theirs)[known])


INEXACT = ["arctan2", "copysign", "hypot", "heaviside", "nextafter", "logaddexp", "logaddexp2"]


@pytest.mark.parametrize("name", INEXACT)
def test_integers_of_two_types_are_computed_as_narrow_as_numpys(name):
    for left, right in itertools.product("?bBhHiIlLefd", repeat=2):
        a, b = np.array([1, 0, 1], left), np.array([0, 1, 1], right)
        found = getattr(np, name)(gpuarray.to_gpu(a), gpuarray.to_gpu(b))
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
        assert found.dtype == expected.dtype, (left, right)
        compare(found, expected)
