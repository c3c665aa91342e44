"""Runs kernels that use NVIDIA's C++ libraries, from the folder in which the tests install them."""

from __future__ import annotations

import os
import sys

import pytest
from device import BACKEND, IS_DOUBLE

from pygpu import driver
from pygpu.compiler import SourceModule

FOLDER = os.environ.get("PYGPU_TEST_CCCL")
MARKS = [
    pytest.mark.skipif(not FOLDER, reason="NVIDIA's C++ libraries are left to `make test-more`"),
    pytest.mark.skipif(BACKEND == "hip" or IS_DOUBLE, reason="the compiler does not take them"),
]


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    assert FOLDER in sys.path


def run(text, *arrays, threads=128, blocks=1):
    """Runs the kernel ``k`` of a text. Warnings of the compiler are errors here."""
    kernel = SourceModule(text, no_extern_c=True).get_function("k")
    kernel(*map(driver.InOut, arrays), block=(threads, 1, 1), grid=(blocks, 1))
