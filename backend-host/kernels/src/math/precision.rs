//! Elementary functions, and the precisions in which they are computed.

use super::power::Real;
use crate::number::Number;
use hal::function::UnaryFunction;

/// A function of one number.
pub(crate) trait Elementary {
    /// The function.
    const FUNCTION: UnaryFunction;
    /// The largest finite argument that [`Elementary::single`] takes.
    const SINGLE_LIMIT: f32 = f32::MAX;
    /// The largest finite argument that [`Elementary::double`] takes.
    const DOUBLE_LIMIT: f64 = f64::MAX;
    /// The range of arguments of [`Elementary::ordinary_single`], if it differs from [`Elementary::single`].
    const ORDINARY_SINGLE: Option<(f32, f32)> = None;
    /// The range of arguments of [`Elementary::ordinary_double`], if it differs from [`Elementary::double`].
    const ORDINARY_DOUBLE: Option<(f64, f64)> = None;
    /// Returns the value with an error below 2 ulp, for ordinary arguments.
    fn ordinary_single(x: f32) -> f32 {
        Self::single(x)
    }
    /// Returns the value with an error below 1 ulp, for ordinary arguments.
    fn ordinary_double(x: f64) -> f64 {
        Self::double(x)
    }
    /// Returns the value with an error below 2 ulp.
    fn single(x: f32) -> f32;
    /// Returns the value with an error below 1 ulp.
    fn double(x: f64) -> f64;
    /// Returns the value for arguments beyond the limits.
    fn library(x: f64) -> f64;
}

/// A type in which elementary functions are computed.
pub(crate) trait Precision: Number + Real + Default {
    /// Returns true if [`Precision::evaluate_ordinary`] may be used for all arguments, and differs from
    /// [`Precision::evaluate`].
    fn are_ordinary<F: Elementary>(numbers: &[Self]) -> bool;
    /// Returns the value for ordinary arguments.
    fn evaluate_ordinary<F: Elementary>(self) -> Self;
    /// Returns true if the argument is finite, but too large for [`Precision::evaluate`].
    fn is_beyond<F: Elementary>(self) -> bool;
    /// Returns the value.
    fn evaluate<F: Elementary>(self) -> Self;
    /// Returns the value of the system's library.
    fn library<F: Elementary>(self) -> Self;
}

/// Returns true if all numbers are inside a range. NaN is not.
#[inline(always)]
fn are_within<T: Copy + PartialOrd>(numbers: &[T], (first, last): (T, T)) -> bool {
    numbers.iter().fold(true, |all, x| all & (*x >= first) & (*x <= last))
}

impl Precision for f64 {
    #[inline(always)]
    fn are_ordinary<F: Elementary>(numbers: &[f64]) -> bool {
        F::ORDINARY_DOUBLE.is_some_and(|range| are_within(numbers, range))
    }
    #[inline(always)]
    fn evaluate_ordinary<F: Elementary>(self) -> f64 {
        F::ordinary_double(self)
    }
    #[inline(always)]
    fn is_beyond<F: Elementary>(self) -> bool {
        F::DOUBLE_LIMIT < f64::MAX && (self.abs() > F::DOUBLE_LIMIT) & (self.abs() < f64::INFINITY)
    }
    #[inline(always)]
    fn evaluate<F: Elementary>(self) -> f64 {
        F::double(self)
    }
    #[inline(always)]
    fn library<F: Elementary>(self) -> f64 {
        F::library(self)
    }
}

impl Precision for f32 {
    #[inline(always)]
    fn are_ordinary<F: Elementary>(numbers: &[f32]) -> bool {
        F::ORDINARY_SINGLE.is_some_and(|range| are_within(numbers, range))
    }
    #[inline(always)]
    fn evaluate_ordinary<F: Elementary>(self) -> f32 {
        F::ordinary_single(self)
    }
    #[inline(always)]
    fn is_beyond<F: Elementary>(self) -> bool {
        F::SINGLE_LIMIT < f32::MAX && (self.abs() > F::SINGLE_LIMIT) & (self.abs() < f32::INFINITY)
    }
    #[inline(always)]
    fn evaluate<F: Elementary>(self) -> f32 {
        F::single(self)
    }
    #[inline(always)]
    fn library<F: Elementary>(self) -> f32 {
        F::library(f64::from(self)) as f32
    }
}
