//! Functions of numbers in single precision, with errors below 2 ulp.
//!
//! As in `double`, the code does without branches and tables. The arithmetic is in single precision, except for
//! sine, cosine and tangent, whose argument reduction needs double precision to be useful beyond small
//! angles. Their errors are slightly above half an ulp.

use super::coefficients::*;
use super::double::{self, HALF_PI};
use std::f32::consts::{FRAC_PI_2, LOG2_E, LOG10_E, PI};

/// Adding and subtracting this rounds to the nearest integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;
/// The first 16 bits of `ln(2)`, so that products with exponents are exact, and the rest.
const LN_2: [f32; 2] = [0.693_145_75, 1.428_606_8e-6];
/// The first 12 bits of `log10(2)`, and the rest.
const LOG10_2: [f32; 2] = [0.301_025_4, 4.605_039e-6];
/// The rounding errors of `log2(e)` and `log10(e)` in single precision.
const LOG2_E_REST: f32 = 1.925_963e-8;
const LOG10_E_REST: f32 = -1.010_305e-8;
const HALF_PI_REST: f32 = -4.371_139e-8;

/// Evaluates a polynomial at `x`.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f32; N], x: f32) -> f32 {
    let mut value = coefficients[N - 1];
    for &coefficient in coefficients[..N - 1].iter().rev() {
        value = value.mul_add(x, coefficient);
    }
    value
}

/// Returns two powers of two whose product is `2^n`, for `|n| < 252`, from the sum of `n` and [`ROUND`].
#[inline(always)]
fn powers_of_two(rounded: f32) -> (f32, f32) {
    let biased = rounded.to_bits().wrapping_add(512) & 0x3ff;
    let first = biased >> 1;
    let scale = |exponent: u32| f32::from_bits(exponent.wrapping_sub(256 - 127) << 23);
    (scale(first), scale(biased - first))
}

/// Returns `n` plus [`ROUND`], and two numbers whose sum is `e^r - 1`, for `x = n ln(2) + r`.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32, f32) {
    let rounded = x.mul_add(LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    let tail = r * r * polynomial(&EXP_SINGLE, r);
    let p = r + tail;
    (rounded, p, (r - p) + tail)
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = if x > 120.0 { 120.0 } else { x };
    let x = if x < -120.0 { -120.0 } else { x };
    let (rounded, p, _) = exp_parts(x);
    let (first, second) = powers_of_two(rounded);
    (1.0 + p) * first * second
}

/// Returns the exponent `k`, and `f` and `ln(1 + f) - f`, for a normal number `x = 2^k (1 + f)`.
#[inline(always)]
fn log_parts(x: f32) -> (f32, f32, f32) {
    const BIAS: u32 = 256;
    let bits = x.to_bits();
    let biased =
        bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits()).wrapping_add(BIAS << 23) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(biased.wrapping_sub(BIAS) << 23));
    let k = f32::from_bits(biased | 0x4b00_0000) - (8_388_608.0 + BIAS as f32);
    let f = m - 1.0;
    (k, f, f * f * polynomial(&LOG_SINGLE, f))
}

/// Like [`log_parts`], for all positive numbers.
#[inline(always)]
fn all_log_parts(x: f32) -> (f32, f32, f32) {
    let small = x < f32::MIN_POSITIVE;
    let (k, f, tail) = log_parts(if small { x * 16_777_216.0 } else { x });
    (if small { k - 24.0 } else { k }, f, tail)
}

/// Returns the value of a logarithm, corrected for arguments that are zero, negative, infinite or NaN.
#[inline(always)]
fn log_of_special(x: f32, value: f32) -> f32 {
    let special = if x < 0.0 { f32::NAN } else { x };
    let special = if x == 0.0 { f32::NEG_INFINITY } else { special };
    if (x > 0.0) & (x < f32::INFINITY) { value } else { special }
}

#[inline(always)]
fn log_of_parts((k, f, tail): (f32, f32, f32)) -> f32 {
    k.mul_add(LN_2[0], f + k.mul_add(LN_2[1], tail))
}

#[inline(always)]
fn log2_of_parts((k, f, tail): (f32, f32, f32)) -> f32 {
    k + f.mul_add(LOG2_E, tail.mul_add(LOG2_E, f * LOG2_E_REST))
}

