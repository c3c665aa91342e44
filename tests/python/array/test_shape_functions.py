"""Shape and element functions that gpuarray and numpy both have, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import REAL, check, check_outcome, numbers, pairs

from pygpu import gpuarray

shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)
dtypes = st.sampled_from([np.dtype(kind) for kind in ("?", "u1", "i4", "f4", "c16")])
axis = st.integers(-4, 3)
few = st.integers(-3, 5)
# Each example creates several arrays, so there are fewer examples than in other tests.
few_examples = settings(max_examples=settings().max_examples // 3)


def same(name, pair, *arguments, **keywords):
    """Checks that both libraries return the same, or raise the same kind of error."""
    ours, theirs = getattr(gpuarray, name), getattr(np, name)
    check_outcome(lambda a: theirs(a, *arguments, **keywords), (pair.host,), (pair.device,))
    if not isinstance(outcome := _outcome(ours, pair.device, *arguments, **keywords), Exception):
        check(outcome, theirs(pair.host, *arguments, **keywords))


def _outcome(function, *arguments, **keywords):
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError, IndexError) as error:
        return error


@few_examples
@given(pairs(dtypes, shapes), st.data())
def test_axes_in_another_order(pair, data):
    same("swapaxes", pair, data.draw(axis), data.draw(axis))
    same("moveaxis", pair, data.draw(axis), data.draw(axis))
    some = data.draw(st.lists(axis, max_size=3))
    same("moveaxis", pair, some, data.draw(st.permutations(some)))
    same("expand_dims", pair, data.draw(st.one_of(axis, st.lists(axis, max_size=2).map(tuple))))


@few_examples
@given(pairs(dtypes, shapes), st.data())
def test_elements_in_reverse_order(pair, data):
    same("flip", pair, data.draw(st.one_of(st.none(), axis, st.lists(axis).map(tuple))))
    same("fliplr", pair)
    same("flipud", pair)


@few_examples
@given(pairs(dtypes, shapes), st.data())
def test_elements_moved(pair, data):
    same("roll", pair, data.draw(few), data.draw(st.one_of(st.none(), axis)))
    places = data.draw(st.lists(axis, min_size=1, max_size=3).map(tuple))
    shifts = tuple(data.draw(few) for _ in places)
    same("roll", pair, shifts, places)


@few_examples
@given(pairs(dtypes, shapes), st.data())
def test_elements_repeated(pair, data):
    same("repeat", pair, data.draw(st.integers(0, 3)), data.draw(st.one_of(st.none(), axis)))
    counts = st.integers(0, 3)
    same("tile", pair, data.draw(st.one_of(counts, st.lists(counts, max_size=4).map(tuple))))


@few_examples
@given(pairs(dtypes, shapes), st.lists(st.integers(0, 4), max_size=4).map(tuple))
def test_broadcasting(pair, shape):
    same("broadcast_to", pair, shape)
    longer = (2, *pair.host.shape)
    same("broadcast_to", pair, longer)
    other = np.zeros((3, *[1] * pair.host.ndim), "i2")
    expected = np.broadcast_arrays(pair.host, other)
    found = gpuarray.broadcast_arrays(pair.device, gpuarray.to_gpu(other))
    for one, theirs in zip(found, expected, strict=True):
        check(one, theirs)


@few_examples
@given(pairs(dtypes, shapes), st.data())
def test_diagonals_and_triangles(pair, data):
    k, first, second = data.draw(few), data.draw(axis), data.draw(axis)
    same("diagonal", pair, k, first, second)
    same("tril", pair, k)
    same("triu", pair, k)
    if pair.host.dtype.kind != "f":
        same("trace", pair, k, first, second)


@few_examples
@given(pairs(dtypes, shapes), st.data())
def test_parts(pair, data):
    where = data.draw(st.one_of(st.integers(1, 5), st.lists(few, max_size=3)))
    along = data.draw(axis)
    for name in ("split", "array_split"):
        expected = _outcome(getattr(np, name), pair.host, where, along)
        found = _outcome(getattr(gpuarray, name), pair.device, where, along)
        if isinstance(expected, Exception):
            assert isinstance(found, (ValueError, IndexError)), (expected, found)
            continue
        assert len(found) == len(expected)
        for one, theirs in zip(found, expected, strict=True):
            check(one, theirs)


@few_examples
@given(st.lists(pairs(dtypes, st.sampled_from([(2,), (2, 1), (2, 3)])), min_size=1, max_size=3))
def test_arrays_joined(several):
    hosts, devices = [p.host for p in several], [p.device for p in several]
    for name in ("hstack", "vstack"):
        expected = _outcome(getattr(np, name), hosts)
        found = _outcome(getattr(gpuarray, name), devices)
        if isinstance(expected, Exception):
            assert isinstance(found, ValueError)
        else:
            check(found, expected)


def test_views_share_memory_and_can_be_written():
    a_gpu = gpuarray.to_gpu(np.arange(12, dtype="i4").reshape(3, 4))
    for view in (
        gpuarray.swapaxes(a_gpu, 0, 1),
        gpuarray.moveaxis(a_gpu, 0, 1),
        gpuarray.expand_dims(a_gpu, 0),
        gpuarray.flip(a_gpu),
        gpuarray.broadcast_to(a_gpu, (2, 3, 4)),
        gpuarray.diagonal(a_gpu),
        gpuarray.array_split(a_gpu, 2)[0],
    ):
        assert a_gpu.ptr <= view.ptr < a_gpu.ptr + a_gpu.nbytes
    gpuarray.diagonal(a_gpu)[...] = -1
    check(gpuarray.diagonal(a_gpu), np.full(3, -1, "i4"))
    with pytest.raises(ValueError, match="twice"):
        gpuarray.broadcast_to(a_gpu, (2, 3, 4)).fill(0)


@few_examples
@given(
    pairs(st.sampled_from(REAL[1:]), shapes, special=True), st.integers(-2, 2), st.integers(0, 4)
)
def test_clipping(pair, low, high):
    low = max(low, 0) if pair.host.dtype.kind == "u" else low
    same("clip", pair, low, high)
    same("clip", pair, None, high)
    same("clip", pair, low, None)
    bound = np.full(pair.host.shape, low, pair.host.dtype)
    out = gpuarray.empty(pair.host.shape, pair.host.dtype)
    assert gpuarray.clip(pair.device, gpuarray.to_gpu(bound), high, out=out) is out
    check(out, np.clip(pair.host, bound, high))


@few_examples
@given(pairs(dtypes, shapes), st.integers(-1, 3), axis)
def test_differences(pair, n, along):
    same("diff", pair, n, along)


@few_examples
@given(pairs(st.sampled_from(REAL[1:]), shapes, special=True))
def test_what_is_no_finite_number(pair):
    same("nan_to_num", pair)
    if pair.host.dtype.kind == "f":
        same("nan_to_num", pair, True, 1.0, 2.0, -2.0)


@few_examples
@given(pairs(st.sampled_from(REAL), shapes, special=True), st.booleans())
def test_closeness_and_equality(pair, equal_nan):
    a, a_gpu = pair
    b = a.copy()
    if a.size:
        b.flat[0] = not b.flat[0]
    b_gpu = gpuarray.to_gpu(b)
    with np.errstate(all="ignore"):
        for x, y, x_gpu, y_gpu in ((a, a, a_gpu, a_gpu), (a, b, a_gpu, b_gpu)):
            check(
                gpuarray.isclose(x_gpu, y_gpu, equal_nan=equal_nan),
                np.isclose(x, y, equal_nan=equal_nan),
            )
            assert gpuarray.allclose(x_gpu, y_gpu, equal_nan=equal_nan) == np.allclose(
                x, y, equal_nan=equal_nan
            )
            if x.dtype.kind == "f" or not equal_nan:
                assert gpuarray.array_equal(x_gpu, y_gpu, equal_nan) == np.array_equal(
                    x, y, equal_nan
                )
    assert not gpuarray.array_equal(a_gpu, gpuarray.zeros((9, 9)))


@few_examples
@given(st.integers(0, 5), st.integers(0, 5), few, st.sampled_from(["f8", "i4", "?"]))
def test_matrices_of_ones_and_zeros(rows, columns, k, dtype):
    check(gpuarray.eye(rows, columns, k, dtype), np.eye(rows, columns, k, dtype))
    check(gpuarray.identity(rows, dtype), np.identity(rows, dtype))


@few_examples
@given(st.floats(-100, 100), st.floats(-100, 100), st.integers(0, 9), st.booleans())
def test_evenly_spaced_numbers(start, stop, num, endpoint):
    expected = np.linspace(start, stop, num, endpoint)
    check(gpuarray.linspace(start, stop, num, endpoint), expected, rtol=1e-12, atol=1e-12)
    check(gpuarray.linspace(0, 12, 5, dtype="i2"), np.linspace(0, 12, 5, dtype="i2"))


def test_numbers_of_repetitions_are_not_negative():
    a = np.arange(3)
    for function in (np.repeat, np.tile):
        check_outcome(lambda x, function=function: function(x, -1), (a,), (gpuarray.to_gpu(a),))


def test_rounding_to_places():
    a = numbers((4, 5), "f8", 3) * 1.2345
    a_gpu = gpuarray.to_gpu(a)
    check(gpuarray.round(a_gpu, 2), np.round(a, 2), rtol=1e-14)
    out = gpuarray.empty((4, 5), "f8")
    assert gpuarray.round(a_gpu, 1, out) is out
    check(out, np.round(a, 1), rtol=1e-14)
    check(gpuarray.full_like(a_gpu, 3, "i2"), np.full_like(a, 3, "i2"))


@pytest.mark.parametrize("k", [4, -4, 2**31, 2**40, -(2**62), 2**70])
def test_diagonals_far_from_the_corners(k):
    a = np.arange(12).reshape(3, 4)
    if abs(k) < 2**62:
        check(gpuarray.tril(gpuarray.to_gpu(a), k), np.tril(a, k))
        check(gpuarray.triu(gpuarray.to_gpu(a), k), np.triu(a, k))
    else:
        check(gpuarray.tril(gpuarray.to_gpu(a), k), a if k > 0 else a * 0)
        check(gpuarray.triu(gpuarray.to_gpu(a), k), a * 0 if k > 0 else a)


@pytest.mark.parametrize("count", [6, 2**40, 2**70])
def test_counts_far_beyond_the_extent_end_at_once(count):
    a_gpu = gpuarray.to_gpu(np.arange(5))
    result = gpuarray.diff(a_gpu, count)
    assert (result.shape, result.dtype) == ((0,), a_gpu.dtype)
    with pytest.raises(ValueError, match="equal division"):
        gpuarray.split(a_gpu, count)
    if count < 2**16:
        assert [len(part) for part in gpuarray.array_split(a_gpu, count)] == [1, 1, 1, 1, 1, 0]
    else:
        with pytest.raises(ValueError, match=f"indices_or_sections is {count}; allowed .* 65536"):
            gpuarray.array_split(a_gpu, count)
