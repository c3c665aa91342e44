"""Dispatch of numpy's own functions when they are called with GPUArrays.

A function of numpy runs on the device if :mod:`pygpu.gpuarray` or the class `GPUArray` has its
name. A universal function runs there if this module's tables have it. Functions of the shape
and dtype alone return numpy's result. All others raise a ``TypeError`` that names the function to
call. No function copies an array from the device.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from .. import _core, cumath, gpuarray
from .._arguments import stored
from .._core import GPUArray
from .as_numpy import DIFFERENT
from .as_numpy.operands import last_axis, on_device, with_axes
from .as_numpy.order import combine_at, running
from .reductions import REDUCTIONS, UNSET, mask_of, reduce_some
from .shapes import concatenate, moveaxis

_ufuncs = _core.universal_functions
_OWN = frozenset(gpuarray.__all__)  # type: ignore[attr-defined]
# Functions of dtypes. numpy before 2 reads the element of an array without axes, so they get the
# dtype itself.
_OF_DTYPES = {np.can_cast, np.result_type}
# Functions of shape and dtype.
_WITHOUT_ELEMENTS = {np.common_type, np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size}

# numpy's functions in Python that call only functions that work on the device.
_OF_OTHERS = {np.diag_indices_from, np.isneginf, np.isposinf, np.isreal, np.rollaxis}
_OF_OTHERS |= {np.logspace, np.put_along_axis, np.tril_indices_from, np.triu_indices_from}
# Those that numpy 2 brought.
_NEW = """
    cumulative_prod cumulative_sum unique_all unique_counts unique_inverse unique_values unstack"""
_OF_OTHERS |= {getattr(np, name) for name in _NEW.split() if hasattr(np, name)}

# The functions to call where nothing has numpy's name.
_INSTEAD = {"array_repr": "repr(a)", "array_str": "str(a)", "outer": "np.outer"}

# Names of numpy and of scipy.special that stand for another function.
_ALIASES = {
    "around": "round",
    "asanyarray": "asarray",
    "concat": "concatenate",
    "degrees": "rad2deg",
    "gammaln": "lgamma",
    "mod": "remainder",
    "permute_dims": "transpose",
    "radians": "deg2rad",
    "true_divide": "divide",
}


# numpy's modules whose functions have the names of functions here.
_MODULES = ("numpy.fft", "numpy.lib.stride_tricks", "numpy.linalg")


def _counterpart(name: str) -> Callable[..., Any] | None:
    """Returns pygpu's function that does the work of numpy's function on the device."""
    if name in DIFFERENT:
        return getattr(import_module(f".as_numpy.{DIFFERENT[name]}", __package__), name)
    if name in _OWN:
        return getattr(gpuarray, name)
    method = getattr(GPUArray, name, None)
    if name.startswith("_") or method is None:
        return None
    return method if callable(method) else lambda a: getattr(a, name)


def _refusal(name: str) -> TypeError:
    instead = _INSTEAD.get(name.rpartition(".")[2])
    on_device = f"call {instead} on the device, or " if instead else ""
    return TypeError(
        f"{name} does not work on a GPUArray: {on_device}copy the elements to the host with "
        "a.get() first"
    )


def _not_taken(name: str, argument: str, value: Any) -> TypeError:
    is_array = isinstance(value, GPUArray | np.ndarray)
    said = f"of type {type(value).__name__}" if is_array else repr(value)
    return TypeError(f"{name} of a GPUArray does not take {argument}, which is {said}")


_signature = functools.cache(inspect.signature)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """Returns the parameters of a function by name; None if it does not declare them."""
    try:
        return _signature(function).parameters
    except (TypeError, ValueError):
        return None


def _is_default(value: Any, default: Any) -> bool:
    if value is default or value is UNSET:
        return True
    return isinstance(value, bool | int | float | str) and value == default


def _call(name: str, func: Any, counterpart: Any, args: Any, kwargs: Any) -> Any:
    """Calls pygpu's counterpart of numpy's function, with the arguments passed by name."""
    theirs, ours = _parameters(func), _parameters(counterpart)
    if theirs is None or ours is None or [*ours] == ["args", "kwargs"]:
        return counterpart(*args, **kwargs)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    bound = _signature(func).bind(*args, **kwargs)
    for argument, value in bound.arguments.items():
        parameter = theirs[argument]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords.update(value)
        elif parameter.default is parameter.empty or parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        elif argument in ours:
            if not _is_default(value, parameter.default):
                keywords[argument] = value
        elif not _is_default(value, parameter.default):
            raise _not_taken(name, argument, value)
    return counterpart(*positional, **keywords)


def _stand_in(value: Any) -> Any:
    """Returns a numpy array of the same shape and dtype, with memory for one element only."""
    if isinstance(value, GPUArray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if isinstance(value, tuple | list):
        return type(value)(map(_stand_in, value))
    return value


def array_function(
    array: GPUArray, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``GPUArray.__array_function__``: calls pygpu's counterpart of numpy's function, if any."""
    # A masked array would lose its mask.
    if not all(issubclass(it, GPUArray | np.ndarray) and not hasattr(it, "mask") for it in types):
        return NotImplemented
    if func in _OF_DTYPES:
        return func(*(a.dtype if isinstance(a, GPUArray) else a for a in args), **kwargs)
    if func in _WITHOUT_ELEMENTS:
        given = {name: _stand_in(value) for name, value in kwargs.items()}
        return func(*map(_stand_in, args), **given)
    if func in _OF_OTHERS:
        return func._implementation(*args, **kwargs)
    if func is np.iscomplex:
        return _ufuncs["logical_not"](np.isreal(*args, **kwargs))
    name = f"{func.__module__}.{func.__name__}"
    own = _ALIASES.get(func.__name__, func.__name__)
    if func.__module__ == "numpy":
        counterpart = _counterpart(own)
    elif func.__module__ == "numpy.linalg" and own in ("diagonal", "trace"):
        # numpy's implementation calls GPUArray's function for the last two axes.
        return func._implementation(*args, **kwargs)
    else:
        is_known = func.__module__ in _MODULES and own in _OWN - {"outer"}
        counterpart = getattr(gpuarray, own) if is_known else None
    if counterpart is None:
        raise _refusal(name)
    if func is np.where and len(args) == 1:
        counterpart = gpuarray.nonzero
    if func is np.sum:
        # PyCUDA's function keeps the dtype.
        counterpart = GPUArray.sum
    result = _call(name, func, counterpart, args, kwargs)
    # PyCUDA's function has Fortran's order.
    is_ordered = func is not np.stack or kwargs.get("out") is not None
    return result if is_ordered else gpuarray.ascontiguousarray(result)


