"""Two processes work on one column of a table in device memory, without a copy.

    python examples/ipc.py

The first process exports a part of a column, with a mask of the elements that are valid. The
second one, started here, opens it, doubles its elements in place, and exports their running sums.
The program is the same on NVIDIA, on AMD and without a GPU; PYGPU_BACKEND chooses.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import pygpu.autoinit  # noqa: F401
from pygpu import driver, gpuarray, ipc


def work() -> None:
    """The second process: opens the column that it reads, and answers with one of its own."""
    with ipc.open_column(sys.stdin.readline()) as column:
        column.data *= 2
        driver.Context.synchronize()
        sums = np.cumsum(np.where(column.valid(), column.data.get(), 0))
        answer = ipc.share(gpuarray.to_gpu(sums))
        with answer.ipc_handle() as descriptor:
            print(descriptor.to_json(), flush=True)
            # The sums stay exported until the first process has read them.
            sys.stdin.readline()


def main() -> None:
    """The first process: a column of 1000 elements, of which 20 are shared."""
    column = ipc.share(gpuarray.to_gpu(np.arange(1000, dtype=np.float64)))
    valid = np.arange(20) % 4 != 0
    mask = ipc.share(gpuarray.to_gpu(np.packbits(valid, bitorder="little")))
    with (
        ipc.export_column(column[100:120], mask) as exported,
        subprocess.Popen(
            [sys.executable, __file__, "worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as worker,
    ):
        assert worker.stdin is not None
        assert worker.stdout is not None
        print(exported.to_json(), file=worker.stdin, flush=True)
        with ipc.open(ipc.Descriptor.from_json(worker.stdout.readline())) as sums:
            result = sums.get()
        print(file=worker.stdin, flush=True)
    elements = column.get()
    np.testing.assert_array_equal(elements[100:120], 2 * np.arange(100, 120))
    np.testing.assert_array_equal(elements[:100], np.arange(100))
    expected = np.cumsum(np.where(valid, 2.0 * np.arange(100, 120), 0))
    np.testing.assert_array_equal(result, expected)
    device = driver.Device(0).name()
    print(f"two processes shared 20 elements on {device}; their sum is {result[-1]:.0f}")


if __name__ == "__main__":
    work() if sys.argv[1:] == ["worker"] else main()