#[inline(always)]
fn log10_of_parts((k, f, tail): (f32, f32, f32)) -> f32 {
    let tail = tail.mul_add(LOG10_E, f.mul_add(LOG10_E_REST, k * LOG10_2[1]));
    k.mul_add(LOG10_2[0], f.mul_add(LOG10_E, tail))
}

macro_rules! logarithms {
    ($($all:ident $ordinary:ident $of_parts:ident;)*) => {
        $(
            #[inline(always)]
            pub(super) fn $all(x: f32) -> f32 {
                log_of_special(x, $of_parts(all_log_parts(x)))
            }

            /// For normal positive numbers.
            #[inline(always)]
            pub(super) fn $ordinary(x: f32) -> f32 {
                $of_parts(log_parts(x))
            }
        )*
    };
}

logarithms! {
    log ordinary_log log_of_parts;
    log2 ordinary_log2 log2_of_parts;
    log10 ordinary_log10 log10_of_parts;
}

/// Returns the quadrant plus the rounding constant, and the remaining angle.
#[inline(always)]
fn reduce(x: f32) -> (f64, f64) {
    let x = f64::from(x);
    let rounded = x.mul_add(std::f64::consts::FRAC_2_PI, double::ROUND);
    let n = rounded - double::ROUND;
    (rounded, n.mul_add(-HALF_PI[1], n.mul_add(-HALF_PI[0], x)))
}

#[inline(always)]
fn sine(r: f64) -> f64 {
    let z = r * r;
    (r * z).mul_add(double::polynomial(&SIN_SINGLE, z), r)
}

#[inline(always)]
fn cosine(r: f64) -> f64 {
    let z = r * r;
    (z * z).mul_add(double::polynomial(&COS_SINGLE, z), z.mul_add(-0.5, 1.0))
}

#[inline(always)]
fn sine_from(rounded: f64, quadrants: u64, r: f64) -> f32 {
    let quadrant = rounded.to_bits().wrapping_add(quadrants);
    let value = if quadrant & 1 == 1 { cosine(r) } else { sine(r) };
    f64::from_bits(value.to_bits() ^ (quadrant & 2) << 62) as f32
}

#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (rounded, r) = reduce(x);
    let value = sine_from(rounded, 0, r);
    if x == 0.0 { x } else { value }
}

#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (rounded, r) = reduce(x);
    sine_from(rounded, 1, r)
}

#[inline(always)]
pub(super) fn tan(x: f32) -> f32 {
    let (rounded, r) = reduce(x);
    let (sine, cosine) = (sine(r), cosine(r));
    let odd = rounded.to_bits() & 1 == 1;
    let numerator = if odd { -cosine } else { sine };
    let divisor = if odd { sine } else { cosine };
    // An inverse in single precision, and a step of Newton's method.
    let inverse = f64::from(1.0 / divisor as f32);
    let value = numerator * inverse;
    let value = value.mul_add(-divisor, numerator).mul_add(inverse, value) as f32;
    if x == 0.0 { x } else { value }
}

/// Returns true if the argument is nearer to 1 than to 0. Also returns the inverse sine of the argument, or
/// of the square root of half its distance from 1.
#[inline(always)]
fn arc(x: f32) -> (bool, f32, f32) {
    let size = x.abs();
    let outer = size > 0.5;
    let z = if outer { (1.0 - size) * 0.5 } else { size * size };
    let s = if outer { z.sqrt() } else { size };
    (outer, s, s * z * polynomial(&ASIN_SINGLE, z))
}

#[inline(always)]
pub(super) fn asin(x: f32) -> f32 {
    let (outer, s, tail) = arc(x);
    let far = FRAC_PI_2 - (2.0f32.mul_add(s, 2.0f32.mul_add(tail, -HALF_PI_REST)));
    let value = if outer { far } else { s + tail };
    value.copysign(x)
}

#[inline(always)]
pub(super) fn acos(x: f32) -> f32 {
    let (outer, s, tail) = arc(x);
    let near = 2.0 * (s + tail);
    let far = PI - 2.0f32.mul_add(s, 2.0f32.mul_add(tail, -2.0 * HALF_PI_REST));
    let ends = if x < 0.0 { far } else { near };
    let middle = FRAC_PI_2 - (s.copysign(x) + (tail.copysign(x) - HALF_PI_REST));
    if outer { ends } else { middle }
}

