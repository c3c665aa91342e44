"""The search over functions with numpy's names: every keyword, and special values.

    .venv/bin/python tests/fuzz/numpy_functions.py --cases 100000
    .venv/bin/python tests/fuzz/numpy_functions.py --seed 7 --only 1234

A case is a row of `ROWS`, called through each interface that has the name: numpy's function with
device arrays, the function in `pygpu.gpuarray`, and the method. A finding is a value, dtype or
shape that differs from numpy's, or an error where numpy succeeds. A `TypeError` that names an
unsupported keyword is not a finding.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from numpy_arguments import function_of, rows

import pygpu.autoinit  # noqa: F401
from pygpu import gpuarray
from pygpu._array.as_numpy import DIFFERENT

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = [np.dtype(f"f{size}") for size in (2, 4, 8)] + [BFLOAT16]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]
REAL = [np.dtype(bool), *INTEGERS, *FLOATS]
NUMBERS = [*REAL, *COMPLEX]
SHAPES = [(), (0,), (1,), (5,), (7,), (2, 3), (3, 1), (2, 0), (4, 4), (2, 3, 2)]


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype == BFLOAT16


class Maker:
    """Makes arguments that are determined by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.shape = self.random.choice(SHAPES)
        self.dtype = self.random.choice(NUMBERS)
        # True for small numbers alone.
        self.mild = False

    def one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def values(self, dtype: np.dtype, count: int) -> np.ndarray:
        """Returns small numbers and the type's special values."""
        dtype = np.dtype(dtype)
        if self.mild:
            least = 0 if dtype.kind in "bu" else -6
            drawn = [self.random.randint(least, 6) for _ in range(count)]
            halves = 2 if dtype.kind in "fc" else 1
            return np.array([it / halves for it in drawn]).astype(dtype)
        special: list[Any] = [0, 1]
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            special += [limits.min, limits.max, limits.max - 1, limits.min + 1]
        elif is_float(dtype):
            special += [math.nan, math.inf, -math.inf, -0.0, 0.5, -1.5, 2.5]
        elif dtype.kind == "c":
            special += [complex(math.nan, 1), complex(1, math.nan), complex(-math.inf, math.nan)]
            special += [complex(math.inf, -0.0), complex(-0.0, -0.0), 1j, 0.5 - 2j]
        spread = 40 if self.chance(50) else 100
        drawn = [
            self.random.choice(special)
            if self.random.randrange(100) > spread
            else self.random.randint(0 if dtype.kind in "bu" else -6, 6)
            for _ in range(count)
        ]
        whole = np.zeros(count, dtype)
        for place, value in enumerate(drawn):
            whole[place] = value
        return whole

    def array(self, dtype: Any = None, shape: Any = None) -> np.ndarray:
        """Returns an array: contiguous, or with steps, transposed or reversed axes."""
        dtype = np.dtype(self.dtype if dtype is None else dtype)
        shape = self.shape if shape is None else shape
        kind = self.random.randrange(4) if shape else 0
        stored = shape
        if kind == 1:
            stored = (*shape[:-1], 2 * shape[-1] + 1)
        elif kind == 2:
            stored = shape[::-1]
        count = math.prod(stored)
        whole = self.values(dtype, count).reshape(stored)
        if kind == 1:
            return whole[..., 1 : 2 * shape[-1] + 1 : 2] if shape[-1] else whole[..., :0]
        if kind == 2:
            return whole.T
        return whole[..., ::-1] if kind == 3 else whole

    def alike(self, *shapes: Any) -> np.ndarray:
        """Returns an operand for an array of the maker's shape, of the same or another dtype."""
        dtype = self.dtype if self.chance(60) else self.one(*NUMBERS)
        return self.array(dtype, self.one(self.shape, self.shape, (), self.shape[1:], *shapes))

    def scalar(self, dtype: Any = None) -> Any:
        """Returns a number: Python's, numpy's, or a special value."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        value = self.values(dtype, 1)[0]
        return value if self.chance(40) else value.item()

    def axis(self, *others: Any) -> Any:
        ndim = len(self.shape)
        return self.one(
            None, *others, *range(-ndim, ndim), tuple(range(ndim)), *(() if ndim else (0,))
        )

    def one_axis(self) -> int:
        ndim = max(len(self.shape), 1)
        return self.random.randrange(-ndim, ndim)

    def maybe(self, percent: int = 40, **kwargs: Callable[[], Any]) -> dict[str, Any]:
        return {name: make() for name, make in kwargs.items() if self.chance(percent)}

    def result_dtype(self) -> Any:
        return self.one(*REAL) if self.dtype.kind != "c" else self.one(*COMPLEX)


def reduction(*names: str) -> Callable[[Maker], Any]:
    def make(m: Maker) -> Any:
        ways = {
            "axis": m.axis,
            "keepdims": lambda: m.one(True, False),
            "dtype": m.result_dtype,
            "initial": m.scalar,
            "where": lambda: m.array(bool),
            "ddof": lambda: m.one(0, 1, 0.5, 2),
        }
        return (m.array(),), m.maybe(**{name: ways[name] for name in names})

    return make


def arange(m: Maker) -> Any:
    dtype = m.one(*REAL[1:])
    least = -5
    ends = [m.random.randint(least, 12) for _ in range(m.one(1, 2, 3))]
    if len(ends) == 3 and m.chance(80):
        ends[2] = ends[2] or 1
    # PyCUDA truncates fractional starts and steps for integer dtypes.
    if m.chance(25) and dtype.kind not in "iu":
        ends = [end + m.one(0.5, 0.25, 0.0) for end in ends]
    if dtype.kind in "iu" and m.chance(30):
        top = np.iinfo(dtype).max
        ends = m.one([top - 3, top], [top - 1, top - 8, -2], [3, -1, -1], [top, top - 3, -1])
    return tuple(ends), {"dtype": dtype}


def linspace(m: Maker) -> Any:
    ends = [m.one(0, 1, -3, 2.5, 1e6, 10), m.one(0, 1, -3, 2.5, 1e6, 10)]
    return tuple(ends), m.maybe(
        num=lambda: m.one(0, 1, 2, 7),
        endpoint=lambda: m.one(True, False),
        dtype=lambda: m.one(*REAL),
        retstep=lambda: m.one(False, True),
    )


def clip(m: Maker) -> Any:
    low, high = (m.one(None, m.scalar(), m.alike(), m.one(*INTEGERS).type(1)) for _ in range(2))
    names = m.one((), ("a_min", "a_max"), ("min", "max"))
    bounds = dict(zip(names, (low, high), strict=True)) if names else {}
    return (m.array(), *(() if names else (low, high))), bounds


def nan_to_num(m: Maker) -> Any:
    def bound() -> Any:
        return m.one(m.scalar(), m.one(0, 7, -1.5, math.inf, math.nan, -math.inf, 1e39), None)

    given = m.maybe(posinf=bound, neginf=bound, copy=lambda: m.one(True, False))
    given |= m.maybe(nan=lambda: m.one(m.scalar(), 0, 3, math.nan, math.inf))
    return (m.array(),), given


def of_one(**ways: Callable[[Maker], Any]) -> Callable[[Maker], Any]:
    return lambda m: ((m.array(),), m.maybe(60, **{k: (lambda w=w: w(m)) for k, w in ways.items()}))


def of_two(m: Maker) -> Any:
    return (m.array(), m.alike()), {}


def of_axis(m: Maker) -> Any:
    return (m.array(),), m.maybe(60, axis=m.one_axis)


def repeat(m: Maker) -> Any:
    given = m.maybe(60, axis=m.one_axis)
    n = m.array().size if "axis" not in given else (*m.shape, 1)[given["axis"] if m.shape else 0]
    counts = [m.one(0, 1, 2) for _ in range(n)]
    return (m.array(), m.one(0, 1, 3, counts, np.array(counts, m.one("i8", "u1", "?")))), given


def roll(m: Maker) -> Any:
    shift = m.one(0, 1, -1, 5, -100)
    return (m.array(), shift), m.maybe(60, axis=m.one_axis)


def full(m: Maker) -> Any:
    return (m.shape, m.scalar()), m.maybe(70, dtype=lambda: m.one(*NUMBERS))


def full_like(m: Maker) -> Any:
    return (m.array(), m.scalar()), m.maybe(50, dtype=lambda: m.one(*NUMBERS))


def where(m: Maker) -> Any:
    def pick() -> Any:
        return m.one(m.alike(), m.alike(), m.scalar())

    return (m.array(m.one(bool, m.dtype)), pick(), pick()), {}


def joined(m: Maker) -> Any:
    parts = [m.array(m.one(m.dtype, *NUMBERS)) for _ in range(m.one(1, 2, 3))]
    return (parts,), m.maybe(50, axis=m.one_axis, dtype=lambda: m.one(*NUMBERS))


def joined_plainly(m: Maker) -> Any:
    return ([m.array(m.one(m.dtype, *NUMBERS)) for _ in range(m.one(1, 2, 3))],), {}


def close(m: Maker) -> Any:
    a = m.array()
    b = a.copy() if m.chance(60) else m.alike()
    given = m.maybe(rtol=lambda: m.one(0, 0.1, 1), atol=lambda: m.one(0, 0.5, 2))
    return (a, m.scalar() if m.chance(15) else b), given | m.maybe(
        equal_nan=lambda: m.one(True, False)
    )


def equal(m: Maker) -> Any:
    a = m.array()
    return (a, a.copy() if m.chance(50) else m.alike()), m.maybe(
        equal_nan=lambda: m.one(True, False)
    )


def square(m: Maker) -> Any:
    m.shape = m.one((4, 4), (2, 3), (3, 1), (2, 3, 2), (5, 5))
    return (m.array(),), m.maybe(60, offset=lambda: m.one(-2, -1, 0, 1, 3))


def triangle(m: Maker) -> Any:
    return (m.array(),), m.maybe(60, k=lambda: m.one(-2, -1, 0, 1, 3))


def eye(m: Maker) -> Any:
    return (m.one(0, 1, 4),), m.maybe(
        60, M=lambda: m.one(None, 0, 3, 5), k=lambda: m.one(-2, 0, 1), dtype=lambda: m.one(*NUMBERS)
    )


def tile(m: Maker) -> Any:
    return (m.array(), m.one(0, 1, 2, (2, 3), (1, 2, 1))), {}


def diff(m: Maker) -> Any:
    return (m.array(),), m.maybe(60, n=lambda: m.one(0, 1, 2, 9), axis=m.one_axis)


def matmul(m: Maker) -> Any:
    shapes = [((3,), (3,)), ((2, 3), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 2)), ((0, 3), (3, 2))]
    first, second = m.one(*shapes)
    return (m.array(None, first), m.array(m.one(m.dtype, *NUMBERS), second)), {}


def compress(m: Maker) -> Any:
    axis = m.maybe(60, axis=m.one_axis)
    length = m.shape[axis["axis"]] if axis and m.shape else math.prod(m.shape)
    return (m.array(bool, (length,)), m.array()), axis


RUNNING = of_one(axis=lambda m: m.one_axis(), dtype=lambda m: m.result_dtype())
POSITION = of_one(axis=lambda m: m.one(None, m.one_axis()), keepdims=lambda m: m.one(True, False))

BOUNDS = ("axis", "keepdims", "initial", "where")
SUMS = (*BOUNDS, "dtype")

# The functions to call, and the arguments to make for them.
ROWS: dict[str, Callable[[Maker], Any]] = {
    **dict.fromkeys(("sum", "prod"), reduction(*SUMS)),
    **dict.fromkeys(("max", "min", "amax", "amin"), reduction(*BOUNDS)),
    **dict.fromkeys(("any", "all"), reduction("axis", "keepdims", "where")),
    "mean": reduction("axis", "keepdims", "dtype", "where"),
    **dict.fromkeys(("var", "std"), reduction("axis", "keepdims", "ddof", "where")),
    **dict.fromkeys(("nansum", "nanprod"), reduction(*SUMS)),
    "ptp": reduction("axis", "keepdims"),
    "count_nonzero": reduction("axis", "keepdims"),
    **dict.fromkeys(("argmax", "argmin"), POSITION),
    **dict.fromkeys(("cumsum", "cumprod"), RUNNING),
    "sort": of_axis,
    "argsort": lambda m: ((m.array(),), m.maybe(60, axis=m.one_axis) | {"kind": "stable"}),
    "arange": arange,
    "linspace": linspace,
    "full": full,
    "full_like": full_like,
    "eye": eye,
    "clip": clip,
    "nan_to_num": nan_to_num,
    "round": of_one(decimals=lambda m: m.one(0, 1, -1, 3, -3)),
    "where": where,
    **dict.fromkeys(("isclose", "allclose"), close),
    "array_equal": equal,
    "diff": diff,
    **dict.fromkeys(("diagonal", "trace"), square),
    **dict.fromkeys(("tril", "triu"), triangle),
    "tile": tile,
    "repeat": repeat,
    "roll": roll,
    "flip": of_one(axis=lambda m: m.axis()),
    **dict.fromkeys(("concatenate", "stack"), joined),
    **dict.fromkeys(("vstack", "hstack"), joined_plainly),
    **dict.fromkeys(("nonzero", "flatnonzero", "squeeze", "ravel", "transpose"), of_one()),
    "compress": compress,
    "matmul": matmul,
    **dict.fromkeys(("minimum", "maximum", "logical_and", "logical_or"), of_two),
    "logical_not": of_one(),
    "real": of_one(),
    "imag": of_one(),
    "conj": of_one(),
    "astype": lambda m: ((m.array(), m.one(*NUMBERS)), {}),
}

# -- universal functions -------------------------------------------------------------------


def _ufunc(name: str) -> Callable[[Maker], Any]:
    function = getattr(np, name)

    def make(m: Maker) -> Any:
        args = [m.array()]
        if function.nin == 2:
            args.append(m.one(m.alike(), m.alike(), m.scalar()))
            if m.chance(15):
                args.reverse()
        given = m.maybe(
            20,
            where=lambda: m.one(True, m.array(bool)),
            casting=lambda: m.one("no", "safe", "same_kind", "unsafe"),
            dtype=lambda: m.one(*NUMBERS),
        )
        if function.nout == 1 and (m.chance(25) or not isinstance(given.get("where", True), bool)):
            shape = np.broadcast_shapes(*map(np.shape, args), np.shape(given.get("where", True)))
            given["out"] = m.array(m.one(*NUMBERS), shape)
        return tuple(args), given

    return make


UFUNCS = sorted(
    name
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).signature is None
)
BY_SIGNATURE = rows(sorted({*gpuarray.__all__}.difference(ROWS, UFUNCS)))
ROWS |= BY_SIGNATURE
NAMES = sorted(ROWS)
ROWS |= {name: _ufunc(name) for name in UFUNCS if name not in ROWS}

# -- cases ---------------------------------------------------------------------------------

# `gpuarray` has PyCUDA's function, which keeps the dtype of its operand.
PYCUDAS = {"sum"}
# Stands for results that numpy leaves to another project, or to C's undefined conversions.
UNDEFINED = "no promise"
PRODUCTS, EXTREMES = ("prod", "nanprod", "cumprod"), ("max", "min", "amax", "amin", "ptp")


def promised(name: str, args: Any, kwargs: Any, expected: Any) -> Any:
    """Returns the result that the device guarantees if numpy returns or raises `expected`."""
    arrays = [
        np.asarray(a) for a in flattened([args, kwargs]) if isinstance(a, np.ndarray | np.generic)
    ]
    has_bfloat16 = any(a.dtype == BFLOAT16 for a in arrays)
    if has_bfloat16 and name == "nan_to_num":
        # numpy does not replace NaN in bfloat16 arrays.
        if isinstance(expected, Exception):
            return UNDEFINED
        wide = [a.astype("f4") if isinstance(a, np.ndarray) else a for a in args]
        limits = ml_dtypes.finfo(BFLOAT16)
        given = {"posinf": limits.max, "neginf": limits.min}
        given |= {k: v for k, v in kwargs.items() if v is not None and k != "copy"}
        return np.nan_to_num(*wide, **given).astype(BFLOAT16)
    if has_bfloat16 and name in ("nansum", "nanprod") and "dtype" not in kwargs:
        a = np.where(args[0] != args[0], 0 if name == "nansum" else 1, args[0].astype("f4"))
        return getattr(np, name[3:])(a.astype(BFLOAT16), *args[1:], **kwargs)
    if has_bfloat16 and (name in UFUNCS or isinstance(expected, Exception) or name in OF_SEVERAL):
        return UNDEFINED
    if has_bfloat16 and name in ("nansum", "nanprod"):
        return UNDEFINED
    if kwargs.get("casting") == "unsafe" and any(a.dtype.kind in "iu" for a in arrays):
        return UNDEFINED  # numbers outside the output's integer type
    if name == "ldexp" and not isinstance(args[0], np.ndarray):
        return UNDEFINED  # numpy uses the smallest type for a number
    if name == "unwrap" and isinstance(expected, OverflowError):
        return UNDEFINED  # half a period in an unsigned type
    if name == "ldexp" and isinstance(expected, TypeError):
        return UNDEFINED  # PyCUDA's function takes exponents with fractions
    if "takes no keyword arguments" in str(expected):
        return UNDEFINED
    if name == "clip" and any(a.dtype.kind == "c" and (a != a).any() for a in arrays):
        return UNDEFINED
    if name in ("mean", "nan_to_num") and any(
        np.iscomplexobj(it) for it in flattened([args[1:], kwargs])
    ):
        return UNDEFINED
    results = [] if isinstance(expected, Exception) else flattened(expected)
    if not has_bfloat16 and any(getattr(it, "dtype", None) == BFLOAT16 for it in results):
        return UNDEFINED  # `ml_dtypes` provides its functions for small integers
    # Complex numbers with non-finite parts, and products in another order.
    odd = any(a.dtype.kind == "c" for a in arrays) and not all(np.isfinite(a).all() for a in arrays)
    if odd and (name in UFUNCS or name in ("matmul", "mean", *PRODUCTS, *EXTREMES)):
        return UNDEFINED
    if name in PRODUCTS and any(
        a.dtype.kind in "iu" and (np.abs(a.astype("f8")) > 1e4).any() for a in arrays
    ):
        return UNDEFINED
    if name in PRODUCTS and "initial" in kwargs and args[0].dtype.kind in "fc":
        return UNDEFINED  # the product of the other elements may overflow
    # Integers that cancel, or whose sum overflows the requested type.
    if name == "mean" and args[0].dtype.kind in "iu" and (np.abs(args[0].astype("f8")) > 1e4).any():
        return UNDEFINED
    if name == "reciprocal" and (np.asarray(args[0]) == 0).any():
        return UNDEFINED
    if "negative integer powers" in str(expected) or (
        name in ("power", "pow") and 0 in np.shape(args[0])
    ):
        return UNDEFINED
    if isinstance(expected, Exception) and any(0 in a.shape for a in arrays):
        return UNDEFINED  # numpy checks values although nothing would be stored
    results = [np.asarray(it) for it in flattened(expected) if not isinstance(it, str)]
    if isinstance(expected, Exception) or not any(it.dtype.kind in "iu" for it in results):
        return expected
    # The integer conversion of NaN and out-of-range values is undefined.
    beyond = any(
        (a.dtype == BFLOAT16 or a.dtype.kind in "fc")
        and not (np.abs(np.nan_to_num(a.astype("c8"), nan=1e30)) < 128).all()
        for a in arrays
    )
    rounds = name == "round" and kwargs.get("decimals", 0) < 0
    divides = name == "mean" and args[0].size == 0
    return UNDEFINED if beyond or rounds or divides else expected


OF_SEVERAL = {
    "sort",
    "argsort",
    "clip",
    "matmul",
    "where",
    "concatenate",
    "stack",
    "hstack",
    "vstack",
    "isclose",
}


def flattened(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [it for part in value for it in flattened(part)]
        if isinstance(value, tuple | list)
        else [value]
    )


def faces(name: str) -> list[str]:
    if name in BY_SIGNATURE:
        return ["numpy"] if name in DIFFERENT else ["numpy", "gpuarray"]
    named = ["numpy"] if hasattr(np, name) and not name.startswith(("arange", "linspace")) else []
    if name in ("full", "eye", "astype"):
        named = []
    named += ["gpuarray"] if name in gpuarray.__all__ else []
    # As methods, these modify the array, or take the array as another argument.
    is_method = hasattr(gpuarray.GPUArray, name) and name not in ("sort", "compress")
    return named + (["method"] if is_method else [])


def on_device(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(on_device(item) for item in value)
    return gpuarray.to_gpu(value) if isinstance(value, np.ndarray) else value


def call(face: str, name: str, args: Any, kwargs: Any) -> Any:
    if face == "numpy":
        return function_of(name)(*args, **kwargs)
    if face == "gpuarray":
        return getattr(gpuarray, name)(*args, **kwargs)
    method = getattr(args[0], name)
    return method(*args[1:], **kwargs) if callable(method) else method


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except Exception as error:
            return error


def numpys(face: str, name: str, args: Any, kwargs: Any) -> Any:
    # numpy's method names the bounds differently than its function.
    if face != "method" or name == "clip" or not hasattr(args[0], name):
        return function_of(name)(*args, **kwargs)
    method = getattr(args[0], name)
    return method(*args[1:], **kwargs) if callable(method) else method


def tolerance(dtype: np.dtype) -> float:
    if dtype == BFLOAT16:
        return 2e-2
    return {2: 4e-3, 4: 1e-5, 8: 1e-12}.get(dtype.itemsize // (2 if dtype.kind == "c" else 1), 0)


def differ(result: Any, expected: Any, rough: float = 0) -> str | None:
    """Returns a description of how a result differs from numpy's, or None."""
    if isinstance(expected, tuple | list):
        if not isinstance(result, tuple | list) or len(result) != len(expected):
            return f"{result!r} instead of {expected!r}"
        found = [differ(*pair, rough) for pair in zip(result, expected, strict=True)]
        return next(filter(None, found), None)
    if isinstance(result, gpuarray.GPUArray):
        result = result.get()
    got, wanted = np.asarray(result), np.asarray(expected)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype}{got.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind in "fcV" or wanted.dtype == BFLOAT16:
        rough = max(rough, tolerance(wanted.dtype))
        parts = ("real", "imag") if wanted.dtype.kind == "c" else ("real",)
        close = all(
            np.allclose(
                np.float64(getattr(got, part)),
                np.float64(getattr(wanted, part)),
                rough,
                max(rough, 1e-6),
                equal_nan=True,
            )
            for part in parts
        )
    else:
        close = np.array_equal(got, wanted)
    return None if close else f"{got.tolist()} instead of {wanted.tolist()}"


def is_refusal(name: str, error: Any) -> bool:
    """Returns true if the device reports that it lacks a keyword, or that a number does not fit."""
    text = str(error)
    if isinstance(error, OverflowError) and name == "where":
        return True
    return isinstance(error, TypeError) and any(
        said in text
        for said in (
            "does not take",
            "unexpected keyword",
            "does not work on a GPUArray",
            "is not defined for dtype complex",
            "on the device",
            "the device supports",
            "a floating-point or complex dtype is needed",
        )
    )


def run(seed: int, only: str | None, refused: Counter[str]) -> list[str]:
    """Runs one case through every interface; returns the findings."""
    random = Random(f"name {seed}")
    name = only or random.choice(UFUNCS if random.random() < 0.3 else NAMES)
    found = []
    for face in faces(name):
        args, kwargs = ROWS[name](Maker(seed))
        host = [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
        # The device's arrays have the same strides as the host's.
        device = [on_device(a) for a in args]
        given = {key: on_device(value) for key, value in kwargs.items()}
        kwargs = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
        expected = promised(name, args, kwargs, outcome(numpys, face, name, host, kwargs))
        if isinstance(expected, str):
            continue
        asked = any(kwargs.get(key) not in (None, False) for key in ("dtype", "axis", "keepdims"))
        if face == "gpuarray" and name in PYCUDAS and not asked:
            continue
        result = outcome(call, face, name, device, given)
        text = f"{seed} {face}.{name}{describe(args)} {describe(kwargs)}"
        if isinstance(result, Exception):
            if isinstance(expected, Exception):
                continue
            if is_refusal(name, result):
                refused[f"{face}.{name} {sorted(kwargs)}"] += 1
            else:
                found.append(f"{text}: {type(result).__name__}: {result}")
            continue
        if isinstance(expected, Exception):
            if name in BY_SIGNATURE and (
                isinstance(expected, TypeError) or "unpack" in str(expected)
            ):
                continue  # the device takes more kinds of arguments
            found.append(
                f"{text}: numpy has {type(expected).__name__}: {expected}; got {result!r:.80}"
            )
            continue
        rough = (
            max((tolerance(a.dtype) for a in flattened(args) if hasattr(a, "dtype")), default=0)
            if "out" in given
            else 0
        )
        difference = differ(result, expected, rough)
        if difference is None and "out" in given:
            difference = differ(given["out"], kwargs["out"], rough)
        if difference is None and name == "nan_to_num":
            changed = expected if kwargs.get("copy") is False else args[0]
            difference = differ(device[0], changed)
        if difference is not None:
            found.append(f"{text}: {difference}")
    return found


def describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tolist()}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(describe, value)) + ")"
    return repr(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one case of this number")
    parser.add_argument("--name", help="one function")
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    options = parser.parse_args()
    numbers = [options.only] if options.only is not None else range(options.cases)
    refused: Counter[str] = Counter()
    findings = 0
    for number in numbers:
        for finding in run(options.seed * 1_000_003 + number, options.name, refused):
            findings += 1
            print("finding:", finding)
    print(f"{len(numbers)} cases, {findings} findings, {sum(refused.values())} refused")
    if options.refusals:
        print(*(f"{count} {what}" for what, count in refused.most_common()), sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
