//! Integer arithmetic: all operations wrap, and division by zero returns zero.

use super::number::Number;
use hal::DType;

/// Returns true for a valid shift distance for a value of the same type.
macro_rules! is_shift {
    ($places:expr) => {
        (0..Self::BITS as Self).contains(&$places)
    };
}

macro_rules! common {
    () => {
        type Real = Self;
        type Working = Self;

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            self.wrapping_add(other)
        }
        #[inline(always)]
        fn subtract(self, other: Self) -> Self {
            self.wrapping_sub(other)
        }
        #[inline(always)]
        fn multiply(self, other: Self) -> Self {
            self.wrapping_mul(other)
        }
        #[inline(always)]
        fn divide(self, other: Self) -> Self {
            if other == 0 { 0 } else { self.wrapping_div(other) }
        }
        #[inline(always)]
        fn fmod(self, other: Self) -> Self {
            if other == 0 { 0 } else { self.wrapping_rem(other) }
        }
        #[inline(always)]
        fn negative(self) -> Self {
            self.wrapping_neg()
        }
        #[inline(always)]
        fn is_true(self) -> bool {
            self != 0
        }
        #[inline(always)]
        fn equal(self, other: Self) -> bool {
            self == other
        }
        #[inline(always)]
        fn less(self, other: Self) -> bool {
            self < other
        }
        #[inline(always)]
        fn less_equal(self, other: Self) -> bool {
            self <= other
        }
        #[inline(always)]
        fn real(self) -> Self {
            self
        }
        #[inline(always)]
        fn imaginary(self) -> Self {
            0
        }
        #[inline(always)]
        fn invert(self) -> Self {
            !self
        }
        #[inline(always)]
        fn bit_and(self, other: Self) -> Self {
            self & other
        }
        #[inline(always)]
        fn bit_or(self, other: Self) -> Self {
            self | other
        }
        #[inline(always)]
        fn bit_xor(self, other: Self) -> Self {
            self ^ other
        }
        #[inline(always)]
        fn left_shift(self, other: Self) -> Self {
            // The shift instruction itself uses the distance modulo the number of bits.
            if is_shift!(other) { self.wrapping_shl(other as u32) } else { 0 }
        }
    };
}

/// Repeated squaring. It ends because right shifts bring any exponent to zero.
macro_rules! power_by_squaring {
    ($base:expr, $exponent:expr) => {{
        let (mut base, mut exponent, mut value) = ($base, $exponent, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                value = base.wrapping_mul(value);
            }
            base = base.wrapping_mul(base);
            exponent >>= 1;
        }
        value
    }};
}

macro_rules! signed {
    ($($rust:ident, $dtype:ident;)*) => {
        $(
            // SAFETY: a primitive integer of the dtype's size.
            unsafe impl Number for $rust {
                const DTYPE: DType = DType::$dtype;
                common!();

                #[inline(always)]
                fn absolute(self) -> Self {
                    self.wrapping_abs()
                }
                #[inline(always)]
                fn sign(self) -> Self {
                    self.signum()
                }
                #[inline(always)]
                fn floor_divide(self, other: Self) -> Self {
                    let quotient = self.divide(other);
                    let remainder = self.fmod(other);
                    let below = (remainder != 0) & ((remainder < 0) != (other < 0));
                    quotient.wrapping_sub($rust::from(below))
                }
                #[inline(always)]
                fn remainder(self, other: Self) -> Self {
                    let remainder = self.fmod(other);
                    let below = (remainder != 0) & ((remainder < 0) != (other < 0));
                    if below { remainder.wrapping_add(other) } else { remainder }
                }
                #[inline(always)]
                fn power(self, other: Self) -> Self {
                    match (self, other) {
                        (_, 0..) => power_by_squaring!(self, other),
                        (1, _) => 1,
                        (-1, _) => if other & 1 == 0 { 1 } else { -1 },
                        _ => 0,
                    }
                }
                #[inline(always)]
                fn right_shift(self, other: Self) -> Self {
                    // The largest shift leaves only the sign.
                    let places = if is_shift!(other) { other as u32 } else { Self::BITS - 1 };
                    self.wrapping_shr(places)
                }
            }
        )*
    };
}

macro_rules! unsigned {
    ($($rust:ident, $dtype:ident;)*) => {
        $(
            // SAFETY: a primitive integer of the dtype's size.
            unsafe impl Number for $rust {
                const DTYPE: DType = DType::$dtype;
                common!();

                #[inline(always)]
                fn absolute(self) -> Self {
                    self
                }
                #[inline(always)]
                fn sign(self) -> Self {
                    $rust::from(self != 0)
                }
                #[inline(always)]
                fn floor_divide(self, other: Self) -> Self {
                    self.divide(other)
                }
                #[inline(always)]
                fn remainder(self, other: Self) -> Self {
                    self.fmod(other)
                }
                #[inline(always)]
                fn power(self, other: Self) -> Self {
                    power_by_squaring!(self, other)
                }
                #[inline(always)]
                fn right_shift(self, other: Self) -> Self {
                    if is_shift!(other) { self.wrapping_shr(other as u32) } else { 0 }
                }
            }
        )*
    };
}

signed! {
    i8, Int8;
    i16, Int16;
    i32, Int32;
    i64, Int64;
}

unsigned! {
    u8, UInt8;
    u16, UInt16;
    u32, UInt32;
    u64, UInt64;
}
