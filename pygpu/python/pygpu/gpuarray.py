"""Arrays in device memory, with the names of ``pycuda.gpuarray``.

Functions broadcast and choose dtypes as numpy does. Where PyCUDA has its own rule (a
reduction keeps the dtype of its array and returns an array without axes) it is PyCUDA's.

An argument ``out`` receives the result: an array of a shape that the arguments broadcast to, and
of a dtype that the result fits within its kind (numpy's rule ``same_kind``).

numpy's own functions refuse a ``GPUArray`` with a ``TypeError`` that says what to call; only
those about shape and dtype (``np.shape``, ``np.ndim``, ``np.size``, ``np.result_type``, ...)
answer. Operators with numpy's scalars work on the device.

An integer to a negative power is refused if the exponent is a number, as by numpy. In an array
of exponents a device cannot refuse it: there the result is what the exact quotient rounds to
towards zero (1 or -1 for a base of 1 or -1, else 0).
"""

from __future__ import annotations

import builtins as _builtins
import functools as _functools
import math as _math
from typing import Any

import numpy as np

from . import _core
from ._core import ArrayFlags, GPUArray
from ._vector_types import vec

__all__ = [
    "ArrayFlags",
    "GPUArray",
    "all",
    "any",
    "arange",
    "concatenate",
    "dot",
    "empty",
    "empty_like",
    "full",
    "if_positive",
    "logical_and",
    "logical_not",
    "logical_or",
    "max",
    "maximum",
    "min",
    "minimum",
    "multi_put",
    "multi_take",
    "multi_take_put",
    "ones",
    "ones_like",
    "reshape",
    "splay",
    "stack",
    "subset_dot",
    "subset_max",
    "subset_min",
    "subset_sum",
    "sum",
    "take",
    "to_gpu",
    "to_gpu_async",
    "transpose",
    "vec",
    "where",
    "zeros",
    "zeros_like",
]


def _expect(name: str, value: Any) -> Any:
    """`value`, if it is a GPUArray."""
    if isinstance(value, GPUArray):
        return value
    hint = "; to_gpu copies a numpy array to the device" if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name} is of type {type(value).__name__}; a GPUArray is needed{hint}")


def _expect_all(name: str, values: Any) -> list[GPUArray]:
    """The entries of a sequence of GPUArrays."""
    if isinstance(values, GPUArray) or not _iterable(values):
        raise TypeError(
            f"{name} is of type {type(values).__name__}; a sequence of GPUArrays is needed"
        )
    return [_expect(f"{name}[{position}]", value) for position, value in enumerate(values)]


def _iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes)


# -- new arrays ---------------------------------------------------------------------------


def to_gpu(ary: Any, allocator: Any = None) -> GPUArray:
    """Copies a numpy array to the device; its axes keep their order in memory."""
    return _core.to_gpu(ary, allocator)


def to_gpu_async(ary: Any, allocator: Any = None, stream: Any = None) -> GPUArray:
    """As :func:`to_gpu`, queued on a stream."""
    return _core.to_gpu(ary, allocator, stream, False)


empty = GPUArray


def full(
    shape: Any, fill_value: Any, dtype: Any = None, allocator: Any = None, order: str | None = "C"
) -> GPUArray:
    """A new array, every element ``fill_value``."""
    if dtype is None:
        dtype = (
            fill_value.dtype if isinstance(fill_value, GPUArray) else np.asarray(fill_value).dtype
        )
    return _core.full(shape, dtype, fill_value, allocator, order)


def zeros(
    shape: Any, dtype: Any = np.float64, allocator: Any = None, order: str | None = "C"
) -> GPUArray:
    """A new array of zeros."""
    return _core.zeros(shape, dtype, allocator, order)


def ones(
    shape: Any, dtype: Any = np.float64, allocator: Any = None, order: str | None = "C"
) -> GPUArray:
    """A new array of ones."""
    dtype = np.dtype(dtype)
    return _core.full(shape, dtype, np.ones((), dtype), allocator, order)


