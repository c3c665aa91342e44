//! Element types and numpy's promotion rules for them.

use crate::error::{Error, Result};
use half::f16;
use num_complex::Complex;
use std::fmt;

/// The element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed 8-bit integer.
    Int8,
    /// Signed 16-bit integer.
    Int16,
    /// Signed 32-bit integer.
    Int32,
    /// Signed 64-bit integer.
    Int64,
    /// Unsigned 8-bit integer.
    UInt8,
    /// Unsigned 16-bit integer.
    UInt16,
    /// Unsigned 32-bit integer.
    UInt32,
    /// Unsigned 64-bit integer.
    UInt64,
    /// IEEE 754 binary16.
    Float16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// Two `Float32`: real, imaginary.
    Complex64,
    /// Two `Float64`: real, imaginary.
    Complex128,
    /// Records of so many bytes, which can be stored, copied, filled and viewed but not
    /// calculated with (a structured numpy dtype, a CUDA vector type).
    Opaque(u32),
}

/// The families of element types, in the order of promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Every type that can be calculated with.
    pub const ALL: [DType; 14] = [
        DType::Bool,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float16,
        DType::Float32,
        DType::Float64,
        DType::Complex64,
        DType::Complex128,
    ];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::Int8 | DType::UInt8 => 1,
            DType::Int16 | DType::UInt16 | DType::Float16 => 2,
            DType::Int32 | DType::UInt32 | DType::Float32 => 4,
            DType::Int64 | DType::UInt64 | DType::Float64 | DType::Complex64 => 8,
            DType::Complex128 => 16,
            DType::Opaque(bytes) => bytes as usize,
        }
    }

    /// The alignment in bytes that an element's address must have.
    pub const fn alignment(self) -> usize {
        match self {
            DType::Complex64 => 4,
            DType::Complex128 => 8,
            DType::Opaque(_) => 1,
            other => other.size(),
        }
    }

    /// The family.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => Kind::Signed,
            DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => Kind::Unsigned,
            DType::Float16 | DType::Float32 | DType::Float64 => Kind::Float,
            DType::Complex64 | DType::Complex128 => Kind::Complex,
            DType::Opaque(_) => Kind::Opaque,
        }
    }

    /// True for signed and unsigned integers (not for bool).
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// True for complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// True for floating-point and complex numbers.
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// numpy's name.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::UInt8 => "uint8",
            DType::UInt16 => "uint16",
            DType::UInt32 => "uint32",
            DType::UInt64 => "uint64",
            DType::Float16 => "float16",
            DType::Float32 => "float32",
            DType::Float64 => "float64",
            DType::Complex64 => "complex64",
            DType::Complex128 => "complex128",
            DType::Opaque(_) => "record",
        }
    }

    /// The real type of a complex one; any other type itself.
    pub const fn real(self) -> DType {
        match self {
            DType::Complex64 => DType::Float32,
            DType::Complex128 => DType::Float64,
            other => other,
        }
    }

    /// The type in which a function that needs fractions computes on this one, by numpy's
    /// rule: 8-bit integers and bool in `Float16`, 16-bit ones in `Float32`, wider ones in
    /// `Float64`, inexact types in themselves.
    pub const fn inexact(self) -> DType {
        match self {
            DType::Bool | DType::Int8 | DType::UInt8 => DType::Float16,
            DType::Int16 | DType::UInt16 => DType::Float32,
            DType::Int32 | DType::UInt32 | DType::Int64 | DType::UInt64 => DType::Float64,
            other => other,
        }
    }

    /// The type that both types convert to without loss, by numpy's table
    /// (`numpy.promote_types`).
    ///
    /// # Errors
    /// `InvalidType` where either is a record.
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

    /// The type of an operation between an array of this type and a Python number, which
    /// has a kind but no size (numpy's rule since 2.0, NEP 50).
    pub fn promote_python(self, number: Kind) -> DType {
        match (number, self.kind()) {
            (_, Kind::Opaque) | (Kind::Bool, _) => self,
            (Kind::Unsigned | Kind::Signed, Kind::Bool) => DType::Int64,
            (Kind::Unsigned | Kind::Signed, _) => self,
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

/// A Rust type that is the element of a [`DeviceArray`](crate::DeviceArray).
///
/// A record of the program's own has the dtype [`DType::Opaque`] of its size. Its arrays are made
/// from slices, copied and viewed. An array of one value, as
/// [`DeviceArray::zeros`](crate::DeviceArray::zeros) makes it, needs elements of at most 16 bytes,
/// which is checked at compile time.
///
/// # Safety
/// - `DTYPE` has the size of this type (checked at compile time) and its representation.
/// - No byte of a value is padding, or undefined in another way.
/// - Every sequence of bytes is a valid value; for [`DType::Bool`] every one that is 0 or 1.
pub unsafe trait Element: Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The dtype.
    const DTYPE: DType;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
}

macro_rules! elements {
    ($($rust:ty, $dtype:ident, $zero:expr, $one:expr;)*) => {
        $(
            // SAFETY: the type has the representation that the dtype's documentation states.
            unsafe impl Element for $rust {
                const DTYPE: DType = DType::$dtype;
                const ZERO: Self = $zero;
                const ONE: Self = $one;
            }
        )*
    };
}

elements! {
    bool, Bool, false, true;
    i8, Int8, 0, 1;
    i16, Int16, 0, 1;
    i32, Int32, 0, 1;
    i64, Int64, 0, 1;
    u8, UInt8, 0, 1;
    u16, UInt16, 0, 1;
    u32, UInt32, 0, 1;
    u64, UInt64, 0, 1;
    f16, Float16, f16::ZERO, f16::ONE;
    f32, Float32, 0.0, 1.0;
    f64, Float64, 0.0, 1.0;
    Complex<f32>, Complex64, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0);
    Complex<f64>, Complex128, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0);
}

