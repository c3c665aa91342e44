"""The examples of PyGPU's README, and further features of GPUArray."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from processes import run_python
from tables import each_row

import PyGPU as gpuarray
import pygpu
from pygpu import driver
from pygpu import gpuarray as pycuda_arrays

DTYPES = [np.dtype(name) for name in gpuarray.SUPPORTED_DTYPES]
EXAMPLES = ["arrays.py", "device_arrays.py"]


def numbers(shape, dtype, order="C"):
    """Returns distinct elements, with an imaginary part for complex dtypes."""
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape, order=order)
    return np.asarray(values * (1 + 2j) if np.dtype(dtype).kind == "c" else values, dtype, order)


def test_the_high_level_round_trip():
    k = np.array([1, 2, 3, 4, 5, 6])
    k_gpu = gpuarray.to_gpu(k)
    assert k_gpu.last_status
    fk_gpu = gpuarray.GPUArray((3, 3, 3), dtype=complex)
    fk = fk_gpu.get()
    assert (fk.shape, fk.dtype) == ((3, 3, 3), np.complex128)
    np.testing.assert_array_equal(k_gpu.get(), [1, 2, 3, 4, 5, 6])


def test_the_low_level_round_trip():
    A = np.array([1, 2, 3, 4, 5, 6])
    da = gpuarray.DeviceArray_int64(A)
    assert not da.allocated()
    da.allocate()
    da.to_device()
    assert int(da.device_data()) != 0
    A[:] = 0
    da.to_host()
    assert repr(da.last_status()) == "<CudaError: 'code=0'>"
    np.testing.assert_array_equal(A, [1, 2, 3, 4, 5, 6])


def test_the_host_side_is_an_alias_that_programs_write_to():
    array = gpuarray.GPUArray((2, 3), dtype="float64")
    alias = array.get()
    alias[:] = [[1, 2, 3], [4, 5, 6]]
    assert array.to_device()
    alias[:] = 0
    again = array.get()
    np.testing.assert_array_equal(again, [[1, 2, 3], [4, 5, 6]])
    assert np.shares_memory(again, alias)
    copy = array.get(copy=True)
    alias[:] = 0
    np.testing.assert_array_equal(copy, [[1, 2, 3], [4, 5, 6]])
    assert copy.base is None or not np.shares_memory(copy, alias)


@each_row("order", ["C", "F"])
@each_row("dtype", DTYPES, ids=str)
def test_arrays_of_every_type_and_order(dtype, order):
    expected = numbers((2, 3, 4), dtype, order)
    for array in (
        gpuarray.to_gpu(expected.copy(order)),
        gpuarray.GPUArray(expected.copy(order), copy=True),
        gpuarray.GPUArray(shape=(2, 3, 4), dtype=dtype, order=order),
        gpuarray.GPUArray([2, 3, 4], dtype=dtype.type, order=order),
    ):
        assert (array.shape, array.dtype, array.size) == ((2, 3, 4), dtype, 24)
        assert array.nbytes == 24 * dtype.itemsize
        assert array.strides == list(expected.strides)
        array.get()[:] = expected
        assert array.to_device()
        array.get(copy=True)[:] = 0
        np.testing.assert_array_equal(array.get(), expected)
        assert array.last_status


def test_an_array_with_gaps_is_copied():
    source = np.arange(10.0)[::3]
    array = gpuarray.to_gpu(source)
    assert array.last_status
    np.testing.assert_array_equal(array.get(), [0, 3, 6, 9])
    assert not np.shares_memory(array.get(), source)


def test_copy_decides_whether_the_host_side_is_the_array_itself():
    source = np.arange(4.0)
    assert np.shares_memory(gpuarray.GPUArray(source).get(), source)
    assert not np.shares_memory(gpuarray.GPUArray(source, copy=True).get(), source)


def test_items_are_copies():
    array = gpuarray.to_gpu(np.arange(12.0).reshape(3, 4))
    for index in (
        0,
        slice(1, 3),
        (slice(None), 1),
        (slice(None, None, -1), slice(0, 4, 2)),
        (1, 2),
    ):
        part = array[index]
        expected = np.arange(12.0).reshape(3, 4)[index]
        assert part.shape == np.shape(expected)
        np.testing.assert_array_equal(part.get(), expected)
    row = array[1]
    row.get()[:] = -1
    row.to_device()
    np.testing.assert_array_equal(array.get(), np.arange(12.0).reshape(3, 4))


def test_set_val_and_set_change_the_device_side_alone():
    host = np.arange(6).reshape(2, 3)
    array = gpuarray.to_gpu(host)
    assert array.set_val(4, 40)
    assert array.set(5, 50)  # the two-argument form, which older versions have
    np.testing.assert_array_equal(host, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(array.get(), [[0, 1, 2], [3, 40, 50]])
    assert array.set(np.full((2, 3), 7))
    np.testing.assert_array_equal(host, [[0, 1, 2], [3, 40, 50]])
    np.testing.assert_array_equal(array.get(), np.full((2, 3), 7))


def test_set_keeps_indices_whatever_the_order():
    values = np.arange(6.0).reshape(2, 3)
    array = gpuarray.GPUArray((2, 3), order="F")
    assert array.set(values)
    np.testing.assert_array_equal(array.get(), values)


def test_what_is_refused_raises_as_before_and_leaves_a_status():
    array = gpuarray.to_gpu(np.arange(6))
    for wrong in (np.arange(5), np.arange(6.0), np.arange(6).reshape(2, 3), [1] * 6):
        with pytest.raises(AssertionError, match="host_data is"):
            array.set(wrong)
        assert array.last_status == 1
    assert array.set_val(6, 1) == 1
    assert array.set_val(-1, 1) == 1
    assert array.allocate() == 1
    np.testing.assert_array_equal(array.get(), np.arange(6))


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool", "S3", object, ">i4", "nonsense"])
def test_other_element_types_are_unsupported(dtype):
    with pytest.raises(gpuarray.UnsupportedDataType):
        gpuarray.GPUArray((3,), dtype=dtype)
    with pytest.raises(gpuarray.UnsupportedDataType):
        gpuarray.PagelockedAllocator((3,), dtype)


def test_neither_data_nor_shape():
    for wrong in (5, 1.0, "abc", None):
        with pytest.raises(gpuarray.UnsupportedDataType):
            gpuarray.GPUArray(wrong)
    with pytest.raises(gpuarray.UnsupportedDataType):
        gpuarray.GPUArray(np.zeros(3, bool))
    with pytest.raises(TypeError, match="one of data"):
        gpuarray.GPUArray()
    with pytest.raises(ValueError, match="order"):
        gpuarray.GPUArray((3,), order="A")
    with pytest.raises(TypeError, match="unknown argument 'ordr'"):
        gpuarray.GPUArray((3,), ordr="C")


def test_shapes_that_cannot_be_made_leave_a_status():
    for shape in ([-1, 2], [2**40, 2**40]):
        array = gpuarray.GPUArray(shape)
        assert array.last_status == 1
        with pytest.raises(driver.Error):
            array.get()
    array = gpuarray.GPUArray([2**50])
    assert not array.last_status
    with pytest.raises(driver.Error):
        array.get()


def test_empty_arrays():
    for shape in ((0,), (3, 0, 2)):
        array = gpuarray.to_gpu(np.zeros(shape))
        assert array.last_status
        assert array.get().shape == shape
        assert array.to_device()


# -- allocators ---------------------------------------------------------------------------------


def test_an_allocator_shares_another_arrays_device_memory():
    k = np.arange(6).reshape(3, 2)
    k_gpu = gpuarray.to_gpu(k)
    j_gpu = gpuarray.GPUArray(allocator=gpuarray.Allocator(k_gpu))
    assert j_gpu.ptr == k_gpu.ptr
    j_gpu.set_val(0, 43)
    j_gpu.set_val(1, 44)
    assert j_gpu.set_val(8, 45) == 1
    j = j_gpu.get()
    np.testing.assert_array_equal(j, [[43, 44], [2, 3], [4, 5]])
    np.testing.assert_array_equal(k, np.arange(6).reshape(3, 2))
    del k_gpu
    np.testing.assert_array_equal(j_gpu.get(), [[43, 44], [2, 3], [4, 5]])


def test_host_data_of_an_allocator_is_the_host_side():
    k_gpu = gpuarray.to_gpu(np.arange(6.0))
    host = np.zeros(6)
    array = gpuarray.GPUArray(allocator=gpuarray.Allocator(k_gpu, host_data=host))
    array.to_host()
    np.testing.assert_array_equal(host, np.arange(6.0))
    with pytest.raises(ValueError, match="nbytes 48"):
        gpuarray.Allocator(k_gpu, host_data=np.zeros(5))


def test_page_locked_memory_is_device_memory_too():
    pinned = gpuarray.PagelockedAllocator((4,), np.float32)
    array = gpuarray.GPUArray(allocator=gpuarray.Allocator(pinned))
    array.get()[:] = [1, 2, 3, 4]
    assert array.to_device()
    np.testing.assert_array_equal(pinned.get(), [1, 2, 3, 4])
    assert gpuarray.GPUArray(allocator=pinned).ptr == int(pinned.ptr())


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_other_libraries_are_allocators(order):
    other = pycuda_arrays.to_gpu(np.asarray([[1, 2, 3], [4, 5, 6]], np.int32, order=order))
    array = gpuarray.GPUArray(allocator=other)
    assert (array.ptr, array.shape, array.dtype) == (other.ptr, (2, 3), np.int32)
    np.testing.assert_array_equal(array.get(), [[1, 2, 3], [4, 5, 6]])
    array.get()[0, 0] = 9
    # `get` has already copied the elements, so it does not show this change.
    alias = array.get()
    alias[0, 0] = 9
    array.to_device()
    assert other.get()[0, 0] == 9
    # And in the other direction.
    back = pycuda_arrays.GPUArray(array.shape, array.dtype, gpudata=array.ptr, order=order)
    np.testing.assert_array_equal(back.get(), [[9, 2, 3], [4, 5, 6]])


def test_the_cuda_array_interface_is_a_proper_one():
    array = gpuarray.to_gpu(np.asarray(numbers((2, 3), "complex64"), order="F"))
    interface = array.__cuda_array_interface__
    assert interface == {
        "shape": (2, 3),
        "strides": (8, 16),
        "typestr": "<c8",
        "data": (array.ptr, False),
        "stream": None,
        "version": 3,
    }


def test_what_is_no_allocator():
    gaps = pycuda_arrays.zeros((4, 4), np.float32)[:, ::2]
    with pytest.raises(ValueError, match="gaps"):
        gpuarray.GPUArray(allocator=gaps)
    for wrong in (None, 5, np.zeros(3)):
        with pytest.raises(gpuarray.UnsupportedDataType):
            gpuarray.GPUArray(allocator=wrong)
    broken = SimpleNamespace(__cuda_array_interface__={"shape": (3,), "typestr": "<f4"})
    with pytest.raises(ValueError, match="lacks 'data'"):
        gpuarray.GPUArray(allocator=broken)
    with pytest.raises(RuntimeError, match="only input argument"):
        gpuarray.GPUArray((3,), allocator=gpuarray.to_gpu(np.zeros(3)))


def test_a_host_allocator_has_its_memory():
    memory = gpuarray.HostAllocator((2, 3), float)
    memory.get()[:] = 7
    assert memory.ptr().get() == (memory.get().ctypes.data, True)
    np.testing.assert_array_equal(memory.get(), np.full((2, 3), 7.0))


# -- the packages -------------------------------------------------------------------------------


def test_both_packages_and_their_modules_are_one():
    code = """
        import PyGPU, PyGPU.gpuarray, PybindGPU.gpuarray, PybindGPU.backend
        from PybindGPU.gpuarray import GPUArray, SUPPORTED_DTYPES
        from PyGPU.backend import DeviceArray_int64, cudaSetDevice
        assert PyGPU.GPUArray is PybindGPU.GPUArray is GPUArray is PyGPU.gpuarray.GPUArray
        assert PyGPU.DeviceArray_int64 is PybindGPU.backend.DeviceArray_int64 is DeviceArray_int64
        assert len(SUPPORTED_DTYPES) == 10
        from PyGPU import *
        assert to_gpu and cudaGetDevice and ptr_wrapper_float32 and use_hip is PyGPU.use_hip
    """
    run_python(code)


def test_importing_opens_no_backend():
    code = """
        import PyGPU
        assert PyGPU.dtype(3).name == "uint16" and PyGPU.dtype.__size__.value == 10
        assert PyGPU.dtype.float32_alias is PyGPU.dtype.float32
        assert (PyGPU.major_version, PyGPU.minor_version, PyGPU.release_version) == (0, 2, 2)
        assert PyGPU.cuda_enabled
    """
    run_python(code, PYGPU_BACKEND="no such backend")


def test_use_hip_tells():
    assert gpuarray.use_hip == (pygpu.choose_backend() == "hip")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name, request):
    path = request.config.rootpath / "examples" / "pygpu" / name
    subprocess.run([sys.executable, path], check=True, timeout=120, capture_output=True)
