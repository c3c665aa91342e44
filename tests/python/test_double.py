"""The tests that need a GPU's driver, on a double of one that runs kernels on the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parent / "driver-double"
LIMIT = 600


@pytest.fixture(scope="session")
def double(tmp_path_factory):
    """The environment in which the CUDA backend finds the double."""
    folder = tmp_path_factory.mktemp("double")
    subprocess.run(["sh", SOURCES / "build.sh", folder], check=True, timeout=LIMIT)
    return {
        "PYGPU_BACKEND": "cuda",
        "PYGPU_CUDA_LIBRARY": str(folder / "cuda/libcuda.so.1"),
        "PYGPU_NVRTC": str(folder / "cuda/libnvrtc.so.12"),
        "PYGPU_CACHE_DIR": str(folder / "cache"),
    }


@pytest.mark.parametrize("tests", ["kernels", "test_driver.py", "test_pools.py", "test_rows.py"])
def test_on_the_double(double, tests):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / tests],
        cwd=HERE.parent.parent,
        env=os.environ | double,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
