//! Sums of exponentials, and the step function.

use std::f64::consts::{LN_2, LOG2_E};

/// Functions of two floating-point numbers.
pub(super) trait Sums {
    /// Returns `ln(e^self + e^other)`, without intermediate overflow.
    fn log_add_exp(self, other: Self) -> Self;
    /// Returns `log2(2^self + 2^other)`, without intermediate overflow.
    fn log_add_exp2(self, other: Self) -> Self;
    /// Returns 0 for negative numbers, 1 for positive ones, `at_zero` for zero, and NaN for NaN.
    fn heaviside(self, at_zero: Self) -> Self;
}

macro_rules! sums {
    ($($float:ident),*) => {
        $(
            impl Sums for $float {
                #[inline(always)]
                fn log_add_exp(self, other: Self) -> Self {
                    // Infinities with the same sign are equal, but their difference is NaN.
                    if self == other {
                        return self + LN_2 as $float;
                    }
                    let distance = self - other;
                    let larger = if distance > 0.0 { self } else { other };
                    if distance.is_nan() { distance } else { larger + (-distance.abs()).exp().ln_1p() }
                }
                #[inline(always)]
                fn log_add_exp2(self, other: Self) -> Self {
                    if self == other {
                        return self + 1.0;
                    }
                    let distance = self - other;
                    let larger = if distance > 0.0 { self } else { other };
                    let excess = (-distance.abs()).exp2().ln_1p() * LOG2_E as $float;
                    if distance.is_nan() { distance } else { larger + excess }
                }
                #[inline(always)]
                fn heaviside(self, at_zero: Self) -> Self {
                    let step = if self > 0.0 { 1.0 } else { 0.0 };
                    let step = if self == 0.0 { at_zero } else { step };
                    if self.is_nan() { self } else { step }
                }
            }
        )*
    };
}

sums!(f32, f64);
