"""Numba's kernels on pygpu's arrays, and pygpu as numba's memory manager, on an NVIDIA GPU.

    .venv/bin/python tests/numba/kernels.py [--own-tests] [--no-kernels]

Needs numba and numba-cuda, and takes less than a minute. Each line names a check that succeeded;
the first failure ends the run. With `--own-tests`, numba-cuda's memory tests also run with
pygpu.numba as the memory manager (they need pytest, filecheck, psutil and cffi). On the fake
driver, whose folder must be in LD_LIBRARY_PATH, `--no-kernels` leaves out the kernels, which it
cannot run. There, numba's tests of kernels and of synchronous fills fail, as they also do with
numba's own manager.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any

import numpy as np

OWN_TESTS = [
    "test_array_attr",
    "test_context_stack",
    "test_cuda_array_slicing",
    "test_cuda_devicerecord",
    "test_cuda_memory",
    "test_cuda_ndarray",
    "test_deallocations",
    "test_emm_plugins",
    "test_events",
    "test_host_alloc",
    "test_managed_alloc",
    "test_pinned",
    "test_select_device",
]


def show(what: str, *checks: Any) -> None:
    """Prints a check that succeeded, or exits if it failed."""
    if not all(checks):
        sys.exit(f"failed: {what}")
    print(f"ok: {what}", flush=True)


def kernels() -> None:
    """Runs one kernel on every kind of array."""
    from numba import cuda as numba_cuda

    from pygpu import cuda, driver, gpuarray

    @numba_cuda.jit
    def add(array, value):
        i, j = numba_cuda.grid(2)
        if i < array.shape[0] and j < array.shape[1]:
            array[i, j] += value

    host = np.arange(24, dtype=np.float32).reshape(4, 6)
    launch = add[(1, 1), (8, 8)]
    makers = {
        "a GPUArray": gpuarray.to_gpu,
        "an array of pygpu.cuda": cuda.to_device,
        "an array in Fortran order": lambda x: cuda.to_device(np.asfortranarray(x)),
    }
    for name, make in makers.items():
        array = make(host)
        launch(array, 1)
        show(f"a kernel writes to {name}", np.array_equal(array.get(), host + 1))
    for name, fill in {"mapped": cuda.mapped_array, "managed": cuda.managed_array}.items():
        array = fill(host.shape, host.dtype)
        array[:] = host
        launch(array, 2)
        numba_cuda.synchronize()
        show(f"a kernel writes to a {name} array", np.array_equal(array, host + 2))
    base = gpuarray.to_gpu(host)
    launch(base[1:3, ::-2], 3)
    expected = host.copy()
    expected[1:3, ::-2] += 3
    show("a kernel writes to a view with strides", np.array_equal(base.get(), expected))

    big = gpuarray.to_gpu(np.zeros((4096, 4096), np.float32))
    stream = cuda.stream()
    theirs = numba_cuda.external_stream(stream.handle)
    for _ in range(20):
        big += 1
        add[(512, 512), (8, 8), theirs](big, 1)
        big.fill(gpuarray.max(big).get(), stream=stream)
    stream.synchronize()
    show("kernels and pygpu's work on one array are ordered", (big.get() == 40).all())

    array = numba_cuda.to_device(host)
    view = cuda.as_cuda_array(array)
    show("numba's array is seen by pygpu", view.ptr == array.device_ctypes_pointer.value)
    view *= 2
    driver.Context.synchronize()
    show("and written to", np.array_equal(array.copy_to_host(), host * 2))


def memory() -> None:
    """Makes numba allocate its memory from pygpu."""
    from numba import cuda as numba_cuda

    from pygpu import driver

    manager = numba_cuda.current_context().memory_manager
    show("pygpu.numba is numba's memory manager", type(manager).__module__ == "pygpu.numba")
    array = numba_cuda.device_array(1 << 20, np.uint8)
    address = array.device_ctypes_pointer.value
    show("numba's memory is known", driver.mem_get_address_range(address) == (address, 1 << 20))
    with numba_cuda.defer_cleanup():
        del array
        show("freeing is deferred", len(manager.deallocations) == 1)
    for _ in range(50):
        numba_cuda.to_device(np.zeros(1 << 20))
    manager.deallocations.clear()
    show("nothing is kept", not manager.allocations)
    try:
        numba_cuda.device_array(1 << 50, np.uint8)
    except numba_cuda.cudadrv.driver.CudaAPIError as error:
        show("too much is numba's error", error.code == 2)


def run_again(*arguments: str) -> int:
    """Runs a program with pygpu as numba's memory manager."""
    environment = os.environ | {"NUMBA_CUDA_MEMORY_MANAGER": "pygpu.numba"}
    return subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode


def main() -> int:
    """Runs the parts, each in a separate process."""
    parser = argparse.ArgumentParser(description="Numba's kernels and memory, with pygpu.")
    parser.add_argument(
        "--own-tests", action="store_true", help="numba-cuda's tests of memory, too"
    )
    parser.add_argument("--no-kernels", action="store_true", help="leaves out numba's kernels")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        memory()
    if not options.no_kernels:
        kernels()
    if options.memory:
        return 0
    failed = run_again(__file__, "--memory", *["--no-kernels"] * options.no_kernels)
    if options.own_tests and not failed:
        names = [f"numba.cuda.tests.cudadrv.{name}" for name in OWN_TESTS]
        failed = run_again("-m", "unittest", *names)
    return failed


if __name__ == "__main__":
    sys.exit(main())
