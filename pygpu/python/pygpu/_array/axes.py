"""numpy's checks of axes."""

from __future__ import annotations

from typing import Any

from .._arguments import gpu_array
from .._core import GPUArray

# numpy has them in another place before version 2.
try:
    from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
except ImportError:  # pragma: no cover
    from numpy.core.numeric import (  # type: ignore[no-redef]
        normalize_axis_index,
        normalize_axis_tuple,
    )

__all__ = ["along_axis", "normalize_axis_index", "normalize_axis_tuple"]


def along_axis(a: GPUArray, axis: Any) -> tuple[GPUArray, int]:
    """Returns the elements, and the number of one of their axes.

    Without an axis the elements are read as along one, and so is an array without axes.

    Raises
    ------
    AxisError
        There is no such axis.
    """
    if axis is None:
        return GPUArray.ravel(gpu_array("a", a)), 0
    flat = GPUArray.ravel(a) if gpu_array("a", a).ndim == 0 else a
    return flat, normalize_axis_index(axis, flat.ndim)
