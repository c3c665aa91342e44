//! The next floating-point number.

use super::number::{Convert as _, Number, for_each};

/// A floating-point number that has neighbours.
pub(super) trait Neighbour {
    /// The number next to this one in the direction of `other`; `other` if they are equal, NaN if
    /// either is.
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
                // Sign and magnitude: the numbers of one sign are in the order of their bits.
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
