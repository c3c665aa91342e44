//! The modulus of complex numbers, with errors below 1 ulp.
//!
//! The larger part determines the power of two by which both are scaled, so that squares neither overflow nor
//! underflow. The correction of the root in double precision follows C. F. Borges, "An Improved Algorithm for
//! hypot(a, b)" (2019), with fused multiply-add.

use crate::blocks::Kernel;
use crate::multiversion::{Loop, elements, places, select_fused};
use hal::DType;
use hal::function::UnaryFunction;

/// A type of real and imaginary parts.
trait Part: Copy {
    /// Returns the modulus of a number with these parts.
    fn modulus(re: Self, im: Self) -> Self;
}

/// Returns the parts without signs, the larger one first, and the factor that undoes their scaling. The
/// literals are exponents of two: the exponent from which numbers are scaled down, and by how much, and the
/// exponent up to which they are scaled up, and by how much.
macro_rules! scaled {
    ($part:ident, $large:literal $down:literal, $small:literal $up:literal, $re:expr, $im:expr) => {{
        const fn power(exponent: u32) -> $part {
            let mut value = 1.0;
            let mut index = 0;
            while index < exponent {
                value *= 2.0;
                index += 1;
            }
            value
        }
        const LARGE: $part = power($large);
        const DOWN: $part = power($down);
        const SMALL: $part = 1.0 / power($small);
        const UP: $part = power($up);
        let (re, im) = ($re.abs(), $im.abs());
        let (long, short) = if re > im { (re, im) } else { (im, re) };
        let factor = if long > LARGE { 1.0 / DOWN } else { 1.0 };
        let factor = if long < SMALL { UP } else { factor };
        let undone = if long > LARGE { DOWN } else { 1.0 };
        let undone = if long < SMALL { 1.0 / UP } else { undone };
        (long * factor, short * factor, undone)
    }};
}

/// The modulus is infinite if either part is, whatever the other one is.
macro_rules! or_infinite {
    ($part:ident, $re:expr, $im:expr, $value:expr) => {{
        let is_infinite = ($re.abs() == $part::INFINITY) | ($im.abs() == $part::INFINITY);
        if is_infinite { $part::INFINITY } else { $value }
    }};
}

impl Part for f32 {
    #[inline(always)]
    fn modulus(re: f32, im: f32) -> f32 {
        let (long, short, undone) = scaled!(f32, 60 70, 40 100, re, im);
        let value = long.mul_add(long, short * short).sqrt() * undone;
        or_infinite!(f32, re, im, value)
    }
}

impl Part for f64 {
    #[inline(always)]
    fn modulus(re: f64, im: f64) -> f64 {
        let (long, short, undone) = scaled!(f64, 500 600, 400 700, re, im);
        let root = long.mul_add(long, short * short).sqrt();
        let (square, long_square) = (root * root, long * long);
        let excess = (-short).mul_add(short, square - long_square) + root.mul_add(root, -square)
            - long.mul_add(long, -long_square);
        let divisor = if root == 0.0 { 1.0 } else { 2.0 * root };
        let value = (root - excess / divisor) * undone;
        or_infinite!(f64, re, im, value)
    }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn modulus_body<T: Part>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let is_repeated = repeated & 1 == 1;
    let given = if is_repeated { 1 } else { length };
    // SAFETY: passed on to the caller; the types differ, so the value does not overlap the argument.
    let (value, numbers) =
        unsafe { (places::<T>(value, length), elements::<[T; 2]>(arguments[0], given)) };
    if is_repeated {
        let [re, im] = numbers[0];
        let result = T::modulus(re, im);
        for value in value {
            value.write(result);
        }
        return;
    }
    for (value, &[re, im]) in value.iter_mut().zip(numbers) {
        value.write(T::modulus(re, im));
    }
}

select_fused!(select_modulus<T: Part>, modulus_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// Returns the loop of the modulus of complex numbers. Returns `None` for other functions, and on processors
/// without fused multiply-add.
pub(super) fn kernel(function: UnaryFunction, compute: DType) -> Option<Kernel> {
    if function != UnaryFunction::Absolute {
        return None;
    }
    let run = match compute {
        DType::Complex64 => select_modulus::<f32>(),
        DType::Complex128 => select_modulus::<f64>(),
        _ => None,
    }?;
    Some(Kernel { run: run.into(), cheap: false, in_place: false })
}
