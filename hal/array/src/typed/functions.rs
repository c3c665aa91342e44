//! The functions of typed arrays. Each function is a type. For each element type that supports the
//! function, this type implements a trait that names the type of the result.
//!
//! ```
//! use gpuarray::DeviceArray;
//! use gpuarray::array::functions::{Any, IsNan, Less, Sum};
//!
//! # fn main() -> gpuarray::Result<()> {
//! # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
//! let samples = DeviceArray::from_slice(&device, &[1.0f32, f32::NAN, 3.0])?;
//! let missing: DeviceArray<bool> = samples.map(IsNan)?;
//! assert!(missing.reduce(Any, None)?.item()?);
//! // The same function as a method.
//! let limits = DeviceArray::from_slice(&device, &[2.0f32, 2.0, 2.0])?;
//! assert_eq!(samples.zip(Less, &limits)?.to_vec()?, samples.less(&limits)?.to_vec()?);
//! assert_eq!(limits.scan(Sum, 0)?.to_vec()?, [2.0, 4.0, 6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A function does not compile for an element type that lacks it:
//!
//! ```compile_fail,E0277
//! # use gpuarray::{DeviceArray, Result, array::functions::Invert};
//! fn inverted(array: &DeviceArray<f32>) -> Result<DeviceArray<f32>> {
//!     array.map(Invert)
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use gpuarray::{DeviceArray, Result, array::functions::Floor};
//! # use gpuarray::Complex;
//! fn floor(array: &DeviceArray<Complex<f32>>) -> Result<DeviceArray<Complex<f32>>> {
//!     array.map(Floor)
//! }
//! ```
//!
//! A result of the wrong type does not compile either:
//!
//! ```compile_fail,E0308
//! # use gpuarray::{DeviceArray, Result, array::functions::Less};
//! fn compared(a: &DeviceArray<f32>, b: &DeviceArray<f32>) -> Result<DeviceArray<f32>> {
//!     a.zip(Less, b)
//! }
//! ```
//!
//! ```compile_fail,E0271
//! # use gpuarray::{DeviceArray, Result, array::functions::Less};
//! fn stored(a: &mut DeviceArray<f32>, b: &DeviceArray<f32>) -> Result<()> {
//!     a.update(Less, b)
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use gpuarray::{DeviceArray, Result, array::functions::Any};
//! fn running(array: &DeviceArray<f32>) -> Result<DeviceArray<f32>> {
//!     array.scan(Any, 0)
//! }
//! ```

use super::DeviceArray;
use super::elements::{Arithmetic, Bits, Float, Inexact, Integer, Numeric, Real as RealNumber};
use hal::dtype::Element;
use hal::error::Result;
use hal::function::{BinaryFunction, Reduction, UnaryFunction};

/// A function of one element, defined for elements of type `T`.
pub trait UnaryOf<T: Element> {
    /// The function.
    const FUNCTION: UnaryFunction;
    /// The type of its value.
    type Value: Element;
}

/// A function of two elements, defined for elements of type `T`.
pub trait BinaryOf<T: Element> {
    /// The function.
    const FUNCTION: BinaryFunction;
    /// The type of its value.
    type Value: Element;
}

/// A way to combine elements of type `T` into one.
pub trait ReductionOf<T: Element> {
    /// The reduction.
    const REDUCTION: Reduction;
    /// The type of its value.
    type Value: Element;
}

/// A reduction that has a running form: the value after each element.
pub trait RunningOf<T: Element>: ReductionOf<T, Value = T> {}

macro_rules! unary {
    ($($function:ident $($method:ident)? ($bound:ident) -> $value:ty;)*) => {
        $(
            #[doc = concat!("[`UnaryFunction::", stringify!($function), "`] for typed arrays.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $function;

            impl<T: $bound> UnaryOf<T> for $function {
                const FUNCTION: UnaryFunction = UnaryFunction::$function;
                type Value = $value;
            }
        )*

        impl<T: Element> DeviceArray<T> {
            $($(
                #[doc = concat!(
                    "Computes [`UnaryFunction::", stringify!($function),
                    "`] of each element, in a new array."
                )]
                ///
                /// # Errors
                /// `OutOfMemory`.
                pub fn $method(&self) -> Result<DeviceArray<$value>>
                where
                    T: $bound,
                {
                    self.map($function)
                }
            )?)*
        }

        #[cfg(test)]
        const UNARY: &[(UnaryFunction, &str, &str)] =
            &[$((UnaryFunction::$function, stringify!($bound), stringify!($value))),*];
    };
}

