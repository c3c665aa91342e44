"""Kernels from a program's own expressions: pygpu and other installed libraries, in one run.

    PYGPU_BACKEND=cuda python benches/user_kernels.py [--elements N] [--json FILE]

Call: host time of one call on 1,024 elements with a short queue; the least median of all rounds, in
microseconds. Bandwidth in GB/s: bytes that must be read and written once, divided by the least
time. The libraries run in turn, round after round. Needs a GPU; CuPy and PyTorch are measured if
they can be imported.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SMALL = 1024
ROUNDS = 5
CALLS = 40
BATCHES = 30

Row = dict[str, Callable[[], Any]]


class Pygpu:
    """The calls of pygpu's PyCUDA modules."""

    def __init__(self) -> None:
        from pygpu import (
            autoinit,
            compiler,
            curandom,
            driver,
            elementwise,
            gpuarray,
            reduction,
            scan,
        )

        self.context = autoinit.context
        self.synchronize = driver.Context.synchronize
        self.array = gpuarray.to_gpu
        self.empty = gpuarray.empty_like
        self.rand = curandom.rand
        self.generator = curandom.XORWOWRandomNumberGenerator()
        self.sum, self.sort, self.argsort = gpuarray.sum, gpuarray.sort, gpuarray.argsort
        self.cumsum, self.copy = gpuarray.cumsum, driver.memcpy_dtod
        self.combine = elementwise.ElementwiseKernel(
            "float a, const float *x, float b, const float *y, float *z",
            "z[i] = a * x[i] + b * y[i]",
        )
        self.reduce = reduction.ReductionKernel(
            np.float32, "0", "a + b", "x[i] * y[i]", "const float *x, const float *y"
        )
        self.scan = scan.InclusiveScanKernel(np.float32, "a + b")
        self.exclusive = scan.ExclusiveScanKernel(np.float32, "a + b", 0)
        module = compiler.SourceModule(
            "__global__ void nothing(float *x, int n) { if (n < 0) x[threadIdx.x] = n; }"
        )
        self.nothing = module.get_function("nothing").prepare("Pi")

    def rows(self, elements: int) -> Row:
        """Returns the calls on arrays of this many elements."""
        x, y = (self.array(np.ones(elements, np.float32)) for _ in range(2))
        z, two, three = self.empty(x), np.float32(2), np.float32(3)
        numbers = self.array(unsorted(elements))
        mask = numbers > 0
        rows: Row = {
            "a*x + b*y": lambda: self.combine(two, x, three, y, z),
            "sum(x*y)": lambda: self.reduce(x, y),
            "copy": lambda: self.copy(z.gpudata, x.gpudata, x.nbytes),
            "inclusive scan": lambda: self.scan(x, z),
            "exclusive scan": lambda: self.exclusive(x, z),
            "x.cumsum, builtin": lambda: self.cumsum(x, out=z),
            "x + y, builtin": lambda: x + y,
            "x.sum, builtin": lambda: self.sum(x),
            "new uniform numbers": lambda: self.rand(elements),
            "uniform numbers": lambda: self.generator.fill_uniform(z),
            "normal numbers": lambda: self.generator.fill_normal(z),
            "x[mask]": lambda: numbers[mask],
            "sort": lambda: self.sort(numbers),
            "argsort": lambda: self.argsort(numbers),
        }
        if elements == SMALL:
            prepared, grid, block = self.nothing, (1, 1), (32, 1, 1)
            rows["prepared launch"] = lambda: prepared.prepared_call(grid, block, x.gpudata, 1)
        return rows