/// Calls a macro-like closure body with `$T` bound to the Rust type of a dtype.
///
/// `with_dtype!(dtype, T => expression, else expression)`: the last one for records.
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $T = bool;
                $body
            }
            $crate::DType::Int8 => {
                type $T = i8;
                $body
            }
            $crate::DType::Int16 => {
                type $T = i16;
                $body
            }
            $crate::DType::Int32 => {
                type $T = i32;
                $body
            }
            $crate::DType::Int64 => {
                type $T = i64;
                $body
            }
            $crate::DType::UInt8 => {
                type $T = u8;
                $body
            }
            $crate::DType::UInt16 => {
                type $T = u16;
                $body
            }
            $crate::DType::UInt32 => {
                type $T = u32;
                $body
            }
            $crate::DType::UInt64 => {
                type $T = u64;
                $body
            }
            $crate::DType::Float16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::Float32 => {
                type $T = f32;
                $body
            }
            $crate::DType::Float64 => {
                type $T = f64;
                $body
            }
            $crate::DType::Complex64 => {
                type $T = $crate::Complex<f32>;
                $body
            }
            $crate::DType::Complex128 => {
                type $T = $crate::Complex<f64>;
                $body
            }
            $crate::DType::Opaque(_) => $other,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: &str = "?bhiqBHIQefdFD";

    fn of_code(code: char) -> Option<DType> {
        CODES.chars().position(|c| c == code).map(|index| DType::ALL[index])
    }

    #[test]
    fn promotion_is_that_of_numpy() {
        // numpy.promote_types of version 2, in the order of `DType::ALL`.
        const TABLE: [&str; 14] = [
            "?bhiqBHIQefdFD",
            "bbhiqhiqdefdFD",
            "hhhiqhiqdffdFD",
            "iiiiqiiqddddDD",
            "qqqqqqqqddddDD",
            "BhhiqBHIQefdFD",
            "HiiiqHHIQffdFD",
            "IqqqqIIIQdddDD",
            "QddddQQQQdddDD",
            "eefddefddefdFD",
            "fffddffddffdFD",
            "ddddddddddddDD",
            "FFFDDFFDDFFDFD",
            "DDDDDDDDDDDDDD",
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
            (Kind::Bool, "?bhiqBHIQefdFD"),
            (Kind::Signed, "qbhiqBHIQefdFD"),
            (Kind::Float, "dddddddddefdFD"),
            (Kind::Complex, "DDDDDDDDDFFDFD"),
        ] {
            for (dtype, code) in DType::ALL.into_iter().zip(row.chars()) {
                assert_eq!(Some(dtype.promote_python(kind)), of_code(code), "{dtype}, {kind:?}");
            }
        }
    }
}
