//! Element types and numpy's promotion rules for them.
//!
//! Every type is one row of the table `dtypes`; names, sizes and Rust types come from it. A row reads
//!
//! ```text
//! /// What an element is.
//! Variant "numpy's name" Kind rust_type [zero, one]
//!     c("type in registers", "type in memory", "struct of its functions") Working Use;
//! ```
//!
//! `Working` is the dtype in which sums and products are kept until they are stored. `Use` says how often
//! programs calculate with the dtype: `Often`, `Sometimes` or `Seldom`. The CUDA C types are defined in
//! `codegen/src/source/cuda/types.cuh`. `EXTENSIONS` lists the dtypes that numpy lacks.

pub mod narrow;

use crate::error::{Error, Result};
use std::fmt;

/// The dtypes that a Python package outside numpy defines.
const EXTENSIONS: [(DType, Extension); 1] =
    [(DType::BFloat16, Extension { package: "ml_dtypes", dlpack_code: 4 })];

/// Calls the macro `$callback` with the tokens after it, then the rows of all dtypes that support arithmetic.
#[doc(hidden)]
#[macro_export]
macro_rules! dtypes {
    ($callback:ident $($given:tt)*) => {
        $callback! { $($given)*
            /// One byte, 0 or 1.
            Bool "bool" Bool bool [false, true] c("bool", "u8", "BoolFunctions") Bool Sometimes;
            /// Signed 8-bit integer.
            Int8 "int8" Signed i8 [0, 1] c("i8", "i8", "IntegerFunctions<i8>") Int8 Seldom;
            /// Signed 16-bit integer.
            Int16 "int16" Signed i16 [0, 1] c("i16", "i16", "IntegerFunctions<i16>") Int16 Seldom;
            /// Signed 32-bit integer.
            Int32 "int32" Signed i32 [0, 1] c("i32", "i32", "IntegerFunctions<i32>") Int32 Often;
            /// Signed 64-bit integer.
            Int64 "int64" Signed i64 [0, 1] c("i64", "i64", "IntegerFunctions<i64>") Int64 Often;
            /// Unsigned 8-bit integer.
            UInt8 "uint8" Unsigned u8 [0, 1] c("u8", "u8", "IntegerFunctions<u8>") UInt8 Sometimes;
            /// Unsigned 16-bit integer.
            UInt16 "uint16" Unsigned u16 [0, 1]
                c("u16", "u16", "IntegerFunctions<u16>") UInt16 Seldom;
            /// Unsigned 32-bit integer.
            UInt32 "uint32" Unsigned u32 [0, 1]
                c("u32", "u32", "IntegerFunctions<u32>") UInt32 Sometimes;
            /// Unsigned 64-bit integer.
            UInt64 "uint64" Unsigned u64 [0, 1]
                c("u64", "u64", "IntegerFunctions<u64>") UInt64 Seldom;
            /// IEEE 754 binary16.
            Float16 "float16" Float $crate::f16 [$crate::f16::ZERO, $crate::f16::ONE]
                c("f16", "f16", "NarrowFunctions<f16>") Float32 Seldom;
            /// bfloat16: the upper half of a `Float32`.
            BFloat16 "bfloat16" Float $crate::bf16 [$crate::bf16::ZERO, $crate::bf16::ONE]
                c("bf16", "bf16", "NarrowFunctions<bf16>") Float32 Seldom;
            /// IEEE 754 binary32.
            Float32 "float32" Float f32 [0.0, 1.0] c("f32", "f32", "RealFunctions<f32>") Float32 Often;
            /// IEEE 754 binary64.
            Float64 "float64" Float f64 [0.0, 1.0] c("f64", "f64", "RealFunctions<f64>") Float64 Often;
            /// Two `Float32`: real, imaginary.
            Complex64 "complex64" Complex $crate::Complex<f32>
                [$crate::Complex::new(0.0, 0.0), $crate::Complex::new(1.0, 0.0)]
                c("c64", "c64", "ComplexFunctions<f32>") Complex64 Sometimes;
            /// Two `Float64`: real, imaginary.
            Complex128 "complex128" Complex $crate::Complex<f64>
                [$crate::Complex::new(0.0, 0.0), $crate::Complex::new(1.0, 0.0)]
                c("c128", "c128", "ComplexFunctions<f64>") Complex128 Sometimes;
        }
    };
}

