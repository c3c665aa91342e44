"""C functions, called through ctypes with the pointers that PyGPU's objects return."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE

import PyGPU as gpuarray

HOST = """
#include <stdio.h>
void square(long long *x, int n) { for (int i = 0; i < n; ++i) x[i] *= x[i]; }
void conjugate(double *x, int n) { for (int i = 0; i < n; ++i) x[2 * i + 1] = -x[2 * i + 1]; }
"""

# The main use of PyGPU: existing kernels that C functions launch.
CUDA = """
__global__ void each_square(long long *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= x[i];
}
__global__ void each_conjugate(double2 *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i].y = -x[i].y;
}
extern "C" int square(long long *x, int n) {
    each_square<<<(n + 127) / 128, 128>>>(x, n);
    return cudaGetLastError();
}
extern "C" int conjugate(void *x, int n) {
    each_conjugate<<<(n + 127) / 128, 128>>>((double2 *)x, n);
    return cudaGetLastError();
}
extern "C" int square_on(long long *x, int n, void *stream) {
    each_square<<<(n + 127) / 128, 128, 0, (cudaStream_t)stream>>>(x, n);
    return cudaGetLastError();
}
"""


def build(folder, *command):
    library = folder / "libkernels.so"
    subprocess.run([*command, "-shared", "-o", library], check=True, timeout=300, cwd=folder)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    if BACKEND == "host":
        compiler = shutil.which("cc") or pytest.skip("no C compiler")
        (folder / "kernels.c").write_text(HOST)
        return build(folder, compiler, "-fPIC", "kernels.c")
    if BACKEND != "cuda" or IS_DOUBLE:
        pytest.skip("nvcc's kernels need an NVIDIA GPU")
    nvcc = shutil.which("nvcc", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("no nvcc here")
    (folder / "kernels.cu").write_text(CUDA)
    return build(folder, nvcc, "-arch=native", "-Xcompiler", "-fPIC", "kernels.cu")


def test_a_function_on_device_data(kernels):
    A = np.arange(1, 1001)
    da = gpuarray.DeviceArray_int64(A)
    da.allocate()
    da.to_device()
    A[:] = 0
    kernels.square(c_void_p(int(da.device_data())), c_int(da.size()))
    assert da.to_host()
    np.testing.assert_array_equal(A, np.arange(1, 1001) ** 2)


def test_a_function_on_ptr(kernels):
    values = np.arange(27).reshape(3, 3, 3) * (1 + 2j)
    array = gpuarray.GPUArray((3, 3, 3), dtype=complex)
    array.get()[:] = values
    array.to_device()
    kernels.conjugate.argtypes = [c_void_p, c_int]
    kernels.conjugate(array.ptr, array.size)
    np.testing.assert_array_equal(array.get(), values.conj())
    assert array.last_status


def test_a_function_on_page_locked_memory(kernels):
    pinned = gpuarray.PagelockedAllocator((10,), np.int64)
    pinned.get()[:] = np.arange(10)
    kernels.square(c_void_p(int(pinned.ptr())), c_int(10))
    assert gpuarray.cudaDeviceSynchronize()
    np.testing.assert_array_equal(pinned.get(), np.arange(10) ** 2)


def test_a_function_on_a_stream_between_events(kernels):
    if not hasattr(kernels, "square_on"):
        pytest.skip("the host's functions have no stream")
    start, end, stream = gpuarray.cudaEvent_t(), gpuarray.cudaEvent_t(), gpuarray.cudaStream_t()
    array = gpuarray.to_gpu(np.arange(10))
    assert gpuarray.cudaEventRecord(start, stream)
    assert kernels.square_on(c_void_p(array.ptr), c_int(10), c_void_p(int(stream.get()))) == 0
    assert gpuarray.cudaEventRecord(end, stream)
    assert gpuarray.cudaEventSynchronize(end)
    milliseconds, status = gpuarray.cudaEventElapsedTime(start, end)
    assert status
    assert milliseconds > 0
    np.testing.assert_array_equal(array.get(), np.arange(10) ** 2)


def driver_library(variable, default):
    return ctypes.CDLL(os.environ.get(variable) or default)


def test_a_function_of_the_vendors_own_library():
    """Device memory belongs to the driver: its own functions accept the address."""
    values = np.arange(6, dtype=np.int32)
    array = gpuarray.DeviceArray_int32(values)
    array.allocate()
    array.to_device()
    address = int(array.device_data())
    if BACKEND == "cuda":
        assert gpuarray.cudaSetDevice(0)
        library = driver_library("PYGPU_CUDA_LIBRARY", "libcuda.so.1")
        place, stream = c_uint64(address + 8), c_void_p(0)
        assert library.cuMemsetD32Async(place, c_uint(7), c_size_t(3), stream) == 0
        assert gpuarray.cudaDeviceSynchronize()
    elif BACKEND == "hip":
        library = driver_library("PYGPU_HIP_LIBRARY", "libamdhip64.so")
        zero = c_void_p(0)
        assert library.hipMemsetD32Async(c_void_p(address + 8), c_int(7), c_size_t(3), zero) == 0
        assert gpuarray.cudaDeviceSynchronize()
    else:
        ctypes.memmove(address + 8, np.full(3, 7, np.int32).ctypes.data, 12)
    array.to_host()
    np.testing.assert_array_equal(values, [0, 1, 7, 7, 7, 5])
