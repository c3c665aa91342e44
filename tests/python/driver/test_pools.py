"""Memory pools with PyCUDA's rules: block sizes in sixteenths of powers of two, kept by size."""

from __future__ import annotations

import gc
import random
import threading
import weakref

import numpy as np
import pytest
from device import needs_alone, settled_memory
from processes import run_python

from pygpu import driver, gpuarray, tools


@pytest.fixture
def pool():
    return tools.DeviceMemoryPool()


def state(pool):
    return pool.held_blocks, pool.active_blocks, pool.managed_bytes, pool.active_bytes


# ---- bins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tools.DeviceMemoryPool, tools.PageLockedMemoryPool])
def test_bins(make):
    pool = make()
    # The position of the highest bit, and the next four bits.
    for size, bin_nr, largest in [
        (0, 0, 1),
        (1, 0, 1),
        (2, 16, 2),
        (3, 24, 3),
        (16, 64, 16),
        (31, 79, 31),
        (32, 80, 33),
        (33, 80, 33),
        (34, 81, 35),
        (4096, 192, 4351),
        (4351, 192, 4351),
        (4352, 193, 4607),
        (2**32, 512, 2**32 + 2**28 - 1),
    ]:
        assert (pool.bin_number(size), pool.alloc_size(bin_nr)) == (bin_nr, largest), size
        # As in old programs for PyCUDA, without a pool.
        assert (type(pool).bin_number(size), type(pool).alloc_size(bin_nr)) == (bin_nr, largest)
    for _ in range(2000):
        size = random.randrange(1 << 62) >> random.randrange(62)
        bin_nr = pool.bin_number(size)
        block = pool.alloc_size(bin_nr)
        assert size <= block <= max(size, 1) * 17 / 16
        assert pool.bin_number(block) == bin_nr


def test_sizes_that_are_none(pool):
    for call in (pool.bin_number, pool.allocate):
        with pytest.raises(OverflowError, match="size is -1; a whole number from 0"):
            call(-1)
        with pytest.raises(TypeError, match="size is of type float"):
            call(2.5)
    with pytest.raises(OverflowError, match="n is -1"):
        tools.bitlog2(-1)
    with pytest.raises(ValueError, match="1024"):
        pool.alloc_size(1024)
    with pytest.raises(driver.MemoryError):
        pool.allocate(2**63)
    assert state(pool) == (0, 0, 0, 0)


# ---- blocks -------------------------------------------------------------------------------------


def test_blocks_are_kept_for_their_size(pool):
    block = pool.allocate(5000)
    assert isinstance(block, tools.PooledDeviceAllocation)
    assert len(block) == block.size == 5000
    size = pool.alloc_size(pool.bin_number(5000))
    assert state(pool) == (0, 1, size, 5000)
    address = int(block)
    assert address == block.__index__() != 0
    del block
    assert state(pool) == (1, 0, size, 0)
    other = pool.allocate(300)
    assert int(other) != address
    again = pool.allocate(4990)
    assert int(again) == address
    assert state(pool)[:2] == (0, 2)
    assert state(pool)[3] == 5290
    del again, other
    assert pool.held_blocks == 2
    pool.free_held()
    assert state(pool) == (0, 0, 0, 0)


def test_the_last_block_back_is_the_first_out(pool):
    blocks = [pool.allocate(1000) for _ in range(3)]
    addresses = [int(block) for block in blocks]
    assert len(set(addresses)) == 3
    while blocks:
        blocks.pop(0)
    assert [int(pool.allocate(1000)) for _ in range(2)] == [addresses[2]] * 2


def test_free(pool):
    block = pool.allocate(1000)
    address = int(block)
    block.free()
    assert state(pool)[:2] == (1, 0)
    for use in (lambda it: it.free(), int, lambda it: driver.memset_d8(it, 0, 4)):
        with pytest.raises(driver.LogicError, match="returned to its pool"):
            use(block)
    other = pool.allocate(1000)
    assert int(other) == address
    del block
    assert state(pool)[:2] == (0, 1)
    assert int(other) == address
    del other
    assert state(pool)[:2] == (1, 0)


def test_stop_holding(pool):
    kept, dropped = pool.allocate(100), pool.allocate(100)
    del dropped
    assert pool.held_blocks == 1
    pool.stop_holding()
    assert state(pool)[:2] == (0, 1)
    del kept
    assert state(pool) == (0, 0, 0, 0)


