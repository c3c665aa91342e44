//! Typed expressions: element-wise functions that are computed in one pass over memory.

use super::DeviceArray;
use super::elements::{Arithmetic, Bits, Inexact, Integer, Numeric, Real};
use super::functions::{self, BinaryOf, ReductionOf, UnaryOf};
use crate::{Expression, ExpressionArgument};
use hal::dtype::Element;
use hal::error::Result;
use hal::function::BinaryFunction;
use hal::scalar::Scalar;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

/// Element-wise functions of arrays of `T` that [`Lazy::eval`] computes together.
///
/// Operators also take arrays, numbers and other lazy values. The result is the same, to the last bit, as if the
/// operators were applied to arrays; no intermediate arrays are stored. The arrays are read by [`Lazy::eval`].
///
/// ```
/// use gpuarray::{DeviceArray, array::functions::{Sqrt, Sum}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::from_slice(&device, &[1.0f32, 4.0])?;
/// let y = DeviceArray::from_slice(&device, &[3.0f32, 5.0])?;
/// let z = (x.lazy() * &y + 2.0 * x.lazy()).eval()?;
/// assert_eq!(z.to_vec()?, [5.0, 28.0]);
/// let mut roots = z.copy()?;
/// (x.lazy().map(Sqrt) + &y).eval_into(&mut roots)?;
/// assert_eq!(roots.to_vec()?, [4.0, 7.0]);
/// assert_eq!((z.lazy() - &roots).reduce(Sum, None)?.item()?, 22.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is computed before `eval`"]
pub struct Lazy<'a, T: Element> {
    /// The first error is reported by `eval`.
    expression: Result<Expression>,
    arrays: PhantomData<&'a DeviceArray<T>>,
}

/// The right operand of an operator of a [`Lazy`]: another one, an array or a number.
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::{Lazy, LazyOperand}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn half<'a>(x: Lazy<'a, f32>, y: impl LazyOperand<'a, f32>) -> Result<DeviceArray<f32>> {
///     ((x + y) * 0.5).eval()
/// }
///
/// let x = DeviceArray::from_slice(&device, &[1.0f32, 2.0])?;
/// assert_eq!(half(x.lazy(), &x)?.to_vec()?, [1.0, 2.0]);
/// assert_eq!(half(x.lazy(), 3.0)?.to_vec()?, [2.0, 2.5]);
/// # Ok(())
/// # }
/// ```
pub trait LazyOperand<'a, T: Element> {
    /// Calls `combine` with the operand as an argument of an expression.
    ///
    /// # Errors
    /// The operand's errors, and the errors of `combine`.
    fn with(
        self,
        combine: impl FnOnce(ExpressionArgument<'_>) -> Result<Expression>,
    ) -> Result<Expression>;
}

impl<'a, T: Element> LazyOperand<'a, T> for Lazy<'a, T> {
    fn with(
        self,
        combine: impl FnOnce(ExpressionArgument<'_>) -> Result<Expression>,
    ) -> Result<Expression> {
        combine((&self.expression?).into())
    }
}

impl<'a, T: Element> LazyOperand<'a, T> for &'a DeviceArray<T> {
    fn with(
        self,
        combine: impl FnOnce(ExpressionArgument<'_>) -> Result<Expression>,
    ) -> Result<Expression> {
        combine(self.untyped().into())
    }
}

impl<'a, T: Element> LazyOperand<'a, T> for DeviceArray<T> {
    fn with(
        self,
        combine: impl FnOnce(ExpressionArgument<'_>) -> Result<Expression>,
    ) -> Result<Expression> {
        combine(self.untyped().into())
    }
}

impl<'a, T: Element> LazyOperand<'a, T> for T {
    fn with(
        self,
        combine: impl FnOnce(ExpressionArgument<'_>) -> Result<Expression>,
    ) -> Result<Expression> {
        combine(Scalar::new(self).into())
    }
}

impl<T: Element> DeviceArray<T> {
    /// Returns the elements as a value whose operators [`Lazy::eval`] computes together.
    pub fn lazy(&self) -> Lazy<'_, T> {
        Lazy::new(Ok(Expression::from(self.untyped())))
    }
}

impl<'a, T: Element> Lazy<'a, T> {
    fn new(expression: Result<Expression>) -> Self {
        Lazy { expression, arrays: PhantomData }
    }

    fn combined<V: Element>(
        self,
        function: BinaryFunction,
        other: impl LazyOperand<'a, T>,
    ) -> Lazy<'a, V> {
        Lazy::new(self.expression.and_then(|left| {
            other.with(|right| Expression::binary(function, (&left).into(), right))
        }))
    }

