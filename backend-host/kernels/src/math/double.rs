//! Functions of numbers in double precision, with errors below 1 ulp.
//!
//! The code does without branches and tables, so that a loop over a function is vectorised. Intermediate
//! results that need more precision are sums of two numbers, the second of which is the rounding error of the
//! first: T. J. Dekker, "A Floating-Point Technique for Extending the Available Precision" (1971). The
//! argument reductions follow W. J. Cody and W. Waite, "Software Manual for the Elementary Functions" (1980),
//! with fused multiply-add. The decomposition of the logarithm into `f - f^2/2 + s (f^2/2 + R)` follows K. C.
//! Ng in FreeBSD's `k_log.h`.

use super::coefficients::*;
use std::f64::consts;

/// Adding and subtracting this rounds to the nearest integer, which is then in the low bits.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;
pub(super) const PER_LN_2: f64 = consts::LOG2_E;
/// The first 40 bits of `ln(2)`, so that products with exponents are exact, and the rest.
pub(super) const LN_2: [f64; 2] = [0.6931471805592082, 7.371002565167799e-13];
pub(super) const LOG2_E: [f64; 2] = [consts::LOG2_E, 2.0355273740931033e-17];
pub(super) const LOG10_E: [f64; 2] = [consts::LOG10_E, 1.098319650216765e-17];
/// The first 40 bits of `log10(2)`, and the rest.
pub(super) const LOG10_2: [f64; 2] = [0.30102999566361177, 3.694239077158931e-13];
/// `pi / 2` as two parts of 33 bits, and the rest.
const HALF_PI_PARTS: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];
pub(super) const HALF_PI: [f64; 2] = [consts::FRAC_PI_2, 6.123233995736766e-17];
const QUARTER_PI: [f64; 2] = [consts::FRAC_PI_4, 3.061616997868383e-17];

/// Evaluates a polynomial at `x`.
#[inline(always)]
pub(super) fn polynomial<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut value = coefficients[N - 1];
    for &coefficient in coefficients[..N - 1].iter().rev() {
        value = value.mul_add(x, coefficient);
    }
    value
}

/// Returns a sum and its rounding error, if `|a| >= |b|`.
#[inline(always)]
pub(super) fn fast_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// Returns a sum and its rounding error.
#[inline(always)]
fn exact_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Returns two powers of two whose product is `2^n`, for `|n| < 2044`.
#[inline(always)]
pub(super) fn powers_of_two(rounded: f64) -> (f64, f64) {
    let biased = rounded.to_bits().wrapping_add(4096) & 0x1fff;
    let first = biased >> 1;
    let scale = |exponent: u64| f64::from_bits(exponent.wrapping_sub(2048 - 1023) << 52);
    (scale(first), scale(biased - first))
}

/// Returns `n` plus [`ROUND`], and two numbers whose sum is `e^r - 1`, for `x = n ln(2) + r`.
#[inline(always)]
fn exp_parts(x: f64) -> (f64, f64, f64) {
    let rounded = x.mul_add(PER_LN_2, ROUND);
    let n = rounded - ROUND;
    let upper = n.mul_add(-LN_2[0], x);
    let (r, rest) = fast_sum(upper, -n * LN_2[1]);
    let tail = (r * r).mul_add(polynomial(&EXP_DOUBLE, r), rest.mul_add(r, rest));
    let (p, error) = fast_sum(r, tail);
    (rounded, p, error)
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let x = if x > 800.0 { 800.0 } else { x };
    let x = if x < -800.0 { -800.0 } else { x };
    let (rounded, p, error) = exp_parts(x);
    let (value, rest) = fast_sum(1.0, p);
    let (first, second) = powers_of_two(rounded);
    (value + (rest + error)) * first * second
}

