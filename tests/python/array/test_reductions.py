"""Reductions: sum, any, all, min, max, dot, and reductions over a subset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import BOOL, COMPLEX, DTYPES, FLOATS, INTEGERS, REAL, check, numbers, pairs, some_shapes

from pygpu import driver, gpuarray

# Relative to the sum of magnitudes: the rounding of each addition of a small array.
SUM_ERROR = {2: 4e-3, 4: 1e-6, 8: 1e-15}


def check_sum(result, a, dtype):
    expected = np.sum(a, dtype=dtype)
    if np.dtype(dtype).kind in "fc":
        exact = np.sum(np.abs(a), dtype=np.float64)
        part = np.empty(0, dtype).real.itemsize
        check(result, expected, atol=float(exact) * SUM_ERROR[part])
    else:
        check(result, expected)


@given(pair=pairs())
def test_sum_keeps_the_type(pair):
    a, a_gpu = pair
    result = gpuarray.sum(a_gpu)
    assert result.shape == ()
    check_sum(result, a, a.dtype)


@given(pair=pairs(st.sampled_from(BOOL + INTEGERS)), dtype=st.sampled_from(["i8", "u8", "f8"]))
def test_sum_in_another_type(pair, dtype):
    a, a_gpu = pair
    check_sum(gpuarray.sum(a_gpu, dtype=dtype), a, dtype)


def test_sum_of_small_integers_in_a_wide_type_does_not_wrap():
    a = np.full(100_000, 200, np.uint8)
    check(gpuarray.sum(gpuarray.to_gpu(a), dtype=np.int64), np.array(20_000_000))
    check(gpuarray.sum(gpuarray.to_gpu(a)), np.sum(a, dtype=np.uint8))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_sum_of_many_is_as_accurate_as_pairwise(dtype):
    a = (numbers(1_000_003, dtype, 31) + 100).astype(dtype)
    exact = np.sum(a.astype("c16"))
    error = abs(complex(gpuarray.sum(gpuarray.to_gpu(a)).get()) - exact) / abs(exact)
    assert error < (1e-13 if dtype == "f8" else 2e-6)


@given(pair=pairs(st.sampled_from(REAL), some_shapes))
def test_min_and_max(pair):
    a, a_gpu = pair
    check(gpuarray.min(a_gpu), np.min(a))
    check(gpuarray.max(a_gpu), np.max(a))


@given(pair=pairs(special=True))
def test_any_and_all(pair):
    a, a_gpu = pair
    check(gpuarray.any(a_gpu), np.any(a))
    check(gpuarray.all(a_gpu), np.all(a))
    check(a_gpu.any(), np.any(a))
    check(a_gpu.all(), np.all(a))


@pytest.mark.parametrize("position", [0, 1, 70_000, 99_999])
def test_one_odd_element_among_many(position):
    for dtype in (np.bool_, np.int32, np.float32):
        a = np.zeros(100_000, dtype)
        a[position] = 1
        assert bool(gpuarray.to_gpu(a).any().get())
        assert not bool(gpuarray.to_gpu(a).all().get())
        assert bool(gpuarray.to_gpu(1 - a.astype("i4")).any().get())
        assert not bool(gpuarray.to_gpu(1 - a.astype("i4")).all().get())
        assert gpuarray.max(gpuarray.to_gpu(a)).get() == 1
        assert gpuarray.sum(gpuarray.to_gpu(a), dtype=np.int64).get() == 1


@given(a=pairs(shape=(6,)), b=pairs(shape=(6,)))
def test_dot(a, b):
    expected_type = np.result_type(a.host, b.host)
    products = a.host.astype(expected_type) * b.host.astype(expected_type)
    result = gpuarray.dot(a.device, b.device)
    if expected_type.kind in "fc":
        magnitude = float(np.sum(np.abs(products), dtype="f8"))
        part = np.empty(0, expected_type).real.itemsize
        scale = 4 * SUM_ERROR[part]
        check(result, np.sum(products, dtype=expected_type), atol=magnitude * scale)
    else:
        check(result, np.sum(products, dtype=expected_type))


def test_dot_in_another_type():
    a = np.full(1000, 100, np.int8)
    check(
        gpuarray.dot(gpuarray.to_gpu(a), gpuarray.to_gpu(a), dtype=np.int64), np.array(10_000_000)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_arrays(dtype):
    a = gpuarray.zeros((0, 3), dtype)
    check(gpuarray.sum(a), np.zeros((), dtype))
    check(gpuarray.any(a), np.array(False))
    check(gpuarray.all(a), np.array(True))
    check(gpuarray.dot(a, a), np.zeros((), dtype))
    for reduce, name in ((gpuarray.min, "minimum"), (gpuarray.max, "maximum")):
        with pytest.raises(ValueError, match=f"reduction operation {name} which has no identity"):
            reduce(a)


def test_a_single_element():
    a = gpuarray.to_gpu(np.array(2.5))
    for reduce in (gpuarray.sum, gpuarray.min, gpuarray.max):
        check(reduce(a), np.array(2.5))


# ---- subsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_subset_reductions(index, dtype):
    a, b = numbers(500, dtype, 32), numbers(500, dtype, 33)
    if np.dtype(dtype).kind == "i":
        a, b = a % 1000, b % 1000
    subset = np.random.default_rng(34).permutation(500)[:123].astype(index)
    a_gpu, b_gpu, subset_gpu = (gpuarray.to_gpu(x) for x in (a, b, subset))
    rtol = 0 if np.dtype(dtype).kind == "i" else 1e-4
    check(gpuarray.subset_sum(subset_gpu, a_gpu), a[subset].sum(dtype=dtype), rtol)
    check(gpuarray.subset_min(subset_gpu, a_gpu), a[subset].min())
    check(gpuarray.subset_max(subset_gpu, a_gpu), a[subset].max())
    check(
        gpuarray.subset_dot(subset_gpu, a_gpu, b_gpu),
        np.sum(a[subset] * b[subset], dtype=dtype),
        rtol,
    )


def test_reductions_on_a_stream_and_with_an_allocator():
    sizes = []

    def allocate(size):
        sizes.append(size)
        return driver.mem_alloc(size)

    stream = driver.Stream()
    a = np.arange(1000, dtype="f4")
    a_gpu = gpuarray.to_gpu_async(a, stream=stream)
    total = gpuarray.sum(a_gpu, stream=stream, allocator=allocate)
    assert total.allocator is allocate
    assert sizes[-1] == 4
    check(total, a.sum())
    check(gpuarray.any(a_gpu, stream=stream, allocator=allocate), np.array(True))
    check(gpuarray.dot(a_gpu, a_gpu, stream=stream, allocator=allocate), np.dot(a, a), 1e-6)
    check(gpuarray.max(a_gpu, stream=stream), a.max())
    assert a_gpu.any(stream=stream, allocator=allocate).allocator is allocate


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_not_a_number_spreads(dtype):
    a = numbers(5000, dtype, 35)
    a[4321] = np.nan
    assert np.isnan(gpuarray.sum(gpuarray.to_gpu(a)).get())
    if a.dtype.kind == "f":
        assert np.isnan(gpuarray.max(gpuarray.to_gpu(a)).get())
        assert np.isnan(gpuarray.min(gpuarray.to_gpu(a)).get())
