//! The precisions in which elementary functions are computed.

use super::power::Real;
use super::table::Tabled;
use super::{Elementary, elementary_loop, tabled_body};
use crate::multiversion::Loop;
use crate::number::Number;

/// A type in which elementary functions are computed.
pub(crate) trait Precision: Number + Real + Default {
    /// True if all arguments are such that [`Precision::evaluate_ordinary`] may be used, and it
    /// is another function than [`Precision::evaluate`].
    fn are_ordinary<F: Elementary>(numbers: &[Self]) -> bool;
    /// The value for ordinary arguments.
    fn evaluate_ordinary<F: Elementary>(self) -> Self;
    /// True if the argument is finite and too large for [`Precision::evaluate`].
    fn is_beyond<F: Elementary>(self) -> bool;
    /// The value.
    fn evaluate<F: Elementary>(self) -> Self;
    /// The system's library's value.
    fn library<F: Elementary>(self) -> Self;
    /// The loop of a function of a type of few bits that is computed in this one.
    fn narrow_loop<T: Tabled, F: Elementary>() -> Option<Loop>;
}

/// True if no number is outside of a range or not a number.
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
    /// A table, since the values are to be exact.
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
