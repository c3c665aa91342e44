"""Reductions along axes or of all elements, positions of extremes, and running results.

By default, the stream of ``a`` runs the work, and the allocator of ``a`` allocates the result.

Examples
--------
>>> a, subset = gpuarray.arange(5) * 10, gpuarray.arange(1, 3)
>>> gpuarray.subset_sum(subset, a), gpuarray.subset_dot(subset, a, a)
(array(30), array(500))
>>> gpuarray.subset_min(subset, a), gpuarray.subset_max(subset, a)
(array(10), array(20))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _core
from .._arguments import along_axis, check_holds, gpu_array, has_fractions, same_shape, stored
from .._core import GPUArray, Reduction
from .._documentation import member
from . import Allocator, Axis, DType, Initial, Mask, OnStream, Operand, Out, Unset
from .advanced_indexing import take
from .creation import to_gpu
from .shapes import broadcast_to

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum"]
__all__ += ["max", "mean", "min", "nanprod", "nansum", "prod", "ptp", "std", "subset_dot"]
__all__ += ["subset_max", "subset_min", "subset_sum", "sum", "var"]

_ufuncs: Mapping[str, _core.UniversalFunction] = _core.universal_functions
# numpy's default of an argument that is not given.
UNSET: Any = np._NoValue
# The value of an element that is left out, and the function that combines an initial value.
REDUCTIONS = {
    "all": (True, "logical_and"),
    "any": (False, "logical_or"),
    "max": (None, "maximum"),
    "min": (None, "minimum"),
    "prod": (1, "multiply"),
    "sum": (0, "add"),
}


def mask_of(where: Any) -> GPUArray | None:
    """Returns ``where`` as a mask; None if all elements are selected."""
    if where is True or where is UNSET:
        return None
    if isinstance(where, np.ndarray) and where.ndim:
        raise TypeError(
            "where is an array of numpy's; send it to the device (gpuarray.to_gpu), or pass a list"
        )
    if not isinstance(where, GPUArray):
        where = to_gpu(np.asarray(where, None if hasattr(where, "dtype") else np.bool_))
    if where.dtype != np.bool_:
        raise TypeError(f"where is of dtype {where.dtype}; truth values are needed")
    return where


def fit_mask(mask: GPUArray, a: GPUArray) -> GPUArray:
    """Returns the mask in the shape of an array."""
    try:
        return broadcast_to(mask, a.shape)
    except ValueError:
        raise ValueError(
            f"where has shape {mask.shape}, which does not broadcast to the shape {a.shape} of a"
        ) from None


def reduce_some(
    name: str,
    a: GPUArray,
    initial: Any = UNSET,
    where: Any = UNSET,
    first: tuple[Any, ...] = (),
    **given: Any,
) -> GPUArray:
    """Calls the method of an array, with numpy's ``initial`` and ``where``.

    ``first`` has the positional arguments of PyCUDA's function, or numpy's if it begins with an
    axis.
    """
    gpu_array("a", a)
    mask = None if where is UNSET else mask_of(where)
    if mask is None and initial is UNSET:
        return getattr(a, name)(*first, **given)
    neutral, join = REDUCTIONS[name]
    if first:
        is_numpys = isinstance(first[0], int | tuple) and not isinstance(first[0], bool)
        own = ("dtype",) if name == "sum" else ()
        names = ("axis", *own, "out", "keepdims") if is_numpys else (*own, "stream", "allocator")
        given.update((key, value) for key, value in zip(names, first) if value is not None)
    if initial is None or (initial is UNSET and neutral is None):
        # No element stands for those that are left out.
        if mask is not None:
            raise ValueError(
                f"reduction operation '{join}' does not have an identity, so to use a where mask "
                "one has to specify 'initial'"
            )
        if a.size == 0 and 0 not in shape_of(a, given):
            why = f"reduction operation {join} which has no identity: a has shape {a.shape}"
            raise ValueError(f"zero-size array to {why}")
        return getattr(a, name)(**given)
    out = given.pop("out", None)
    if stream := given.get("stream"):
        a = a.on(stream)
    if out is not None and given.get("dtype") is None and initial is not UNSET:
        # Computing in the output's dtype holds the initial value.
        check_holds(out, a.dtype)
        a = a.astype(out.dtype)
        given.pop("dtype", None)
        if name in ("prod", "sum"):
            given["dtype"] = out.dtype
    one: Any = None if initial is UNSET else _element(initial, _dtype_of(name, a, given))
    if mask is not None:
        least = one if neutral is None else _element(neutral, a.dtype)
        a = _core.select(fit_mask(mask, a), a, least, False)
    if neutral is None and a.size == 0:
        result = _core.full(shape_of(a, given), a.dtype, one, given.get("allocator"))
        return stored(result, out)
    if one is None:
        return getattr(a, name)(**given, out=out)
    result = getattr(a, name)(**given)
    return _ufuncs[join](result, one, out=result if out is None else same_shape(out, result))


def shape_of(a: GPUArray, given: dict[str, Any]) -> tuple[int, ...]:
    """Returns the shape of a result, which numpy computes from an array without memory."""
    keywords = {name: given[name] for name in ("axis", "keepdims") if name in given}
    return np.any(np.broadcast_to(np.False_, a.shape), **keywords).shape


def _dtype_of(name: str, a: GPUArray, given: dict[str, Any]) -> np.dtype[Any]:
    if given.get("dtype") is not None:
        return np.dtype(given["dtype"])
    if name in ("any", "all"):
        return np.dtype(np.bool_)
    if name in ("min", "max") or a.dtype.kind not in "biu":
        return a.dtype
    return np.add.reduce(np.empty(1, a.dtype)).dtype


def _element(value: Any, dtype: np.dtype[Any]) -> Any:
    """Returns the value as an element of a dtype, by numpy's rules of assignment."""
    element = np.empty((), dtype)
    element[()] = value
    return element[()]


