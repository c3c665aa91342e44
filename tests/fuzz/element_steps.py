"""Steps that apply elementwise functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from comparison import KINDS, Mismatch, Skipped, both, check_live, describe, written
from pairs import (
    Pair,
    outcome,
    rounding,
)
from view_steps import draw_number

from pygpu import cumath, gpuarray

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
ARITHMETIC += [operator.mod, operator.and_, operator.or_, operator.xor]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv]
IN_PLACE += [operator.imod, operator.iand, operator.ior, operator.ixor]


def _error(function: Any, *operands: Any) -> float:
    """Returns the allowed relative error: complex products and quotients may round differently."""
    types = [np.asarray(one.host if isinstance(one, Pair) else one).dtype for one in operands]
    exact = {operator.add, operator.sub, operator.iadd, operator.isub, operator.neg, operator.pos}
    if function in exact or not any(kind.kind == "c" for kind in types):
        return 0.0
    narrow = any(kind == np.complex64 for kind in types)
    return 4 * rounding(np.dtype("c8" if narrow else "c16"))


def _finite_complex(*operands: Any) -> None:
    """Skips complex products and quotients of NaN and infinities, which C leaves undefined."""
    for one in operands:
        value = np.asarray(one.host if isinstance(one, Pair) else one)
        if value.dtype.kind in "fc" and not (np.abs(value[np.isfinite(value)]) < 1e15).all():
            raise Skipped
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            raise Skipped


def binary(seed: int, x: Pair, y: Pair) -> Pair | None:
    """Applies an operator to two arrays."""
    function = Random(seed).choice(ARITHMETIC + COMPARISONS)
    error = _error(function, x, y)
    if error and function not in COMPARISONS:
        _finite_complex(x, y)
    tolerance = error and function not in COMPARISONS
    atol = error * 10 if tolerance else 0.0
    return both(function.__name__, function, function, x, y, rtol=tolerance or 0.0, atol=atol)


def scalar(seed: int, x: Pair) -> Pair | None:
    """Applies an operator to an array and a number."""
    random = Random(seed)
    function = random.choice(ARITHMETIC + COMPARISONS + [operator.pow])
    number = random.choice([0, 1, 2, 3]) if function is operator.pow else None
    if number is None:
        number = draw_number(random, x.host.dtype)
    error = _error(function, x, number)
    if error:
        _finite_complex(x, number)
    if function is operator.pow and x.host.dtype.kind == "b":
        raise Skipped  # numpy squares them as int8, and computes all other powers as int64
    if function is operator.pow and x.host.dtype.kind in "fc":
        error = max(error, 4 * rounding(x.host.dtype))
        _finite_complex(x)
    error = 0.0 if function in COMPARISONS else error
    if function is operator.pow or random.random() < 0.6:
        apply = lambda a: function(a, number)  # noqa: E731
        text = f"{function.__name__}(x, {number!r})"
    else:
        apply = lambda a: function(number, a)  # noqa: E731
        text = f"{function.__name__}({number!r}, x)"
        if isinstance(number, np.generic):
            # A numpy scalar first calls the array's protocol: the same operator, reflected.
            apply = lambda a: function(a, number)  # noqa: E731
    return both(text, apply, apply, x, rtol=error, atol=error)


def unary(seed: int, x: Pair) -> Pair | None:
    """Applies an operator to one array."""
    function = Random(seed).choice([operator.neg, operator.invert, abs])
    error = 4 * rounding(x.host.dtype) if x.host.dtype.kind == "c" and function is abs else 0.0
    return both(function.__name__, function, function, x, rtol=error)


def in_place(seed: int, x: Pair, y: Pair) -> None:
    """Applies an in-place operator; the operands may share memory."""
    function = Random(seed).choice(IN_PLACE)
    error = _error(function, x, y)
    if error:
        _finite_complex(x, y)
    write_to_both(function.__name__, function, x, y, error)


def in_place_scalar(seed: int, x: Pair) -> None:
    """Applies an in-place operator with a number."""
    random = Random(seed)
    function, number = random.choice(IN_PLACE), draw_number(random, x.host.dtype)
    error = _error(function, x, number)
    if error:
        _finite_complex(x, number)
    write_to_both(f"{function.__name__} {number!r}", function, x, number, error)


def write_to_both(text: str, function: Callable[..., Any], x: Pair, y: Any, error: float) -> None:
    other = y.host if isinstance(y, Pair) else y
    told = f"{text} of {describe(x.host)} and {describe(other)}"
    if has_repeats(x.host):
        raise Skipped
    expected = outcome(function, x.host, other)
    result = outcome(function, x.device, y.device if isinstance(y, Pair) else y)
    if isinstance(expected, Exception):
        kind = next((kind for kind in KINDS if isinstance(expected, kind)), Exception)
        if not isinstance(result, kind):
            raise Mismatch(f"{told}: numpy raises {expected!r}; pygpu: {result!r}")
        check_live(told)
        return
    if isinstance(result, Exception):
        raise Mismatch(f"{told}: pygpu raises {result!r}")
    written(told, x, error, error)


def has_repeats(host: np.ndarray) -> bool:
    """Returns true if elements of an array share memory."""
    return any(step == 0 and side > 1 for step, side in zip(host.strides, host.shape, strict=True))


FUNCTIONS = [
    "ceil",
    "floor",
    "exp",
    "log",
    "log10",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
]


def function(seed: int, x: Pair) -> Pair | None:
    """Applies an elementwise function, sometimes with an output array."""
    random = Random(seed)
    name = random.choice(FUNCTIONS)
    if x.host.dtype.kind == "c" or (name not in ("ceil", "floor") and x.host.dtype.kind != "f"):
        raise Skipped  # complex functions at their edges and widened integers have their own tests
    theirs, ours = getattr(np, name), getattr(cumath, name.replace("arc", "a"))
    exact = name in ("ceil", "floor", "sqrt")
    error = 0.0 if exact else {2: 2e-3, 4: 4e-6, 8: 4e-14}[x.host.dtype.itemsize]
    if name in ("sin", "cos", "tan") and not (np.abs(x.host[np.isfinite(x.host)]) < 1e4).all():
        raise Skipped
    return both(name, theirs, ours, x, rtol=error, atol=error, strides=True)


def choose(seed: int, x: Pair, y: Pair, z: Pair) -> Pair | None:
    """Selects elements of one or another array."""
    kind = Random(seed).randrange(6)
    if kind == 0:
        return both("where", np.where, gpuarray.where, x, y, z, strides=False)
    if kind == 1:
        theirs = lambda c, a, b: np.where(c > 0, a, b)  # noqa: E731
        if x.host.dtype.kind == "c":
            raise Skipped
        return both("if_positive", theirs, gpuarray.if_positive, x, y, z, strides=False)
    name = ["minimum", "maximum", "logical_and", "logical_or"][kind - 2]
    return both(name, getattr(np, name), getattr(gpuarray, name), x, y, signs=False)


def into(seed: int, x: Pair, y: Pair, out: Pair) -> None:
    """Applies a function with an output array that may share memory with its operands."""
    random = Random(seed)
    name = random.choice(["minimum", "maximum", "logical_and"])
    if has_repeats(out.host):
        raise Skipped
    if np.result_type(x.host, y.host) != out.host.dtype and name != "logical_and":
        raise Skipped
    if outcome(np.broadcast_shapes, x.host.shape, y.host.shape) != out.host.shape:
        raise Skipped
    if name == "logical_and" and out.host.dtype.kind != "b":
        raise Skipped
    text = f"{name} into an array of {describe(x.host)} and {describe(y.host)}"
    getattr(np, name)(x.host, y.host, out=out.host)
    getattr(gpuarray, name)(x.device, y.device, out=out.device)
    written(text, out, 0.0)
