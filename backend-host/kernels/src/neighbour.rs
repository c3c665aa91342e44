//! The next floating-point number.

use super::number::{Convert as _, Number, for_each};

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
