//! Which element types have which functions.

use crate::dtype::Element;
use crate::{Complex, f16};

mod sealed {
    /// The element types of this library.
    pub trait Known {}
}
use sealed::Known;

/// Truth values and numbers: every element type but records.
pub trait Arithmetic: Element + Known {
    /// The type of the real parts; of a real type the type itself.
    type Real: Arithmetic;
}

/// Numbers: every element type but truth values and records.
pub trait Numeric: Arithmetic {}

/// Integers and floating-point numbers.
pub trait Real: Numeric {}

/// Integers.
pub trait Integer: Real + Bits {}

/// Truth values and integers, which have single bits.
pub trait Bits: Arithmetic {}

/// Floating-point and complex numbers.
pub trait Inexact: Numeric {}

/// Floating-point numbers.
pub trait Float: Real + Inexact {}

macro_rules! elements {
    ($($element:ty: $real:ty, $($trait:ident)*;)*) => {$(
        impl Known for $element {}
        impl Arithmetic for $element {
            type Real = $real;
        }
        $(impl $trait for $element {})*
    )*};
}

elements! {
    bool: bool, Bits;
    i8: i8, Numeric Real Integer Bits;
    i16: i16, Numeric Real Integer Bits;
    i32: i32, Numeric Real Integer Bits;
    i64: i64, Numeric Real Integer Bits;
    u8: u8, Numeric Real Integer Bits;
    u16: u16, Numeric Real Integer Bits;
    u32: u32, Numeric Real Integer Bits;
    u64: u64, Numeric Real Integer Bits;
    f16: f16, Numeric Real Inexact Float;
    f32: f32, Numeric Real Inexact Float;
    f64: f64, Numeric Real Inexact Float;
    Complex<f32>: f32, Numeric Inexact;
    Complex<f64>: f64, Numeric Inexact;
}
