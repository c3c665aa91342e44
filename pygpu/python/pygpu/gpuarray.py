"""Arrays in device memory, with the names of ``pycuda.gpuarray``.

Functions broadcast and choose dtypes as numpy does, except where PyCUDA has its own rule: a
reduction keeps the dtype of its array and returns an array without axes.

Many functions have these arguments:

- ``out``: an array that receives the result. It has the shape that the arguments broadcast to, and
  a dtype of the result's kind (numpy's rule ``same_kind``).
- ``stream``: the stream of the work; by default the array's stream.
- ``allocator``: a function that takes a number of bytes and returns the memory of the result; by
  default the array's allocator.

numpy's own functions work on the device if this module has the same function, with numpy's dtypes:
``np.sum(a, axis=0)``, ``np.add(a, 1)``, ``np.concatenate``. All others raise a ``TypeError`` that
says what to call; none copies elements to the host.

An integer to a negative power raises an error if the exponent is a number, as in numpy. If the
exponents are an array, the result is the exact quotient, rounded towards zero.

Examples assume ``import numpy as np``, ``from pygpu import autoinit, driver, gpuarray``.
"""

from __future__ import annotations

import builtins as _builtins
import functools as _functools
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._arguments import wrong_type as _wrong_type
from ._array import Allocator as _Allocator
from ._array import OnStream as _OnStream
from ._array import Operand as _Operand
from ._array import Out as _Out
from ._array.as_numpy import HOMES as _HOMES
from ._core import ArrayFlags as ArrayFlags
from ._core import GPUArray as GPUArray
from ._core import dot as dot
from ._core import matmul as matmul
from ._lazy import exports as _exports
from .cumath import __all__ as _cumath  # type: ignore[attr-defined]

# Functions with numpy's names, except PyCUDA's that differ from numpy's for integers.
_OF_CUMATH = sorted({*_cumath}.difference(("fabs", "frexp", "modf", "minimum", "maximum")))

if TYPE_CHECKING:
    from ._array.advanced_indexing import *  # noqa: F403
    from ._array.as_numpy.conversion import *  # noqa: F403
    from ._array.as_numpy.linear import *  # noqa: F403
    from ._array.as_numpy.numeric import *  # noqa: F403
    from ._array.as_numpy.order import *  # noqa: F403
    from ._array.as_numpy.selection import *  # noqa: F403
    from ._array.as_numpy.shaping import *  # noqa: F403
    from ._array.as_numpy.statistics import *  # noqa: F403
    from ._array.creation import *  # noqa: F403
    from ._array.reductions import *  # noqa: F403
    from ._array.shapes import *  # noqa: F403
    from ._core import Stream
    from ._driver.device import Device
    from ._exchange.protocols import from_cuda_array_interface as from_cuda_array_interface
    from ._exchange.protocols import from_dlpack as from_dlpack
    from ._kernels.c_types import vec as vec
    from .characterize import has_double_support as has_double_support
    from .cumath import *  # noqa: F403
else:
    __getattr__, __dir__, __all__ = _exports(
        __name__,
        {
            "._array.advanced_indexing": """
                compress flatnonzero multi_put multi_take multi_take_put nonzero take""",
            "._array.creation": """
                arange empty empty_like eye full full_like identity linspace ones ones_like
                to_gpu to_gpu_async zeros zeros_like""",
            "._array.reductions": """
                all amax amin any argmax argmin count_nonzero cumprod cumsum max mean min nanprod
                nansum prod ptp std subset_dot subset_max subset_min subset_sum sum var""",
            "._array.shapes": """
                array_split broadcast_arrays broadcast_to concatenate diagonal expand_dims flip
                fliplr flipud hstack moveaxis repeat reshape roll split stack swapaxes tile trace
                transpose tril triu vstack""",
            "._kernels.c_types": "vec",
            "._exchange.protocols": "from_cuda_array_interface from_dlpack",
            ".characterize": "has_double_support",
            ".cumath": " ".join(_OF_CUMATH),
            **_HOMES,
        },
    )
    __all__ += ["ArrayFlags", "GPUArray", "dot", "if_positive", "logical_and", "logical_not"]
    __all__ += ["logical_or", "matmul", "maximum", "minimum", "splay", "where"]

_minimum, _maximum, _logical_and, _logical_or, _logical_not = map(
    _core.named_functions["gpuarray"].__getitem__,
    ("minimum", "maximum", "logical_and", "logical_or", "logical_not"),
)


def if_positive(
    criterion: GPUArray,
    then_: _Operand,
    else_: _Operand,
    out: _Out = None,
    stream: _OnStream = None,
) -> GPUArray:
    """Returns ``then_`` where ``criterion`` is positive, else ``else_``, in ``out`` on ``stream``.

    >>> gpuarray.if_positive(gpuarray.arange(3), 1, -1).get()
    array([-1,  1,  1])
    """
    return _core.select(criterion, then_, else_, True, out, stream)


