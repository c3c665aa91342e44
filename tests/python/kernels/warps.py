"""What tests of functions of warps share: odd numbers of warps in a block, and a way to run it."""

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
        # NVRTC warns of masks such as -1; the header on AMD's devices brings no warning.
        warnings.simplefilter("error" if choose_backend() == "hip" else "ignore")
        return SourceModule(text, **options)


def ran(function, shape, dtype, *inputs, threads=THREADS):
    """What a kernel of one block writes: its output is the first parameter."""
    out = gpuarray.zeros(shape, dtype)
    function(out, *inputs, block=(threads, 1, 1), grid=(1, 1))
    return out.get()
