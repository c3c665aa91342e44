"""Kernels whose argument types are prepared in advance."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from device import needs_parameters

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

SOURCE = """
__global__ void axpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void fill(int *x, int value)
{
    extern __shared__ int part[];
    part[threadIdx.x] = value;
    x[threadIdx.x] = part[threadIdx.x];
}

__global__ void three(float x, float y, float z, float *out) { out[0] = x; out[1] = y; out[2] = z; }
"""


@pytest.fixture
def module():
    return SourceModule(SOURCE)


def test_prepare_gives_the_function(module):
    axpy = module.get_function("axpy")
    assert axpy.prepare("fPPi") is axpy
    assert axpy.arg_format == "fPPi"
    x = np.arange(1000, dtype=np.float32)
    x_gpu, y_gpu = gpuarray.to_gpu(x), gpuarray.ones(1000, np.float32)
    for _ in range(3):
        result = axpy.prepared_call((8, 1), (128, 1, 1), 2, x_gpu.gpudata, y_gpu.gpudata, 1000)
        assert result is None
    np.testing.assert_array_equal(y_gpu.get(), 6 * x + 1)


def test_types_in_every_form(module):
    axpy = module.get_function("axpy")
    forms = [
        ("fPPi", "fPPi"),
        ("@f P\tP i", "@f P\tP i"),
        (["f", "PP", "i"], "fPPi"),
        ((np.float32, "P", np.intp, np.int32), "fPli"),
        ([np.dtype("f4"), gpuarray.GPUArray, driver.DeviceAllocation, np.dtype("i4")], "fPPi"),
    ]
    for types, text in forms:
        assert axpy.prepare(types).arg_format == text
        y_gpu = gpuarray.ones(10, np.float32)
        x_gpu = gpuarray.ones(10, np.float32)
        axpy.prepared_call((1, 1), (10, 1, 1), 2, x_gpu.gpudata, int(y_gpu.gpudata), 10)
        np.testing.assert_array_equal(y_gpu.get(), np.full(10, 3))


def test_counts(module):
    three = module.get_function("three").prepare("3fP")
    out = driver.mem_alloc(12)
    three.prepared_call((1, 1), (1, 1, 1), 1, 2, 3, out)
    np.testing.assert_array_equal(driver.from_device(out, 3, np.float32), [1, 2, 3])


@pytest.mark.parametrize(
    "types",
    ["fPPy", "g", "3", "c", ["f", "$"], [np.longdouble], "P99999999999s", "32769P", "9P" * 4000],
)
def test_codes_that_are_none(module, types):
    axpy = module.get_function("axpy").prepare("fPPi")
    with pytest.raises(struct.error, match=r"bad char|repeat count|at most 32768"):
        axpy.prepare(types)
    assert axpy.arg_format == "fPPi"


def test_types_that_are_none(module):
    for types in (3, None, [np.dtype(object)]):
        with pytest.raises(TypeError):
            module.get_function("axpy").prepare(types)


@needs_parameters
def test_the_number_of_arguments(module):
    axpy = module.get_function("axpy").prepare("fPPi")
    with pytest.raises(struct.error, match="requires exactly 4 arguments"):
        axpy.prepared_call((1, 1), (1, 1, 1), 1, 2, 3)
    with pytest.raises(driver.LogicError, match=r"4 arguments"):
        axpy.prepare("fPP").prepared_call((1, 1), (1, 1, 1), 1, 0, 0)
    with pytest.raises(driver.LogicError, match=r"argument 0"):
        axpy.prepare("dPPi").prepared_call((1, 1), (1, 1, 1), 1, 0, 0, 0)
    with pytest.raises(struct.error, match="prepared for no arguments"):
        module.get_function("fill").prepared_call((1, 1), (1, 1, 1), 1)


def test_shared_memory(module):
    fill = module.get_function("fill").prepare("Pi")
    memory = driver.mem_alloc(64 * 4)
    fill.prepared_call((1, 1), (64, 1, 1), memory, 5, shared_size=256)
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.full(64, 5))
    with pytest.raises(TypeError, match="shared"):
        fill.prepared_call((1, 1), (64, 1, 1), memory, 5, shared=256)


def test_on_a_stream(module):
    fill = module.get_function("fill").prepare("Pi")
    memory = driver.mem_alloc(64 * 4)
    for value, stream in enumerate((driver.Stream(), driver.Stream(1), None, 0)):
        fill.prepared_async_call((1, 1), (64, 1, 1), stream, memory, value, shared_size=256)
        # The copy waits for the stream that wrote the memory.
        np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.full(64, value))


def test_timed(module):
    fill = module.get_function("fill").prepare("Pi")
    memory = driver.mem_alloc(64 * 4)
    time = fill.prepared_timed_call((1, 1), (64, 1, 1), memory, 9, shared_size=256)
    seconds = time()
    assert isinstance(seconds, float)
    assert 0 <= seconds < 60
    assert time() == seconds
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.full(64, 9))


def test_many_launches(module):
    # More launches than a driver queues: later launches wait for earlier ones, and none is lost.
    axpy = module.get_function("axpy").prepare("fPPi")
    x_gpu, y_gpu = gpuarray.ones(1, np.float32), gpuarray.zeros(1, np.float32)
    for _ in range(3000):
        axpy.prepared_call((1, 1), (1, 1, 1), 1, x_gpu.gpudata, y_gpu.gpudata, 1)
    assert y_gpu.get() == 3000


def test_texture_references(module):
    with pytest.raises(TypeError, match="an entry of texrefs is of type int"):
        module.get_function("axpy").prepare("fPPi", texrefs=[1])
