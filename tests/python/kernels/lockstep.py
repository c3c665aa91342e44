"""Programs whose threads race, and their results if all threads execute each statement together.

A program is a list of statements in CUDA C that numpy can also read: ``x[t] = x[n - 1 - t]`` reads
all elements before it writes one. Where the languages differ, a statement is a pair of texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

Statement = Union[str, tuple[str, str], "If", "For"]


class Memory(np.ndarray):
    """An array in memory. If several threads write one element, the last one counts."""

    def __setitem__(self, at: Any, value: Any) -> None:
        is_one = np.ndim(at) == 0 and not isinstance(at, slice)
        super().__setitem__(at, np.asarray(value).flat[-1] if is_one else value)


@dataclass
class If:
    """Statements for the threads that meet a condition, and statements for the others."""

    condition: str
    then: Sequence[Statement]
    other: Sequence[Statement] = ()


@dataclass
class For:
    """A loop with a bound that is the same for all threads."""

    name: str
    values: range
    body: Sequence[Statement]

    def head(self) -> str:
        first, last, step = self.values.start, self.values.stop, self.values.step
        return f"for (int {self.name} = {first}; {self.name} < {last}; {self.name} += {step})"


@dataclass
class Program:
    """A kernel with arrays ``x`` and ``y``, shared memory ``s``, and variables of each thread."""

    body: Sequence[Statement]
    # The numpy equivalents of the functions that it calls.
    known: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str, threads: int) -> str:
        return (
            f'extern "C" __global__ void {name}(\n'
            "    unsigned *x, unsigned *y, unsigned *out, int n, const int *table) {\n"
            f"    __shared__ unsigned s[{threads}];\n"
            "    const int t = threadIdx.x;\n"
            "    x += blockIdx.x * n, y += blockIdx.x * n;\n"
            "    unsigned v = t, w = 7;\n"
            "    s[t] = t;\n"
            "    __syncthreads();\n"
            f"{''.join(lines(self.body, 1))}"
            "    __syncthreads();\n"
            "    out[blockIdx.x * n + t] = v ^ w * 5 ^ s[t] * 7;\n"
            "}\n"
        )

    def run(self, x: Any, y: Any, table: Any) -> Any:
        """Changes the arrays of a block, and returns the contents of ``out``."""
        n = len(x)
        s = np.arange(n, dtype=np.uint32)
        memory = {name: it.view(Memory) for name, it in [("x", x), ("y", y), ("s", s)]}
        memory |= {"table": table, "n": n}
        memory |= {"where": np.where} | self.known
        own = {
            "t": np.arange(n, dtype=np.int64),
            "v": np.arange(n, dtype=np.uint32),
            "w": np.full(n, 7, np.uint32),
        }
        with np.errstate(over="ignore"):
            execute(self.body, memory, own, np.full(n, True))
        return own["v"] ^ own["w"] * 5 ^ s * 7


def lines(statements: Sequence[Statement], depth: int) -> list[str]:
    """Returns the statements in CUDA C."""
    found = []
    for it in statements:
        if isinstance(it, If):
            found.append(f"{'    ' * depth}if ({it.condition}) {{\n")
            found += lines(it.then, depth + 1)
            if it.other:
                found.append(f"{'    ' * depth}}} else {{\n")
                found += lines(it.other, depth + 1)
            found.append("    " * depth + "}\n")
        elif isinstance(it, For):
            found.append(f"{'    ' * depth}{it.head()} {{\n")
            found += lines(it.body, depth + 1)
            found.append("    " * depth + "}\n")
        else:
            text = it if isinstance(it, str) else it[0]
            found.append(f"{'    ' * depth}{text}{'' if text.endswith('}') else ';'}\n")
    return found


def execute(statements: Sequence[Statement], memory: Any, own: Any, active: Any) -> None:
    """Executes statements for the active threads."""
    for it in statements:
        names = memory | {name: value[active] for name, value in own.items()}
        if isinstance(it, If):
            met = active.copy()
            met[active] = eval(python(it.condition), {}, names)
            execute(it.then, memory, own, met)
            execute(it.other, memory, own, active & ~met)
        elif isinstance(it, For):
            for value in it.values:
                memory[it.name] = value
                execute(it.body, memory, own, active)
        elif active.any():
            known = dict(names)
            exec(python(it) if isinstance(it, str) else it[1], {}, names)
            for name, value in names.items():
                is_memory = any(np.shares_memory(value, memory[it]) for it in "xys")
                if name in own or (
                    known.get(name) is not value and np.ndim(value) and not is_memory
                ):
                    # A new array, because another variable may refer to the old one.
                    own[name] = np.array(
                        own.get(name, np.zeros(len(active), np.asarray(value).dtype))
                    )
                    own[name][active] = value
                elif known.get(name) is not value:
                    memory[name] = value


def python(text: str) -> str:
    """Translates a statement to numpy."""
    text = re.sub(r"^(const )?(unsigned|int) ", "", text)
    # The array's numbers are narrower than the intermediate values.
    text = re.sub(r"^(\w\[.*\]) \+= (.*)$", r"\1 = \1 + (\2)", text)
    for here, there in [("&&", "&"), (" / ", " // ")]:
        text = text.replace(here, there)
    return text
