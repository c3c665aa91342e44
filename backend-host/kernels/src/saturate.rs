//! Saturating conversions of floating-point numbers to integers. The results are the same as with Rust's `as`, but
//! loops are faster: `as` is not vectorised.

/// A number that can be converted to an integer of type `I`. The fraction is truncated, values out of range
/// saturate, and NaN becomes zero.
pub trait Saturate<I>: Copy {
    /// Converts the number.
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

/// Converts with the processor's instruction, which returns `i64::MIN` for values out of range.
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

/// Negative numbers wrap through the signed type.
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
