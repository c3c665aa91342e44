"""Every operation of arrays, on every dtype and three sizes: pygpu's time over numpy's.

    PYGPU_BACKEND=host PYGPU_HOST_THREADS=1 python benches/table.py [options]

Prints one row for each operation and dtype, the worst ratio first, and the geometric mean of
each size. numpy and pygpu run in turn, round after round, on one thread each. A time is the
least of all rounds, in seconds of processor time, which other programs on the machine hardly
change.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

SIZES = (1_000, 100_000, 10_000_000)
# The upper bounds of one operation's ratio, and of the geometric mean of a size.
WORST = 1.5
MEANS = {1_000: 1.0, 10_000_000: 0.6}

SIGNED, UNSIGNED = "b h i q", "B H I Q"
REAL, COMPLEX = "e f d", "F D"
INTEGERS = f"{SIGNED} {UNSIGNED}"
FLOATS = f"{REAL} {COMPLEX}"
NUMBERS = f"{INTEGERS} {FLOATS}"
ALL = f"? {NUMBERS}"

# The name, the dtypes, and the call with a library and the data of one dtype.
Operation = tuple[str, str, Callable[[Any, Any], Any]]

ELEMENTWISE: list[Operation] = [
    ("x + y", ALL, lambda m, d: d.x + d.y),
    ("x + 3", ALL, lambda m, d: d.x + 3),
    ("x += y", NUMBERS, lambda m, d: operator.iadd(d.z, d.y)),
    ("x - y", NUMBERS, lambda m, d: d.x - d.y),
    ("3 - x", NUMBERS, lambda m, d: 3 - d.x),
    ("x * y", ALL, lambda m, d: d.x * d.y),
    ("x * 3", ALL, lambda m, d: d.x * 3),
    ("x / y", NUMBERS, lambda m, d: d.x / d.y),
    ("x / 3", NUMBERS, lambda m, d: d.x / 3),
    ("x // y", f"{INTEGERS} {REAL}", lambda m, d: d.x // d.y),
    ("x // 3", f"{INTEGERS} {REAL}", lambda m, d: d.x // 3),
    ("x // 4", INTEGERS, lambda m, d: d.x // 4),
    ("x // -7", SIGNED, lambda m, d: d.x // -7),
    ("100 // x", INTEGERS, lambda m, d: 100 // d.y),
    ("x % y", f"{INTEGERS} {REAL}", lambda m, d: d.x % d.y),
    ("x % 3", f"{INTEGERS} {REAL}", lambda m, d: d.x % 3),
    ("x ** y", NUMBERS, lambda m, d: d.y**d.small),
    ("x ** 2", ALL, lambda m, d: d.x**2),
    ("x ** 3", ALL, lambda m, d: d.x**3),
    ("x & y", f"? {INTEGERS}", lambda m, d: d.x & d.y),
    ("x ^ 3", f"? {INTEGERS}", lambda m, d: d.x ^ 3),
    ("~x", f"? {INTEGERS}", lambda m, d: ~d.x),
    ("-x", NUMBERS, lambda m, d: -d.x),
    ("abs(x)", NUMBERS, lambda m, d: abs(d.x)),
    ("conj", COMPLEX, lambda m, d: d.x.conj()),
    ("real copy", COMPLEX, lambda m, d: d.x.real.copy()),
    ("x == y", ALL, lambda m, d: d.x == d.y),
    ("x == 3", ALL, lambda m, d: d.x == 3),
    ("x < y", ALL, lambda m, d: d.x < d.y),
    ("x >= 3", ALL, lambda m, d: d.x >= 3),
    ("minimum", ALL, lambda m, d: m.minimum(d.x, d.y)),
    ("maximum 3", ALL, lambda m, d: m.maximum(d.x, 3)),
    ("logical_and", ALL, lambda m, d: m.logical_and(d.x, d.y)),
    ("logical_not", ALL, lambda m, d: m.logical_not(d.x)),
    ("where", ALL, lambda m, d: m.where(d.mask, d.x, d.y)),
    ("fmod", REAL, lambda m, d: m.fmod(d.x, d.y)),
    ("fabs", REAL, lambda m, d: m.fabs(d.x)),
    ("ldexp", "f d", lambda m, d: m.ldexp(d.x, d.exponent)),
    ("frexp", "f d", lambda m, d: m.frexp(d.x)),
    ("modf", "f d", lambda m, d: m.modf(d.x)),
]
FUNCTIONS: list[Operation] = [
    *((name, f"{REAL} h q", lambda m, d, name=name: getattr(m, name)(d.x))
      for name in ("floor", "ceil")),
    *((name, f"{NUMBERS}", lambda m, d, name=name: getattr(m, name)(d.x))
      for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "arctan")),
    *((name, f"{NUMBERS}", lambda m, d, name=name: getattr(m, name)(d.positive))
      for name in ("sqrt", "log", "log10")),
    *((name, FLOATS, lambda m, d, name=name: getattr(m, name)(d.unit))
      for name in ("arcsin", "arccos")),
]  # fmt: skip
REDUCTIONS: list[Operation] = [
    ("sum", ALL, lambda m, d: m.sum(d.x)),
    ("min", ALL, lambda m, d: m.min(d.x)),
    ("max", ALL, lambda m, d: m.max(d.x)),
    ("any", ALL, lambda m, d: m.any(d.x)),
    ("any of zeros", ALL, lambda m, d: m.any(d.zeros)),
    ("all", ALL, lambda m, d: m.all(d.y)),
    ("dot", ALL, lambda m, d: m.dot(d.x, d.y)),
    ("argmax", ALL, lambda m, d: m.argmax(d.x)),
    ("argmin", NUMBERS, lambda m, d: m.argmin(d.x)),
    ("argmax rows", NUMBERS, lambda m, d: m.argmax(d.matrix, 1)),
]
SORTS: list[Operation] = [
    ("sort", NUMBERS, lambda m, d: m.sort(d.x)),
    ("sort rows", NUMBERS, lambda m, d: m.sort(d.matrix)),
    ("argsort", NUMBERS, lambda m, d: m.argsort(d.x)),
    ("partition", NUMBERS, lambda m, d: m.partition(d.x, len(d.x) // 2)),
]
MOVES: list[Operation] = [
    ("copy", ALL, lambda m, d: d.x.copy()),
    ("x[:] = y", ALL, lambda m, d: d.z.__setitem__(slice(None), d.y)),
    ("fill", ALL, lambda m, d: d.z.fill(1)),
    ("zeros", ALL, lambda m, d: m.zeros(len(d.x), d.x.dtype)),
    ("x[::2] copy", ALL, lambda m, d: d.x[::2].copy()),
    ("x[::2] + y[::2]", ALL, lambda m, d: d.x[::2] + d.y[::2]),
    ("reverse", ALL, lambda m, d: m.reverse(d.x)),
    ("m.T copy", ALL, lambda m, d: m.contiguous(d.matrix.T)),
    ("m + m.T", ALL, lambda m, d: d.matrix + d.matrix.T),
    ("m + row", ALL, lambda m, d: d.matrix + d.matrix[0]),
    ("take", ALL, lambda m, d: m.take(d.x, d.index)),
    ("rows[index]", ALL, lambda m, d: d.matrix[d.places]),
    ("take rows", ALL, lambda m, d: d.matrix.take(d.places, 0)),
    ("take short rows", ALL, lambda m, d: d.short.take(d.short_places, 0)),
    ("take columns", ALL, lambda m, d: d.matrix.take(d.places, 1)),
    ("put", ALL, lambda m, d: m.put(d.z, d.index, d.y)),
    ("concatenate", ALL, lambda m, d: m.concatenate((d.x, d.y))),
    ("stack", ALL, lambda m, d: m.stack((d.x, d.y))),
    ("x[10:-10]", "f", lambda m, d: d.x[10:-10]),
    ("float(x[5])", "f d q", lambda m, d: float(d.x[5])),
    ("arange", "i q f d", lambda m, d: m.arange(0, len(d.x), 1, dtype=d.x.dtype)),
]
CASTS: list[Operation] = [
    (f"astype({np.dtype(to).name})", " ".join(t for t in ALL.split() if t != to),
     lambda m, d, to=to: d.x.astype(to))
    for to in ALL.split()
]  # fmt: skip
OPERATIONS = ELEMENTWISE + FUNCTIONS + REDUCTIONS + SORTS + MOVES + CASTS


@dataclass
class Row:
    """The times of one operation on one dtype and size, in seconds."""

    operation: str
    dtype: str
    size: int
    numpy: float
    pygpu: float

    @property
    def ratio(self) -> float:
        return self.pygpu / self.numpy


def data(dtype: str, size: int) -> dict[str, np.ndarray]:
    """Returns operands of one dtype that avoid overflow and division by zero."""
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype)

    def numbers(low: float, high: float) -> np.ndarray:
        if kind.kind in "?iub":
            low = max(low, 0) if kind.kind != "i" else low
            return rng.integers(low, max(high, low + 1), size, "q", endpoint=True).astype(kind)
        real = rng.uniform(low, high, size)
        imaginary = 1j * rng.uniform(low, high, size) if kind.kind == "c" else 0
        return (real + imaginary).astype(kind)

    side = math.isqrt(size)
    x = numbers(-10, 10) if kind.kind in "fc" else numbers(-100, 100)
    return {
        "x": x,
        "y": np.maximum(numbers(1, 20), 1) if kind.kind in "?iub" else numbers(1, 20),
        "z": x.copy(),
        "small": numbers(1, 3),
        "positive": numbers(1, 100),
        "unit": numbers(-0.95, 0.95),
        "zeros": np.zeros(size, kind),
        "mask": rng.integers(0, 2, size).astype("?"),
        "exponent": rng.integers(-20, 20, size).astype("i"),
        "index": rng.permutation(size).astype("i"),
        "matrix": x[: side * side].reshape(side, side),
        "places": rng.integers(0, side, side).astype("q"),
        "short": x[: size // 4 * 4].reshape(-1, 4),
        "short_places": rng.integers(0, size // 4, size // 4).astype("q"),
    }


def numpy_library() -> SimpleNamespace:
    return SimpleNamespace(
        **{name: getattr(np, name) for name in NAMES},
        contiguous=np.ascontiguousarray,
        reverse=lambda x: x[::-1].copy(),
        put=lambda x, index, values: x.__setitem__(index, values),
    )


def pygpu_library() -> SimpleNamespace:
    from pygpu import cumath, gpuarray

    renamed = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}

    def find(name: str) -> Callable:
        return getattr(gpuarray, name, None) or getattr(cumath, renamed.get(name, name))

    return SimpleNamespace(
        **{name: find(name) for name in NAMES},
        contiguous=lambda x: x.copy() if x.flags.c_contiguous else contiguous(x, gpuarray),
        reverse=lambda x: x.reverse(),
        put=lambda x, index, values: gpuarray.multi_put([values], index, out=[x]),
    )


def contiguous(x: Any, gpuarray: Any) -> Any:
    result = gpuarray.empty(x.shape, x.dtype)
    result[...] = x
    return result


NAMES = [
    "minimum",
    "maximum",
    "logical_and",
    "logical_not",
    "where",
    "fmod",
    "fabs",
    "ldexp",
    "frexp",
    "modf",
    "floor",
    "ceil",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "arctan",
    "sqrt",
    "log",
    "log10",
    "arcsin",
    "arccos",
    "sum",
    "min",
    "max",
    "any",
    "all",
    "dot",
    "argmax",
    "argmin",
    "sort",
    "argsort",
    "partition",
    "zeros",
    "take",
    "concatenate",
    "stack",
    "arange",
]


def seconds(function: Callable[[], Any], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def measure(theirs: Callable[[], Any], ours: Callable[[], Any]) -> tuple[float, float]:
    """Returns the least time of a call of each, from rounds of both in turn."""
    once = max(min(seconds(theirs, 1) for _ in range(2)), min(seconds(ours, 1) for _ in range(2)))
    calls = max(1, min(300, int(4e-4 / max(once, 1e-7))))
    rounds = 3 if once > 3e-3 else 7
    pairs = [(seconds(theirs, calls), seconds(ours, calls)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def rows(sizes: list[int], only: list[str], dtypes: str) -> Iterator[Row]:
    from pygpu import gpuarray

    theirs, ours = numpy_library(), pygpu_library()
    chosen = [entry for entry in OPERATIONS if any(text in entry[0] for text in only)]
    for size in sizes:
        for dtype in ALL.split():
            if dtypes and dtype not in dtypes:
                continue
            host = data(dtype, size)
            device = SimpleNamespace(**{k: gpuarray.to_gpu(v) for k, v in host.items()})
            host = SimpleNamespace(**host)
            for name, allowed, function in chosen:
                if dtype not in allowed.split():
                    continue
                calls = partial(function, theirs, host), partial(function, ours, device)
                try:
                    pair = measure(*calls)
                except (TypeError, ValueError) as error:  # one of the two does not support it
                    print(f"left out: {name} of {dtype}: {error}", file=sys.stderr)
                    continue
                yield Row(name, np.dtype(dtype).name, size, *pair)


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def text(duration: float) -> str:
    return f"{duration * 1e6:10.2f} us" if duration < 1e-3 else f"{duration * 1e3:10.2f} ms"


def report(table: list[Row], worst: int | None = None) -> None:
    print(f"{'operation':<20}{'dtype':<12}{'size':>10}{'numpy':>13}{'pygpu':>13}{'ratio':>8}")
    for row in sorted(table, key=lambda row: -row.ratio)[:worst]:
        times = f"{text(row.numpy)}{text(row.pygpu)}{row.ratio:>8.2f}"
        print(f"{row.operation:<20}{row.dtype:<12}{row.size:>10}{times}")
    print()
    for size in sorted({row.size for row in table}):
        ratios = [row.ratio for row in table if row.size == size]
        goal = f"; goal {MEANS[size]}" if size in MEANS else ""
        above = sum(ratio > WORST for ratio in ratios)
        print(
            f"{size} elements: geometric mean {geometric_mean(ratios):.2f}{goal};"
            f" {above} of {len(ratios)} above {WORST}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="operations whose name contains one of these texts"
    )
    parser.add_argument("--dtypes", default="", help="numpy's characters of dtypes, as in 'bBf'")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of elements")
    parser.add_argument("--worst", type=int, help="print no more than so many rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    table = list(rows(options.sizes, options.only, options.dtypes))
    report(table, options.worst)
    if options.json:
        entries = [asdict(row) | {"ratio": row.ratio} for row in table]
        options.json.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()
