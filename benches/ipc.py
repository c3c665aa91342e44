"""Opening and closing a slice of another process's array, compared with two driver calls.

    PYGPU_BACKEND=cuda python benches/ipc.py [--rounds N]

Prints microseconds for a pair of calls, the best of all rounds. The methods alternate within
each round. "driver" is cuIpcOpenMemHandle and cuIpcCloseMemHandle through ctypes, or HIP's.
The host backend does not have a driver; there, only the handle
(`pygpu.driver.IPCMemoryHandle`) is compared.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import time
from collections.abc import Callable

from pygpu import autoinit, choose_backend, driver, gpuarray, ipc

CALLS = 50
LIBRARIES = {
    "cuda": ("libcuda.so.1", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle"),
    "hip": ("libamdhip64.so", "hipIpcOpenMemHandle", "hipIpcCloseMemHandle"),
}


def export() -> None:
    """Runs in the other process: shares an array until its standard input ends."""
    array = ipc.share(gpuarray.zeros((1 << 20, 4), "f4"))
    with array[10:1000, 1].ipc_handle() as descriptor:
        print(descriptor.to_json(), flush=True)
        sys.stdin.read()


class Handle(ctypes.Structure):
    """A handle by value, as the drivers take it."""

    _fields_ = (("reserved", ctypes.c_char * 64),)


def driver_calls(handle: bytes) -> Callable[[], None] | None:
    """Returns a function that makes the driver's two calls for a handle."""
    names = LIBRARIES.get(choose_backend())
    if names is None:
        return None
    library = ctypes.CDLL(names[0])
    open_, close = library[names[1]], library[names[2]]
    open_.argtypes = (ctypes.POINTER(ctypes.c_void_p), Handle, ctypes.c_uint)
    close.argtypes = (ctypes.c_void_p,)
    value = Handle.from_buffer_copy(handle)
    address = ctypes.c_void_p()

    def call() -> None:
        # 1: enables access between devices where it is needed.
        status = open_(ctypes.byref(address), value, 1) or close(address)
        assert status == 0, f"the driver returned {status}"

    return call


def best(call: Callable[[], None]) -> float:
    """Returns the average microseconds of a call."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--export", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.export:
        export()
        return
    command = [sys.executable, __file__, "--export"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        descriptor = ipc.Descriptor.from_json(other.stdout.readline().decode())

        def slice_() -> None:
            ipc.open(descriptor).close()

        def handle() -> None:
            driver.IPCMemoryHandle(descriptor.handle).close()

        ways: dict[str, Callable[[], None]] = {"slice": slice_, "handle": handle}
        own = driver_calls(descriptor.handle)
        if own is not None:
            ways["driver"] = own
        times = dict.fromkeys(ways, float("inf"))
        for _ in range(options.rounds):
            for name, call in ways.items():
                times[name] = min(times[name], best(call))
        other.stdin.close()
    for name, microseconds in times.items():
        print(f"{name:8}{microseconds:10.1f} us")
    floor = times.get("driver", times["handle"])
    print(f"slice / {'driver' if own else 'handle'}: {times['slice'] / floor:.2f}")


if __name__ == "__main__":
    assert autoinit.context is not None
    main()
