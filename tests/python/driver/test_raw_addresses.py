"""Addresses given as plain numbers, which the host backend checks against its allocations.

The search keeps a model, a list of the allocated ranges, and uses ranges inside, next
to and across them. For a longer search:
PYGPU_SEARCH_STEPS=100000 pytest tests/python/driver/test_raw_addresses.py
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND
from processes import run_python

from pygpu import driver, gpuarray, tools

STEPS = int(os.environ.get("PYGPU_SEARCH_STEPS", "1500"))
pytestmark = pytest.mark.skipif(
    BACKEND != "host", reason="a driver judges addresses by its own granularity"
)


def uses(address: int, size: int) -> list:
    """Returns calls for every use of a number as an address."""
    data = np.zeros(size, np.uint8)
    return [
        lambda: driver.memcpy_dtoh(data, address),
        lambda: driver.memcpy_htod(address, data),
        lambda: driver.memcpy_dtod(address, address, size),
        lambda: driver.memset_d8(address, 0, size),
        lambda: gpuarray.GPUArray((size,), np.uint8, gpudata=address).fill(0),
    ]


def check(address: int, size: int, allowed: bool) -> None:
    for use in uses(address, size):
        if allowed:
            use()
        else:
            with pytest.raises(driver.LogicError, match=hex(address)):
                use()


@pytest.mark.parametrize("size", [1, 1000, 1 << 20, 5 << 20])
def test_a_number_stands_for_the_rest_of_its_allocation(size):
    memory = driver.mem_alloc(size)
    start = int(memory)
    check(start, size, allowed=True)
    check(start + size - 1, 1, allowed=True)
    check(start + size // 2, size - size // 2, allowed=True)
    check(start, size + 1, allowed=False)
    check(start + size, 1, allowed=False)
    check(start - 1, 2, allowed=False)
    memory.free()
    check(start, 1, allowed=False)


def test_memory_of_every_kind_is_known_while_it_lives():
    pool = tools.DeviceMemoryPool()
    array = gpuarray.zeros(100, np.float64)
    kinds = {
        "array": (array, array.ptr, array.nbytes),
        "view": (array, array.ptr + 80, 720),
        "pool": (block := pool.allocate(300), int(block), 300),
        "page-locked": (locked := driver.pagelocked_empty(500, np.uint8), locked.ctypes.data, 500),
    }
    del array, block, locked
    ends = {}
    for name in list(kinds):
        keeper, address, size = kinds[name]
        check(address, size, allowed=True)
        ends[name] = (address, size)
        del keeper
    kinds.clear()
    pool.stop_holding()
    for address, size in ends.values():
        check(address, size, allowed=False)


def test_memory_of_the_program_is_refused_until_it_is_registered():
    host = np.zeros(5000, np.uint8)
    address = host.ctypes.data
    check(address, 5000, allowed=False)
    registered = driver.register_host_memory(host)
    check(address, 5000, allowed=True)
    check(address + 1, 5000, allowed=False)
    registered.base.unregister()
    check(address, 1, allowed=False)


def test_rows_are_checked_as_a_whole():
    memory = driver.mem_alloc(1000)
    copy = driver.Memcpy2D()
    copy.set_src_host(np.zeros((10, 100), np.uint8))
    copy.set_dst_device(int(memory) + 1)
    copy.width_in_bytes = copy.src_pitch = copy.dst_pitch = 100
    copy.height = 10
    with pytest.raises(driver.LogicError):
        copy(aligned=False)
    copy.height = 9
    copy(aligned=False)


def test_addresses_far_out_are_refused():
    for address in (0, 1, 8, 2**47, 2**63, 2**64 - 1, 2**64 - 16):
        with pytest.raises(driver.LogicError):
            driver.memcpy_dtoh(np.zeros(16, np.uint8), address)


def test_the_allocation_of_an_address_is_told():
    memory = driver.mem_alloc(1000)
    assert driver.mem_get_address_range(int(memory) + 999) == (int(memory), 1000)
    with pytest.raises(driver.LogicError):
        driver.mem_get_address_range(int(memory) + 1000)


def test_ranges_are_judged_as_a_model_judges_them():
    # In a separate process, because the model must know all allocations.
    folders = [str(it) for it in Path(__file__).parents[:2]]
    run_python(
        f"import sys; sys.path[:0] = {folders!r}; import test_raw_addresses as tests; "
        "tests.judge_ranges()"
    )


def judge_ranges():
    chance = random.Random(7)
    live: dict[int, tuple[object, int]] = {}
    stale: list[int] = []
    for _ in range(STEPS):
        action = chance.random()
        if action < 0.25 and len(live) < 60:
            size = chance.choice([1, 7, 64, 65, 300, 4096, 70_000, 1 << 20, (1 << 20) + 1, 3 << 20])
            make = chance.choice([driver.mem_alloc, lambda size: gpuarray.empty(size, np.uint8)])
            memory = make(size)
            address = memory.ptr if isinstance(memory, gpuarray.GPUArray) else int(memory)
            live[address] = (memory, size)
            del memory
        elif action < 0.4 and live:
            address = chance.choice(list(live))
            stale = [*stale[-50:], address]
            del live[address]
        elif action < 0.42:
            driver.Context.trim_memory()
        base = chance.choice([*live, *stale, 4096])
        size = live[base][1] if base in live else chance.choice([1, 64, 5000])
        address = base + chance.choice([0, 0, 1, size // 2, size - 1, size, -1])
        size = max(
            1, chance.choice([1, size, size - 1, size + 1, size // 2, size - (address - base)])
        )
        allowed = any(
            start <= address and address + size <= start + length
            for start, (_, length) in live.items()
        )
        use = chance.choice(uses(address, size))
        try:
            use()
        except driver.LogicError:
            assert not allowed, (hex(address), size)
        else:
            assert allowed, (hex(address), size)
