"""The search over array programs: random views, expressions and assignments against numpy.

    .venv/bin/python tests/fuzz/programs.py --calls 1000000
    .venv/bin/python tests/fuzz/programs.py --seed 7 --only 1234

A finding is a difference in value, dtype, shape, strides, flags or kind of error, after any step,
in any array of the program, or a finding of the search over callables. `array_steps.py` has the
steps and the allowed differences.
"""

from __future__ import annotations

import inspect
from collections import Counter
from random import Random
from typing import Any

STEPS = {
    "getitem": 4,
    "view": 5,
    "copies": 4,
    "binary": 6,
    "scalar": 5,
    "unary": 2,
    "in_place": 4,
    "in_place_scalar": 3,
    "function": 2,
    "choose": 4,
    "into": 2,
    "setitem": 6,
    "fill": 1,
    "item_in_place": 3,
    "join": 2,
    "reduce": 3,
    "take": 1,
    "transfer": 1,
    "convert": 1,
    "pick": 4,
    "store": 4,
    "subset_in_place": 2,
    "nonzero": 1,
    "compress": 1,
    "reduce_axes": 4,
    "positions": 2,
    "running": 2,
    "sort": 2,
    "sort_in_place": 2,
    "product": 2,
    "ufunc": 3,
    "ufunc_of_one": 2,
    "ufunc_into": 3,
    "ufunc_reduce": 2,
    "rearrange": 4,
}
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(), (1,), (5,), (0,), (3, 4), (4, 3), (4, 1), (1, 4), (2, 3, 4), (3, 1, 2), (2, 0, 3)]


class Program:
    """A few arrays of related shapes, and steps on them and their results."""

    def __init__(self, random: Random, arity: dict[str, int]) -> None:
        self.lines: list[str] = []
        self.names: list[str | None] = []
        whole = random.choice(SHAPES)
        dtypes = random.sample(DTYPES, random.choice([1, 1, 2, 3]))
        arrays = []
        for _ in range(random.randint(2, 3)):
            shape = tuple(1 if random.random() < 0.15 else side for side in whole)
            shape = shape[random.randint(0, len(shape)) :] if random.random() < 0.2 else shape
            arrays.append(f"v{len(arrays)}")
            text = f"create({random.getrandbits(31)}, {shape}, {random.choice(dtypes)!r})"
            self._line(f"{arrays[-1]} = {text}", "create")
        names, weights = list(STEPS), list(STEPS.values())
        for _ in range(random.randint(3, 12)):
            step = random.choices(names, weights)[0]
            operands = ", ".join(random.choice(arrays) for _ in range(arity[step]))
            arrays.append(f"v{len(arrays)}")
            self._line(f"{arrays[-1]} = {step}({random.getrandbits(31)}, {operands})", step)

    def _line(self, text: str, name: str) -> None:
        self.lines.append(text)
        self.names.append(name)


class Search:
    """The interface of a search that the worker uses."""

    resets: frozenset[str] = frozenset()

    def __init__(self, settings: dict[str, Any], namespace: dict[str, Any]) -> None:
        import array_steps

        del settings
        namespace.update(vars(array_steps))
        namespace.update({name: array_steps.guarded(namespace[name]) for name in STEPS})
        self.start = array_steps.start
        self.wrong = (array_steps.Mismatch,)
        self.allowed = (array_steps.Skipped,)
        self.arity = {
            name: len(inspect.signature(getattr(array_steps, name)).parameters) - 1
            for name in STEPS
        }
        self.returned: Counter[str] = Counter()
        self.raised: Counter[str] = Counter()

    def forget(self) -> None:
        """Drops the arrays of a case."""
        self.start()

    def case(self, random: Random) -> Program:
        """Draws one program."""
        return Program(random, self.arity)


if __name__ == "__main__":
    from batches import main

    main("programs", __doc__)
