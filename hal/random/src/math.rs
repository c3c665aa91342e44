//! Elementary functions in arithmetic that rounds alike everywhere: additions, products, quotients,
//! square roots and fused multiply-adds, in a fixed order.
//!
//! The source of the GPUs' kernels (`random_math.cuh` in `gpuarray-hal`) has the same steps; a change
//! here is a change there. Series are Taylor's, but for the logarithm in single precision, whose
//! polynomial is a minimax fit.

#![allow(
    clippy::excessive_precision,
    reason = "coefficients have the digits of their publications"
)]

use std::f64::consts::{LN_2, LOG2_E, PI};

/// Returns the value of a polynomial by Horner's rule, the highest coefficient first.
macro_rules! horner {
    ($x:expr, $highest:expr $(, $next:expr)*) => {{
        let sum = $highest;
        $(let sum = f64::mul_add(sum, $x, $next);)*
        sum
    }};
}
macro_rules! horner32 {
    ($x:expr, $highest:expr $(, $next:expr)*) => {{
        let sum: f32 = $highest;
        $(let sum = f32::mul_add(sum, $x, $next);)*
        sum
    }};
}

/// Returns `-2 ln x` for a normal positive number, within 1.1e-7 of its magnitude: the square of the
/// radius at which Box and Muller put a point.
#[inline(always)]
pub fn square_radius32(x: f32) -> f32 {
    // The mantissa is brought between 0.75 and 1.5; the polynomial is of g = -2 (mantissa - 1).
    let bits = x.to_bits();
    let exponent = bits.wrapping_sub(0x3f40_0000) & 0xff80_0000;
    let g = f32::from_bits(bits.wrapping_sub(exponent)).mul_add(-2.0, 2.0);
    let p = horner32!(
        g,
        0.054_128_315 / 256.0,
        0.120_670_29 / 128.0,
        0.149_839_18 / 64.0,
        0.168_228_58 / 32.0,
        0.199_770_79 / 16.0,
        0.249_934_41 / 8.0,
        0.333_335_49 / 4.0,
        0.500_000_6 / 2.0
    );
    // The exponent, which is a multiple of 2^23.
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
    let r = horner!(
        z,
        2.0 / 25.0,
        2.0 / 23.0,
        2.0 / 21.0,
        2.0 / 19.0,
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0
    );
    exponent.mul_add(LN_2, (s * z).mul_add(r, s + s))
}

/// Returns the sine and the cosine of `(y + 1/2) / 2^32` of a turn, within 2e-7.
#[inline(always)]
pub fn sine_cosine32(y: u32) -> [f32; 2] {
    const UNIT: f32 = (2.0 * PI / 4_294_967_296.0) as f32;
    // Four times what exceeds the nearest quarter.
    let rest = (y << 2) as i32;
    let x = (rest as f32).mul_add(UNIT * 0.25, UNIT * 0.5);
    let z = x * x;
    let s = horner32!(z, 1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0);
    let c = horner32!(z, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0);
    let s = (x * z).mul_add(s, x);
    // The quarter is in the upper bits.
    let quarter = y.wrapping_add(0x2000_0000);
    let [sine, cosine] = if quarter & 0x4000_0000 == 0 { [s, c] } else { [c, s] };
    let negated = |value: f32, sign: u32| f32::from_bits(value.to_bits() ^ (sign & 0x8000_0000));
    [negated(sine, quarter), negated(cosine, y.wrapping_add(0x6000_0000))]
}

/// Returns the sine and the cosine of `(y + 1/2) / 2^53` of a turn, for `y` below 2^53.
#[inline(always)]
pub fn sine_cosine64(y: u64) -> [f64; 2] {
    const UNIT: f64 = 2.0 * PI / 9_007_199_254_740_992.0;
    let quarter = (y + (1 << 50)) >> 51;
    let rest = y.wrapping_sub(quarter << 51) as i64;
    let x = (rest as f64).mul_add(UNIT, UNIT * 0.5);
    let z = x * x;
    let s = horner!(
        z,
        1.0 / 355_687_428_096_000.0,
        -1.0 / 1_307_674_368_000.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5040.0,
        1.0 / 120.0,
        -1.0 / 6.0
    );
    let c = horner!(
        z,
        1.0 / 20_922_789_888_000.0,
        -1.0 / 87_178_291_200.0,
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -0.5,
        1.0
    );
    let s = (x * z).mul_add(s, x);
    let [sine, cosine] = if quarter & 1 == 0 { [s, c] } else { [c, s] };
    let negated = |value: f64, bit: u64| f64::from_bits(value.to_bits() ^ ((bit & 2) << 62));
    [negated(sine, quarter), negated(cosine, quarter + 1)]
}