unary! {
    Positive (Numeric) -> T;
    Negative (Numeric) -> T;
    Absolute abs (Arithmetic) -> T::Real;
    Sign sign (RealNumber) -> T;
    Conjugate conjugate (Numeric) -> T;
    Real real (Arithmetic) -> T::Real;
    Imaginary imaginary (Arithmetic) -> T::Real;
    LogicalNot logical_not (Arithmetic) -> bool;
    Invert (Bits) -> T;
    Sqrt sqrt (Inexact) -> T;
    Exp exp (Inexact) -> T;
    Log log (Inexact) -> T;
    Log2 log2 (Inexact) -> T;
    Log10 log10 (Inexact) -> T;
    Sin sin (Inexact) -> T;
    Cos cos (Inexact) -> T;
    Tan tan (Inexact) -> T;
    Asin asin (Inexact) -> T;
    Acos acos (Inexact) -> T;
    Atan atan (Inexact) -> T;
    Sinh sinh (Inexact) -> T;
    Cosh cosh (Inexact) -> T;
    Tanh tanh (Inexact) -> T;
    Floor floor (RealNumber) -> T;
    Ceil ceil (RealNumber) -> T;
    Trunc trunc (RealNumber) -> T;
    Fraction fraction (RealNumber) -> T;
    Rint rint (Inexact) -> T;
    Mantissa mantissa (Float) -> T;
    Exponent exponent (Float) -> T;
    IsNan is_nan (Arithmetic) -> bool;
    IsInfinite is_infinite (Arithmetic) -> bool;
    IsFinite is_finite (Arithmetic) -> bool;
    SignBit sign_bit (RealNumber) -> bool;
    Square square (Numeric) -> T;
    Reciprocal reciprocal (Numeric) -> T;
    Radians to_radians (Float) -> T;
    Degrees to_degrees (Float) -> T;
    Cbrt cbrt (Float) -> T;
    Exp2 exp2 (Inexact) -> T;
    Expm1 expm1 (Inexact) -> T;
    Log1p log1p (Inexact) -> T;
    Asinh asinh (Inexact) -> T;
    Acosh acosh (Inexact) -> T;
    Atanh atanh (Inexact) -> T;
    Erf erf (Float) -> T;
    Erfc erfc (Float) -> T;
    Gamma gamma (Float) -> T;
    LogGamma log_gamma (Float) -> T;
}

macro_rules! binary {
    ($($function:ident $($method:ident)? ($bound:ident) -> $value:ty;)*) => {
        $(
            #[doc = concat!("[`BinaryFunction::", stringify!($function), "`] for typed arrays.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $function;

            impl<T: $bound> BinaryOf<T> for $function {
                const FUNCTION: BinaryFunction = BinaryFunction::$function;
                type Value = $value;
            }
        )*

        impl<T: Element> DeviceArray<T> {
            $($(
                #[doc = concat!(
                    "Computes [`BinaryFunction::", stringify!($function),
                    "`] of corresponding elements, broadcast, in a new array."
                )]
                ///
                /// # Errors
                /// As for [`DeviceArray::zip`].
                pub fn $method(&self, other: &Self) -> Result<DeviceArray<$value>>
                where
                    T: $bound,
                {
                    self.zip($function, other)
                }
            )?)*
        }

        #[cfg(test)]
        const BINARY: &[(BinaryFunction, &str, &str)] =
            &[$((BinaryFunction::$function, stringify!($bound), stringify!($value))),*];
    };
}

binary! {
    Add (Arithmetic) -> T;
    Subtract (Numeric) -> T;
    Multiply (Arithmetic) -> T;
    Divide (Inexact) -> T;
    FloorDivide floor_divide (RealNumber) -> T;
    Remainder (RealNumber) -> T;
    Fmod fmod (RealNumber) -> T;
    Power power (Numeric) -> T;
    Minimum minimum (Arithmetic) -> T;
    Maximum maximum (Arithmetic) -> T;
    Ldexp ldexp (Float) -> T;
    Atan2 atan2 (Float) -> T;
    Hypot hypot (Float) -> T;
    CopySign copy_sign (Float) -> T;
    NextAfter next_after (Float) -> T;
    Heaviside heaviside (Float) -> T;
    LogAddExp log_add_exp (Float) -> T;
    LogAddExp2 log_add_exp2 (Float) -> T;
    Fmin fmin (Arithmetic) -> T;
    Fmax fmax (Arithmetic) -> T;
    Gcd gcd (Integer) -> T;
    Lcm lcm (Integer) -> T;
    LogicalAnd logical_and (Arithmetic) -> bool;
    LogicalOr logical_or (Arithmetic) -> bool;
    LogicalXor logical_xor (Arithmetic) -> bool;
    BitwiseAnd (Bits) -> T;
    BitwiseOr (Bits) -> T;
    BitwiseXor (Bits) -> T;
    LeftShift (Integer) -> T;
    RightShift (Integer) -> T;
    Equal equal (Arithmetic) -> bool;
    NotEqual not_equal (Arithmetic) -> bool;
    Less less (Arithmetic) -> bool;
    LessEqual less_equal (Arithmetic) -> bool;
    Greater greater (Arithmetic) -> bool;
    GreaterEqual greater_equal (Arithmetic) -> bool;
}

