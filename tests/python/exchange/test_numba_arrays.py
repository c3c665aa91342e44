"""Arrays of pygpu.cuda against numpy's, with the rules of numba.cuda."""

from __future__ import annotations

import ctypes
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import DTYPES, numbers, seeds, shapes, some_shapes

from pygpu import cuda, gpuarray
from pygpu.cuda.cudadrv import devicearray, driver

orders = st.sampled_from("CF")


def host_array(shape, dtype, seed, order="C"):
    return np.asarray(numbers(shape, dtype, seed), order=order)


def check(device, host):
    assert isinstance(device, devicearray.DeviceNDArray)
    assert (device.shape, device.dtype) == (host.shape, host.dtype)
    np.testing.assert_array_equal(device.copy_to_host(), host)


@given(shapes, st.sampled_from(DTYPES), seeds, orders)
def test_arrays_go_to_the_device_and_back(shape, dtype, seed, order):
    host = host_array(shape, dtype, seed, order)
    device = cuda.to_device(host)
    check(device, host)
    if host.size:
        assert device.strides == host.strides
    assert device.is_c_contiguous() == device.flags["C_CONTIGUOUS"] == host.flags.c_contiguous
    assert device.is_f_contiguous() == device.flags["F_CONTIGUOUS"] == host.flags.f_contiguous
    assert (device.nbytes, device.alloc_size) == (host.nbytes, host.nbytes)
    target = np.empty_like(host)
    assert device.copy_to_host(target) is target
    np.testing.assert_array_equal(target, host)


@given(some_shapes, seeds, orders, st.sampled_from("CFA"), st.data())
def test_reshape_and_ravel_are_numpys_views_or_refused(shape, seed, order, new_order, data):
    host = host_array(shape, np.float32, seed, order)
    device = cuda.to_device(host)
    size = host.size
    divisors = [count for count in range(1, size + 1) if size % count == 0]
    new = (data.draw(st.sampled_from(divisors)), -1)
    for name, arguments in (("reshape", new), ("ravel", ())):
        expected = getattr(host, name)(*arguments, order=new_order)
        try:
            result = getattr(device, name)(*arguments, order=new_order)
        except NotImplementedError:
            # An array that is contiguous in the requested order always has the view.
            wanted = {"C": "C", "F": "F", "A": order}[new_order]
            assert not host.flags[f"{wanted}_CONTIGUOUS"]
        else:
            check(result, expected)
            assert result.ptr == device.ptr


@given(st.integers(0, 40), st.integers(1, 45), seeds)
def test_split_covers_the_array(length, section, seed):
    host = host_array((length,), np.int32, seed)
    parts = list(cuda.to_device(host).split(section))
    expected = [host[start : start + section] for start in range(0, length, section)]
    assert len(parts) == len(expected)
    for part, piece in zip(parts, expected, strict=True):
        check(part, piece)


@given(some_shapes, seeds, orders, st.data())
def test_items_are_views_or_numbers(shape, seed, order, data):
    host = host_array(shape, np.float64, seed, order)
    device = cuda.to_device(host)
    index = tuple(
        data.draw(st.one_of(st.integers(-side, side - 1), st.slices(side))) for side in shape
    )
    expected, result = host[index], device[index]
    if np.ndim(expected) == 0 and isinstance(expected, np.generic):
        assert (type(result), result) == (type(expected), expected)
    else:
        check(result, expected)
        assert result.strides == expected.strides or not expected.size
    value = data.draw(st.sampled_from([7, 2.5, np.ones(np.shape(expected)[-1:])]))
    host[index], device[index] = value, value
    check(device, host)
    device[index] = cuda.to_device(np.asarray(value, np.float64))
    check(device, host)