macro_rules! define {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        /// The element type of an array.
        ///
        /// The dtype of a result, by numpy's rules:
        ///
        /// ```
        /// use gpuarray::DType;
        ///
        /// # fn main() -> gpuarray::Result<()> {
        /// assert_eq!(DType::Int16.promote(DType::Float32)?, DType::Float32);
        /// assert_eq!(DType::Int32.promote(DType::Float32)?, DType::Float64);
        /// assert_eq!(DType::Complex64.real().size(), 4);
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DType {
            $($(#[doc = $doc])+ $variant,)*
            /// Records of the given size in bytes. They can be stored, copied, filled and viewed, but not calculated
            /// with (a structured numpy dtype, a CUDA vector type).
            Opaque(u32),
        }

        impl DType {
            /// Every type that supports arithmetic.
            pub const ALL: [DType; [$(DType::$variant),*].len()] = [$(DType::$variant),*];

            /// Returns the number of bytes per element.
            pub const fn size(self) -> usize {
                match self {
                    $(DType::$variant => size_of::<$rust>(),)*
                    DType::Opaque(bytes) => bytes as usize,
                }
            }

            /// Returns the kind of the type: boolean, integer, floating-point or complex.
            pub const fn kind(self) -> Kind {
                match self {
                    $(DType::$variant => Kind::$kind,)*
                    DType::Opaque(_) => Kind::Opaque,
                }
            }

            /// Returns numpy's name of the type, for example `float32`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)*
                    DType::Opaque(_) => "record",
                }
            }

            /// Returns the type in which sums and products are kept until they are stored: `Float32` for `Float16` and
            /// `BFloat16`, the type itself for all others.
            pub const fn working(self) -> DType {
                match self {
                    $(DType::$variant => DType::$working,)*
                    DType::Opaque(_) => self,
                }
            }
        }

        $(
            // SAFETY: the type has the representation that the dtype's documentation states.
            unsafe impl Element for $rust {
                const DTYPE: DType = DType::$variant;
                const ZERO: Self = $zero;
                const ONE: Self = $one;
            }
        )*
    };
}
dtypes!(define);

/// The source of a dtype that numpy lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The Python package that defines its numpy dtype, under the dtype's name.
    pub package: &'static str,
    /// DLPack's code for the kind of its elements.
    pub dlpack_code: u8,
}

/// The families of element types, in the order of promotion.
///
/// A check that serves a family of dtypes:
///
/// ```
/// use gpuarray::{DType, Kind};
///
/// # fn main() -> gpuarray::Result<()> {
/// let signed: Vec<_> = DType::ALL.into_iter().filter(|it| it.kind() == Kind::Signed).collect();
/// assert_eq!(signed, [DType::Int8, DType::Int16, DType::Int32, DType::Int64]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Truth values.
    Bool,
    /// Unsigned integers.
    Unsigned,
    /// Signed integers.
    Signed,
    /// Floating-point numbers.
    Float,
    /// Complex numbers.
    Complex,
    /// Bytes without arithmetic.
    Opaque,
}

impl DType {
    /// Returns the alignment in bytes that an element's address must have.
    #[inline]
    pub const fn alignment(self) -> usize {
        match self.kind() {
            Kind::Complex => self.size() / 2,
            Kind::Opaque => 1,
            _ => self.size(),
        }
    }

    /// Returns true for signed and unsigned integers (not for bool).
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns true for complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Returns true for floating-point and complex numbers.
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// Returns the real type of a complex type; any other type itself.
    pub const fn real(self) -> DType {
        match self {
            DType::Complex64 => DType::Float32,
            DType::Complex128 => DType::Float64,
            other => other,
        }
    }

    /// Returns the package and the DLPack code of a dtype that numpy lacks; `None` for numpy's own dtypes and for
    /// records.
    #[inline]
    pub fn extension(self) -> Option<Extension> {
        EXTENSIONS.iter().find(|(dtype, _)| *dtype == self).map(|(_, extension)| *extension)
    }

