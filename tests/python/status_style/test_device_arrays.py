"""Low-level arrays: five constructors for each element type, and the arguments they refuse."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import zlib

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE, settled_memory
from tables import each_row

import PyGPU as gpuarray

DTYPES = [np.dtype(name) for name in gpuarray.SUPPORTED_DTYPES]
SHAPE = (2, 3, 4)
INVALID_VALUE, OUT_OF_MEMORY = 1, 2


def class_of(prefix, dtype):
    return getattr(gpuarray, f"{prefix}_{np.dtype(dtype).name}")


def device_array(dtype, *args):
    return class_of("DeviceArray", dtype)(*args)


def numbers(dtype, order="C"):
    values = np.arange(1, 25).reshape(SHAPE)
    return np.asarray(values * (1 + 2j) if dtype.kind == "c" else values, dtype, order)


def sized(dtype, order):
    return device_array(dtype, 24), None


def shaped(dtype, order):
    return device_array(dtype, list(SHAPE), int(order == "C")), None


def at_pointer(dtype, order):
    pointer = class_of("ptr_wrapper", dtype)()
    pointer.create(24)
    return device_array(dtype, pointer, list(SHAPE), int(order == "C")), pointer


def at_addresses(dtype, order):
    host = np.empty(SHAPE, dtype, order)
    memory = class_of("DeviceAllocator", dtype)()
    assert memory.allocate(24)
    addresses = host.ctypes.data, int(memory.ptr())
    return device_array(dtype, *addresses, list(SHAPE), int(order == "C")), (host, memory)


def over_buffer(dtype, order):
    return device_array(dtype, np.empty(SHAPE, dtype, order)), None


CONSTRUCTORS = [sized, shaped, at_pointer, at_addresses, over_buffer]


@each_row("order", ["C", "F"])
@each_row("dtype", DTYPES, ids=str)
@each_row("make", CONSTRUCTORS, ids=lambda make: make.__name__)
def test_a_round_trip(make, dtype, order):
    it, _keep = make(dtype, order)
    expected = numbers(dtype, order)
    if make is sized:
        expected = expected.ravel()
    assert it.last_status()
    assert (it.size(), it.nbytes()) == (24, 24 * dtype.itemsize)
    assert it.shape() == list(expected.shape)
    assert it.strides() == list(expected.strides)
    assert it.allocated() == (make is at_addresses)
    assert (int(it.device_data()) != 0) == (make is at_addresses)
    if not it.allocated():
        assert it.allocate()
    view = np.asarray(it)
    assert (view.shape, view.strides, view.dtype) == (expected.shape, expected.strides, dtype)
    assert it.host_data().get() == (view.ctypes.data, True)
    view[:] = expected
    assert it.to_device()
    view[:] = 0
    assert it.to_host()
    np.testing.assert_array_equal(view, expected)
    assert it.set_val(5, 77)
    np.testing.assert_array_equal(view, expected)
    assert it.to_host()
    assert view.ravel(order="K")[5] == 77
    assert it.set(np.zeros(24, dtype))
    assert it.to_host()
    assert not view.any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_buffer_protocol(dtype):
    for order in "CF":
        it = device_array(dtype, list(SHAPE), int(order == "C"))
        np.asarray(it)[:] = numbers(dtype)
        view = memoryview(it)
        assert (view.shape, view.itemsize, view.readonly) == (SHAPE, dtype.itemsize, False)
        assert (view.c_contiguous, view.f_contiguous) == (order == "C", order == "F")
        np.testing.assert_array_equal(np.frombuffer(view.tobytes(), dtype), numbers(dtype).ravel())
        del it
        gc.collect()
        np.testing.assert_array_equal(np.asarray(view), numbers(dtype))
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        # crc32 requires bytes in C order, which Fortran-order memory does not provide.
        zlib.crc32(device_array(dtype, [2, 3], 0))


def test_any_buffer_is_kept_alive():
    made = [
        array.array("l", range(6)),
        bytearray(48),
        mmap.mmap(-1, mmap.PAGESIZE),
        (ctypes.c_int64 * 6)(*range(6)),
        memoryview(np.arange(6)),
    ]
    for buffer in made:
        class_ = gpuarray.DeviceArray_int64
        if isinstance(buffer, bytearray | mmap.mmap):
            # The elements are bytes, so the same number of wider elements does not fit.
            refused = class_(buffer)
            assert refused.last_status() == INVALID_VALUE
            buffer = memoryview(buffer).cast("q")
        it = class_(buffer)
        assert it.last_status(), buffer
        expected = np.array(buffer)
        assert it.allocate()
        assert it.to_device()
        del buffer
        gc.collect()
        np.asarray(it)[:] = -1
        assert it.to_host()
        np.testing.assert_array_equal(np.asarray(it), expected)


def test_a_buffer_in_use_cannot_be_taken_away():
    memory = bytearray(48)
    it = gpuarray.DeviceArray_int64(memoryview(memory).cast("q"))
    with pytest.raises(BufferError):
        memory.clear()
    del it
    memory.clear()


def test_element_types_are_not_compared():
    values = np.arange(6.0)
    it = gpuarray.DeviceArray_int64(values)
    assert it.allocate()
    assert it.to_device()
    np.testing.assert_array_equal(np.asarray(it), values.view(np.int64))
    # An array of narrower elements uses the first bytes.
    narrow = gpuarray.DeviceArray_int16(values)
    assert narrow.nbytes() == 12
    np.testing.assert_array_equal(np.asarray(narrow), values.view(np.int16)[:6])


# -- what fails ---------------------------------------------------------------------------------


def is_dead(it, code=INVALID_VALUE):
    """Returns true if every use of an array that could not be created fails with this status."""
    assert it.last_status() == code
    assert it.allocate() == INVALID_VALUE
    for call in (it.to_device, it.to_host, lambda: it.set_val(0, 1), lambda: it.set(np.zeros(6))):
        assert call() == INVALID_VALUE
    assert int(it.host_data()) == int(it.device_data()) == 0
    assert it.host_data().get() == (None, False)
    with pytest.raises(BufferError):
        memoryview(it)
    return not it.allocated()


def test_copies_need_device_memory():
    host = np.arange(6)
    it = gpuarray.DeviceArray_int64(host)
    for call in (it.to_device, it.to_host, lambda: it.set_val(0, 1), lambda: it.set(host)):
        assert call() == INVALID_VALUE
        assert it.last_status() == INVALID_VALUE
    np.testing.assert_array_equal(host, np.arange(6))
    assert it.allocate()
    assert it.last_status()


def test_a_second_allocation_fails_and_keeps_the_first():
    it = gpuarray.DeviceArray_int64(np.arange(6))
    assert it.allocate()
    address = int(it.device_data())
    it.to_device()
    assert it.allocate() == INVALID_VALUE
    assert int(it.device_data()) == address
    np.asarray(it)[:] = 0
    assert it.to_host()
    np.testing.assert_array_equal(np.asarray(it), np.arange(6))


@pytest.mark.parametrize("shape", [[-1], [2, -3], [2**62, 2], [2**40, 2**40], [2**63]])
def test_shapes_that_no_memory_has(shape):
    assert is_dead(gpuarray.DeviceArray_float64(shape))
    host, memory = np.zeros(1), gpuarray.DeviceAllocator_float64()
    memory.allocate(1)
    assert is_dead(gpuarray.DeviceArray_float64(host.ctypes.data, int(memory.ptr()), shape))


def test_more_than_there_is():
    # Drivers return different statuses for page-locked memory.
    it = gpuarray.DeviceArray_float64(2**50)
    assert it.last_status() in (INVALID_VALUE, OUT_OF_MEMORY)
    assert is_dead(it, it.last_status())
    memory = gpuarray.DeviceAllocator_float64()
    assert memory.allocate(2**50) == OUT_OF_MEMORY
    assert memory.last_status() == OUT_OF_MEMORY
    assert int(memory.ptr()) == 0


def test_wrong_sizes():
    it = gpuarray.DeviceArray_int64(np.arange(6))
    it.allocate()
    it.to_device()
    for wrong in (np.arange(5), np.arange(7), np.arange(6, dtype=np.int32), b"", bytes(47)):
        assert it.set(wrong) == INVALID_VALUE
    for wrong in (-1, 6, 2**70):
        assert it.set_val(wrong, 0) == INVALID_VALUE
    for wrong in (2**63, -(2**63) - 1, [1, 2], np.arange(2)):
        try:
            assert it.set_val(0, wrong) == INVALID_VALUE
        except TypeError:
            assert not isinstance(wrong, int)
    it.to_host()
    np.testing.assert_array_equal(np.asarray(it), np.arange(6))
    # A pointer knows the size of its memory.
    small = gpuarray.DeviceArray_int64(3)
    assert is_dead(gpuarray.DeviceArray_int64(small.host_data(), [4]))
    assert gpuarray.DeviceArray_int64(small.host_data(), [3]).last_status()
    wide = gpuarray.DeviceArray_int64(np.arange(100))
    assert is_dead(gpuarray.DeviceArray_int64(wide.host_data(), it.device_data(), [100]))


def test_buffers_that_cannot_be_copied():
    assert is_dead(gpuarray.DeviceArray_int64(np.arange(12)[::2]))
    assert is_dead(gpuarray.DeviceArray_int64(np.arange(24).reshape(2, 3, 4).transpose(0, 2, 1)))
    assert is_dead(gpuarray.DeviceArray_int64(np.array([object()] * 3)))
    assert is_dead(gpuarray.DeviceArray_int64(np.arange(3, dtype=np.int32)))
    released = memoryview(np.arange(3))
    released.release()
    assert is_dead(gpuarray.DeviceArray_int64(released))
    assert is_dead(gpuarray.DeviceArray_int64(gpuarray.DeviceArray_int64([-1])))


def test_a_read_only_buffer_is_copied_from_alone():
    values = np.arange(6).tobytes()
    it = gpuarray.DeviceArray_int64(memoryview(values).cast("q"))
    assert memoryview(it).readonly
    assert it.allocate()
    assert it.to_device()
    assert it.to_host() == INVALID_VALUE
    assert values == np.arange(6).tobytes()


def test_null_and_unaligned_pointers():
    null = gpuarray.ptr_wrapper_int64()
    assert is_dead(gpuarray.DeviceArray_int64(null, [6]))
    host, memory = np.zeros(7, np.int64), gpuarray.DeviceAllocator_int64()
    assert is_dead(gpuarray.DeviceArray_int64(host.ctypes.data, memory.ptr(), [6]))
    assert memory.allocate(7)
    device = int(memory.ptr())
    bad = [(0, device), (host.ctypes.data, 0), (-8, device), (host.ctypes.data, -8)]
    bad += [(host.ctypes.data + 1, device), (host.ctypes.data, device + 4), (2**64, device)]
    for addresses in bad:
        assert is_dead(gpuarray.DeviceArray_int64(*addresses, [6])), addresses


def test_addresses_where_nothing_is():
    """Addresses that are unmapped, or that the driver does not know, are refused."""
    hole = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(hole))
    hole.close()
    memory = gpuarray.DeviceAllocator_int64()
    memory.allocate(6)
    it = gpuarray.DeviceArray_int64(address, int(memory.ptr()), [6])
    assert it.to_device() == INVALID_VALUE
    assert it.to_host() == INVALID_VALUE
    host = np.arange(6)
    other = gpuarray.DeviceArray_int64(host.ctypes.data, 8, [6])
    assert not other.to_device()
    assert not other.to_host()
    assert not other.set_val(0, 1)
    np.testing.assert_array_equal(host, np.arange(6))
    assert not it.set(address)


def test_memory_that_was_destroyed_is_not_used():
    pointer = gpuarray.ptr_wrapper_int64()
    pointer.create(6)
    it = gpuarray.DeviceArray_int64(pointer, [6])
    view = np.asarray(it)
    it.allocate()
    it.to_device()
    pointer.destroy()
    assert pointer.get() == (None, False)
    assert it.to_device() == INVALID_VALUE
    assert it.to_host() == INVALID_VALUE
    with pytest.raises(BufferError, match="freed"):
        memoryview(it)
    # A view that was created earlier keeps the memory alive.
    view[:] = 7
    assert view.sum() == 42
    pointer.destroy()
    pointer.create(3)
    assert it.to_device() == INVALID_VALUE


def test_memory_that_an_allocator_has_replaced_is_not_used():
    memory = gpuarray.DeviceAllocator_int64()
    memory.allocate(6)
    host = np.arange(6)
    it = gpuarray.DeviceArray_int64(host.ctypes.data, memory.ptr(), [6])
    assert it.to_device()
    assert memory.allocate(6)
    assert it.to_device() == INVALID_VALUE
    assert it.to_host() == INVALID_VALUE


def test_a_device_pointer_is_no_host_pointer():
    it = gpuarray.DeviceArray_int64(6)
    it.allocate()
    assert is_dead(gpuarray.DeviceArray_int64(it.device_data(), [6]))
    assert it.set(it.device_data()) == INVALID_VALUE


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("abc",),
        (1.5,),
        (None,),
        ([1.5],),
        (["a"],),
        (3, [4]),
        ("a", "b", [4]),
        (1, 2, 3, [4]),
        (1, 2),
        ([2], 1, 1),
    ],
    ids=str,
)
def test_arguments_of_no_constructor(args):
    with pytest.raises(TypeError):
        gpuarray.DeviceArray_int64(*args)


def test_empty_arrays():
    for it in (
        gpuarray.DeviceArray_int64(0),
        gpuarray.DeviceArray_int64([3, 0]),
        gpuarray.DeviceArray_int64(np.zeros((0, 2), np.int64)),
    ):
        assert it.last_status()
        assert it.allocate()
        assert it.allocated()
        assert it.to_device()
        assert it.to_host()
        assert it.set_val(0, 1) == INVALID_VALUE
        assert it.allocate() == INVALID_VALUE


# -- pointers and allocators --------------------------------------------------------------------


def test_a_pointer_says_what_it_is(capsys):
    pointer = gpuarray.ptr_wrapper_float32()
    assert repr(pointer) == "<ptr_wrapper<float32>, is_safe=0, addr=0>"
    pointer.create(4)
    address = int(pointer)
    assert repr(pointer) == f"<ptr_wrapper<float32>, is_safe=1, addr={address}>"
    assert pointer.get() == (address, True)
    assert pointer.unsafe_get() == address
    pointer.print_address()
    assert capsys.readouterr().out == f"{address:#x}\n"
    with pytest.raises(TypeError, match="N is -1"):
        pointer.create(-1)
    for many in (2**50, 2**62, 2**70):
        with pytest.raises(MemoryError):
            pointer.create(many)
    assert pointer.get() == (address, True)


def test_a_device_pointer_is_not_safe():
    it = gpuarray.DeviceArray_float32(4)
    assert it.host_data().is_safe()
    assert not it.device_data().is_safe()
    it.allocate()
    assert int(it.device_data())
    assert it.device_data().get() == (None, False)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_allocators(dtype):
    for kind in ("HostAllocator", "PagelockedAllocator", "DeviceAllocator"):
        memory = class_of(kind, dtype)()
        assert int(memory.ptr()) == 0
        status = memory.allocate(100)
        assert status is None if kind == "HostAllocator" else status == 0
        assert memory.ptr().is_safe() == (kind != "DeviceAllocator")
        assert int(memory.ptr()) % dtype.alignment == 0
        first = memory.ptr()
        memory.allocate(10)
        assert not first.is_safe()
        assert memory.last_status()
        with pytest.raises(TypeError, match="n is -1"):
            memory.allocate(-1)


@pytest.mark.skipif(BACKEND != "host" and not IS_DOUBLE, reason="others use the device's memory")
def test_memory_is_freed_once_and_all_of_it():
    before = settled_memory()
    for _ in range(3):
        it = gpuarray.DeviceArray_float64(10**6)
        it.allocate()
        memory = gpuarray.DeviceAllocator_float64()
        memory.allocate(10**6)
        pointer = memory.ptr()
        memory.allocate(10**6)
        both = gpuarray.GPUArray(allocator=gpuarray.Allocator(gpuarray.to_gpu(np.zeros(10**5))))
    del it, memory, pointer, both
    assert settled_memory() == before
