"""Objects that stand for arrays in kernel calls: ``gpudata`` is the address of their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import GPUArray


def adopt(
    arguments: tuple[Any, ...], declared: Sequence[tuple[np.dtype[Any], bool] | None]
) -> tuple[Any, ...]:
    """Returns the arguments of a kernel with an array in place of each such object.

    ``declared`` has the dtype of each array, and True if the running index accesses it; None for
    numbers. An object without a shape is as long as the first array with one if the index accesses
    it; otherwise its size is not used.
    """
    pairs = list(zip(arguments, declared))
    sizes = (math.prod(it.shape) for it, array in pairs if array and hasattr(it, "shape"))
    size = next(sizes, 1)
    adopted = [
        _array(it, array[0], size if array[1] else 1) if array and _is_foreign(it) else it
        for it, array in pairs
    ]
    return (*adopted, *arguments[len(declared) :])


def _is_foreign(argument: Any) -> bool:
    return not isinstance(argument, GPUArray) and getattr(argument, "gpudata", None) is not None


def _array(argument: Any, declared: np.dtype[Any], size: int) -> GPUArray:
    if not argument.flags.forc:
        raise RuntimeError("elementwise kernel cannot deal with non-contiguous arrays")
    shape, dtype = getattr(argument, "shape", size), getattr(argument, "dtype", declared)
    return GPUArray(shape, dtype, gpudata=argument.gpudata, base=argument)