#[inline(always)]
pub(super) fn atan(x: f32) -> f32 {
    let size = x.abs();
    let outer = size > 1.0;
    let inverse = 1.0 / size;
    let q = if outer { inverse } else { size };
    let z = q * q;
    let tail = q * z * polynomial(&ATAN_SINGLE, z);
    let far = FRAC_PI_2 - (q + (tail - HALF_PI_REST));
    let value = if outer { far } else { q + tail };
    value.copysign(x)
}

/// Returns a quarter of `e^x - 1`, for `0 <= x <= 89.5`.
#[inline(always)]
fn quarter_of_exp_minus_one(x: f32) -> f32 {
    let (rounded, p, error) = exp_parts(x);
    let (first, second) = powers_of_two(rounded - 2.0);
    let scale = first * second;
    p.mul_add(scale, error.mul_add(scale, scale - 0.25))
}

#[inline(always)]
pub(super) fn sinh(x: f32) -> f32 {
    let size = x.abs();
    let quarter = quarter_of_exp_minus_one(if size > 89.5 { 89.5 } else { size });
    // With q = (e^x - 1) / 4, it is 2 (q + q / (4 q + 1)). For large values, only q matters.
    let limited = if quarter > 1e20 { 1e20 } else { quarter };
    let value = 2.0 * (quarter + limited / limited.mul_add(4.0, 1.0));
    // A Taylor series, because the quotient would lose digits.
    let z = size * size;
    let series = z.mul_add(1.0 / 5040.0, 1.0 / 120.0).mul_add(z, 1.0 / 6.0);
    let value = if size < 0.5 { (size * z).mul_add(series, size) } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}

#[inline(always)]
pub(super) fn cosh(x: f32) -> f32 {
    let size = x.abs();
    let (rounded, p, _) = exp_parts(if size > 90.0 { 90.0 } else { size });
    let (first, second) = powers_of_two(rounded - 1.0);
    let half = (1.0 + p) * first * second;
    let value = half + 0.25 / half;
    if x.is_nan() { x } else { value }
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let size = x.abs();
    let quarter = quarter_of_exp_minus_one(if size > 15.0 { 30.0 } else { 2.0 * size });
    // With q = (e^2x - 1) / 4, it is q / (q + 1/2). One step corrects the rounding errors.
    let divisor = quarter + 0.5;
    let missing = (0.5 - divisor) + quarter;
    let inverse = 1.0 / divisor;
    let value = quarter * inverse;
    let rest = value.mul_add(-divisor, quarter) - value * missing;
    let value = rest.mul_add(inverse, value);
    let value = if size < 1e-4 { size } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}

/// Returns half of the sum and half of the difference of `2^n` and `2^-n`, and `r`, `sinh(r) - r` and
/// `cosh(r) - 1`, for `x = n ln(2) + r` up to 87. In double precision, `ordinary` combines these.
#[inline(always)]
fn hyperbolic_parts(x: f32) -> (f32, f32, f32, f32, f32) {
    let rounded = x.mul_add(LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    let large = f32::from_bits(rounded.to_bits().wrapping_add(126) << 23);
    let small = f32::from_bits(126u32.wrapping_sub(rounded.to_bits()) << 23);
    let z = r * r;
    let odd = r * z * polynomial(&SINH_SINGLE, z);
    (large + small, large - small, r, odd, z * polynomial(&COSH_SINGLE, z))
}

#[inline(always)]
pub(super) fn ordinary_sinh(x: f32) -> f32 {
    let (sum, difference, r, odd, even) = hyperbolic_parts(x.abs());
    let value = sum.mul_add(r, difference);
    let lower = sum.mul_add(r, difference - value);
    (value + sum.mul_add(odd, difference.mul_add(even, lower))).copysign(x)
}

#[inline(always)]
pub(super) fn ordinary_cosh(x: f32) -> f32 {
    let (sum, difference, r, odd, even) = hyperbolic_parts(x.abs());
    sum + difference.mul_add(r, difference.mul_add(odd, sum * even))
}
