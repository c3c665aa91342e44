"""Functions whose element-wise operations are computed together."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from .._core import fused

_F = TypeVar("_F", bound=Callable[..., Any])
# The flags of code for generators, coroutines and asynchronous generators.
_RUNS_LATER = 0x20 | 0x80 | 0x200


def fuse(function: _F) -> _F:
    """Decorates ``function``, so that its element-wise operations are computed together.

    The function's body runs as a block of `fused`, at each call. The arrays that it returns have
    been computed. Generators and coroutines, whose body runs later, are refused.

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
