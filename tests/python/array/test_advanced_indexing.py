"""Reading and writing with index arrays and masks, by numpy's rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import Pair, check, numbers, pairs, some_shapes

from pygpu import gpuarray


def on_device(index):
    """Returns the index with its arrays on the device."""
    if isinstance(index, tuple):
        return tuple(on_device(item) for item in index)
    return gpuarray.to_gpu(index) if isinstance(index, np.ndarray) else index


@st.composite
def cases(draw):
    """Draws a pair, and an index of arrays, masks, lists, slices and integers."""
    pair = draw(pairs(st.sampled_from([np.dtype("i4"), np.dtype("f8")]), some_shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    items, axis, masked = [], 0, False
    while axis < pair.host.ndim:
        extent = pair.host.shape[axis]
        kind = draw(st.sampled_from(["array", "array", "mask", "list", "slice", "whole", "none"]))
        if kind == "none" and len(items) < 6:
            items.append(None)
            continue
        if kind == "mask" and not masked and shape == [3]:
            masked = True
            count = draw(st.integers(1, pair.host.ndim - axis))
            mask = np.zeros(pair.host.shape[axis : axis + count], bool)
            mask.reshape(-1)[: min(3, mask.size)] = True
            if mask.sum() != 3:
                items.append(slice(None))
                axis += 1
                continue
            rng.shuffle(mask.reshape(-1))
            items.append(mask)
            axis += count
            continue
        if kind in ("array", "mask"):
            wide = draw(st.sampled_from(["i4", "i8", "i2"]))
            items.append(rng.integers(-extent, extent, shape).astype(wide))
        elif kind == "list":
            items.append(rng.integers(-extent, extent, shape).tolist())
        elif kind == "whole":
            items.append(int(rng.integers(-extent, extent)))
        else:
            items.append(
                draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None)]))
            )
        axis += 1
    if draw(st.booleans()) and items:
        items = items[: draw(st.integers(1, len(items)))]
    return pair, tuple(items)


def expected_of(host, index):
    try:
        return host[index]
    except IndexError:
        return None


@given(case=cases(), device=st.booleans())
def test_reading(case, device):
    (a, a_gpu), index = case
    expected = expected_of(a, index)
    if expected is not None:
        check(a_gpu[on_device(index) if device else index], expected)


@given(
    case=cases(), device=st.booleans(), kind=st.sampled_from(["number", "whole", "row", "numpy"])
)
def test_writing(case, device, kind):
    (a, a_gpu), index = case
    selected = expected_of(a, index)
    if selected is None:
        return
    # If an index names an element twice, both stores must write the same value.
    value = 7
    if kind in ("whole", "numpy") and np.unique(_addresses(a, index)).size == selected.size:
        value = numbers(np.shape(selected), a.dtype, 3)
    elif kind == "row":
        value = np.full(np.shape(selected)[-1:], 5, "i2")
    a[index] = value
    given_ = gpuarray.to_gpu(value) if isinstance(value, np.ndarray) and kind != "numpy" else value
    a_gpu[on_device(index) if device else index] = given_
    check(a_gpu, a)


def _addresses(a, index):
    return np.arange(a.size).reshape(a.shape)[index]


@pytest.mark.parametrize("length", [0, 1, 16_384, 16_385, 70_001, 2**20 + 4099])
def test_masks_of_many_elements(length):
    rng = np.random.default_rng(length)
    a = rng.normal(size=length).astype(np.float32)
    a_gpu = gpuarray.to_gpu(a)
    for mask in (a > 0, np.ones(length, bool), np.zeros(length, bool)):
        mask_gpu = gpuarray.to_gpu(mask)
        check(a_gpu[mask_gpu], a[mask])
        check(gpuarray.flatnonzero(mask_gpu), np.flatnonzero(mask))
        a[mask] = 2.5
        a_gpu[mask_gpu] = 2.5
        check(a_gpu, a)
        values = rng.normal(size=int(mask.sum())).astype(np.float32)
        a[mask] = values
        a_gpu[mask_gpu] = gpuarray.to_gpu(values)
        check(a_gpu, a)


@given(pair=pairs())
def test_nonzero(pair):
    a, a_gpu = pair
    check(gpuarray.flatnonzero(a_gpu), np.flatnonzero(a))
    if a.ndim:
        for found, expected in zip(gpuarray.nonzero(a_gpu), np.nonzero(a), strict=True):
            check(found, expected)


def test_masks_over_the_first_axes_and_in_any_memory_order():
    a = np.asfortranarray(np.arange(60).reshape(3, 4, 5))
    mask = (np.arange(12) % 5 < 2).reshape(3, 4)
    pair = Pair(a, gpuarray.to_gpu(a))
    check(pair.device[gpuarray.to_gpu(mask)], a[mask])
    check(pair.device[gpuarray.to_gpu(np.asfortranarray(mask))], a[mask])
    check(pair.device[:, gpuarray.to_gpu(mask[0])], a[:, mask[0]])
    value = np.arange(5) * 10
    a[mask] = value
    pair.device[gpuarray.to_gpu(mask)] = gpuarray.to_gpu(value)
    check(pair.device, a)
    a[mask] = 3
    pair.device[gpuarray.to_gpu(mask)] = 3
    check(pair.device, a)


def test_compress():
    a = np.arange(12).reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    for condition, axis in [([0, 1, 1], 0), ([True, False], 1), ([True] * 7, None)]:
        expected = np.compress(condition, a, axis)
        check(gpuarray.compress(condition, a_gpu, axis), expected)
        on = gpuarray.to_gpu(np.array(condition))
        check(gpuarray.compress(on, a_gpu, axis), expected)
    for condition in ([0, 0, 1, 0], [0, 0, 1, 1]):
        on = gpuarray.to_gpu(np.array(condition))
        for given_ in (condition, on):
            if condition[3]:
                with pytest.raises(IndexError):
                    gpuarray.compress(given_, a_gpu, 0)
            else:
                check(gpuarray.compress(given_, a_gpu, 0), np.compress(condition, a, 0))


def test_an_array_is_indexed_by_itself_and_assigned_to_itself():
    a = np.array([3, 0, 2, 1])
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu[a_gpu], a[a])
    a_gpu[a_gpu] = a_gpu[::-1]
    a[a.copy()] = a[::-1].copy()
    check(a_gpu, a)
    a_gpu[a_gpu > 1] += 10
    a[a > 1] += 10
    check(a_gpu, a)


@pytest.mark.parametrize("mask", [[True, True, False, True], [False] * 4])
def test_an_ellipsis_parts_the_arrays_beside_it_where_it_stands_for_no_axis(mask):
    """The axes of the index arrays then come first in the result, as in numpy."""
    a = np.arange(24).reshape(2, 3, 4)
    for index in (
        (slice(None), [2], ..., np.array(mask)),
        (slice(None), [2], np.array(mask), ...),
        (slice(None), ..., [2], np.array(mask)),
        (slice(None), [0, 1, 2], ..., [3, 0, 0]),
    ):
        b, a_gpu = a.copy(), gpuarray.to_gpu(a)
        check(a_gpu[on_device(index)], a[index])
        value = np.arange(a[index].size).reshape(a[index].shape)
        b[index] = value
        a_gpu[on_device(index)] = gpuarray.to_gpu(value)
        check(a_gpu, b)


def test_an_array_without_axes_names_a_copy():
    a = np.arange(12).reshape(3, 4)
    for index in (np.array(1), np.array(0, "u1"), (np.array(2), slice(1, 3)), np.True_):
        a_gpu = gpuarray.to_gpu(a)
        part = a_gpu[index]
        check(part, a[index])
        part.fill(7)
        check(a_gpu, a)
        b = a.copy()
        b[index] = 9
        a_gpu[index] = 9
        check(a_gpu, b)
    check(a_gpu[gpuarray.to_gpu(np.array(1))], b[1])
    with pytest.raises(IndexError, match="out of bounds"):
        a_gpu[gpuarray.to_gpu(np.array(3))]
    for wrong in (np.array(1.0), gpuarray.to_gpu(np.array(1.0))):
        with pytest.raises(IndexError, match="integer"):
            a_gpu[wrong]


def test_indices_on_the_device_are_not_checked():
    a_gpu = gpuarray.to_gpu(np.arange(1, 5))
    outside = gpuarray.to_gpu(np.array([0, 4, -5, -1]))
    check(a_gpu[outside], np.array([1, 0, 0, 4]))
    a_gpu[outside] = 9
    check(a_gpu, np.array([9, 2, 3, 9]))
    square = gpuarray.to_gpu(np.arange(1, 5).reshape(2, 2))
    check(
        square[gpuarray.to_gpu(np.array([0, 2, 1])), gpuarray.to_gpu(np.array([2, 0, 1]))],
        np.array([0, 0, 4]),
    )


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (np.array([0, 3]), IndexError),
        ([-4], IndexError),
        (np.array([0.5]), IndexError),
        (np.zeros(4, bool), IndexError),
        (np.zeros((3, 3), bool), IndexError),
        (([0, 1], [0, 1, 2]), IndexError),
        (([0], [0], [0]), IndexError),
        ((Ellipsis, [0], Ellipsis), IndexError),
    ],
)
def test_bad_indices_are_refused(index, error):
    a = np.arange(6).reshape(3, 2)
    a_gpu = gpuarray.to_gpu(a)
    with pytest.raises(error):
        a[index]
    with pytest.raises(error):
        a_gpu[index]
    with pytest.raises(error):
        a_gpu[index] = 1
    check(a_gpu, a)


def test_values_that_do_not_fit_are_refused():
    a_gpu = gpuarray.to_gpu(np.arange(6))
    mask = gpuarray.to_gpu(np.arange(6) > 2)
    with pytest.raises(ValueError, match="shape"):
        a_gpu[mask] = gpuarray.to_gpu(np.arange(2))
    with pytest.raises(OverflowError):
        a_gpu.astype(np.int8)[mask] = 300
    check(a_gpu, np.arange(6))
