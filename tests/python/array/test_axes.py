"""Reductions and cumulative functions along axes, against numpy, for any shape and strides."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import COMPLEX, DTYPES, FLOATS, REAL, check, check_outcome, numbers, pairs
from tables import each_row

from pygpu import driver, gpuarray

# Relative to the sum of magnitudes, for the additions of a small array.
SUM_ERROR = {2: 4e-3, 4: 1e-6, 8: 1e-15}
small = st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple)
few_examples = settings(max_examples=settings().max_examples // 2)
full = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@st.composite
def axes(draw, ndim):
    """Draws None, one axis, or a tuple of axes, counted from either end."""
    chosen = draw(st.lists(st.integers(0, ndim - 1), unique=True, max_size=ndim))
    signed = [axis - ndim * draw(st.integers(0, 1)) for axis in chosen]
    if len(signed) == 1 and draw(st.booleans()):
        return signed[0]
    return tuple(signed) if draw(st.booleans()) else None


def tolerance(a, dtype):
    if dtype.kind not in "fc":
        return 0.0
    size = np.empty(0, dtype).real.itemsize
    return float(np.sum(np.abs(a.astype("c16")))) * SUM_ERROR[size]


@few_examples
@given(st.data(), st.booleans())
def test_sums(data, keepdims):
    a, a_gpu = data.draw(pairs(shape=small))
    axis = data.draw(axes(a.ndim))
    expected = np.sum(a, axis=axis, keepdims=keepdims)
    check(np.sum(a_gpu, axis=axis, keepdims=keepdims), expected, atol=tolerance(a, expected.dtype))
    if axis is not None:
        got = a_gpu.sum(axis=axis, keepdims=keepdims)
        check(got, expected, atol=tolerance(a, expected.dtype))
        check(gpuarray.sum(a_gpu, axis), np.sum(a, axis), atol=tolerance(a, expected.dtype))


@few_examples
@given(st.data(), st.booleans())
def test_products(data, keepdims):
    dtypes = [dtype for dtype in DTYPES if dtype.kind not in "fc"] + [np.dtype("f8")]
    a, a_gpu = data.draw(pairs(st.sampled_from(dtypes), small))
    axis = data.draw(axes(a.ndim))
    check(a_gpu.prod(axis, keepdims=keepdims), np.prod(a, axis, keepdims=keepdims), rtol=1e-12)


@few_examples
@given(st.data(), st.booleans())
@pytest.mark.parametrize("name", ["min", "max", "any", "all", "ptp"])
def test_choices(name, data, keepdims):
    dtypes = REAL[1:] if name == "ptp" else REAL
    a, a_gpu = data.draw(pairs(st.sampled_from(dtypes), full))
    axis = data.draw(axes(a.ndim))
    expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
    check(getattr(gpuarray, name)(a_gpu, axis=axis, keepdims=keepdims), expected)
    if name != "ptp":
        check(getattr(a_gpu, name)(axis=axis, keepdims=keepdims), expected)


@few_examples
@given(st.data(), st.booleans())
@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_positions(name, data, keepdims):
    a, a_gpu = data.draw(pairs(st.sampled_from(REAL), full, special=True))
    axis = data.draw(st.sampled_from([None, *range(-a.ndim, a.ndim)]))
    expected = getattr(np, name)(a, axis, keepdims=keepdims)
    check(getattr(gpuarray, name)(a_gpu, axis, keepdims=keepdims), expected)
    out = gpuarray.empty(expected.shape, np.int64)
    assert getattr(np, name)(a_gpu, axis, out, keepdims=keepdims) is out
    check(out, expected)


@few_examples
@given(st.data(), st.booleans(), st.integers(0, 1))
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_statistics(name, data, keepdims, ddof):
    a, a_gpu = data.draw(pairs(st.sampled_from([*REAL, *COMPLEX]), full))
    if a.dtype.kind in "iu":
        # The squares of larger numbers have rounding errors larger than the differences.
        a, a_gpu = a % 100, a_gpu % 100
    axis = data.draw(axes(a.ndim))
    given = {"axis": axis, "keepdims": keepdims} | ({"ddof": ddof} if name != "mean" else {})
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(getattr(np, name)(a, **given))
    part = np.empty(0, expected.dtype).real.itemsize
    scale = 1 + float(np.max(np.abs(a.astype("c16"))) ** (1 if name == "mean" else 2))
    error = {2: 6e-3, 4: 4e-6, 8: 1e-13}[part] * scale
    if name == "std":
        error = error**0.5
    check(getattr(a_gpu, name)(**given), expected, atol=error)
    check(getattr(np, name)(a_gpu, **given), expected, atol=error)


@few_examples
@given(st.data(), st.booleans())
def test_counts(data, keepdims):
    a, a_gpu = data.draw(pairs(shape=small, special=True))
    axis = data.draw(axes(a.ndim))
    check(
        gpuarray.count_nonzero(a_gpu, axis, keepdims=keepdims),
        np.count_nonzero(a, axis, keepdims=keepdims),
    )


@few_examples
@given(st.data())
@pytest.mark.parametrize("name", ["nansum", "nanprod"])
def test_reductions_that_leave_out_nan(name, data):
    a, a_gpu = data.draw(pairs(st.sampled_from([np.dtype("f8"), np.dtype("i2")]), small))
    if a.dtype.kind == "f" and a.size:
        holes = a > 2
        a = np.where(holes, np.nan, a)
        a_gpu = gpuarray.to_gpu(a)
    axis = data.draw(axes(a.ndim))
    check(getattr(np, name)(a_gpu, axis), getattr(np, name)(a, axis), rtol=1e-12)


@few_examples
@given(st.data())
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_values(name, data):
    dtypes = [*REAL[:-3], np.dtype("f8")]
    a, a_gpu = data.draw(pairs(st.sampled_from(dtypes), small))
    axis = data.draw(st.sampled_from([None, *range(-a.ndim, a.ndim)]))
    expected = getattr(np, name)(a, axis)
    check(getattr(gpuarray, name)(a_gpu, axis), expected, rtol=1e-11, atol=1e-11)
    out = gpuarray.empty(expected.shape, expected.dtype)
    assert getattr(np, name)(a_gpu, axis, out=out) is out
    check(out, expected, rtol=1e-11, atol=1e-11)


@few_examples
@given(st.data(), st.booleans())
def test_an_output_of_any_strides_and_a_wider_dtype(data, keepdims):
    a, a_gpu = data.draw(pairs(st.sampled_from([np.dtype("i4"), np.dtype("f4")]), full))
    axis = data.draw(axes(a.ndim))
    expected = np.sum(a, axis, keepdims=keepdims)
    storage = gpuarray.zeros([2 * side for side in expected.shape][::-1], np.float64)
    out = storage[(slice(None, None, 2),) * expected.ndim].T
    assert gpuarray.sum(a_gpu, axis=axis, keepdims=keepdims, dtype="f8", out=out) is out
    check(out, np.sum(a, axis, dtype="f8", keepdims=keepdims), rtol=1e-6, atol=1e-4)


def test_an_output_that_overlaps_the_elements():
    a = np.arange(12, dtype="f4").reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    a_gpu.sum(axis=0, out=a_gpu[1])
    check(a_gpu[1], a.sum(axis=0))
    b_gpu = gpuarray.to_gpu(a)
    gpuarray.cumsum(b_gpu, 1, out=b_gpu)
    check(b_gpu, np.cumsum(a, 1))


def test_on_a_stream_and_with_an_allocator():
    sizes = []

    def allocate(size):
        sizes.append(size)
        return driver.mem_alloc(size)

    stream = driver.Stream()
    a = np.arange(12, dtype="f4").reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    total = a_gpu.sum(axis=1, stream=stream, allocator=allocate)
    assert (total.allocator, sizes[-1]) == (allocate, 12)
    check(total, a.sum(axis=1))
    check(a_gpu.mean(axis=0, stream=stream), a.mean(axis=0))
    check(gpuarray.cumsum(a_gpu, 0, stream=stream, allocator=allocate), np.cumsum(a, 0))


@each_row("name", ["sum", "prod", "min", "max", "any", "mean", "var", "cumsum"])
@each_row("axis", [2, -3, (0, 0), (0, 5), "0", 1.5, [0]])
def test_axes_that_are_refused(name, axis):
    a = np.ones((2, 3))
    function = getattr(np, name)
    check_outcome(lambda x: function(x, axis=axis), (a,), (gpuarray.to_gpu(a),))


NAMES = ["sum", "prod", "min", "max", "any", "all", "ptp", "count_nonzero", "nansum", "nanprod"]
NAMES += ["mean", "var", "argmin", "argmax", "cumsum", "cumprod", "sort", "argsort"]


@each_row("name", NAMES)
@each_row("axis", [0, -1, 1, -2, (0,), (), None])
def test_an_array_without_axes(name, axis):
    """numpy's reductions accept axis 0 or -1 for such an array, but no tuple; other functions
    refuse."""
    a = np.array(3, "i8")
    function = getattr(np, name)
    takes_several = name not in ("argmin", "argmax", "cumsum", "cumprod", "sort", "argsort")
    if takes_several or not isinstance(axis, tuple):
        check_outcome(lambda x: function(x, axis=axis), (a,), (gpuarray.to_gpu(a),))
    if name in NAMES[:14]:
        keeping = lambda x: function(x, axis=axis, keepdims=True)  # noqa: E731
        if takes_several or not isinstance(axis, tuple):
            check_outcome(keeping, (a,), (gpuarray.to_gpu(a),))


@pytest.mark.parametrize("axis", [0, -1, 1])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, axis: np.repeat(x, 3, axis),
        lambda x, axis: np.compress([True], x, axis),
        lambda x, axis: np.add.reduce(x, axis),
        lambda x, axis: np.add.reduce(x, axis, keepdims=True),
        lambda x, axis: np.add.accumulate(x, axis),
    ],
)
def test_functions_along_an_axis_of_an_array_without_axes(function, axis):
    a = np.array(3.5)
    check_outcome(lambda x: function(x, axis), (a,), (gpuarray.to_gpu(a),))


def test_outputs_that_are_refused():
    a_gpu = gpuarray.to_gpu(np.ones((2, 3), "f4"))
    with pytest.raises(ValueError, match=r"\(2,?\).*\(3,?\)"):
        a_gpu.sum(axis=0, out=gpuarray.empty(2, "f4"))
    with pytest.raises(TypeError, match="int32"):
        a_gpu.sum(axis=0, out=gpuarray.empty(3, "i4"))
    with pytest.raises(ValueError, match="twice"):
        a_gpu.sum(axis=0, out=gpuarray.broadcast_to(gpuarray.zeros((), "f4"), (3,)))
    with pytest.raises(TypeError, match="out"):
        a_gpu.sum(axis=0, out=np.empty(3, "f4"))
    with pytest.raises(TypeError, match="positional"):
        a_gpu.sum(0, None, None, None, 5, True, 1)


def test_no_elements():
    a = np.zeros((0, 3), "f4")
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu.sum(axis=0), a.sum(axis=0))
    check(a_gpu.max(axis=1), a.max(axis=1))
    check(a_gpu.prod(axis=0), a.prod(axis=0))
    check(a_gpu.mean(axis=0), np.full(3, np.nan, "f4"))
    none = np.zeros((0, 0))
    for name in ("argmin", "argmax"):
        function = getattr(np, name)
        check(function(a_gpu, 1), function(a, 1))
        check_outcome(lambda x: function(x, 1), (none,), (gpuarray.to_gpu(none),))  # noqa: B023
    for name in ("min", "max"):
        with pytest.raises(ValueError, match="identity"):
            getattr(a_gpu, name)(axis=0)
        with pytest.raises(ValueError, match="empty"):
            getattr(gpuarray, f"arg{name}")(a_gpu, 0)


def test_pycudas_function_keeps_the_dtype_and_the_method_is_numpys():
    a = np.arange(6, dtype="i2").reshape(2, 3)
    a_gpu = gpuarray.to_gpu(a)
    stream = driver.Stream()
    for result in (gpuarray.sum(a_gpu), gpuarray.sum(a_gpu, None, stream)):
        check(result, a.sum(dtype="i2"))
    for result in (a_gpu.sum(), a_gpu.sum(stream=stream), a_gpu.sum(None), np.sum(a_gpu)):
        check(result, a.sum())
    check(a_gpu.sum(None, np.float32), a.sum(None, np.float32))
    check(a_gpu.prod(None, np.float64), a.prod(None, np.float64))
    check((a_gpu == a_gpu).sum(), 6)
    check(gpuarray.full((100, 100), 200, np.uint8).sum(), np.uint64(2_000_000))
    check(a_gpu.sum(np.float32), a.sum(dtype="f4"))
    check(gpuarray.sum(a_gpu, np.float32, stream), a.sum(dtype="f4"))
    check(gpuarray.min(a_gpu, stream), a.min())
    check(a_gpu.sum(0, np.float32), a.sum(0, np.float32))
    check(a_gpu.max(1), a.max(1))


@pytest.mark.parametrize("dtype", [*FLOATS])
def test_long_axes(dtype):
    a = numbers((3, 70_001), dtype, 5)
    a_gpu = gpuarray.to_gpu(a)
    exact = a.astype("f8")
    error = {2: 2e-3, 4: 1e-6, 8: 1e-14}[dtype.itemsize]
    check(a_gpu.mean(axis=1), exact.mean(1).astype(dtype), atol=error * 10)
    check(a_gpu.std(axis=1), exact.std(1).astype(dtype), rtol=error)
    check(a_gpu.T.max(axis=0), a.max(1))


# Long axes with many packs and a few remaining elements, and rows that are not whole packs.
LONG = [((3, 5003), 1), ((517, 36), 0), ((70, 33), 1)]


@pytest.mark.parametrize(("shape", "axis"), LONG)
@pytest.mark.parametrize("dtype", ["f4", "i1"])
def test_positions_in_long_axes(shape, axis, dtype):
    a = np.round(10 * numbers(shape, np.dtype("f8"), 7)).clip(-9, 9).astype(dtype)
    if a.dtype.kind == "f":
        a.ravel()[5 :: shape[1] * 2 + 1] = np.nan
        a[0 if axis else slice(None), 0 if not axis else slice(None)] = -np.inf
    a_gpu = gpuarray.to_gpu(a)
    check(gpuarray.argmax(a_gpu, axis), np.argmax(a, axis))
    check(gpuarray.argmin(a_gpu[::-1], axis), np.argmin(a[::-1], axis))
    check(gpuarray.argmin(a_gpu), np.argmin(a))


@pytest.mark.parametrize(("shape", "axis"), [*LONG, ((4, 3), 1)])
def test_variances_far_from_zero(shape, axis):
    a = (numbers(shape, np.dtype("f8"), 8) + 1000).astype("f4")
    a_gpu = gpuarray.to_gpu(a)
    for over in (axis, None):
        check(a_gpu.var(over), a.astype("f8").var(over).astype("f4"), rtol=3e-6)
    same = gpuarray.empty(shape, "f4")
    same.fill(1e10)
    # The square of the mean's rounding error.
    assert (same.var(axis).get() < 1e7).all()
    same[1, 1] = np.inf
    alone = np.arange(shape[1 - axis]) == 1
    np.testing.assert_array_equal(np.isnan(same.var(axis).get()), alone)