def _inexact(x: GPUArray) -> GPUArray:
    """Returns the numbers in the dtype that numpy uses for a floating-point function."""
    dtype = np.result_type(x.dtype, np.float16)
    return x if x.dtype == dtype else x.astype(dtype)


def _frexp(x: GPUArray) -> tuple[GPUArray, GPUArray]:
    significands, exponents = cumath.frexp(x)
    return significands, exponents.astype(np.int32)


def _fabs(x: GPUArray) -> GPUArray:
    if x.dtype.kind == "c":
        raise TypeError(f"numpy.fabs is not defined for dtype {x.dtype}; call numpy.abs")
    return abs(_inexact(x))


def _double(x: Any) -> Any:
    """Returns numbers in the dtype of numpy's function ``float_power``."""
    dtype = np.result_type(x, np.float64) if np.isscalar(x) else np.result_type(x.dtype, np.float64)
    return dtype.type(x) if np.isscalar(x) else x.astype(dtype)


def _spacing(x: GPUArray) -> GPUArray:
    x = _inexact(x)
    # numpy's distances of float16 and of -0.0 are not negative; those of infinities are NaN.
    end = np.inf if x.dtype == np.float16 else _ufuncs["copysign"](np.inf, x + 0)
    return _ufuncs["nextafter"](x, end) - x + 0 * x


# numpy's universal functions that are made of several.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "divmod": lambda x, y: (_ufuncs["floor_divide"](x, y), _ufuncs["remainder"](x, y)),
    "fabs": _fabs,
    "float_power": lambda x, y: _double(x) ** _double(y),
    "frexp": _frexp,
    "modf": lambda x: cumath.modf(_inexact(x)),
    "spacing": _spacing,
}


