"""New arrays: from numpy arrays, of one value, of evenly spaced numbers.

An ``allocator`` takes a number of bytes and returns memory, for the array and for the results of
its operations. Every function here raises ``MemoryError`` if the device has too little free memory.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from .. import _core
from .._arguments import extents, gpu_array, whole
from .._core import GPUArray
from . import Allocator, Array, DType, OnStream, Order, Shape
from .shapes import diagonal, moveaxis

_PLAIN = list | tuple | bool | int | float | complex | np.generic


def to_gpu(ary: Array, allocator: Allocator = None) -> GPUArray:
    """Copies the numpy array ``ary`` to the device, in memory of ``allocator``.

    The copy has the same memory order. The program may change ``ary`` once the call returns.

    >>> gpuarray.to_gpu(np.array([1, 2])).get()
    array([1, 2])
    """
    # Other objects are arrays, or refused later.
    if not isinstance(ary, np.ndarray) and isinstance(ary, _PLAIN):
        ary = np.asarray(ary)
    return _core.to_gpu(ary, allocator)


def to_gpu_async(ary: Array, allocator: Allocator = None, stream: OnStream = None) -> GPUArray:
    """Copies ``ary`` like :func:`to_gpu`, queued on ``stream``, in memory of ``allocator``.

    A page-locked array must not be changed before the copy has run.

    >>> stream = driver.Stream()
    >>> a = gpuarray.to_gpu_async(np.array([1, 2]), stream=stream)
    >>> stream.synchronize()
    >>> a.get()
    array([1, 2])
    """
    return _core.to_gpu(ary, allocator, stream, False)


empty = GPUArray


def full(
    shape: Shape,
    fill_value: Array,
    dtype: DType = None,
    allocator: Allocator = None,
    order: Order = "C",
) -> GPUArray:
    """Returns a new array filled with one value, as :func:`numpy.full`."""
    if dtype is None:
        dtype = getattr(fill_value, "dtype", None) or np.asarray(fill_value).dtype
    return _core.full(shape, dtype, _converted(fill_value, dtype), allocator, order)


def _converted(value: Any, dtype: Any) -> Any:
    """Returns the value converted as in numpy: numbers wrap and are truncated."""
    if isinstance(value, GPUArray):
        return value
    value = np.full(np.shape(value), value, dtype)
    return _core.to_gpu(value) if value.ndim else value


def zeros(
    shape: Shape, dtype: DType = np.float64, allocator: Allocator = None, order: Order = "C"
) -> GPUArray:
    """Returns a new array of zeros, as :func:`numpy.zeros`."""
    return _core.zeros(shape, dtype, allocator, order)


def ones(
    shape: Shape, dtype: DType = np.float64, allocator: Allocator = None, order: Order = "C"
) -> GPUArray:
    """Returns a new array of ones, as :func:`numpy.ones`."""
    dtype = np.dtype(dtype)
    return _core.full(shape, dtype, np.ones((), dtype), allocator, order)


def empty_like(
    other_ary: GPUArray, dtype: DType = None, order: Order = "K", *, shape: Shape | None = None
) -> GPUArray:
    """Returns a new array like another, on its stream, as :func:`numpy.empty_like`."""
    gpu_array("other_ary", other_ary)
    if order == "A":
        flags = other_ary.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    wanted = other_ary.shape if shape is None else extents("shape", shape)
    if order in ("C", "F"):
        return _core.new_like(other_ary, wanted, dtype, order)
    if order not in ("K", None):
        raise ValueError(f"Unsupported order: {order!r}; allowed are C, F, A and K")
    if shape is None:
        return _core.new_like(other_ary, dtype=dtype)
    if len(wanted) != other_ary.ndim:
        return _core.new_like(other_ary, wanted, dtype)
    steps = [abs(step) for step in other_ary.strides]
    axes = sorted(range(len(steps)), key=lambda axis: -steps[axis])
    made = _core.new_like(other_ary, tuple(wanted[axis] for axis in axes), dtype)
    return made.transpose([axes.index(axis) for axis in range(len(axes))]) if axes else made


def zeros_like(
    other_ary: GPUArray, dtype: DType = None, order: Order = "K", *, shape: Shape | None = None
) -> GPUArray:
    """Returns a new array of zeros like another, as :func:`numpy.zeros_like`."""
    result = empty_like(other_ary, dtype, order, shape=shape)
    return result.fill(np.zeros((), result.dtype))


def ones_like(
    other_ary: GPUArray, dtype: DType = None, order: Order = "K", *, shape: Shape | None = None
) -> GPUArray:
    """Returns a new array of ones like another, as :func:`numpy.ones_like`."""
    return full_like(other_ary, 1, dtype, order, shape=shape)


def full_like(
    other_ary: GPUArray,
    fill_value: Array,
    dtype: DType = None,
    order: Order = "K",
    *,
    shape: Shape | None = None,
) -> GPUArray:
    """Returns a new array of one value like another, as :func:`numpy.full_like`."""
    result = empty_like(other_ary, dtype, order, shape=shape)
    return result.fill(_converted(fill_value, result.dtype))


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DType = np.float64, order: Order = "C"
) -> GPUArray:
    """Returns a matrix with ones on a diagonal, as :func:`numpy.eye`."""
    result = zeros((whole("N", N), N if M is None else whole("M", M)), dtype, order=order)
    diagonal(result, k).fill(np.ones((), result.dtype))
    return result


def identity(n: int, dtype: DType = np.float64) -> GPUArray:
    """Returns a square matrix with ones on the diagonal, as :func:`numpy.identity`."""
    return eye(n, dtype=dtype)


@overload
def linspace(
    start: Array,
    stop: Array,
    num: int = ...,
    endpoint: bool = ...,
    retstep: Literal[False] = ...,
    dtype: DType = ...,
    axis: int = ...,
) -> GPUArray: ...
@overload
def linspace(
    start: Array,
    stop: Array,
    num: int = ...,
    endpoint: bool = ...,
    *,
    retstep: Literal[True],
    dtype: DType = ...,
    axis: int = ...,
) -> tuple[GPUArray, Any]: ...
def linspace(
    start: Array,
    stop: Array,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DType = None,
    axis: int = 0,
) -> Any:
    """Returns evenly spaced numbers, as :func:`numpy.linspace`."""
    count = whole("num", num)
    if count < 0:
        raise ValueError(f"num is {count}; Number of samples must be non-negative.")
    ends: list[Any] = [
        it if np.ndim(it) == 0 or isinstance(it, GPUArray) else to_gpu(np.asarray(it))
        for it in (start, stop)
    ]
    compute = np.result_type(*ends, 0.0)
    first, last = (it.astype(compute) if isinstance(it, GPUArray) else it for it in ends)
    divisor = count - 1 if endpoint else count
    apart = last - first
    step = apart / divisor if divisor > 0 else np.nan
    values = _core.sequence(0, 1, count, compute)
    values = values[(..., *(None,) * max(map(np.ndim, ends)))]
    values = (values * (step if divisor > 0 else apart) + first).astype(compute)
    if endpoint and count > 1:
        values[-1] = last
    if dtype is not None and np.dtype(dtype) != compute:
        if np.issubdtype(dtype, np.integer):
            values = _core.universal_functions["floor"](values)
        values = values.astype(dtype)
    values = moveaxis(values, 0, axis)
    return (values, step) if retstep else values


def arange(*args: Any, **kwargs: Any) -> GPUArray:
    """Returns the numbers from `start` to below `stop`, `step` apart, as :func:`numpy.arange`."""
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
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if dtype is None:
        dtype = np.array([start, stop, step]).dtype
    if step == 0:
        raise ValueError("step is 0; another number is needed")
    length = max(0, math.ceil((stop - start) / step))
    if length == 0:
        start, step = 0, 1
    elif np.dtype(dtype).kind in "iu":
        # Integers wrap, for example for a negative step in an unsigned type.
        start, step = int(start), np.array(int(step)).astype(dtype)[()]
    return _core.sequence(start, step, length, dtype)
