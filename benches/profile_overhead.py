"""Measures the time that a recording adds to a call, and the share of the driver's event."""

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
    """Prints the time of an event that the program records, and a line for each kind of call."""
    a, b = (gpuarray.zeros(1024, np.float32) for _ in range(2))
    kernel = SourceModule("__global__ void nothing(float *x) {}").get_function("nothing")
    memory, pinned = driver.mem_alloc(4096), driver.pagelocked_empty(1024, np.float32)
    event, stream = driver.Event(), driver.Stream()
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "launch": (lambda: kernel(a, block=(32, 1, 1)), 1),
        "a + b": (lambda: a + b, 1),
        "a.sum()": (lambda: a.sum(), 1),
        "memset": (lambda: driver.memset_d32(memory, 0, 1024), 1),
        "copy to device": (lambda: driver.memcpy_htod_async(memory, pinned), 1),
        "launch on another stream": (lambda: kernel(a, block=(32, 1, 1), stream=stream), 1),
        "empty": (lambda: gpuarray.empty(1024, np.float32), 0),
        "slice": (lambda: a[2:], 0),
    }
    # The launch and the event together, minus the launch: an event on an idle stream is faster.
    launch, launch_and_record = calls["launch"][0], lambda: (launch(), event.record())
    floor = fastest(launch_and_record) - fastest(launch)
    print(f"{driver.Device(0).name()}: an event after a launch takes {floor:.3f} us")
    print("us a call                         off      on   added    rest")
    for name, (call, events) in calls.items():
        call()
        off = fastest(call)
        with pygpu.profile():
            on = fastest(call)
        added = on - off
        print(f"{name:<29}{off:>8.3f}{on:>8.3f}{added:>8.3f}{added - events * floor:>8.3f}")


if __name__ == "__main__":
    main()
