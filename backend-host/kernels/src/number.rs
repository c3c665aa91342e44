//! The arithmetic of one element: the definition of each function for each element type.

use hal::dtype::narrow::Narrow;
use hal::{Complex, DType};

/// A truth value in memory: any byte, true unless it is zero.
///
/// Memory that a program has filled may contain other bytes than 0 and 1, which a Rust `bool` must never
/// have. Values created here are 0 or 1.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Truth(u8);

impl Truth {
    /// Converts a Rust `bool`.
    #[inline(always)]
    pub(super) fn new(value: bool) -> Self {
        Truth(u8::from(value))
    }

    /// Returns true unless the byte is zero.
    #[inline(always)]
    pub(super) fn get(self) -> bool {
        self.0 != 0
    }
}

macro_rules! identities {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[inline(always)] fn $name(self) -> Self { self.convert() })*
    };
}

/// An element type with arithmetic.
///
/// # Safety
/// `DTYPE.size()` must be the size of the type, and every bit pattern must be a valid value.
///
/// Types for which a function is defined override its default method. The array layer refuses the function
/// for other types, so the default's result does not matter.
pub(super) unsafe trait Number: Convert + Send + Sync + std::fmt::Debug {
    /// The dtype that this type represents.
    const DTYPE: DType;
    /// The type of the modulus, and of the real and imaginary part.
    type Real: Number;
    /// The type in which a number is computed. It differs for types stored in few bits.
    type Working: Number;

    /// `self + other`.
    fn add(self, other: Self) -> Self;
    /// `self * other`.
    fn multiply(self, other: Self) -> Self;
    /// Returns true if the value is not zero.
    fn is_true(self) -> bool;
    /// `self == other`.
    fn equal(self, other: Self) -> bool;
    /// `self < other`.
    fn less(self, other: Self) -> bool;
    /// `self <= other`.
    fn less_equal(self, other: Self) -> bool;
    /// Returns true if the value, or a part of it, is NaN.
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    /// Returns true if the value, or a part of it, is infinite.
    #[inline(always)]
    fn is_infinite(self) -> bool {
        false
    }
    /// Returns the modulus.
    fn absolute(self) -> Self::Real;
    /// Returns the real part.
    fn real(self) -> Self::Real;
    /// Returns the imaginary part.
    fn imaginary(self) -> Self::Real;

    /// Returns the smaller value. If a value is NaN, returns the first NaN.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        if self.less_equal(other) | self.is_nan() { self } else { other }
    }
    /// Returns the larger value. If a value is NaN, returns the first NaN.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        if other.less_equal(self) | self.is_nan() { self } else { other }
    }

    /// Returns `a * x + b * y`, rounded after each step.
    #[inline(always)]
    fn linear_combination(a: Self, x: Self, b: Self, y: Self) -> Self {
        a.multiply(x).add(b.multiply(y))
    }

    /// `self - other`.
    #[inline(always)]
    fn subtract(self, _other: Self) -> Self {
        self
    }
    /// `self / other`.
    #[inline(always)]
    fn divide(self, _other: Self) -> Self {
        self
    }
    /// `1 / self`.
    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self::from_u8(1).divide(self)
    }
    /// Returns the quotient rounded down.
    #[inline(always)]
    fn floor_divide(self, _other: Self) -> Self {
        self
    }
    /// Returns the remainder with the sign of the divisor.
    #[inline(always)]
    fn remainder(self, _other: Self) -> Self {
        self
    }
    /// Returns the remainder with the sign of the dividend.
    #[inline(always)]
    fn fmod(self, _other: Self) -> Self {
        self
    }
    /// Returns `self` to the power of `other`.
    #[inline(always)]
    fn power(self, _other: Self) -> Self {
        self
    }
    /// Returns the bitwise and.
    #[inline(always)]
    fn bit_and(self, _other: Self) -> Self {
        self
    }
    /// Returns the bitwise or.
    #[inline(always)]
    fn bit_or(self, _other: Self) -> Self {
        self
    }
    /// Returns the bitwise exclusive or.
    #[inline(always)]
    fn bit_xor(self, _other: Self) -> Self {
        self
    }
    /// Returns the bits shifted left by `other`.
    #[inline(always)]
    fn left_shift(self, _other: Self) -> Self {
        self
    }
    /// Returns the bits shifted right by `other`.
    #[inline(always)]
    fn right_shift(self, _other: Self) -> Self {
        self
    }

    identities! {
        /// `-self`.
        negative;
        /// -1, 0 or 1.
        sign;
        /// The complex conjugate.
        conjugate;
        /// All bits inverted.
        invert;
    }
}