class Cupy:
    """The calls of CuPy."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.synchronize = cupy.cuda.get_current_stream().synchronize
        self.combine = cupy.ElementwiseKernel(
            "float32 a, float32 x, float32 b, float32 y", "float32 z", "z = a * x + b * y", "axpby"
        )
        self.reduce = cupy.ReductionKernel(
            "float32 x, float32 y", "float32 z", "x * y", "a + b", "z = a", "0", "dot"
        )

    def rows(self, elements: int) -> Row:
        """Returns the calls on arrays of this many elements."""
        x, y, z = (self.cupy.ones(elements, self.cupy.float32) for _ in range(3))
        two, three = np.float32(2), np.float32(3)
        numbers = self.cupy.asarray(unsorted(elements))
        mask = numbers > 0
        return {
            "a*x + b*y": lambda: self.combine(two, x, three, y, z),
            "sum(x*y)": lambda: self.reduce(x, y),
            "copy": lambda: self.cupy.copyto(z, x),
            "inclusive scan": lambda: self.cupy.cumsum(x, out=z),
            "x + y, builtin": lambda: x + y,
            "x.sum, builtin": lambda: x.sum(),
            "new uniform numbers": lambda: self.cupy.random.random(elements, np.float32),
            "normal numbers": lambda: self.cupy.random.standard_normal(elements, np.float32),
            "x[mask]": lambda: numbers[mask],
            "sort": lambda: self.cupy.sort(numbers),
            "argsort": lambda: self.cupy.argsort(numbers),
        }


class Torch:
    """The calls of PyTorch."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.synchronize = torch.cuda.synchronize

    def rows(self, elements: int) -> Row:
        """Returns the calls on arrays of this many elements."""
        torch = self.torch
        x, y = (torch.ones(elements, device="cuda") for _ in range(2))
        z = torch.empty_like(x)
        numbers = torch.from_numpy(unsorted(elements)).cuda()
        mask = numbers > 0
        return {
            "copy": lambda: z.copy_(x),
            "inclusive scan": lambda: torch.cumsum(x, 0, out=z),
            "x + y, builtin": lambda: x + y,
            "x.sum, builtin": lambda: x.sum(),
            "new uniform numbers": lambda: torch.rand(elements, device="cuda"),
            "uniform numbers": lambda: z.uniform_(),
            "normal numbers": lambda: z.normal_(),
            "x[mask]": lambda: numbers[mask],
            "sort": lambda: torch.sort(numbers),
            "argsort": lambda: torch.argsort(numbers),
        }


def unsorted(elements: int) -> np.ndarray:
    """Returns random numbers, half of them positive."""
    return np.random.default_rng(0).normal(size=elements).astype(np.float32)


# How many times each float32 element must cross the memory bus. A sort reads and writes each at
# least once, and a mask of bytes selects half of the elements.
CROSSINGS = {
    "a*x + b*y": 3,
    "sum(x*y)": 2,
    "copy": 2,
    "inclusive scan": 2,
    "exclusive scan": 2,
    "x.cumsum, builtin": 2,
    "x + y, builtin": 3,
    "x.sum, builtin": 1,
    "new uniform numbers": 1,
    "uniform numbers": 1,
    "normal numbers": 1,
    "x[mask]": 1.75,
    "sort": 2,
    "argsort": 3,
}


def call_time(call: Callable[[], Any], synchronize: Callable[[], Any]) -> float:
    """Returns the microseconds of one call: the median over batches that start with no queue."""
    times = []
    for _ in range(BATCHES):
        synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return statistics.median(times) * 1e6


def device_time(call: Callable[[], Any], synchronize: Callable[[], Any]) -> float:
    """Returns the seconds of one call, including its work on the device."""
    synchronize()
    start = time.perf_counter()
    for _ in range(20):
        call()
    synchronize()
    return (time.perf_counter() - start) / 20


def measure(libraries: dict[str, Any], elements: int) -> dict[str, dict[str, float]]:
    """Returns the best figure of each row and library; the libraries run in turn."""
    results: dict[str, dict[str, float]] = {}
    is_small = elements == SMALL
    rows = {name: library.rows(elements) for name, library in libraries.items()}
    for name, library in libraries.items():
        for call in rows[name].values():
            call()
        library.synchronize()
    for _ in range(ROUNDS):
        for name, library in libraries.items():
            for row, call in rows[name].items():
                if is_small:
                    figure = call_time(call, library.synchronize)
                    results.setdefault(row, {}).setdefault(name, figure)
                    results[row][name] = min(results[row][name], figure)
                else:
                    seconds = device_time(call, library.synchronize)
                    figure = CROSSINGS[row] * 4 * elements / seconds / 1e9
                    results.setdefault(row, {}).setdefault(name, figure)
                    results[row][name] = max(results[row][name], figure)
    return results


def main() -> int:
    """Measures, prints the table, and writes it to the file that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--elements", type=int, default=1 << 26, help="of the large arrays")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    present = {
        "pygpu": Pygpu,
        **{
            name: library
            for name, library in {"cupy": Cupy, "torch": Torch}.items()
            if importlib.util.find_spec(name)
        },
    }
    libraries = {name: library() for name, library in present.items()}
    tables = {
        f"call on {SMALL} float32, us": measure(libraries, SMALL),
        f"{options.elements} float32, GB/s": measure(libraries, options.elements),
    }
    for title, table in tables.items():
        print(f"{title:30}" + "".join(f"{name:>10}" for name in libraries))
        for row, figures in table.items():
            cells = (
                f"{figures[name]:10.2f}" if name in figures else " " * 10 for name in libraries
            )
            print(f"{row:30}" + "".join(cells))
    if options.json:
        options.json.write_text(json.dumps(tables, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