def _masked(function: Any, operands: Any, out: Any, where: GPUArray) -> GPUArray:
    """Returns the values where a mask is true; elsewhere `out` keeps its elements."""
    if out is None:
        values = function(*operands)
        shape = np.broadcast_shapes(values.shape, where.shape)
        return values if shape == values.shape else _core.select(where, values, values, False)
    shape = np.broadcast_shapes(*map(np.shape, operands))
    values = function(*operands, out=_core.new_like(out, shape))
    return _core.select(where, values, out, False, out)


def _apply(name: str, operands: Any, kwargs: dict[str, Any]) -> Any:
    outputs = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    own = _ALIASES.get(name, name)
    function = _ufuncs.get(own)
    if function is None:
        pair = _COMPOSED.get(name)
        if pair is None and own in _OWN:
            pair = getattr(gpuarray, own)
        if pair is None:
            # The function may be another package's.
            known = hasattr(np, name)
            raise _refusal(f"numpy.{name}" if known else f"the universal function {name}")
        if where is not True:
            raise TypeError(f"numpy.{name} of a GPUArray does not take where")
        results = pair(*operands, **kwargs)
        if outputs is None:
            return results
        if not isinstance(results, tuple):
            return stored(results, outputs[0])
        return tuple(map(stored, results, outputs))
    out = outputs[0] if outputs is not None else None
    mask = mask_of(where)
    if mask is None:
        return function(*operands, out=out)
    return _masked(function, operands, out, mask)


def _cast(name: str, casting: Any, operands: Any, outputs: Any) -> Any:
    """Calls a function whose result is stored in `out` with a given casting rule of numpy."""
    result = _apply(name, operands, {})
    if outputs is None:
        return result
    (out,) = outputs
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(
            f"numpy.{name} has a result of {result.dtype}, which cannot be cast to {out.dtype} "
            f"with casting {casting!r}"
        )
    out[...] = result
    return out


def _computed_in(ufunc: Any, inputs: Any, dtype: Any, casting: Any) -> tuple[Any, ...]:
    """Returns the operands converted for a result of a dtype, as numpy finds them."""
    kinds = [getattr(it, "dtype", type(it)) for it in inputs]
    kinds = [np.dtype(np.bool_) if it is bool else it for it in kinds]
    results = (np.dtype(dtype),) * ufunc.nout
    signature = (*(None,) * ufunc.nin, *results)
    given = (*kinds, *(None,) * ufunc.nout)
    found = ufunc.resolve_dtypes(given, signature=signature, casting=casting)
    pairs = zip(inputs, found)
    return tuple(x.astype(it) if hasattr(x, "astype") else it.type(x) for x, it in pairs)


# Functions whose reduction or accumulation is made of steps, in any order.
_FOLDED = {f"{kind}_{name}" for kind in ("bitwise", "logical") for name in ("and", "or", "xor")}
_FOLDED |= {"fmax", "fmin", "gcd", "hypot", "lcm", "logaddexp", "logaddexp2"}


def _fold(name: str, a: GPUArray, axis: Any, keepdims: Any, initial: Any, **given: Any) -> GPUArray:
    """Returns a reduction by any of `_FOLDED`, or an accumulation if ``keepdims`` is None."""
    a = _inexact(a) if name in ("hypot", "logaddexp", "logaddexp2") else a
    dtype = np.bool_ if name.startswith("logical") else given["dtype"] or a.dtype
    values, axes = last_axis(a.astype(dtype), () if a.ndim == 0 and axis in (0, -1) else axis)
    if keepdims is None:
        out = _core.new_like(a, dtype=dtype) if given["out"] is None else given["out"]
        return stored(moveaxis(running(name, values), -1, axis), out)
    first = getattr(np, name).identity if initial in (None, UNSET) else initial
    if first is not None:
        first = np.full((), first).astype(dtype)
        values = concatenate([_core.full((*values.shape[:-1], 1), dtype, first), values], -1)
    elif not values.shape[-1]:
        raise ValueError(f"numpy.{name} has no identity; an empty array needs initial")
    return stored(with_axes(running(name, values)[..., -1].copy(), axes, keepdims), given["out"])


