"""Ownership: memory freed under arrays, views and queued copies, or returned by allocators."""

from __future__ import annotations

import time

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE, needs_alone, settled_memory

from pygpu import driver, gpuarray, tools

NUMBERS = np.arange(1000, dtype=np.int32)


class BusyStream:
    """A stream with more queued work than finishes soon."""

    def __init__(self):
        count, size = (50, 2_000_000) if BACKEND == "host" else (300, 100_000_000)
        self.stream = driver.Stream(1)
        if IS_DOUBLE:
            pytest.skip("the double runs work while it is queued")
        self.array = gpuarray.empty(size, np.float64)
        for value in range(count):
            self.array.fill(value, self.stream)

    def is_busy(self):
        return not self.stream.is_done()


def until(condition):
    """Waits for another thread's action; the test's process has a time limit."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# ---- device memory ------------------------------------------------------------------------------


USES = (
    lambda array: array.get(),
    lambda array: array.set(NUMBERS),
    lambda array: array.fill(0),
    lambda array: array + 1,
    lambda array: array[:5].get(),
)


def test_a_pooled_block_that_was_freed_under_an_array_is_nobody_elses():
    pool = tools.DeviceMemoryPool()
    block = pool.allocate(NUMBERS.nbytes)
    a_gpu = gpuarray.GPUArray(NUMBERS.shape, NUMBERS.dtype, gpudata=block)
    a_gpu.set(NUMBERS)
    block.free()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)
    other = gpuarray.to_gpu(NUMBERS + 1, allocator=pool.allocate)
    for use in USES:
        with pytest.raises(driver.LogicError, match="freed"):
            use(a_gpu)
    del a_gpu, block
    np.testing.assert_array_equal(other.get(), NUMBERS + 1)
    assert (pool.active_blocks, pool.held_blocks) == (1, 0)
    del other
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)


def test_an_arrays_own_pooled_block_can_be_freed_by_hand():
    pool = tools.DeviceMemoryPool()
    a_gpu = gpuarray.to_gpu(NUMBERS, allocator=pool.allocate)
    a_gpu.gpudata.free()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)
    with pytest.raises(driver.LogicError, match="freed"):
        a_gpu.get()
    with pytest.raises(driver.LogicError, match="returned to its pool"):
        a_gpu.gpudata.free()


@pytest.mark.parametrize("make", ["plain", "pooled", "array"])
def test_a_buffer_keeps_its_memory(make):
    pool = tools.DeviceMemoryPool()
    if make == "array":
        memory = gpuarray.to_gpu(NUMBERS).gpudata
    else:
        memory = {"plain": driver.mem_alloc, "pooled": pool.allocate}[make](NUMBERS.nbytes)
        driver.memcpy_htod(memory, NUMBERS)
    view = memory.as_buffer(40, 8)
    assert (view.nbytes, view.format, view.readonly) == (40, "B", False)
    with pytest.raises(driver.LogicError, match="buffer"):
        memory.free()
    assert int(memory)
    other = memory.as_buffer(4)
    del view
    with pytest.raises(driver.LogicError, match="buffer"):
        memory.free()
    other.release()
    del other
    memory.free()
    with pytest.raises(driver.LogicError):
        memory.as_buffer(4)


@pytest.mark.skipif(BACKEND != "host", reason="the host cannot read a GPU's memory")
@pytest.mark.parametrize("pooled", [False, True])
def test_a_buffer_outlives_its_allocation(pooled):
    pool = tools.DeviceMemoryPool()
    memory = (pool.allocate if pooled else driver.mem_alloc)(NUMBERS.nbytes)
    driver.memcpy_htod(memory, NUMBERS)
    view = memory.as_buffer(NUMBERS.nbytes)
    del memory
    others = [gpuarray.to_gpu(NUMBERS * 0, allocator=pool.allocate) for _ in range(10)]
    np.testing.assert_array_equal(np.frombuffer(view, np.int32), NUMBERS)
    assert others


class Holder(driver.PointerHolderBase):
    def __init__(self, memory):
        super().__init__()
        self.memory = memory

    def get_pointer(self):
        return int(self.memory)


def test_a_buffer_keeps_the_programs_own_allocation():
    holder = Holder(driver.mem_alloc(64))
    gone = []
    memory = holder.memory

    class Watched(Holder):
        def __del__(self):
            gone.append(1)

    view = Watched(memory).as_buffer(16)
    assert not gone
    del view
    assert gone == [1]


def test_freed_memory_has_no_address():
    memory = driver.mem_alloc(64)
    memory.free()
    for use in (int, driver.mem_get_address_range, lambda it: it.as_buffer(4)):
        with pytest.raises(driver.LogicError):
            use(memory)
    assert "freed" in repr(memory)


# ---- results of allocators ----------------------------------------------------------------------


def freed(bytes):
    memory = driver.mem_alloc(bytes)
    memory.free()
    return memory


def given_back(bytes):
    memory = tools.DeviceMemoryPool().allocate(bytes)
    memory.free()
    return memory


BAD_ALLOCATORS = {
    "zero": lambda bytes: 0,
    "one": lambda bytes: True,
    "number": lambda bytes: 4096,
    "negative": lambda bytes: -8,
    "huge": lambda bytes: 2**64,
    "none": lambda bytes: None,
    "float": lambda bytes: 3.5,
    "text": lambda bytes: "memory",
    "array": lambda bytes: np.zeros(bytes, np.uint8),
    "freed": freed,
    "given back": given_back,
    "short": lambda bytes: driver.mem_alloc(bytes - 1),
    "short pooled": lambda bytes: tools.DeviceMemoryPool().allocate(bytes // 2),
}


@pytest.mark.parametrize("which", BAD_ALLOCATORS)
def test_what_an_allocator_returns_is_checked(which):
    allocator = BAD_ALLOCATORS[which]
    uses = (
        lambda: gpuarray.zeros(8, np.float32, allocator),
        lambda: gpuarray.empty((2, 4), np.float32, allocator),
        lambda: gpuarray.to_gpu(np.ones(8, np.float32), allocator),
        lambda: gpuarray.GPUArray(8, np.float32, allocator=allocator),
    )
    for use in uses:
        if which == "zero" and use in (uses[1], uses[3]):
            # As in PyCUDA, 0 stands for memory that is assigned later.
            assert use().ptr == 0
            continue
        with pytest.raises((driver.LogicError, TypeError, OverflowError), match="allocator"):
            use()


def test_what_an_allocator_raises_is_what_is_raised():
    class Failed(Exception):
        pass

    def fail(bytes):
        raise Failed(bytes)

    with pytest.raises(Failed):
        gpuarray.zeros(8, np.float32, fail)


@pytest.mark.parametrize("wrap", [lambda m: m, int, Holder], ids=["itself", "int", "holder"])
def test_an_allocator_may_return_memory_in_any_form(wrap):
    kept = []

    def allocate(bytes):
        memory = driver.mem_alloc(bytes)
        kept.append(memory)
        return wrap(memory)

    a_gpu = gpuarray.to_gpu(NUMBERS, allocate)
    np.testing.assert_array_equal((a_gpu + 1).get(), NUMBERS + 1)


class Unwilling(driver.PointerHolderBase):
    def get_pointer(self):
        raise ZeroDivisionError("no pointer today")


def test_what_get_pointer_raises_is_the_cause():
    uses = (
        lambda: driver.memcpy_htod(Unwilling(), NUMBERS),
        lambda: driver.memset_d8(Unwilling(), 0, 4),
        lambda: gpuarray.GPUArray(8, np.float32, gpudata=Unwilling()),
        lambda: gpuarray.zeros(8, np.float32, lambda bytes: Unwilling()),
    )
    for use in uses:
        with pytest.raises(TypeError, match="Unwilling") as caught:
            use()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_in_get_pointer_stays_one():
    class Interrupted(driver.PointerHolderBase):
        def get_pointer(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        driver.memset_d8(Interrupted(), 0, 4)


# ---- host memory --------------------------------------------------------------------------------

HOST_MEMORY = {
    "pagelocked": driver.pagelocked_empty,
    "pooled": tools.PageLockedMemoryPool().allocate,
}
if driver.Device(0).get_attribute(driver.device_attribute.MANAGED_MEMORY):
    HOST_MEMORY["managed"] = driver.managed_empty


@pytest.mark.parametrize("kind", HOST_MEMORY)
def test_host_memory_that_is_freed_under_its_array_stays_the_arrays(kind):
    make = HOST_MEMORY[kind]
    array = make(NUMBERS.shape, NUMBERS.dtype)
    view = array[10:20]
    array[:] = NUMBERS
    owner = array.base
    owner.free()
    with pytest.raises(driver.LogicError):
        owner.free()
    del array
    others = [make(NUMBERS.shape, NUMBERS.dtype) for _ in range(5)]
    for other in others:
        other[:] = -1
    np.testing.assert_array_equal(view, NUMBERS[10:20])
    assert "freed" in repr(owner) or "given back" in repr(owner)


@needs_alone
@pytest.mark.parametrize("kind", ["pagelocked", "managed"])
def test_host_memory_without_an_array_is_freed_at_once(kind):
    if kind not in HOST_MEMORY:
        pytest.skip("no managed memory")
    if IS_DOUBLE and kind == "pagelocked":
        pytest.skip("the double's page-locked memory is not the device's")
    before = settled_memory()[0]
    array = HOST_MEMORY[kind](1 << 20, np.uint8)
    owner = array.base
    assert driver.mem_get_info()[0] < before
    owner.free()
    assert driver.mem_get_info()[0] < before
    del array, owner
    assert driver.mem_get_info()[0] == before
    owner = HOST_MEMORY[kind](1 << 20, np.uint8).base
    owner.free()
    assert driver.mem_get_info()[0] == before


def test_a_pooled_host_block_without_an_array_is_given_back_at_once():
    pool = tools.PageLockedMemoryPool()
    owner = pool.allocate(100, np.uint8).base
    assert (pool.active_blocks, pool.held_blocks) == (1, 0)
    owner.free()
    until(lambda: (pool.active_blocks, pool.held_blocks) == (0, 1))


@pytest.mark.parametrize("kind", ["pagelocked", "pooled", "registered"])
def test_dropping_page_locked_memory_does_not_wait(kind):
    # Allocated first, because a driver may wait for all work when it loads a kernel.
    result = gpuarray.zeros(NUMBERS.shape, NUMBERS.dtype)
    busy = BusyStream()
    pool = tools.PageLockedMemoryPool()
    source = np.empty(NUMBERS.shape, NUMBERS.dtype)
    if kind == "registered":
        host = driver.register_host_memory(source)
    else:
        make = driver.pagelocked_empty if kind == "pagelocked" else pool.allocate
        host = make(NUMBERS.shape, NUMBERS.dtype)
    host[:] = NUMBERS
    driver.memcpy_htod_async(result.gpudata, host, busy.stream)
    assert busy.is_busy()
    del host
    if kind == "pooled":
        assert pool.held_blocks == 0
    if kind != "registered":
        others = [make(NUMBERS.shape, NUMBERS.dtype) for _ in range(5)]
        for other in others:
            other[:] = -1
    assert busy.is_busy()
    busy.stream.synchronize()
    np.testing.assert_array_equal(result.get(), NUMBERS)
    if kind == "registered":
        # This waits until the first registration has ended.
        again = driver.register_host_memory(source)
        again.base.unregister()
    if kind == "pooled":
        del others, other
        until(lambda: (pool.active_blocks, pool.held_blocks) == (0, 6))


@needs_alone
@pytest.mark.skipif(IS_DOUBLE, reason="the double's page-locked memory is not the device's")
def test_page_locked_memory_comes_back_behind_the_work():
    before = settled_memory()[0]
    busy = BusyStream()
    while_busy = driver.mem_get_info()[0]
    for _ in range(20):
        driver.pagelocked_empty(1 << 20, np.uint8)
    assert busy.is_busy()
    assert driver.mem_get_info()[0] < while_busy
    busy.stream.synchronize()
    del busy
    until(lambda: driver.mem_get_info()[0] >= before)


def test_other_streams_work_does_not_keep_page_locked_memory_for_ever():
    """The memory is freed after the work queued so far, even if the stream always has work."""
    busy = BusyStream()
    pool = tools.PageLockedMemoryPool()
    pool.allocate(100, np.uint8)
    # About as much work as runs in the meantime; the rest is waited for.
    part = busy.array[: busy.array.size // 8]
    until(lambda: (part.fill(1, busy.stream), pool.held_blocks == 1)[1])