/// Conversions from every element type, with C's rules.
pub(super) trait Convert: Copy + 'static {
    /// Converts a truth value.
    fn from_truth(value: Truth) -> Self;
    /// Converts an integer.
    fn from_i8(value: i8) -> Self;
    /// Converts an integer.
    fn from_i16(value: i16) -> Self;
    /// Converts an integer.
    fn from_i32(value: i32) -> Self;
    /// Converts an integer.
    fn from_i64(value: i64) -> Self;
    /// Converts an integer.
    fn from_u8(value: u8) -> Self;
    /// Converts an integer.
    fn from_u16(value: u16) -> Self;
    /// Converts an integer.
    fn from_u32(value: u32) -> Self;
    /// Converts an integer.
    fn from_u64(value: u64) -> Self;
    /// Converts a floating-point number of a type stored in few bits.
    fn from_narrow<N: Narrow>(value: N) -> Self;
    /// Converts a floating-point number.
    fn from_f32(value: f32) -> Self;
    /// Converts a floating-point number.
    fn from_f64(value: f64) -> Self;
    /// Converts a complex number. The imaginary part is lost if this type is real.
    fn from_c32(value: Complex<f32>) -> Self;
    /// Converts a complex number. The imaginary part is lost if this type is real.
    fn from_c64(value: Complex<f64>) -> Self;
    /// Converts this value to another type.
    fn convert<D: Convert>(self) -> D;
}

/// Evaluates an expression with `$T` bound to the [`Number`] of a dtype.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        hal::dtypes!(with_number @rows $dtype, $T, $body, $other;)
    };
    (@rows $dtype:expr, $T:ident, $body:expr, $other:expr; $(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        match $dtype {
            $(hal::DType::$variant => {
                type $T = with_number!(@number $kind $rust);
                $body
            })*
            _ => $other,
        }
    };
    (@number Bool $rust:ty) => {
        $crate::number::Truth
    };
    (@number $kind:ident $rust:ty) => {
        $rust
    };
}
pub(super) use with_number;

/// Expands to the tokens in braces if a row of the table of dtypes is of a requested kind: `whole` (integers
/// and truth values), `integer`, `float`, `complex`, `inexact` (float and complex), and `narrow`:
/// floating-point types that are computed in another type.
macro_rules! if_kind {
    (whole Bool $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (whole Signed $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (whole Unsigned $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (integer Signed $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (integer Unsigned $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (float Float $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (inexact Float $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (inexact Complex $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (complex Complex $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    (narrow Float Float32 Float32 { $($then:tt)* }) => {};
    (narrow Float Float64 Float64 { $($then:tt)* }) => {};
    (narrow Float $variant:ident $working:ident { $($then:tt)* }) => { $($then)* };
    ($wanted:ident $kind:ident $variant:ident $working:ident { $($then:tt)* }) => {};
}
pub(super) use if_kind;

/// Evaluates an expression of type `Option` with `$T` bound to the [`Number`] of a dtype, if the dtype is of
/// a requested kind (see [`if_kind`]). Otherwise the result is `None`.
macro_rules! with_kind {
    ($wanted:ident $dtype:expr, $T:ident => $body:expr) => {
        hal::dtypes!(with_kind @rows $wanted $dtype, $T, $body;)
    };
    (@rows $wanted:ident $dtype:expr, $T:ident, $body:expr; $(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {{
        let (dtype, mut found) = ($dtype, None);
        $($crate::number::if_kind!($wanted $kind $variant $working {
            if dtype == hal::DType::$variant {
                type $T = with_number!(@number $kind $rust);
                found = $body;
            }
        });)*
        found
    }};
}
pub(super) use with_kind;

/// Calls a macro for each dtype of the requested kinds (see [`if_kind`]), with the tokens in brackets, the
/// dtype, and its [`Number`].
macro_rules! for_each {
    ($wanted:ident => $callback:ident $given:tt) => {
        hal::dtypes! { for_each @rows $wanted $callback $given; }
    };
    (@rows $wanted:ident $callback:ident $given:tt; $(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        $($crate::number::if_kind!($wanted $kind $variant $working {
            $callback! { $given $variant, $crate::number::with_number!(@number $kind $rust) }
        });)*
    };
}
pub(super) use for_each;

// SAFETY: a byte, and every bit pattern is valid.
unsafe impl Number for Truth {
    const DTYPE: DType = DType::Bool;
    type Real = Truth;
    type Working = Truth;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.bit_or(other)
    }
    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self.bit_xor(other)
    }
    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self.bit_and(other)
    }
    #[inline(always)]
    fn is_true(self) -> bool {
        self.get()
    }
    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self.get() == other.get()
    }
    #[inline(always)]
    fn less(self, other: Self) -> bool {
        !self.get() & other.get()
    }
    #[inline(always)]
    fn less_equal(self, other: Self) -> bool {
        !self.get() | other.get()
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        self.bit_and(other)
    }
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        self.bit_or(other)
    }
    #[inline(always)]
    fn absolute(self) -> Self {
        Truth::new(self.get())
    }
    #[inline(always)]
    fn real(self) -> Self {
        Truth::new(self.get())
    }
    #[inline(always)]
    fn imaginary(self) -> Self {
        Truth::new(false)
    }
    #[inline(always)]
    fn invert(self) -> Self {
        Truth::new(!self.get())
    }
    #[inline(always)]
    fn bit_and(self, other: Self) -> Self {
        Truth::new(self.get() & other.get())
    }
    #[inline(always)]
    fn bit_or(self, other: Self) -> Self {
        Truth::new(self.get() | other.get())
    }
    #[inline(always)]
    fn bit_xor(self, other: Self) -> Self {
        Truth::new(self.get() ^ other.get())
    }
}
