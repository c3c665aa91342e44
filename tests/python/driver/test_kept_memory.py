"""Freed memory that is kept for reuse, and its release."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, needs_alone, settled_memory
from processes import run_python

from pygpu import driver, gpuarray


@needs_alone
def test_freed_memory_is_counted_until_it_is_given_back():
    settled_memory()
    assert driver.Context.kept_memory() == 0
    arrays = [gpuarray.zeros(n, np.uint8) for n in (1, 1000, 100_000, 1 << 20)]
    kept = driver.Context.kept_memory()
    total = sum(a.nbytes for a in arrays)
    del arrays
    driver.Context.synchronize()
    assert driver.Context.kept_memory() >= kept + total
    driver.Context.trim_memory()
    assert driver.Context.kept_memory() == 0


@pytest.mark.skipif(BACKEND != "host", reason="resident pages are those of the host's memory")
def test_trimming_gives_pages_back_to_the_system():
    run_python(
        """
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        before = resident()
        for sizes in ([32 << 20], [1 << 20] * 32, [40_000] * 800):
            # Pages of zeros would take no room before they are written.
            arrays = [gpuarray.zeros(n, np.uint8) + np.uint8(1) for n in sizes]
            total = sum(sizes)
            held = resident()
            assert held - before > total * 0.9, (before, held)
            del arrays
            driver.Context.trim_memory()
            assert resident() - before < total * 0.2, (before, held, resident(), len(sizes))
        """,
        PYGPU_BACKEND="host",
        PYGPU_HOST_THREADS="1",
    )


@pytest.mark.skipif(BACKEND != "host", reason="a driver keeps what it likes of its streams")
def test_streams_that_are_gone_leave_nothing():
    run_python(
        """
        import pygpu.autoinit
        from pygpu import driver

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        def make(count):
            for _ in range(count):
                driver.Stream()

        make(5_000)
        before = resident()
        make(50_000)
        # A leak of 20 bytes a stream would be a megabyte.
        assert resident() - before < 1_000_000, resident() - before
        """,
        PYGPU_BACKEND="host",
    )
