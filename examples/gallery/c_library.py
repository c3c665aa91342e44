"""Calls an existing C library on memory that kernels also use.

    python examples/gallery/c_library.py

Shows managed memory: host and device use the same addresses, so that a function of C, called by
ctypes, and a kernel work on one array without a copy. The library here is `examples/glue/heat.c`,
compiled with `cc`. `examples/glue.rs` is the same task in Rust, in the order of a stream.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import pygpu.autoinit  # noqa: F401
from pygpu import driver
from pygpu.compiler import SourceModule

ROWS, COLUMNS, STEPS = 60, 80, 20
SOURCE = Path(__file__).parents[1] / "glue" / "heat.c"

warm = SourceModule("""
__global__ void warm(float *plate, int columns, float heat) {
    plate[(blockIdx.x + 20) * columns + threadIdx.x + 30] += heat;
}
""").get_function("warm")


def load():
    """Compiles the library and returns its function, with the types of its parameters."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "libheat.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
        heat_step = ctypes.CDLL(str(library)).heat_step
    numbers = [ctypes.c_int, ctypes.c_int, ctypes.c_float]
    heat_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *numbers]
    heat_step.restype = None
    return heat_step


def expected():
    plate = np.zeros((ROWS, COLUMNS))
    for _ in range(STEPS):
        plate[20:30, 30:50] += 1
        inner = plate[1:-1, 1:-1]
        sides = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
        plate[1:-1, 1:-1] = inner + 0.2 * (sides - 4 * inner)
    return plate


def main():
    heat_step = load()
    flags = driver.mem_attach_flags.GLOBAL
    plate, next_plate = (
        driver.managed_zeros((ROWS, COLUMNS), np.float32, mem_flags=flags) for _ in range(2)
    )
    for _ in range(STEPS):
        warm(plate, np.int32(COLUMNS), np.float32(1), block=(20, 1, 1), grid=(10, 1))
        driver.Context.synchronize()  # the library reads the result of the kernel
        heat_step(plate.ctypes.data, next_plate.ctypes.data, COLUMNS, ROWS, 0.2)
        plate, next_plate = next_plate, plate

    np.testing.assert_allclose(plate, expected(), rtol=1e-4, atol=1e-5)
    print(f"{STEPS} steps of kernel and library by turns; the hottest cell has {plate.max():.2f}")


if __name__ == "__main__":
    main()