@needs_alone
def test_memory_goes_back_to_the_device(pool):
    before = settled_memory()
    blocks = [pool.allocate(1 << 20) for _ in range(8)]
    assert driver.mem_get_info()[0] <= before[0] - (8 << 20)
    del blocks
    assert driver.mem_get_info()[0] <= before[0] - (8 << 20)
    pool.free_held()
    assert driver.mem_get_info() == before


def test_a_block_outlives_its_pool(pool):
    block = pool.allocate(64)
    gone = weakref.ref(pool)
    del pool
    gc.collect()
    # The test's argument may still hold the pool; the block's memory is usable in any case.
    assert gone() is None or gone().active_blocks == 1
    driver.memcpy_htod(block, np.arange(16, dtype=np.int32))
    np.testing.assert_array_equal(driver.from_device(block, 16, np.int32), np.arange(16))


def test_blocks_are_memory_like_any_other(pool):
    block = pool.allocate(64)
    driver.memset_d32(block, 7, 16)
    a = gpuarray.GPUArray(16, np.int32, gpudata=block)
    a += 1
    np.testing.assert_array_equal(driver.from_device(block, 16, np.int32), np.full(16, 8))
    assert a.gpudata is block
    with pytest.raises(ValueError, match="size"):
        block.as_buffer(10_000)
    assert block.as_buffer(8, 4).nbytes == 8
    assert "PooledDeviceAllocation" in repr(block)
    assert {block: 1}[block] == 1


# ---- arrays of a pool ---------------------------------------------------------------------------


def test_arrays(pool):
    a = gpuarray.to_gpu(np.arange(1000, dtype=np.float32), allocator=pool.allocate)
    assert pool.active_blocks == 1
    assert pool.active_bytes == 4000
    assert isinstance(a.gpudata, tools.PooledDeviceAllocation)
    assert int(a.gpudata) == a.ptr
    b = a + a
    assert b.allocator == pool.allocate
    assert pool.active_blocks == 2
    c = (b * a - 3).astype(np.float64)
    np.testing.assert_array_equal(c.get(), 2 * np.arange(1000.0) ** 2 - 3)
    assert pool.active_blocks == 3
    view = c[10:20]
    del c
    assert pool.active_blocks == 3
    np.testing.assert_array_equal(view.get(), 2 * np.arange(10.0, 20) ** 2 - 3)
    del view
    assert pool.active_blocks == 2
    kept = b.gpudata
    del a, b
    assert pool.active_blocks == 1
    assert pool.held_blocks >= 2
    np.testing.assert_array_equal(driver.from_device(kept, 1000, np.float32)[:3], [0, 2, 4])
    del kept
    assert pool.active_blocks == 0
    assert gpuarray.empty(0, np.float32, allocator=pool.allocate).gpudata is None
    assert pool.active_blocks == 0


def test_every_way_to_make_an_array(pool):
    ones = gpuarray.ones(100, np.float32, allocator=pool.allocate)
    made = [
        gpuarray.empty(100, np.float32, pool.allocate),
        gpuarray.zeros(100, np.float32, allocator=pool.allocate),
        gpuarray.zeros_like(ones),
        ones.copy(),
        -ones,
        ones > 0,
        gpuarray.sum(ones),
        gpuarray.dot(ones, ones),
        gpuarray.concatenate([ones, ones]),
        gpuarray.where(ones > 0, ones, -ones),
        gpuarray.sum(gpuarray.ones(3, np.float32), allocator=pool.allocate),
    ]
    assert pool.active_blocks == len(made) + 1
    assert all(a.allocator == pool.allocate for a in made)
    del made, ones
    assert pool.active_blocks == 0


def test_a_pool_in_an_expression_settles(pool):
    a = gpuarray.ones(1000, np.float32, allocator=pool.allocate)
    for _ in range(50):
        b = a * a + a * 2 - a / 3
    blocks = pool.held_blocks + pool.active_blocks
    for _ in range(500):
        b = a * a + a * 2 - a / 3
        b += gpuarray.dot(a, b)
    assert pool.held_blocks + pool.active_blocks <= blocks + 3
    np.testing.assert_allclose(b.get()[0], (1 + 2 - 1 / 3) * 1001, rtol=1e-5)


def test_many_live_arrays(pool):
    arrays = [gpuarray.zeros(100, np.float32, allocator=pool.allocate) for _ in range(500)]
    assert pool.active_blocks == 500
    assert len({a.ptr for a in arrays}) == 500
    del arrays[::2]
    assert (pool.held_blocks, pool.active_blocks) == (250, 250)
    arrays += [gpuarray.zeros(100, np.float32, allocator=pool.allocate) for _ in range(250)]
    assert (pool.held_blocks, pool.active_blocks) == (0, 500)