/// Returns the exponent `k` and two numbers whose sum is `ln(m)`, for `x = 2^k m`.
#[inline(always)]
fn log_parts(x: f64) -> (f64, f64, f64) {
    let small = x < f64::MIN_POSITIVE;
    let scaled = if small { x * 18_014_398_509_481_984.0 } else { x };
    let (k, m) = split(scaled);
    let k = if small { k - 54.0 } else { k };
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f;
    let square = half * f;
    let missing = half.mul_add(f, -square);
    let (upper, rest) = fast_sum(f, -square);
    let series = z * polynomial(&LOG_DOUBLE, z);
    (k, upper, s.mul_add(square + series, rest - missing))
}

/// Splits a normal number into `2^k m`, with `m` around 1.
#[inline(always)]
pub(super) fn split(x: f64) -> (f64, f64) {
    const BIAS: u64 = 1024;
    let bits = x.to_bits();
    let biased = bits.wrapping_sub(consts::FRAC_1_SQRT_2.to_bits()).wrapping_add(BIAS << 52) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(biased.wrapping_sub(BIAS) << 52));
    (f64::from_bits(biased | 0x4330 << 48) - (4_503_599_627_370_496.0 + BIAS as f64), m)
}

/// Returns the value of a logarithm, corrected for arguments that are zero, negative, infinite or NaN.
#[inline(always)]
pub(super) fn log_of_special(x: f64, value: f64) -> f64 {
    let special = if x < 0.0 { f64::NAN } else { x };
    let special = if x == 0.0 { f64::NEG_INFINITY } else { special };
    if (x > 0.0) & (x < f64::INFINITY) { value } else { special }
}

#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let (k, upper, lower) = log_parts(x);
    let (value, rest) = fast_sum(k * LN_2[0], upper);
    log_of_special(x, value + (rest + k.mul_add(LN_2[1], lower)))
}

#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    let (k, upper, lower) = log_parts(x);
    let product = upper * LOG2_E[0];
    let missing = upper.mul_add(LOG2_E[0], -product);
    let tail = lower.mul_add(LOG2_E[0], upper.mul_add(LOG2_E[1], missing));
    let (value, rest) = fast_sum(k, product);
    log_of_special(x, value + (rest + tail))
}

#[inline(always)]
pub(super) fn log10(x: f64) -> f64 {
    let (k, upper, lower) = log_parts(x);
    let product = upper * LOG10_E[0];
    let missing = upper.mul_add(LOG10_E[0], -product);
    let tail = lower.mul_add(LOG10_E[0], upper.mul_add(LOG10_E[1], missing));
    let (value, rest) = fast_sum(k * LOG10_2[0], product);
    log_of_special(x, value + (rest + k.mul_add(LOG10_2[1], tail)))
}

/// Returns the quadrant plus [`ROUND`], and two numbers whose sum is `x` without the quadrant.
#[inline(always)]
fn reduce(x: f64) -> (f64, f64, f64) {
    let rounded = x.mul_add(consts::FRAC_2_PI, ROUND);
    let n = rounded - ROUND;
    let first = n.mul_add(-HALF_PI_PARTS[0], x);
    let (r, error) = exact_sum(first, -n * HALF_PI_PARTS[1]);
    let (r, error) = exact_sum(r, n.mul_add(-HALF_PI_PARTS[2], error));
    (rounded, r, error)
}

/// Returns the second number of the sum `r + ...` for the sine of `r + error`.
#[inline(always)]
fn sine_tail(r: f64, error: f64) -> f64 {
    let z = r * r;
    (r * z).mul_add(polynomial(&SIN_DOUBLE, z), error.mul_add(-0.5 * z, error))
}

/// Returns two numbers whose sum is the cosine of `r + error`.
#[inline(always)]
fn cosine(r: f64, error: f64) -> (f64, f64) {
    let z = r * r;
    let missing = r.mul_add(r, -z);
    let (upper, rest) = fast_sum(1.0, -0.5 * z);
    let tail = (z * z).mul_add(polynomial(&COS_DOUBLE, z), rest);
    (upper, tail - r.mul_add(error, 0.5 * missing))
}

