//! How the elements of each type are computed.

use super::Elementary;
use crate::half::{Half, narrow, to_odd, widen};
use hal::{bf16, f16};
use std::mem::MaybeUninit;

/// An element type of the elementary functions.
pub(super) trait Precision: Copy {
    /// The type in which arguments and values lie between the loops.
    type Working: Copy + Default;
    /// Arguments as working numbers.
    fn load(given: &[Self], numbers: &mut [Self::Working]);
    /// Working numbers as values.
    fn store(numbers: &[Self::Working], values: &mut [MaybeUninit<Self>]);
    /// True if all arguments are such that [`Precision::evaluate_ordinary`] may be used, and it
    /// is another function than [`Precision::evaluate`].
    fn are_ordinary<F: Elementary>(numbers: &[Self::Working]) -> bool;
    /// The value for ordinary arguments.
    fn evaluate_ordinary<F: Elementary>(x: Self::Working) -> Self::Working;
    /// True if the argument is finite and too large for [`Precision::evaluate`].
    fn is_beyond<F: Elementary>(x: Self::Working) -> bool;
    /// The value.
    fn evaluate<F: Elementary>(x: Self::Working) -> Self::Working;
    /// Computes the values whose arguments are too large once more.
    fn correct<F: Elementary>(given: &[Self], numbers: &mut [Self::Working]);
}

/// True if no number is outside of a range or not a number.
#[inline(always)]
fn are_within<T: Copy + PartialOrd>(numbers: &[T], (first, last): (T, T)) -> bool {
    numbers.iter().fold(true, |all, x| all & (*x >= first) & (*x <= last))
}

impl Precision for f64 {
    type Working = f64;

    #[inline(always)]
    fn load(given: &[f64], numbers: &mut [f64]) {
        numbers.copy_from_slice(given);
    }
    #[inline(always)]
    fn store(numbers: &[f64], values: &mut [MaybeUninit<f64>]) {
        for (value, &x) in values.iter_mut().zip(numbers) {
            value.write(x);
        }
    }
    #[inline(always)]
    fn are_ordinary<F: Elementary>(numbers: &[f64]) -> bool {
        F::ORDINARY_DOUBLE.is_some_and(|range| are_within(numbers, range))
    }
    #[inline(always)]
    fn evaluate_ordinary<F: Elementary>(x: f64) -> f64 {
        F::ordinary_double(x)
    }
    #[inline(always)]
    fn is_beyond<F: Elementary>(x: f64) -> bool {
        F::DOUBLE_LIMIT < f64::MAX && (x.abs() > F::DOUBLE_LIMIT) & (x.abs() < f64::INFINITY)
    }
    #[inline(always)]
    fn evaluate<F: Elementary>(x: f64) -> f64 {
        F::double(x)
    }
    #[cold]
    fn correct<F: Elementary>(given: &[f64], numbers: &mut [f64]) {
        for (number, &x) in numbers.iter_mut().zip(given) {
            if Self::is_beyond::<F>(x) {
                *number = F::library(x);
            }
        }
    }
}

impl Precision for f32 {
    type Working = f32;

    #[inline(always)]
    fn load(given: &[f32], numbers: &mut [f32]) {
        numbers.copy_from_slice(given);
    }
    #[inline(always)]
    fn store(numbers: &[f32], values: &mut [MaybeUninit<f32>]) {
        for (value, &x) in values.iter_mut().zip(numbers) {
            value.write(x);
        }
    }
    #[inline(always)]
    fn are_ordinary<F: Elementary>(numbers: &[f32]) -> bool {
        F::ORDINARY_SINGLE.is_some_and(|range| are_within(numbers, range))
    }
    #[inline(always)]
    fn evaluate_ordinary<F: Elementary>(x: f32) -> f32 {
        F::ordinary_single(x)
    }
    #[inline(always)]
    fn is_beyond<F: Elementary>(x: f32) -> bool {
        F::SINGLE_LIMIT < f32::MAX && (x.abs() > F::SINGLE_LIMIT) & (x.abs() < f32::INFINITY)
    }
    #[inline(always)]
    fn evaluate<F: Elementary>(x: f32) -> f32 {
        F::single(x)
    }
    #[cold]
    fn correct<F: Elementary>(given: &[f32], numbers: &mut [f32]) {
        for (number, &x) in numbers.iter_mut().zip(given) {
            if Self::is_beyond::<F>(x) {
                *number = F::library(f64::from(x)) as f32;
            }
        }
    }
}

/// Finite numbers of half precision are within every limit.
impl Precision for f16 {
    type Working = f32;

    #[inline(always)]
    fn load(given: &[f16], numbers: &mut [f32]) {
        for (number, &x) in numbers.iter_mut().zip(given) {
            *number = widen(x);
        }
    }
    #[inline(always)]
    fn store(numbers: &[f32], values: &mut [MaybeUninit<f16>]) {
        for (value, &x) in values.iter_mut().zip(numbers) {
            value.write(narrow(x));
        }
    }
    #[inline(always)]
    fn are_ordinary<F: Elementary>(_: &[f32]) -> bool {
        false
    }
    #[inline(always)]
    fn evaluate_ordinary<F: Elementary>(x: f32) -> f32 {
        Self::evaluate::<F>(x)
    }
    #[inline(always)]
    fn is_beyond<F: Elementary>(_: f32) -> bool {
        false
    }
    #[inline(always)]
    fn evaluate<F: Elementary>(x: f32) -> f32 {
        to_odd(F::double(f64::from(x)))
    }
    #[cold]
    fn correct<F: Elementary>(_: &[f16], _: &mut [f32]) {}
}

/// As single precision, whose range is the same.
impl Precision for bf16 {
    type Working = f32;

    #[inline(always)]
    fn load(given: &[bf16], numbers: &mut [f32]) {
        for (number, &x) in numbers.iter_mut().zip(given) {
            *number = x.widen();
        }
    }
    #[inline(always)]
    fn store(numbers: &[f32], values: &mut [MaybeUninit<bf16>]) {
        for (value, &x) in values.iter_mut().zip(numbers) {
            value.write(Half::narrow(x));
        }
    }
    #[inline(always)]
    fn are_ordinary<F: Elementary>(numbers: &[f32]) -> bool {
        f32::are_ordinary::<F>(numbers)
    }
    #[inline(always)]
    fn evaluate_ordinary<F: Elementary>(x: f32) -> f32 {
        f32::evaluate_ordinary::<F>(x)
    }
    #[inline(always)]
    fn is_beyond<F: Elementary>(x: f32) -> bool {
        f32::is_beyond::<F>(x)
    }
    #[inline(always)]
    fn evaluate<F: Elementary>(x: f32) -> f32 {
        f32::evaluate::<F>(x)
    }
    #[cold]
    fn correct<F: Elementary>(given: &[bf16], numbers: &mut [f32]) {
        for (number, &x) in numbers.iter_mut().zip(given) {
            if Self::is_beyond::<F>(x.widen()) {
                *number = F::library(f64::from(x.widen())) as f32;
            }
        }
    }
}