@given(some_shapes, seeds, orders, st.permutations(range(3)))
def test_transposes_are_copies_in_c_order(shape, seed, order, axes):
    host = host_array(shape, np.int16, seed, order)
    device = cuda.to_device(host)
    check(device.T, host.T)
    axes = [axis for axis in axes if axis < host.ndim]
    result = device.transpose(axes)
    check(result, host.transpose(axes))
    check(device.transpose(*axes), host.transpose(axes))
    check(device.transpose(axes=axes), host.transpose(axes))
    assert (result is device) == (axes == sorted(axes)), "numba returns the array itself"
    assert result is device or result.is_c_contiguous()


@given(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4), seeds, st.data())
def test_squeeze_is_numpys(shape, seed, data):
    host = host_array(tuple(shape), np.uint8, seed)
    device = cuda.to_device(host)
    check(device.squeeze(), host.squeeze())
    if shape:
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        if shape[axis] == 1:
            check(device.squeeze(axis), host.squeeze(axis))
        else:
            with pytest.raises(ValueError, match=f"axis is {axis}"):
                device.squeeze(axis)


def test_views_of_another_dtype_share_the_bytes():
    host = np.arange(12, dtype="i2").reshape(3, 4)
    device = cuda.to_device(host)
    for dtype in ("i4", "f8", "u1", "i2"):
        check(device.view(dtype), host.view(dtype))
        assert device.view(dtype).ptr == device.ptr
    with pytest.raises(ValueError, match="divisor of the total size"):
        cuda.to_device(np.zeros((4, 3), "i2")).view("i4")
    with pytest.raises(ValueError, match="must be C-contiguous"):
        device[:, ::2].view("i4")


def test_device_arrays_are_shaped_as_asked():
    for shape in (3, (), (2, 3), [2, 3], np.array([2, 3])):
        assert cuda.device_array(shape).shape == np.empty(shape).shape
    assert cuda.device_array((2, 3), "f4", order="F").strides == (4, 8)
    assert cuda.device_array((2, 3), "f4", strides=(16, 4)).alloc_size == 28
    for odd in (1.5, (1.5,), np.array([1.0])):
        with pytest.raises(TypeError, match="shape"):
            cuda.device_array(odd)
    with pytest.raises(ValueError, match="extents must not be negative"):
        cuda.device_array(-1)
    with pytest.raises(ValueError, match="order is 'X'"):
        cuda.device_array(3, order="X")
    with pytest.raises(ValueError, match="strides has length 1"):
        cuda.device_array((2, 3), strides=(8,))


@pytest.mark.parametrize(
    "make", [cuda.device_array_like, cuda.mapped_array_like, cuda.pinned_array_like]
)
def test_likes_keep_the_order_of_axes(make):
    cube = np.zeros((2, 3, 4), "f4")
    for like in (cube, cube.T, cube.transpose(1, 0, 2), cube[:, ::2], cube[0]):
        made, expected = make(like), np.empty_like(like)
        assert (made.shape, made.dtype) == (like.shape, like.dtype)
        assert made.strides == expected.strides


def test_broadcast_arrays_keep_their_one_copy():
    row = np.arange(4.0)
    broad = np.broadcast_to(row, (3, 4))
    device = cuda.to_device(broad)
    assert (device.strides, device.alloc_size) == ((0, 8), 32)
    np.testing.assert_array_equal(device.copy_to_host(), broad)
    device.copy_to_device(np.broadcast_to(row * 2, (3, 4)))
    np.testing.assert_array_equal(device.copy_to_host()[0], row * 2)