def sum(
    a: GPUArray,
    dtype: DType | Axis = None,
    stream: OnStream = None,
    allocator: Allocator = None,
    *,
    axis: Axis = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Initial = UNSET,
    where: Mask = UNSET,
) -> GPUArray:
    """Returns the sum of the elements, along axes or of all.

    >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    >>> gpuarray.sum(a).get()
    array(15, dtype=int32)
    >>> gpuarray.sum(a, axis=1, where=a > 1).get()
    array([ 2, 12])

    Parameters
    ----------
    a : GPUArray. The elements.
    dtype : dtype, optional. The dtype of the sum, or an axis. By default, the dtype of `a`, as in
        PyCUDA; with `axis`, `keepdims`, `initial` or `where` numpy's (wider for small integers).
    stream, allocator : optional. As in other functions.
    axis, out, keepdims, initial, where : optional. As in numpy; ``where`` must be on the device.
    """
    if dtype is axis is None and not keepdims and initial is where is UNSET:
        return gpu_array("a", a).sum(a.dtype, stream, allocator, out=out)
    given = {"axis": axis, "out": out, "keepdims": keepdims}
    return reduce_some("sum", a, initial, where, (dtype, stream, allocator), **given)


def prod(
    a: GPUArray,
    axis: Axis = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Initial = UNSET,
    where: Mask = UNSET,
    *,
    stream: OnStream = None,
    allocator: Allocator = None,
) -> GPUArray:
    """Returns the product of the elements, as :func:`numpy.prod`."""
    given: dict[str, Any] = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    return reduce_some("prod", a, initial, where, **given, stream=stream, allocator=allocator)


def _truth(
    name: str,
    a: GPUArray,
    stream: OnStream = None,
    allocator: Allocator = None,
    *,
    axis: Axis = None,
    out: Out = None,
    keepdims: bool = False,
    where: Mask = UNSET,
) -> GPUArray:
    given = {"axis": axis, "out": out, "keepdims": keepdims}
    return reduce_some(name, a, UNSET, where, (stream, allocator), **given)


_ANY = """Returns True if any element is not zero, as :func:`numpy.any`.

    An axis is also accepted as the first argument after the array.
    """
any = member(_truth, "any", "any", _ANY)
_ALL = "Returns True if no element is zero, as :func:`numpy.all`; see also :func:`any`."
all = member(_truth, "all", "all", _ALL)


def _extreme(
    name: str,
    a: GPUArray,
    stream: OnStream = None,
    *,
    axis: Axis = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Initial = UNSET,
    where: Mask = UNSET,
    allocator: Allocator = None,
) -> GPUArray:
    given = {"axis": axis, "out": out, "keepdims": keepdims, "allocator": allocator}
    return reduce_some(name, a, initial, where, (stream,), **given)


_MIN = """Returns the smallest element, or NaN if there is one, as :func:`numpy.min`.

    An axis is also accepted as `stream`. ``where`` needs ``initial``.
    """
min = member(_extreme, "min", "min", _MIN)
_MAX = "Returns the largest element, as :func:`numpy.max`; arguments are as in :func:`min`."
max = member(_extreme, "max", "max", _MAX)
amin, amax = min, max


