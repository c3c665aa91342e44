"""Errors of the host backend's elementary functions in double precision, in ulp.

GPUs use their vendors' functions, which have other bounds. Half and single precision
are checked in `backend-host/kernels/tests/kernels/functions.rs`. The reference is
numpy's longdouble.
"""

from __future__ import annotations

import numpy as np
import pytest
from functions import ELEMENTARY

from pygpu import choose_backend, cumath, gpuarray

BOUND = 1.0

pytestmark = [
    pytest.mark.skipif(
        np.finfo(np.longdouble).nmant <= np.finfo(np.float64).nmant,
        reason="the reference needs a longdouble with more digits than a double",
    ),
    pytest.mark.skipif(
        choose_backend() != "host",
        reason="the bound is the host backend's",
    ),
]


def arguments():
    rng = np.random.default_rng(5)
    count = 20_000
    parts = [rng.integers(0, 2**64, count, np.uint64).view(np.float64)]
    parts += [rng.uniform(-size, size, count) for size in (1e-8, 0.1, 1, 5, 90, 750, 1e6, 1e9)]
    parts.append(1 + rng.uniform(-1, 1, count) * 10.0 ** rng.uniform(-16, -1, count))
    # Arguments next to zeros of sine and cosine, and exact powers.
    parts += [np.arange(1, count) * np.pi / 2, 2.0 ** np.arange(-1074, 1024)]
    parts += [10.0 ** np.arange(-300, 300), np.arange(-100.0, 101.0)]
    limits = np.finfo(np.float64)
    special = [0.0, np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal, 0.5, 1]
    special += [1 - limits.epsneg, 1 + limits.eps]
    parts += [np.array(special), -np.array(special)]
    return np.concatenate(parts)


@pytest.mark.parametrize("name", ELEMENTARY)
def test_double_precision(name):
    x = arguments()
    got = getattr(cumath, name)(gpuarray.to_gpu(x)).get()
    with np.errstate(all="ignore"):
        exact = ELEMENTARY[name](x.astype(np.longdouble))
    check(f"{name}({{}})", got, exact, x)


def check(text, got, exact, *arguments):
    """Compares special values, and bounds the errors of the others."""
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float64)
        finite = np.isfinite(got) & np.isfinite(expected)
        unit = np.spacing(np.abs(expected))
        error = np.where(finite, np.abs((got - exact) / unit), 0).astype(np.float64)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))
    worst = error.argmax()
    call = text.format(*(argument[worst] for argument in arguments))
    assert error[worst] < BOUND, f"{call}: {error[worst]:.3f} ulp"


def test_powers():
    x = arguments()
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        # Results near the ends of the range, where errors of the logarithm count most.
        extreme = rng.uniform(-745, 710, x.size) / np.log(np.abs(x))
    whole = rng.integers(-40, 40, x.size).astype(np.float64)
    for y in (rng.permutation(x), rng.uniform(-4, 4, x.size), whole, extreme):
        got = (gpuarray.to_gpu(x) ** gpuarray.to_gpu(y)).get()
        with np.errstate(all="ignore"):
            exact = x.astype(np.longdouble) ** y.astype(np.longdouble)
        check("{!r} ** {!r}", got, exact, x, y)


def test_modulus():
    x = arguments()
    y = np.random.default_rng(8).permutation(x)
    z = np.empty(3 * x.size, np.complex128)
    # Unrelated parts, parts of nearly the same size, and parts whose sizes differ
    # slightly.
    z.real = np.concatenate([x, x, x])
    scales = 2.0 ** np.random.default_rng(9).integers(-60, 60, x.size)
    with np.errstate(all="ignore"):
        z.imag = np.concatenate([y, x * (1 + y * 1e-9), x * scales])
        exact = np.hypot(z.real.astype(np.longdouble), z.imag.astype(np.longdouble))
    check("abs({!r})", abs(gpuarray.to_gpu(z)).get(), exact, z)
