"""Shared code for tests of warp functions: blocks with an odd number of warps, and launches."""

import warnings

import numpy as np

import pygpu.autoinit  # noqa: F401
from pygpu import choose_backend, gpuarray
from pygpu.compiler import SourceModule

WARPS = 5
THREADS = 32 * WARPS
LANE = np.arange(THREADS) % 32
FULL = 0xFFFFFFFF


def compiled(text, **options):
    with warnings.catch_warnings():
        # NVRTC warns about masks such as -1; on AMD's devices the header must not cause warnings.
        warnings.simplefilter("error" if choose_backend() == "hip" else "ignore")
        return SourceModule(text, **options)


def ran(function, shape, dtype, *inputs, threads=THREADS):
    """Returns the output of a one-block kernel, whose first parameter is the output."""
    out = gpuarray.zeros(shape, dtype)
    function(out, *inputs, block=(threads, 1, 1), grid=(1, 1))
    return out.get()
