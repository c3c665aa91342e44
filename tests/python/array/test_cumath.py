"""pygpu.cumath against numpy's functions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from pairs import check, ulp
from tables import each_row

from pygpu import cumath, driver, gpuarray

# Name, numpy's name, range of the argument.
FUNCTIONS = [
    ("fabs", "abs", -5, 5),
    ("ceil", "ceil", -5, 5),
    ("floor", "floor", -5, 5),
    ("exp", "exp", -5, 5),
    ("log", "log", 0.1, 9),
    ("log10", "log10", 0.1, 9),
    ("sqrt", "sqrt", 0, 9),
    ("sin", "sin", -9, 9),
    ("cos", "cos", -9, 9),
    ("tan", "tan", -1.4, 1.4),
    ("asin", "arcsin", -0.95, 0.95),
    ("acos", "arccos", -0.95, 0.95),
    ("atan", "arctan", -9, 9),
    ("sinh", "sinh", -4, 4),
    ("cosh", "cosh", -4, 4),
    ("tanh", "tanh", -4, 4),
]
REAL_ONLY = {"fabs", "ceil", "floor"}
ERROR = {"f4": 2e-6, "f8": 1e-14, "c8": 5e-6, "c16": 5e-14}


def argument(dtype, low, high):
    dtype = np.dtype(dtype)
    real = np.linspace(low, high, 1001)
    if dtype.kind == "c":
        return (real + 0.7j * real[::-1]).astype(dtype)
    return real.astype(dtype)


@each_row("dtype", ["f4", "f8"])
@each_row(("ours", "theirs", "low", "high"), FUNCTIONS)
def test_real(ours, theirs, low, high, dtype):
    a = argument(dtype, low, high)
    a_gpu = gpuarray.to_gpu(a)
    expected = getattr(np, theirs)(a)
    check(getattr(cumath, ours)(a_gpu), expected, ERROR[dtype], ERROR[dtype])
    check(getattr(cumath, ours)(a_gpu[::-3]), expected[::-3], ERROR[dtype], ERROR[dtype])


@each_row("dtype", ["c8", "c16"])
@each_row(("ours", "theirs", "low", "high"), [row for row in FUNCTIONS if row[0] not in REAL_ONLY])
def test_complex(ours, theirs, low, high, dtype):
    a = argument(dtype, low, high)
    expected = getattr(np, theirs)(a)
    check(getattr(cumath, ours)(gpuarray.to_gpu(a)), expected, ERROR[dtype], ERROR[dtype])


def test_out_and_stream():
    a = argument("f4", 0.1, 9)
    out = gpuarray.empty(a.shape, a.dtype)
    stream = driver.Stream()
    assert cumath.log(gpuarray.to_gpu(a), out=out, stream=stream) is out
    check(out, np.log(a), 2e-6, 2e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fmod_modf_frexp_ldexp(dtype):
    a = (np.arange(100) / 10 - 5).astype(dtype)
    b = np.where(a >= 0, a + 0.3, a - 0.3).astype(dtype)
    a_gpu, b_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    check(cumath.fmod(a_gpu, b_gpu), np.fmod(a, b))
    fraction, whole = cumath.modf(a_gpu)
    # These results are exact in every implementation.
    expected_fraction, expected_whole = np.modf(a)
    check(fraction, expected_fraction)
    check(whole, expected_whole)
    significand, exponent = cumath.frexp(a_gpu)
    expected_significand, expected_exponent = np.frexp(a)
    np.testing.assert_array_equal(significand.get(), expected_significand)
    np.testing.assert_array_equal(exponent.get(), expected_exponent)
    np.testing.assert_array_equal(cumath.ldexp(significand, exponent).get(), a)


@each_row("exponents", ["b", "h", "i", "q"])
@each_row("dtype", ["f2", "f4", "f8", "i1", "i2", "i4"])
def test_ldexp_has_the_type_of_the_significand(dtype, exponents):
    a, b = np.array([1, 3, -5, 0], dtype), np.array([3, -2, 9, 100], exponents)
    with np.errstate(all="ignore"):
        check(cumath.ldexp(gpuarray.to_gpu(a), gpuarray.to_gpu(b)), np.ldexp(a, b))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_parts_of_special_values_keep_the_sign(dtype):
    a = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, -3.0, 3.0, -2.5, 2.5], dtype)
    parts = cumath.modf(gpuarray.to_gpu(a))
    for ours, theirs in zip(parts, np.modf(a), strict=True):
        check(ours, theirs)
        known = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(ours.get())[known], np.signbit(theirs)[known])


def test_special_values():
    a = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0])
    a_gpu = gpuarray.to_gpu(a)
    with np.errstate(all="ignore"):
        for ours, theirs in (("sqrt", np.sqrt), ("log", np.log), ("exp", np.exp), ("sin", np.sin)):
            # Finite values may be rounded differently than numpy's.
            check(getattr(cumath, ours)(a_gpu), theirs(a), ulp(2, a.dtype))


def test_functions_of_two_arguments_store_into_out():
    a = np.array([7.5, -7.5, 3.0])
    out = gpuarray.empty(3, np.float64)
    assert cumath.fmod(gpuarray.to_gpu(a), 2, out=out) is out
    check(out, np.fmod(a, 2))
    assert cumath.ldexp(gpuarray.to_gpu(a), 3, out=out) is out
    check(out, np.ldexp(a, 3))


def test_functions_describe_themselves():
    parameters = inspect.signature(cumath.sin).parameters
    assert list(parameters) == ["array", "stream_or_out", "out", "stream"]
    assert list(inspect.signature(cumath.fmod).parameters)[:3] == ["arg", "mod", "stream"]
    for name in cumath.__all__:
        function = getattr(cumath, name)
        assert function.__name__ == name
        assert function.__module__ == "pygpu.cumath"
        assert function.__doc__
