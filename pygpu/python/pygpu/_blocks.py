"""The ``with`` block that checks kernels, and the decorator that fuses operations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from ._core import Checking, fused

_F = TypeVar("_F", bound=Callable[..., Any])
# The flags of code for generators, coroutines and asynchronous generators.
_RUNS_LATER = 0x20 | 0x80 | 0x200


@contextmanager
def checking(*kinds: str) -> Iterator[None]:
    """Checks kernels that are launched in the ``with`` block for errors, on the host backend.

    An error in a kernel raises an exception, at the launch or when the stream is synchronized. The
    exception names the kernel, the line, the block, the thread, the array, and where the program
    allocated the array. Raises ``Unsupported`` on a GPU's backend. The setting applies to the whole
    process. ``PYGPU_CHECK=1`` or ``PYGPU_CHECK=bounds,races`` checks a whole program.

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
        reads of memory allocated in the ``with`` block and not yet written. "races": unordered
        accesses of two threads, at least one a write, at least one not atomic. "barriers": threads
        of a block that wait at different barriers. "arithmetic": divisions of integers by zero, and
        misaligned addresses. "first" checks only the first two launches of each kernel.
    """
    begun = Checking(",".join(kinds) or "all")
    try:
        yield
    finally:
        begun.end()


def fuse(function: _F) -> _F:
    """Decorates ``function``, so that its element-wise operations are computed together.

    At each call, the function's body runs as a block of `fused`. The arrays that the function
    returns have been computed. Generators and coroutines are refused.

    >>> import pygpu
    >>> @pygpu.fuse
    ... def smooth_step(x):
    ...     x = gpuarray.minimum(gpuarray.maximum(x, 0), 1)
    ...     return x * x * (3 - 2 * x)
    >>> smooth_step(gpuarray.to_gpu(np.array([-1.0, 0.25, 2.0])))
    array([0.     , 0.15625, 1.     ])
    """
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _RUNS_LATER:
        name = getattr(function, "__qualname__", "function")
        needed = "put `with pygpu.fused():` around operations in it instead"
        raise TypeError(f"{name} is a generator or a coroutine, whose body runs later; {needed}")
    block = fused()

    @wraps(function)
    def together(*arguments: Any, **named: Any) -> Any:
        with block:
            return function(*arguments, **named)

    return cast(_F, together)