/// Returns the sine of an angle plus a number of quadrants.
#[inline(always)]
fn sine_from(rounded: f64, quadrants: u64, r: f64, error: f64) -> f64 {
    let quadrant = rounded.to_bits().wrapping_add(quadrants);
    let (upper, lower) = cosine(r, error);
    let cosine = upper + lower;
    let sine = r + sine_tail(r, error);
    let value = if quadrant & 1 == 1 { cosine } else { sine };
    f64::from_bits(value.to_bits() ^ (quadrant & 2) << 62)
}

#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    let (rounded, r, error) = reduce(x);
    let value = sine_from(rounded, 0, r, error);
    if x == 0.0 { x } else { value }
}

#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    let (rounded, r, error) = reduce(x);
    sine_from(rounded, 1, r, error)
}

/// Returns the quotient of two sums of two numbers, each with a rounding error as its second number.
#[inline(always)]
pub(super) fn quotient(numerator: (f64, f64), divisor: (f64, f64)) -> (f64, f64) {
    let inverse = 1.0 / divisor.0;
    let value = numerator.0 * inverse;
    let rest = value.mul_add(-divisor.0, numerator.0) + value.mul_add(-divisor.1, numerator.1);
    (value, rest * inverse)
}

#[inline(always)]
pub(super) fn tan(x: f64) -> f64 {
    let (rounded, r, error) = reduce(x);
    let sine = fast_sum(r, sine_tail(r, error));
    let (upper, lower) = cosine(r, error);
    let cosine = fast_sum(upper, lower);
    let odd = rounded.to_bits() & 1 == 1;
    let numerator = if odd { cosine } else { sine };
    let divisor = if odd { sine } else { cosine };
    let (value, rest) = quotient(numerator, divisor);
    let value = value + rest;
    let value = if odd { -value } else { value };
    // If the inverse would overflow, the tangent equals the angle.
    if x.abs() < 1e-300 { x } else { value }
}

/// Returns the parts of the inverse sine relative to the nearer of 0 and 1: the square root or the argument
/// `s`, its rounding error, and the rest of third order.
#[inline(always)]
fn arc_parts(x: f64) -> (bool, f64, f64, f64) {
    let size = x.abs();
    let outer = size > 0.5;
    let z = if outer { (1.0 - size) * 0.5 } else { size * size };
    let root = z.sqrt();
    let s = if outer { root } else { size };
    // A correction, for whose divisor single precision is sufficient.
    let inverse = f64::from(1.0 / (if s == 0.0 { 1.0 } else { s }) as f32);
    let missing = s.mul_add(-s, z) * 0.5 * inverse;
    let missing = if outer { missing } else { 0.0 };
    (outer, s, missing, s * z * polynomial(&ASIN_DOUBLE, z))
}

#[inline(always)]
pub(super) fn asin(x: f64) -> f64 {
    let (outer, s, missing, rest) = arc_parts(x);
    let (upper, error) = fast_sum(HALF_PI[0], -2.0 * s);
    let far = upper + ((-2.0f64).mul_add(rest + missing, HALF_PI[1]) + error);
    let value = if outer { far } else { s + rest };
    value.copysign(x)
}

#[inline(always)]
pub(super) fn acos(x: f64) -> f64 {
    let (outer, s, missing, rest) = arc_parts(x);
    // From the end of the range: twice the angle of the root, or its difference from half a turn.
    let near = s + (rest + missing);
    let (upper, error) = fast_sum(2.0 * HALF_PI[0], -2.0 * s);
    let far = upper + ((-2.0f64).mul_add(rest + missing, 2.0 * HALF_PI[1]) + error);
    let ends = if x < 0.0 { far } else { 2.0 * near };
    let signed = s.copysign(x);
    let (upper, error) = fast_sum(HALF_PI[0], -signed);
    let middle = upper + ((HALF_PI[1] - rest.copysign(x)) + error);
    if outer { ends } else { middle }
}

