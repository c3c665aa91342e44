//! Powers of real numbers, with errors below 1 ulp: `x^y = e^(y ln(x))`.
//!
//! The logarithm has to be more precise than the power, because the exponent multiplies its error. Its terms
//! of first and third order in `s = (m - 1) / (m + 1)` are therefore sums of two numbers, as in P. W.
//! Markstein, "IA-64 and Elementary Functions" (2000), with fused multiply-add. For single precision,
//! everything is computed in double precision, with shorter polynomials.

use super::coefficients::{EXP_DOUBLE, POWER_EXP_SINGLE, POWER_LOG_DOUBLE, POWER_LOG_SINGLE};
use super::double::{LN_2, PER_LN_2, ROUND, fast_sum, polynomial, powers_of_two, quotient, split};

/// A type in which powers are computed.
pub(crate) trait Real: Copy {
    /// Returns the power, unless [`Real::is_special`] is true.
    fn power(self, exponent: Self) -> Self;
    /// Returns true if the system's library has to compute the power.
    fn is_special(self, exponent: Self) -> bool;
    /// Returns the power of any numbers.
    fn library_power(self, exponent: Self) -> Self;
}

/// Two thirds, and the rounding error in double precision.
const TWO_THIRDS: [f64; 2] = [2.0 / 3.0, 3.700_743_415_417_188e-17];
/// Beyond this, the power overflows or underflows.
const LIMIT: f64 = 800.0;

/// Returns two numbers whose sum is `ln(x)`, for a positive normal number.
#[inline(always)]
fn log_parts(x: f64) -> (f64, f64) {
    let (k, m) = split(x);
    let (s, s_rest) = quotient((m - 1.0, 0.0), fast_sum(1.0, m));
    let z = s * s;
    let z_rest = s.mul_add(s, -z) + 2.0 * s * s_rest;
    let cube = s * z;
    let cube_rest = s.mul_add(z, -cube) + s.mul_add(z_rest, s_rest * z);
    let third = cube * TWO_THIRDS[0];
    let third_rest = cube.mul_add(TWO_THIRDS[0], -third)
        + cube.mul_add(TWO_THIRDS[1], cube_rest * TWO_THIRDS[0]);
    let tail = cube * z * polynomial(&POWER_LOG_DOUBLE, z);
    let (sum, first_rest) = fast_sum(k * LN_2[0], 2.0 * s);
    let (sum, second_rest) = fast_sum(sum, third);
    let small = k.mul_add(LN_2[1], third_rest + 2.0 * s_rest) + tail;
    fast_sum(sum, first_rest + second_rest + small)
}

/// Applies the sign to the power of the modulus. Returns NaN if the power is not real.
#[inline(always)]
fn signed(x: f64, exponent: f64, value: f64) -> f64 {
    let is_whole = exponent.trunc() == exponent;
    let half = exponent * 0.5;
    let is_odd = is_whole & (half.trunc() != half);
    let value = if (x < 0.0) & is_odd { -value } else { value };
    if (x < 0.0) & !is_whole { f64::NAN } else { value }
}

impl Real for f64 {
    #[inline(always)]
    fn power(self, exponent: f64) -> f64 {
        let (log, log_rest) = log_parts(self.abs());
        let product = exponent * log;
        let rest = exponent.mul_add(log, -product) + exponent * log_rest;
        let beyond = product.abs() > LIMIT;
        let rest = if beyond { 0.0 } else { rest };
        let product = if beyond { LIMIT.copysign(product) } else { product };
        let rounded = product.mul_add(PER_LN_2, ROUND);
        let n = rounded - ROUND;
        let (r, error) = fast_sum(n.mul_add(-LN_2[0], product), -n * LN_2[1]);
        let (r, error) = fast_sum(r, error + rest);
        let tail = (r * r).mul_add(polynomial(&EXP_DOUBLE, r), error.mul_add(r, error));
        let (p, error) = fast_sum(r, tail);
        let (value, rest) = fast_sum(1.0, p);
        let (first, second) = powers_of_two(rounded);
        signed(self, exponent, (value + (rest + error)) * first * second)
    }
    #[inline(always)]
    fn is_special(self, exponent: f64) -> bool {
        let size = self.abs();
        let is_normal = (f64::MIN_POSITIVE..f64::INFINITY).contains(&size);
        !(is_normal & (exponent.abs() < f64::INFINITY))
    }
    #[inline]
    fn library_power(self, exponent: f64) -> f64 {
        self.powf(exponent)
    }
}

impl Real for f32 {
    #[inline(always)]
    fn power(self, exponent: f32) -> f32 {
        let (x, y) = (f64::from(self), f64::from(exponent));
        let (k, m) = split(x.abs());
        let s = (m - 1.0) / (m + 1.0);
        let z = s * s;
        let log = (s * z).mul_add(polynomial(&POWER_LOG_SINGLE, z), 2.0 * s);
        let product = y * k.mul_add(std::f64::consts::LN_2, log);
        // The range of single precision ends at 2^128 and at 2^-150.
        let product = if product > 200.0 { 200.0 } else { product };
        let product = if product < -200.0 { -200.0 } else { product };
        let rounded = product.mul_add(PER_LN_2, ROUND);
        let n = rounded - ROUND;
        let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], product));
        let tail = (r * r).mul_add(polynomial(&POWER_EXP_SINGLE, r), r);
        let scale = f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52);
        signed(x, y, tail.mul_add(scale, scale)) as f32
    }
    #[inline(always)]
    fn is_special(self, exponent: f32) -> bool {
        let size = self.abs();
        !((size > 0.0) & (size < f32::INFINITY) & (exponent.abs() < f32::INFINITY))
    }
    #[inline]
    fn library_power(self, exponent: f32) -> f32 {
        f64::from(self).powf(f64::from(exponent)) as f32
    }
}
