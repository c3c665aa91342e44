"""Indexing: views with numpy's shapes and strides, and assignment through them."""

from __future__ import annotations

import collections.abc
import math
import random
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pairs import DTYPES, check, check_outcome, numbers, pairs, same_strides
from tables import each_row

from pygpu import driver, gpuarray


@st.composite
def indexed(draw):
    """Draws a pair of arrays, and an index of slices, integers, newaxis and an ellipsis."""
    pair = draw(pairs(st.sampled_from([np.dtype("i4"), np.dtype("f8")])))
    index = draw(hnp.basic_indices(pair.host.shape, allow_newaxis=True, allow_ellipsis=True))
    return pair, index


@pytest.mark.parametrize("index", [0, (0,), slice(None), [0]])
def test_an_array_without_axes_has_no_elements_at_indices(index):
    with pytest.raises(IndexError, match="too many indices"):
        gpuarray.zeros(())[index]


@given(case=indexed())
def test_getitem_is_a_view(case):
    (a, a_gpu), index = case
    expected, result = a[index], a_gpu[index]
    check(result, expected)
    assert same_strides(result, np.asarray(expected))
    if np.asarray(expected).size:
        result.fill(77)
        a[index] = 77
        check(a_gpu, a)


@given(case=indexed())
def test_setitem_scalar(case):
    (a, a_gpu), index = case
    a[index] = 5
    a_gpu[index] = 5
    check(a_gpu, a)


@given(case=indexed(), seed=st.integers(0, 99))
def test_setitem_device_array(case, seed):
    (a, a_gpu), index = case
    value = numbers(np.shape(a[index]), a.dtype, seed)
    a[index] = value
    a_gpu[index] = gpuarray.to_gpu(value)
    check(a_gpu, a)


@given(case=indexed(), seed=st.integers(0, 99))
def test_setitem_host_array(case, seed):
    (a, a_gpu), index = case
    value = numbers(np.shape(a[index]), a.dtype, seed)
    a[index] = value
    a_gpu[index] = value
    check(a_gpu, a)


@pytest.mark.parametrize(
    "index",
    [
        slice(None, None, -1),
        slice(-3, None),
        slice(None, -8),
        slice(100, 200),
        slice(8, 2, -3),
        slice(5, 5),
        slice(2, 8, 100),
        np.int64(3),
        np.uint8(3),
        -1,
        (Ellipsis, 2),
        (None, slice(2, 4), None),
        (),
        Ellipsis,
        None,
    ],
)
def test_particular_indices(index):
    a = np.arange(10.0)
    check(gpuarray.to_gpu(a)[index], a[index])


def test_a_single_element_is_an_array_without_axes():
    a_gpu = gpuarray.to_gpu(np.arange(6).reshape(2, 3))
    element = a_gpu[1, 2]
    assert isinstance(element, gpuarray.GPUArray)
    assert element.shape == ()
    assert int(element.get()) == 5
    a_gpu[1, 2] = 50
    assert int(element.get()) == 50


def test_base_keeps_the_memory_alive():
    a = np.arange(100_000.0)
    view = gpuarray.to_gpu(a)[10::3]
    assert view.base is not None
    check(view, a[10::3])
    deep = view[5:][::-1][2:]
    del view
    check(deep, a[10::3][5:][::-1][2:])


def test_augmented_assignment_to_an_item():
    a = np.arange(12.0).reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    a[1] += 10
    a_gpu[1] += 10
    a[:, ::2] *= 2
    a_gpu[:, ::2] *= 2
    check(a_gpu, a)


def test_assignment_between_overlapping_views():
    for length in (10, 200_000):
        a = numbers(length, "i8", 26)
        a_gpu = gpuarray.to_gpu(a)
        a[1:] = a[:-1].copy()
        a_gpu[1:] = a_gpu[:-1]
        check(a_gpu, a)
        a[:] = a[::-1].copy()
        a_gpu[:] = a_gpu[::-1]
        check(a_gpu, a)


def test_assignment_between_overlapping_views_whose_allocator_repeats_itself():
    memory = driver.mem_alloc(64)
    a = np.arange(8.0)
    a_gpu = gpuarray.empty(8, np.float64, lambda size: memory)
    a_gpu.set(a)
    a_gpu[...] = a_gpu[::-1]
    check(a_gpu, a[::-1])


