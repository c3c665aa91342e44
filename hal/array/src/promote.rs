//! Types of operations, determined from their arguments.

use super::Array;
use hal::dtype::{DType, Kind};
use hal::error::{Error, Result};
use hal::scalar::Scalar;
use hal::{Complex, ErrorKind, Status};
use std::fmt;

/// A number as a program writes it: its type has a kind but not a size. It takes the type of the array that it is
/// combined with (numpy's rule since 2.0).
///
/// Only a number of a wider kind changes the type, here a float with integers:
///
/// ```
/// use gpuarray::{Array, DType, DeviceArray, Number, function::BinaryFunction};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::from_slice(&device, &[1i8, 2])?.into_untyped();
/// let with = |number: Number| Array::binary(BinaryFunction::Add, (&x).into(), number.into());
/// assert_eq!(with(Number::Integer(1))?.dtype(), DType::Int8);
/// assert_eq!(with(Number::Float(0.5))?.dtype(), DType::Float64);
/// assert!(with(Number::Integer(1000)).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// The float nearest to a whole number outside the range of `i128`. Infinity represents a number larger than all
    /// finite floats.
    Huge(f64),
    /// A number with a fraction.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(value) => write!(f, "{value}"),
            Number::Integer(value) => write!(f, "{value}"),
            Number::Huge(value) if value.is_infinite() => f.write_str("of more than 308 digits"),
            Number::Huge(value) => write!(f, "near {value:e}"),
            Number::Float(value) => write!(f, "{value:?}"),
            Number::Complex(value) => write!(f, "({value})"),
        }
    }
}

impl Number {
    /// Returns the kind of the number: boolean, integer, floating-point or complex.
    pub fn kind(self) -> Kind {
        match self {
            Number::Bool(_) => Kind::Bool,
            Number::Integer(_) | Number::Huge(_) => Kind::Signed,
            Number::Float(_) => Kind::Float,
            Number::Complex(_) => Kind::Complex,
        }
    }

    /// Returns the number as an element of `dtype`.
    ///
    /// # Errors
    /// `Overflow` for a whole number outside an integer type, or beyond all finite floats; `InvalidType` for a record,
    /// for a complex number and a real type, and for a fraction and an integer type.
    pub fn to_scalar(self, dtype: DType) -> Result<Scalar> {
        let refused = || {
            Err(Error::invalid_type(
                "scalar",
                format!("{self} cannot become an element of {dtype}"),
            ))
        };
        match (self, dtype.kind()) {
            (_, Kind::Opaque) => refused(),
            (Number::Bool(value), _) => Scalar::new(value).cast(dtype),
            (Number::Integer(value), Kind::Bool) => Ok(Scalar::new(value != 0)),
            (Number::Huge(value), kind) => {
                let is_float = matches!(kind, Kind::Float | Kind::Complex);
                if is_float && value.is_finite() {
                    return Scalar::new(value).cast(dtype);
                }
                Err(Error::overflow("scalar", format!("integer {self} out of bounds for {dtype}")))
            }
            (Number::Integer(value), Kind::Signed | Kind::Unsigned) => {
                let bits = 8 * dtype.size() as u32;
                let (low, high) = match dtype.kind() {
                    Kind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                    _ => (0, (1i128 << bits) - 1),
                };
                if !(low..=high).contains(&value) {
                    return Err(Error::overflow(
                        "scalar",
                        format!("integer {value} out of bounds for {dtype} ({low} to {high})"),
                    ));
                }
                if value < 0 {
                    Scalar::new(value as i64).cast(dtype)
                } else {
                    Scalar::new(value as u64).cast(dtype)
                }
            }
            (Number::Integer(value), _) => Scalar::new(value as f64).cast(dtype),
            (Number::Float(value), Kind::Float | Kind::Complex) => Scalar::new(value).cast(dtype),
            (Number::Complex(value), Kind::Complex) => Scalar::new(value).cast(dtype),
            (Number::Float(_) | Number::Complex(_), _) => refused(),
        }
    }

