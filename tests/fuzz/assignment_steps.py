"""Steps that assign to elements."""

from __future__ import annotations

import operator
from random import Random
from typing import Any

import numpy as np
from comparison import Mismatch, Skipped, check_live, describe
from element_steps import has_repeats, write_to_both
from pairs import (
    Pair,
    outcome,
)
from view_steps import draw_index, draw_number, must_convert


def setitem(seed: int, x: Pair, y: Pair) -> None:
    """Assigns a number, a device array or a numpy array to an item."""
    random = Random(seed)
    index = draw_index(random, x.host.shape)
    kind = random.randrange(3)
    if has_repeats(x.host):
        raise Skipped
    if kind == 0:
        number = draw_number(random, x.host.dtype)
        with np.errstate(all="ignore"):
            must_convert(np.asarray(number), x.host.dtype)
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
        raise Skipped  # numpy 2.4 refuses one-element arrays here; earlier versions accept them
    expected = outcome(operator.setitem, x.host, index, values[0])
    result = outcome(operator.setitem, x.device, index, values[1])
    if isinstance(expected, Exception) != isinstance(result, Exception):
        raise Mismatch(f"{told}: numpy: {expected!r}; pygpu: {result!r}")
    check_live(told)


def fill(seed: int, x: Pair) -> None:
    """Fills an array with a small number."""
    if has_repeats(x.host):
        raise Skipped
    number = Random(seed).choice([0, 1, 3, True, 100])
    x.host.fill(number)
    x.device.fill(number)
    check_live(f"fill({number}) of {describe(x.host)}")


def item_in_place(seed: int, x: Pair, y: Pair) -> None:
    """Computes `x[i] += y`: reads, calculates and writes a view."""
    random = Random(seed)
    index = draw_index(random, x.host.shape)
    host, device = outcome(lambda: x.host[index]), outcome(lambda: x.device[index])
    if not isinstance(host, np.ndarray) or isinstance(device, Exception) or not host.ndim:
        raise Skipped
    function = random.choice([operator.iadd, operator.isub])
    write_to_both(f"[{index}] {function.__name__}", function, Pair(host, device), y, 0.0)