def empty_like(other_ary: GPUArray, dtype: Any = None, order: str | None = "K") -> GPUArray:
    """A new array of the shape of ``other_ary``, and of its dtype unless one is given.

    ``order`` is that of the new array in memory: "C", "F", "A" (F if ``other_ary`` is so
    only) or "K" (as near to that of ``other_ary`` as an array without gaps can be).
    """
    _expect("other_ary", other_ary)
    dtype = other_ary.dtype if dtype is None else np.dtype(dtype)
    allocator = other_ary.allocator
    flags = other_ary.flags
    if order == "A":
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if order in ("C", "F"):
        return GPUArray(other_ary.shape, dtype, allocator, order=order)
    if order not in ("K", None):
        raise ValueError(f"Unsupported order: {order!r}; allowed are C, F, A and K")
    if flags.c_contiguous or other_ary.ndim <= 1:
        return GPUArray(other_ary.shape, dtype, allocator)
    axes = sorted(range(other_ary.ndim), key=lambda axis: (-abs(other_ary.strides[axis]), axis))
    strides = [0] * other_ary.ndim
    step = dtype.itemsize
    for axis in reversed(axes):
        strides[axis] = step
        step *= _builtins.max(1, other_ary.shape[axis])
    return GPUArray(other_ary.shape, dtype, allocator, strides=tuple(strides))


def zeros_like(other_ary: GPUArray, dtype: Any = None, order: str | None = "K") -> GPUArray:
    """As :func:`empty_like`, filled with zeros."""
    result = empty_like(other_ary, dtype, order)
    return result.fill(np.zeros((), result.dtype))


def ones_like(other_ary: GPUArray, dtype: Any = None, order: str | None = "K") -> GPUArray:
    """As :func:`empty_like`, filled with ones."""
    result = empty_like(other_ary, dtype, order)
    return result.fill(np.ones((), result.dtype))


def arange(*args: Any, **kwargs: Any) -> GPUArray:
    """``arange([start,] stop[, step], dtype=None)``: evenly spaced numbers below ``stop``.

    For numbers with fractions the length is ``ceil((stop - start) / step)``.
    """
    names = ("start", "stop", "step")
    dtype = kwargs.pop("dtype", None)
    kwargs.pop("stream", None)
    if args and isinstance(args[-1], (np.dtype, type)):
        if dtype is not None:
            raise ValueError("may not specify 'dtype' by position and keyword")
        args, dtype = args[:-1], args[-1]
    if len(args) > 3:
        raise ValueError(f"too many arguments: {len(args)}; start, stop and step are allowed")
    if len(args) == 3 and not kwargs:
        return _sequence(*args, dtype)
    positions = names[1:2] if len(args) == 1 else names
    given = dict(zip(positions, args))
    for name, value in kwargs.items():
        if name not in names:
            raise ValueError(f"unexpected keyword argument '{name}'")
        if name in given:
            raise ValueError(f"may not specify '{name}' by position and keyword")
        given[name] = value
    if "stop" not in given:
        raise ValueError("stop argument required")
    return _sequence(given.get("start", 0), given["stop"], given.get("step", 1), dtype)


def _sequence(start: Any, stop: Any, step: Any, dtype: Any) -> GPUArray:
    if dtype is None:
        dtype = np.array([start, stop, step]).dtype
    if step == 0:
        raise ValueError("step is 0; it must not be")
    length = _builtins.max(0, _math.ceil((stop - start) / step))
    return _core.sequence(start, step, length, dtype)


def _rebuild(cls: type, data: Any) -> GPUArray:
    """Makes an array from its pickled elements; its class is kept."""
    plain = to_gpu(data)
    if cls is GPUArray:
        return plain
    return cls(plain.shape, plain.dtype, gpudata=plain.gpudata, strides=plain.strides)


# -- elements by index --------------------------------------------------------------------


