"""Complex functions at zeros, subnormal, huge and infinite parts, and NaN.

C99's Annex G defines these results; numpy's functions are the reference. A sign of zero or
infinity that the Annex leaves open is not compared. `ULP` bounds the errors of finite values
relative to the modulus of the result, because the parts of a product or quotient can cancel.
"""

from __future__ import annotations

import numpy as np
from functions import ELEMENTARY
from tables import each_row

from pygpu import cumath, gpuarray

PARTS = {"c8": np.float32, "c16": np.float64}
ULP = 16
# If the other part is NaN, the sign of zero or infinity is unspecified except for these
# functions.
SIGNED = {"sqrt", "exp", "log", "log10"}


def grid(dtype):
    part = PARTS[dtype]
    limits = np.finfo(part)
    sizes = [0, limits.smallest_subnormal, limits.tiny, limits.tiny * 2**30, limits.eps**2, 1e-3]
    sizes += [0.5, 1, 1 + limits.eps, 1.5, 3, 20, 50, 88.9, 89.5, 100, 709.9, 711, 1e4, 1e6]
    sizes += [limits.max**0.5, limits.max / 8, limits.max, np.inf, np.nan]
    parts = np.array(sizes + [-size for size in sizes[:-1]], part)
    whole = np.empty((parts.size, parts.size), dtype)
    whole.real, whole.imag = parts[:, None], parts
    return whole.ravel()


def mismatches(got, expected, z, part, signed):
    """Returns the differences between two results, as rows of argument, result and expectation."""
    limits = np.finfo(part)
    with np.errstate(all="ignore"):
        size = np.minimum(np.maximum(abs(expected.real), abs(expected.imag)), limits.max)
        allowed = ULP * (limits.eps * size + limits.smallest_subnormal)
        bad = np.zeros(z.shape, bool)
        beside_nan = np.isnan(got) & np.isnan(expected) & (not signed)
        for ours, theirs in ((got.real, expected.real), (got.imag, expected.imag)):
            free = beside_nan & ~np.isfinite(ours) & (abs(ours) == abs(theirs))
            same = free | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
            close = np.isfinite(ours) & np.isfinite(theirs) & (abs(ours - theirs) <= allowed)
            # A single rounding decides whether the largest numbers overflow.
            edge = (abs(ours) > limits.max * 0.999) & (abs(theirs) > limits.max * 0.999)
            bad |= ~(same | close | (edge & (np.sign(ours) == np.sign(theirs))))
            signs = np.signbit(ours) != np.signbit(theirs)
            # Annex G leaves the sign of a zero open if an argument is NaN.
            bad |= signs & (ours == 0) & (theirs == 0) & ~beside_nan & ~np.isnan(z)
    return bad


@each_row("dtype", PARTS)
@each_row("name", ELEMENTARY)
def test_complex_at_the_edges(name, dtype):
    z = grid(dtype)
    got = getattr(cumath, name)(gpuarray.to_gpu(z)).get()
    with np.errstate(all="ignore"):
        expected = ELEMENTARY[name](z)
    bad = mismatches(got, expected, z, PARTS[dtype], name in SIGNED)
    rows = [f"{a}: {b}, expected {c}" for a, b, c in zip(z[bad], got[bad], expected[bad])]
    assert not rows, f"{len(rows)} of {z.size}:\n" + "\n".join(rows[:20])
