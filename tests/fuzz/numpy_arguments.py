"""Calls of numpy's functions by their signatures: each keyword that a function has, at random.

`REQUIRED` has the arguments that a call needs, `OPTIONAL` the values of keywords by their names. A
function of numpy's with another required argument fails in `rows` until it is described here.
Values are small, so that rounding and overflow do not matter.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

DTYPES = [np.dtype(code) for code in ("f8", "f8", "f4", "i8", "i4", "u1", "?", "c16")]
SHAPES = [(), (1,), (5,), (6,), (0,), (3, 4), (4, 4), (1, 3), (2, 3, 4), (2, 0)]


def array(m: Any, dtype: Any = None, shape: Any = None) -> Any:
    return m.array(dtype, shape)


def vector(m: Any, n: int | None = None, dtype: Any = None) -> Any:
    return m.array(dtype, (m.one(1, 4, 6) if n is None else n,))


def real(m: Any, shape: Any = None) -> Any:
    return m.array(m.one(*DTYPES[:6]), shape)


def indices(m: Any, shape: Any = None, low: int = -2, high: int = 3) -> Any:
    shape = m.one((), (2,), (2, 2)) if shape is None else shape
    drawn = [m.random.randint(low, high) for _ in range(math.prod(shape))]
    return np.array(drawn, m.one("i8", "i4")).reshape(shape)


def mask(m: Any, shape: Any = None) -> Any:
    return m.array(np.dtype(bool), m.shape if shape is None else shape)


def places(m: Any) -> Any:
    return m.one(0, 1, -1, 2, [1], [0, 2], slice(0, 3, 2), [1, 1])


def bins(m: Any) -> Any:
    return m.one(3, 5, [-2.0, 0.0, 1.5], np.array([-3, 0, 1, 3]))


def alike(m: Any) -> Any:
    return m.array(m.one(m.dtype, *DTYPES), m.one(m.shape, m.shape, ()))


def several(m: Any) -> list[Any]:
    return [array(m, m.one(m.dtype, *DTYPES)) for _ in range(m.one(1, 2, 3))]


def square(m: Any) -> Any:
    return array(m, None, m.one((3, 3), (2, 2), (2, 3, 3)))


def product(m: Any) -> Any:
    return m.one(
        (array(m, None, (3, 4)), array(m, None, (4, 2))),
        (vector(m, 4), vector(m, 4)),
        (array(m, None, (2, 3, 4)), array(m, None, (4,))),
        (array(m), array(m, None, ())),
    )


def numbers(m: Any) -> Any:
    """Returns places along axes of the extents 3 and 4, some of them outside."""
    return tuple(indices(m, (3,), m.one(0, 0, -1), 2) for _ in range(2)), (3, 4)


# The required arguments of the functions whose arguments are not all of the kind of their names.
REQUIRED: dict[str, Callable[[Any], Any]] = {
    "append": lambda m: (array(m), alike(m)),
    "apply_along_axis": lambda m: (m.one(np.sum, np.cumsum, np.sort), m.one_axis(), array(m)),
    "apply_over_axes": lambda m: (m.one(np.sum, np.max), array(m), m.one_axis()),
    "array_equiv": lambda m: (array(m), m.one(alike(m), array(m, None, (1,)))),
    "atleast_1d": lambda m: (array(m),),
    "atleast_2d": lambda m: (array(m),),
    "atleast_3d": lambda m: (array(m),),
    "bincount": lambda m: (indices(m, (m.one(0, 4, 7),), 0, 5),),
    "block": lambda m: (m.one([array(m), array(m)], [[array(m)], [array(m)]]),),
    "broadcast_arrays": lambda m: (array(m), alike(m)),
    "broadcast_to": lambda m: (array(m), m.one((2, *m.shape), m.shape, (3, 4))),
    "choose": lambda m: (indices(m, (4,), 0, 1), [vector(m, 4), m.one(2, 0)]),
    "column_stack": lambda m: (several(m),),
    "convolve": lambda m: (vector(m), vector(m)),
    "correlate": lambda m: (vector(m), vector(m)),
    "cross": lambda m: (array(m, None, m.one((3,), (4, 3))), array(m, None, (3,))),
    "delete": lambda m: (array(m), places(m)),
    "digitize": lambda m: (real(m), m.one(np.array([-2, 0, 3]), np.array([2.0, 0.5]))),
    "dot": product,
    "dsplit": lambda m: (array(m, None, (2, 3, 4)), m.one(2, [1, 3])),
    "dstack": lambda m: (several(m),),
    "expand_dims": lambda m: (array(m), m.one(0, -1, (0, -1))),
    "extract": lambda m: (mask(m), array(m)),
    "gradient": lambda m: (array(m, None, m.one((4,), (3, 4))), *m.one((), (0.5,))),
    "histogram2d": lambda m: (real(m, (6,)), real(m, (6,))),
    "hsplit": lambda m: (array(m, None, (4, 4)), m.one(2, [1, 3])),
    "inner": product,
    "insert": lambda m: (array(m), places(m), m.one(7, alike(m))),
    "interp": lambda m: (real(m), np.array([-3, 0.0, 1, 4]), real(m, (4,))),
    "intersect1d": lambda m: (real(m), real(m)),
    "isin": lambda m: (real(m), m.one(real(m), [1, 2], [])),
    "kron": lambda m: (array(m), alike(m)),
    "lexsort": lambda m: ((real(m), real(m)),),
    "matrix_transpose": lambda m: (square(m),),
    "meshgrid": lambda m: (vector(m), vector(m)),
    "moveaxis": lambda m: (array(m), m.one_axis(), m.one_axis()),
    "ones": lambda m: (m.shape,),
    "outer": lambda m: (array(m), alike(m)),
    "pad": lambda m: (array(m), m.one(0, 1, (1, 2))),
    "percentile": lambda m: (real(m), m.one(50, 30.5, [0, 25, 100], np.float32(25))),
    "piecewise": lambda m: (array(m), [mask(m), mask(m)], [m.one(1, np.negative), 2, 3]),
    "polyval": lambda m: (vector(m), alike(m)),
    "quantile": lambda m: (real(m), m.one(0.5, 0.305, [0, 0.25, 1], np.float16(0.75))),
    "ravel_multi_index": numbers,
    "reshape": lambda m: (array(m), m.one(-1, (-1, 1), (1, *m.shape), m.shape[::-1])),
    "resize": lambda m: (array(m), m.one(5, (2, 3), ())),
    "rot90": lambda m: (array(m, None, m.one((3, 4), (2, 3, 4))),),
    "searchsorted": lambda m: (np.sort(real(m, (6,))), alike(m)),
    "select": lambda m: ([mask(m), mask(m)], [array(m), alike(m)]),
    "setdiff1d": lambda m: (real(m), real(m)),
    "setxor1d": lambda m: (real(m), real(m)),
    "split": lambda m: (array(m), m.one(1, 2, [1, 3])),
    "array_split": lambda m: (array(m), m.one(1, 2, 5, [1, 3])),
    "sliding_window_view": lambda m: (array(m), m.one(1, 2, (1,) * len(m.shape))),
    "swapaxes": lambda m: (array(m), m.one_axis(), m.one_axis()),
    "take": lambda m: (array(m), indices(m)),
    "take_along_axis": lambda m: (array(m), indices(m, m.shape, 0, 0)),
    "tensordot": product,
    "tri": lambda m: (m.one(0, 2, 4),),
    "trim_zeros": lambda m: (vector(m),),
    "union1d": lambda m: (real(m), real(m)),
    "unravel_index": lambda m: (indices(m, None, 0, 11), m.one((3, 4), (2, 3, 2))),
    "vander": lambda m: (vector(m),),
    "vdot": lambda m: (array(m), array(m)),
    "vsplit": lambda m: (array(m, None, (4, 4)), m.one(2, [1, 3])),
    "vecdot": lambda m: (array(m), array(m)),
    "matvec": lambda m: (square(m), vector(m, 3)),
    "vecmat": lambda m: (vector(m, 3), array(m, None, (3, 2))),
    "matrix_power": lambda m: (square(m), m.one(0, 1, 2, 3)),
    "multi_dot": lambda m: ([array(m, None, (2, 3)), array(m, None, (3, 4)), vector(m, 4)],),
    "matrix_norm": lambda m: (square(m),),
    "zeros": lambda m: (m.shape,),
}
REQUIRED |= {f"nan{name}": REQUIRED[name] for name in ("percentile", "quantile")}
ARRAYS = {
    "a",
    "x",
    "arr",
    "ar",
    "m",
    "z",
    "f",
    "y",
    "v",
    "p",
    "ary",
    "array",
    "element",
    "filt",
    "object",
    "prototype",
}
UNORDERED = {
    "histogram",
    "histogram_bin_edges",
    "median",
    "nanmedian",
    "nanargmax",
    "nanargmin",
    "unique",
}

QUANTILES = ["linear", "lower", "nearest", "midpoint", "hazen", "weibull", "inverted_cdf"]
QUANTILES += ["closest_observation", "averaged_inverted_cdf", "median_unbiased"]

OPTIONAL: dict[str, Callable[[Any], Any]] = {
    "assume_unique": lambda m: False,
    "axes": lambda m: m.one(None, m.one_axis(), (0, 1), (1, 0)),
    "axis": lambda m: m.one(m.one_axis(), m.one_axis(), None, tuple(range(len(m.shape)))),
    "bias": lambda m: m.one(True, False),
    "bins": bins,
    "copy": lambda m: m.one(True, None),
    "correction": lambda m: m.one(0, 1),
    "ddof": lambda m: m.one(0, 1),
    "default": lambda m: m.one(0, 3),
    "deg": lambda m: m.one(True, False),
    "density": lambda m: m.one(True, False),
    "discont": lambda m: m.one(None, 0.5, 4),
    "dtype": lambda m: m.one(*DTYPES),
    "dx": lambda m: m.one(1.0, 0.5, 2),
    "edge_order": lambda m: m.one(1, 2),
    "equal_nan": lambda m: m.one(True, False),
    "increasing": lambda m: m.one(True, False),
    "initial": lambda m: m.one(0, 1, 2.5),
    "indexing": lambda m: m.one("xy", "ij"),
    "invert": lambda m: m.one(True, False),
    "k": lambda m: m.one(-1, 0, 1, 2),
    "keepdims": lambda m: m.one(True, False),
    "left": lambda m: m.one(None, -5.0),
    "method": lambda m: m.one(*QUANTILES),
    "minlength": lambda m: m.one(0, 9),
    "mode": lambda m: m.one("raise", "wrap", "clip", "full", "same", "valid", "edge"),
    "M": lambda m: m.one(None, 0, 3),
    "N": lambda m: m.one(None, 0, 3),
    "ndmin": lambda m: m.one(0, 2),
    "optimize": lambda m: m.one(True, False),
    "ord": lambda m: m.one(1, -1, np.inf, "fro", 2, 0, 3),
    "order": lambda m: m.one("C", "F"),
    "period": lambda m: m.one(3, 2.5, 0),
    "range": lambda m: m.one(None, (-2, 2), (0.0, 5.0)),
    "reflect_type": lambda m: m.one("even", "odd"),
    "return_counts": lambda m: m.one(True, False),
    "return_index": lambda m: m.one(True, False),
    "return_indices": lambda m: m.one(True, False),
    "return_inverse": lambda m: m.one(True, False),
    "prepend": alike,
    "append": alike,
    "retstep": lambda m: m.one(True, False),
    "include_initial": lambda m: m.one(True, False),
    "returned": lambda m: m.one(True, False),
    "right": lambda m: m.one(True, False),
    "rowvar": lambda m: m.one(True, False),
    "shape": lambda m: m.one(None, (2, 2), 3),
    "side": lambda m: m.one("left", "right"),
    "sparse": lambda m: m.one(True, False),
    "to_begin": lambda m: m.one(None, 0, [1, 2]),
    "to_end": lambda m: m.one(None, 0, [1, 2]),
    "trim": lambda m: m.one("f", "b", "fb"),
    "where": mask,
    "axisa": lambda m: m.one(0, -1),
    "axisb": lambda m: m.one(0, -1),
    "axisc": lambda m: m.one(0, -1),
}
# Keywords whose values depend on the other arguments, or that have no effect on a device.
OF_OTHERS = {"mean", "out", "weights"}
NOT_GIVEN = {
    "device",
    "fweights",
    "aweights",
    "kind",
    "like",
    "max_work",
    "overwrite_input",
    "sorted",
    "sorter",
    "casting",
    "subok",
    "ndmax",
}
# Not of arrays alone: files, other libraries, changes in place; or of several right results.
# `numpy_functions.py` has others.
LEFT_OUT = {
    "load",
    "save",
    "from_dlpack",
    "copyto",
    "fill_diagonal",
    "place",
    "put",
    "putmask",
    "may_share_memory",
    "shares_memory",
}
LEFT_OUT |= {
    "empty",
    "empty_like",
    "arange",
    "linspace",
    "einsum",
    "in1d",
    "identity",
    "asarray",
    "array",
}
LEFT_OUT |= {"argpartition", "ascontiguousarray", "asfortranarray", "partition"}
# Rounding decides their vectors where columns depend on each other.
LEFT_OUT |= {"qr", "svd"}
HOMES = (np, np.linalg, np.fft, np.lib.stride_tricks)


def function_of(name: str) -> Any:
    """Returns numpy's function of a name, outside numpy's main module if it is not there."""
    return next((getattr(home, name) for home in HOMES if hasattr(home, name)), None)


def _made(m: Any, name: str, function: Any, signature: Any) -> Any:
    m.mild, m.shape, m.dtype = True, m.one(*SHAPES), m.one(*DTYPES)
    if name in UNORDERED or name.startswith("nan"):
        m.dtype = m.one(*DTYPES[:6])
    required = REQUIRED.get(name) or (lambda m: (array(m),))
    args, given = tuple(required(m)), {}
    for it in signature.values():
        if it.name in OPTIONAL and it.default is not it.empty and m.chance(30):
            given[it.name] = OPTIONAL[it.name](m)
    if name == "pad" and m.chance(60):
        given["mode"] = m.one("constant", "edge", "reflect", "symmetric", "wrap")
    if name == "gradient" and given.get("axis") == ():
        del given["axis"]  # numpy has no result then
    if name in ("nanstd", "nanvar") and np.dtype(given.get("dtype")).kind == "c":
        del given["dtype"]  # numpy's results are complex then
    a = args[0]
    if "weights" in signature and m.chance(30) and isinstance(a, np.ndarray) and a.ndim:
        given["weights"] = np.abs(m.array(np.dtype("f8"), a.shape)) + 1
    with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.suppress(Exception):
        # Nothing is added if numpy refuses the other arguments.
        warnings.simplefilter("ignore")
        if "mean" in signature and m.chance(30):
            given["mean"] = np.asarray(np.nanmean(a, axis=given.get("axis"), keepdims=True))
        if "out" in signature and name != "multi_dot" and m.chance(20):
            found = np.asarray(function(*args, **given))
            dtype = m.one(found.dtype, *DTYPES[:7])
            # A device stores results in dtypes of their kind only.
            holds = np.can_cast(found.dtype, dtype, "same_kind")
            given["out"] = np.zeros_like(found, dtype if holds else None)
    return args, given


def rows(names: Any) -> dict[str, Callable[[Any], Any]]:
    """Returns a maker of arguments for each of the functions that is not left out."""
    found = {}
    for name in names:
        function = function_of(name)
        if name in LEFT_OUT or not callable(function) or isinstance(function, type):
            continue
        try:
            signature = inspect.signature(function).parameters
        except ValueError:  # a universal function of vectors
            signature = {}
        for it in signature.values():
            is_known = it.name in ARRAYS | OPTIONAL.keys() | OF_OTHERS | NOT_GIVEN
            if not is_known and name not in REQUIRED and it.kind not in (it.VAR_KEYWORD,):
                raise KeyError(f"{name} has the argument {it.name}, which has no values here")
        found[name] = lambda m, n=name, f=function, s=signature: _made(m, n, f, s)
    return found