def test_what_cannot_be_copied_is_refused():
    device = cuda.to_device(np.arange(6.0).reshape(2, 3))
    with pytest.raises(TypeError, match="incompatible dtype: float64 vs. int64"):
        device.copy_to_device(np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="incompatible shape"):
        device.copy_to_host(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="incompatible strides"):
        device.copy_to_host(np.zeros((2, 3), order="F"))
    with pytest.raises(ValueError, match="non-contiguous"):
        cuda.to_device(np.arange(10)[::2])
    with pytest.raises(ValueError, match="non-contiguous"):
        device[:, ::2].copy_to_device(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="Can't assign 3-D array to 2-D self"):
        device[:] = np.zeros((1, 2, 3))
    with pytest.raises(ValueError, match="Can't copy sequence with size 2 to array axis 1"):
        device[:] = [1, 2]
    with pytest.raises(TypeError, match="ary is of type list"):
        device.copy_to_host([1])
    with pytest.raises(TypeError, match="to is of type ndarray"):
        cuda.to_device(np.zeros(3), to=np.zeros(3))
    with pytest.raises(IndexError):
        device[2]
    check(device, np.arange(6.0).reshape(2, 3))


def test_axes_of_extent_one_do_not_count():
    device = cuda.to_device(np.arange(6.0).reshape(2, 1, 3))
    target = np.zeros((2, 3))
    device.copy_to_host(target)
    np.testing.assert_array_equal(target, [[0, 1, 2], [3, 4, 5]])
    device.copy_to_device(target + 1)
    check(device, (target + 1).reshape(2, 1, 3))


@pytest.mark.parametrize(
    "index",
    [
        [0, -1],
        np.array(1),
        np.array([True, False, True]),
        (slice(None), [3, 0]),
        (slice(None, None, 2), np.array([1, 2])),
        (..., None, [1]),
        True,
        np.array([[True, False, True, False]] * 3),
    ],
)
def test_arrays_of_indices_name_copies_and_are_stored_into(index):
    """An extension of numba's arrays, so their rules for views and transposes do not apply."""
    host = np.arange(12.0).reshape(3, 4)
    for order in "CF":
        device = cuda.to_device(np.array(host, order=order))
        part = device[index]
        np.testing.assert_array_equal(part.copy_to_host(), host[index])
        part[...] = -1
        np.testing.assert_array_equal(device.copy_to_host(), host)
        for value in (7.5, np.arange(host[index].size).reshape(host[index].shape)):
            expected = host.copy()
            expected[index] = value
            for source in (value, cuda.to_device(value) if np.ndim(value) else value):
                device = cuda.to_device(np.array(host, order=order))
                device[index] = source
                np.testing.assert_array_equal(device.copy_to_host(), expected)


def test_functions_of_pygpu_take_arrays_with_gaps():
    host = np.arange(24.0).reshape(4, 6)[:, ::2]
    device = cuda.to_device(np.arange(24.0).reshape(4, 6))[:, ::2]
    for ours, theirs in (
        (gpuarray.roll(device, 3), np.roll(host, 3)),
        (gpuarray.cumsum(device), np.cumsum(host)),
        (gpuarray.repeat(device, 2), np.repeat(host, 2)),
        (gpuarray.argmax(device), np.argmax(host)),
        (gpuarray.concatenate([device, device], None), np.concatenate([host, host], None)),
    ):
        np.testing.assert_array_equal(ours.get(), theirs)


def test_numpy_sees_a_copy():
    host = np.arange(6.0).reshape(2, 3)
    device = cuda.to_device(host)
    np.testing.assert_array_equal(np.asarray(device), host)
    assert np.asarray(device, dtype=np.int32).dtype == np.int32
    assert (np.sum(device), np.shape(device)) == (15.0, (2, 3))
    np.testing.assert_array_equal(np.concatenate([device, host]), np.concatenate([host, host]))
    check(np.transpose(device), host.T)
    with pytest.raises(ValueError, match="copy=False"):
        device.__array__(copy=False)
    assert list(cuda.to_device(np.arange(3))) == [0, 1, 2]
    assert len(device) == 2


