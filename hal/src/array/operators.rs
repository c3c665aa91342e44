//! Arithmetic operators for typed arrays. They give a `Result`, because memory can run out
//! and shapes can disagree: `let c = (&a + &b)?;`.

use super::{Array, DeviceArray, Inexact};
use crate::dtype::Element;
use crate::error::Result;
use crate::function::{BinaryFunction, UnaryFunction};
use crate::scalar::Scalar;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

macro_rules! operators {
    ($($trait:ident, $method:ident, $function:ident, $bound:ident;)*) => {
        $(
            impl<T: $bound> $trait<&DeviceArray<T>> for &DeviceArray<T> {
                type Output = Result<DeviceArray<T>>;

                fn $method(self, other: &DeviceArray<T>) -> Self::Output {
                    let (a, b) = (self.untyped(), other.untyped());
                    DeviceArray::from_untyped(Array::binary(BinaryFunction::$function, a.into(), b.into())?)
                }
            }

            impl<T: $bound> $trait<T> for &DeviceArray<T> {
                type Output = Result<DeviceArray<T>>;

                fn $method(self, other: T) -> Self::Output {
                    let (a, b) = (self.untyped(), Scalar::new(other));
                    DeviceArray::from_untyped(Array::binary(BinaryFunction::$function, a.into(), b.into())?)
                }
            }
        )*
    };
}

operators! {
    Add, add, Add, Element;
    Sub, sub, Subtract, Element;
    Mul, mul, Multiply, Element;
    Div, div, Divide, Inexact;
    Rem, rem, Remainder, Element;
}

impl<T: Element> Neg for &DeviceArray<T> {
    type Output = Result<DeviceArray<T>>;

    fn neg(self) -> Self::Output {
        DeviceArray::from_untyped(self.untyped().unary(UnaryFunction::Negative)?)
    }
}
