"""Shapes, strides and contiguity, with numba's names and rules."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .. import _arguments
from .._core import GPUArray

errmsg_contiguous_buffer = (
    "Array contains non-contiguous buffer and cannot be transferred as a single memory region. "
    "Please ensure contiguous buffer with numpy .ascontiguousarray()"
)


class Flags(dict[str, bool]):
    """Contiguity as numpy's arrays and as numba's show it."""

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements follow each other in C order."""
        return self["C_CONTIGUOUS"]

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements follow each other in Fortran order."""
        return self["F_CONTIGUOUS"]

    @property
    def forc(self) -> bool:
        """Whether they do in either."""
        return self["C_CONTIGUOUS"] or self["F_CONTIGUOUS"]


def contiguous_strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    """Returns the strides of an array without gaps in C or Fortran order."""
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}; allowed are 'C' and 'F'")
    strides, step = [], itemsize
    for side in reversed(shape) if order == "C" else shape:
        strides.append(step)
        step *= side
    return tuple(reversed(strides) if order == "C" else strides)


def prepare(
    shape: Any, strides: Any, dtype: Any, order: str
) -> tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]:
    """Returns shape, strides in bytes and dtype, checked; without strides those of ``order``."""
    shape, dtype = _arguments.extents("shape", shape), np.dtype(dtype)
    if strides is None:
        return shape, contiguous_strides(shape, dtype.itemsize, order), dtype
    strides = (strides,) if isinstance(strides, int | np.integer) else tuple(strides)
    if len(strides) != len(shape):
        raise ValueError(
            f"strides has {len(strides)} entries and shape {len(shape)}; they must match"
        )
    return shape, strides, dtype


def strides_like(ary: Any) -> tuple[tuple[int, ...] | None, Literal["C", "F"]]:
    """Returns strides without gaps in the order of an array's axes in memory, and its order.

    The strides are None where the order says all.
    """
    c, f = ary.flags["C_CONTIGUOUS"], ary.flags["F_CONTIGUOUS"]
    order: Literal["C", "F"] = "F" if f and not c else "C"
    if c or f or ary.ndim <= 1:
        return None, order
    strides, step = [0] * ary.ndim, ary.dtype.itemsize
    for axis in sorted(range(ary.ndim), key=lambda axis: ary.strides[axis]):
        strides[axis] = step
        step *= ary.shape[axis]
    return tuple(strides), order


def array_core(ary: Any) -> Any:
    """Returns the part of ``ary`` that its other elements repeat.

    >>> array_core(np.broadcast_to(np.arange(3), (5, 3))).shape
    (3,)
    """
    if not ary.strides or not ary.size or 0 not in ary.strides:
        return ary
    return ary[tuple(0 if stride == 0 else slice(None) for stride in ary.strides)]


def is_contiguous(ary: Any) -> bool:
    """Returns whether ``ary`` is C-contiguous but for axes that repeat or have extent 1.

    >>> is_contiguous(np.zeros((2, 3))), is_contiguous(np.zeros((2, 3)).T)
    (True, False)
    """
    size = ary.dtype.itemsize
    for side, stride in zip(reversed(ary.shape), reversed(ary.strides)):
        if side > 1 and stride != 0:
            if size != stride:
                return False
            size *= side
    return True


def sentry_contiguous(ary: Any) -> None:
    """Raises ValueError if ``ary`` is contiguous in neither order.

    >>> sentry_contiguous(np.zeros((2, 3)).T)
    """
    # An element of the plain class is an array still.
    flags = array_core(GPUArray.view(ary) if isinstance(ary, GPUArray) else ary).flags
    if not (flags.c_contiguous or flags.f_contiguous):
        raise ValueError(errmsg_contiguous_buffer)


def check_array_compatibility(ary1: Any, ary2: Any) -> None:
    """Raises an error if ``ary1`` and ``ary2`` differ in dtype, shape or strides.

    Axes of extent 1 do not count, nor do the strides of empty arrays.

    >>> check_array_compatibility(np.zeros((2, 3)), np.ones((2, 3)))
    """
    if ary1.dtype != ary2.dtype:
        raise TypeError(f"incompatible dtype: {ary1.dtype} vs. {ary2.dtype}")
    axes1, axes2 = (
        [(side, step) for side, step in zip(ary.shape, ary.strides) if side != 1]
        for ary in (ary1, ary2)
    )
    if [side for side, _ in axes1] != [side for side, _ in axes2]:
        raise ValueError(f"incompatible shape: {ary1.shape} vs. {ary2.shape}")
    if ary1.size and axes1 != axes2:
        raise ValueError(f"incompatible strides: {ary1.strides} vs. {ary2.strides}")
