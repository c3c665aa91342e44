"""The steps of the search over array programs: each does the same in numpy and on the device.

The prelude of that search's cases, whose lines are calls such as `v3 = binary(917, v1, v2)`: the
number is the seed of what the step draws, the variables are pairs, or None after an error that both
raised alike. A difference raises `Mismatch`, which says what was done to which arrays.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from pairs import (
    DTYPES,
    INTEGERS,
    Pair,
    check,
    numbers,
    outcome,
    rounding,
    same_strides,
)

import pygpu.autoinit
from pygpu import cumath, gpuarray

context = pygpu.autoinit.context


class Mismatch(Exception):
    """pygpu differs from numpy."""


class Skipped(Exception):
    """A step that does not apply to its arrays."""


# Errors that count as alike: numpy's own subclasses count as what they derive from.
KINDS = (TypeError, ValueError, OverflowError, IndexError, ZeroDivisionError)
# The arrays of the case that is running; all are compared after a step that writes.
LIVE: list[Pair] = []


def guarded(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step, passed over where an earlier one has left no array."""

    def guard(seed: int, *operands: Any) -> Any:
        if any(operand is None for operand in operands):
            raise Skipped
        return step(seed, *operands)

    return guard


def start() -> None:
    """Forgets the arrays of the case before."""
    LIVE.clear()


def forget(pair: Pair) -> None:
    """No longer compares a pair."""
    LIVE[:] = [one for one in LIVE if one is not pair]


def describe(array: Any) -> str:
    """What it takes to make the array again."""
    if not isinstance(array, np.ndarray):
        return repr(array)
    return f"<{array.dtype} {array.shape} strides {array.strides}: {array.ravel()[:12].tolist()}>"


def _same_bits(expected: np.ndarray, result: np.ndarray) -> bool:
    """Whether zeros have the same signs."""
    if expected.dtype.kind == "c":
        parts = ((expected.real, result.real), (expected.imag, result.imag))
    elif expected.dtype.kind == "f":
        parts = ((expected, result),)
    else:
        return True
    return all(np.array_equal(np.signbit(a[a == 0]), np.signbit(b[a == 0])) for a, b in parts)


def compare(
    expected: np.ndarray, result: Any, rtol: float, atol: float, strides: bool, signs: bool
) -> None:
    """Raises `AssertionError` where a device array is not as numpy's."""
    check(result, expected, rtol, atol)
    if strides:
        assert same_strides(result, expected), f"strides {result.strides}, not {expected.strides}"
        flags = result.flags
        ours = (flags.c_contiguous, flags.f_contiguous)
        theirs = (expected.flags.c_contiguous, expected.flags.f_contiguous)
        assert ours == theirs, f"flags {ours}, not {theirs}"
    if signs and rtol == 0:
        assert _same_bits(expected, result.get()), "a zero has another sign"


def both(
    text: str,
    theirs: Callable[..., Any],
    ours: Callable[..., Any],
    *operands: Any,
    rtol: float = 0.0,
    atol: float = 0.0,
    strides: bool = True,
    signs: bool = True,
) -> Pair | None:
    """Does one thing to both; returns the pair of results, None if both raised the same."""
    hosts = [one.host if isinstance(one, Pair) else one for one in operands]
    devices = [one.device if isinstance(one, Pair) else one for one in operands]
    before = [describe(host) for host in hosts]
    expected = outcome(theirs, *hosts)
    result = outcome(ours, *devices)
    try:
        if isinstance(expected, Exception):
            kind = next((kind for kind in KINDS if isinstance(expected, kind)), None)
            if kind is None:
                raise Skipped(repr(expected))
            assert isinstance(result, kind), f"numpy raises {expected!r}; pygpu: {result!r}"
            return None
        assert not isinstance(result, Exception), f"pygpu raises {result!r}"
        if expected is None:  # an assignment
            check_live(text)
            return None
        if not isinstance(expected, np.ndarray | np.generic):
            assert result == expected or result != result, f"{result!r}, not {expected!r}"
            return None
        expected = np.asarray(expected)
        compare(expected, result, rtol, atol, strides, signs)
    except AssertionError as error:
        raise Mismatch(f"{text} of {', '.join(before)}: {error}") from None
    if rtol or atol:
        # What follows starts from numpy's numbers, so that errors do not add up.
        result[...] = expected
    # Where pygpu may choose other strides or signs of zeros, numpy's part goes on with them.
    pair = Pair(expected if strides and signs else result.get(), result)
    LIVE.append(pair)
    return pair


