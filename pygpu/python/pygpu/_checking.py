"""Checks of kernels for faults while they run on the host."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ._core import Checking

_PACKAGE = os.path.dirname(__file__)


@contextmanager
def checking(*kinds: str) -> Iterator[None]:
    """Checks kernels that are launched in its block for errors, on the host backend.

    An error in a kernel raises an exception, at the launch or at its stream's synchronization. The
    exception names the kernel, the line, the block, the thread, the array, and where the program
    allocated the array. Raises ``Unsupported`` on a GPU's backend. The setting applies to the whole
    process: ``PYGPU_CHECK=1`` checks a program, ``PYGPU_CHECK=bounds,races`` for these kinds.

    >>> import pygpu
    >>> from pygpu.compiler import SourceModule
    >>> module = SourceModule("__global__ void next(int *a) { a[threadIdx.x + 1] = 0; }")
    >>> if pygpu.choose_backend() == "host":
    ...     with pygpu.checking():
    ...         a = gpuarray.zeros(4, np.int32)
    ...         module.get_function("next")(a, block=(3, 1, 1))

    Parameters
    ----------
    *kinds : {"bounds", "uninitialised", "races", "barriers", "arithmetic", "first"}. The errors to
        look for; all by default. "bounds": accesses outside of live allocations. "uninitialised":
        reads of unwritten memory allocated in the block. "races": unordered accesses of two
        threads, of which one writes and one is not atomic. "barriers": threads of a block that wait
        at different barriers. "arithmetic": divisions of integers by zero, and misaligned
        addresses. "first" checks only the first two launches of each kernel.
    """
    begun = Checking(",".join(kinds) or "all")
    try:
        yield
    finally:
        begun.end()


def place() -> str | None:
    """Returns the file and line of the program that calls this package."""
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
