//! Operators of typed arrays. They return a `Result`, because memory can run out and shapes can
//! disagree: `let c = (&a + &b)?;`.
//!
//! Operands are arrays or references to them, and numbers on either side. Rust's `a += b` cannot return an
//! error, so [`DeviceArray::add_assign`] and the similar updates are methods.
//!
//! ```
//! # use gpuarray::{DeviceArray, Result};
//! fn blend(a: &DeviceArray<f32>, b: DeviceArray<f32>) -> Result<DeviceArray<f32>> {
//!     let mut sum = ((2.0 * a)? + b)?;
//!     sum.mul_assign(0.5)?;
//!     1.0 - sum
//! }
//! ```
//!
//! An operator that an element type lacks does not compile:
//!
//! ```compile_fail,E0369
//! # use gpuarray::{DeviceArray, Result};
//! fn difference(a: &DeviceArray<bool>, b: &DeviceArray<bool>) -> Result<DeviceArray<bool>> {
//!     a - b
//! }
//! ```
//!
//! ```compile_fail,E0369
//! # use gpuarray::{DeviceArray, Result};
//! fn quotient(a: &DeviceArray<i32>, b: &DeviceArray<i32>) -> Result<DeviceArray<i32>> {
//!     a / b
//! }
//! ```
//!
//! ```compile_fail,E0600
//! # use gpuarray::{DeviceArray, Result};
//! fn inverted(a: &DeviceArray<f64>) -> Result<DeviceArray<f64>> {
//!     !a
//! }
//! ```

use super::elements::{Arithmetic, Bits, Inexact, Integer, Numeric, Real};
use super::functions::{self, BinaryOf};
use super::{DeviceArray, Lazy};
use crate::{Argument, Array};
use hal::dtype::Element;
use hal::dtypes;
use hal::error::Result;
use hal::scalar::Scalar;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

/// The right operand of an update of an array of `T`: a number, or a reference to another array, which is
/// then broadcast.
///
/// A program's function that accepts both, like `add_assign`:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Operand};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn shift<'a>(x: &mut DeviceArray<f32>, by: impl Operand<'a, f32>) -> Result<()> {
///     x.sub_assign(by)
/// }
///
/// let mut x = DeviceArray::from_slice(&device, &[5.0f32, 7.0])?;
/// let offsets = x.copy()?;
/// shift(&mut x, 1.0)?;
/// shift(&mut x, &offsets)?;
/// assert_eq!(x.to_vec()?, [-1.0, -1.0]);
/// # Ok(())
/// # }
/// ```
pub trait Operand<'a, T: Element> {
    /// Returns the operand as an argument for functions of untyped arrays.
    fn argument(self) -> Argument<'a>;
}

impl<'a, T: Element> Operand<'a, T> for &'a DeviceArray<T> {
    fn argument(self) -> Argument<'a> {
        self.untyped().into()
    }
}

impl<'a, T: Element> Operand<'a, T> for T {
    fn argument(self) -> Argument<'a> {
        Scalar::new(self).into()
    }
}

/// Returns `left` and `right` combined, in a new array.
fn combine<T: Element, F: BinaryOf<T>>(
    _: F,
    left: Argument<'_>,
    right: Argument<'_>,
) -> Result<DeviceArray<F::Value>> {
    DeviceArray::from_untyped(Array::binary(F::FUNCTION, left, right)?)
}

macro_rules! operator {
    (arrays $trait:ident $method:ident $function:ident $bound:ident, $left:ty, $right:ty) => {
        impl<T: $bound> $trait<$right> for $left {
            type Output = Result<DeviceArray<T>>;

            fn $method(self, other: $right) -> Self::Output {
                self.zip(functions::$function, &other)
            }
        }
    };
    (number $trait:ident $method:ident $function:ident $bound:ident, $left:ty) => {
        impl<T: $bound> $trait<T> for $left {
            type Output = Result<DeviceArray<T>>;

            fn $method(self, other: T) -> Self::Output {
                combine::<T, _>(
                    functions::$function,
                    self.untyped().into(),
                    Scalar::new(other).into(),
                )
            }
        }
    };
    (lazy $trait:ident $method:ident $function:ident, $number:ty) => {
        impl<'a> $trait<Lazy<'a, $number>> for $number {
            type Output = Lazy<'a, $number>;

            fn $method(self, other: Lazy<'a, $number>) -> Self::Output {
                other.after(self, <functions::$function as BinaryOf<$number>>::FUNCTION)
            }
        }
    };
    (reversed $trait:ident $method:ident $function:ident, $number:ty, $right:ty) => {
        impl $trait<$right> for $number {
            type Output = Result<DeviceArray<$number>>;

            fn $method(self, other: $right) -> Self::Output {
                combine::<$number, _>(
                    functions::$function,
                    Scalar::new(self).into(),
                    other.untyped().into(),
                )
            }
        }
    };
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $function:ident $bound:ident;)*) => {
        $(
            operator!(arrays $trait $method $function $bound, &DeviceArray<T>, &DeviceArray<T>);
            operator!(arrays $trait $method $function $bound, &DeviceArray<T>, DeviceArray<T>);
            operator!(arrays $trait $method $function $bound, DeviceArray<T>, &DeviceArray<T>);
            operator!(arrays $trait $method $function $bound, DeviceArray<T>, DeviceArray<T>);
            operator!(number $trait $method $function $bound, &DeviceArray<T>);
            operator!(number $trait $method $function $bound, DeviceArray<T>);
        )*

        impl<T: Element> DeviceArray<T> {
            $(
                #[doc = concat!(
                    "Stores [`", stringify!($function), "`](functions::", stringify!($function),
                    ") of each element and the corresponding one of `other`, an array or a number."
                )]
                ///
                /// # Errors
                /// `InvalidArgument` if an array's shape does not broadcast to this one's.
                pub fn $assign<'a>(&mut self, other: impl Operand<'a, T>) -> Result<()>
                where
                    T: $bound,
                {
                    let function = <functions::$function as BinaryOf<T>>::FUNCTION;
                    self.array.set_binary(function, self.untyped().into(), other.argument())
                }
            )*
        }
    };
}

