//! Functions of two numbers that the standard library lacks: sums of exponentials, the step function, the next
//! floating-point number, common divisors and multiples.

use super::number::{Convert as _, Number, for_each};
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

/// A floating-point number that has neighbours.
pub(super) trait Neighbour {
    /// Returns the next number in the direction of `other`. Returns `other` if they are equal, and NaN if
    /// either is NaN.
    fn next_after(self, other: Self) -> Self;
}

macro_rules! neighbour {
    ([] $dtype:ident, $float:ty) => {
        impl Neighbour for $float {
            #[inline(always)]
            fn next_after(self, other: Self) -> Self {
                if Number::is_nan(self) || self == other {
                    return if self == other { other } else { self };
                }
                if Number::is_nan(other) {
                    return other;
                }
                // Sign and magnitude: numbers with the same sign are ordered by their bits.
                let sign = Number::negative(Self::from_u8(0)).to_bits();
                let bits = self.to_bits();
                let next = if bits & !sign == 0 {
                    other.to_bits() & sign | 1
                } else if (self < other) == (bits & sign == 0) {
                    bits + 1
                } else {
                    bits - 1
                };
                <$float>::from_bits(next)
            }
        }
    };
}

for_each!(float => neighbour []);

/// Functions of two integers.
pub(super) trait Divisors {
    /// Returns the greatest common divisor. For a signed type, the largest power of two wraps.
    fn gcd(self, other: Self) -> Self;
    /// Returns the least common multiple, which wraps, or 0 if either number is 0.
    fn lcm(self, other: Self) -> Self;
}

macro_rules! divisors {
    ($($rust:ty = $unsigned:ty, $magnitude:ident;)*) => {
        $(
            impl Divisors for $rust {
                #[inline(always)]
                fn gcd(self, other: Self) -> Self {
                    // Euclid's algorithm.
                    let (mut divisor, mut rest) = (self.$magnitude(), other.$magnitude());
                    while rest != 0 {
                        (divisor, rest) = (rest, divisor % rest);
                    }
                    divisor as Self
                }
                #[inline(always)]
                fn lcm(self, other: Self) -> Self {
                    let divisor = self.gcd(other) as $unsigned;
                    if divisor == 0 {
                        return 0;
                    }
                    (self.$magnitude() / divisor).wrapping_mul(other.$magnitude()) as Self
                }
            }
        )*
    };
}

/// An unsigned number is its own magnitude.
trait Magnitude {
    /// Returns the number itself.
    fn magnitude(self) -> Self;
}

macro_rules! magnitude {
    ($($unsigned:ty),*) => {
        $(
            impl Magnitude for $unsigned {
                #[inline(always)]
                fn magnitude(self) -> Self {
                    self
                }
            }
        )*
    };
}

magnitude!(u8, u16, u32, u64);

divisors! {
    i8 = u8, unsigned_abs;
    i16 = u16, unsigned_abs;
    i32 = u32, unsigned_abs;
    i64 = u64, unsigned_abs;
    u8 = u8, magnitude;
    u16 = u16, magnitude;
    u32 = u32, magnitude;
    u64 = u64, magnitude;
}