def ptp(a: GPUArray, axis: Axis = None, out: Out = None, keepdims: bool = False) -> GPUArray:
    """Returns the largest minus the smallest element, as :func:`numpy.ptp`."""
    largest = gpu_array("a", a).max(axis=axis, keepdims=keepdims)
    smallest = a.min(axis=axis, keepdims=keepdims)
    out = largest if out is None else same_shape(out, largest)
    return _ufuncs["subtract"](largest, smallest, out=out)


def count_nonzero(a: GPUArray, axis: Axis = None, *, keepdims: bool = False) -> GPUArray:
    """Returns the number of nonzero elements, as int64, as :func:`numpy.count_nonzero`."""
    flags = gpu_array("a", a) if a.dtype == np.bool_ else a != 0
    return flags.sum(axis=axis, keepdims=keepdims)


def without_nan(a: GPUArray, value: Any) -> GPUArray:
    """Returns the elements, with ``value`` in place of each NaN."""
    if not has_fractions(gpu_array("a", a).dtype):
        return a
    return _core.select(_ufuncs["isnan"](a), a.dtype.type(value), a, False)


def _of_numbers(
    name: str,
    a: GPUArray,
    axis: Axis = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Initial = UNSET,
    where: Mask = UNSET,
) -> GPUArray:
    numbers = without_nan(a, REDUCTIONS[name][0])
    given: dict[str, Any] = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    return reduce_some(name, numbers, initial, where, **given)


_NAN = "Returns the {} of the elements that are not NaN, as :func:`numpy.{}`."
nansum = member(_of_numbers, "sum", "nansum", _NAN.format("sum", "nansum"))
nanprod = member(_of_numbers, "prod", "nanprod", _NAN.format("product", "nanprod"))


def _moment_dtypes(a: GPUArray, dtype: Any, out: Out = None) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Returns numpy's dtypes for the computation and for the result of a mean."""
    if dtype is None and out is not None and has_fractions(a.dtype) and has_fractions(out.dtype):
        dtype = np.promote_types(a.dtype, out.dtype)
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if not has_fractions(a.dtype):
        return np.dtype(np.float64), np.dtype(np.float64)
    return np.dtype(np.float32) if a.itemsize < 4 else a.dtype, a.dtype


def _mean_where(
    a: GPUArray, mask: GPUArray, axis: Any, dtype: np.dtype[Any], keepdims: bool, allocator: Any
) -> tuple[GPUArray, GPUArray]:
    total = reduce_some(
        "sum", a, where=mask, axis=axis, dtype=dtype, keepdims=keepdims, allocator=allocator
    )
    count = fit_mask(mask, a).sum(axis=axis, keepdims=keepdims)
    return (total / count).astype(dtype), count


def mean(
    a: GPUArray,
    axis: Axis = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    where: Mask = UNSET,
    stream: OnStream = None,
    allocator: Allocator = None,
) -> GPUArray:
    """Returns the mean, float64 for integers, else in the dtype of `a`, as :func:`numpy.mean`."""
    gpu_array("a", a)
    given: dict[str, Any] = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    mask = mask_of(where)
    is_whole = dtype is not None and np.dtype(dtype).kind in "iu"
    if mask is None and not (is_whole and a.size == 0):
        return a.mean(**given, stream=stream, allocator=allocator)
    a = a if stream is None else a.on(stream)
    compute, dtype = _moment_dtypes(a, dtype, out)
    mask = _core.full((), np.bool_, True) if mask is None else mask
    result, count = _mean_where(a, mask, axis, compute, keepdims, allocator)
    if is_whole:
        # The processor's conversion of NaN; devices have their own.
        with np.errstate(invalid="ignore"):
            none: Any = np.array(np.nan).astype(dtype)[()]
        result = _core.select(count == 0, none, result, False)
    return stored(result if compute == dtype else result.astype(dtype), out)


