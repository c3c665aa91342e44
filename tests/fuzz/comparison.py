"""Runs a step of an array program in numpy and on the device, and compares the results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from pairs import (
    Pair,
    check,
    outcome,
    same_strides,
)

import pygpu.autoinit

context = pygpu.autoinit.context


class Mismatch(Exception):
    """Raised if pygpu differs from numpy."""


class Skipped(Exception):
    """Raised if a step does not apply to its arrays."""


# Errors that count as equal; numpy's own subclasses count as their base classes.
KINDS = (TypeError, ValueError, OverflowError, IndexError, ZeroDivisionError)
# The arrays of the current case; all of them are compared after a step that writes.
LIVE: list[Pair] = []


def guarded(step: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the step; it is skipped if an earlier step has not produced an array."""

    def guard(seed: int, *operands: Any) -> Any:
        if any(operand is None for operand in operands):
            raise Skipped
        return step(seed, *operands)

    return guard


def start() -> None:
    """Forgets the arrays of the previous case."""
    LIVE.clear()


def forget(pair: Pair) -> None:
    """Excludes a pair from later comparisons."""
    LIVE[:] = [one for one in LIVE if one is not pair]


def describe(array: Any) -> str:
    """Returns the information from which the array can be created again."""
    if not isinstance(array, np.ndarray):
        return repr(array)
    return f"<{array.dtype} {array.shape} strides {array.strides}: {array.ravel()[:12].tolist()}>"


def _same_bits(expected: np.ndarray, result: np.ndarray) -> bool:
    """Returns true if all zeros have the same signs."""
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
    """Raises `AssertionError` if a device array differs from numpy's."""
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
    """Does the same in both; returns the pair of results, or None if both raise the same error."""
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
        # Later steps start from numpy's numbers, so that errors do not accumulate.
        result[...] = expected
    # If pygpu may choose other strides or signs of zeros, numpy's array adopts them.
    pair = Pair(expected if strides and signs else result.get(), result)
    LIVE.append(pair)
    return pair


def check_live(text: str) -> None:
    """Compares all arrays of the case, because a step may have written through views."""
    for host, device in LIVE:
        try:
            compare(host, device, 0.0, 0.0, False, False)
        except AssertionError as error:
            raise Mismatch(f"after {text}, {describe(host)}: {error}") from None


def written(text: str, target: Pair, rtol: float, atol: float = 0.0) -> None:
    """Compares an output with rounding errors, and continues with numpy's numbers."""
    host, device = target
    try:
        compare(host, device, rtol, atol, False, False)
    except AssertionError as error:
        raise Mismatch(f"{text}: {error}") from None
    if rtol or atol:
        device[...] = host
    else:
        host[...] = device.get()  # adopts the signs of zeros
    check_live(text)
