"""Random numbers, with the name of ``pycuda.curandom.rand``.

The numbers are drawn by numpy on the host and sent to the device. Generators that live on
the device are not part of this version.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import GPUArray
from ._curand import direction_vector_set, get_curand_version
from .gpuarray import to_gpu_async

__all__ = ["direction_vector_set", "get_curand_version", "rand"]

_generator: np.random.Generator | None = None


def rand(shape: Any, dtype: Any = np.float32, stream: Any = None) -> GPUArray:
    """Numbers from [0, 1), or 32-bit integers of the whole range."""
    global _generator
    if _generator is None:
        _generator = np.random.default_rng()
    dtype = np.dtype(dtype)
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        numbers: Any = _generator.random(shape, dtype)
    elif dtype in (np.dtype(np.int32), np.dtype(np.uint32)):
        limits = np.iinfo(dtype)
        numbers = _generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    else:
        raise NotImplementedError(
            f"dtype is {dtype}; allowed are float32, float64, int32 and uint32"
        )
    return to_gpu_async(numbers, stream=stream)
