"""Selecting elements: where, if_positive, minimum, maximum, logical functions, take and put."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import DTYPES, REAL, broadcast_shapes, check, numbers, pairs, shapes
from tables import each_row

from pygpu import driver, gpuarray

reals = st.sampled_from(REAL)


@st.composite
def three(draw):
    shape = draw(shapes)
    dtype = draw(st.sampled_from(DTYPES))
    return draw(pairs(reals, shape)), draw(pairs(dtype, shape)), draw(pairs(dtype, shape))


@given(case=three())
def test_where(case):
    (c, c_gpu), (a, a_gpu), (b, b_gpu) = case
    check(gpuarray.where(c_gpu, a_gpu, b_gpu), np.where(c, a, b))


@given(case=three())
def test_if_positive(case):
    (c, c_gpu), (a, a_gpu), (b, b_gpu) = case
    check(gpuarray.if_positive(c_gpu, a_gpu, b_gpu), np.where(c > 0, a, b))


def test_selection_by_special_floats():
    c = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40])
    a, b = np.full(6, 1), np.full(6, 2)
    c_gpu, a_gpu, b_gpu = (gpuarray.to_gpu(x) for x in (c, a, b))
    check(gpuarray.where(c_gpu, a_gpu, b_gpu), np.where(c, a, b))
    check(gpuarray.if_positive(c_gpu, a_gpu, b_gpu), np.where(c > 0, a, b))


@pytest.mark.parametrize("choose", [gpuarray.where, gpuarray.if_positive])
def test_selection_into_an_array_on_a_stream(choose):
    c, a, b = np.array([1, 0, 1]), np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    out = gpuarray.empty(3, np.float64)
    stream = driver.Stream()
    c_gpu, a_gpu, b_gpu = (gpuarray.to_gpu(x) for x in (c, a, b))
    assert choose(c_gpu, a_gpu, b_gpu, out=out, stream=stream) is out
    check(out, np.where(c, a, b))


@pytest.mark.parametrize("name", ["minimum", "maximum"])
@given(data=st.data())
def test_minimum_and_maximum(name, data):
    one, other = data.draw(broadcast_shapes())
    a, a_gpu = data.draw(pairs(reals, one))
    b, b_gpu = data.draw(pairs(reals, other))
    check(getattr(gpuarray, name)(a_gpu, b_gpu), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_with_a_scalar(name):
    ours, theirs = getattr(gpuarray, name), getattr(np, name)
    a = numbers((3, 4), "f4", 36)
    a_gpu = gpuarray.to_gpu(a)
    for scalar in (0, 1.5, np.float32(-1), -np.inf):
        check(ours(a_gpu, scalar), theirs(a, scalar))
        check(ours(scalar, a_gpu), theirs(scalar, a))
    out = gpuarray.empty_like(a_gpu)
    assert ours(a_gpu, 0, out=out) is out
    check(out, theirs(a, 0))
    check(ours(a_gpu, gpuarray.to_gpu(-a), stream=driver.Stream()), theirs(a, -a))


# ---- logic --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
@given(data=st.data())
def test_logical(name, data):
    ours, theirs = getattr(gpuarray, name), getattr(np, name)
    one, other = data.draw(broadcast_shapes())
    a, a_gpu = data.draw(pairs(shape=one, special=True))
    b, b_gpu = data.draw(pairs(shape=other, special=True))
    check(ours(a_gpu, b_gpu), theirs(a, b))
    for scalar in (0, 1, 0.0, 2.5, True):
        check(ours(a_gpu, scalar), theirs(a, scalar))
        check(ours(scalar, a_gpu), theirs(scalar, a))
    check(gpuarray.logical_not(a_gpu), np.logical_not(a))


def test_logical_with_out():
    a = np.array([0.0, 1, 2])
    a_gpu = gpuarray.to_gpu(a)
    out = gpuarray.empty(3, np.bool_)
    assert gpuarray.logical_and(a_gpu, 1, out=out) is out
    check(out, a != 0)
    assert gpuarray.logical_not(a_gpu, out) is out
    check(out, a == 0)
    check(gpuarray.logical_and(True, 0), np.array(False))
    check(gpuarray.logical_or(True, 0), np.array(True))
    check(gpuarray.logical_not(3.0), np.array(False))


# ---- take and put -------------------------------------------------------------------------------


@each_row("index", [np.int32, np.uint32, np.int64, np.uint64])
@each_row("dtype", DTYPES)
def test_take(dtype, index):
    a = numbers(300, dtype, 37)
    indices = np.random.default_rng(38).integers(0, 300, 1000).astype(index)
    a_gpu, indices_gpu = gpuarray.to_gpu(a), gpuarray.to_gpu(indices)
    check(gpuarray.take(a_gpu, indices_gpu), a[indices])
    out = gpuarray.empty(1000, dtype)
    assert gpuarray.take(a_gpu, indices_gpu, out=out) is out
    check(out, a[indices])


def test_take_through_strided_arrays():
    a = numbers(100, "f4", 39)
    indices = np.array([5, 0, 3, 3, 9, 1], np.int32)
    check(
        gpuarray.take(gpuarray.to_gpu(a)[::-3], gpuarray.to_gpu(indices)[::2]),
        a[::-3][indices[::2]],
    )


def test_indices_beyond_the_ends():
    # A device cannot refuse them: reads return zero and writes are ignored. Negative indices count
    # from the end.
    a_gpu = gpuarray.to_gpu(np.arange(1.0, 6.0))
    indices = gpuarray.to_gpu(np.array([0, -1, -5, 5, 1000, -6, -(2**31)], np.int32))
    check(gpuarray.take(a_gpu, indices), np.array([1.0, 5, 1, 0, 0, 0, 0]))
    unsigned = gpuarray.to_gpu(np.array([4, 2**64 - 1], np.uint64))
    check(gpuarray.take(a_gpu, unsigned), np.array([5.0, 0]))


def test_multi_take():
    hosts = [numbers(50, "f4", 40 + i) for i in range(25)]
    indices = np.array([4, 2, 49, 0], np.uint32)
    arrays = [gpuarray.to_gpu(x) for x in hosts]
    indices_gpu = gpuarray.to_gpu(indices)
    taken = gpuarray.multi_take(arrays, indices_gpu)
    assert len(taken) == 25
    for result, host in zip(taken, hosts, strict=True):
        check(result, host[indices])
    out = [gpuarray.empty(4, np.float32) for _ in arrays]
    assert gpuarray.multi_take(arrays, indices_gpu, out=out) is out
    check(out[24], hosts[24][indices])
    assert gpuarray.multi_take([], indices_gpu) == []


def test_multi_put():
    hosts = [numbers(4, "f4", 60 + i) for i in range(12)]
    where = np.array([7, 0, 3, 5], np.uint32)
    arrays = [gpuarray.to_gpu(x) for x in hosts]
    out = [gpuarray.zeros(8, np.float32) for _ in arrays]
    assert gpuarray.multi_put(arrays, gpuarray.to_gpu(where), out=out) is out
    for result, host in zip(out, hosts, strict=True):
        expected = np.zeros(8, "f4")
        expected[where] = host
        check(result, expected)
    made = gpuarray.multi_put(arrays, gpuarray.to_gpu(where), dest_shape=(8,))
    assert [result.shape for result in made] == [(8,)] * 12
    assert gpuarray.multi_put([], gpuarray.to_gpu(where)) == []


@pytest.mark.parametrize("offsets", [None, [8 * i for i in range(11)]])
def test_multi_take_put(offsets):
    buffer = numbers(88, "f4", 80)
    buffer_gpu = gpuarray.to_gpu(buffer)
    to = np.array([0, 1, 2, 3, 32, 33, 34, 35], np.uint32)
    source = np.array([7, 6, 5, 4, 3, 2, 1, 0], np.uint32)
    out = [gpuarray.zeros(96, np.float32) for _ in range(11)]
    result = gpuarray.multi_take_put(
        arrays=[buffer_gpu] * 11,
        dest_indices=gpuarray.to_gpu(to),
        src_indices=gpuarray.to_gpu(source),
        out=out,
        src_offsets=offsets,
    )
    assert result is out
    for i in range(11):
        expected = np.zeros(96, "f4")
        expected[to] = buffer[source + (offsets[i] if offsets else 0)]
        check(out[i], expected)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2"])
def test_an_offset_may_be_wider_than_the_indices(dtype):
    source = np.arange(70000, dtype="f4")
    names = np.array([0, 100, np.iinfo(dtype).max], dtype)
    (result,) = gpuarray.multi_take_put(
        [gpuarray.to_gpu(source)],
        gpuarray.to_gpu(np.arange(3, dtype=dtype)),
        gpuarray.to_gpu(names),
        out=[gpuarray.zeros(3, "f4")],
        src_offsets=[1000],
    )
    check(result, source[names.astype("i8") + 1000])


def test_several_arrays_are_checked_before_one_is_written():
    a, two = gpuarray.arange(6, dtype="f4"), gpuarray.arange(2, dtype="i4")
    out = gpuarray.zeros(2, "f4")
    with pytest.raises(ValueError, match=r"out\[1\] has shape"):
        gpuarray.multi_take([a, a], two, out=[out, gpuarray.zeros(3, "f4")])
    with pytest.raises(ValueError, match=r"arrays\[1\]\.size is 1"):
        gpuarray.multi_put([a, a[:1]], two, out=[out, out])
    with pytest.raises(ValueError, match=r"out\[1\] is not contiguous"):
        gpuarray.multi_put([a, a], two, out=[out, gpuarray.zeros(4, "f4")[::2]])
    for offsets in ([0, 1.5], 3):
        with pytest.raises(TypeError, match="src_offsets"):
            gpuarray.multi_take_put([a + 1, a], two, two, out=[out, out], src_offsets=offsets)
    check(out, np.zeros(2, "f4"))


def test_values_behind_the_last_index_are_not_stored():
    out = gpuarray.zeros(3, "f4")
    gpuarray.multi_put([gpuarray.arange(5, dtype="f4") + 1], gpuarray.arange(2), out=[out])
    check(out, np.array([1, 2, 0], "f4"))
