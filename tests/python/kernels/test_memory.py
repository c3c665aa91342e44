"""Memory that only GPU drivers support: shared with the host, mapped, from other processes."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

SOURCE = "__global__ void add(int *x, int value) { x[threadIdx.x] += value; }"


@pytest.fixture(scope="module")
def add():
    return SourceModule(SOURCE).get_function("add")


# ---- memory that host and device share ----------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_managed_arrays(order):
    a = driver.managed_empty((3, 4), np.float32, order=order)
    assert isinstance(a, np.ndarray)
    assert (a.shape, a.dtype) == ((3, 4), np.float32)
    assert (a.flags.c_contiguous, a.flags.f_contiguous) == (order == "C", order == "F")
    assert isinstance(a.base, driver.ManagedAllocation)
    assert isinstance(a.base, driver.DeviceAllocation)
    assert isinstance(a.base, driver.ManagedAllocationOrStub)
    assert int(a.base) == a.base.get_device_pointer() == a.ctypes.data
    np.testing.assert_array_equal(driver.managed_zeros((3, 4), np.float32), np.zeros((3, 4)))
    for make in (driver.managed_empty_like, driver.managed_zeros_like):
        assert (make(a).shape, make(a).strides) == (a.shape, a.strides)


def test_managed_memory_is_the_host_s_and_the_device_s(add):
    a = driver.managed_empty(64, np.int32, mem_flags=driver.mem_attach_flags.GLOBAL)
    a[:] = np.arange(64)
    stream = driver.Stream()
    for flag in driver.mem_attach_flags:
        a.base.attach(flag, stream)
        add(a, np.int32(100), block=(64, 1, 1), stream=stream)
        stream.synchronize()
    np.testing.assert_array_equal(a, np.arange(64) + 300)
    part = a[10:20]
    del a
    gc.collect()
    add(part, np.int32(1), block=(10, 1, 1))
    driver.Context.synchronize()
    np.testing.assert_array_equal(part, np.arange(10, 20) + 301)


def test_flags_of_managed_memory():
    with pytest.raises(ValueError, match="9"):
        driver.managed_empty(3, np.int32, mem_flags=9)
    with pytest.raises(ValueError, match="3"):
        driver.managed_empty(3, np.int32).base.attach(3)


# ---- page-locked memory that kernels use --------------------------------------------------------


def test_mapped_memory(add):
    a = driver.pagelocked_zeros(64, np.int32, mem_flags=driver.host_alloc_flags.DEVICEMAP)
    assert a.base.get_flags() == driver.host_alloc_flags.DEVICEMAP
    add(np.uintp(a.base.get_device_pointer()), np.int32(5), block=(64, 1, 1))
    driver.Context.synchronize()
    np.testing.assert_array_equal(a, np.full(64, 5))


def test_registered_memory(add):
    original = driver.aligned_zeros(1024, np.int32)
    flags = driver.mem_host_register_flags
    a = driver.register_host_memory(original, flags.PORTABLE | flags.DEVICEMAP)
    add(np.uintp(a.base.get_device_pointer()), np.int32(5), block=(64, 1, 1))
    driver.Context.synchronize()
    np.testing.assert_array_equal(original[:65], [5] * 64 + [0])
    a.base.unregister()
    with pytest.raises(driver.LogicError):
        a.base.get_device_pointer()


# ---- addresses ----------------------------------------------------------------------------------


def test_the_range_of_an_address():
    memory = driver.mem_alloc(1000)
    assert driver.mem_get_address_range(memory) == (int(memory), 1000)
    start, size = driver.mem_get_address_range(int(memory) + 300)
    assert start == int(memory)
    assert size >= 1000
    with pytest.raises(driver.Error):
        driver.mem_get_address_range(12345)


# ---- other processes ----------------------------------------------------------------------------

READER = """
import sys
import numpy as np
import pygpu.autoinit
from pygpu import driver
handle = bytearray.fromhex(sys.argv[1])
memory = driver.IPCMemoryHandle(handle)
assert isinstance(memory, driver.DeviceAllocation) and int(memory)
data = driver.from_device(memory, 64, np.int32)
assert data.tolist() == list(range(64)), data
driver.memcpy_htod(memory, data + 1)
driver.Context.synchronize()
memory.close()
try:
    memory.close()
