"""`pygpu bench`: compares this machine's speed with its own limits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core, driver, gpuarray

# Calls of which the fastest counts, and the width of the longest bar.
_CALLS, _WIDTH = 5, 40
# Single-precision units of a multiprocessor, where there are not 128.
_UNITS = dict.fromkeys([(6, 0), (7, 0), (7, 2), (7, 5), (8, 0)], 64)


def main(argv: Sequence[str]) -> int:
    """Prints a line for each measurement when it is done; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pygpu bench",
        description="Measures copies, fills, sums and matrix products on the current device, and "
        "compares each with the device's limit.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--elements", type=int, help="float32 elements of the arrays")
    options = parser.parse_args(argv)
    on_host = _core.runs_kernels_on_host()
    free, _ = _core.mem_get_info()
    elements = min(1 << 24 if on_host else 1 << 26, free // 32)
    if options.elements is not None:
        if options.elements < 1:
            parser.error(f"--elements is {options.elements}; it must be at least 1")
        elements = options.elements
    device = driver.Device(_core.current_ordinal())
    name = device._label()
    if not options.json:
        print(f"{name}, {elements} elements of float32, the fastest of {_CALLS} calls")
    results = {}
    for what, rate, unit, limit in _measured(device, elements):
        results[what] = {"rate": rate, "unit": unit, "limit": limit}
        if not options.json:
            share = (
                f"{rate / limit:4.0%} {'#' * round(_WIDTH * min(rate / limit, 1))}" if limit else ""
            )
            print(f"{what:<16}{rate:>12,.1f} {unit:<8}{share}".rstrip(), flush=True)
    if options.json:
        print(json.dumps({"device": name, "elements": elements, "results": results}, indent=2))
    else:
        print("100% is the fastest copy inside the device, measured; for matmul, what the device's")
        print("attributes promise, if it has them. Copies to and from the host have no limit here.")
    return 0


def _measured(device: driver.Device, elements: int) -> Iterator[tuple[str, float, str, Any]]:
    """Yields name, rate, unit and limit of each measurement."""
    a, b = gpuarray.ones(elements, np.float32), gpuarray.ones(elements, np.float32)
    host = driver.pagelocked_empty(elements, np.float32)
    side = max(1, min(4096, int(elements**0.5)) // 4 * 4)
    m = gpuarray.ones((side, side), np.float32)
    moves: dict[str, Callable[[], Any]] = {
        "copy": lambda: driver.memcpy_dtod(b.gpudata, a.gpudata, a.nbytes),
        "fill": lambda: driver.memset_d32(b.gpudata, 7, elements),
        "add": lambda: a + b,
        "sum": lambda: a.sum(),
        "host to device": lambda: a.set(host),
        "device to host": lambda: a.get(host),
    }
    for what, call in moves.items():
        size, seconds, limit = _fastest(call)
        is_inside = "host" not in what
        yield what, size / seconds / 1e9, "GB/s", limit / 1e9 if is_inside and limit else None
    _, seconds, _ = _fastest(lambda: m @ m)
    yield "matmul", 2 * side**3 / seconds / 1e9, "GFLOP/s", _operations(device)


def _fastest(call: Callable[[], Any]) -> tuple[int, float, float | None]:
    """Returns bytes of a call, its seconds on the device, and bytes per second of copies."""
    call()
    best, size, limits = float("inf"), 0, {}
    for _ in range(_CALLS):
        with _core.profile() as profile:
            call()
        rows = [row for row in profile.rows if row["device_seconds"] is not None]
        best = min(best, sum(row["device_seconds"] for row in rows))
        size, limits = sum(row["bytes"] for row in rows), profile.limits
    return size, max(best, 1e-9), next(iter(limits.values()), None)


def _operations(device: driver.Device) -> float | None:
    """Returns the single-precision operations per nanosecond, computed from the attributes."""
    if _core.runs_kernels_on_host():
        return None
    count, clock = device.multiprocessor_count, device.clock_rate
    units = _UNITS.get(device.compute_capability(), 128)
    units = units if _core.choose_backend() == "cuda" else 64
    return 2 * units * count * clock * 1e-6 or None