def check_live(text: str) -> None:
    """Compares all arrays of the case: a step may have written what others are views of."""
    for host, device in LIVE:
        try:
            compare(host, device, 0.0, 0.0, False, False)
        except AssertionError as error:
            raise Mismatch(f"after {text}, {describe(host)}: {error}") from None


def written(text: str, target: Pair, rtol: float, atol: float = 0.0) -> None:
    """Compares what a step with a rounding error wrote, and goes on with numpy's numbers."""
    host, device = target
    try:
        compare(host, device, rtol, atol, False, False)
    except AssertionError as error:
        raise Mismatch(f"{text}: {error}") from None
    if rtol or atol:
        device[...] = host
    else:
        host[...] = device.get()  # the signs of zeros
    check_live(text)


# ---- new arrays and views -----------------------------------------------------------------------


def _cut(random: Random, length: int) -> tuple[int, slice]:
    """The length of an axis, and a slice of it that has `length` elements."""
    step, before = random.choice([1, 1, 1, 2, -1, -2]), random.choice([0, 0, 1])
    if length == 0:
        return before, slice(0, 0)
    first, last = before, before + (length - 1) * abs(step)
    if step > 0:
        return last + 1, slice(first, last + 1, step)
    return last + 1, slice(last, first - 1 if first else None, step)


def create(seed: int, shape: tuple[int, ...], dtype: str) -> Pair:
    """An array with numbers from the whole type: contiguous, stepped, reversed or transposed."""
    random = Random(seed)
    special = random.random() < 0.3
    if random.random() < 0.4:
        host = numbers(shape, dtype, seed % 2**32, special)
        pair = Pair(host, gpuarray.to_gpu(host))
    else:
        order = list(range(len(shape)))
        random.shuffle(order)
        cuts = [_cut(random, shape[axis]) for axis in order]
        whole = numbers(tuple(length for length, _ in cuts), dtype, seed % 2**32, special)
        index, axes = tuple(cut for _, cut in cuts), [order.index(x) for x in range(len(shape))]
        device = gpuarray.to_gpu(whole)
        if shape:
            pair = Pair(whole[index].transpose(axes), device[index].transpose(axes))
        else:
            pair = Pair(whole, device)
    LIVE.append(pair)
    return pair


def _number(random: Random, dtype: np.dtype) -> Any:
    """A scalar: Python's or numpy's."""
    plain: list[Any] = [0, 1, -1, 2, 3, 7, True, 255, -128]
    if dtype.kind in "fc" or random.random() < 0.3:
        plain += [0.5, -2.5, float("nan"), float("inf"), -0.0, 1e30]
    if dtype.kind == "c":
        plain += [1j, 2 - 3j]
    number = random.choice(plain)
    if random.random() < 0.3:
        with np.errstate(all="ignore"):
            other = np.dtype(random.choice(DTYPES))
            if isinstance(number, complex) and other.kind != "c":
                return number
            if isinstance(number, float) and other.kind not in "fc":
                return number
            return np.asarray(number).astype(other)[()]
    return number


def _index(random: Random, shape: tuple[int, ...]) -> Any:
    """An index expression, mostly one that fits."""
    parts: list[Any] = []
    for length in shape[: random.randint(0, len(shape))]:
        kind = random.random()
        if kind < 0.25:
            parts.append(random.randint(-length - (random.random() < 0.05), max(0, length - 1)))
        else:
            low, high = (
                random.choice([None, random.randint(-length - 2, length + 2)]) for _ in "ab"
            )
            parts.append(slice(low, high, random.choice([None, 1, 2, -1, -2, 3, 100, -(2**62)])))
        if random.random() < 0.1:
            parts.append(None)
    if random.random() < 0.3:
        parts.insert(random.randint(0, len(parts)), Ellipsis)
    return parts[0] if len(parts) == 1 and random.random() < 0.5 else tuple(parts)


