//! Functions of numbers in single and half precision, computed in double precision with an
//! error of about 2^-30 and then rounded once.
//!
//! The reductions are those of `double`; there are neither branches nor divisions in double
//! precision, which cost more than the polynomials.

use super::coefficients::*;
use super::double::{HALF_PI, PER_LN_2, ROUND, log_of_special, polynomial, power_of_two, split};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_2, LOG10_E, PI};

/// `1 / x` for numbers whose inverse single precision has: an approximation in single
/// precision, and a step of Newton's method.
#[inline(always)]
fn inverse(x: f64) -> f64 {
    let guess = f64::from(1.0 / x as f32);
    guess * guess.mul_add(-x, 2.0)
}

/// `n` and [`ROUND`], and `e^r - 1` for `x = n ln(2) + r`.
#[inline(always)]
fn exp_parts(x: f64) -> (f64, f64) {
    let rounded = x.mul_add(PER_LN_2, ROUND);
    let r = (rounded - ROUND).mul_add(-LN_2, x);
    (rounded, (r * r).mul_add(polynomial(&EXP_SINGLE, r), r))
}

#[inline(always)]
fn limit(x: f64, bound: f64) -> f64 {
    let x = if x > bound { bound } else { x };
    if x < -bound { -bound } else { x }
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let (rounded, p) = exp_parts(limit(x, 200.0));
    let scale = power_of_two(rounded);
    p.mul_add(scale, scale)
}

/// The exponent `k`, and `ln(m)` for `x = 2^k m`.
#[inline(always)]
fn log_parts(x: f64) -> (f64, f64) {
    let (k, m) = split(x);
    let f = m - 1.0;
    (k, (f * f).mul_add(polynomial(&LOG1P_SINGLE, f), f))
}

#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let (k, part) = log_parts(x);
    log_of_special(x, k.mul_add(LN_2, part))
}

#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    let (k, part) = log_parts(x);
    log_of_special(x, part.mul_add(LOG2_E, k))
}

#[inline(always)]
pub(super) fn log10(x: f64) -> f64 {
    let (k, part) = log_parts(x);
    log_of_special(x, k.mul_add(LOG10_2, part * LOG10_E))
}

/// The quadrant and [`ROUND`], and the angle without it.
#[inline(always)]
fn reduce(x: f64) -> (f64, f64) {
    let rounded = x.mul_add(FRAC_2_PI, ROUND);
    let n = rounded - ROUND;
    (rounded, n.mul_add(-HALF_PI[1], n.mul_add(-HALF_PI[0], x)))
}

#[inline(always)]
fn sine(r: f64) -> f64 {
    let z = r * r;
    (r * z).mul_add(polynomial(&SIN_SINGLE, z), r)
}

#[inline(always)]
fn cosine(r: f64) -> f64 {
    let z = r * r;
    (z * z).mul_add(polynomial(&COS_SINGLE, z), z.mul_add(-0.5, 1.0))
}

#[inline(always)]
fn sine_from(rounded: f64, quadrants: u64, r: f64) -> f64 {
    let quadrant = rounded.to_bits().wrapping_add(quadrants);
    let value = if quadrant & 1 == 1 { cosine(r) } else { sine(r) };
    f64::from_bits(value.to_bits() ^ (quadrant & 2) << 62)
}

#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    let (rounded, r) = reduce(x);
    let value = sine_from(rounded, 0, r);
    if x == 0.0 { x } else { value }
}

#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    let (rounded, r) = reduce(x);
    sine_from(rounded, 1, r)
}

#[inline(always)]
pub(super) fn tan(x: f64) -> f64 {
    let (rounded, r) = reduce(x);
    let (sine, cosine) = (sine(r), cosine(r));
    let odd = rounded.to_bits() & 1 == 1;
    let value = if odd { -cosine * inverse(sine) } else { sine * inverse(cosine) };
    if x == 0.0 { x } else { value }
}

/// The angle whose sine is the root or the argument, as in `double`.
#[inline(always)]
fn arc(x: f64) -> (bool, f64) {
    let size = x.abs();
    let outer = size > 0.5;
    let z = if outer { (1.0 - size) * 0.5 } else { size * size };
    // At the very end the root is zero; the smallest step of single precision is 2^-25.
    let guess = f64::from(1.0 / ((if z < 1e-30 { 1e-30 } else { z }) as f32).sqrt());
    let root = z * guess;
    let root = (0.5 * guess).mul_add(root.mul_add(-root, z), root);
    // Beyond 1 there is no root.
    let root = if size > 1.0 { f64::NAN } else { root };
    let s = if outer { root } else { size };
    (outer, (s * z).mul_add(polynomial(&ASIN_SINGLE, z), s))
}

#[inline(always)]
pub(super) fn asin(x: f64) -> f64 {
    let (outer, angle) = arc(x);
    let value = if outer { angle.mul_add(-2.0, FRAC_PI_2) } else { angle };
    value.copysign(x)
}

#[inline(always)]
pub(super) fn acos(x: f64) -> f64 {
    let (outer, angle) = arc(x);
    let doubled = 2.0 * angle;
    let ends = if x < 0.0 { PI - doubled } else { doubled };
    let middle = (FRAC_PI_2 - angle.copysign(x)) + HALF_PI[1];
    if outer { ends } else { middle }
}

#[inline(always)]
pub(super) fn atan(x: f64) -> f64 {
    const LIMIT: f64 = std::f64::consts::SQRT_2 - 1.0;
    let size = x.abs();
    // The inverse of a larger number is not needed, and single precision has none.
    let size = if size > 1e15 { 1e15 } else { size };
    let low = size <= LIMIT;
    let high = size * LIMIT > 1.0;
    let numerator = if high { -1.0 } else { size - 1.0 };
    let divisor = if high { size } else { size + 1.0 };
    let base = if high { FRAC_PI_2 } else { FRAC_PI_4 };
    let q = if low { size } else { numerator * inverse(divisor) };
    let base = if low { 0.0 } else { base };
    let z = q * q;
    let value = base + (q * z).mul_add(polynomial(&ATAN_SINGLE, z), q);
    if x.is_nan() { x } else { value.copysign(x) }
}

/// `e^x - 1` for `0 <= x <= 100`.
#[inline(always)]
fn exp_minus_one(x: f64) -> f64 {
    let (rounded, p) = exp_parts(x);
    let scale = power_of_two(rounded);
    p.mul_add(scale, scale - 1.0)
}

#[inline(always)]
pub(super) fn sinh(x: f64) -> f64 {
    let size = x.abs();
    // Infinite already.
    let part = exp_minus_one(if size > 100.0 { 100.0 } else { size });
    // The second term vanishes before its inverse does.
    let whole = part + 1.0;
    let whole = if whole > 1e30 { 1e30 } else { whole };
    let value = 0.5 * (part * inverse(whole)).min(1.0) + 0.5 * part;
    let value = if size < 1e-5 { size } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}

#[inline(always)]
pub(super) fn cosh(x: f64) -> f64 {
    let size = x.abs();
    let whole = exp(if size > 100.0 { 100.0 } else { size });
    let divisor = if whole > 1e30 { 1e30 } else { whole };
    let value = 0.5 * (whole + inverse(divisor));
    if x.is_nan() { x } else { value }
}

#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let size = x.abs();
    let part = exp_minus_one(if size > 15.0 { 30.0 } else { 2.0 * size });
    let value = part * inverse(part + 2.0);
    let value = if size < 1e-5 { size } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}
