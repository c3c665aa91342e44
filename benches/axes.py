"""Reductions and cumulative sums along axes: pygpu and other installed libraries, in one run.

    PYGPU_BACKEND=cuda python benches/axes.py [--json FILE]

Bandwidth in GB/s: the bytes of the elements, read once (for cumulative sums read and
written once), divided by the best time. The libraries run in turn, round after round, on
the same shapes of float32. Needs a GPU; CuPy and PyTorch are measured if they can be
imported. Takes less than a minute.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from user_kernels import ROUNDS, device_time

SHAPES = ((8192, 8192), (64, 1 << 20), (1 << 20, 64))
# A function's name, and how many times each element must cross the memory bus.
FUNCTIONS = {"sum": 1, "max": 1, "mean": 1, "var": 1, "argmax": 1, "cumsum": 2}

Calls = dict[tuple[str, int], Callable[[], Any]]


class Pygpu:
    """The calls of pygpu."""

    def __init__(self) -> None:
        from pygpu import autoinit, driver, gpuarray

        self.context, self.library = autoinit.context, gpuarray
        self.synchronize = driver.Context.synchronize

    def calls(self, values: Any) -> Calls:
        """Returns the calls on an array of these values."""
        a, library = self.library.to_gpu(values), self.library
        return {
            (name, axis): lambda name=name, axis=axis: getattr(library, name)(a, axis=axis)
            for name in FUNCTIONS
            for axis in (0, 1)
        }


class Cupy:
    """The calls of CuPy."""

    def __init__(self) -> None:
        import cupy

        self.library = cupy
        self.synchronize = cupy.cuda.get_current_stream().synchronize

    def calls(self, values: Any) -> Calls:
        """Returns the calls on an array of these values."""
        a, library = self.library.asarray(values), self.library
        return {
            (name, axis): lambda name=name, axis=axis: getattr(library, name)(a, axis=axis)
            for name in FUNCTIONS
            for axis in (0, 1)
        }


class Torch:
    """The calls of PyTorch."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.synchronize = torch.cuda.synchronize

    def calls(self, values: Any) -> Calls:
        """Returns the calls on an array of these values."""
        a, torch = self.torch.from_numpy(values).cuda(), self.torch
        named = {name: getattr(torch, name) for name in FUNCTIONS}
        named["max"] = torch.amax
        return {
            (name, axis): lambda function=function, axis=axis: function(a, axis)
            for name, function in named.items()
            for axis in (0, 1)
        }


def main() -> int:
    """Measures, prints the table, and writes it to the file that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    present = {"pygpu": Pygpu}
    others = {"cupy": Cupy, "torch": Torch}
    present |= {name: kind for name, kind in others.items() if importlib.util.find_spec(name)}
    libraries = {name: library() for name, library in present.items()}
    table: dict[str, dict[str, float]] = {}
    print(f"{'GB/s':34}" + "".join(f"{name:>10}" for name in libraries))
    for shape in SHAPES:
        values = np.random.default_rng(1).random(shape, np.float32)
        calls = {name: library.calls(values) for name, library in libraries.items()}
        for _ in range(ROUNDS):
            for name, library in libraries.items():
                for (function, axis), call in calls[name].items():
                    call()
                    seconds = device_time(call, library.synchronize)
                    figures = table.setdefault(f"{function} of {shape}, axis {axis}", {})
                    speed = FUNCTIONS[function] * values.nbytes / seconds / 1e9
                    figures[name] = max(figures.get(name, 0.0), speed)
        for row, figures in table.items():
            if f"of {shape}," in row:
                print(f"{row:34}" + "".join(f"{figures[name]:10.1f}" for name in libraries))
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
