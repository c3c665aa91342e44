"""A program with PyCUDA's modules: kernels, memory, streams, random numbers, reductions, scans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import pygpu.autoinit
from pygpu import cumath, curandom, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel
from pygpu.gpuarray import GPUArray
from pygpu.reduction import ReductionKernel
from pygpu.scan import InclusiveScanKernel
from pygpu.tools import DeviceMemoryPool

SOURCE = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"


def launches(host: NDArray[np.float32]) -> float:
    twice = SourceModule(SOURCE).get_function("twice")
    twice(driver.InOut(host), block=(host.size, 1, 1))
    seconds = twice(driver.InOut(host), block=(host.size, 1, 1), grid=(1, 1), time_kernel=True)
    assert_type(seconds, float)
    return seconds


def memory(host: NDArray[np.float32]) -> NDArray[np.float32]:
    block = driver.mem_alloc(host.nbytes)
    driver.memcpy_htod(block, host)
    result = np.empty_like(host)
    driver.memcpy_dtoh(result, block)
    block.free()
    return result


def streams(x: GPUArray) -> float:
    stream, start, end = driver.Stream(), driver.Event(), driver.Event()
    start.record(stream)
    with stream:
        _ = x + 1
    end.record(stream).synchronize()
    return end.time_since(start)


def expressions(x: GPUArray) -> list[float]:
    add = ElementwiseKernel("float a, float *x, float *z", "z[i] = a + x[i]")
    z = gpuarray.empty_like(x)
    add(1, x, z)
    dot = ReductionKernel(np.float32, 0, "a + b", "x[i] * y[i]", "const float *x, const float *y")
    total: GPUArray = dot(x, z)
    running = InclusiveScanKernel(np.float32, "a + b")(z, "new")
    return [float(total), float(cumath.sqrt(running)[-1])]


def main() -> None:
    host = np.ones(4, np.float32)
    assert launches(host.copy()) >= 0
    assert (memory(host) == host).all()
    x = gpuarray.to_gpu(host)
    assert streams(x) >= 0
    assert expressions(x) == [8.0, float(np.sqrt(np.float32(8)))]
    pool = DeviceMemoryPool()
    assert gpuarray.zeros((2, 2), np.float32, allocator=pool.allocate).shape == (2, 2)
    generator = curandom.XORWOWRandomNumberGenerator()
    assert generator.gen_uniform((2, 3), np.float32).shape == (2, 3)
    device: driver.Device = pygpu.autoinit.device
    assert device.total_memory() > 0, device.name()


main()
