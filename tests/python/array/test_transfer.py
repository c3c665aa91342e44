"""Copying arrays between host and device: to_gpu, set, get, copy, in every memory order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from pairs import DTYPES, check, numbers, pairs, same_strides

from pygpu import driver, gpuarray


@given(pair=pairs(special=True))
def test_to_gpu_and_get_keep_values_and_order(pair):
    a, _ = pair
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu, a)
    compact = a.copy(order="K")
    assert same_strides(a_gpu, compact)
    assert same_strides(a_gpu, a_gpu.get())


@given(pair=pairs())
def test_get_of_a_view(pair):
    a, a_gpu = pair
    got = a_gpu.get()
    np.testing.assert_array_equal(got, a)
    assert got.dtype == a.dtype
    assert got.flags.owndata or got.base is not None
    got2 = a_gpu.get()
    assert not np.shares_memory(got, got2)


def test_a_copy_is_queued_on_the_stream_that_is_given():
    stream, a = driver.Stream(), np.arange(6.0)
    for made in (gpuarray.to_gpu(a).copy(stream), gpuarray.to_gpu(a).copy(stream=stream)):
        assert made.get(stream=stream).tolist() == a.tolist()
    with pytest.raises(TypeError, match="stream"):
        gpuarray.to_gpu(a).copy(7.5)


@given(pair=pairs())
def test_copy(pair):
    a, a_gpu = pair
    b_gpu = a_gpu.copy()
    check(b_gpu, a)
    a_gpu.fill(1)
    check(b_gpu, a)
    contiguous = np.asfortranarray(numbers((3, 4), "f4"))
    assert gpuarray.to_gpu(contiguous).copy().strides == contiguous.strides


@given(target=pairs(np.dtype("f4"), (3, 4)), source=pairs(np.dtype("f4"), (3, 4)))
def test_set_in_every_pair_of_orders(target, source):
    _, a_gpu = target
    b, _ = source
    a_gpu.set(b)
    check(a_gpu, b)


@given(pair=pairs(np.dtype("i4"), (2, 3, 4)), other=pairs(np.dtype("i4"), (2, 3, 4)))
def test_get_into_an_array_of_any_order(pair, other):
    a, a_gpu = pair
    destination = other.host.copy(order="K") if other.host.base is None else other.host
    before = destination.base.copy() if destination.base is not None else None
    assert a_gpu.get(destination) is destination
    np.testing.assert_array_equal(destination, a)
    if before is not None:
        # Bytes between the elements of a strided destination are not changed.
        outside = np.ones(destination.base.shape, bool)
        marks = np.lib.stride_tricks.as_strided
        offset = (
            destination.__array_interface__["data"][0]
            - destination.base.__array_interface__["data"][0]
        )
        flat = outside.reshape(-1).view()
        marks(flat[offset // 4 :], destination.shape, _scaled(destination.strides))[...] = False
        np.testing.assert_array_equal(destination.base[outside], before[outside])


def _scaled(strides):
    """Returns strides over int32 as strides over bool."""
    return tuple(stride // 4 for stride in strides)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_the_round_trip(dtype):
    a = numbers(1000, dtype, 22, special=True)
    got = gpuarray.to_gpu(a).get()
    assert got.tobytes() == a.tobytes()


def test_get_asynchronously():
    a = numbers(100_000, "f4", 23)
    stream = driver.Stream()
    a_gpu = gpuarray.to_gpu_async(a, stream=stream)
    got = a_gpu.get_async(stream)
    stream.synchronize()
    np.testing.assert_array_equal(got, a)
    pinned = driver.pagelocked_empty(a.shape, a.dtype)
    assert a_gpu.get_async(stream, pinned) is pinned
    stream.synchronize()
    np.testing.assert_array_equal(pinned, a)
    got = a_gpu.get(async_=True, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(got, a)


def test_set_asynchronously():
    stream = driver.Stream()
    a = driver.pagelocked_empty(1000, np.float32)
    a[:] = np.arange(1000)
    a_gpu = gpuarray.zeros(1000, np.float32)
    a_gpu.set_async(a, stream)
    stream.synchronize()
    check(a_gpu, a)
    a_gpu.set(a * 2, async_=True, stream=stream)
    stream.synchronize()
    check(a_gpu, a * 2)


def test_pageable_memory_may_change_after_an_asynchronous_set():
    stream = driver.Stream()
    a = np.arange(1000, dtype="f4")
    a_gpu = gpuarray.to_gpu_async(a, stream=stream)
    a[:] = -1
    stream.synchronize()
    check(a_gpu, np.arange(1000, dtype="f4"))


def test_get_into_pagelocked_memory():
    a = np.asfortranarray(numbers((30, 40), "f8", 24))
    got = gpuarray.to_gpu(a).get(pagelocked=True)
    np.testing.assert_array_equal(got, a)
    assert got.strides == a.strides


def test_the_old_spelling_async():
    a_gpu = gpuarray.zeros(3)
    a_gpu.set(np.ones(3), **{"async": True})
    np.testing.assert_array_equal(a_gpu.get(**{"async": True}), np.ones(3))


def test_set_with_another_shape_of_the_same_size_warns():
    a_gpu = gpuarray.zeros((2, 3))
    with pytest.warns(UserWarning, match="different shape"):
        a_gpu.set(np.arange(6.0))
    check(a_gpu, np.arange(6.0).reshape(2, 3))


def test_get_with_another_shape_of_the_same_size_warns():
    a_gpu = gpuarray.to_gpu(np.arange(6.0).reshape(2, 3))
    destination = np.zeros(6)
    with pytest.warns(DeprecationWarning, match="shape"):
        a_gpu.get(destination)
    np.testing.assert_array_equal(destination, np.arange(6.0))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_small_shapes(shape):
    a = np.full(shape, 2.5)
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu, a)
    a_gpu.set(a + 1)
    check(a_gpu, a + 1)
    check(a_gpu.copy(), a + 1)


def test_work_on_two_streams_is_ordered_by_the_array():
    one, other = driver.Stream(), driver.Stream()
    a = numbers(200_000, "f8", 25)
    for round_ in range(20):
        a_gpu = gpuarray.to_gpu_async(a + round_, stream=one)
        a_gpu.fill(round_, other)
        np.testing.assert_array_equal(a_gpu.get_async(one), float(round_))
        one.synchronize()


@given(pair=pairs())
def test_to_gpu_and_set_take_arrays_of_the_device(pair):
    a, a_gpu = pair
    b_gpu = gpuarray.to_gpu(a_gpu)
    check(b_gpu, a)
    assert same_strides(b_gpu, a.copy(order="K"))
    b_gpu.fill(0)
    b_gpu.set(a_gpu)
    check(b_gpu, a)
    b_gpu.fill(0)
    b_gpu.set_async(a_gpu, driver.Stream())
    check(b_gpu, a)


def test_arrays_of_the_device_that_do_not_fit():
    a = gpuarray.arange(6, dtype=np.float32)
    with pytest.raises(ValueError, match="same size"):
        a.set(gpuarray.zeros(5, np.float32))
    with pytest.raises(ValueError, match="same dtype"):
        a.set(gpuarray.zeros(6, np.int32))
    with pytest.warns(UserWarning, match="different shape"):
        gpuarray.zeros((2, 3), np.float32).set(a)


def test_raw_copies_take_arrays_in_c_and_fortran_order_only():
    # In an image with transposed channels, the elements are not in the order that the program
    # expects.
    image = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    moved = image.transpose(2, 0, 1)
    memory = driver.mem_alloc(image.nbytes)
    stream = driver.Stream()
    for copy in (
        lambda: driver.memcpy_htod(memory, moved),
        lambda: driver.memcpy_htod_async(memory, moved, stream),
        lambda: driver.memcpy_dtoh(moved, memory),
        lambda: driver.memcpy_dtoh_async(moved, memory, stream),
        lambda: driver.to_device(moved),
    ):
        with pytest.raises(ValueError, match="not contiguous"):
            copy()
    back = np.empty(24, np.float32)
    driver.memcpy_htod(memory, np.asfortranarray(image))
    driver.memcpy_dtoh(back, memory)
    assert np.array_equal(back, image.ravel("F"))
    assert np.array_equal(gpuarray.to_gpu(moved).get(), moved)
