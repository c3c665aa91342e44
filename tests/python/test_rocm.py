"""Debian's real HIP runtime on a machine without an AMD GPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import fetched

pytestmark = pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is an AMD GPU here")

LIMIT = 600


@pytest.fixture(scope="module")
def runtime():
    """The environment in which the runtime of ROCm 5.2, fetched once, is found."""
    folder = fetched("runtime", "hip-runtime")
    without = {"ROCM_PATH", "HIP_PATH", "PYGPU_HIP_LIBRARY", "PYGPU_HIPRTC", "PYGPU_BACKEND"}
    kept = {key: value for key, value in os.environ.items() if key not in without}
    return kept | {"LD_LIBRARY_PATH": str(folder / "lib")}


def info(environment, *arguments, status=0):
    done = subprocess.run(
        [sys.executable, "-m", "pygpu", "info", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def test_info_says_in_a_line_why_there_is_no_amd_gpu(runtime):
    (line,) = [it for it in info(runtime).stdout.splitlines() if it.startswith("hip ")]
    assert line.split()[1] == "unavailable:"
    assert re.search(r"libamdhip64\.so\.5.*hipError(NoDevice|InvalidDevice)", line), line
    assert "ROCM_PATH" in line


def test_info_says_the_same_to_programs(runtime):
    backends = json.loads(info(runtime, "--json").stdout)["backends"]
    (hip,) = [it for it in backends if it["name"] == "hip"]
    assert not hip["available"]
    assert "libamdhip64.so.5" in hip["reason"]


def test_asking_for_it_is_an_error_that_says_why(runtime):
    done = info(runtime | {"PYGPU_BACKEND": "hip"}, status=2)
    assert "libamdhip64.so.5" in done.stderr
