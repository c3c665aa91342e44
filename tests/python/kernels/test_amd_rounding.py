"""Functions with an explicit rounding mode for AMD's compilers, compared with the CPU's."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from device import BACKEND, TEST_ALL

SOURCE = Path(__file__).with_name("amd_rounding.cpp")
BATCHES = 20 if TEST_ALL else 6


@pytest.mark.skipif(BACKEND != "host", reason="it is about the processor, for all backends once")
def test_they_round_as_the_processor_does(tmp_path):
    compiler = os.environ.get("CXX", "c++").split()
    options = ["-std=c++17", "-O1", "-frounding-math", "-ffp-contract=off", "-Wall", "-Wextra"]
    folder = Path(__file__).parents[3] / "cuda-c/include/gpu/amd"
    program = tmp_path / "rounding"
    subprocess.run(
        [*compiler, *options, "-Werror", f"-I{folder}", SOURCE, "-o", program],
        check=True,
        timeout=120,
    )
    said = subprocess.run(
        [program, str(BATCHES)], capture_output=True, text=True, timeout=120, check=False
    )
    compared, wrong = map(int, re.findall(r"(\d+) compared, (\d+) wrong", said.stdout)[-1])
    assert wrong == 0, said.stdout
    assert compared > 500_000 * BATCHES