def getitem(seed: int, x: Pair) -> Pair | None:
    """A view by an index expression."""
    index = _index(Random(seed), x.host.shape)
    view = lambda a: a[index] if a is x.device else np.asarray(a[index])  # noqa: E731
    pair = both(f"[{index}]", view, view, x)
    if pair is None or pair.host.ndim or not pair.host.size:
        return pair
    # numpy's element is a copy, pygpu's a view: what is written later would differ.
    forget(pair)
    return None


def view(seed: int, x: Pair) -> Pair | None:
    """Another view of the same memory."""
    random = Random(seed)
    shape, rank = x.host.shape, x.host.ndim
    axes = list(range(rank))
    random.shuffle(axes)
    if random.random() < 0.3:
        axes = [axis - rank for axis in axes]
    kind = random.randrange(6)
    if kind == 0:
        return both(f"transpose{axes}", lambda a: a.transpose(axes), lambda a: a.transpose(axes), x)
    if kind == 1:
        return both("squeeze", lambda a: a.squeeze(), lambda a: a.squeeze(), x)
    if kind == 2:
        return both("T", lambda a: a.T, lambda a: a.T, x)
    if not (x.host.flags.c_contiguous and rank and x.host.size):
        raise Skipped
    if kind == 4:
        # The bytes lie along the axis with the least stride, as in PyCUDA; in numpy, the last.
        if any(abs(step) <= abs(x.host.strides[-1]) for step in x.host.strides[:-1]):
            raise Skipped
        dtype = random.choice([d for d in DTYPES if d.kind != "b"])
        if dtype.itemsize > x.host.dtype.itemsize:
            raise Skipped  # pygpu refuses what is not aligned for the new elements
        return both(f"view({dtype})", lambda a: a.view(dtype), lambda a: a.view(dtype), x)
    count = x.host.size
    sides = [s for s in range(1, 13) if count and count % s == 0]
    new = (random.choice(sides), -1) if sides else (*shape, 1)
    return both(f"reshape{new}", lambda a: a.reshape(new), lambda a: a.reshape(new), x)


def copies(seed: int, x: Pair) -> Pair | None:
    """A new array with the same elements, perhaps in another order or type."""
    random = Random(seed)
    kind = random.randrange(6)
    if kind == 0:
        return both("copy", lambda a: a.copy("K"), lambda a: a.copy(), x)
    if kind == 1:
        order = random.choice("CF")
        shape = (-1,) if random.random() < 0.5 else x.host.shape[::-1]
        both_orders = lambda a: a.reshape(shape, order=order)  # noqa: E731
        done = both(f"reshape({shape}, {order})", both_orders, both_orders, x, strides=False)
        return _alone(done)
    if kind == 2:
        return _alone(both("ravel", lambda a: a.ravel(), lambda a: a.ravel(), x, strides=False))
    if kind == 3 and x.host.ndim == 1:
        return both("reverse", lambda a: a[::-1].copy(), lambda a: a.reverse(), x, strides=False)
    if kind == 4 and x.host.dtype.kind == "c":
        part = random.choice(["real", "imag"])
        part_of = operator.attrgetter(part)
        return _alone(both(part, part_of, part_of, x, strides=False))
    if kind == 5 and x.host.dtype.kind == "c":
        return both("conj", lambda a: a.conj(), lambda a: a.conj(), x)
    dtype = random.choice(DTYPES)
    _must_convert(x.host, dtype)
    return both(f"astype({dtype})", lambda a: a.astype(dtype), lambda a: a.astype(dtype), x)