operators! {
    Add add add_assign Add Arithmetic;
    Sub sub sub_assign Subtract Numeric;
    Mul mul mul_assign Multiply Arithmetic;
    Div div div_assign Divide Inexact;
    Rem rem rem_assign Remainder Real;
    BitAnd bitand bitand_assign BitwiseAnd Bits;
    BitOr bitor bitor_assign BitwiseOr Bits;
    BitXor bitxor bitxor_assign BitwiseXor Bits;
    Shl shl shl_assign LeftShift Integer;
    Shr shr shr_assign RightShift Integer;
}

/// Implements the operators of a number and an array for the rows of the table of dtypes, by their
/// kinds.
macro_rules! reversed {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        $(reversed!(@ $kind $rust);)*
    };
    (@ Bool $number:ty) => { reversed!(@arithmetic @bits $number); };
    (@ Signed $number:ty) => { reversed!(@arithmetic @numeric @real @bits @integer $number); };
    (@ Unsigned $number:ty) => { reversed!(@arithmetic @numeric @real @bits @integer $number); };
    (@ Float $number:ty) => { reversed!(@arithmetic @numeric @real @inexact $number); };
    (@ Complex $number:ty) => { reversed!(@arithmetic @numeric @inexact $number); };
    (@arithmetic $(@ $rest:ident)* $number:ty) => {
        reversed!(Add add Add, Mul mul Multiply; $number);
        reversed!($(@ $rest)* $number);
    };
    (@numeric $(@ $rest:ident)* $number:ty) => {
        reversed!(Sub sub Subtract; $number);
        reversed!($(@ $rest)* $number);
    };
    (@real $(@ $rest:ident)* $number:ty) => {
        reversed!(Rem rem Remainder; $number);
        reversed!($(@ $rest)* $number);
    };
    (@inexact $(@ $rest:ident)* $number:ty) => {
        reversed!(Div div Divide; $number);
        reversed!($(@ $rest)* $number);
    };
    (@bits $(@ $rest:ident)* $number:ty) => {
        reversed!(BitAnd bitand BitwiseAnd, BitOr bitor BitwiseOr, BitXor bitxor BitwiseXor; $number);
        reversed!($(@ $rest)* $number);
    };
    (@integer $(@ $rest:ident)* $number:ty) => {
        reversed!(Shl shl LeftShift, Shr shr RightShift; $number);
        reversed!($(@ $rest)* $number);
    };
    ($($trait:ident $method:ident $function:ident),+; $number:ty) => {
        $(
            operator!(reversed $trait $method $function, $number, &DeviceArray<$number>);
            operator!(reversed $trait $method $function, $number, DeviceArray<$number>);
            operator!(lazy $trait $method $function, $number);
        )+
    };
    ($number:ty) => {};
}
dtypes!(reversed);

macro_rules! prefixes {
    ($($trait:ident $method:ident $function:ident $bound:ident, $operand:ty;)*) => {$(
        impl<T: $bound> $trait for $operand {
            type Output = Result<DeviceArray<T>>;

            fn $method(self) -> Self::Output {
                self.map(functions::$function)
            }
        }
    )*};
}

prefixes! {
    Neg neg Negative Numeric, &DeviceArray<T>;
    Neg neg Negative Numeric, DeviceArray<T>;
    Not not Invert Bits, &DeviceArray<T>;
    Not not Invert Bits, DeviceArray<T>;
}
