"""Sorting along an axis, in numpy's order."""

from __future__ import annotations

import numpy as np
import pytest
from device import IS_DOUBLE
from hypothesis import given
from hypothesis import strategies as st
from pairs import DTYPES, Pair, check, numbers, pairs, some_shapes
from processes import run_python
from tables import each_row

from pygpu import gpuarray

KINDS = [None, "quicksort", "heapsort", "mergesort", "stable"]
# Tiles have 2048 elements, or 1024 of 16 bytes; many thread blocks sort the last length.
LENGTHS = [1, 2, 8, 1000, 1024, 2048, 2049, 5000, 70_001]


def compare(pair: Pair, axis: int | None = -1) -> None:
    """Compares both functions with numpy's; zeros of either sign are equal."""
    a, a_gpu = pair
    order = np.argsort(a, axis, kind="stable")
    check(gpuarray.argsort(a_gpu, axis), order)
    check(gpuarray.sort(a_gpu, axis), np.sort(a, axis, kind="stable"))


@given(pair=pairs(shape=some_shapes, special=True), data=st.data())
def test_arrays_of_any_dtype_shape_and_strides(pair, data):
    a, a_gpu = pair
    if a.ndim == 0:
        with pytest.raises((ValueError, IndexError)):
            gpuarray.sort(a_gpu)
        compare(pair, None)
        return
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    compare(pair, axis)
    compare(pair, None)
    a_gpu.sort(axis, data.draw(st.sampled_from(KINDS)))
    a.sort(axis, kind="stable")
    check(a_gpu, a)


@each_row("dtype", DTYPES, ids=str)
@each_row("length", LENGTHS)
def test_rows_of_many_lengths(dtype, length):
    if IS_DOUBLE and length > 10_000:
        pytest.skip("a long row takes too long on the double")
    a = numbers((2, length), dtype, length, special=True)
    compare(Pair(a, gpuarray.to_gpu(a)))


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u8", "f4", "f8"])
def test_rows_of_a_few_of_the_greatest_values(dtype):
    a = np.full((1, 3000), np.nan if "f" in dtype else np.iinfo(dtype).max, dtype)
    a.view(f"i{a.itemsize}")[0, ::3] -= 1
    compare(Pair(a, gpuarray.to_gpu(a)))


# Tiles of radix sorts have 23 or 15 elements per thread, or 18 or 9 of 8 bytes, for 256
# threads.
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i8"])
@pytest.mark.parametrize("length", [76_032, 76_545, 76_801, 78_337])
def test_rows_that_are_sorted_by_digits(dtype, length):
    a = numbers((1, length), np.dtype(dtype), length, special=True)
    compare(Pair(a, gpuarray.to_gpu(a)))


@pytest.mark.skipif(not IS_DOUBLE, reason="a device starts blocks in an order of its own")
def test_blocks_that_start_from_the_last_to_the_first():
    command = ["-q", "-p", "no:cacheprovider", __file__, "-k", "by_digits"]
    run_python(f"import pytest; raise SystemExit(pytest.main({command!r}))", DOUBLE_REVERSED="1")


@pytest.mark.skipif(IS_DOUBLE, reason="too long on the double")
def test_many_elements():
    a = np.random.default_rng(1).normal(size=2**20 + 4099).astype(np.float32)
    a_gpu = gpuarray.to_gpu(a)
    check(gpuarray.sort(a_gpu), np.sort(a))
    check(a_gpu.argsort(), np.argsort(a, kind="stable"))
    check(gpuarray.sort(a_gpu[::-3]), np.sort(a[::-3]))


def test_arrays_without_elements():
    for shape in [(0,), (3, 0), (0, 3)]:
        a = np.zeros(shape, np.int32)
        compare(Pair(a, gpuarray.to_gpu(a)))


def test_bad_arguments_are_refused():
    a_gpu = gpuarray.to_gpu(np.arange(6).reshape(2, 3))
    with pytest.raises((ValueError, IndexError), match="2"):
        gpuarray.sort(a_gpu, 2)
    with pytest.raises(ValueError, match="bubble"):
        gpuarray.sort(a_gpu, kind="bubble")
    with pytest.raises(TypeError, match=r"\[\('x', '<i4'\)\]"):
        gpuarray.sort(gpuarray.zeros(3, np.dtype([("x", "i4")])))
    with pytest.raises(TypeError):
        gpuarray.sort(np.arange(3))