def test_assignment_broadcasts():
    a = np.zeros((3, 4))
    a_gpu = gpuarray.to_gpu(a)
    a[:] = np.arange(4.0)
    a_gpu[:] = gpuarray.to_gpu(np.arange(4.0))
    check(a_gpu, a)
    a[:, 1:3] = np.arange(3.0)[:, None]
    a_gpu[:, 1:3] = np.arange(3.0)[:, None]
    check(a_gpu, a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_setitem_scalar_of_every_type(dtype):
    a = np.zeros(5, dtype)
    a_gpu = gpuarray.to_gpu(a)
    for value in (1, True, numbers(9, dtype, 27)[4]):
        a[1:3] = value
        a_gpu[1:3] = value
        check(a_gpu, a)


def test_iteration_and_length():
    a = np.arange(6.0).reshape(3, 2)
    a_gpu = gpuarray.to_gpu(a)
    assert len(a_gpu) == 3
    rows = list(a_gpu)
    assert len(rows) == 3
    for row, expected in zip(rows, a, strict=True):
        check(row, expected)
    for make in (np.array(1.0), gpuarray.to_gpu(np.array(1.0))):
        with pytest.raises(TypeError):
            len(make)
    with pytest.raises(TypeError, match="without axes"):
        list(gpuarray.to_gpu(np.array(1.0)))
    # As in numpy; PyCUDA's class does not have `__iter__`.
    assert isinstance(a_gpu, collections.abc.Iterable)


@pytest.mark.parametrize(
    "index",
    [
        5,
        -6,
        (0, 0),
        (Ellipsis, Ellipsis),
        (None, 5),
        (slice(None), 0),
        (Ellipsis, -6),
        "x",
        2.0,
        2**70,
    ],
)
def test_bad_indices_are_numpys_index_errors(index):
    a = np.arange(5.0)
    a_gpu = gpuarray.to_gpu(a)
    check_outcome(lambda x: x[index], (a,), (a_gpu,))
    with pytest.raises(IndexError):
        a_gpu[index] = 1
    check(a_gpu, a)


def test_a_step_of_zero_is_a_value_error():
    with pytest.raises(ValueError, match="zero"):
        gpuarray.zeros(5)[::0]


# ---- axes ---------------------------------------------------------------------------------------


def test_an_index_makes_no_more_axes_than_numpy_has():
    a = np.zeros((2, 3))
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu[(None,) * 62], a[(None,) * 62])
    for index in ((None,) * 63, (None,) * 64 + (0, 0, None), (..., *(None,) * 100)):
        with pytest.raises(IndexError, match="64"):
            a_gpu[index]
        with pytest.raises(IndexError, match="64"):
            a_gpu[index] = 1
    check(a_gpu, a)


def test_no_operation_makes_more_than_64_axes():
    ones = (1,) * 64
    a_gpu = gpuarray.ones(ones)
    check(a_gpu + a_gpu, np.full(ones, 2.0))
    check(gpuarray.sum(a_gpu), np.float64(1))
    for make in (
        lambda: a_gpu.reshape((1,) * 65),
        lambda: a_gpu.reshape(*(1,) * 65),
        lambda: gpuarray.stack([a_gpu, a_gpu]),
        lambda: gpuarray.zeros((1,) * 65),
        lambda: gpuarray.empty((1,) * 65, strides=(4,) * 65, dtype=np.int32),
        lambda: gpuarray.full((1,) * 65, 0),
    ):
        with pytest.raises(ValueError, match="64"):
            make()


LEADING = [((1, 1, 2, 3), (2, 3)), ((1, 2, 3), (2, 3)), ((1, 1), ()), ((1, 1, 1), (1,))]
LEADING += [((1, 1, 3), (2, 3)), ((1, 1, 2, 1), (2, 3)), ((1, 0), (0,)), ((1, 1, 0, 3), (0, 3))]
LEADING += [((2, 2, 3), (2, 3)), ((1, 2, 2, 3), (2, 3)), ((2, 1), (1,)), ((1, 4), (3,))]


