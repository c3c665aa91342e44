"""Kernels on several streams that use the same memory run in launch order."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.tools import DeviceMemoryPool

# Runs long enough that the next launch is queued before it has finished.
SOURCE = """
__global__ void slowly(int *x, int n, int from, int to)
{
    for (int i = 0; i < n; ++i)
        if (x[i] == from) x[i] = to;
}
__global__ void copy(int *to, const int *from, int n)
{
    for (int i = 0; i < n; ++i) to[i] = from[i];
}
"""
N = 1 << 18
ONE = {"block": (1, 1, 1)}


@pytest.fixture(scope="module")
def module():
    return SourceModule(SOURCE)


@pytest.mark.parametrize("flags", [0, 1])
def test_a_chain_over_streams(module, flags):
    slowly = module.get_function("slowly")
    x = gpuarray.zeros(N, np.int32)
    for value in range(8):
        arguments = (x, np.int32(N), np.int32(value), np.int32(value + 1))
        slowly(*arguments, **ONE, stream=driver.Stream(flags))
    np.testing.assert_array_equal(x.get(), np.full(N, 8))


def test_readers_and_a_writer(module):
    copy, slowly = module.get_function("copy"), module.get_function("slowly")
    x = driver.mem_alloc(4 * N)
    driver.memset_d32(x, 0, N)
    targets = [driver.mem_alloc(4 * N) for _ in range(3)]
    for value in range(3):
        for target in targets:
            copy(target, x, np.int32(N), **ONE, stream=driver.Stream(1))
        arguments = (x, np.int32(N), np.int32(value), np.int32(value + 1))
        slowly(*arguments, **ONE, stream=driver.Stream(1))
        for target in targets:
            np.testing.assert_array_equal(driver.from_device(target, N, np.int32), value)


def test_a_block_of_a_pool_goes_from_stream_to_stream(module):
    slowly = module.get_function("slowly")
    pool = DeviceMemoryPool()
    results = []
    for value in range(6):
        block = pool.allocate(4 * N)
        stream = driver.Stream(1)
        driver.memset_d32_async(block, value, N, stream)
        arguments = (block, np.int32(N), np.int32(value), np.int32(value + 10))
        slowly(*arguments, **ONE, stream=stream)
        host = driver.pagelocked_empty(N, np.int32)
        driver.memcpy_dtoh_async(host, block, stream)
        results.append(host)
        # The next round gets the same block while this round's work may not have run yet.
        del block, arguments
    assert pool.held_blocks == 1
    driver.Context.synchronize()
    for value, host in enumerate(results):
        np.testing.assert_array_equal(host, value + 10)


def test_arrays_of_a_pool_go_from_stream_to_stream(module):
    slowly = module.get_function("slowly")
    pool = DeviceMemoryPool()
    results = []
    for value in range(6):
        a = gpuarray.full(N, value, np.int32, allocator=pool.allocate)
        stream = driver.Stream(1)
        arguments = (a, np.int32(N), np.int32(value), np.int32(value + 10))
        slowly(*arguments, **ONE, stream=stream)
        results.append(a.get_async(stream, driver.pagelocked_empty(N, np.int32)))
        del a, arguments
    driver.Context.synchronize()
    for value, host in enumerate(results):
        np.testing.assert_array_equal(host, value + 10)


def test_memory_is_freed_behind_its_last_kernel(module):
    slowly = module.get_function("slowly")
    for value in range(5):
        x = gpuarray.full(N, value, np.int32)
        stream = driver.Stream(1)
        slowly(x, np.int32(N), np.int32(value), np.int32(-1), **ONE, stream=stream)
        host = driver.pagelocked_empty(N, np.int32)
        x.get_async(stream, host)
        del x
        gpuarray.zeros(N, np.int32)
        stream.synchronize()
        np.testing.assert_array_equal(host, -1)
