"""The search over callables: everything public, with arguments that are likely to cause faults.

    .venv/bin/python tests/fuzz/calls.py --calls 5000000     # on the backend of PYGPU_BACKEND
    .venv/bin/python tests/fuzz/calls.py --seed 7 --only 1234      # one case, printed and run

A finding is a crash, a hang, a `SystemError`, a panic, an exception of an unexpected class, leaked
device memory, or a canary that has changed. Each finding is run again alone, reduced to the
necessary lines, and printed as a program.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from cases import Case
from surface import RESETS, targets
from values import Values


class Search:
    """The interface of a search that the worker uses."""

    wrong: tuple[type[BaseException], ...] = ()
    allowed: tuple[type[BaseException], ...] | None = None
    resets = RESETS

    def __init__(self, settings: dict[str, Any], namespace: dict[str, Any]) -> None:
        from pygpu import choose_backend

        self.kernels = choose_backend() != "host"
        self.managed = settings["managed"]
        self.addresses = settings["addresses"]
        self.targets = targets(self.managed, settings["resets"], self.kernels)
        if settings.get("planted"):
            import planted

            namespace["planted"] = planted
            self.targets = planted.targets(settings["planted"])
        self.returned: Counter[str] = Counter()
        self.raised: Counter[str] = Counter()
        left_out = settings["leave_out"]
        self.is_left_out = left_out and __import__("re").compile(left_out).search

    def forget(self) -> None:
        """Does nothing: no state is kept between cases."""

    def case(self, random: Random) -> Case:
        """Draws one case."""
        while True:
            values = Values(random, self.addresses, self.managed, self.kernels)
            case = Case(random, values, self.targets)
            if not self.is_left_out or not any(map(self.is_left_out, case.lines)):
                return case


if __name__ == "__main__":
    from batches import main

    main("calls", __doc__)
