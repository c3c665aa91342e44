"""Creating arrays: the constructor, to_gpu, empty, zeros, ones, their _like forms, arange."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from pairs import DTYPES, check, numbers, pairs, same_strides
from tables import each_row

from pygpu import driver, gpuarray


@each_row("dtype", DTYPES)
@each_row("shape", [(), (0,), (5,), (3, 0), (3, 4), (2, 3, 4)])
def test_attributes_are_numpys(dtype, shape):
    a = np.zeros(shape, dtype)
    a_gpu = gpuarray.GPUArray(shape, dtype)
    for name in ("shape", "dtype", "size", "nbytes", "itemsize", "ndim"):
        assert getattr(a_gpu, name) == getattr(a, name), name
    if a.size:  # numpy versions differ in the strides of empty arrays
        assert a_gpu.strides == a.strides
    assert a_gpu.mem_size == a.size
    assert a_gpu.base is None
    assert a_gpu.flags.c_contiguous == a.flags.c_contiguous
    assert a_gpu.flags.f_contiguous == a.flags.f_contiguous
    assert a_gpu.flags.forc
    assert isinstance(a_gpu.shape, tuple)
    assert isinstance(a_gpu.strides, tuple)
    assert isinstance(a_gpu.dtype, np.dtype)


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (7, (7,)),
        (np.int32(7), (7,)),
        (np.array(7), (7,)),
        (np.array([2, 3]), (2, 3)),
        ([2, 3], (2, 3)),
        ((np.int64(2), 3), (2, 3)),
        ((), ()),
    ],
)
def test_a_shape_may_be_anything_like_integers(given, shape):
    for make in (gpuarray.GPUArray, gpuarray.empty, gpuarray.zeros, gpuarray.ones):
        assert make(given, np.float32).shape == shape


def test_keyword_arguments_have_pycudas_names():
    memory = driver.mem_alloc(64)
    a = gpuarray.GPUArray(
        shape=(2, 4),
        dtype=np.float64,
        allocator=driver.mem_alloc,
        base=None,
        gpudata=memory,
        strides=None,
        order="F",
    )
    assert a.strides == (8, 16)
    assert a.ptr == int(memory)
    assert int(a.gpudata) == int(memory)
    assert gpuarray.empty(shape=3, dtype="f4", allocator=driver.mem_alloc, order="F").shape == (3,)
    assert gpuarray.zeros(shape=3, dtype="f4", allocator=driver.mem_alloc, order="F").shape == (3,)
    assert gpuarray.ones(shape=3, dtype="f4", allocator=driver.mem_alloc, order="F").shape == (3,)


@each_row("order", ["C", "F"])
@each_row("dtype", DTYPES)
def test_zeros_and_ones(order, dtype):
    for ours, theirs in ((gpuarray.zeros, np.zeros), (gpuarray.ones, np.ones)):
        a = theirs((3, 4), dtype, order)
        a_gpu = ours((3, 4), dtype, order=order)
        check(a_gpu, a)
        assert a_gpu.strides == a.strides


def test_the_default_type_of_zeros_and_ones_is_float64():
    assert gpuarray.zeros(3).dtype == np.float64
    assert gpuarray.ones(3).dtype == np.float64


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@given(pair=pairs())
def test_like(order, pair):
    a, a_gpu = pair
    for name in ("empty_like", "zeros_like", "ones_like"):
        expected = getattr(np, name)(a, order=order)
        result = getattr(gpuarray, name)(a_gpu, order=order)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert same_strides(result, expected)
        if name != "empty_like":
            check(result, expected)


@pytest.mark.parametrize("order", ["K", "C", "F", "A"])
@pytest.mark.parametrize("shape", [(5, 2, 3), (4,), 7, (), (0, 2, 1)])
def test_like_with_another_shape(order, shape):
    a = np.zeros((2, 3, 4)).transpose(1, 2, 0)
    a_gpu = gpuarray.to_gpu(a)
    got, expected = (f(it, order=order, shape=shape) for f, it in pairs_of(a, a_gpu))
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    if expected.size:
        assert got.strides == expected.strides
    check(np.full_like(a_gpu, 7, shape=shape), np.full_like(a, 7, shape=shape))
    with pytest.raises(ValueError, match="shape is"):
        gpuarray.ones_like(a_gpu, shape=(2, -1))


def pairs_of(a, a_gpu):
    return ((gpuarray.zeros_like, a_gpu), (np.zeros_like, a))


def test_the_device_of_an_array():
    a = gpuarray.zeros(3)
    assert a.device == driver.Device(a._ordinal)

    class Own(gpuarray.GPUArray):
        pass

    own = Own((2,), np.float32)
    own.device = "mine"
    assert own.device == "mine"


def test_like_with_another_type():
    a = gpuarray.empty((2, 3), np.float32, order="F")
    check(gpuarray.ones_like(a, dtype=np.complex64), np.ones((2, 3), np.complex64))
    assert gpuarray.zeros_like(a, np.int8).flags.f_contiguous


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill(dtype):
    a = np.empty((3, 4), dtype)
    a_gpu = gpuarray.empty((3, 4), dtype)
    value = numbers(20, dtype, 21)[7]
    a.fill(value)
    assert a_gpu.fill(value) is a_gpu
    check(a_gpu, a)
    a_gpu.fill(np.array(1, dtype))
    check(a_gpu, np.ones((3, 4), dtype))


def test_fill_of_a_view_leaves_the_rest():
    a = np.arange(20.0).reshape(4, 5)
    a_gpu = gpuarray.to_gpu(a)
    a[1::2, ::-2] = 9
    a_gpu[1::2, ::-2].fill(9)
    check(a_gpu, a)


# ---- arange -------------------------------------------------------------------------------------


@each_row(
    "arguments",
    [(12,), (3, 12), (3, 12, 2), (12, 3, -2), (5, 5), (5, 3), (0, 100_000, 7)],
)
@each_row("dtype", ["f4", "f8", "i4", "i8"])
def test_arange(arguments, dtype):
    check(gpuarray.arange(*arguments, dtype=dtype), np.arange(*arguments, dtype=dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("arguments", [(0, 1, 0.1), (-1.5, 2, 0.25), (2, -1, -0.3)])
def test_arange_with_fractions(arguments, dtype):
    expected = np.arange(*arguments, dtype=dtype)
    check(gpuarray.arange(*arguments, dtype=dtype), expected, 1e-6, 1e-6)


def test_arange_by_keyword_and_with_the_type_in_the_last_place():
    check(gpuarray.arange(start=2, stop=9, step=3, dtype=np.int32), np.arange(2, 9, 3, "i4"))
    check(gpuarray.arange(0, 9, 3, np.dtype("f4")), np.arange(0, 9, 3, "f4"))


def test_arange_takes_the_type_of_its_arguments():
    check(gpuarray.arange(5), np.arange(5))
    check(gpuarray.arange(0.5, 5), np.arange(0.5, 5))


# ---- allocators ---------------------------------------------------------------------------------


def test_an_allocator_is_called_with_the_bytes_and_passed_on():
    sizes = []

    def allocate(size):
        sizes.append(size)
        return driver.mem_alloc(size)

    a = gpuarray.to_gpu(np.arange(10, dtype="f4"), allocator=allocate)
    assert sizes == [40]
    assert a.allocator is allocate
    b = a + a
    assert b.allocator is allocate
    assert sizes[:2] == [40, 40]
    check(b, np.arange(10, dtype="f4") * 2)
    c = gpuarray.zeros((2, 2), np.float64, allocator=allocate)
    check(c, np.zeros((2, 2)))
    assert sizes[2] == 32
    assert a[2:].allocator is allocate
    assert gpuarray.empty_like(a).allocator is allocate
    assert gpuarray.zeros(3).allocator is driver.mem_alloc


def test_an_allocators_exception_arrives_unchanged():
    class Refused(Exception):
        pass

    def allocate(size):
        raise Refused(size)

    with pytest.raises(Refused):
        gpuarray.empty(10, np.float32, allocator=allocate)


def test_an_empty_array_allocates_nothing():
    def allocate(size):
        raise AssertionError(size)

    a = gpuarray.GPUArray((0, 4), np.float32, allocator=allocate)
    assert a.gpudata is None
    assert a.get().shape == (0, 4)


def test_an_allocators_memory_lives_as_long_as_the_array():
    freed = []

    class Block:
        def __init__(self, size):
            self.memory = driver.mem_alloc(size)

        def __int__(self):
            return int(self.memory)

        def __del__(self):
            freed.append(True)

    a = gpuarray.to_gpu(np.arange(8.0), allocator=Block)
    view = a[2:]
    del a
    assert not freed
    check(view, np.arange(2.0, 8.0))
    del view
    driver.Context.synchronize()
    assert freed


# ---- existing memory ----------------------------------------------------------------------------


def test_gpudata_and_strides_describe_existing_memory():
    a = np.arange(12, dtype="f4").reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    every_other = gpuarray.GPUArray(
        (3, 2), np.float32, base=a_gpu, gpudata=int(a_gpu.gpudata) + 4, strides=(16, 8)
    )
    assert every_other.base is a_gpu
    check(every_other, a[:, 1::2])
    every_other += 100
    a[:, 1::2] += 100
    check(a_gpu, a)
    fortran = gpuarray.GPUArray((4, 3), np.float32, gpudata=a_gpu.gpudata, order="F")
    check(fortran, a.T)


def test_strides_without_memory_allocate_all_that_they_reach():
    a_gpu = gpuarray.GPUArray((3, 2), np.float32, strides=(4, 40)).fill(2)
    a_gpu[:, 1].fill(3)
    check(a_gpu, np.array([[2, 3]] * 3, np.float32))
    assert a_gpu.strides == (4, 40)


def test_a_zero_stride_repeats():
    a_gpu = gpuarray.to_gpu(np.arange(3.0))
    rows = gpuarray.GPUArray((4, 3), np.float64, base=a_gpu, gpudata=a_gpu.gpudata, strides=(0, 8))
    check(rows + 0, np.broadcast_to(np.arange(3.0), (4, 3)))
    check(gpuarray.sum(rows), np.array(12.0))
