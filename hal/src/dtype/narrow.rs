//! Floating-point types that are stored in 16 bits and calculated with in wider types.
//!
//! This file contains all code for such a type on the CPU: scalars, casts and the host's kernels are
//! generated from [`Narrow`] and from the type's row in the table of dtypes.

use super::Element;
use types::{bf16, f16};

/// The Rust types. Every crate exports them under these names.
pub mod types {
    pub use half::{bf16, f16};
}

/// A floating-point type of at most 16 bits: a sign, an exponent and a fraction, in this order from the
/// highest bit, so that numbers of one sign are ordered like their bits.
///
/// Arithmetic is computed in binary32 and rounded once. Functions whose binary32 results would be
/// rounded twice are computed in binary64.
pub trait Narrow: Element + PartialOrd {
    /// The sign bit.
    const SIGN: u16;
    /// The bits of infinity. A larger magnitude is a NaN.
    const INFINITE: u16;
    /// The type in which elementary functions and powers are rounded to the narrow type: `f64` for the
    /// nearest number, `f32` for single-precision results that are rounded again.
    type Functions: Copy;

    /// Returns the bits of the number.
    fn bits(self) -> u16;
    /// Returns the number with the given bits.
    fn of_bits(bits: u16) -> Self;
    /// Returns the value as binary32, exactly.
    fn widen(self) -> f32;
    /// Returns the nearest number, ties to even. Values that are too large become infinite.
    fn narrow(value: f32) -> Self;
    /// Converts a double-precision value: to the nearest number, or by way of single precision, as
    /// [`Narrow::Functions`] says.
    fn narrow_double(value: f64) -> Self;
}

/// The sign bit of a 16-bit number, in the upper half of a binary32.
const SIGN: u32 = 0x8000;
/// The exponent bits of binary32; the same bits represent infinity.
const INFINITE: u32 = 0x7f80_0000;
/// The difference between the exponent biases of binary32 and binary16, shifted into place.
const REBIAS: u32 = 112 << 23;

/// The conversions have no branches, so that loops over them vectorise on processors and builds that
/// lack the instructions for it.
impl Narrow for f16 {
    const SIGN: u16 = 0x8000;
    const INFINITE: u16 = 0x7c00;
    type Functions = f64;

    #[inline(always)]
    fn bits(self) -> u16 {
        self.to_bits()
    }
    #[inline(always)]
    fn of_bits(bits: u16) -> Self {
        f16::from_bits(bits)
    }
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        // Shifted into place, the number is too small by a factor of 2^112; this includes subnormals.
        let scale = f32::from_bits((127 + 112) << 23);
        let finite = (f32::from_bits((bits & 0x7fff) << 13) * scale).to_bits();
        let special = if bits & 0x7c00 == 0x7c00 { INFINITE } else { 0 };
        f32::from_bits(finite | special | ((bits & SIGN) << 16))
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + odd) >> 13;
        // The last bit of 0.5 has the weight of the last bit of a subnormal binary16, so the addition
        // rounds at the right place.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let special = if magnitude > INFINITE { 0x7e00 } else { 0x7c00 };
        let small = magnitude < (113 << 23);
        let large = magnitude >= ((127 + 16) << 23);
        let rounded = if small { subnormal } else { normal };
        let rounded = if large { special } else { rounded };
        f16::from_bits((rounded | ((bits >> 16) & SIGN)) as u16)
    }
    #[inline(always)]
    fn narrow_double(value: f64) -> Self {
        Self::narrow(to_odd(value))
    }
}

/// Returns a single-precision number that rounds to the same binary16 as `value`. Inexact results are
/// rounded to odd, so that the second rounding is the only one.
///
/// S. Boldo and G. Melquiond, "Emulation of FMA and Correctly Rounded Sums: Proved Algorithms
/// Using Rounding to Odd" (2008).
#[inline(always)]
fn to_odd(value: f64) -> f32 {
    const LOST: u64 = (1 << 29) - 1;
    let bits = value.to_bits();
    let sticky = ((bits & LOST) + LOST) & (LOST + 1);
    f64::from_bits((bits | sticky) & !LOST) as f32
}

impl Narrow for bf16 {
    const SIGN: u16 = 0x8000;
    const INFINITE: u16 = 0x7f80;
    // numpy with `ml_dtypes` also converts by way of single precision.
    type Functions = f32;

    #[inline(always)]
    fn bits(self) -> u16 {
        self.to_bits()
    }
    #[inline(always)]
    fn of_bits(bits: u16) -> Self {
        bf16::from_bits(bits)
    }
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let quiet = ((bits >> 16) & SIGN) | 0x7fc0;
        bf16::from_bits(if value.is_nan() { quiet } else { rounded } as u16)
    }
    #[inline(always)]
    fn narrow_double(value: f64) -> Self {
        Self::narrow(value as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Scalar};

    #[test]
    fn halves_are_rounded_once() {
        let (unit, last) = (1.0 / 1024.0, 1.0 / 16_777_216.0);
        // Just above and just below the midpoint of two numbers, which single precision can represent.
        for (value, bits) in [
            (1.0 + 0.5 * unit, 0x3c00),
            (1.0 + 0.5 * unit + 1e-12, 0x3c01),
            (1.0 + 1.5 * unit, 0x3c02),
            (1.0 + 1.5 * unit - 1e-12, 0x3c01),
            (1.5 * last * (1.0 - 1e-12), 1),
            (1.5 * last, 2),
            (65_520.0 * (1.0 - 1e-12), 0x7bff),
            (65_520.0, 0x7c00),
            (0.5 * last, 0),
            (0.5 * last * (1.0 + 1e-12), 1),
        ] {
            for (value, bits) in [(value, bits), (-value, bits | 0x8000)] {
                assert_eq!(f16::narrow_double(value).to_bits(), bits, "{value:e}");
                let cast = Scalar::new(value).cast(DType::Float16);
                assert_eq!(cast.ok().and_then(|half| half.get()), Some(f16::from_bits(bits)));
            }
        }
        assert!(f16::narrow_double(f64::NAN).is_nan());
    }
}
