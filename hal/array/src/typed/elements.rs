//! Traits of element types: they say which functions a type supports.

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

/// Truth values and numbers: every element type except records.
///
/// The library implements this trait, and the traits that extend it, for the types that support each function;
/// programs cannot implement them. The traits are bounds: of the methods of [`DeviceArray`](crate::DeviceArray),
/// and of a program's own generic functions.
///
/// The mean of any array, in a type with fractions:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Arithmetic};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn mean_of_rows<T: Arithmetic>(table: &DeviceArray<T>) -> Result<Vec<T::Mean>> {
///     table.mean_along(&[1])?.to_vec()
/// }
/// let table = DeviceArray::from_shaped(&device, &[2, 2], &[1i32, 2, 3, 5])?;
/// assert_eq!(mean_of_rows(&table)?, [1.5, 4.0]);
/// # Ok(())
/// # }
/// ```
pub trait Arithmetic: Element + Known {
    /// The type of the real parts; for a real type, the type itself.
    type Real: Arithmetic;
    /// The type of means: for an inexact type, the type itself, else `f64`.
    type Mean: Inexact;
}

/// Numbers: every element type except truth values and records. Implemented and used like [`Arithmetic`].
///
/// Differences of neighbours are not defined for truth values:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Numeric, s};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn differences<T: Numeric>(x: &DeviceArray<T>) -> Result<DeviceArray<T>> {
///     x.index(&s![1..])? - x.index(&s![..-1])?
/// }
/// let x = DeviceArray::from_slice(&device, &[1u16, 4, 9])?;
/// assert_eq!(differences(&x)?.to_vec()?, [3, 5]);
/// # Ok(())
/// # }
/// ```
pub trait Numeric: Arithmetic {}

/// Types with an order: integers and floating-point numbers. Implemented and used like [`Arithmetic`].
///
/// The range of the values of an array:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Real};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn range<T: Real>(x: &DeviceArray<T>) -> Result<(T, T)> {
///     Ok((x.min()?, x.max()?))
/// }
/// assert_eq!(range(&DeviceArray::from_slice(&device, &[3i64, -1, 2])?)?, (-1, 3));
/// # Ok(())
/// # }
/// ```
pub trait Real: Numeric {}

/// Integers. Implemented and used like [`Arithmetic`].
///
/// Indices may be of any integer type:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Integer};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn first<I: Integer>(names: &DeviceArray<u8>, indices: &DeviceArray<I>) -> Result<u8> {
///     Ok(names.take(indices, 0)?.to_vec()?[0])
/// }
/// let names = DeviceArray::from_slice(&device, b"abc")?;
/// assert_eq!(first(&names, &DeviceArray::from_slice(&device, &[2u16])?)?, b'c');
/// # Ok(())
/// # }
/// ```
pub trait Integer: Real + Bits {}

/// Types with bitwise operations: truth values and integers. Implemented and used like [`Arithmetic`].
///
/// One function for masks and for sets of flags:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Bits};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn without<T: Bits>(x: &DeviceArray<T>, flags: &DeviceArray<T>) -> Result<DeviceArray<T>> {
///     x & (!flags)?
/// }
/// let flags = DeviceArray::from_slice(&device, &[0b100u8])?;
/// assert_eq!(without(&DeviceArray::from_slice(&device, &[0b101u8])?, &flags)?.item()?, 0b001);
/// # Ok(())
/// # }
/// ```
pub trait Bits: Arithmetic {}

/// Floating-point and complex numbers. Implemented and used like [`Arithmetic`].
///
/// A quotient with a fraction, of real or complex numbers:
///
/// ```
/// use gpuarray::{Complex, DeviceArray, Inexact, Result};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn halves<T: Inexact>(x: &DeviceArray<T>) -> Result<DeviceArray<T>> {
///     let twice = (x + x)?;
///     x * (x / twice)?
/// }
/// let x = DeviceArray::from_slice(&device, &[Complex::new(2.0f32, 6.0)])?;
/// assert_eq!(halves(&x)?.item()?, Complex::new(1.0, 3.0));
/// # Ok(())
/// # }
/// ```
pub trait Inexact: Numeric {}

/// Floating-point numbers. Implemented and used like [`Arithmetic`].
///
/// Rounding to whole numbers is not defined for integers and complex numbers:
///
/// ```
/// use gpuarray::{DeviceArray, Result, array::Float};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn fraction<T: Float>(x: &DeviceArray<T>) -> Result<DeviceArray<T>> {
///     x - x.floor()?
/// }
/// assert_eq!(fraction(&DeviceArray::from_slice(&device, &[2.25f64])?)?.item()?, 0.25);
/// # Ok(())
/// # }
/// ```
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
