"""Shapes: reshape, ravel, view, squeeze, transpose, reverse, concatenate, stack."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import DTYPES, check, numbers, pairs, same_strides
from tables import each_row

from pygpu import gpuarray


@given(pair=pairs(), data=st.data())
def test_transpose(pair, data):
    a, a_gpu = pair
    axes = data.draw(st.permutations(range(a.ndim)))
    for expected, result in (
        (a.T, a_gpu.T),
        (a.transpose(), a_gpu.transpose()),
        (a.transpose(axes), a_gpu.transpose(axes)),
        (np.transpose(a, axes), gpuarray.transpose(a_gpu, axes)),
    ):
        check(result, expected)
        assert same_strides(result, expected)


def test_a_transpose_is_a_view():
    a_gpu = gpuarray.zeros((2, 3))
    a_gpu.T.fill(4)
    check(a_gpu, np.full((2, 3), 4.0))


def test_bad_axes():
    a_gpu = gpuarray.zeros((2, 3))
    for axes in ((0,), (0, 1, 2), (0, 0), (0, 2), (0, -3)):
        with pytest.raises(ValueError, match="ax"):
            a_gpu.transpose(axes)


SHAPES_OF_24 = [(24,), (4, 6), (6, 4), (2, 3, 4), (2, 2, 2, 3), (1, 24), (24, 1), (2, -1), (-1,)]


@each_row("order", ["C", "F"])
@each_row("source", ["C", "F"])
@each_row("shape", SHAPES_OF_24)
def test_reshape(order, source, shape):
    a = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=source)
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu.reshape(shape, order=order), a.reshape(shape, order=order))
    check(a_gpu.reshape(*shape, order=order), a.reshape(*shape, order=order))
    check(gpuarray.reshape(a_gpu, shape, order=order), a.reshape(shape, order=order))


def test_reshape_of_a_contiguous_array_is_a_view():
    a_gpu = gpuarray.zeros((2, 6))
    a_gpu.reshape(3, 4)[1].fill(5)
    expected = np.zeros(12)
    expected[4:8] = 5
    check(a_gpu, expected.reshape(2, 6))


@pytest.mark.parametrize("shape", [(5, 5), (-1, 5), (-1, -1), (-2, 6), (12, 2, 0), (0, -1)])
def test_reshape_to_what_does_not_fit(shape):
    with pytest.raises(ValueError, match=r"\d"):
        gpuarray.zeros((4, 6)).reshape(shape)


def test_reshape_of_empty_arrays():
    a = np.zeros((0, 3))
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu.reshape(3, 0), a.reshape(3, 0))
    check(a_gpu.ravel(), a.ravel())
    check(gpuarray.to_gpu(np.array(3.0)).reshape(1, 1), np.array([[3.0]]))
    check(gpuarray.to_gpu(np.array([3.0])).reshape(()), np.array(3.0))


def test_ravel():
    a = np.arange(6.0).reshape(2, 3)
    check(gpuarray.to_gpu(a).ravel(), a.ravel())


def test_orders_that_there_are_not():
    x = gpuarray.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match='order is "X"; allowed are C, F, A and K'):
        x.ravel("X")
    with pytest.raises(ValueError, match='order is "K"; allowed are C, F and A$'):
        x.reshape(6, order="K")
    with pytest.raises(ValueError, match='order is ""; allowed are C and F$'):
        gpuarray.zeros(3, np.float32, order="")


@given(pair=pairs(np.dtype("f4"), st.sampled_from([(1, 3), (2, 1, 3), (1, 1), (3,), ()])))
def test_squeeze(pair):
    a, a_gpu = pair
    result = a_gpu.squeeze()
    check(result, a.squeeze())
    assert same_strides(result, a.squeeze())


@pytest.mark.parametrize(
    ("old", "new"), list(itertools.product(["u1", "i4", "f8", "c16"], repeat=2))
)
def test_view_as_another_type(old, new):
    a = numbers((3, 16), old, 28)
    check(gpuarray.to_gpu(a).view(new), a.view(new))


def test_view_shares_memory():
    a_gpu = gpuarray.zeros(4, np.uint32)
    a_gpu.view(np.uint8).fill(255)
    check(a_gpu, np.full(4, 2**32 - 1, np.uint32))
    view = gpuarray.zeros((3, 4))[1:, ::2].view()
    assert (view.shape, view.strides) == ((2, 2), (32, 16))


def test_view_that_does_not_fit():
    for make in (np.zeros, gpuarray.zeros):
        with pytest.raises(ValueError, match="type|itemsize|size"):
            make(3, np.int32).view(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reverse(dtype):
    a = numbers(1001, dtype, 29)
    check(gpuarray.to_gpu(a).reverse(), a[::-1])


# ---- joining ------------------------------------------------------------------------------------


@given(data=st.data())
def test_concatenate(data):
    rank = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(0, rank - 1))
    common = data.draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    hosts, devices = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        shape = list(common)
        shape[axis] = data.draw(st.integers(0, 4))
        host, device = data.draw(pairs(shape=tuple(shape)))
        hosts.append(host)
        devices.append(device)
    check(gpuarray.concatenate(devices, axis), np.concatenate(hosts, axis))


@given(data=st.data())
def test_stack(data):
    shape = data.draw(st.lists(st.integers(0, 4), max_size=2).map(tuple))
    axis = data.draw(st.integers(-1, len(shape)))
    made = [data.draw(pairs(shape=shape)) for _ in range(data.draw(st.integers(1, 3)))]
    hosts, devices = [pair.host for pair in made], [pair.device for pair in made]
    check(gpuarray.stack(devices, axis), np.stack(hosts, axis))


def test_concatenate_and_stack_refuse_what_numpy_refuses():
    def zeros(*shape):
        return np.zeros(shape), gpuarray.zeros(shape)

    cases = [
        (np.concatenate, gpuarray.concatenate, [zeros(2, 3), zeros(2, 4)], 0),
        (np.concatenate, gpuarray.concatenate, [zeros(2, 3), zeros(2)], 0),
        (np.concatenate, gpuarray.concatenate, [zeros(2, 3)], 2),
        (np.concatenate, gpuarray.concatenate, [], 0),
        (np.stack, gpuarray.stack, [zeros(2, 3), zeros(2, 4)], 0),
        (np.stack, gpuarray.stack, [zeros(2)], 3),
        (np.stack, gpuarray.stack, [], 0),
    ]
    for theirs, ours, made, axis in cases:
        with pytest.raises((ValueError, IndexError)):
            theirs([host for host, _ in made], axis)
        with pytest.raises((ValueError, IndexError)):
            ours([device for _, device in made], axis)


# ---- iteration ----------------------------------------------------------------------------------


@each_row("shape", [(), (0,), (3,), (2, 3), (0, 2), (2, 0)])
def test_iteration(shape):
    a = numbers(shape, "i4", 1)
    a_gpu = gpuarray.to_gpu(np.asarray(a))
    assert np.iterable(a_gpu) == np.iterable(a) == hasattr(a_gpu, "__iter__") & bool(shape)
    if not shape:
        with pytest.raises(TypeError, match="iteration over a 0-d array"):
            iter(a_gpu)
        assert int(a) in a_gpu
        assert int(a) + 1 not in a_gpu
        return
    parts = list(a_gpu)
    assert len(parts) == len(a)
    for part, expected in zip(parts, a, strict=True):
        check(part, expected)
    for value in (0, 3.0, 1 << 20):
        assert (value in a_gpu) == (value in a)
    if len(a):
        next(iter(a_gpu))[...] = 7
        assert (a_gpu[0].get() == 7).all()


# ---- complex ------------------------------------------------------------------------------------


@given(pair=pairs())
def test_real_imag_conj(pair):
    a, a_gpu = pair
    check(a_gpu.real, a.real)
    check(a_gpu.imag, a.imag)
    if a.dtype.kind == "c":
        check(a_gpu.conj(), a.conj())
        check(a_gpu.conjugate(), a.conj())


def test_conj_into_an_array():
    a = numbers(20, "c16", 30)
    out = gpuarray.empty(20, np.complex64)
    assert gpuarray.to_gpu(a).conj(out=out) is out
    check(out, a.conj().astype(np.complex64))
