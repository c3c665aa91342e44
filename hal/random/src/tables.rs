//! The numbers of the generators and of the functions of [`crate::math`]. [`definitions`] returns them for device
//! code.

#![allow(clippy::excessive_precision, reason = "digits are those of the publications")]

use std::f64::consts::PI;
use std::fmt::{Debug, Write as _};

fn define(text: &mut String, name: &str, values: &[impl Debug], suffix: &str) {
    let _ = write!(text, "#define RANDOM_{name} ");
    for (index, value) in values.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{value:?}{suffix}");
    }
    text.push('\n');
}

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident: $type:ident = $value:tt;)+) => {
        $(tables!(@ $(#[$doc])* $name $type $value);)+

        /// Returns a C definition for each table: `RANDOM_` with its name, and its numbers separated by commas.
        pub fn definitions() -> String {
            let mut text = String::new();
            $(define(&mut text, stringify!($name), tables!(* $name $value), tables!(suffix $type));)+
            text
        }
    };
    (@ $(#[$doc:meta])* $name:ident $type:ident [$($value:expr),+ $(,)?]) => {
        $(#[$doc])*
        pub(crate) const $name: [$type; [$(stringify!($value)),+].len()] = [$($value),+];
    };
    (@ $(#[$doc:meta])* $name:ident $type:ident ($value:expr)) => {
        $(#[$doc])*
        pub(crate) const $name: $type = $value;
    };
    (* $name:ident [$($value:tt)+]) => { &$name };
    (* $name:ident ($($value:tt)+)) => { &[$name] };
    (suffix f32) => { "f" };
    (suffix f64) => { "" };
    (suffix u32) => { "u" };
    (suffix u64) => { "ull" };
}

// Coefficients are in the order of Horner's rule, the highest degree first.
tables! {
    /// The step of XORWOW's Weyl sequence.
    XORWOW_WEYL: u32 = (362_437);
    /// The moduli of MRG32k3a, 2^32 - 209 and 2^32 - 22853, and its factors.
    MRG_M1: u64 = (4_294_967_087);
    MRG_M2: u64 = (4_294_944_443);
    MRG_A12: u64 = (1_403_580);
    MRG_A13: u64 = (810_728);
    MRG_A21: u64 = (527_612);
    MRG_A23: u64 = (1_370_589);
    /// The factors that convert a draw of MRG32k3a to a word, and to a number in (0, 1).
    MRG_WORD: f64 = (1.000_000_048_662);
    MRG_UNIT: f64 = (2.328_306_549_295_728e-10);
    /// The factors of a round of Philox, and the steps of its key.
    PHILOX_FIRST: u32 = (0xd251_1f53);
    PHILOX_SECOND: u32 = (0xcd9e_8d57);
    PHILOX_FIRST_STEP: u32 = (0x9e37_79b9);
    PHILOX_SECOND_STEP: u32 = (0xbb67_ae85);
    /// A minimax fit of `-2 ln(1 - g/2)`, without its terms of degree 0 and 1, divided by `g^2`.
    SQUARE_RADIUS: f32 = [
        0.054_128_315 / 256.0, 0.120_670_29 / 128.0, 0.149_839_18 / 64.0, 0.168_228_58 / 32.0,
        0.199_770_79 / 16.0, 0.249_934_41 / 8.0, 0.333_335_49 / 4.0, 0.500_000_6 / 2.0,
    ];
    /// Taylor's series of the logarithm, in the square of `f / (f + 2)`.
    LN: f64 = [
        2.0 / 25.0, 2.0 / 23.0, 2.0 / 21.0, 2.0 / 19.0, 2.0 / 17.0, 2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0,
        2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0,
    ];
    /// A turn divided by 2^32.
    TURN_32: f32 = ((2.0 * PI / 4_294_967_296.0) as f32);
    /// A turn divided by 2^53.
    TURN_53: f64 = (2.0 * PI / 9_007_199_254_740_992.0);
    /// Taylor's series of sine and cosine, in the square of the angle.
    SINE_32: f32 = [1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0];
    COSINE_32: f32 = [1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];
    SINE_64: f64 = [
        1.0 / 355_687_428_096_000.0, -1.0 / 1_307_674_368_000.0, 1.0 / 6_227_020_800.0, -1.0 / 39_916_800.0,
        1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0,
    ];
    COSINE_64: f64 = [
        1.0 / 20_922_789_888_000.0, -1.0 / 87_178_291_200.0, 1.0 / 479_001_600.0, -1.0 / 3_628_800.0,
        1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0,
    ];
    /// 1.5 * 2^52: adding it leaves a whole number in the low bits.
    EXP_ROUND: f64 = (6_755_399_441_055_744.0);
    /// The logarithm of 2 in two parts, of which the first has zeros in its last bits.
    LN_2_HIGH: f64 = (6.931_471_803_691_238e-1);
    LN_2_LOW: f64 = (1.908_214_929_270_587_7e-10);
    /// Taylor's series of the exponential.
    EXP: f64 = [
        1.0 / 6_227_020_800.0, 1.0 / 479_001_600.0, 1.0 / 39_916_800.0, 1.0 / 3_628_800.0, 1.0 / 362_880.0,
        1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0,
    ];
    /// M. Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988), function PPND16: the
    /// rational functions of its three ranges, from the centre to the tails.
    QUANTILE_CENTRE: f64 = [
        2.509_080_928_730_122_672_7e3, 3.343_057_558_358_812_810_5e4, 6.726_577_092_700_870_085_3e4,
        4.592_195_393_154_987_145_7e4, 1.373_169_376_550_946_112_5e4, 1.971_590_950_306_551_442_7e3,
        1.331_416_678_917_843_774_5e2, 3.387_132_872_796_366_608_0e0,
    ];
    QUANTILE_CENTRE_BELOW: f64 = [
        5.226_495_278_852_854_561_0e3, 2.872_908_573_572_194_267_4e4, 3.930_789_580_009_271_061_0e4,
        2.121_379_430_158_659_586_7e4, 5.394_196_021_424_751_107_7e3, 6.871_870_074_920_579_083_0e2,
        4.231_333_070_160_091_125_2e1, 1.0,
    ];
    QUANTILE_NEAR: f64 = [
        7.745_450_142_783_414_076_4e-4, 2.272_384_498_926_918_458_3e-2, 2.417_807_251_774_506_117_7e-1,
        1.270_458_252_452_368_382_58e0, 3.647_848_324_763_204_605_04e0, 5.769_497_221_460_691_405_5e0,
        4.630_337_846_156_545_295_9e0, 1.423_437_110_749_683_577_34e0,
    ];
    QUANTILE_NEAR_BELOW: f64 = [
        1.050_750_071_644_416_843_24e-9, 5.475_938_084_995_344_946e-4, 1.519_866_656_361_645_719_66e-2,
        1.481_039_764_274_800_745_9e-1, 6.897_673_349_851_000_045_5e-1, 1.676_384_830_183_803_849_4e0,
        2.053_191_626_637_758_821_87e0, 1.0,
    ];
    QUANTILE_FAR: f64 = [
        2.010_334_399_292_288_132_65e-7, 2.711_555_568_743_487_578_15e-5, 1.242_660_947_388_078_438_6e-3,
        2.653_218_952_657_612_309_3e-2, 2.965_605_718_285_048_912_3e-1, 1.784_826_539_917_291_335_8e0,
        5.463_784_911_164_114_369_9e0, 6.657_904_643_501_103_777_2e0,
    ];
    QUANTILE_FAR_BELOW: f64 = [
        2.044_263_103_389_939_785_64e-15, 1.421_511_758_316_445_888_7e-7, 1.846_318_317_510_054_681_8e-5,
        7.868_691_311_456_132_591e-4, 1.487_536_129_085_061_485_25e-2, 1.369_298_809_227_358_053_1e-1,
        5.998_322_065_558_879_376_9e-1, 1.0,
    ];
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_are_literals_of_c() {
        let text = super::definitions();
        for line in [
            "#define RANDOM_XORWOW_WEYL 362437u",
            "#define RANDOM_MRG_M1 4294967087ull",
            "#define RANDOM_COSINE_32 2.4801588e-5f, -0.0013888889f, 0.041666668f, -0.5f, 1.0f",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