    /// Returns `function` of a number and each element.
    pub(super) fn after(self, number: T, function: BinaryFunction) -> Lazy<'a, T> {
        let number = Scalar::new(number).into();
        let combine = |it: Expression| Expression::binary(function, number, (&it).into());
        Lazy::new(self.expression.and_then(combine))
    }

    /// Applies a function to each element.
    pub fn map<F: UnaryOf<T>>(self, _: F) -> Lazy<'a, F::Value> {
        let applied = |it: Expression| Expression::unary(F::FUNCTION, (&it).into());
        Lazy::new(self.expression.and_then(applied))
    }

    /// Applies a function to each element and the corresponding one of `other`.
    pub fn zip<F: BinaryOf<T>>(self, _: F, other: impl LazyOperand<'a, T>) -> Lazy<'a, F::Value> {
        self.combined(F::FUNCTION, other)
    }

    /// Converts the elements to another type.
    pub fn cast<U: Element>(self) -> Lazy<'a, U> {
        let cast = |it: Expression| Expression::cast((&it).into(), U::DTYPE);
        Lazy::new(self.expression.and_then(cast))
    }

    /// Computes the elements, in a new array.
    ///
    /// # Errors
    /// `InvalidArgument` for shapes that do not fit and arrays of different devices; `OutOfMemory`.
    pub fn eval(self) -> Result<DeviceArray<T>> {
        DeviceArray::from_untyped(self.expression?.into_array()?)
    }

    /// Combines the elements along `axes`, or all of them, as [`DeviceArray::reduce`] does, without memory for the
    /// elements: `(x.lazy() * &y).reduce(Sum, None)`.
    ///
    /// # Errors
    /// As for [`Lazy::eval`] and [`Array::reduce`](crate::Array::reduce).
    pub fn reduce<F: ReductionOf<T>>(
        self,
        _: F,
        axes: Option<&[isize]>,
    ) -> Result<DeviceArray<F::Value>> {
        let reduced = self.expression?.reduce(F::REDUCTION, T::DTYPE, axes, false)?;
        DeviceArray::from_untyped(reduced)
    }

    /// Computes the elements and stores them in an array. They are broadcast to its shape.
    ///
    /// # Errors
    /// As for [`Lazy::eval`].
    pub fn eval_into(self, target: &mut DeviceArray<T>) -> Result<()> {
        self.expression?.evaluate_into(target.untyped())
    }
}

impl<T: Arithmetic> Lazy<'_, T> {
    /// Computes the mean of the elements along `axes`, or of all, as [`DeviceArray::mean_along`] does, without memory
    /// for the elements.
    ///
    /// # Errors
    /// As for [`Lazy::reduce`].
    pub fn mean(self, axes: Option<&[isize]>) -> Result<DeviceArray<T::Mean>> {
        DeviceArray::from_untyped(self.expression?.mean(None, axes, false)?)
    }
}

impl<'a> Lazy<'a, bool> {
    /// Returns `then` where the elements are true, and `otherwise` elsewhere.
    pub fn select<T: Element>(
        self,
        then: Lazy<'a, T>,
        otherwise: impl LazyOperand<'a, T>,
    ) -> Lazy<'a, T> {
        Lazy::new(self.expression.and_then(|criterion| {
            let then = then.expression?;
            otherwise.with(|otherwise| {
                Expression::select((&criterion).into(), (&then).into(), otherwise, false)
            })
        }))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $function:ident $bound:ident;)*) => {$(
        impl<'a, T: $bound, R: LazyOperand<'a, T>> $trait<R> for Lazy<'a, T> {
            type Output = Lazy<'a, T>;

            fn $method(self, other: R) -> Self::Output {
                self.combined(<functions::$function as BinaryOf<T>>::FUNCTION, other)
            }
        }

        impl<'a, T: $bound> $trait<Lazy<'a, T>> for &'a DeviceArray<T> {
            type Output = Lazy<'a, T>;

            fn $method(self, other: Lazy<'a, T>) -> Self::Output {
                self.lazy().$method(other)
            }
        }
    )*};
}

operators! {
    Add add Add Arithmetic;
    Sub sub Subtract Numeric;
    Mul mul Multiply Arithmetic;
    Div div Divide Inexact;
    Rem rem Remainder Real;
    BitAnd bitand BitwiseAnd Bits;
    BitOr bitor BitwiseOr Bits;
    BitXor bitxor BitwiseXor Bits;
    Shl shl LeftShift Integer;
    Shr shr RightShift Integer;
}

impl<'a, T: Numeric> Neg for Lazy<'a, T> {
    type Output = Lazy<'a, T>;

    fn neg(self) -> Self::Output {
        self.map(functions::Negative)
    }
}

impl<'a, T: Bits> Not for Lazy<'a, T> {
    type Output = Lazy<'a, T>;

    fn not(self) -> Self::Output {
        self.map(functions::Invert)
    }
}