    /// Returns the type of the number on its own, as in numpy.
    pub fn default_dtype(self) -> DType {
        match self {
            Number::Bool(_) => DType::Bool,
            Number::Integer(value) if i64::try_from(value).is_err() => DType::UInt64,
            Number::Integer(_) | Number::Huge(_) => DType::Int64,
            Number::Float(_) => DType::Float64,
            Number::Complex(_) => DType::Complex128,
        }
    }
}

/// An argument of an operation: an array, a typed scalar or an untyped number.
///
/// A scalar keeps its type in an operation with an array; a number takes the array's:
///
/// ```
/// use gpuarray::{Argument, Array, DType, DeviceArray, Number, Scalar, function::BinaryFunction};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::from_slice(&device, &[1.0f32])?.into_untyped();
/// let times = |by: Argument| Array::binary(BinaryFunction::Multiply, (&x).into(), by);
/// assert_eq!(times(Scalar::new(2.0f64).into())?.dtype(), DType::Float64);
/// assert_eq!(times(Number::Float(2.0).into())?.dtype(), DType::Float32);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// Elements of an array.
    Array(&'a Array),
    /// A value with its own type.
    Scalar(Scalar),
    /// A number that takes the type of the arrays that it is combined with.
    Number(Number),
}

impl<'a> From<&'a Array> for Argument<'a> {
    fn from(array: &'a Array) -> Self {
        Argument::Array(array)
    }
}

impl From<Scalar> for Argument<'_> {
    fn from(scalar: Scalar) -> Self {
        Argument::Scalar(scalar)
    }
}

impl From<Number> for Argument<'_> {
    fn from(number: Number) -> Self {
        Argument::Number(number)
    }
}

/// A value that is the same for all elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Constant {
    Scalar(Scalar),
    Number(Number),
}

/// The properties of an argument that the types of an operation depend on.
pub(super) trait Typed: Copy + From<Scalar> + From<Number> {
    /// Returns the type of the argument; `None` for a number.
    fn dtype(&self) -> Option<DType>;

    /// Returns the value of an argument that is the same for all elements.
    fn constant(&self) -> Option<Constant>;
}

impl Typed for Argument<'_> {
    #[inline]
    fn dtype(&self) -> Option<DType> {
        match self {
            Argument::Array(array) => Some(array.dtype()),
            Argument::Scalar(scalar) => Some(scalar.dtype()),
            Argument::Number(_) => None,
        }
    }

    #[inline]
    fn constant(&self) -> Option<Constant> {
        match self {
            Argument::Array(_) => None,
            Argument::Scalar(scalar) => Some(Constant::Scalar(*scalar)),
            Argument::Number(number) => Some(Constant::Number(*number)),
        }
    }
}

/// Returns the common type of arguments, by numpy's rules.
///
/// # Errors
/// `InvalidType` if no common type exists.
pub(super) fn common_dtype<A: Typed>(arguments: &[A]) -> Result<DType> {
    let mut common: Option<DType> = None;
    for dtype in arguments.iter().filter_map(A::dtype) {
        common = Some(match common {
            None => dtype,
            Some(so_far) => so_far.promote(dtype)?,
        });
    }
    for argument in arguments {
        if let Some(Constant::Number(number)) = argument.constant() {
            common = Some(match common {
                None => number.default_dtype(),
                Some(so_far) => so_far.promote_python(number.kind()),
            });
        }
    }
    common.ok_or_else(|| {
        Error::invalid("promote", "arguments is empty; a common type needs at least one")
    })
}

/// Checks that storing values of type `from` in an array of `to` loses at most precision (numpy's casting rule
/// `same_kind`).
///
/// # Errors
/// `InvalidType` that names both types.
pub(super) fn check_same_kind(from: DType, to: DType) -> Result<()> {
    let allowed = from == to
        || match (from.kind(), to.kind()) {
            (Kind::Opaque, _) | (_, Kind::Opaque) => false,
            (Kind::Signed, Kind::Unsigned) => false,
            (a, b) => a <= b,
        };
    if allowed {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidType,
        Status::host(Status::INVALID_VALUE),
        "elementwise",
        format!(
            "cannot cast the result from {from} to {to}, the dtype of the output (numpy's rule \
             'same_kind')"
        ),
    ))
}
