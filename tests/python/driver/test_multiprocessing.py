"""Programs that use `multiprocessing`, with and without `python -m pygpu run`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

METHODS = ["fork", "spawn", "forkserver"]

WORK = """
import numpy as np

def work(count):
    import pycuda
    import pycuda.autoinit
    from pycuda import gpuarray
    assert gpuarray.__name__ == "pygpu.gpuarray", gpuarray.__name__
    return float(gpuarray.sum(gpuarray.to_gpu(np.arange(count, dtype=np.float64))).get())
"""

# A spawned process imports pycuda again here, before it receives work.
MAIN = """
import multiprocessing, sys
import pycuda.driver as cuda
from pycuda.tools import DeviceMemoryPool

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(work, [10, 20, 30]))
"""

ANSWER = "[45.0, 190.0, 435.0]\n"


def run(folder, *arguments):
    """Runs a program. If it starts processes endlessly, they end with the time limit."""
    done = subprocess.run(
        [sys.executable, "-m", "pygpu", "run", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=folder,
        env=os.environ | {"PYGPU_BACKEND": "host"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ANSWER), done.stderr[-3000:]


@pytest.mark.parametrize("method", METHODS)
def test_a_script_with_processes(method, tmp_path):
    (tmp_path / "program.py").write_text(WORK + MAIN)
    run(tmp_path, "program.py", method)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_module_with_processes(method, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tasks.py").write_text(WORK)
    (package / "program.py").write_text("from .tasks import work\n" + MAIN)
    run(tmp_path, "-m", "package.program", method)


def test_code_with_processes(tmp_path):
    (tmp_path / "tasks.py").write_text(WORK)
    run(tmp_path, "-c", "from tasks import work\n" + MAIN, "spawn")


def test_an_executor_with_processes(tmp_path):
    (tmp_path / "program.py").write_text(
        WORK
        + """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(list(pool.map(work, [10, 20, 30])))
"""
    )
    run(tmp_path, "program.py")


def test_an_installed_pycuda_is_not_taken_instead(tmp_path):
    installed = tmp_path / "installed" / "pycuda"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("raise ImportError('the real one')\n")
    (tmp_path / "program.py").write_text("import sys\nsys.path.append('installed')\n" + WORK + MAIN)
    run(tmp_path, "program.py", "spawn")


# Each process of the pool has its own device memory, or its own view of the single GPU.
ARRAYS = """
import multiprocessing, os, sys
import numpy as np
import pygpu.autoinit
from pygpu import gpuarray

def work(array):
    assert isinstance(array, gpuarray.GPUArray)
    array += 1
    return os.getpid(), array.T

if __name__ == "__main__":
    host = np.arange(6, dtype="f4").reshape(2, 3)
    arrays = [gpuarray.to_gpu(host * k)[:, ::2] for k in range(4)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for k, (number, array) in enumerate(pool.map(work, arrays)):
            assert number != os.getpid()
            np.testing.assert_array_equal(array.get(), (host * k)[:, ::2].T + 1)
            np.testing.assert_array_equal(arrays[k].get(), (host * k)[:, ::2])
    print("passed")
"""


def test_arrays_are_passed_as_copies(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ARRAYS)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr[-3000:]
