"""Sorting and matrix products: pygpu and other installed libraries, in one run.

    PYGPU_BACKEND=cuda python benches/sort_and_matmul.py [--elements N] [--side N] [--json FILE]
    PYGPU_BACKEND=cuda PYGPU_CUBLAS=off python benches/sort_and_matmul.py     # pygpu's own kernels
    PYGPU_BACKEND=cuda python benches/sort_and_matmul.py --side 0             # no products
    PYGPU_BACKEND=host python benches/sort_and_matmul.py --elements 4000000 --side 1000

Sorting: GB/s of elements read and written once; argsort also writes 64-bit indices.
Products of square matrices: GFLOP/s, counting each real multiplication and addition.
Figures are the best of all rounds, in which the libraries run in turn. On a GPU the
others are CuPy and PyTorch, if they can be imported; on the host numpy, whose sort is
set to be stable, as pygpu's is.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 5
SORTED = ("f4", "f8", "i4", "i8", "i2", "u1")
MULTIPLIED = ("f4", "f8", "c8", "c16", "f2", "i4")

Call = Callable[[], Any]


class Library:
    """A library's name, and its calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.synchronize: Call = lambda: None
        if name == "pygpu":
            from pygpu import autoinit, driver, gpuarray

            self.context, self.module = autoinit.context, gpuarray
            self.array, self.synchronize = gpuarray.to_gpu, driver.Context.synchronize
        elif name == "cupy":
            import cupy

            self.module, self.array = cupy, cupy.asarray
            self.synchronize = cupy.cuda.get_current_stream().synchronize
        elif name == "torch":
            import torch

            self.module, self.synchronize = torch, torch.cuda.synchronize
            self.array = lambda values: torch.from_numpy(values).cuda()
        else:
            self.module, self.array = np, np.array

    def sorts(self, values: np.ndarray) -> dict[str, Call]:
        """Returns the calls that sort these values."""
        a, module = self.array(values), self.module
        if module is np:
            return {
                "sort": lambda: np.sort(a, kind="stable"),
                "argsort": lambda: np.argsort(a, kind="stable"),
            }
        return {"sort": lambda: module.sort(a), "argsort": lambda: module.argsort(a)}

    def product(self, values: np.ndarray) -> Call:
        """Returns the call that multiplies the matrix by itself."""
        a, module = self.array(values), self.module
        return lambda: module.matmul(a, a)


def seconds(call: Call, synchronize: Call) -> float:
    """Returns the time of one call, averaged over about a tenth of a second."""
    synchronize()
    start = time.perf_counter()
    call()
    synchronize()
    count = max(1, min(20, int(0.1 / max(time.perf_counter() - start, 1e-6))))
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - start) / count


def best(calls: dict[str, Call | None], libraries: dict[str, Library]) -> dict[str, float]:
    """Returns the least time of each library's call, without the libraries that refuse it."""
    times: dict[str, float] = {}
    refused = set()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            if call is None or name in refused:
                continue
            try:
                taken = seconds(call, libraries[name].synchronize)
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                refused.add(name)
                continue
            times[name] = min(times.get(name, taken), taken)
    return times


def values(dtype: str, *shape: int) -> np.ndarray:
    """Returns numbers over much of the dtype's range."""
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype).kind
    if kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    numbers = rng.normal(size=shape)
    return np.asarray(numbers + 1j * numbers if kind == "c" else numbers, dtype)


def main() -> int:
    """Measures, prints the tables, and writes them to the file that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--elements", type=int, default=1 << 26, help="that are sorted")
    parser.add_argument("--side", type=int, default=8192, help="of the matrices; 0: none")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    on_host = os.environ.get("PYGPU_BACKEND") == "host"
    peers = ("numpy",) if on_host else ("cupy", "torch")
    names = ["pygpu", *(name for name in peers if importlib.util.find_spec(name))]
    libraries = {name: Library(name) for name in names}
    tables: dict[str, dict[str, dict[str, float]]] = {"GB/s": {}, "GFLOP/s": {}}
    for dtype in SORTED:
        numbers = values(dtype, options.elements)
        calls = {name: library.sorts(numbers) for name, library in libraries.items()}
        for row, more in (("sort", 0), ("argsort", 8 * numbers.size)):
            moved = 2 * numbers.nbytes if row == "sort" else numbers.nbytes + more
            times = best({name: calls[name][row] for name in names}, libraries)
            figures = {name: moved / taken / 1e9 for name, taken in times.items()}
            tables["GB/s"][f"{row} {numbers.dtype}"] = figures
    for dtype in MULTIPLIED if options.side else ():
        matrix = values(dtype, options.side, options.side)
        products = {name: library.product(matrix) for name, library in libraries.items()}
        work = (8 if matrix.dtype.kind == "c" else 2) * options.side**3
        times = best({**products}, libraries)
        figures = {name: work / taken / 1e9 for name, taken in times.items()}
        tables["GFLOP/s"][f"a @ a {matrix.dtype}"] = figures
    for unit, table in ((unit, table) for unit, table in tables.items() if table):
        print(f"{unit:24}" + "".join(f"{name:>12}" for name in names))
        for row, figures in table.items():
            cells = (f"{figures[it]:12.1f}" if it in figures else " " * 12 for it in names)
            print(f"{row:24}" + "".join(cells))
    if options.json:
        options.json.write_text(json.dumps(tables, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
