"""pygpu on the host backend compared with numpy: ratios of times, on one thread and on two.

    python benches/host_vs_numpy.py [--json FILE] [--wheel-folder FOLDER] [--elements N]

Each number of threads has its own process, in which every case runs on numpy and on pygpu in
turn, round after round, so that changes of the machine's speed affect both. A time is the
median over the rounds; a ratio is the median of the rounds' ratios of pygpu's time to numpy's:
below 1, pygpu is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

SMALL = 1024
THREADS = (1, 2)
# The upper bounds of each case's ratio, on one thread and on two.
GOALS = {
    "small a + b": (1.5, 1.5),
    "small a[10:500]": (4, 4),
    "large a + b": (1, 1),
    "large a * b + a * 2": (1, 1),
    "large sum(a)": (1, 1),
    "large m + m.T": (1, 1),
    "large m.T + m.T": (1, 1),
    "large a[::2] + b[::2]": (1, 1),
    "large ReductionKernel a * b, +": (1, 1),
    "large InclusiveScanKernel +": (1, 1),
    "large normal numbers": (1, 1),
}
IMPORT_GOAL_MS = 15
WHEEL_GOAL_MB = 5


def cases(to_array: Callable, total: Callable, elements: int) -> dict[str, Callable]:
    """Returns the same expressions over numpy's arrays or pygpu's."""
    rng = np.random.default_rng(0)
    side = int(elements**0.5)
    a, b = (to_array(rng.standard_normal(SMALL).astype("f4")) for _ in range(2))
    x, y = (to_array(rng.standard_normal(elements).astype("f4")) for _ in range(2))
    m = x[: side * side].reshape(side, side)
    in_place, large_in_place = to_array(np.zeros(SMALL, "f4")), to_array(np.zeros(elements, "f4"))
    return {
        "small a + b": lambda: a + b,
        "small a += b": lambda: in_place.__iadd__(b),
        "small a * b + a * 2": lambda: a * b + a * 2,
        "small a[10:500]": lambda: a[10:500],
        "small sum(a)": lambda: total(a),
        "large a + b": lambda: x + y,
        "large a += b": lambda: large_in_place.__iadd__(y),
        "large a * b + a * 2": lambda: x * y + x * 2,
        "large sum(a)": lambda: total(x),
        "large m + m.T": lambda: m + m.T,
        "large m.T + m.T": lambda: m.T + m.T,
        "large a[::2] + b[::2]": lambda: x[::2] + y[::2],
    }


def functions(elements: int) -> tuple[dict[str, Callable], dict[str, Callable]]:
    """Returns functions of numpy, and the functions that pygpu has in their place."""
    from pygpu import curandom, gpuarray
    from pygpu.reduction import ReductionKernel
    from pygpu.scan import InclusiveScanKernel

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(elements).astype("f4") for _ in range(2))
    a, b, out = gpuarray.to_gpu(x), gpuarray.to_gpu(y), gpuarray.empty(elements, np.float32)
    places = rng.integers(0, elements // 4, elements // 4)
    indices = gpuarray.to_gpu(places)
    products = ReductionKernel(
        np.float32, "0", "a + b", "x[i] * y[i]", "const float *x, const float *y"
    )
    scan = InclusiveScanKernel(np.float32, "a + b")
    generator = curandom.XORWOWRandomNumberGenerator()
    pairs: dict[str, tuple[Callable, Callable]] = {
        "large ReductionKernel a * b, +": (lambda: (x * y).sum(), lambda: products(a, b)),
        "large InclusiveScanKernel +": (lambda: np.cumsum(x), lambda: scan(a, out)),
        "large argmax(a)": (lambda: np.argmax(x), lambda: gpuarray.argmax(a)),
        "large sort(a)": (lambda: np.sort(x), lambda: gpuarray.sort(a)),
        "large argsort(a)": (lambda: np.argsort(x), lambda: gpuarray.argsort(a)),
        "large rows.take(i, 0)": (
            lambda: x.reshape(-1, 4).take(places, 0),
            lambda: a.reshape(-1, 4).take(indices, 0),
        ),
        "small float(a[5])": (lambda: float(x[5]), lambda: float(a[5])),
        "large normal numbers": (
            lambda: rng.standard_normal(elements, np.float32),
            lambda: generator.fill_normal(out),
        ),
        "large uniform numbers": (
            lambda: rng.random(elements, np.float32),
            lambda: curandom.rand(elements),
        ),
    }
    theirs = {name: pair[0] for name, pair in pairs.items()}
    return theirs, {name: pair[1] for name, pair in pairs.items()}


def seconds(function: Callable, calls: int, synchronize: Callable) -> float:
    """Returns the time of one call, from `calls` of them and the wait for their end."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    synchronize()
    return (time.perf_counter() - start) / calls


