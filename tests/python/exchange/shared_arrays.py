"""Arrays in memory that processes share, for tests."""

from __future__ import annotations

import os

import numpy as np

from pygpu import gpuarray, ipc


def shared(values):
    """Returns an array with these elements in memory that can be shared."""
    return ipc.share(gpuarray.to_gpu(np.asarray(values)))


def rounds():
    return 100_000 if os.environ.get("PYGPU_TEST_ALL") else 3000
