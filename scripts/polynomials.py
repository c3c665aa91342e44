"""Prints the coefficients in backend-host/src/kernels/math/coefficients.rs.

Each polynomial interpolates a function at the Chebyshev points of an interval, which comes close
to the best approximation. Needs mpmath: ``pip install mpmath; python scripts/polynomials.py``.
"""

import mpmath
from mpmath import asin, atan, atanh, cos, exp, log, log1p, mpf, pi, sin, sqrt

mpmath.mp.dps = 200


def odd(function, factor=1):
    """(factor * function(r) - factor * r) / r^3 in powers of r^2."""
    return lambda z: factor * (function(sqrt(z)) - sqrt(z)) / (sqrt(z) * z)


def exp_tail(r):
    return (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -90 else mpf(1) / 2


# Name, function, ends of the interval, numbers of coefficients for double and single precision.
WIDER = mpf("1.0001")  # the reductions may end a little beyond the exact bounds
HALF_LN_2 = log(2) / 2 * WIDER
EIGHTH = (sqrt(2) - 1) ** 2 * WIDER
QUARTER = (pi / 4) ** 2 * WIDER
LOG = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * mpf("1.001")
POLYNOMIALS = [
    ("EXP", exp_tail, -HALF_LN_2, HALF_LN_2, 11, 6),
    ("LOG", odd(atanh, 2), 0, LOG, 8, 0),
    ("LOG1P", lambda f: (log1p(f) - f) / f**2, sqrt(0.5) - 1, sqrt(2) - 1, 0, 11),
    ("SIN", odd(sin), 0, QUARTER, 7, 4),
    ("COS", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, 0, QUARTER, 7, 4),
    ("ASIN", odd(asin), 0, mpf(1) / 4, 14, 8),
    ("ATAN", odd(atan), 0, EIGHTH, 12, 6),
]


def interpolate(function, start, end, count):
    points = [
        (start + end) / 2 + (end - start) / 2 * cos(pi * (2 * k + 1) / (2 * count))
        for k in range(count)
    ]
    powers = mpmath.matrix([[x**power for power in range(count)] for x in points])
    values = mpmath.matrix([function(x) for x in points])
    return [float(c) for c in mpmath.lu_solve(powers, values)]


def main():
    for name, function, start, end, *counts in POLYNOMIALS:
        for precision, count in zip(("DOUBLE", "SINGLE"), counts, strict=True):
            if count:
                print(f"\n{name}_{precision}: [f64; {count}]")
                for coefficient in interpolate(function, start, end, count):
                    print(f"    {coefficient!r},")


if __name__ == "__main__":
    main()
