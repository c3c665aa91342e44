//! Which element types have which functions.

use hal::dtype::Element;
use hal::{Complex, dtypes};

mod sealed {
    /// The element types of this library.
    pub trait Known {}

    /// Complex numbers.
    pub trait Parts {
        /// The type of both parts.
        type Part;
    }
}
use sealed::{Known, Parts};

/// Truth values and numbers: every element type but records.
pub trait Arithmetic: Element + Known {
    /// The type of the real parts; of a real type the type itself.
    type Real: Arithmetic;
    /// The type of means: of an inexact type the type itself, else `f64`.
    type Mean: Inexact;
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

impl<T> Parts for Complex<T> {
    type Part = T;
}

/// Implements the traits for the rows of the table of dtypes, by their kinds.
macro_rules! elements {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        $(elements!(@ $kind $rust);)*
    };
    (@ Bool $element:ty) => { elements!(@ $element, $element, f64: Bits); };
    (@ Signed $element:ty) => { elements!(@ $element, $element, f64: Numeric Real Integer Bits); };
    (@ Unsigned $element:ty) => { elements!(@ $element, $element, f64: Numeric Real Integer Bits); };
    (@ Float $element:ty) => { elements!(@ $element, $element, $element: Numeric Real Inexact Float); };
    (@ Complex $element:ty) => {
        elements!(@ $element, <$element as Parts>::Part, $element: Numeric Inexact);
    };
    (@ $element:ty, $real:ty, $mean:ty: $($trait:ident)*) => {
        impl Known for $element {}
        impl Arithmetic for $element {
            type Real = $real;
            type Mean = $mean;
        }
        $(impl $trait for $element {})*
    };
}
dtypes!(elements);