    /// Returns the type in which a function with fractional results computes for this type. By numpy's rule this is
    /// `Float16` for bool and 8-bit integers, `Float32` for 16-bit ones, `Float64` for wider ones, and the type itself
    /// for inexact types.
    pub const fn inexact(self) -> DType {
        match (self.kind(), self.size()) {
            (Kind::Float | Kind::Complex | Kind::Opaque, _) => self,
            (_, 1) => DType::Float16,
            (_, 2) => DType::Float32,
            _ => DType::Float64,
        }
    }

    /// Returns the type that both types convert to without loss, by numpy's table (`numpy.promote_types`). For
    /// `BFloat16`, the results are those of numpy with the package `ml_dtypes`: `Float32` with `Float16` and 16-bit
    /// integers, `Float64` with wider integers.
    ///
    /// # Errors
    /// `InvalidType` if either type is a record.
    pub fn promote(self, other: DType) -> Result<DType> {
        if self == other {
            return Ok(self);
        }
        let (low, high) = if self.kind() <= other.kind() { (self, other) } else { (other, self) };
        Ok(match high.kind() {
            Kind::Opaque => {
                return Err(Error::invalid_type(
                    "promote",
                    format!("dtypes {self} and {other} have no common type"),
                ));
            }
            // Neither of two types of the same size can hold the other.
            kind if kind == low.kind() && low.size() == high.size() => low.working(),
            kind if kind == low.kind() => {
                if low.size() > high.size() {
                    low
                } else {
                    high
                }
            }
            _ if low == DType::Bool => high,
            Kind::Signed => match (low.size(), high.size()) {
                (unsigned, signed) if unsigned < signed => high,
                (1, _) => DType::Int16,
                (2, _) => DType::Int32,
                (4, _) => DType::Int64,
                _ => DType::Float64,
            },
            Kind::Float => {
                let needed = low.inexact();
                if needed.size() > high.size() { needed } else { high }
            }
            _ => {
                let needed = if low.is_integer() { low.inexact() } else { low };
                if needed == DType::Float64 { DType::Complex128 } else { high }
            }
        })
    }

    /// Returns the type of an operation between an array of this type and a Python number. Such a number has a kind
    /// but not a size (NEP 50, numpy's rule since 2.0). As in numpy, a Python float and a type that numpy lacks give
    /// that type's working type: `Float32` for `BFloat16`.
    pub fn promote_python(self, number: Kind) -> DType {
        match (number, self.kind()) {
            (_, Kind::Opaque) | (Kind::Bool, _) => self,
            (Kind::Unsigned | Kind::Signed, Kind::Bool) => DType::Int64,
            (Kind::Unsigned | Kind::Signed, _) => self,
            (Kind::Float, _) if self.extension().is_some() => self.working(),
            (Kind::Float, Kind::Float | Kind::Complex) => self,
            (Kind::Float, _) => DType::Float64,
            (_, Kind::Complex) => self,
            (_, Kind::Float) if self.size() <= 4 => DType::Complex64,
            _ => DType::Complex128,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Opaque(bytes) => write!(f, "record of {bytes} bytes"),
            other => f.write_str(other.name()),
        }
    }
}

/// A Rust type that can be the element of a `DeviceArray`.
///
/// This library implements it for numbers and `bool`. Programs implement it for their own records;
/// [`record!`](crate::record) does so without `unsafe`. Functions use it as a bound for arrays of any elements.
/// Programs do not call it.
///
/// A record of a program has the dtype [`DType::Opaque`] with its size. Its arrays are made from slices, copied and
/// viewed. An array filled with one value, as `DeviceArray::zeros` makes it, requires elements of at most 16 bytes,
/// which is checked at compile time.
///
/// Records of a file become an array, and one field a strided view:
///
/// ```
/// use gpuarray::{DType, DeviceArray, Element, record};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// record! {
///     pub struct Reading {
///         pub sensor: u32,
///         pub value: f32,
///     }
/// }
/// assert_eq!(Reading::DTYPE, DType::Opaque(8));
///
/// let readings = [Reading { sensor: 3, value: 0.5 }, Reading { sensor: 4, value: 1.5 }];
/// let array = DeviceArray::from_slice(&device, &readings)?.into_untyped();
/// let values = DeviceArray::<f32>::from_untyped(array.field(4, DType::Float32)?)?;
/// assert_eq!(values.sum()?, 2.0);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// - `DTYPE` has the size of this type (checked at compile time) and its representation.
/// - No byte of a value is padding or otherwise undefined.
/// - Every sequence of bytes is a valid value; for [`DType::Bool`], every one that is 0 or 1.
pub unsafe trait Element: Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The dtype.
    const DTYPE: DType;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
}

