"""Functions of elements and comparisons of arrays that are made of several operations."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import _core
from .._arguments import gpu_array, has_fractions, whole
from .._core import GPUArray
from .as_numpy.operands import on_device
from .axes import normalize_axis_index
from .reductions import UNSET
from .shapes import broadcast_to, concatenate

_ufuncs = _core.universal_functions


def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: GPUArray | None = None,
    *,
    min: Any = None,
    max: Any = None,
) -> GPUArray:
    """Returns the elements within bounds, as :func:`numpy.clip`; ``out`` may be `a` itself."""
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ValueError("a bound is given twice; use either a_min and a_max or min and max")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    a = on_device(a) if isinstance(a, list | tuple | range) else gpu_array("a", a)
    if a.dtype.kind in "iu":
        # Integers that no element can reach bound nothing.
        limits = np.iinfo(a.dtype)
        low = None if type(low) is int and low < limits.min else low
        high = None if type(high) is int and high > limits.max else high
    if low is None and high is None:
        return _ufuncs["positive"](a, out=out)
    if low is None:
        return _ufuncs["minimum"](a, high, out=out)
    if high is None:
        return _ufuncs["maximum"](a, low, out=out)
    return _ufuncs["minimum"](_ufuncs["maximum"](a, low), high, out=out)


def round(a: GPUArray, decimals: int = 0, out: GPUArray | None = None) -> GPUArray:
    """Returns the elements rounded, halves to even, in their dtype, as :func:`numpy.round`."""
    return gpu_array("a", a).round(decimals, out)


def nan_to_num(
    x: GPUArray, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> GPUArray:
    """Returns numbers in place of NaN and the infinities, as :func:`numpy.nan_to_num`."""
    result = gpu_array("x", x).copy() if copy else x
    if not has_fractions(x.dtype):
        return result
    if x.dtype.kind == "c" and any(map(np.ndim, (nan, posinf, neginf))):
        raise TypeError(f"x has dtype {x.dtype}; its replacements must be numbers, not arrays")
    numbers = result[..., None]
    if x.dtype.kind == "c":
        # The real and imaginary parts alternate.
        numbers = numbers.view(np.empty(0, x.dtype).real.dtype)
    scalar = numbers.dtype.type
    # numpy does not know the limits of another package's dtypes.
    package = sys.modules[scalar.__module__] if numbers.dtype.kind == "V" else np
    most = package.finfo(scalar).max
    # Found before one is replaced by another.
    values: list[Any] = [
        on_device(it).astype(numbers.dtype)[..., None] if np.ndim(it) else it
        for it in (nan, posinf, neginf)
    ]
    nan, posinf, neginf = values
    replaced = (
        (_ufuncs["isnan"](numbers), nan),
        (numbers == np.inf, most if posinf is None else posinf),
        (numbers == -np.inf, -most if neginf is None else neginf),
    )
    for where, value in replaced:
        value = value if isinstance(value, GPUArray) else scalar(value)
        _core.select(where, value, numbers, False, numbers)
    return result


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> GPUArray:
    """Returns True where two elements differ by little, as :func:`numpy.isclose`."""
    if not isinstance(a, GPUArray) and not isinstance(b, GPUArray):
        gpu_array("a", a)
    if isinstance(b, int):
        b = float(b)
    elif not isinstance(b, float | complex):
        b = on_device(b)
        b = b if has_fractions(b.dtype) else b.astype(np.float64)
    if isinstance(a, GPUArray) and a.dtype.kind == "b":
        a = a.astype(np.float64)
    bound = abs(b) * rtol + atol
    close = abs(a - b) <= bound
    # An infinity is close to itself only.
    if isinstance(b, GPUArray):
        close &= _ufuncs["isfinite"](b)
    elif not np.isfinite(b):
        close = close & False
    close |= a == b
    if equal_nan:
        close |= _ufuncs["logical_and"](a != a, b != b)
    return close


def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Returns True if all elements differ by little, as :func:`numpy.allclose`."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Returns True if the arrays broadcast to equal elements, as :func:`numpy.array_equiv`."""
    a1, a2 = on_device(a1), on_device(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return bool((a1 == a2).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Returns True if shapes and elements are the same, as :func:`numpy.array_equal`."""
    a1, a2 = on_device(a1), on_device(a2)
    if a1.shape != a2.shape:
        return False
    equal = a1 == a2
    if equal_nan:
        equal |= _ufuncs["logical_and"](a1 != a1, a2 != a2)
    return bool(equal.all())


def diff(
    a: GPUArray, n: int = 1, axis: int = -1, prepend: Any = UNSET, append: Any = UNSET
) -> GPUArray:
    """Returns the differences of neighbours along an axis, as :func:`numpy.diff`."""
    if whole("n", n) < 0:
        raise ValueError(f"n is {n}; order must be non-negative")
    if n == 0:
        return gpu_array("a", a)
    if gpu_array("a", a).ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional; a has no axes")
    axis = normalize_axis_index(axis, a.ndim)
    before = (slice(None),) * axis
    ends = [it if it is UNSET else on_device(it) for it in (prepend, append)]
    parts = [it for it in (ends[0], a, ends[1]) if it is not UNSET]
    if len(parts) > 1:
        beside = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        dtype = np.result_type(*(it.dtype for it in parts))
        parts = [it if it.ndim else broadcast_to(it, beside) for it in parts]
        a = concatenate(parts, axis, dtype=dtype)
    differ = _ufuncs["not_equal" if a.dtype == np.bool_ else "subtract"]
    # Nothing is left after as many steps as there are elements.
    for _ in range(min(n, a.shape[axis])):
        a = differ(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a
