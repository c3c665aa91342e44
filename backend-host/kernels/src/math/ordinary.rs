//! Functions of ordinary numbers in double precision, with errors below 1 ulp.
//!
//! Like `double`, with less work: the arguments are not special, and all intermediate results are normal
//! numbers. The logarithm is assembled as in FreeBSD's `e_log.c`. Hyperbolic functions use the addition
//! theorem: for `x = n ln(2) + r`
//!
//! ```text
//! sinh(x) = a cosh(r) + b sinh(r)    a = (2^n - 2^-n) / 2
//! cosh(x) = b cosh(r) + a sinh(r)    b = (2^n + 2^-n) / 2
//! ```

use super::coefficients::*;
use super::double::{
    LN_2, LOG2_E, LOG10_2, LOG10_E, PER_LN_2, ROUND, fast_sum, polynomial, quotient, split,
};

/// Returns `2^n`, times a power of two that the bias stands for, from the sum of `n` and [`ROUND`].
#[inline(always)]
fn scale(rounded: f64, bias: u64) -> f64 {
    f64::from_bits(rounded.to_bits().wrapping_add(bias) << 52)
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let rounded = x.mul_add(PER_LN_2, ROUND);
    let n = rounded - ROUND;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    let tail = r * r * polynomial(&EXP_ORDINARY_DOUBLE, r);
    let (value, rest) = fast_sum(1.0, r);
    (value + (rest + tail)) * scale(rounded, 1023)
}

/// Returns the exponent `k`, and `f`, `f^2 / 2` and a third number with `ln(1 + f) = f - f^2 / 2 + third`,
/// for `x = 2^k (1 + f)`.
#[inline(always)]
fn log_parts(x: f64) -> (f64, f64, f64, f64) {
    let (k, m) = split(x);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let square = 0.5 * f * f;
    (k, f, square, s * z.mul_add(polynomial(&LOG_DOUBLE, z), square))
}

#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let (k, f, square, tail) = log_parts(x);
    let lower = square - k.mul_add(LN_2[1], tail);
    k.mul_add(LN_2[0], f - lower)
}

/// Returns the exponent `k`, and two numbers whose sum is the product of `per_e` and `ln(m)`, for `x = 2^k
/// m`.
#[inline(always)]
fn log_of_base(x: f64, per_e: [f64; 2]) -> (f64, f64, f64) {
    let (k, f, square, tail) = log_parts(x);
    let (upper, rest) = fast_sum(f, -square);
    let product = upper * per_e[0];
    let missing = upper.mul_add(per_e[0], -product);
    let tail = (rest + tail).mul_add(per_e[0], upper.mul_add(per_e[1], missing));
    (k, product, tail)
}

#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    let (k, product, tail) = log_of_base(x, LOG2_E);
    let (value, rest) = fast_sum(k, product);
    value + (rest + tail)
}

#[inline(always)]
pub(super) fn log10(x: f64) -> f64 {
    let (k, product, tail) = log_of_base(x, LOG10_E);
    let (value, rest) = fast_sum(k * LOG10_2[0], product);
    value + (rest + k.mul_add(LOG10_2[1], tail))
}

/// A nonnegative number, prepared for the addition theorem.
struct Hyperbolic {
    /// `a`, and its rounding error.
    a: (f64, f64),
    /// `b`, and its rounding error.
    b: (f64, f64),
    r: f64,
    /// `sinh` of `r` including its rounding error, minus `r`.
    odd: f64,
    /// `cosh(r) - 1`.
    even: f64,
}

impl Hyperbolic {
    #[inline(always)]
    fn of(size: f64) -> Self {
        let rounded = size.mul_add(PER_LN_2, ROUND);
        let n = rounded - ROUND;
        let upper = n.mul_add(-LN_2[0], size);
        let (r, rest) = fast_sum(upper, -n * LN_2[1]);
        let large = scale(rounded, 1022);
        let small = f64::from_bits(1022u64.wrapping_sub(rounded.to_bits()) << 52);
        let z = r * r;
        Hyperbolic {
            a: fast_sum(large, -small),
            b: fast_sum(large, small),
            r,
            odd: (r * z).mul_add(polynomial(&SINH_DOUBLE, z), rest),
            even: z * polynomial(&COSH_DOUBLE, z),
        }
    }

    /// Returns two numbers whose sum is `first cosh(r) + second sinh(r)`.
    #[inline(always)]
    fn sum(&self, first: (f64, f64), second: f64) -> (f64, f64) {
        let value = second.mul_add(self.r, first.0);
        let lower = second.mul_add(self.r, first.0 - value) + first.1;
        (value, second.mul_add(self.odd, first.0.mul_add(self.even, lower)))
    }
}

#[inline(always)]
pub(super) fn sinh(x: f64) -> f64 {
    let parts = Hyperbolic::of(x.abs());
    let (value, rest) = parts.sum(parts.a, parts.b.0);
    (value + rest).copysign(x)
}

#[inline(always)]
pub(super) fn cosh(x: f64) -> f64 {
    let parts = Hyperbolic::of(x.abs());
    let (value, rest) = parts.sum(parts.b, parts.a.0);
    value + rest
}

#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let parts = Hyperbolic::of(x.abs());
    let sine = parts.sum(parts.a, parts.b.0);
    let cosine = parts.sum(parts.b, parts.a.0);
    let (value, rest) = quotient(sine, fast_sum(cosine.0, cosine.1));
    (value + rest).copysign(x)
}
