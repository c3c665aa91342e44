//! Conversions of floating-point numbers to integers that saturate, as Rust's `as` does and, for
//! loops, faster: `as` becomes code that treats one element at a time.

/// A number that becomes an integer of type `I`: the fraction is cut off, what does not fit
/// becomes the nearest integer that the type has, and what is not a number becomes zero.
pub trait Saturate<I>: Copy {
    /// The integer.
    fn saturate(self) -> I;
}

impl Saturate<i32> for f64 {
    #[inline(always)]
    fn saturate(self) -> i32 {
        const MOST: f64 = i32::MAX as f64;
        const LEAST: f64 = i32::MIN as f64;
        let value = if self < MOST { self } else { MOST };
        let value = if value > LEAST { value } else { LEAST };
        let value = if self.is_nan() { 0.0 } else { value };
        // SAFETY: between the least and the greatest integer.
        unsafe { value.to_int_unchecked() }
    }
}

impl Saturate<i32> for f32 {
    #[inline(always)]
    fn saturate(self) -> i32 {
        /// The greatest number of the type below 2^31.
        const MOST: f32 = 2_147_483_520.0;
        const LEAST: f32 = i32::MIN as f32;
        let value = if self < MOST { self } else { MOST };
        let value = if value > LEAST { value } else { LEAST };
        // SAFETY: between the least and the greatest integer.
        let value: i32 = unsafe { value.to_int_unchecked() };
        let value = if self > MOST { i32::MAX } else { value };
        if self.is_nan() { 0 } else { value }
    }
}

/// The processor's conversion, which is `i64::MIN` for everything that does not fit.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn to_i64(value: f64) -> i64 {
    use std::arch::x86_64::{_mm_cvttsd_si64, _mm_set_sd};
    // SAFETY: every processor of the target has SSE2.
    unsafe { _mm_cvttsd_si64(_mm_set_sd(value)) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn to_i64(value: f64) -> i64 {
    value as i64
}

impl Saturate<i64> for f64 {
    #[inline(always)]
    fn saturate(self) -> i64 {
        #[cold]
        fn rare(value: f64) -> i64 {
            value as i64
        }
        match to_i64(self) {
            i64::MIN => rare(self),
            value => value,
        }
    }
}

/// Negative numbers wrap by way of the signed type.
impl Saturate<u64> for f64 {
    #[inline(always)]
    fn saturate(self) -> u64 {
        #[cold]
        fn rare(value: f64) -> u64 {
            if value < 0.0 { value as i64 as u64 } else { value as u64 }
        }
        match to_i64(self) {
            i64::MIN => rare(self),
            value => value as u64,
        }
    }
}

impl Saturate<i64> for f32 {
    #[inline(always)]
    fn saturate(self) -> i64 {
        f64::from(self).saturate()
    }
}

impl Saturate<u64> for f32 {
    #[inline(always)]
    fn saturate(self) -> u64 {
        f64::from(self).saturate()
    }
}