def where(
    criterion: GPUArray,
    then_: _Operand,
    else_: _Operand,
    out: _Out = None,
    stream: _OnStream = None,
) -> GPUArray:
    """Returns ``then_`` where ``criterion`` is not zero, else ``else_``, as :func:`numpy.where`."""
    return _core.select(criterion, then_, else_, False, out, stream)


def minimum(a: _Operand, b: _Operand, out: _Out = None, stream: _OnStream = None) -> GPUArray:
    """Returns the smaller of corresponding elements, as :func:`numpy.minimum`."""
    return _minimum(a, b, out, stream)


def maximum(a: _Operand, b: _Operand, out: _Out = None, stream: _OnStream = None) -> GPUArray:
    """Returns the larger of corresponding elements, as :func:`numpy.maximum`."""
    return _maximum(a, b, out, stream)


def _logical(of_arrays: Any, of_numbers: Any, out: Any, allocator: Any, *operands: Any) -> GPUArray:
    if _builtins.all(map(np.isscalar, operands)):
        out = GPUArray((), np.bool_, allocator) if out is None else out
        return out.fill(of_numbers(*operands))
    return of_arrays(*operands, out)


def logical_and(
    x1: _Operand, x2: _Operand, /, out: _Out = None, *, allocator: _Allocator = None
) -> GPUArray:
    """Returns True where both elements are not zero, as :func:`numpy.logical_and`.

    ``allocator`` allocates the result if both arguments are numbers.
    """
    return _logical(_logical_and, np.logical_and, out, allocator, x1, x2)


def logical_or(
    x1: _Operand, x2: _Operand, /, out: _Out = None, *, allocator: _Allocator = None
) -> GPUArray:
    """Returns True where either element is not zero, as :func:`numpy.logical_or`."""
    return _logical(_logical_or, np.logical_or, out, allocator, x1, x2)


def logical_not(x: _Operand, /, out: _Out = None, *, allocator: _Allocator = None) -> GPUArray:
    """Returns True where the element is zero, as :func:`numpy.logical_not`."""
    return _logical(_logical_not, np.logical_not, out, allocator, x)


@_functools.lru_cache(maxsize=1024)
def _splay(n: int, multiprocessors: int) -> tuple[tuple[int, int], tuple[int, int, int]]:
    warp, most_threads, most_blocks = 32, 128, 32 * multiprocessors
    per_block = -(-n // most_blocks)
    threads = _builtins.min(most_threads, _builtins.max(warp, -(-per_block // warp) * warp))
    blocks = _builtins.max(1, _builtins.min(most_blocks, -(-n // threads)))
    return (blocks, 1), (threads, 1, 1)


def splay(n: int, dev: Device | None = None) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """Returns a grid and a block for ``n`` elements on device ``dev``, by default the current one.

    A block has up to 128 threads, and the grid as many blocks as fill the device. Each thread must
    loop over the elements with the grid's stride.

    >>> grid, block = gpuarray.splay(100)
    >>> block[1:]
    (1, 1)
    """
    # int() also reads texts.
    if not hasattr(n, "__int__"):
        raise _wrong_type("n", n, "a number of elements is needed")
    if dev is not None and not hasattr(dev, "ordinal"):
        raise _wrong_type("dev", dev, "a Device is needed")
    ordinal = _core.current_ordinal() if dev is None else dev.ordinal
    return _splay(int(n), _core.device_attribute(ordinal, 16))


def _get_common_dtype(obj1: Any, obj2: Any) -> np.dtype[Any]:
    from .characterize import has_double_support  # for few programs, as the next
    from .compyte.array import get_common_dtype

    return get_common_dtype(obj1, obj2, has_double_support())


def _memcpy_discontig(
    dst: Any, src: Any, async_: bool = False, stream: Stream | None = None
) -> None:
    """Copies between GPUArrays or numpy arrays of one shape and dtype: PyCUDA's helper."""
    for name, array in (("dst", dst), ("src", src)):
        if not isinstance(array, GPUArray | np.ndarray):
            raise _wrong_type(name, array, "a GPUArray or a numpy array is needed")
    if dst.shape != src.shape:
        raise ValueError(f"dst has shape {dst.shape}, and src {src.shape}; they must be the same")
    if dst.dtype != src.dtype:
        raise TypeError(f"dst has dtype {dst.dtype}, and src {src.dtype}; they must be the same")
    if isinstance(src, GPUArray) and isinstance(dst, GPUArray):
        target = dst if stream is None else dst.on(stream)
        GPUArray.__setitem__(target, Ellipsis, src)
        if not async_:
            (_core if stream is None else stream).synchronize()
    elif isinstance(dst, GPUArray):
        GPUArray.set(dst, src, async_=async_, stream=stream)
    elif isinstance(src, GPUArray):
        GPUArray.get(src, dst, async_=async_, stream=stream)
    else:
        dst[...] = src


def _rebuild(cls: type, data: Any) -> GPUArray:
    """Makes an array from its pickled elements, of the same class."""
    plain = _core.to_gpu(data)
    if cls is GPUArray:
        return plain
    return cls(plain.shape, plain.dtype, gpudata=plain.gpudata, strides=plain.strides)
