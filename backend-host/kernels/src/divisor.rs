//! Common divisors and multiples of integers.

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