except driver.LogicError:
    pass
else:
    raise AssertionError("closed twice")
if len(sys.argv) > 2:
    event = driver.Event.from_ipc_handle(bytearray.fromhex(sys.argv[2]))
    event.synchronize()
    assert event.query()
"""


def test_memory_of_another_process():
    memory = driver.mem_alloc(256)
    driver.memcpy_htod(memory, np.arange(64, dtype=np.int32))
    handle = driver.mem_get_ipc_handle(memory)
    assert isinstance(handle, bytearray)
    assert len(handle) == 64
    flags = driver.event_flags
    event = driver.Event(flags.INTERPROCESS | flags.DISABLE_TIMING).record().synchronize()
    arguments = [handle.hex(), event.ipc_handle().hex()]
    done = subprocess.run(
        [sys.executable, "-c", READER, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.arange(64) + 1)


def test_handles_that_are_none():
    for handle, error in ((bytearray(3), ValueError), ("text", TypeError), (3, TypeError)):
        with pytest.raises(error, match="handle"):
            driver.IPCMemoryHandle(handle)
        with pytest.raises(error, match="handle"):
            driver.Event.from_ipc_handle(handle)
    with pytest.raises(ValueError, match="7"):
        driver.IPCMemoryHandle(bytearray(64), 7)
    with pytest.raises(driver.Error):
        driver.IPCMemoryHandle(bytearray(64))
    with pytest.raises(ValueError, match="timing"):
        driver.Event(driver.event_flags.INTERPROCESS)


# ---- contexts -----------------------------------------------------------------------------------


def test_limits():
    limit, context = driver.limit, driver.Context
    before = context.get_limit(limit.STACK_SIZE)
    context.set_limit(limit.STACK_SIZE, before + 1024)
    assert context.get_limit(limit.STACK_SIZE) >= before + 1024
    context.set_limit(limit.STACK_SIZE, before)
    with pytest.raises(driver.Error):
        context.get_limit(1234)


def test_profiler():
    driver.start_profiler()
    driver.stop_profiler()
    with pytest.raises(driver.Unsupported):
        driver.initialize_profiler("a", "b", 0)


def test_streams_of_other_libraries(add):
    class Other:
        """A stream as other libraries provide it."""

        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return (0, self.stream.handle)

    own = driver.Stream()
    assert own.__cuda_stream__() == (0, own.handle)
    memory = driver.mem_alloc(256)
    driver.memset_d32(memory, 0, 64)
    for stream in (own, own.handle, Other(own), driver.Stream.from_handle(own.handle)):
        add(memory, np.int32(1), block=(64, 1, 1), stream=stream)
    per_thread = driver.Stream.from_handle(2)
    add(memory, np.int32(1), block=(64, 1, 1), stream=per_thread)
    assert per_thread.handle == 2
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.full(64, 5))
    assert driver.Stream.from_handle(0).handle == driver.Stream.from_handle(1).handle == 0
    assert driver.Stream.from_handle(Other(own)).handle == own.handle


@pytest.mark.parametrize("number", [3, 64, 1 << 46, (1 << 64) - 8])
def test_numbers_that_are_no_handle_of_a_stream_are_refused(add, number):
    # A driver dereferences the number that it receives.
    a = gpuarray.zeros(4, np.float32)
    for call in (
        lambda: driver.Stream.from_handle(number),
        lambda: a.fill(1, stream=number),
        lambda: a.sum(np.float32, number),
        lambda: add(a.gpudata, np.int32(1), block=(4, 1, 1), stream=number),
    ):
        with pytest.raises(
            driver.LogicError, match=f"handle is {number:#x}, where no stream can be"
        ):
            call()
    assert not a.get().any()


def test_properties_of_streams():
    least, greatest = driver.Context.get_device().stream_priority_range()
    assert greatest <= least
    stream = driver.Stream(1, greatest)
    assert (stream.flags, stream.priority) == (1, greatest)
    assert driver.Stream().flags == 0
