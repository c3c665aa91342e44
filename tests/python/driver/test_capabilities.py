"""Features that programs may rely on everywhere: limits, managed memory, device attributes."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND

from pygpu import driver, gpuarray, tools

MANAGED = driver.Device(0).get_attribute(driver.device_attribute.MANAGED_MEMORY)
needs_managed = pytest.mark.skipif(not MANAGED, reason="the device has no managed memory")


def test_numbers_that_occupancy_is_calculated_from():
    data = tools.DeviceData()
    device = driver.Device(0)
    assert data.max_threads == device.max_threads_per_block > 0
    assert data.warp_size == device.warp_size > 0
    assert data.registers == device.max_registers_per_block > 0
    assert data.shared_memory == device.max_shared_memory_per_block > 0
    record = tools.OccupancyRecord(data, 64, shared_mem=1024, registers=16)
    assert 0 < record.occupancy <= 1
    assert data.align_bytes(4) == 64
    assert data.align_dtype(5, 4) == 16


def test_limits_are_set_and_read():
    try:
        stack = driver.Context.get_limit(driver.limit.STACK_SIZE)
    except driver.Unsupported:
        assert BACKEND == "hip"
        pytest.skip("calls that ROCm 5.3 and 5.5 brought")
    assert stack > 0
    driver.Context.set_limit(driver.limit.STACK_SIZE, stack + 1024)
    assert driver.Context.get_limit(driver.limit.STACK_SIZE) >= stack + 1024
    driver.Context.set_limit(driver.limit.STACK_SIZE, stack)
    with pytest.raises(driver.Error):
        driver.Context.get_limit(987_654)
    with pytest.raises(driver.Error):
        driver.Context.set_limit(-1, 0)


@pytest.mark.skipif(BACKEND != "host", reason="which limits there are, a driver decides")
@pytest.mark.parametrize("limit", driver.limit)
def test_a_host_has_every_limit(limit):
    before = driver.Context.get_limit(limit)
    driver.Context.set_limit(limit, 12_345)
    assert driver.Context.get_limit(limit) == 12_345
    driver.Context.set_limit(limit, before)


@needs_managed
@pytest.mark.parametrize("order", ["C", "F"])
def test_managed_memory_is_the_hosts_and_the_devices(order):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    shared = driver.managed_empty((3, 4), np.float32, order, driver.mem_attach_flags.GLOBAL)
    assert shared.flags[f"{order}_CONTIGUOUS"]
    shared[...] = a
    pointer = shared.base.get_device_pointer()
    assert pointer == shared.ctypes.data
    on_device = gpuarray.GPUArray((3, 4), np.float32, gpudata=shared.base, strides=shared.strides)
    np.testing.assert_array_equal(on_device.get(), a)
    on_device += 1
    driver.Context.synchronize()
    np.testing.assert_array_equal(shared, a + 1)


@needs_managed
def test_the_family_of_managed_memory():
    a = np.asfortranarray(np.ones((3, 4), np.int16))
    zeros = driver.managed_zeros((2, 3), np.float64)
    assert not zeros.any()
    assert zeros.shape == (2, 3)
    like = driver.managed_empty_like(a)
    assert (like.shape, like.dtype, like.strides) == (a.shape, a.dtype, a.strides)
    assert not driver.managed_zeros_like(a).any()
    assert driver.managed_empty(0, np.float32).size == 0


@needs_managed
@pytest.mark.parametrize("target", driver.mem_attach_flags)
def test_managed_memory_is_told_who_uses_it_next(target):
    stream = driver.Stream()
    shared = driver.managed_empty(1000, np.float32, mem_flags=driver.mem_attach_flags.GLOBAL)
    shared[:] = 3
    shared.base.attach(target, stream)
    stream.synchronize()
    assert (shared == 3).all()
    with pytest.raises(driver.LogicError, match="mem_flags"):
        shared.base.attach(8)


def test_the_range_of_an_allocation():
    memory = driver.mem_alloc(1000)
    assert driver.mem_get_address_range(memory) == (int(memory), 1000)
    block = tools.DeviceMemoryPool().allocate(1000)
    start, size = driver.mem_get_address_range(block)
    assert start == int(block)
    assert size >= 1000