@each_row(("given_shape", "shape"), LEADING)
@each_row("dtype", ["f8", "i2"])
def test_assignment_passes_over_leading_axes_of_length_1(given_shape, shape, dtype):
    value = np.arange(np.prod(given_shape)).reshape(given_shape).astype(dtype)

    for source in (value, gpuarray.to_gpu(value)):
        check_outcome(
            lambda target, v: target.__setitem__(..., v) or target,
            (np.zeros(shape), value),
            (gpuarray.zeros(shape), source),
        )
        check_outcome(
            lambda target, v: target.__setitem__(slice(None), v) or target,
            (np.zeros((2, *shape))[0:1], value),
            (gpuarray.zeros((2, *shape))[0:1], source),
        )


def test_an_operand_keeps_its_leading_axes():
    """Only an assignment ignores leading axes of length 1, as in numpy."""
    a_gpu = gpuarray.zeros((2, 3))
    with pytest.raises(ValueError, match=r"\(1, 2, 3\)"):
        a_gpu += gpuarray.ones((1, 2, 3))
    check(a_gpu, np.zeros((2, 3)))


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_a_swap_through_views_is_refused_before_anything_is_stored(shape):
    host = np.arange(math.prod(shape)).reshape(shape)
    a = gpuarray.to_gpu(host)
    with pytest.raises(ValueError, match=r"a\[\[i, j\]\] = a\[\[j, i\]\]"):
        a[1], a[3] = a[3], a[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shuffle in (np.random.shuffle, np.random.default_rng(0).shuffle, random.shuffle):
            with pytest.raises(ValueError, match=r"numpy\.random\.permutation"):
                shuffle(a)
    check(a, host)
    a[[1, 3]] = a[[3, 1]]
    host[[1, 3]] = host[[3, 1]]
    check(a, host)
    order = np.random.default_rng(1).permutation(50)
    a[:] = a[order]
    check(a, host[order])


def _swap_slices(a):
    a[0:2], a[2:4] = a[2:4], a[0:2]


def _swap_columns(a):
    a[:, 0], a[:, 1] = a[:, 1], a[:, 0]


def _swap_nested(a):
    a[0][1], a[1][0] = a[1][0], a[0][1]


def _swap_parts(a):
    a[0, 1:], a[1, 1:] = a[1, 1:], a[0, 1:]


def _rotate(a):
    a[0], a[1], a[2] = a[1], a[2], a[0]


def _rotate_many(a):
    a[0], a[1], a[2], a[3], a[4] = a[1], a[2], a[3], a[4], a[0]


SWAPS = [_swap_slices, _swap_columns, _swap_nested, _swap_parts, _rotate, _rotate_many]


@pytest.mark.parametrize("swap", SWAPS)
def test_swaps_of_any_views_are_refused_before_anything_is_stored(swap):
    host = np.arange(25).reshape(5, 5)
    a = gpuarray.to_gpu(host)
    with pytest.raises(ValueError, match="would store one of them twice"):
        swap(a)
    check(a, host)


def test_swaps_of_fields_and_between_arrays_are_refused():
    record = gpuarray.zeros(3, [("x", "i4"), ("y", "i4")])
    with pytest.raises(ValueError, match="twice"):
        record["x"], record["y"] = record["y"], record["x"]
    a, b = gpuarray.zeros(3), gpuarray.ones(3)
    with pytest.raises(ValueError, match="twice"):
        a[1], b[2] = b[2], a[1]
    check(a, np.zeros(3))


def test_views_with_names_are_views_on_purpose():
    """A view that the program holds by name, in a list or as an argument may be stored anywhere."""
    host = np.arange(4.0)
    a = gpuarray.to_gpu(host)

    def store(place, value):
        a[place] = value

    u, v = a[0], a[1]
    a[1] = u
    check(v, np.float64(0))
    held = [a[2], a[3]]
    a[3] = held[0]
    check(held[1], np.float64(2))
    first, second = a[3], a[0]
    store(0, first)
    check(second, np.float64(2))
    t = a[0]
    a[0] = a[1]
    a[1] = t
    check(a, np.array([0, 0, 2, 2.0]))


def test_assignments_of_elements_that_are_no_swaps_are_done():
    host = np.arange(6)
    a = gpuarray.to_gpu(host)
    a[0] = a[1]
    a[2], a[2] = a[2], a[2]
    a[3] += a[4]
    first, other = a[4], a[5]
    del other
    a[5] = first
    for place, element in enumerate(a):
        if element.get() == 4:
            a[place] = a[0]
    x, y = a[0].copy(), a[2].copy()
    a[2], a[0] = x, y
    check(a, np.array([2, 1, 1, 7, 1, 1]))
