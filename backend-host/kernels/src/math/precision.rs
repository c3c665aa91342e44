//! The precisions in which elementary functions are computed.

use super::power::Real;
use super::table::Tabled;
use super::{Elementary, elementary_loop, tabled_body};
use crate::multiversion::Loop;
use crate::number::Number;

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
    /// Returns the loop of a function for a type stored in few bits, if it is computed in this type.
    fn narrow_loop<T: Tabled, F: Elementary>() -> Option<Loop>;
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
    /// A table, because the values have to be correctly rounded.
    fn narrow_loop<T: Tabled, F: Elementary>() -> Option<Loop> {
        Some(tabled_body::<T, F>)
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
    fn narrow_loop<T: Tabled, F: Elementary>() -> Option<Loop> {
        elementary_loop::<T, F>()
    }
}
