//! Elementary functions that give the same bits on every backend: they only use additions, products, quotients,
//! square roots and fused multiply-adds, in a fixed order.
//!
//! The source of the GPU kernels (`random_math.cuh` in `gpuarray-codegen`) has the same steps, with the numbers of
//! `tables.rs`. The conformance suite compares the results of both.

use crate::tables::*;
use std::f64::consts::{LN_2, LOG2_E};

/// Defines Horner's rule: the value of a polynomial, the highest coefficient first.
macro_rules! horner {
    ($name:ident $type:ident) => {
        #[inline(always)]
        fn $name<const N: usize>(x: $type, coefficients: [$type; N]) -> $type {
            let mut sum = coefficients[0];
            for next in &coefficients[1..] {
                sum = sum.mul_add(x, *next);
            }
            sum
        }
    };
}
horner!(horner f64);
horner!(horner32 f32);

/// Returns `-2 ln x` for a normal positive number, with a relative error of at most 1.1e-7. This is the squared
/// radius in the method of Box and Muller.
#[inline(always)]
pub fn square_radius32(x: f32) -> f32 {
    // The mantissa is scaled to between 0.75 and 1.5; the polynomial is in g = -2 (mantissa - 1).
    let bits = x.to_bits();
    let exponent = bits.wrapping_sub(0x3f40_0000) & 0xff80_0000;
    let g = f32::from_bits(bits.wrapping_sub(exponent)).mul_add(-2.0, 2.0);
    let p = horner32(g, SQUARE_RADIUS);
    // The exponent, multiplied by 2^23.
    let exponent = exponent as i32 as f32;
    exponent.mul_add(std::f32::consts::LN_2 / -4_194_304.0, (g * g).mul_add(p, g))
}

/// Returns the natural logarithm of a normal positive number, within a few units in the last place.
#[inline(always)]
pub fn ln64(x: f64) -> f64 {
    let bits = x.to_bits().wrapping_sub(0x3fe8_0000_0000_0000);
    let exponent = (bits as i64 >> 52) as f64;
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + 0x3fe8_0000_0000_0000) - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let r = horner(z, LN);
    exponent.mul_add(LN_2, (s * z).mul_add(r, s + s))
}

/// Returns the sine and the cosine of `(y + 1/2) / 2^32` of a turn, within 2e-7.
#[inline(always)]
pub fn sine_cosine32(y: u32) -> [f32; 2] {
    // Four times the distance to the nearest quarter turn.
    let rest = (y << 2) as i32;
    let x = (rest as f32).mul_add(TURN_32 * 0.25, TURN_32 * 0.5);
    let z = x * x;
    let s = horner32(z, SINE_32);
    let c = horner32(z, COSINE_32);
    let s = (x * z).mul_add(s, x);
    // The number of the quarter is in the upper bits.
    let quarter = y.wrapping_add(0x2000_0000);
    let [sine, cosine] = if quarter & 0x4000_0000 == 0 { [s, c] } else { [c, s] };
    let negated = |value: f32, sign: u32| f32::from_bits(value.to_bits() ^ (sign & 0x8000_0000));
    [negated(sine, quarter), negated(cosine, y.wrapping_add(0x6000_0000))]
}

/// Returns the sine and the cosine of `(y + 1/2) / 2^53` of a turn, for `y` below 2^53.
#[inline(always)]
pub fn sine_cosine64(y: u64) -> [f64; 2] {
    let quarter = (y + (1 << 50)) >> 51;
    let rest = y.wrapping_sub(quarter << 51) as i64;
    let x = (rest as f64).mul_add(TURN_53, TURN_53 * 0.5);
    let z = x * x;
    let s = horner(z, SINE_64);
    let c = horner(z, COSINE_64);
    let s = (x * z).mul_add(s, x);
    let [sine, cosine] = if quarter & 1 == 0 { [s, c] } else { [c, s] };
    let negated = |value: f64, bit: u64| f64::from_bits(value.to_bits() ^ ((bit & 2) << 62));
    [negated(sine, quarter), negated(cosine, quarter + 1)]
}

/// Returns `e` to the power of `x`, within a few units in the last place; 0 or infinity if the result is out of
/// range.
#[inline(always)]
pub fn exp64(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < -746.0 {
        return 0.0;
    }
    if x > 710.0 {
        return f64::INFINITY;
    }
    let n = x.mul_add(LOG2_E, EXP_ROUND) - EXP_ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let p = horner(r, EXP);
    // Two factors, so that neither overflows and a small result is rounded once.
    let n = n as i32;
    let half = n >> 1;
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    p * power(half) * power(n - half)
}

/// Returns the quantile of the normal distribution for a probability inside (0, 1), by
/// the rational functions of M. Wichura.
#[inline(always)]
pub fn inverse_normal(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner(r, QUANTILE_CENTRE) / horner(r, QUANTILE_CENTRE_BELOW);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-ln64(tail)).sqrt();
    let x = if r <= 5.0 {
        let r = r - 1.6;
        horner(r, QUANTILE_NEAR) / horner(r, QUANTILE_NEAR_BELOW)
    } else {
        let r = r - 5.0;
        horner(r, QUANTILE_FAR) / horner(r, QUANTILE_FAR_BELOW)
    };
    if q < 0.0 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn functions_are_near_those_of_the_standard_library() {
        let near = |found: f64, expected: f64, error: f64| {
            let scale = expected.abs().max(f64::MIN_POSITIVE);
            assert!((found - expected).abs() <= error * scale, "{found} is not {expected}");
        };
        for step in 1..20_000_u32 {
            let x = f64::from(step) / 20_000.0;
            let tiny = x.powi(9);
            near(ln64(x), x.ln(), 1e-15);
            near(ln64(tiny), tiny.ln(), 1e-15);
            near(f64::from(square_radius32(x as f32)), -2.0 * f64::from(x as f32).ln(), 2e-7);
            near(exp64(x * 1400.0 - 700.0), (x * 1400.0 - 700.0).exp(), 1e-14);
            let turn = step.wrapping_mul(214_753);
            let angle = (f64::from(turn) + 0.5) / 4_294_967_296.0 * 2.0 * PI;
            let [sine, cosine] = sine_cosine32(turn).map(f64::from);
            assert!((sine - angle.sin()).abs() < 2e-7 && (cosine - angle.cos()).abs() < 2e-7);
            let [sine, cosine] = sine_cosine64(u64::from(turn) << 21);
            let angle = f64::from(turn) / 4_294_967_296.0 * 2.0 * PI;
            assert!((sine - angle.sin()).abs() < 2e-15 && (cosine - angle.cos()).abs() < 2e-15);
        }
    }

    /// Values of statistical tables.
    #[test]
    fn quantiles_of_the_normal_distribution() {
        for (p, expected) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_5),
            (1e-9, -5.997_807_015_007_687),
            (1e-15, -7.941_345_326_170_998),
        ] {
            assert!((inverse_normal(p) - expected).abs() < 1e-12, "{p}");
        }
    }
}
