"""Objects from before a device reset are refused or work afterwards; no driver call receives
them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from device import BACKEND, TEST_ALL
from processes import LIMIT

PROGRAMS = Path(__file__).with_name("after_reset.py")
SEEDS = range(40 if TEST_ALL else 2)
on_a_gpu = pytest.mark.skipif(BACKEND == "host", reason="the host has no resets")
on_cuda = pytest.mark.skipif(BACKEND != "cuda", reason="HIP does not tell of resets by others")


def run(*arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(PROGRAMS), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr[-3000:])


@on_a_gpu
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reset", ["close", "device", "numba"])
def test_resets(reset, seed):
    run(reset, seed, 300)


@on_cuda
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reset", ["other", "other_goes_on", "released"])
def test_resets_by_other_libraries(reset, seed):
    run(reset, seed, 300)
