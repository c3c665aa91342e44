"""Strides and contiguity of arrays, with the names of ``pycuda.compyte.array``."""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = [
    "ArrayFlags",
    "ArrayIsh",
    "as_strided",
    "bound",
    "c_contiguous_strides",
    "equal_strides",
    "f_contiguous_strides",
    "get_common_dtype",
    "is_c_contiguous_strides",
    "is_f_contiguous_strides",
    "may_share_memory",
]


class ArrayIsh(Protocol):
    """What these functions ask of an array.

    Attributes
    ----------
    shape, strides : tuple of int. The extents of the axes, and the bytes between neighbours along
        each.
    dtype : numpy.dtype. The type of the elements.
    bytes : int. The address of the first element.

    Examples
    --------
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
    """Returns the strides of an array of ``shape`` without gaps whose first axis runs fastest, of
    elements of ``itemsize`` bytes. An extent of 0 counts as 1.

    >>> f_contiguous_strides(4, (3, 5))
    (4, 12)
    """
    return tuple(
        itemsize * prod(max(1, extent) for extent in shape[:axis]) for axis in range(len(shape))
    )


def c_contiguous_strides(itemsize: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the same as :func:`f_contiguous_strides` with the last axis fastest, for ``itemsize``
    and ``shape``.

    >>> c_contiguous_strides(4, (3, 5))
    (20, 4)
    """
    return f_contiguous_strides(itemsize, tuple(shape)[::-1])[::-1]


def equal_strides(
    strides1: tuple[int, ...], strides2: tuple[int, ...], shape: tuple[int, ...]
) -> bool:
    """Returns whether ``strides1`` and ``strides2`` agree on every axis of ``shape`` whose extent
    is not 1.

    >>> equal_strides((12, 4), (100, 4), (1, 3)), equal_strides((12, 4), (100, 4), (2, 3))
    (True, False)
    """
    if tuple(strides1) == tuple(strides2):
        return True
    if not len(strides1) == len(strides2) == len(shape):
        return False
    return all(
        extent == 1 or first == second for extent, first, second in zip(shape, strides1, strides2)
    )


def is_f_contiguous_strides(
    strides: tuple[int, ...], itemsize: int, shape: tuple[int, ...]
) -> bool:
    """Returns whether elements of ``itemsize`` bytes under ``strides`` and ``shape`` lie without
    gaps, the first axis fastest; True without elements.

    >>> is_f_contiguous_strides((4, 8), 4, (2, 3)), is_f_contiguous_strides((12, 4), 4, (2, 3))
    (True, False)
    """
    return prod(shape) == 0 or equal_strides(strides, f_contiguous_strides(itemsize, shape), shape)


def is_c_contiguous_strides(
    strides: tuple[int, ...], itemsize: int, shape: tuple[int, ...]
) -> bool:
    """Returns the same as :func:`is_f_contiguous_strides` with the last axis fastest, for
    ``strides``, ``itemsize`` and ``shape``.

    >>> is_c_contiguous_strides((12, 4), 4, (2, 3)), is_c_contiguous_strides((4, 8), 4, (2, 3))
    (True, False)
    """
    return prod(shape) == 0 or equal_strides(strides, c_contiguous_strides(itemsize, shape), shape)


class ArrayFlags:
    """How the elements of an array lie in memory.

    Parameters
    ----------
    ary : ArrayIsh. The array.

    Attributes
    ----------
    c_contiguous, f_contiguous : bool. Whether they lie without gaps, the last or the first axis
        fastest.
    forc : bool. Whether either holds.

    Examples
    --------
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
    """Returns the dtype of the sum of the array ``obj1`` and the array or number ``obj2``, of
    single precision unless ``allow_double`` is True.

    >>> get_common_dtype(np.zeros(3, np.int32), 1.5, allow_double=False)
    dtype('float32')
    """
    other = np.zeros(1, obj2.dtype) if hasattr(obj2, "dtype") else obj2
    result = (np.zeros(1, obj1.dtype) + other).dtype
    single = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}
    return result if allow_double else np.dtype(single.get(result, result))


def bound(a: ArrayIsh) -> tuple[int, int]:
    """Returns the lowest and the highest address of an element of ``a``, which has some.

    >>> from types import SimpleNamespace
    >>> bound(SimpleNamespace(shape=(2, 3), strides=(-12, 4), bytes=4096))
    (4084, 4104)
    """
    steps = [stride * (extent - 1) for stride, extent in zip(a.strides, a.shape)]
    return (
        a.bytes + sum(step for step in steps if step < 0),
        a.bytes + sum(step for step in steps if step > 0),
    )


def may_share_memory(a: Any, b: Any) -> bool:
    """Returns whether the ranges of addresses of ``a`` and ``b`` overlap; False for two classes.

    PyCUDA leaves out the last element of each range; here it counts.

    >>> from types import SimpleNamespace
    >>> a, b = (SimpleNamespace(shape=(4,), strides=(4,), bytes=at) for at in (4096, 4108))
    >>> may_share_memory(a, b)
    True
    """
    if a is b:
        return True
    if a.__class__ is not b.__class__:
        return False
    (a_low, a_high), (b_low, b_high) = bound(a), bound(b)
    return b_low <= a_high and a_low <= b_high