def measure(elements: int) -> dict[str, tuple[float, float, float]]:
    """Measures in a child process: numpy's seconds, pygpu's, and the ratio, per case."""
    from pygpu import driver, gpuarray

    theirs, ours = functions(elements)
    theirs = cases(np.array, np.sum, elements) | theirs
    ours = cases(gpuarray.to_gpu, gpuarray.sum, elements) | ours
    result = {}
    for name in theirs:
        calls, rounds = (2000, 25) if name.startswith("small") else (1, 15)
        pairs = []
        for _ in range(rounds + 2):
            pairs.append(
                (
                    seconds(theirs[name], calls, lambda: None),
                    seconds(ours[name], calls, driver.Context.synchronize),
                )
            )
        pairs = pairs[2:]  # the first rounds warm up
        result[name] = (
            statistics.median(pair[0] for pair in pairs),
            statistics.median(pair[1] for pair in pairs),
            statistics.median(pair[1] / pair[0] for pair in pairs),
        )
    return result


def import_milliseconds(rounds: int = 15) -> tuple[float, float]:
    """Returns the shortest time to start Python and import numpy, and the time that pygpu adds."""
    codes = ("import numpy", "import numpy; import pygpu.gpuarray")
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, code in enumerate(codes):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            best[which] = min(best[which], (time.perf_counter() - start) * 1e3)
    return best[0], best[1] - best[0]


def in_process(threads: int, elements: int) -> dict[str, tuple[float, float, float]]:
    environment = os.environ | {"PYGPU_BACKEND": "host", "PYGPU_HOST_THREADS": str(threads)}
    command = [sys.executable, __file__, "--measure", "--elements", str(elements)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def text(duration: float) -> str:
    return f"{duration * 1e6:9.2f} us" if duration < 1e-3 else f"{duration * 1e3:9.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--wheel-folder", type=Path, help="also print the size of the wheel in it")
    parser.add_argument("--elements", type=int, default=16 << 20, help="of a large array")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.elements)))
        return

    results = {threads: in_process(threads, options.elements) for threads in THREADS}
    print(f"numpy {np.__version__}; small: {SMALL} float32, large: {options.elements} float32")
    print(f"ratio: pygpu's time over numpy's; {os.cpu_count()} processors\n")
    head = "".join(
        f"{f'{threads} thread' + 's' * (threads > 1):>12}{'ratio':>8}" for threads in THREADS
    )
    print(f"{'':<32}{'numpy':>12}{head}{'goal':>8}")
    for name, (numpy_time, *_) in results[THREADS[0]].items():
        row = f"{name:<32}{text(numpy_time)}"
        for threads in THREADS:
            _, pygpu_time, ratio = results[threads][name]
            row += f"{text(pygpu_time)}{ratio:>8.2f}"
        goal = GOALS.get(name)
        met = goal and all(
            results[threads][name][2] <= most for threads, most in zip(THREADS, goal, strict=True)
        )
        print(row + (f"{goal[0]:>8g} {'met' if met else 'MISSED'}" if goal else ""))

    base, added = import_milliseconds()
    print(
        f"\nimport pygpu.gpuarray: {added:.1f} ms over numpy ({base:.0f} ms); goal {IMPORT_GOAL_MS}"
    )
    figures = {"cases": results, "import_over_numpy_ms": added}
    wheels = sorted(options.wheel_folder.glob("pygpu-*.whl")) if options.wheel_folder else []
    if wheels:
        size = figures["wheel_bytes"] = wheels[-1].stat().st_size
        print(f"wheel: {size / 1e6:.2f} MB; goal {WHEEL_GOAL_MB}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