def _alone(pair: Pair | None) -> Pair | None:
    """The pair without what it may share: numpy and pygpu copy in different cases."""
    if pair is None:
        return None
    forget(pair)
    device = pair.device.copy()
    alone = Pair(device.get(), device)
    LIVE.append(alone)
    return alone


def _must_convert(host: np.ndarray, dtype: np.dtype) -> None:
    """Skips a conversion that C leaves undefined: out of an integer's range."""
    if dtype.kind in "iu" and host.dtype.kind in "fc":
        real = np.asarray(host.real, "f8")
        limits = np.iinfo(dtype)
        # 2**63 - 1 and 2**64 - 1 are no floats.
        if not (np.isfinite(real).all() and (real >= float(limits.min)).all()):
            raise Skipped
        if not (np.abs(real) < min(float(limits.max), 2.0**62)).all():
            raise Skipped


# ---- elements -----------------------------------------------------------------------------------

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
ARITHMETIC += [operator.mod, operator.and_, operator.or_, operator.xor]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv]
IN_PLACE += [operator.imod, operator.iand, operator.ior, operator.ixor]


def _error(function: Any, *operands: Any) -> float:
    """The relative error that is allowed: complex products and quotients may round differently."""
    types = [np.asarray(one.host if isinstance(one, Pair) else one).dtype for one in operands]
    exact = {operator.add, operator.sub, operator.iadd, operator.isub, operator.neg, operator.pos}
    if function in exact or not any(kind.kind == "c" for kind in types):
        return 0.0
    narrow = any(kind == np.complex64 for kind in types)
    return 4 * rounding(np.dtype("c8" if narrow else "c16"))


def _finite_complex(*operands: Any) -> None:
    """Skips complex products and quotients of NaN and infinities, which C leaves open."""
    for one in operands:
        value = np.asarray(one.host if isinstance(one, Pair) else one)
        if value.dtype.kind in "fc" and not (np.abs(value[np.isfinite(value)]) < 1e15).all():
            raise Skipped
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            raise Skipped


def binary(seed: int, x: Pair, y: Pair) -> Pair | None:
    """An operator of two arrays."""
    function = Random(seed).choice(ARITHMETIC + COMPARISONS)
    error = _error(function, x, y)
    if error and function not in COMPARISONS:
        _finite_complex(x, y)
    tolerance = error and function not in COMPARISONS
    atol = error * 10 if tolerance else 0.0
    return both(function.__name__, function, function, x, y, rtol=tolerance or 0.0, atol=atol)


def scalar(seed: int, x: Pair) -> Pair | None:
    """An operator of an array and a number."""
    random = Random(seed)
    function = random.choice(ARITHMETIC + COMPARISONS + [operator.pow])
    number = random.choice([0, 1, 2, 3]) if function is operator.pow else None
    if number is None:
        number = _number(random, x.host.dtype)
    error = _error(function, x, number)
    if error:
        _finite_complex(x, number)
    if function is operator.pow and x.host.dtype.kind == "b":
        raise Skipped  # numpy squares them as int8, and takes every other power as int64
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
            # numpy's scalar asks its own array protocol first: the same operator, reflected.
            apply = lambda a: function(a, number)  # noqa: E731
    return both(text, apply, apply, x, rtol=error, atol=error)


def unary(seed: int, x: Pair) -> Pair | None:
    """An operator of one array."""
    function = Random(seed).choice([operator.neg, operator.invert, abs])
    error = 4 * rounding(x.host.dtype) if x.host.dtype.kind == "c" and function is abs else 0.0
    return both(function.__name__, function, function, x, rtol=error)


def in_place(seed: int, x: Pair, y: Pair) -> None:
    """An operator that writes its left operand, which may share memory with the right one."""
    function = Random(seed).choice(IN_PLACE)
    error = _error(function, x, y)
    if error:
        _finite_complex(x, y)
    _write(function.__name__, function, x, y, error)


def in_place_scalar(seed: int, x: Pair) -> None:
    """An operator that writes its left operand, with a number."""
    random = Random(seed)
    function, number = random.choice(IN_PLACE), _number(random, x.host.dtype)
    error = _error(function, x, number)
    if error:
        _finite_complex(x, number)
    _write(f"{function.__name__} {number!r}", function, x, number, error)


