//! The arithmetic of floating-point numbers: IEEE 754 with numpy's division and ordering.

use super::half::Half;
use super::number::Number;
use hal::{DType, bf16, f16};

macro_rules! float {
    ($rust:ident, $dtype:ident) => {
        // SAFETY: a primitive of the dtype's size.
        unsafe impl Number for $rust {
            const DTYPE: DType = DType::$dtype;
            type Real = Self;

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
            /// One instruction and a correction: the hardware's minimum takes the first of
            /// two that are not ordered.
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
            /// The quotient that belongs to [`Number::remainder`]: what is left after the
            /// remainder is taken away divides without a fraction, but for rounding.
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

macro_rules! half {
    (@unary $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self) -> Self {
                Half::narrow(Number::$name(self.widen()))
            }
        )*
    };
    (@binary $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Half::narrow(Number::$name(self.widen(), other.widen()))
            }
        )*
    };
    // Functions whose values in single precision would be rounded twice.
    (@precise $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                let [x, y] = [self, other].map(|value| f64::from(value.widen()));
                Half::narrow_double(Number::$name(x, y))
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

macro_rules! half_number {
    ($rust:ty, $dtype:ident) => {
        // SAFETY: two bytes, every pattern of which is a number.
        unsafe impl Number for $rust {
            const DTYPE: DType = DType::$dtype;
            type Real = Self;

            half!(@unary sign);
            half!(@binary add, subtract, multiply, divide, floor_divide, remainder, fmod);
            half!(@precise power);
            half!(@compare equal, less, less_equal);

            #[inline(always)]
            fn negative(self) -> Self {
                <$rust>::from_bits(self.to_bits() ^ 0x8000)
            }
            #[inline(always)]
            fn absolute(self) -> Self {
                <$rust>::from_bits(self.to_bits() & 0x7fff)
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                self.to_bits() & 0x7fff != 0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.to_bits() & 0x7fff > Self::INFINITE
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                self.to_bits() & 0x7fff == Self::INFINITE
            }
            #[inline(always)]
            fn real(self) -> Self {
                self
            }
            #[inline(always)]
            fn imaginary(self) -> Self {
                <$rust>::from_bits(0)
            }
        }
    };
}

half_number!(f16, Float16);
half_number!(bf16, BFloat16);
