"""The device under test, and the properties on which tests may rely."""

from __future__ import annotations

import gc
import os
import re
import time

import pytest
from hypothesis import settings

from pygpu import choose_backend, driver

BACKEND = choose_backend()
DEVICE = driver.Device(0)
# True if nothing is left out: `make test-all`.
TEST_ALL = bool(os.environ.get("PYGPU_TEST_ALL"))

IS_DOUBLE = DEVICE.name() == "Driver Double"

# No other process allocates on the host's device or on a fake one: free memory is exact.
ALONE = BACKEND == "host" or IS_DOUBLE
needs_alone = pytest.mark.skipif(not ALONE, reason="other processes may use the device's memory")

# AMD's code objects describe a kernel's parameters. The fake driver's code does not, and it calls
# an NVIDIA GPU gfx-sm90 when it forwards calls.
IS_AMD = BACKEND == "hip" and not IS_DOUBLE and re.match("gfx[0-9]", DEVICE.architecture())
KNOWS_PARAMETERS = BACKEND != "hip" or bool(IS_AMD)
needs_parameters = pytest.mark.skipif(
    not KNOWS_PARAMETERS, reason="this driver does not tell which parameters a kernel has"
)


# For tests that may compile a kernel in each example.
compiled_examples = settings(max_examples=max(5, settings().max_examples // 4))


def busy(count: int) -> int:
    """Returns the number of elements that keeps this device as busy as `count` keep a GPU.

    A fake driver runs kernels thread by thread; the host module under test is hardly optimised.
    """
    return count // 40 if IS_DOUBLE else count // 4 if BACKEND == "host" else count


HAS_PTX = BACKEND == "cuda"
needs_ptx = pytest.mark.skipif(not HAS_PTX, reason="the backend neither takes PTX nor links it")


def settled_memory(
    expected: tuple[int, int] | None = None,
) -> tuple[int, int] | None:
    """Returns free and total bytes once unused memory is released; None on a shared device.

    Returns as soon as they equal the expected ones.
    """
    gc.collect()
    found: list[tuple[int, int]] = []
    # A thread frees memory that was dropped with queued work, a moment later.
    while len(found) < 500 and (len(found) < 5 or len(set(found[-5:])) > 1):
        driver.Context.synchronize()
        driver.Context.trim_memory()
        found.append(driver.mem_get_info())
        if found[-1] == expected:
            break
        time.sleep(0.002)
        if len(found) % 50 == 0:
            gc.collect()
    return found[-1] if ALONE else None