def _write(text: str, function: Callable[..., Any], x: Pair, y: Any, error: float) -> None:
    other = y.host if isinstance(y, Pair) else y
    told = f"{text} of {describe(x.host)} and {describe(other)}"
    if _repeats(x.host):
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


def _repeats(host: np.ndarray) -> bool:
    """Whether elements of an array share memory."""
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
    """A function of each element, sometimes into an array."""
    random = Random(seed)
    name = random.choice(FUNCTIONS)
    if x.host.dtype.kind == "c" or (name not in ("ceil", "floor") and x.host.dtype.kind != "f"):
        raise Skipped  # edges of complex functions and widened integers have tests of their own
    theirs, ours = getattr(np, name), getattr(cumath, name.replace("arc", "a"))
    exact = name in ("ceil", "floor", "sqrt")
    error = 0.0 if exact else {2: 2e-3, 4: 4e-6, 8: 4e-14}[x.host.dtype.itemsize]
    if name in ("sin", "cos", "tan") and not (np.abs(x.host[np.isfinite(x.host)]) < 1e4).all():
        raise Skipped
    return both(name, theirs, ours, x, rtol=error, atol=error, strides=True)


def choose(seed: int, x: Pair, y: Pair, z: Pair) -> Pair | None:
    """Elements of one or another array."""
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
    """A function into an array that may share memory with its operands."""
    random = Random(seed)
    name = random.choice(["minimum", "maximum", "logical_and"])
    if _repeats(out.host):
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


# ---- assignments --------------------------------------------------------------------------------


def setitem(seed: int, x: Pair, y: Pair) -> None:
    """An assignment to an item: of a number, a device array or a numpy array."""
    random = Random(seed)
    index = _index(random, x.host.shape)
    kind = random.randrange(3)
    if _repeats(x.host):
        raise Skipped
    if kind == 0:
        number = _number(random, x.host.dtype)
        with np.errstate(all="ignore"):
            _must_convert(np.asarray(number), x.host.dtype)
        if isinstance(number, np.generic) and x.host.dtype.kind in "iu":
            limits = np.iinfo(x.host.dtype)
            if not limits.min <= int(number.real) <= limits.max:
                raise Skipped  # pygpu refuses all of these, numpy most
        values: tuple[Any, Any] = (number, number)
    else:
        if y.host.dtype != x.host.dtype:
            raise Skipped
        values = (y.host, y.device if kind == 1 else y.host.copy())
    told = f"[{index}] = {describe(values[0])} in {describe(x.host)}, kind {kind}"
    try:
        is_element = np.ndim(x.host[index]) == 0
    except IndexError:
        is_element = False
    if kind != 0 and is_element and y.host.ndim > 0:
        raise Skipped  # numpy 2.4 refuses arrays of one element here, earlier ones take them
    expected = outcome(operator.setitem, x.host, index, values[0])
    result = outcome(operator.setitem, x.device, index, values[1])
    if isinstance(expected, Exception) != isinstance(result, Exception):
        raise Mismatch(f"{told}: numpy: {expected!r}; pygpu: {result!r}")
    check_live(told)


def fill(seed: int, x: Pair) -> None:
    """A fill with a small number."""
    if _repeats(x.host):
        raise Skipped
    number = Random(seed).choice([0, 1, 3, True, 100])
    x.host.fill(number)
    x.device.fill(number)
    check_live(f"fill({number}) of {describe(x.host)}")


def item_in_place(seed: int, x: Pair, y: Pair) -> None:
    """`x[i] += y`: reads, calculates and writes a view."""
    random = Random(seed)
    index = _index(random, x.host.shape)
    host, device = outcome(lambda: x.host[index]), outcome(lambda: x.device[index])
    if not isinstance(host, np.ndarray) or isinstance(device, Exception) or not host.ndim:
        raise Skipped
    function = random.choice([operator.iadd, operator.isub])
    _write(f"[{index}] {function.__name__}", function, Pair(host, device), y, 0.0)