def take(
    a: GPUArray, indices: GPUArray, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """The elements of ``a``, read as along one axis, that ``indices`` names.

    A negative index counts from the end; one outside the array gives zero.
    """
    return _core.take(a, indices, out, stream)


def _outputs(arrays: Any, out: Any, shape: Any, names: str = "out and arrays") -> list[GPUArray]:
    if out is None:
        return [GPUArray(shape, a.dtype, a.allocator) for a in arrays]
    _expect_all("out", out)
    if len(out) != len(arrays):
        raise ValueError(
            f"{names} must have the same length; they have {len(out)} and {len(arrays)}"
        )
    for one, a in zip(out, arrays):
        if one.dtype != a.dtype:
            raise TypeError(
                f"arrays and out must have the same dtype, not {a.dtype} and {one.dtype}"
            )
    return out


def multi_take(
    arrays: Any, indices: GPUArray, out: Any = None, stream: Any = None
) -> list[GPUArray]:
    """:func:`take` from each of several arrays."""
    arrays = _expect_all("arrays", arrays)
    _expect("indices", indices)
    out = _outputs(arrays, out, indices.shape)
    for a, one in zip(arrays, out):
        take(a, indices, one, stream)
    return out


def _check_index_vectors(dest_indices: GPUArray, src_indices: GPUArray) -> None:
    _expect("dest_indices", dest_indices)
    _expect("src_indices", src_indices)
    if src_indices.dtype != dest_indices.dtype:
        raise TypeError(
            "src_indices and dest_indices must have the same dtype, not "
            f"{src_indices.dtype} and {dest_indices.dtype}"
        )
    if len(src_indices.shape) != 1:
        raise ValueError(f"src_indices must be 1D; its shape is {src_indices.shape}")
    if src_indices.shape != dest_indices.shape:
        raise ValueError(
            "src_indices and dest_indices must have the same shape, not "
            f"{src_indices.shape} and {dest_indices.shape}"
        )


def multi_take_put(
    arrays: Any,
    dest_indices: GPUArray,
    src_indices: GPUArray,
    dest_shape: Any = None,
    out: Any = None,
    stream: Any = None,
    src_offsets: Any = None,
) -> list[GPUArray]:
    """Stores ``arrays[k][src_indices]`` at ``dest_indices`` of the k-th output.

    ``src_offsets`` shifts the source indices, by one number for each array.
    """
    arrays = _expect_all("arrays", arrays)
    _check_index_vectors(dest_indices, src_indices)
    out = _outputs(arrays, out, dest_shape)
    if src_offsets is None:
        src_offsets = [0] * len(arrays)
    elif len(src_offsets) != len(arrays):
        raise ValueError(
            f"arrays and src_offsets must have the same length, not {len(arrays)} and "
            f"{len(src_offsets)}"
        )
    for a, one, offset in zip(arrays, out, src_offsets):
        source = src_indices + offset if offset else src_indices
        _core.put(one, dest_indices, take(a, source, stream=stream), stream)
    return out


def multi_put(
    arrays: Any, dest_indices: GPUArray, dest_shape: Any = None, out: Any = None, stream: Any = None
) -> list[GPUArray]:
    """Stores the elements of each array at ``dest_indices`` of its output."""
    arrays = _expect_all("arrays", arrays)
    _expect("dest_indices", dest_indices)
    if len(dest_indices.shape) != 1:
        raise ValueError(f"dest_indices must be 1D; its shape is {dest_indices.shape}")
    out = _outputs(arrays, out, dest_shape)
    for a, one in zip(arrays, out):
        _core.put(one, dest_indices, a, stream)
    return out


# -- shapes -------------------------------------------------------------------------------


def concatenate(arrays: Any, axis: int = 0, allocator: Any = None) -> GPUArray:
    """Joins arrays along an axis that they have."""
    return _core.concatenate(arrays, axis, allocator)


def stack(arrays: Any, axis: int = 0, allocator: Any = None) -> GPUArray:
    """Joins arrays of one shape along a new axis."""
    return _core.stack(arrays, axis, allocator)


def transpose(a: GPUArray, axes: Any = None) -> GPUArray:
    """The view with its axes in another order; reversed without one."""
    return _expect("a", a).transpose(axes)


def reshape(a: GPUArray, *shape: Any, **kwargs: Any) -> GPUArray:
    """The elements under another shape."""
    return _expect("a", a).reshape(*shape, **kwargs)


# -- choices ------------------------------------------------------------------------------


def if_positive(
    criterion: GPUArray, then_: Any, else_: Any, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """``then_`` where ``criterion`` is greater than zero, else ``else_``."""
    return _core.select(criterion, then_, else_, True, out, stream)


def where(
    criterion: GPUArray, then_: Any, else_: Any, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """``then_`` where ``criterion`` is not zero, else ``else_``."""
    return _core.select(criterion, then_, else_, False, out, stream)


def minimum(a: Any, b: Any, out: GPUArray | None = None, stream: Any = None) -> GPUArray:
    """The smaller of corresponding elements; NaN if either is."""
    return _core.apply_binary("Minimum", a, b, out, stream)


def maximum(a: Any, b: Any, out: GPUArray | None = None, stream: Any = None) -> GPUArray:
    """The larger of corresponding elements; NaN if either is."""
    return _core.apply_binary("Maximum", a, b, out, stream)


def _logical(name: str, of_numbers: Any, x1: Any, x2: Any, out: Any, allocator: Any) -> GPUArray:
    is_array = isinstance(x1, GPUArray) or isinstance(x2, GPUArray)
    if not is_array and np.isscalar(x1) and np.isscalar(x2):
        if out is None:
            out = GPUArray((), np.bool_, allocator)
        return out.fill(of_numbers(x1, x2))
    return _core.apply_binary(name, x1, x2, out)


def logical_and(
    x1: Any, x2: Any, /, out: GPUArray | None = None, *, allocator: Any = None
) -> GPUArray:
    """True where both are not zero."""
    return _logical("LogicalAnd", np.logical_and, x1, x2, out, allocator)


def logical_or(
    x1: Any, x2: Any, /, out: GPUArray | None = None, *, allocator: Any = None
) -> GPUArray:
    """True where either is not zero."""
    return _logical("LogicalOr", np.logical_or, x1, x2, out, allocator)


def logical_not(x: Any, /, out: GPUArray | None = None, *, allocator: Any = None) -> GPUArray:
    """True where the element is zero."""
    if not isinstance(x, GPUArray) and np.isscalar(x):
        out = GPUArray((), np.bool_, allocator) if out is None else out
        return out.fill(np.logical_not(x))
    return _core.apply_unary("LogicalNot", x, out)


# -- reductions ---------------------------------------------------------------------------


def sum(a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None) -> GPUArray:
    """The sum of all elements, in ``dtype`` or that of ``a``, as an array without axes."""
    return _core.reduce("Sum", a, dtype, stream, allocator)


def any(a: GPUArray, stream: Any = None, allocator: Any = None) -> GPUArray:
    """True, as an array without axes, if any element is not zero."""
    return _core.reduce("Any", a, None, stream, allocator)


def all(a: GPUArray, stream: Any = None, allocator: Any = None) -> GPUArray:
    """True, as an array without axes, if no element is zero."""
    return _core.reduce("All", a, None, stream, allocator)


def min(a: GPUArray, stream: Any = None) -> GPUArray:
    """The smallest element, as an array without axes."""
    return _core.reduce("Minimum", a, None, stream)


def max(a: GPUArray, stream: Any = None) -> GPUArray:
    """The largest element, as an array without axes."""
    return _core.reduce("Maximum", a, None, stream)


def dot(
    a: GPUArray, b: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """The sum of the products of corresponding elements, as an array without axes."""
    return _core.dot(a, b, dtype, stream, allocator)


def subset_sum(
    subset: GPUArray, a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """The sum of the elements of ``a`` that the indices in ``subset`` name."""
    return _core.reduce_subset("Sum", subset, a, dtype, stream, allocator)


def subset_dot(
    subset: GPUArray,
    a: GPUArray,
    b: GPUArray,
    dtype: Any = None,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """The dot product of the elements of ``a`` and ``b`` that ``subset`` names."""
    x, y = take(a, subset, stream=stream), take(b, subset, stream=stream)
    return _core.dot(x, y, dtype, stream, allocator)


def subset_min(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """The smallest of the elements of ``a`` that ``subset`` names."""
    return _core.reduce_subset("Minimum", subset, a, None, stream)


def subset_max(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """The largest of the elements of ``a`` that ``subset`` names."""
    return _core.reduce_subset("Maximum", subset, a, None, stream)


# -- launch shapes -----------------------------------------------------------------------


@_functools.lru_cache(maxsize=1024)
def _splay(n: int, multiprocessors: int) -> tuple[tuple[int, int], tuple[int, int, int]]:
    warp, most_threads, most_blocks = 32, 128, 32 * multiprocessors
    per_block = -(-n // most_blocks)
    threads = _builtins.min(most_threads, _builtins.max(warp, -(-per_block // warp) * warp))
    blocks = _builtins.max(1, _builtins.min(most_blocks, -(-n // threads)))
    return (blocks, 1), (threads, 1, 1)


def splay(n: int, dev: Any = None) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """A grid and a block for work on ``n`` elements: blocks of up to 128 threads, as many as
    keep the device busy; each thread then walks over the elements with the grid's stride."""
    ordinal = _core.current_ordinal() if dev is None else dev.ordinal
    return _splay(int(n), _core.device_attribute(ordinal, 16))