def test_operators_and_the_rest_of_pygpu_take_them():
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    device = cuda.to_device(host)
    check(device + device, host + host)
    check((device * 2).reshape(6), host.ravel() * 2)
    np.testing.assert_array_equal(gpuarray.maximum(device, 3).get(), np.maximum(host, 3))
    plain = gpuarray.to_gpu(host)
    check(cuda.as_cuda_array(plain), host)
    assert cuda.as_cuda_array(plain).ptr == plain.ptr
    assert cuda.to_device(device) is device
    check(pickle.loads(pickle.dumps(device)), host)


class Foreign:
    """Another library's array."""

    def __init__(self, array, **changes):
        self.kept = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | changes


def test_foreign_arrays_share_their_memory():
    device = cuda.to_device(np.arange(6.0).reshape(2, 3))
    assert device.__cuda_array_interface__["strides"] is None
    for array in (device, device[:, ::2], device.T):
        view = cuda.as_cuda_array(Foreign(array))
        assert view.ptr == array.ptr
        check(view, array.copy_to_host())
    view[0, 0] = 9
    assert array[0, 0] == 9
    assert cuda.is_cuda_array(device)
    assert not cuda.is_cuda_array(np.arange(3))
    with pytest.raises(NotImplementedError, match="Masked"):
        cuda.as_cuda_array(Foreign(device, mask=device))
    with pytest.raises(TypeError, match="cuda array interface"):
        cuda.as_cuda_array(np.arange(3))
    stream = cuda.stream()
    bound = device.bind(stream)
    assert bound.__cuda_array_interface__["stream"] == int(stream)
    assert cuda.as_cuda_array(Foreign(bound)).stream.handle == stream.handle


def test_records():
    dtype = np.dtype(
        [("a", "i4"), ("b", "f8"), ("s", "U3"), ("v", "f4", 2), ("r", [("x", "i2")])], align=True
    )
    host = np.zeros(3, dtype)
    device = cuda.to_device(host)
    for array in (host, device):
        record = array[1]
        record["a"], record["b"], record["s"] = 7, 2.5, "abc"
        record["v"][:] = [1, 2]
        record["r"]["x"] = 5
    assert device.copy_to_host().tobytes() == host.tobytes()
    record = device[1]
    assert (record["a"], record["b"], record["s"], record["r"]["x"]) == (7, 2.5, "abc", 5)
    np.testing.assert_array_equal(record["v"].copy_to_host(), [1, 2])
    with pytest.raises(KeyError, match="'z' is not a field"):
        record["z"]
    single = cuda.to_device(host[1])
    assert isinstance(single, devicearray.DeviceRecord)
    target = host[0].copy()
    single.copy_to_host(target)
    assert target == host[1]


def test_memory_behind_an_array():
    device = cuda.to_device(np.arange(6, dtype="i4"))
    memory = device[2:4].gpu_data
    assert (memory.size, memory.handle) == (8, device.ptr + 8)
    assert device.device_ctypes_pointer.value == device.ptr
    assert isinstance(device.device_ctypes_pointer, ctypes.c_size_t)
    memory.memset(0)
    check(device, np.array([0, 1, 0, 0, 4, 5], "i4"))
    again = devicearray.DeviceNDArray((2,), (4,), "i4", gpu_data=device.gpu_data.view(16))
    del device, memory
    check(again, np.array([4, 5], "i4"))
    driver.device_memset(again, 1, 4)
    assert again[0] == 0x01010101
    with pytest.raises(ValueError, match="size is 9; the nbytes of dst is 8"):
        driver.device_memset(again, 1, 9)


def test_contiguity_ignores_what_repeats():
    for array in (np.zeros((2, 3)), np.zeros((2, 3)).T, np.zeros((4, 6))[::2, ::2], np.zeros(5)):
        assert devicearray.is_contiguous(array) == array.flags.c_contiguous
    assert devicearray.is_contiguous(np.broadcast_to(np.zeros(3), (2, 3)))


def test_kernels_are_for_numba():
    with pytest.raises(AttributeError, match=r"no 'jit'.*numba\.cuda.*SourceModule"):
        _ = cuda.jit