macro_rules! reductions {
    ($($reduction:ident $all:ident $along:ident -> $value:ty;)*) => {
        impl<T: Arithmetic> DeviceArray<T> {
            $(
                #[doc = concat!(
                    "Returns [`Reduction::", stringify!($reduction),
                    "`] of all elements. Waits for it."
                )]
                ///
                /// # Errors
                /// `InvalidArgument` for the smallest or largest of no elements; `OutOfMemory`; a
                /// failure of queued work.
                pub fn $all(&self) -> Result<$value> {
                    self.array.during(|| self.reduce($reduction, None)?.item())
                }

                #[doc = concat!(
                    "Computes [`Reduction::", stringify!($reduction),
                    "`] of the elements along `axes`, in a new array without those axes."
                )]
                ///
                /// # Errors
                /// As for [`Array::reduce`](crate::Array::reduce).
                pub fn $along(&self, axes: &[isize]) -> Result<DeviceArray<$value>> {
                    self.reduce($reduction, Some(axes))
                }
            )*
        }

        $(
            impl<T: Arithmetic> ReductionOf<T> for $reduction {
                const REDUCTION: Reduction = Reduction::$reduction;
                type Value = $value;
            }
        )*
    };
}

reductions! {
    Sum sum sum_along -> T;
    Product product product_along -> T;
    Minimum min min_along -> T;
    Maximum max max_along -> T;
    Any any any_along -> bool;
    All all all_along -> bool;
}

macro_rules! reduction_types {
    ($($reduction:ident)*) => {$(
        #[doc = concat!("[`Reduction::", stringify!($reduction), "`] for typed arrays.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $reduction;
    )*};
}

// `Minimum` and `Maximum` are also functions of two elements.
reduction_types! { Sum Product Any All }

impl<T: Arithmetic> RunningOf<T> for Sum {}
impl<T: Arithmetic> RunningOf<T> for Product {}
impl<T: Arithmetic> RunningOf<T> for Minimum {}
impl<T: Arithmetic> RunningOf<T> for Maximum {}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::dtype::{DType, Kind};

    /// Returns the element types that a bound allows.
    fn allowed(bound: &str) -> impl Iterator<Item = DType> {
        let kinds: &[Kind] = match bound {
            "Arithmetic" => &[Kind::Bool, Kind::Unsigned, Kind::Signed, Kind::Float, Kind::Complex],
            "Numeric" => &[Kind::Unsigned, Kind::Signed, Kind::Float, Kind::Complex],
            "RealNumber" => &[Kind::Unsigned, Kind::Signed, Kind::Float],
            "Integer" => &[Kind::Unsigned, Kind::Signed],
            "Bits" => &[Kind::Bool, Kind::Unsigned, Kind::Signed],
            "Inexact" => &[Kind::Float, Kind::Complex],
            "Float" => &[Kind::Float],
            other => panic!("no bound is {other}"),
        };
        DType::ALL.into_iter().filter(|dtype| kinds.contains(&dtype.kind()))
    }

    fn value(text: &str, dtype: DType) -> DType {
        match text.replace(' ', "").as_str() {
            "T" => dtype,
            "T::Real" => dtype.real(),
            "bool" => DType::Bool,
            other => panic!("no value is {other}"),
        }
    }

    #[test]
    fn what_compiles_has_a_value_of_the_type_stated() {
        for &(function, bound, text) in UNARY {
            for dtype in allowed(bound) {
                let result = function.signature(dtype).map(|signature| signature.result);
                assert_eq!(result.ok(), Some(value(text, dtype)), "{function:?} of {dtype}");
            }
        }
        for &(function, bound, text) in BINARY {
            for dtype in allowed(bound) {
                let result = function.signature(dtype).map(|signature| signature.result);
                assert_eq!(result.ok(), Some(value(text, dtype)), "{function:?} of {dtype}");
            }
        }
    }

    #[test]
    fn every_function_is_there() {
        let unary = UNARY.iter().map(|row| row.0).collect::<Vec<_>>();
        for function in UnaryFunction::ALL {
            let is_copy = function == UnaryFunction::Copy;
            assert!(is_copy || unary.contains(&function), "{function:?} is missing");
        }
        let binary = BINARY.iter().map(|row| row.0).collect::<Vec<_>>();
        for function in BinaryFunction::ALL {
            assert!(binary.contains(&function), "{function:?} is missing");
        }
    }
}
