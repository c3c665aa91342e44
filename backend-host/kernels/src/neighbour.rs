//! The next floating-point number.

use hal::{bf16, f16};

/// A floating-point number that has neighbours.
pub(super) trait Neighbour {
    /// The number next to this one in the direction of `other`; `other` if they are equal, NaN if
    /// either is.
    fn next_after(self, other: Self) -> Self;
}

macro_rules! neighbour {
    ($($float:ty = $bits:ty),*) => {
        $(
            impl Neighbour for $float {
                #[inline(always)]
                fn next_after(self, other: Self) -> Self {
                    if self.is_nan() || self == other {
                        return if self == other { other } else { self };
                    }
                    if other.is_nan() {
                        return other;
                    }
                    // Sign and magnitude: the numbers of one sign are in the order of their bits.
                    const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                    let bits = self.to_bits();
                    let next = if bits & !SIGN == 0 {
                        other.to_bits() & SIGN | 1
                    } else if (self < other) == (bits & SIGN == 0) {
                        bits + 1
                    } else {
                        bits - 1
                    };
                    <$float>::from_bits(next)
                }
            }
        )*
    };
}

neighbour!(f16 = u16, bf16 = u16, f32 = u32, f64 = u64);
