"""What the device under test is, and what of it a test can count on."""

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
# Everything, and not a part of it: `make test-all`.
TEST_ALL = bool(os.environ.get("PYGPU_TEST_ALL"))

IS_DOUBLE = DEVICE.name() == "Driver Double"

# Nobody else allocates on the host's device or on a double: free memory is known to the byte.
ALONE = BACKEND == "host" or IS_DOUBLE
needs_alone = pytest.mark.skipif(not ALONE, reason="other processes may use the device's memory")

# AMD's code objects say which parameters a kernel has. What stands for them on a double does not,
# which calls an NVIDIA GPU gfx-sm90.
IS_AMD = BACKEND == "hip" and not IS_DOUBLE and re.match("gfx[0-9]", DEVICE.architecture())
KNOWS_PARAMETERS = BACKEND != "hip" or bool(IS_AMD)
needs_parameters = pytest.mark.skipif(
    not KNOWS_PARAMETERS, reason="this driver does not tell which parameters a kernel has"
)


# For tests each of whose examples may be a kernel that is compiled.
compiled_examples = settings(max_examples=max(5, settings().max_examples // 4))


def busy(count: int) -> int:
    """A number of elements that keeps the device busy as `count` elements keep a GPU.

    A double runs kernels thread by thread; the host's module under test is hardly optimised.
    """
    return count // 40 if IS_DOUBLE else count // 4 if BACKEND == "host" else count


HAS_PTX = BACKEND == "cuda"
needs_ptx = pytest.mark.skipif(not HAS_PTX, reason="the backend neither takes PTX nor links it")


def settled_memory(
    expected: tuple[int, int] | None = None,
) -> tuple[int, int] | None:
    """Free and total bytes when nothing unused is kept; None where others share the device.

    Returns as soon as they are the expected ones.
    """
    gc.collect()
    found: list[tuple[int, int]] = []
    # What was dropped behind queued work is freed by a thread, a moment later.
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
