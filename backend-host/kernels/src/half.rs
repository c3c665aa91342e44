//! Conversion between binary16 or bfloat16 and binary32 without branches, so that loops over it
//! become vector code on processors and builds that lack the instructions for it.

pub(super) use hal::scalar::to_odd;
use hal::{bf16, f16};

const SIGN: u32 = 0x8000;
/// The exponent bits of binary32, which are also its infinity.
const INFINITE: u32 = 0x7f80_0000;
/// The difference of the two exponent biases, in place.
const REBIAS: u32 = 112 << 23;

/// The value as binary32, exactly.
#[inline(always)]
pub fn widen(value: f16) -> f32 {
    let bits = u32::from(value.to_bits());
    // Shifted into place the number is 2^112 too small, subnormal ones included.
    let scale = f32::from_bits((127 + 112) << 23);
    let finite = (f32::from_bits((bits & 0x7fff) << 13) * scale).to_bits();
    let special = if bits & 0x7c00 == 0x7c00 { INFINITE } else { 0 };
    f32::from_bits(finite | special | ((bits & SIGN) << 16))
}

/// The nearest binary16, halves to even; what is too large becomes infinite.
#[inline(always)]
pub fn narrow(value: f32) -> f16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + odd) >> 13;
    // The last bit of 0.5 has the weight of the last bit of a subnormal binary16, so the
    // addition rounds at the right place.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let special = if magnitude > INFINITE { 0x7e00 } else { 0x7c00 };
    let small = magnitude < (113 << 23);
    let large = magnitude >= ((127 + 16) << 23);
    let rounded = if small { subnormal } else { normal };
    let rounded = if large { special } else { rounded };
    f16::from_bits((rounded | ((bits >> 16) & SIGN)) as u16)
}

/// The nearest binary16 of a number of double precision.
#[inline(always)]
pub(super) fn narrow_double(value: f64) -> f16 {
    narrow(to_odd(value))
}

/// A floating-point number of 16 bits, which is calculated with in wider ones.
pub(super) trait Half: Copy {
    /// The bits of infinity.
    const INFINITE: u16;
    /// The value as binary32, exactly.
    fn widen(self) -> f32;
    /// The nearest number, halves to even; what is too large becomes infinite.
    fn narrow(value: f32) -> Self;
    /// The number that one of double precision becomes: the nearest binary16, and the nearest
    /// bfloat16 of the nearest number of single precision (which `ml_dtypes` too rounds twice).
    fn narrow_double(value: f64) -> Self;
}

impl Half for f16 {
    const INFINITE: u16 = 0x7c00;
    #[inline(always)]
    fn widen(self) -> f32 {
        widen(self)
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        narrow(value)
    }
    #[inline(always)]
    fn narrow_double(value: f64) -> Self {
        narrow_double(value)
    }
}

impl Half for bf16 {
    const INFINITE: u16 = 0x7f80;
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
