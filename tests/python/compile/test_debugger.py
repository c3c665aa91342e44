"""Debugging a kernel on the host with gdb, as docs/debugging-kernels.md describes it."""

import os
import subprocess
import sys
from shutil import which

import pytest

from pygpu import choose_backend

pytestmark = [
    pytest.mark.skipif(choose_backend() != "host", reason="the kernels are a GPU's"),
    pytest.mark.skipif(which("gdb") is None, reason="gdb is not installed"),
]

PROGRAM = '''
import numpy as np
from pygpu import autoinit, driver, gpuarray
from pygpu.compiler import SourceModule

SOURCE = """
__global__ void turn(float *x) {
    __shared__ float tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[31 - threadIdx.x];
    tile[threadIdx.x] = 0;
}
__global__ void lost(float *x, int *where) {
    x[*where] = 1;
}
"""
module = SourceModule(SOURCE, options=["-G"], keep=True)
x = gpuarray.to_gpu(np.arange(32, dtype=np.float32))
module.get_function("turn")(x, block=(32, 1, 1))
try:
    module.get_function("lost")(x, np.intp(0), block=(1, 1, 1))
except driver.LaunchError as error:
    print("the program has", error)
'''


def debug(tmp_path, *commands):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = [part for command in commands for part in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-nx", "-q", "-batch", *arguments, "--args", sys.executable, program],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYGPU_HOST_THREADS": "1", "TMPDIR": str(tmp_path)},
        check=False,
    )
    if "ptrace: Operation not permitted" in done.stderr:
        pytest.skip("the system allows no debugger")
    return done.stdout + done.stderr


def test_a_breakpoint_of_one_thread(tmp_path):
    shown = debug(
        tmp_path,
        "set breakpoint pending on",
        "break kernel.cu:6 if threadIdx.x == 3",
        "run",
        "print tile[31 - threadIdx.x]",
        "print x[3]",
        "next",
        "print x[3]",
    )
    assert "x[threadIdx.x] = tile[31 - threadIdx.x];" in shown, shown
    assert "$1 = 28" in shown
    assert "$2 = 3" in shown
    assert "$3 = 28" in shown


def test_a_fault_stops_at_its_line(tmp_path):
    shown = debug(tmp_path, "run", "print where", "continue")
    assert "kernel.cu:10" in shown, shown
    assert "x[*where] = 1;" in shown
    assert "$1 = (int *) 0x0" in shown
    assert "the program has kernel lost failed in block (0, 0, 0)" in shown