# ---- several arrays, and one number -------------------------------------------------------------


def join(seed: int, x: Pair, y: Pair) -> Pair | None:
    """Two arrays along an axis."""
    random = Random(seed)
    rank = max(1, x.host.ndim)
    axis = random.randint(-rank, rank - 1)
    if random.random() < 0.5:
        if not x.host.ndim:
            raise Skipped
        theirs = lambda a, b: np.concatenate([a, b], axis)  # noqa: E731
        ours = lambda a, b: gpuarray.concatenate([a, b], axis)  # noqa: E731
        if x.host.ndim != y.host.ndim:
            raise Skipped
        return both(f"concatenate {axis}", theirs, ours, x, y, strides=False)
    if x.host.shape != y.host.shape:
        raise Skipped
    theirs = lambda a, b: np.stack([a, b], axis)  # noqa: E731
    ours = lambda a, b: gpuarray.stack([a, b], axis)  # noqa: E731
    return both(f"stack {axis}", theirs, ours, x, y, strides=False)


def reduce(seed: int, x: Pair) -> Pair | None:
    """All elements to one."""
    name = Random(seed).choice(["sum", "min", "max", "any", "all"])
    host, ours = x.host, getattr(gpuarray, name)
    if name == "sum":
        if host.dtype.kind in "fc" and not np.isfinite(host).all():
            raise Skipped
        magnitude = float(np.abs(host.astype("c16")).sum())
        if host.dtype.kind in "fc" and not magnitude < 1e4:
            raise Skipped
        part = {"f2": 4e-3, "f4": 2e-6, "f8": 2e-15, "c8": 2e-6, "c16": 2e-15}
        error = part.get(f"{host.dtype.kind}{host.dtype.itemsize}", 0.0) * magnitude
        theirs = lambda a: np.sum(a, dtype=a.dtype)  # noqa: E731
        return both(name, theirs, ours, x, atol=error, signs=False)
    if name in ("min", "max") and host.dtype.kind == "c":
        raise Skipped
    return both(name, lambda a: np.asarray(getattr(np, name)(a)), ours, x, signs=False)


def take(seed: int, x: Pair) -> Pair | None:
    """Elements by an array of indices."""
    random = Random(seed)
    host = x.host.ravel()
    if not host.size or x.host.ndim != 1:
        raise Skipped
    dtype = random.choice([d for d in INTEGERS if d.itemsize >= 4])
    low = -len(host) if dtype.kind == "i" else 0
    indices = np.array([random.randint(low, len(host) - 1) for _ in range(5)], dtype)
    ours = lambda a: gpuarray.take(a, gpuarray.to_gpu(indices))  # noqa: E731
    return both(f"take {indices}", lambda a: a[indices], ours, x, strides=False)


def transfer(seed: int, x: Pair) -> Pair | None:
    """To the host and back."""
    del seed
    host = x.device.get()
    if host.dtype != x.host.dtype or not np.array_equal(
        host, x.host, equal_nan=host.dtype.kind in "fc"
    ):
        raise Mismatch(f"get of {describe(x.host)} is {describe(host)}")
    pair = Pair(host, gpuarray.to_gpu(host))
    LIVE.append(pair)
    return pair


def convert(seed: int, x: Pair) -> None:
    """To a Python number, a truth value or a length."""
    kind = Random(seed).choice([bool, int, float, complex, len, list])
    if kind is list:
        kind = lambda a: [part.shape for part in a]  # noqa: E731
    if kind in (int, float, complex) and x.host.ndim:
        raise Skipped  # numpy no longer converts an array with axes and one element
    if x.host.size == 0 and kind is bool:
        raise Skipped
    if kind in (int, float) and x.host.dtype.kind == "c":
        raise Skipped
    if kind is int and x.host.dtype.kind in "fc" and not np.isfinite(x.host).all():
        raise Skipped
    both(str(kind), kind, kind, x)
