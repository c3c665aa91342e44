"""Importing each module: processor time in addition to numpy's own import, slowest first.

    python benches/imports.py [--rounds N] [--check]

Each import runs in its own process, in turn, round after round. A time is the least of
the rounds, in milliseconds of processor time, with compiled files present. With --check
the exit status is 1 if a module exceeds its limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

PYCUDA = (
    *("autoinit", "characterize", "compiler", "cumath", "curandom", "driver", "elementwise"),
    *("gpuarray", "reduction", "scan", "tools"),
)
# Modules that are imported together, and their limit in milliseconds.
MOST = {(f"pygpu.{name}",): 10.0 for name in PYCUDA} | {
    ("pygpu.autoinit", "pygpu.gpuarray"): 10.0,
    tuple(f"pygpu.{name}" for name in PYCUDA): 25.0,
    ("pygpu.cuda",): 15.0,
}
PROGRAM = """
import numpy, time
start = time.process_time()
import {}
print(time.process_time() - start)
"""


def measure(modules: tuple[str, ...]) -> float:
    """Returns the milliseconds of one import."""
    variables = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    command = [sys.executable, "-c", PROGRAM.format(", ".join(modules))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
    return 1000 * float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    least = dict.fromkeys(MOST, float("inf"))
    for _ in range(options.rounds):
        for modules in MOST:
            least[modules] = min(least[modules], measure(modules))
    rows = sorted(MOST, key=lambda modules: least[modules] / MOST[modules], reverse=True)
    for modules in rows:
        name = modules[0] if len(modules) == 1 else ", ".join(modules)
        print(f"{least[modules]:6.1f} ms of {MOST[modules]:4.0f}  {name}")
    return int(options.check and any(least[modules] > MOST[modules] for modules in MOST))


if __name__ == "__main__":
    sys.exit(main())