// Records: structs that a program defines.

/// A type that a field of a record may have.
///
/// # Safety
/// No byte of a value is padding, and every sequence of bytes is a valid value.
pub unsafe trait Field: Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The value with every number zero.
    const ZERO: Self;
    /// The value with every number one.
    const ONE: Self;
}

macro_rules! fields {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        $(fields!(@ $kind $rust, $zero, $one);)*
    };
    (@ Bool $rust:ty, $zero:expr, $one:expr) => {};
    (@ $kind:ident $rust:ty, $zero:expr, $one:expr) => {
        // SAFETY: a number does not contain padding, and all bit patterns are numbers.
        unsafe impl Field for $rust {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }
    };
}
crate::dtypes!(fields);
fields!(@ Signed isize, 0, 1);
fields!(@ Unsigned usize, 0, 1);

// SAFETY: array elements follow each other without padding.
unsafe impl<T: Field, const N: usize> Field for [T; N] {
    const ZERO: Self = [T::ZERO; N];
    const ONE: Self = [T::ONE; N];
}

/// Returns the bytes of a value.
pub fn bytes_of<T: Field>(value: &T) -> &[u8] {
    // SAFETY: no byte is padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: &str = "?bhiqBHIQeEfdFD";

    fn of_code(code: char) -> Option<DType> {
        CODES.chars().position(|c| c == code).map(|index| DType::ALL[index])
    }

    #[test]
    fn promotion_is_that_of_numpy() {
        // numpy.promote_types of version 2, and the results of sums with arrays of
        // ml_dtypes.bfloat16 (code E), in the order of `DType::ALL`.
        const TABLE: [&str; 15] = [
            "?bhiqBHIQeEfdFD",
            "bbhiqhiqdeEfdFD",
            "hhhiqhiqdfffdFD",
            "iiiiqiiqdddddDD",
            "qqqqqqqqdddddDD",
            "BhhiqBHIQeEfdFD",
            "HiiiqHHIQfffdFD",
            "IqqqqIIIQddddDD",
            "QddddQQQQddddDD",
            "eefddefddeffdFD",
            "EEfddEfddfEfdFD",
            "fffddffddfffdFD",
            "dddddddddddddDD",
            "FFFDDFFDDFFFDFD",
            "DDDDDDDDDDDDDDD",
        ];
        for (a, row) in DType::ALL.into_iter().zip(TABLE) {
            for (b, code) in DType::ALL.into_iter().zip(row.chars()) {
                assert_eq!(a.promote(b).ok(), of_code(code), "{a} and {b}");
            }
            assert!(a.promote(DType::Opaque(4)).is_err());
        }
        assert_eq!(DType::Opaque(4).promote(DType::Opaque(4)).ok(), Some(DType::Opaque(4)));
        assert!(DType::Opaque(4).promote(DType::Opaque(5)).is_err());
    }

    #[test]
    fn promotion_with_python_numbers_is_that_of_numpy() {
        for (kind, row) in [
            (Kind::Bool, "?bhiqBHIQeEfdFD"),
            (Kind::Signed, "qbhiqBHIQeEfdFD"),
            (Kind::Float, "dddddddddeffdFD"),
            (Kind::Complex, "DDDDDDDDDFFFDFD"),
        ] {
            for (dtype, code) in DType::ALL.into_iter().zip(row.chars()) {
                assert_eq!(Some(dtype.promote_python(kind)), of_code(code), "{dtype}, {kind:?}");
            }
        }
    }
}
