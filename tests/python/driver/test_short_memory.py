"""Calls for which the system refuses memory or a thread fail, and the process continues."""

from __future__ import annotations

import pytest
from device import BACKEND
from processes import run_python

pytestmark = pytest.mark.skipif(BACKEND != "host", reason="a driver takes addresses of its own")

# Runs a function with one MiB more address space than the process uses, and prints its error.
SHORT = """
import os, resource
from pygpu import autoinit, compiler, gpuarray

def short(function, spare=1 << 20):
    pages = int(open("/proc/self/statm").read().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    bytes = pages * os.sysconf("SC_PAGE_SIZE") + spare
    resource.setrlimit(resource.RLIMIT_AS, (bytes, limits[1]))
    try:
        function()
        failure = "none"
    except BaseException as error:
        failure = f"{type(error).__name__} {error}"
    resource.setrlimit(resource.RLIMIT_AS, limits)
    print(failure)
"""


@pytest.mark.parametrize("function", ["sort", "argsort"])
def test_a_sort_without_memory_for_a_copy(function):
    done = run_python(
        SHORT
        + f"""
a = gpuarray.arange(1 << 20, dtype="f8")
gpuarray.{function}(a)  # Leaves memory for the result, which is used again.
short(lambda: gpuarray.{function}(a))
assert (gpuarray.{function}(a[:5000].copy()).get() == range(5000)).all()
"""
    )
    assert done.stdout.startswith("MemoryError out of memory: sorting 1048576 elements needs")


def test_a_compilation_without_a_thread(tmp_path):
    done = run_python(
        SHORT
        + """
import threading
text = "__global__ void store(int *x) { *x = %d; }"
compiler.compile(text % 0)
thread = threading.Thread(target=int)
thread.start()
thread.join()
short(lambda: compiler.compile(text % 1), spare=16 << 20)  # Enough for texts, not for a stack.
compiler.compile(text % 1)
""",
        # The cache is empty, so the compiler must run. The C library keeps up to 40 MiB of ended
        # threads' stacks for reuse, so each stack is larger than that. It frees the excess when a
        # thread ends, but skips the thread that is ending; therefore one more thread ends above.
        PYGPU_CACHE_DIR=str(tmp_path),
        RUST_MIN_STACK=str(64 << 20),
    )
    assert done.stdout.startswith("RuntimeError the compiler"), done.stdout


# Any of these may be refused first: states, direction vectors, skips, or the words made from them.
@pytest.mark.parametrize(
    "states",
    [
        "random_seeded('Mrg32k3a', np.zeros(1 << 16, np.uint32), 0)",
        "random_skip('Xorwow', words, 'draws', np.ones(1, np.uint64))",
        "random_direction_vectors(64, 20000, True)",
        "random_points(64, words, None, 1)",
        "random_scramble_constants(64, 1 << 62)",
    ],
)
def test_states_of_a_generator_without_memory(states):
    done = run_python(
        SHORT
        + f"""
import numpy as np
from pygpu import _core
_core.random_seeded("Mrg32k3a", np.zeros(1, np.uint32), 1)
words = np.zeros(1 << 20, np.uint32)
short(lambda: _core.{states})
_core.random_seeded("Xorwow", np.zeros(1 << 10, np.uint32), 0)
"""
    )
    assert done.stdout.startswith("MemoryError out of memory: the states of a generator"), (
        done.stdout
    )
