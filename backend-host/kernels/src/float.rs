//! The arithmetic of floating-point numbers: IEEE 754 with numpy's division and ordering.

use super::number::{Convert as _, Number, for_each};
use hal::DType;
use hal::dtype::narrow::Narrow;

macro_rules! float {
    ($rust:ident, $dtype:ident) => {
        // SAFETY: a primitive with the size of the dtype.
        unsafe impl Number for $rust {
            const DTYPE: DType = DType::$dtype;
            type Real = Self;
            type Working = Self;

            float!(@operator add +, subtract -, multiply *, divide /, fmod %);
            float!(@compare equal ==, less <, less_equal <=);

            #[inline(always)]
            fn negative(self) -> Self {
                -self
            }
            #[inline(always)]
            fn absolute(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let sign = (self > 0.0) as i8 - (self < 0.0) as i8;
                if self.is_nan() { self } else { $rust::from(sign) }
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0.0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                self.abs() == $rust::INFINITY
            }
            /// One instruction and a correction: the hardware's minimum returns the first of two unordered
            /// numbers.
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                let smaller = if other < self { other } else { self };
                if other.is_nan() { other } else { smaller }
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                let larger = if other > self { other } else { self };
                if other.is_nan() { other } else { larger }
            }
            #[inline(always)]
            fn real(self) -> Self {
                self
            }
            #[inline(always)]
            fn imaginary(self) -> Self {
                0.0
            }
            /// The quotient that matches [`Number::remainder`]: after the remainder is subtracted, the
            /// division is exact except for rounding.
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return $rust::copysign(0.0, self / other);
                }
                let whole = quotient.floor();
                if quotient - whole > 0.5 { whole + 1.0 } else { whole }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                let rest = self % other;
                if other == 0.0 {
                    rest
                } else if rest == 0.0 {
                    $rust::copysign(0.0, other)
                } else if (other < 0.0) != (rest < 0.0) {
                    rest + other
                } else {
                    rest
                }
            }
            #[inline(always)]
            fn power(self, other: Self) -> Self {
                self.powf(other)
            }
        }
    };
    (@operator $($name:ident $operator:tt),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                self $operator other
            }
        )*
    };
    (@compare $($name:ident $operator:tt),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> bool {
                self $operator other
            }
        )*
    };
}

float!(f32, Float32);
float!(f64, Float64);

/// A floating-point type.
pub(super) trait Float: Number {
    /// The type for functions whose values would be rounded twice in [`Number::Working`].
    type Precise: Number;
    /// The type in which elementary functions and powers are computed.
    type Functions: Number + Default;
    /// Stores elements as numbers of the type `Functions`.
    fn load(elements: &[Self], numbers: &mut [Self::Functions]);
}

impl Float for f32 {
    type Precise = f32;
    type Functions = f32;
    #[inline(always)]
    fn load(elements: &[f32], numbers: &mut [f32]) {
        numbers.copy_from_slice(elements);
    }
}

impl Float for f64 {
    type Precise = f64;
    type Functions = f64;
    #[inline(always)]
    fn load(elements: &[f64], numbers: &mut [f64]) {
        numbers.copy_from_slice(elements);
    }
}

/// Functions of a type stored in few bits: they are computed in the working type and rounded once.
macro_rules! rounded {
    (@unary $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self) -> Self {
                Self::narrow(Number::$name(self.widen()))
            }
        )*
    };
    (@binary $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Self::narrow(Number::$name(self.widen(), other.widen()))
            }
        )*
    };
    // Functions whose values in single precision would be rounded twice.
    (@precise $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                let (x, y) = (f64::from(self.widen()), f64::from(other.widen()));
                Self::narrow_double(Number::$name(x, y))
            }
        )*
    };
    (@compare $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> bool {
                Number::$name(self.widen(), other.widen())
            }
        )*
    };
}

macro_rules! narrow_number {
    ([] $dtype:ident, $rust:ty) => {
        // SAFETY: the dtype has this size, and every bit pattern is a number.
        unsafe impl Number for $rust {
            const DTYPE: DType = DType::$dtype;
            type Real = Self;
            type Working = f32;

            rounded!(@unary sign);
            rounded!(@binary add, subtract, multiply, divide, floor_divide, remainder, fmod);
            rounded!(@precise power);
            rounded!(@compare equal, less, less_equal);

            #[inline(always)]
            fn negative(self) -> Self {
                Self::of_bits(self.bits() ^ Self::SIGN)
            }
            #[inline(always)]
            fn absolute(self) -> Self {
                Self::of_bits(self.bits() & !Self::SIGN)
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                self.bits() & !Self::SIGN != 0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.bits() & !Self::SIGN > Self::INFINITE
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                self.bits() & !Self::SIGN == Self::INFINITE
            }
            #[inline(always)]
            fn real(self) -> Self {
                self
            }
            #[inline(always)]
            fn imaginary(self) -> Self {
                Self::of_bits(0)
            }
        }

        impl Float for $rust {
            type Precise = f64;
            type Functions = <$rust as Narrow>::Functions;
            #[inline(always)]
            fn load(elements: &[Self], numbers: &mut [Self::Functions]) {
                for (number, element) in numbers.iter_mut().zip(elements) {
                    *number = element.convert();
                }
            }
        }
    };
}

for_each!(narrow => narrow_number []);