/// Returns `e` to the power of `x`, within a few units in the last place; 0 and infinity where that
/// is out of range.
#[inline(always)]
pub fn exp64(x: f64) -> f64 {
    // 1.5 * 2^52: adding it leaves a whole number in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    if x.is_nan() {
        return x;
    }
    if x < -746.0 {
        return 0.0;
    }
    if x > 710.0 {
        return f64::INFINITY;
    }
    let n = x.mul_add(LOG2_E, ROUND) - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let p = horner!(
        r,
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0
    );
    // Two factors, so that neither overflows and a small result is rounded once.
    let n = n as i32;
    let half = n >> 1;
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    p * power(half) * power(n - half)
}

/// Returns the quantile of the normal distribution for a probability inside (0, 1): M. Wichura,
/// "Algorithm AS 241: the percentage points of the normal distribution" (1988), function PPND16.
#[inline(always)]
pub fn inverse_normal(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner!(
            r,
            2.509_080_928_730_122_672_7e3,
            3.343_057_558_358_812_810_5e4,
            6.726_577_092_700_870_085_3e4,
            4.592_195_393_154_987_145_7e4,
            1.373_169_376_550_946_112_5e4,
            1.971_590_950_306_551_442_7e3,
            1.331_416_678_917_843_774_5e2,
            3.387_132_872_796_366_608_0e0
        ) / horner!(
            r,
            5.226_495_278_852_854_561_0e3,
            2.872_908_573_572_194_267_4e4,
            3.930_789_580_009_271_061_0e4,
            2.121_379_430_158_659_586_7e4,
            5.394_196_021_424_751_107_7e3,
            6.871_870_074_920_579_083_0e2,
            4.231_333_070_160_091_125_2e1,
            1.0
        );
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-ln64(tail)).sqrt();
    let x = if r <= 5.0 {
        let r = r - 1.6;
        horner!(
            r,
            7.745_450_142_783_414_076_4e-4,
            2.272_384_498_926_918_458_3e-2,
            2.417_807_251_774_506_117_7e-1,
            1.270_458_252_452_368_382_58e0,
            3.647_848_324_763_204_605_04e0,
            5.769_497_221_460_691_405_5e0,
            4.630_337_846_156_545_295_9e0,
            1.423_437_110_749_683_577_34e0
        ) / horner!(
            r,
            1.050_750_071_644_416_843_24e-9,
            5.475_938_084_995_344_946e-4,
            1.519_866_656_361_645_719_66e-2,
            1.481_039_764_274_800_745_9e-1,
            6.897_673_349_851_000_045_5e-1,
            1.676_384_830_183_803_849_4e0,
            2.053_191_626_637_758_821_87e0,
            1.0
        )
    } else {
        let r = r - 5.0;
        horner!(
            r,
            2.010_334_399_292_288_132_65e-7,
            2.711_555_568_743_487_578_15e-5,
            1.242_660_947_388_078_438_6e-3,
            2.653_218_952_657_612_309_3e-2,
            2.965_605_718_285_048_912_3e-1,
            1.784_826_539_917_291_335_8e0,
            5.463_784_911_164_114_369_9e0,
            6.657_904_643_501_103_777_2e0
        ) / horner!(
            r,
            2.044_263_103_389_939_785_64e-15,
            1.421_511_758_316_445_888_7e-7,
            1.846_318_317_510_054_681_8e-5,
            7.868_691_311_456_132_591e-4,
            1.487_536_129_085_061_485_25e-2,
            1.369_298_809_227_358_053_1e-1,
            5.998_322_065_558_879_376_9e-1,
            1.0
        )
    };
    if q < 0.0 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

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
