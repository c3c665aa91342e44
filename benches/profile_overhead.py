"""Measures what a recording adds to a call: microseconds without and with `pygpu.profile`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import pygpu
import pygpu.autoinit
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

CALLS, ROUNDS = 2000, 9


def fastest(call: Callable[[], object]) -> float:
    """Returns the microseconds of a call, in the fastest of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        driver.Context.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / CALLS * 1e6


def main() -> None:
    """Prints a line for each kind of call."""
    a, b = (gpuarray.zeros(1024, np.float32) for _ in range(2))
    kernel = SourceModule("__global__ void nothing(float *x) {}").get_function("nothing")
    memory = driver.mem_alloc(4096)
    calls: dict[str, Callable[[], object]] = {
        "launch": lambda: kernel(a, block=(32, 1, 1)),
        "a + b": lambda: a + b,
        "memset": lambda: driver.memset_d32(memory, 0, 1024),
        "empty": lambda: gpuarray.empty(1024, np.float32),
        "slice": lambda: a[2:],
    }
    print(f"{driver.Device(0).name()}: us a call     off      on   added")
    for name, call in calls.items():
        call()
        off = fastest(call)
        with pygpu.profile():
            on = fastest(call)
        print(f"{name:<30}{off:>8.3f}{on:>8.3f}{on - off:>8.3f}")


if __name__ == "__main__":
    main()