def _spread(
    name: str,
    a: GPUArray,
    axis: Axis = None,
    dtype: DType = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Mask = UNSET,
    mean: Operand | Unset = UNSET,
    correction: float | Unset = UNSET,
    stream: OnStream = None,
    allocator: Allocator = None,
) -> GPUArray:
    gpu_array("a", a)
    ddof = degrees_of(ddof, correction)
    given = {"axis": axis, "dtype": dtype, "out": out, "ddof": ddof, "keepdims": keepdims}
    mask = mask_of(where)
    is_plain = mask is None and mean is UNSET
    if is_plain or not (dtype is None or has_fractions(np.dtype(dtype))):
        return getattr(a, name)(**given, stream=stream, allocator=allocator)
    a = a if stream is None else a.on(stream)
    compute, result_dtype = _moment_dtypes(a, dtype)
    mask = _core.full((), np.bool_, True) if mask is None else mask
    center, count = _mean_where(a, mask, axis, compute, True, allocator)
    other: Any = center if mean is UNSET else mean
    apart = a.astype(compute) - other
    if apart.shape != a.shape:
        raise ValueError(f"mean has shape {np.shape(other)}; {center.shape} is needed (keepdims)")
    squares = (apart * apart.conj()).real if compute.kind == "c" else apart * apart
    total = reduce_some(
        "sum", squares, where=mask, axis=axis, keepdims=keepdims, allocator=allocator
    )
    if dtype is None:
        result_dtype = np.empty(0, result_dtype).real.dtype
    degrees = _ufuncs["maximum"](count.reshape(total.shape) - ddof, 0)
    variance = (total / degrees).astype(result_dtype)
    return stored(variance if name == "var" else _ufuncs["sqrt"](variance), out)


_VAR = "Returns the variance, real also for complex numbers, as :func:`numpy.var`."
var = member(_spread, "var", "var", _VAR)
std = member(_spread, "std", "std", "Returns the standard deviation, as :func:`numpy.std`.")


def degrees_of(ddof: float, correction: Any) -> float:
    """Returns the degrees of freedom to subtract, from ``ddof`` or ``correction``."""
    if correction is UNSET:
        return ddof
    if ddof != 0:
        raise ValueError(f"ddof is {ddof} and correction {correction}; only one can be given")
    return correction


def _running(
    reduction: Reduction,
    a: GPUArray,
    axis: int | None = None,
    dtype: DType = None,
    out: Out = None,
    *,
    stream: OnStream = None,
    allocator: Allocator = None,
) -> GPUArray:
    a, axis = along_axis(a, axis)
    return _core.scan(reduction, a, axis, False, dtype, out, stream, allocator)


_SUM = "Returns the running sums along an axis, as :func:`numpy.cumsum`; ``out`` may be `a`."
cumsum = member(_running, Reduction.Sum, "cumsum", _SUM)
_PRODUCT = "Returns the running products along an axis, as :func:`numpy.cumprod`."
cumprod = member(_running, Reduction.Product, "cumprod", _PRODUCT)


def _first(
    reduction: Reduction,
    a: GPUArray,
    axis: int | None = None,
    out: Out = None,
    *,
    keepdims: bool = False,
) -> GPUArray:
    """Returns the first index of the value that the reduction returns."""
    return stored(_core.position(reduction, gpu_array("a", a), axis, keepdims), out)


_INDEX = "Returns the index of the {}est element, as :func:`numpy.{}`."
argmin = member(_first, Reduction.Minimum, "argmin", _INDEX.format("small", "argmin"))
argmax = member(_first, Reduction.Maximum, "argmax", _INDEX.format("larg", "argmax"))


def subset_sum(
    subset: GPUArray,
    a: GPUArray,
    dtype: DType = None,
    stream: OnStream = None,
    allocator: Allocator = None,
) -> GPUArray:
    """Returns the sum of the elements of ``a`` at the indices ``subset``.

    Other arguments are as in :func:`dot`.
    """
    return _core.reduce_subset(Reduction.Sum, subset, a, dtype, stream, allocator)


def subset_dot(
    subset: GPUArray,
    a: GPUArray,
    b: GPUArray,
    dtype: DType = None,
    stream: OnStream = None,
    allocator: Allocator = None,
) -> GPUArray:
    """Returns the dot product of the elements of ``a`` and ``b`` at ``subset``.

    Other arguments are as in :func:`dot`.
    """
    x, y = take(a, subset, stream=stream), take(b, subset, stream=stream)
    return _core.dot(x, y, dtype, stream, allocator)


def subset_min(subset: GPUArray, a: GPUArray, stream: OnStream = None) -> GPUArray:
    """Returns the smallest of the elements of ``a`` at ``subset``, on ``stream``."""
    return _core.reduce_subset(Reduction.Minimum, subset, a, None, stream)


def subset_max(subset: GPUArray, a: GPUArray, stream: OnStream = None) -> GPUArray:
    """Returns the largest of the elements of ``a`` at ``subset``, on ``stream``."""
    return _core.reduce_subset(Reduction.Maximum, subset, a, None, stream)
