"""Strides and contiguity of arrays, with the names of ``pycuda.compyte.array``.

Examples
--------
>>> c_contiguous_strides(4, (3, 5)), f_contiguous_strides(4, (3, 5))
((20, 4), (4, 12))
>>> is_c_contiguous_strides((12, 4), 4, (2, 3)), is_f_contiguous_strides((12, 4), 4, (2, 3))
(True, False)
"""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = ["ArrayFlags", "ArrayIsh", "as_strided", "bound", "c_contiguous_strides", "equal_strides"]
__all__ += ["f_contiguous_strides", "get_common_dtype", "is_c_contiguous_strides"]
__all__ += ["is_f_contiguous_strides", "may_share_memory"]


class ArrayIsh(Protocol):
    """The attributes of arrays that these functions read; ``bytes`` is the first element's address.

    >>> from types import SimpleNamespace
    >>> array = SimpleNamespace(shape=(2, 3), strides=(12, 4), dtype=np.dtype("f4"), bytes=4096)
    >>> ArrayFlags(array).c_contiguous
    True
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int


def f_contiguous_strides(itemsize: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns Fortran strides of ``shape`` and ``itemsize``; an extent of 0 counts as 1."""
    return tuple(itemsize * prod(max(1, n) for n in shape[:axis]) for axis in range(len(shape)))


def c_contiguous_strides(itemsize: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns C strides of ``shape`` and ``itemsize``; an extent of 0 counts as 1."""
    return f_contiguous_strides(itemsize, tuple(shape)[::-1])[::-1]


def equal_strides(
    strides1: tuple[int, ...], strides2: tuple[int, ...], shape: tuple[int, ...]
) -> bool:
    """Returns True if ``strides1`` equal ``strides2`` on axes not of extent 1 in ``shape``."""
    if tuple(strides1) == tuple(strides2):
        return True
    if not len(strides1) == len(strides2) == len(shape):
        return False
    axes = zip(shape, strides1, strides2)
    return all(side == 1 or first == second for side, first, second in axes)


def is_f_contiguous_strides(
    strides: tuple[int, ...], itemsize: int, shape: tuple[int, ...]
) -> bool:
    """Returns True for empty arrays, and for Fortran ``strides`` of ``shape`` and ``itemsize``."""
    return prod(shape) == 0 or equal_strides(strides, f_contiguous_strides(itemsize, shape), shape)


def is_c_contiguous_strides(
    strides: tuple[int, ...], itemsize: int, shape: tuple[int, ...]
) -> bool:
    """Returns True for empty arrays, and for C ``strides`` of ``shape`` and ``itemsize``."""
    return prod(shape) == 0 or equal_strides(strides, c_contiguous_strides(itemsize, shape), shape)


class ArrayFlags:
    """The contiguity of ``ary``: ``c_contiguous``, ``f_contiguous``, and either of them, ``forc``.

    >>> ArrayFlags(np.zeros((2, 3)).T)
      C_CONTIGUOUS : False
      F_CONTIGUOUS : True
    """

    def __init__(self, ary: ArrayIsh) -> None:
        layout = (ary.strides, ary.dtype.itemsize, ary.shape)
        self.f_contiguous: bool = is_f_contiguous_strides(*layout)
        self.c_contiguous: bool = is_c_contiguous_strides(*layout)
        self.forc: bool = self.f_contiguous or self.c_contiguous

    def __repr__(self) -> str:
        return f"  C_CONTIGUOUS : {self.c_contiguous}\n  F_CONTIGUOUS : {self.f_contiguous}"


def get_common_dtype(obj1: Any, obj2: Any, allow_double: bool) -> np.dtype[Any]:
    """Returns the dtype of ``obj1`` + ``obj2``, single precision unless ``allow_double`` is True.

    >>> get_common_dtype(np.zeros(3, np.int32), 1.5, allow_double=False)
    dtype('float32')
    """
    other = np.zeros(1, obj2.dtype) if hasattr(obj2, "dtype") else obj2
    result = (np.zeros(1, obj1.dtype) + other).dtype
    single = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}
    return result if allow_double else np.dtype(single.get(result, result))


def span(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Returns an array's first and last byte, as offsets from the first element."""
    if 0 in shape:
        return 0, 0
    reach = [(side - 1) * stride for side, stride in zip(shape, strides)]
    return sum(min(0, step) for step in reach), sum(max(0, step) for step in reach) + itemsize


def bound(a: ArrayIsh) -> tuple[int, int]:
    """Returns the lowest and the highest address of an element of ``a`` (not empty)."""
    low, high = span(a.shape, a.strides, 0)
    return a.bytes + low, a.bytes + high


def may_share_memory(a: Any, b: Any) -> bool:
    """Returns True if the addresses of ``a`` and ``b``, objects of one class, overlap.

    PyCUDA leaves out the last element of each range; pygpu includes that element.
    """
    if a is b:
        return True
    if a.__class__ is not b.__class__:
        return False
    (a_low, a_high), (b_low, b_high) = bound(a), bound(b)
    return b_low <= a_high and a_low <= b_high
