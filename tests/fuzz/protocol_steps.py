"""Steps that call numpy's own functions, which run on the device, and that move elements."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from axis_steps import EPSILON, LARGEST, _code, _total, draw_axis
from comparison import KINDS, Mismatch, Skipped, both, check_live, describe
from element_steps import has_repeats
from pairs import Pair, outcome

from pygpu import gpuarray

UFUNCS = ["add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and"]
UFUNCS += ["logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal"]
UFUNCS += ["less", "greater_equal", "not_equal", "floor_divide", "remainder", "copysign"]
UFUNCS += ["left_shift", "right_shift", "gcd", "lcm", "heaviside", "nextafter", "fmod", "divide"]
ALONE = ["negative", "absolute", "sign", "square", "isnan", "isfinite", "isinf", "signbit"]
ALONE += ["logical_not", "invert", "conjugate", "positive", "floor", "ceil", "trunc", "rint"]
ALONE += ["reciprocal", "spacing"]


def _is_refused(error: Any) -> bool:
    return isinstance(error, TypeError) and "does not work on a GPUArray" in str(error)


def _not_complex(*pairs: Pair) -> None:
    """Skips complex products and quotients, whose rounding and NaN differ."""
    if any(pair.host.dtype.kind == "c" for pair in pairs):
        raise Skipped


def ufunc(seed: int, x: Pair, y: Pair) -> Pair | None:
    """Applies a universal function to two arrays, or computes its table of all pairs."""
    random = Random(seed)
    name = random.choice(UFUNCS)
    if name in ("multiply", "divide", "floor_divide", "remainder"):
        _not_complex(x, y)
    if name.endswith("shift") and y.host.dtype.kind in "iu" and y.host.size:
        least, most = int(y.host.min()), int(y.host.max())
        if least < 0 or most >= 8:
            raise Skipped  # undefined in C
    function = getattr(np, name)
    form = random.randrange(3)
    if form == 0 and x.host.size * y.host.size < 1000 and x.host.ndim + y.host.ndim < 7:
        apply = lambda a, b: function.outer(a, b)  # noqa: E731
        name = f"{name}.outer"
    else:
        apply = function
    result = outcome(apply, x.device, y.device)
    if _is_refused(result):
        raise Skipped
    return both(f"np.{name}", apply, apply, x, y, strides=False, signs=False)


def ufunc_of_one(seed: int, x: Pair) -> Pair | None:
    """Applies a universal function to one array."""
    name = Random(seed).choice(ALONE)
    if name in ("square", "reciprocal", "sign", "absolute"):
        _not_complex(x)
    if name in ("reciprocal", "conjugate") and x.host.dtype.kind == "b":
        raise Skipped  # numpy treats booleans as int8 here
    if name == "reciprocal" and x.host.dtype.kind in "iu":
        raise Skipped
    function = getattr(np, name)
    if _is_refused(outcome(function, x.device)):
        raise Skipped
    return both(f"np.{name}", function, function, x, strides=False, signs=False)


def ufunc_into(seed: int, x: Pair, y: Pair, out: Pair) -> None:
    """Applies a universal function with an output array, and sometimes a mask."""
    random = Random(seed)
    if has_repeats(out.host):
        raise Skipped
    name = random.choice(
        ["add", "subtract", "maximum", "minimum", "logical_and", "less", "multiply"]
    )
    if name == "multiply":
        _not_complex(x, y)
    function = getattr(np, name)
    theirs: dict[str, Any] = {"out": out.host}
    ours: dict[str, Any] = {"out": out.device}
    told = f"np.{name} of {describe(x.host)} and {describe(y.host)} into {describe(out.host)}"
    if random.random() < 0.5:
        shape = out.host.shape
        if random.random() < 0.3:
            shape = tuple(1 if random.random() < 0.4 else n for n in shape)
        mask = np.array([random.random() < 0.5 for _ in range(int(np.prod(shape)))], bool)
        theirs["where"] = mask.reshape(shape)
        ours["where"] = gpuarray.to_gpu(theirs["where"])
        told += f" where {describe(theirs['where'])}"
        if any(np.shares_memory(one.host, out.host) for one in (x, y)):
            raise Skipped  # numpy also writes where the mask is False if it must convert
    expected = outcome(lambda: function(x.host, y.host, **theirs))
    result = outcome(lambda: function(x.device, y.device, **ours))
    if isinstance(expected, Exception) or isinstance(result, Exception):
        # Either error may be reported if a call has several.
        if not isinstance(expected, KINDS) or not isinstance(result, KINDS):
            raise Mismatch(f"{told}: numpy: {expected!r}; pygpu: {result!r}")
        check_live(told)
        return
    if result is not out.device:
        raise Mismatch(f"{told}: the result is not the output")
    check_live(told)


def ufunc_reduce(seed: int, x: Pair) -> Pair | None:
    """Calls `reduce` or `accumulate` of a universal function."""
    random = Random(seed)
    name = random.choice(["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"])
    if name in ("maximum", "minimum") and x.host.dtype.kind == "c":
        raise Skipped
    error = 0.0
    if name in ("add", "multiply") and x.host.dtype.kind in "fc":
        total = max(_total(x.host), 1.0)
        if name == "multiply":
            total = float(np.prod(np.maximum(np.abs(x.host.astype("c16")).ravel(), 1.0)))
        if not total < LARGEST[_code(x.host.dtype)]:
            raise Skipped
        error = 16 * EPSILON[_code(x.host.dtype)] * total
    method = random.choice(["reduce", "accumulate"])
    if method == "accumulate" and name not in ("add", "multiply"):
        raise Skipped
    axis = draw_axis(random, x.host.ndim, several=method == "reduce")
    if method == "accumulate" and axis is None:
        axis = 0
    given: dict[str, Any] = {"axis": axis} if random.random() < 0.8 else {}
    if method == "reduce" and random.random() < 0.3:
        given["keepdims"] = True
    function = getattr(getattr(np, name), method)
    if isinstance(outcome(lambda: function(x.host, **given)), Exception):
        raise Skipped  # numpy leaks the array if its `__array_ufunc__` raises here
    apply = lambda a: function(a, **given)  # noqa: E731
    theirs = lambda a: np.asarray(apply(a))  # noqa: E731
    told = f"np.{name}.{method} {given}"
    return both(told, theirs, apply, x, atol=error, rtol=error, strides=False, signs=False)


def rearrange(seed: int, x: Pair) -> Pair | None:
    """Repeats, moves or drops elements with numpy's functions."""
    random = Random(seed)
    rank = x.host.ndim
    axis = draw_axis(random, rank, several=False)
    some = draw_axis(random, rank)
    k = random.choice([0, 1, -1, 2, -3, 100, -(2**40)])
    n = random.choice([0, 1, 2, 3, 3])
    forms = {
        "repeat": lambda a: np.repeat(a, n, axis),
        "tile": lambda a: np.tile(a, random_reps),
        "roll": lambda a: np.roll(a, k, axis),
        "roll several": lambda a: np.roll(a, (k,) * len(some), some),
        "flip": lambda a: np.flip(a, some),
        "tril": lambda a: np.tril(a, k),
        "triu": lambda a: np.triu(a, k),
        "expand_dims": lambda a: np.expand_dims(a, 0 if axis is None else axis),
        "moveaxis": lambda a: np.moveaxis(a, 0 if axis is None else axis, -1),
        "swapaxes": lambda a: np.swapaxes(a, 0 if axis is None else axis, -1),
        "diagonal": lambda a: np.diagonal(a, max(-9, min(k, 9))),
        "trace": lambda a: np.trace(a, max(-9, min(k, 9))),
        "broadcast_to": lambda a: np.broadcast_to(a, (n, *a.shape)),
        "split": lambda a: np.concatenate(np.array_split(a, n + 1, 0 if axis is None else axis)),
        "hstack": lambda a: np.hstack([a, a]),
        "vstack": lambda a: np.vstack([a, a]),
        "clip": lambda a: np.clip(a, n, 3),
        "nan_to_num": np.nan_to_num,
        "isclose": lambda a: np.isclose(a, a),
        "squeeze": np.squeeze,
        "ravel": np.ravel,
    }
    random_reps = tuple(random.choice([0, 1, 2]) for _ in range(random.randint(0, 3)))
    name = random.choice(list(forms))
    if name == "roll several" and not (isinstance(some, tuple) and some):
        raise Skipped
    if name in ("tril", "triu") and not rank:
        raise Skipped  # numpy refuses this by accident, with a TypeError
    if name in ("clip", "nan_to_num", "isclose", "trace"):
        _not_complex(x)
    if name == "trace" and x.host.dtype.kind == "f":
        raise Skipped
    told = f"{name} axis {axis} axes {some} k {k} n {n} reps {random_reps}"
    pair = both(told, forms[name], forms[name], x, strides=False, signs=False)
    if pair is None:
        return None
    # Some results are views in one library and copies in the other.
    from view_steps import _alone

    return _alone(pair)
