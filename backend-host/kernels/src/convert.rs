//! Conversions between element types, one value at a time.
//!
//! The conversions follow C, with two choices where C leaves the result undefined. A float that does
//! not fit a 32-bit or 64-bit integer saturates, and one that does not fit a narrower integer wraps. A
//! negative float is converted to unsigned through the signed type, as on x86 processors.

use super::number::{Convert, Truth, for_each};
use super::saturate::Saturate;
use hal::dtype::narrow::Narrow;
use hal::{Complex, Element as _};

/// Implements [`Convert`] for `$target`. `$integer` converts an integer, or a byte that is 0 or 1. `$narrow`,
/// `$single` and `$double` convert floating-point types. `$complex` converts the parts of a double-precision
/// complex number, which represents single-precision ones exactly.
macro_rules! convert {
    ($target:ty, $own:ident, |$i:ident| $integer:expr, |$n:ident| $narrow:expr,
     |$s:ident| $single:expr, |$d:ident| $double:expr,
     |$c:ident| $complex:expr) => {
        impl Convert for $target {
            convert!(@integers |$i| $integer; from_i8 i8, from_i16 i16, from_i32 i32,
                from_i64 i64, from_u8 u8, from_u16 u16, from_u32 u32, from_u64 u64);
            #[inline(always)]
            fn from_truth(value: Truth) -> Self {
                let $i = u8::from(value.get());
                $integer
            }
            #[inline(always)]
            fn from_narrow<N: Narrow>($n: N) -> Self {
                $narrow
            }
            #[inline(always)]
            fn from_f32($s: f32) -> Self {
                $single
            }
            #[inline(always)]
            fn from_f64($d: f64) -> Self {
                $double
            }
            #[inline(always)]
            fn from_c32(value: Complex<f32>) -> Self {
                Self::from_c64(Complex::new(value.re as f64, value.im as f64))
            }
            #[inline(always)]
            fn from_c64($c: Complex<f64>) -> Self {
                $complex
            }
            #[inline(always)]
            fn convert<D: Convert>(self) -> D {
                D::$own(self)
            }
        }
    };
    (@integers |$i:ident| $integer:expr; $($name:ident $source:ty),*) => {
        $(
            #[inline(always)]
            fn $name($i: $source) -> Self {
                $integer
            }
        )*
    };
}

/// Integers: a float is converted to `$through` and then wraps.
macro_rules! to_integer {
    ($($target:ty, $own:ident, $through:ty;)*) => {
        $(convert!($target, $own, |i| i as $target,
            |n| Saturate::<$through>::saturate(n.widen()) as $target,
            |s| Saturate::<$through>::saturate(s) as $target,
            |d| Saturate::<$through>::saturate(d) as $target,
            |c| Saturate::<$through>::saturate(c.re) as $target);)*
    };
}

to_integer! {
    i8, from_i8, i32;
    i16, from_i16, i32;
    i32, from_i32, i32;
    i64, from_i64, i64;
    u8, from_u8, i32;
    u16, from_u16, i32;
    u32, from_u32, i64;
}

convert!(
    u64,
    from_u64,
    |i| i as u64,
    |n| Saturate::<u64>::saturate(n.widen()),
    |s| Saturate::<u64>::saturate(s),
    |d| Saturate::<u64>::saturate(d),
    |c| Saturate::<u64>::saturate(c.re)
);

/// Types stored in few bits: they are converted to each other through single precision, which represents all
/// of them. A conversion to the same type is the identity.
macro_rules! to_narrow {
    ([] $dtype:ident, $target:ty) => {
        convert!(
            $target,
            from_narrow,
            |i| Self::narrow(i as f32),
            |n| if N::DTYPE == Self::DTYPE {
                Self::of_bits(n.bits())
            } else {
                Self::narrow(n.widen())
            },
            |s| Self::narrow(s),
            |d| Self::narrow_double(d),
            |c| Self::narrow_double(c.re)
        );
    };
}
for_each!(narrow => to_narrow []);

convert!(f32, from_f32, |i| i as f32, |n| n.widen(), |s| s, |d| d as f32, |c| c.re as f32);
convert!(f64, from_f64, |i| i as f64, |n| n.widen() as f64, |s| s as f64, |d| d, |c| c.re);
convert!(
    Complex<f32>,
    from_c32,
    |i| Complex::new(i as f32, 0.0),
    |n| Complex::new(n.widen(), 0.0),
    |s| Complex::new(s, 0.0),
    |d| Complex::new(d as f32, 0.0),
    |c| Complex::new(c.re as f32, c.im as f32)
);
convert!(
    Complex<f64>,
    from_c64,
    |i| Complex::new(i as f64, 0.0),
    |n| Complex::new(n.widen() as f64, 0.0),
    |s| Complex::new(s as f64, 0.0),
    |d| Complex::new(d, 0.0),
    |c| c
);
convert!(
    Truth,
    from_truth,
    |i| Truth::new(i != 0),
    |n| Truth::new(n.widen() != 0.0),
    |s| Truth::new(s != 0.0),
    |d| Truth::new(d != 0.0),
    |c| Truth::new((c.re != 0.0) | (c.im != 0.0))
);
