"""The kernels in ``classic/*.cu``, and arrays for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device import BACKEND, DEVICE, IS_DOUBLE
from vendor_headers import includes, vendor_folder

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

FOLDER = Path(__file__).parent / "classic"


WARP = DEVICE.get_attribute(driver.device_attribute.WARP_SIZE)


# Kernels that rely on warps of 32 lanes.
OF_32_LANES = {
    "compaction",
    "divergence",
    "histogram_match",
    "radix_sort",
    "reduce_groups",
    "reduce_shuffle",
    "segmented",
}


def kernels(name, **options):
    """Returns the module of a file; skips the test if the backend cannot compile it."""
    if WARP != 32 and name in OF_32_LANES:
        pytest.skip(f"a warp has {WARP} lanes here; the kernel counts on 32")
    text = (FOLDER / f"{name}.cu").read_text()
    # The compilers of the host and of the fake drivers provide these headers.
    if BACKEND != "host" and not IS_DOUBLE:
        for header in includes(text):
            if header.startswith(("cu", "cooperative")) and vendor_folder(header) is None:
                pytest.skip(f"{header} is not installed")
    return SourceModule(text, no_extern_c='extern "C" __global__' in text, **options)


def kernel(name, function=None, **options):
    return kernels(name, **options).get_function(function or name)


def blocks(n, threads):
    return -(-n // threads)


def random(seed):
    return np.random.default_rng(seed)


def gpu(array):
    return gpuarray.to_gpu(np.ascontiguousarray(array))


def close(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
