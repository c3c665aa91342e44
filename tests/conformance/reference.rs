//! Reference implementations in plain Rust of array operations, one element at a time.

use gpuarray::array::Arithmetic;
use gpuarray::{Complex, bf16, f16};

/// The arithmetic of an element type, by the rules that operations promise.
pub(crate) trait Reference: Arithmetic {
    /// Returns a value for position `index`: small, including zero, and of both signs if the type
    /// is signed.
    fn sample(index: usize) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Returns true if the values agree within the type's rounding error.
    fn near(self, other: Self) -> bool;
    /// Returns the real and imaginary parts, which define the order of elements.
    fn parts(self) -> (f64, f64);
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Reference for $type {
            fn sample(index: usize) -> Self {
                ((index * 37 + 11) % 251) as $type
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn near(self, other: Self) -> bool {
                self == other
            }
            fn parts(self) -> (f64, f64) {
                (self as f64, 0.0)
            }
        })*
    };
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($type:ty, $tolerance:literal, $from:expr, $to:expr;)*) => {
        $(impl Reference for $type {
            fn sample(index: usize) -> Self {
                $from(((index * 37 + 11) % 41) as f64 / 8.0 - 2.0)
            }
            fn plus(self, other: Self) -> Self {
                $from($to(self) + $to(other))
            }
            fn times(self, other: Self) -> Self {
                $from($to(self) * $to(other))
            }
            fn near(self, other: Self) -> bool {
                let (a, b): (f64, f64) = ($to(self), $to(other));
                a == b || (a.is_nan() && b.is_nan())
                    || (a - b).abs() <= $tolerance * a.abs().max(b.abs()).max(1.0)
            }
            fn parts(self) -> (f64, f64) {
                ($to(self), 0.0)
            }
        })*
    };
}
floats! {
    f16, 2e-3, f16::from_f64, f16::to_f64;
    bf16, 1.6e-2, bf16::from_f64, bf16::to_f64;
    f32, 1e-6, |x: f64| x as f32, f64::from;
    f64, 1e-14, |x: f64| x, |x: f64| x;
}

macro_rules! complexes {
    ($($part:ty),*) => {
        $(impl Reference for Complex<$part> {
            fn sample(index: usize) -> Self {
                Complex::new(Reference::sample(index), Reference::sample(3 * index + 1))
            }
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn near(self, other: Self) -> bool {
                self.re.near(other.re) && self.im.near(other.im)
            }
            fn parts(self) -> (f64, f64) {
                (self.re.into(), self.im.into())
            }
        })*
    };
}
complexes!(f32, f64);

impl Reference for bool {
    fn sample(index: usize) -> Self {
        index % 3 == 1
    }
    fn plus(self, other: Self) -> Self {
        self | other
    }
    fn times(self, other: Self) -> Self {
        self & other
    }
    fn near(self, other: Self) -> bool {
        self == other
    }
    fn parts(self) -> (f64, f64) {
        (f64::from(u8::from(self)), 0.0)
    }
}

/// Calls a generic function for every element type, or only for those that `Context::takes`
/// selects. `first` is the number of the first type.
macro_rules! for_every_type {
    ($function:ident($($argument:expr),*)) => {
        hal::dtypes!(for_every_type @rows (|_| true, 0) $function [$($argument),*])
    };
    ($context:ident from $first:literal, $function:ident($($argument:expr),*)) => {
        hal::dtypes!(
            for_every_type @rows (|number| $context.takes(number), $first) $function [$($argument),*]
        )
    };
    (@rows ($takes:expr, $first:literal) $function:ident $arguments:tt $(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {{
        let takes = $takes;
        let mut number: usize = $first;
        $(
            if takes(number) {
                for_every_type!(@call $function $arguments $rust);
            }
            number += 1;
        )*
        let _ = number;
    }};
    (@call $function:ident [$($argument:expr),*] $rust:ty) => {
        $function::<$rust>($($argument),*)?
    };
}
pub(crate) use for_every_type;

/// Returns `count` samples, starting at position `start`.
pub(crate) fn samples<T: Reference>(start: usize, count: usize) -> Vec<T> {
    (start..start + count).map(T::sample).collect()
}

/// Checks that two slices agree within rounding errors.
#[track_caller]
pub(crate) fn assert_near<T: Reference>(found: &[T], expected: &[T]) {
    assert_eq!(found.len(), expected.len());
    for (index, (&a, &b)) in found.iter().zip(expected).enumerate() {
        assert!(a.near(b), "element {index} of {:?} is {a:?}, expected {b:?}", T::DTYPE);
    }
}