def _combine(name: str, method: str, a: Any, kwargs: dict[str, Any]) -> Any:
    function = _ufuncs.get(name)
    reduction: Any = function and function.reduction
    if reduction is None and name not in _FOLDED:
        raise _refusal(f"numpy.{name}.{method}")
    given = {key: kwargs.pop(key, None) for key in ("dtype", "out")}
    given["out"] = given["out"][0] if given["out"] is not None else None
    axis = kwargs.pop("axis", 0)
    if method == "accumulate":
        if a.ndim == 0 and axis in (0, -1):
            raise TypeError(f"numpy.{name}.accumulate cannot accumulate on an array without axes")
        if name in _FOLDED:
            return lambda: _fold(name, a, axis, None, None, **given)
        return lambda: _core.scan(reduction, a, axis, False, **given)
    keeps = bool(kwargs.pop("keepdims", False))
    if reduction is None:
        initial = kwargs.pop("initial", None)
        return lambda: _fold(name, a, axis, keeps, initial, **given)
    axis = tuple(range(a.ndim)) if axis is None else axis
    chosen = next((key for key, (_, join) in REDUCTIONS.items() if join == name), None)
    some = {key: kwargs.pop(key) for key in ("initial", "where") if chosen and key in kwargs}
    if some:
        given = {key: value for key, value in given.items() if value is not None}
        if chosen not in ("prod", "sum"):
            a = a.astype(given.pop("dtype", a.dtype))
        return lambda: reduce_some(str(chosen), a, **some, axis=axis, keepdims=keeps, **given)
    return lambda: _core.reduce(reduction, a, axis=axis, keepdims=keeps, **given)


# Default values of numpy's keywords, which have no effect.
_IGNORED = {"casting": "same_kind", "order": "K", "dtype": None, "subok": True, "where": True}


def _check_nothing_left(name: str, kwargs: dict[str, Any]) -> None:
    for key, value in kwargs.items():
        if key == "initial" and value is UNSET:
            continue
        if key not in _IGNORED or not _is_default(value, _IGNORED[key]):
            raise _not_taken(f"numpy.{name}", key, value)


def array_ufunc(array: GPUArray, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """``GPUArray.__array_ufunc__``, which also serves the operators of numpy scalars."""
    name = ufunc.__name__
    for operand in (*inputs, *(kwargs.get("out") or ())):
        if hasattr(type(operand), "__array_ufunc__") and not isinstance(
            operand, GPUArray | np.ndarray | np.generic
        ):
            return NotImplemented
        # An array of one element counts as a number; `out` is refused where it is used.
        if isinstance(operand, np.ndarray) and operand.shape not in ((), (1,)):
            raise TypeError(
                f"numpy.{name} has a GPUArray and an array of numpy's as arguments; send the "
                "latter to the device (gpuarray.to_gpu) or copy the former to the host (a.get())"
            )
    if method in ("__call__", "outer"):
        # Lists are arrays to numpy.
        listed = (list, tuple, range)
        inputs = tuple(on_device(it) if isinstance(it, listed) else it for it in inputs)
    if method == "__call__":
        own = ("out", "where", *(["axis"] if ufunc.signature else []))
        known: dict[str, Any] = {k: kwargs.pop(k) for k in own if k in kwargs}
        if kwargs.get("dtype") is not None and hasattr(ufunc, "resolve_dtypes"):
            casting = kwargs.pop("casting", "same_kind")
            inputs = _computed_in(ufunc, inputs, kwargs.pop("dtype"), casting)
        if kwargs.get("casting") in ("safe", "unsafe") and known.get("where", True) is True:
            casting = kwargs.pop("casting")
            _check_nothing_left(name, kwargs)
            return _cast(name, casting, inputs, known.get("out"))
        _check_nothing_left(name, kwargs)
        return _apply(name, inputs, known)
    if method in ("reduce", "accumulate"):
        call = _combine(name, method, inputs[0], kwargs)
        _check_nothing_left(f"{name}.{method}", kwargs)
        return call()
    if method == "at" and len(inputs) == 3:
        _check_nothing_left(f"{name}.{method}", kwargs)
        return combine_at(ufunc, *inputs)
    if method == "outer":
        # Python's numbers are arrays to numpy.
        x, y = (np.asarray(it)[()] if np.isscalar(it) else it for it in inputs)
        known = {k: kwargs.pop(k) for k in ("out", "where") if k in kwargs}
        _check_nothing_left(f"{name}.{method}", kwargs)
        if isinstance(x, GPUArray):
            x = x[(..., *(None,) * np.ndim(y))]
        return _apply(name, (x, y), known)
    raise _refusal(f"numpy.{name}.{method}")
