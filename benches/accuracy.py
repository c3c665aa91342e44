"""Errors of elementwise functions in units in the last place (ulp), against mpmath.

    python benches/accuracy.py [--count 20000] [--check] [FUNCTION ...]

prints a line for each function and dtype: the largest error and its arguments. `--check` fails if
an error is above its bound. Arguments are random bits, uniform numbers from several ranges, and
numbers around the functions' zeros, poles and limits. docs/accuracy.md has a table of the
results.

The logarithms of sums and of the gamma function have zeros at which terms cancel. Their errors
are counted in ulp of the largest term.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

import pygpu.autoinit  # noqa: F401
from pygpu import cumath, gpuarray

mpmath.mp.prec = 160

Reference = Callable[..., Any]

# The name, the reference, and the bounds in ulp for float32 and float64 on the host backend.
FUNCTIONS: dict[str, tuple[Reference, float, float]] = {
    "log1p": (mpmath.log1p, 1, 1),
    "expm1": (mpmath.expm1, 1, 1),
    "exp2": (lambda x: mpmath.power(2, x), 1, 1),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), 0.51, 1),
    "arcsinh": (mpmath.asinh, 0.51, 2),
    "arccosh": (mpmath.acosh, 0.51, 2),
    "arctanh": (mpmath.atanh, 0.51, 2),
    "erf": (mpmath.erf, 0.51, 1),
    "erfc": (mpmath.erfc, 0.51, 4),
    "gamma": (mpmath.gamma, 0.51, 10),
    "lgamma": (lambda x: log_gamma(x), 0.51, 10),
    "deg2rad": (lambda x: x * mpmath.pi / 180, 2, 2),
    "rad2deg": (lambda x: x * 180 / mpmath.pi, 2, 2),
    "hypot": (mpmath.hypot, 0.51, 1),
    "arctan2": (mpmath.atan2, 2, 1),
    "logaddexp": (lambda x, y: log_add_exp(x, y), 2, 2),
    "logaddexp2": (lambda x, y: log_add_exp(x * mpmath.ln2, y * mpmath.ln2) / mpmath.ln2, 2, 2),
}
BINARY = ("hypot", "arctan2", "logaddexp", "logaddexp2")
# Functions whose terms cancel, with the magnitude of their largest term.
TERMS: dict[str, Callable[..., float]] = {
    "lgamma": lambda x: 1.0,
    "logaddexp": lambda x, y: max(abs(x), abs(y)),
    "logaddexp2": lambda x, y: max(abs(x), abs(y)),
}


def log_gamma(x: Any) -> Any:
    """Returns the logarithm of the gamma function's absolute value."""
    if x > 0:
        return mpmath.loggamma(x)
    return mpmath.log(mpmath.pi / abs(mpmath.sinpi(x))) - mpmath.loggamma(1 - x)


def log_add_exp(x: Any, y: Any) -> Any:
    """Returns `log(e**x + e**y)`."""
    larger, smaller = max(x, y), min(x, y)
    return larger + mpmath.log1p(mpmath.exp(smaller - larger))


def numbers(dtype: np.dtype[Any], count: int, seed: int) -> np.ndarray:
    """Returns finite arguments from the whole range."""
    rng = np.random.default_rng(seed)
    bits = np.dtype(f"u{dtype.itemsize}")
    parts = [rng.integers(0, np.iinfo(bits).max, count // 4, bits).view(dtype)]
    for size in (1e-3, 1, 3, 30, 170, 800):
        parts.append(rng.uniform(-size, size, count // 8).astype(dtype))
    around = np.array([-3, -2, -1, 0, 1, 2, 171, 2.4570247, -2.7476827, -3.1435809])
    nudges = rng.uniform(-1, 1, (count // 80, 1)) * 10.0 ** rng.uniform(-8, 0, (count // 80, 1))
    parts.append((around + nudges).astype(dtype).ravel())
    values = np.concatenate(parts)
    return values[np.isfinite(values)]


def errors(name: str, dtype: np.dtype[Any], count: int) -> tuple[float, tuple[float, ...], int]:
    """Returns the largest error in ulp, its arguments, and the number of finite values."""
    reference = FUNCTIONS[name][0]
    arguments = [numbers(dtype, count, seed) for seed in range(2 if name in BINARY else 1)]
    if name in BINARY:
        arguments[1] = np.random.default_rng(9).permutation(arguments[1])
        length = min(map(len, arguments))
        arguments = [argument[:length] for argument in arguments]
    device = [gpuarray.to_gpu(argument) for argument in arguments]
    got = getattr(cumath, name)(*device).get()
    worst, where, compared = 0.0, (0.0,) * len(arguments), 0
    smallest = float(np.finfo(dtype).smallest_subnormal)
    for value, *point in zip(got.tolist(), *(x.tolist() for x in arguments), strict=True):
        if not np.isfinite(value):
            continue
        try:
            exact = reference(*map(mpmath.mpf, point))
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        if not isinstance(exact, mpmath.mpf) or not mpmath.isfinite(exact):
            continue
        size = max(float(abs(exact)), TERMS[name](*point) if name in TERMS else 0.0)
        unit = max(float(np.spacing(dtype.type(size))), smallest)
        error = float(abs(mpmath.mpf(value) - exact) / unit)
        compared += 1
        if error > worst:
            worst, where = error, tuple(point)
    return worst, where, compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="all without it")
    parser.add_argument("--count", type=int, default=20_000, help="arguments, about")
    parser.add_argument("--check", action="store_true", help="fail above the bounds")
    options = parser.parse_args()
    above = 0
    for name in options.functions or FUNCTIONS:
        for dtype, bound in zip((np.float32, np.float64), FUNCTIONS[name][1:], strict=True):
            worst, where, compared = errors(name, np.dtype(dtype), options.count)
            place = ", ".join(f"{x:.9g}" for x in where)
            mark = " above the bound" if worst > bound else ""
            above += worst > bound
            print(f"{name:10} {dtype.__name__:8} {worst:7.3f} ulp of {compared} at ({place}){mark}")
    return int(options.check and above > 0)


if __name__ == "__main__":
    sys.exit(main())
