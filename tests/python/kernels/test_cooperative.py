"""Cooperative launches, whose blocks wait for each other."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from vendor_headers import vendor_folder

import pygpu
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

TEXT = """
#include <cooperative_groups.h>
extern "C" __global__ void rounds(int *a, int count) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (int round = 0; round < count; ++round) {
        if (threadIdx.x == 1) {
            int from = round * gridDim.x + (blockIdx.x + 1) % gridDim.x;
            a[(round + 1) * gridDim.x + blockIdx.x] = a[from] + 1;
        }
        grid.sync();
    }
}
"""
BLOCKS, COUNT = 5, 7


@pytest.fixture
def rounds():
    has_own = BACKEND == "host" or IS_DOUBLE
    if not has_own and vendor_folder("cooperative_groups.h") is None:
        pytest.skip("cooperative_groups.h is not installed")
    return SourceModule(TEXT, no_extern_c=True).get_function("rounds")


def check(launch):
    host = np.zeros((COUNT + 1, BLOCKS), np.int32)
    host[0] = np.arange(BLOCKS) * 10
    a = gpuarray.to_gpu(host)
    launch(a)
    np.testing.assert_array_equal(a.get()[-1], np.roll(host[0], -COUNT) + COUNT)


@pytest.mark.parametrize("checks", [False, True] if BACKEND == "host" else [False])
def test_blocks_wait_for_one_another(rounds, checks):
    where = {"block": (64, 1, 1), "grid": (BLOCKS, 1), "cooperative": True}
    if checks:
        with pygpu.checking():
            rounds = SourceModule(TEXT, no_extern_c=True).get_function("rounds")
            check(lambda a: rounds(a, np.int32(COUNT), **where))
        return
    check(lambda a: rounds(a, np.int32(COUNT), **where))
    stream = driver.Stream()
    check(lambda a: rounds(a, np.int32(COUNT), stream=stream, **where))
    check(lambda a: rounds(a, np.int32(COUNT), time_kernel=True, **where))


def test_more_blocks_than_fit_are_refused(rounds):
    a = gpuarray.zeros(1 << 20, np.int32)
    with pytest.raises(driver.Error, match="cooperative"):
        rounds(a, np.int32(0), block=(1024, 1, 1), grid=(65535, 60), cooperative=True)
    rounds(a, np.int32(0), block=(64, 1, 1), grid=(2, 1), cooperative=True)