#[inline(always)]
pub(super) fn atan(x: f64) -> f64 {
    let size = x.abs();
    let (value, rest) = atan_of_quotient((size, 0.0), 1.0);
    (value + rest).copysign(x)
}

/// Returns two numbers whose sum is the angle with the tangent `y / x`, for nonnegative arguments.
#[inline(always)]
pub(super) fn atan_of_quotient((y, missing): (f64, f64), x: f64) -> (f64, f64) {
    const LIMIT: f64 = consts::SQRT_2 - 1.0;
    let low = y <= LIMIT * x;
    let high = y * LIMIT > x;
    // The angle is relative to 0, a quarter, or half of the straight angle.
    let (difference, difference_rest) = exact_sum(y, -x);
    let (sum, sum_rest) = exact_sum(y, x);
    let numerator = if high { (-x, 0.0) } else { (difference, difference_rest + missing) };
    let numerator = if low { (y, missing) } else { numerator };
    let divisor = if high { (y, missing) } else { (sum, sum_rest + missing) };
    let divisor = if low { (x, 0.0) } else { divisor };
    let base = if high { HALF_PI } else { QUARTER_PI };
    let base = if low { [0.0, 0.0] } else { base };
    let (q, error) = quotient(numerator, divisor);
    // For an infinite tangent.
    let (q, error) = if y == f64::INFINITY { (0.0, 0.0) } else { (q, error) };
    let z = q * q;
    let tail = (q * z).mul_add(polynomial(&ATAN_DOUBLE, z), error + base[1]);
    let (value, rest) = if low { (q, 0.0) } else { fast_sum(base[0], q) };
    (value, rest + tail)
}

/// Returns two numbers whose sum is a quarter of `e^x - 1`, for `0 <= x <= 800`.
#[inline(always)]
fn quarter_of_exp_minus_one(x: f64) -> (f64, f64) {
    let (rounded, p, error) = exp_parts(x);
    let (first, second) = powers_of_two(rounded - 2.0);
    let (one, rest) = exact_sum(first * second, -0.25);
    let (value, lower) = exact_sum(one, p * first * second);
    fast_sum(value, lower + (rest + error * first * second))
}

#[inline(always)]
pub(super) fn sinh(x: f64) -> f64 {
    /// The largest argument with a finite value.
    const LAST: f64 = 710.4758600739439;
    let size = x.abs();
    let limited = if size > LAST { LAST } else { size };
    let part = quarter_of_exp_minus_one(limited);
    // With m = e^x - 1, it is (m + m / (m + 1)) / 2.
    let whole = exact_sum(part.0, 0.25);
    let (second, second_rest) = quotient(part, (whole.0, whole.1 + part.1));
    let (value, rest) = exact_sum(part.0, 0.25 * second);
    let value = 2.0 * (value + (rest + 0.25f64.mul_add(second_rest, part.1)));
    let value = if size < 1e-8 { size } else { value };
    let value = if size > LAST { f64::INFINITY } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}

#[inline(always)]
pub(super) fn cosh(x: f64) -> f64 {
    let size = x.abs();
    let limited = if size > 711.0 { 711.0 } else { size };
    let (rounded, p, error) = exp_parts(limited);
    let (first, second) = powers_of_two(rounded - 2.0);
    let (upper, rest) = fast_sum(1.0, p);
    let upper = upper * first * second;
    let lower = (rest + error) * first * second;
    let (value, rest) = fast_sum(upper, 0.0625 / upper);
    let value = 2.0 * (value + (rest + lower));
    let value = if size > 711.0 { f64::INFINITY } else { value };
    if x.is_nan() { x } else { value }
}

#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let size = x.abs();
    let limited = if size > 25.0 { 25.0 } else { size };
    // With m = e^2x - 1, it is m / (m + 2).
    let part = quarter_of_exp_minus_one(2.0 * limited);
    let (sum, rest) = exact_sum(part.0, 0.5);
    let (value, rest) = quotient(part, (sum, rest + part.1));
    let value = value + rest;
    let value = if size < 1e-8 { size } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}