def test_allocators_of_the_program_s_own(pool):
    class Counting(tools.DeviceMemoryPool):
        """A pool with its own `allocate`, which arrays must call."""

        calls = 0

        def allocate(self, size):
            self.calls += 1
            return super().allocate(size)

    counting = Counting()
    a = gpuarray.zeros(10, np.float32, allocator=counting.allocate)
    b = a + 1
    assert counting.calls == 2
    assert counting.active_blocks == 2
    c = gpuarray.zeros(10, np.float32, allocator=lambda size: pool.allocate(size))
    np.testing.assert_array_equal((b + c).get(), np.ones(10))
    assert pool.active_blocks >= 1
    del a, b, c
    assert counting.active_blocks == pool.active_blocks == 0


def test_subclasses_of_arrays(pool):
    class Derived(gpuarray.GPUArray):
        pass

    a = Derived(10, np.float32, allocator=pool.allocate)
    a.fill(1)
    b = a + a
    assert type(b) is Derived
    np.testing.assert_array_equal(b.get(), np.full(10, 2))
    assert pool.active_blocks == 2
    del a, b
    assert pool.active_blocks == 0


def test_threads(pool):
    failures = []

    def work(seed):
        numbers = random.Random(seed)
        try:
            for _ in range(300):
                value = numbers.randrange(1000)
                a = gpuarray.full(numbers.randrange(1, 200), value, np.int32, pool.allocate)
                assert (a.get() == value).all()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    gc.collect()
    assert pool.active_blocks == 0


def test_memory_that_runs_out():
    run_python(
        """
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray, tools
        pool = tools.DeviceMemoryPool()
        sizes = [1 << 20, 2 << 20, 4 << 20, 8 << 20]
        blocks = [pool.allocate(size) for size in sizes]
        del blocks
        assert pool.held_blocks == 4
        # There is room for it once the largest of those that are kept are freed.
        large = pool.allocate(52 << 20)
        assert 0 < pool.held_blocks < 4
        try:
            pool.allocate(52 << 20)
        except driver.MemoryError as error:
            assert isinstance(error, MemoryError)
        else:
            raise AssertionError("no error")
        assert (pool.held_blocks, pool.active_blocks) == (0, 1)
        del large
        assert gpuarray.zeros(52 << 20, np.uint8, allocator=pool.allocate).get().sum() == 0
        """,
        PYGPU_BACKEND="host",
        PYGPU_HOST_MEMORY="64M",
    )


# ---- page-locked memory -------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_page_locked(order):
    pool = tools.PageLockedMemoryPool()
    a = pool.allocate((30, 40), np.float32, order)
    assert isinstance(a, np.ndarray)
    assert (a.shape, a.dtype, a.nbytes) == ((30, 40), np.float32, 4800)
    assert (a.flags.c_contiguous, a.flags.f_contiguous) == (order == "C", order == "F")
    assert a.flags.writeable
    assert isinstance(a.base, tools.PooledHostAllocation)
    assert len(a.base) == 4800
    assert (pool.held_blocks, pool.active_blocks, pool.active_bytes) == (0, 1, 4800)
    a[:] = 3
    address = a.ctypes.data
    part = a[3:5]
    del a
    assert pool.active_blocks == 1
    assert part.sum() == 240
    del part
    assert (pool.held_blocks, pool.active_blocks) == (1, 0)
    again = pool.allocate(1200, np.float32)
    assert again.ctypes.data == address
    with pytest.raises(ValueError, match="order"):
        pool.allocate(3, np.float32, "Z")
    pool.stop_holding()
    del again
    assert (pool.held_blocks, pool.managed_bytes) == (0, 0)


def test_page_locked_blocks_are_freed_once():
    pool = tools.PageLockedMemoryPool(tools.PageLockedAllocator())
    block = pool.allocate(3, np.float32).base
    block.free()
    assert (pool.held_blocks, pool.active_blocks) == (1, 0)
    with pytest.raises(driver.LogicError, match="returned to its pool"):
        block.free()
    assert pool.allocate((), np.float64).shape == ()


def test_flags_of_page_locked_memory():
    flags = driver.host_alloc_flags
    for value in (0, flags.PORTABLE, flags.DEVICEMAP | flags.WRITECOMBINED):
        pool = tools.PageLockedMemoryPool(tools.PageLockedAllocator(value))
        a = pool.allocate(10, np.int32)
        a[:] = 1
        gpuarray.to_gpu(a)
    with pytest.raises(ValueError, match="8"):
        tools.PageLockedAllocator(8)
