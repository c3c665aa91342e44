"""Prints the coefficients in backend-host/kernels/src/math/coefficients.rs.

Each polynomial interpolates a function at the Chebyshev points of an interval, which is
close to the best approximation. Needs mpmath: ``pip install mpmath; python
scripts/polynomials.py``.
"""

import mpmath
from mpmath import asin, atan, atanh, cos, cosh, exp, log, log1p, mpf, pi, sin, sinh, sqrt

mpmath.mp.dps = 200


def odd(function, factor=1):
    """Returns (factor * function(r) - factor * r) / r^3 as a function of r^2."""
    return lambda z: factor * (function(sqrt(z)) - sqrt(z)) / (sqrt(z) * z)


def exp_tail(r):
    return (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -90 else mpf(1) / 2


def cos_tail(z):
    return (cos(sqrt(z)) - 1 + z / 2) / z**2


def cosh_tail(z):
    return (cosh(sqrt(z)) - 1) / z


def log_tail(z):
    """Returns (2 atanh(s) - 2 s - 2/3 s^3) / s^5 for z = s^2."""
    s = sqrt(z)
    return (2 * atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


# Name, function, ends of the interval, number of coefficients.
WIDER = mpf("1.0001")  # the reduced arguments may slightly exceed the exact bounds
HALF_LN_2 = log(2) / 2 * WIDER
EIGHTH = (sqrt(2) - 1) ** 2 * WIDER
QUARTER = (pi / 4) ** 2 * WIDER
LOG = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * mpf("1.001")
POLYNOMIALS = [
    ("EXP_DOUBLE", exp_tail, -HALF_LN_2, HALF_LN_2, 11),
    ("EXP_ORDINARY_DOUBLE", exp_tail, -HALF_LN_2, HALF_LN_2, 10),
    ("SINH_DOUBLE", odd(sinh), 0, HALF_LN_2**2, 5),
    ("COSH_DOUBLE", cosh_tail, 0, HALF_LN_2**2, 6),
    ("LOG_DOUBLE", odd(atanh, 2), 0, LOG, 8),
    ("SIN_DOUBLE", odd(sin), 0, QUARTER, 7),
    ("COS_DOUBLE", cos_tail, 0, QUARTER, 7),
    ("ASIN_DOUBLE", odd(asin), 0, mpf(1) / 4, 14),
    ("ATAN_DOUBLE", odd(atan), 0, EIGHTH, 12),
    ("EXP_SINGLE", exp_tail, -HALF_LN_2, HALF_LN_2, 5),
    ("LOG_SINGLE", lambda f: (log1p(f) - f) / f**2, sqrt(0.5) - 1, sqrt(2) - 1, 9),
    ("SIN_SINGLE", odd(sin), 0, QUARTER, 4),
    ("COS_SINGLE", cos_tail, 0, QUARTER, 4),
    ("ASIN_SINGLE", odd(asin), 0, mpf(1) / 4, 6),
    ("ATAN_SINGLE", odd(atan), 0, mpf(1), 9),
    ("POWER_LOG_DOUBLE", log_tail, 0, LOG, 8),
    ("POWER_LOG_SINGLE", odd(atanh, 2), 0, LOG, 5),
    ("POWER_EXP_SINGLE", exp_tail, -HALF_LN_2, HALF_LN_2, 6),
    ("SINH_SINGLE", odd(sinh), 0, HALF_LN_2**2, 3),
    ("COSH_SINGLE", cosh_tail, 0, HALF_LN_2**2, 3),
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
    for name, function, start, end, count in POLYNOMIALS:
        print(f"\n{name}: {count}")
        for coefficient in interpolate(function, start, end, count):
            print(f"    {coefficient!r},")


if __name__ == "__main__":
    main()
