//! The tables of functions: one row for each. Everything else about a function follows from its row.
//!
//! A row of `unary_functions` or `binary_functions` reads
//!
//! ```text
//! /// What the function does.
//! Variant "name" (kinds, computing type, value's type, cost) = "numpy's name" -> cumath(python_name);
//! ```
//!
//! The first name is the function's name in CUDA C, a member of the `...Functions` structs in `source/cuda/*.cuh`. The
//! words in parentheses are constants of [`Kinds`](super::Kinds) and variants of [`Compute`](super::Compute),
//! [`ValueType`](super::ValueType), [`Cost`](super::Cost) and [`Usage`](super::Usage); an omitted `Usage` is `Call`.
//!
//! The rest is optional: numpy's name of the function, and its name in the Python module `cumath` (or `gpuarray`). For
//! a function of two elements, the name in `cumath` includes the names of the parameters.
//!
//! To add a function of one element, add a row here, a member of the structs in CUDA C, and a line in the host
//! backend's `kernels`.

use crate::dtype::{DType, Kind};

/// Calls the macro `$callback` with the rows of all functions of one element.
#[doc(hidden)]
#[macro_export]
macro_rules! unary_functions {
    ($callback:ident) => {
        $callback! {
            /// The element itself: a copy, a cast, or a fill when the input is a scalar.
            Copy "copy" (EVERY, Own, Own, Light);
            /// The element itself, like the unary operator `+`; not for bool.
            Positive "positive" (ARITHMETIC, Own, Own, Light, Seldom) = "positive" -> cumath(positive);
            /// `-x`; integers wrap.
            Negative "negative" (ARITHMETIC, Own, Own, Light) = "negative";
            /// `|x|`; of a complex number its modulus, a real number.
            Absolute "absolute" (NUMBERS, Own, Real, LightReal) = "absolute" -> cumath(fabs);
            /// -1, 0 or 1 (NaN for NaN); not for complex numbers.
            Sign "sign" (ORDERED, Own, Own, Light) = "sign" -> cumath(sign);
            /// The complex conjugate; a real number unchanged; an `Int8` for a truth value.
            Conjugate "conjugate" (NUMBERS, Integer, Own, Light) = "conjugate";
            /// The real part.
            Real "real" (NUMBERS, Own, Real, Light) = "real";
            /// The imaginary part; zero where the element is real.
            Imaginary "imaginary" (NUMBERS, Own, Real, Light) = "imag";
            /// True where the element is zero.
            LogicalNot "logical_not" (NUMBERS, Own, Bool, Light) = "logical_not" -> gpuarray(logical_not);
            /// All bits inverted; for bool the logical not.
            Invert "invert" (WHOLE, Own, Own, Light) = "invert";
            /// Square root.
            Sqrt "sqrt" (NUMBERS, Inexact, Own, LightReal) = "sqrt" -> cumath(sqrt);
            /// `e` to the power of the element.
            Exp "exp" (NUMBERS, Inexact, Own, Heavy) = "exp" -> cumath(exp);
            /// Natural logarithm.
            Log "log" (NUMBERS, Inexact, Own, Heavy) = "log" -> cumath(log);
            /// Logarithm to the base 2.
            Log2 "log2" (NUMBERS, Inexact, Own, Heavy) = "log2" -> cumath(log2);
            /// Logarithm to the base 10.
            Log10 "log10" (NUMBERS, Inexact, Own, Heavy) = "log10" -> cumath(log10);
            /// Sine of an angle in radians.
            Sin "sin" (NUMBERS, Inexact, Own, Heavy) = "sin" -> cumath(sin);
            /// Cosine of an angle in radians.
            Cos "cos" (NUMBERS, Inexact, Own, Heavy) = "cos" -> cumath(cos);
            /// Tangent of an angle in radians.
            Tan "tan" (NUMBERS, Inexact, Own, Heavy) = "tan" -> cumath(tan);
            /// Inverse sine, in radians.
            Asin "asin" (NUMBERS, Inexact, Own, Heavy) = "arcsin" -> cumath(asin);
            /// Inverse cosine, in radians.
            Acos "acos" (NUMBERS, Inexact, Own, Heavy) = "arccos" -> cumath(acos);
            /// Inverse tangent, in radians.
            Atan "atan" (NUMBERS, Inexact, Own, Heavy) = "arctan" -> cumath(atan);
            /// Hyperbolic sine.
            Sinh "sinh" (NUMBERS, Inexact, Own, Heavy) = "sinh" -> cumath(sinh);
            /// Hyperbolic cosine.
            Cosh "cosh" (NUMBERS, Inexact, Own, Heavy) = "cosh" -> cumath(cosh);
            /// Hyperbolic tangent.
            Tanh "tanh" (NUMBERS, Inexact, Own, Heavy) = "tanh" -> cumath(tanh);
            /// The largest whole number not above the element; real types only.
            Floor "floor" (REAL, Own, Own, Light) = "floor" -> cumath(floor);
            /// The smallest whole number not below the element; real types only.
            Ceil "ceil" (REAL, Own, Own, Light) = "ceil" -> cumath(ceil);
            /// The element without its fraction; real types only.
            Trunc "trunc" (REAL, Own, Own, Light) = "trunc" -> cumath(trunc);
            /// The fraction of the element, with the element's sign, like C's `modf`: a zero for a whole number and for
            /// an infinity; integers and floating-point numbers only.
            Fraction "fraction" (ORDERED, Own, Own, Light);
            /// The nearest whole number, halves to even; of a complex number both parts.
            Rint "rint" (NUMBERS, Inexact, Own, Light) = "rint" -> cumath(rint);
            /// The fraction `m` of `x = m * 2^e`, `0.5 <= |m| < 1`, as C's `frexp`; real types
            /// only.
            Mantissa "mantissa" (REAL, Inexact, Own, Light);
            /// The exponent `e` of `x = m * 2^e`, as C's `frexp`, in the element's own type; real
            /// types only.
            Exponent "exponent" (REAL, Inexact, Own, Light);
            /// True where the element, or a part of it, is not a number.
            IsNan "is_nan" (NUMBERS, Own, Bool, Light) = "isnan" -> cumath(isnan);
            /// True where the element, or a part of it, is infinite.
            IsInfinite "infinite" (NUMBERS, Own, Bool, Light, Seldom) = "isinf" -> cumath(isinf);
            /// True where the element, or each part of it, is neither infinite nor NaN.
            IsFinite "finite" (NUMBERS, Own, Bool, Light, Seldom) = "isfinite" -> cumath(isfinite);
            /// True where the sign bit is set, also for zero and NaN; real types only.
            SignBit "sign_bit" (REAL, Own, Bool, Light, Seldom) = "signbit" -> cumath(signbit);
            /// `x * x`; integers wrap.
            Square "square" (NUMBERS, Integer, Own, Light, Seldom) = "square" -> cumath(square);
            /// `1 / x`, for integers rounded towards zero; 0 for an integer 0.
            Reciprocal "reciprocal" (NUMBERS, Integer, Own, LightReal, Seldom) = "reciprocal" -> cumath(reciprocal);
            /// Radians of an angle in degrees; real types only.
            Radians "radians" (REAL, Inexact, Own, Light, Seldom) = "deg2rad" -> cumath(deg2rad);
            /// Degrees of an angle in radians; real types only.
            Degrees "degrees" (REAL, Inexact, Own, Light, Seldom) = "rad2deg" -> cumath(rad2deg);
            /// Cube root; real types only.
            Cbrt "cbrt" (REAL, Inexact, Own, Heavy, Seldom) = "cbrt" -> cumath(cbrt);
            /// 2 to the power of the element.
            Exp2 "exp2" (NUMBERS, Inexact, Own, Heavy, Seldom) = "exp2" -> cumath(exp2);
            /// `e` to the power of the element, minus one, precise near zero.
            Expm1 "expm1" (NUMBERS, Inexact, Own, Heavy, Seldom) = "expm1" -> cumath(expm1);
            /// Natural logarithm of one plus the element, precise near zero.
            Log1p "log1p" (NUMBERS, Inexact, Own, Heavy, Seldom) = "log1p" -> cumath(log1p);
            /// Inverse hyperbolic sine.
            Asinh "asinh" (NUMBERS, Inexact, Own, Heavy, Seldom) = "arcsinh" -> cumath(arcsinh);
            /// Inverse hyperbolic cosine.
            Acosh "acosh" (NUMBERS, Inexact, Own, Heavy, Seldom) = "arccosh" -> cumath(arccosh);
            /// Inverse hyperbolic tangent.
            Atanh "atanh" (NUMBERS, Inexact, Own, Heavy, Seldom) = "arctanh" -> cumath(arctanh);
            /// The error function, in 64-bit floating point for integers; real types only.
            Erf "erf" (REAL, Double, Own, Heavy, Seldom) -> cumath(erf);
            /// One minus the error function, in 64-bit floating point for integers; real types only.
            Erfc "erfc" (REAL, Double, Own, Heavy, Seldom) -> cumath(erfc);
            /// The gamma function, in 64-bit floating point for integers: an infinity at zero, NaN at negative whole
            /// numbers (C's `tgamma`); real types only.
            Gamma "gamma" (REAL, Double, Own, Heavy, Seldom) -> cumath(gamma);
            /// Natural logarithm of the gamma function's absolute value, in 64-bit floating point for integers
            /// (C's `lgamma`); real types only.
            LogGamma "log_gamma" (REAL, Double, Own, Heavy, Seldom) -> cumath(lgamma);
        }
    };
}

/// Calls the macro `$callback` with the rows of all functions of two elements.
#[doc(hidden)]
#[macro_export]
macro_rules! binary_functions {
    ($callback:ident) => {
        $callback! {
            /// `x + y`; integers wrap, for bool the logical or.
            Add "add" (NUMBERS, Own, Own, Light, Arithmetic) = "add";
            /// `x - y`; integers wrap; not for bool.
            Subtract "subtract" (ARITHMETIC, Own, Own, Light, Arithmetic) = "subtract";
            /// `x * y`; integers wrap, for bool the logical and.
            Multiply "multiply" (NUMBERS, Own, Own, Light, Arithmetic) = "multiply";
            /// `x / y` with fractions, also for integers.
            Divide "divide" (NUMBERS, Double, Own, LightReal, Arithmetic) = "divide";
            /// The largest whole number not above `x / y`; 0 for an integer divided by 0; real
            /// only.
            FloorDivide "floor_divide" (REAL, Integer, Own, Heaviest, Operator) = "floor_divide";
            /// `x - floor(x / y) * y`, with the sign of `y`; 0 for an integer modulo 0; real only.
            Remainder "remainder" (REAL, Integer, Own, Heaviest, Operator) = "remainder";
            /// The remainder of the division rounded towards zero, with the sign of `x` (C's
            /// `fmod`); 0 for an integer modulo 0; real only.
            Fmod "fmod" (REAL, Integer, Own, Heaviest, Call) = "fmod" -> cumath(fmod(arg, r#mod));
            /// `x` to the power of `y`; integers wrap. A negative integer exponent gives the exact quotient rounded
            /// towards zero (1, -1 or 0; 0 for a base of 0).
            Power "power" (NUMBERS, Integer, Own, Heaviest, Operator) = "power";
            /// The smaller; NaN if either is (numpy's rule); complex numbers in lexicographic
            /// order.
            Minimum "minimum" (NUMBERS, Own, Own, Light, Call) = "minimum" -> gpuarray(minimum(a, b));
            /// The larger; NaN if either is (numpy's rule); complex numbers in lexicographic order.
            Maximum "maximum" (NUMBERS, Own, Own, Light, Call) = "maximum" -> gpuarray(maximum(a, b));
            /// `x * 2^y`, with `y` rounded towards zero (C's `ldexp`); real only.
            Ldexp "ldexp" (REAL, Inexact, Own, Heavy, Call) = "ldexp" -> cumath(ldexp(significand, exponent));
            /// The angle, in radians, of the point with the abscissa `y` and the ordinate `x`: C's
            /// `atan2(x, y)`; real only.
            Atan2 "atan2" (REAL, Inexact, Own, Heavy, Call) = "arctan2" -> cumath(arctan2(x1, x2));
            /// The length of the vector with these two components, without intermediate overflow; infinite if either is
            /// infinite, even if the other is NaN; real only.
            Hypot "hypot" (REAL, Inexact, Own, Heavy, Seldom) = "hypot" -> cumath(hypot(x1, x2));
            /// The magnitude of `x` with the sign of `y`; real only.
            CopySign "copysign" (REAL, Inexact, Own, Light, Seldom) = "copysign" -> cumath(copysign(x1, x2));
            /// The number next to `x` in the direction of `y`; real only.
            NextAfter "next_after" (REAL, Inexact, Own, Light, Seldom) = "nextafter" -> cumath(nextafter(x1, x2));
            /// 0 for `x` below zero, 1 above, `y` at zero, NaN for NaN; real only.
            Heaviside "heaviside" (REAL, Inexact, Own, Light, Seldom) = "heaviside" -> cumath(heaviside(x1, x2));
            /// `log(e^x + e^y)` without intermediate overflow; real only.
            LogAddExp "log_add_exp" (REAL, Inexact, Own, Heavy, Seldom) = "logaddexp" -> cumath(logaddexp(x1, x2));
            /// `log2(2^x + 2^y)` without intermediate overflow; real only.
            LogAddExp2 "log_add_exp2" (REAL, Inexact, Own, Heavy, Seldom) = "logaddexp2" -> cumath(logaddexp2(x1, x2));
            /// The smaller; the other if one is NaN; complex numbers in lexicographic order.
            Fmin "fmin" (NUMBERS, Own, Own, Light, Seldom) = "fmin" -> cumath(fmin(x1, x2));
            /// The larger; the other if one is NaN; complex numbers in lexicographic order.
            Fmax "fmax" (NUMBERS, Own, Own, Light, Seldom) = "fmax" -> cumath(fmax(x1, x2));
            /// The greatest common divisor, never negative unless it wraps; integers only.
            Gcd "gcd" (INTEGERS, Own, Own, Heaviest, Seldom) = "gcd" -> cumath(gcd(x1, x2));
            /// The least common multiple, wrapping; 0 where either is 0; integers only.
            Lcm "lcm" (INTEGERS, Own, Own, Heaviest, Seldom) = "lcm" -> cumath(lcm(x1, x2));
            /// True where both are not zero.
            LogicalAnd "logical_and" (NUMBERS, Own, Bool, Light, Call) = "logical_and" -> gpuarray(logical_and(x1, x2));
            /// True where either is not zero.
            LogicalOr "logical_or" (NUMBERS, Own, Bool, Light, Call) = "logical_or" -> gpuarray(logical_or(x1, x2));
            /// True where exactly one is not zero.
            LogicalXor "logical_xor" (NUMBERS, Own, Bool, Light, Seldom) = "logical_xor" -> cumath(logical_xor(x1, x2));
            /// Bits of both; integers and bool.
            BitwiseAnd "bitwise_and" (WHOLE, Own, Own, Light, Call) = "bitwise_and";
            /// Bits of either; integers and bool.
            BitwiseOr "bitwise_or" (WHOLE, Own, Own, Light, Call) = "bitwise_or";
            /// Bits of exactly one; integers and bool.
            BitwiseXor "bitwise_xor" (WHOLE, Own, Own, Light, Call) = "bitwise_xor";
            /// The bits of `x` shifted up by `y`, filled with zeros; 0 if `y` is negative or at least the number of
            /// bits (numpy's rule); integers and bool.
            LeftShift "left_shift" (WHOLE, Integer, Own, Light, Call) = "left_shift" -> cumath(left_shift(x1, x2));
            /// The bits of `x` shifted down by `y`, filled with copies of the sign; -1 or 0 by the sign if `y` is
            /// negative or at least the number of bits (numpy's rule); integers and bool.
            RightShift "right_shift" (WHOLE, Integer, Own, Light, Call) = "right_shift" -> cumath(right_shift(x1, x2));
            /// `x == y`.
            Equal "equal" (NUMBERS, Own, Bool, Light, Call) = "equal";
            /// `x != y`.
            NotEqual "not_equal" (NUMBERS, Own, Bool, Light, Call) = "not_equal";
            /// `x < y`; complex numbers in lexicographic order.
            Less "less" (NUMBERS, Own, Bool, Light, Call) = "less";
            /// `x <= y`; complex numbers in lexicographic order.
            LessEqual "less_equal" (NUMBERS, Own, Bool, Light, Call) = "less_equal";
            /// `x > y`; complex numbers in lexicographic order.
            Greater "greater" (NUMBERS, Own, Bool, Light, Call) = "greater";
            /// `x >= y`; complex numbers in lexicographic order.
            GreaterEqual "greater_equal" (NUMBERS, Own, Bool, Light, Call) = "greater_equal";
        }
    };
}

/// Calls the macro `$callback` with the rows of all reductions. The words in parentheses are a variant of
/// [`ValueType`](super::ValueType), a variant of [`Start`](super::Start), and the [`BinaryFunction`](super::BinaryFunction)
/// that combines two elements.
#[doc(hidden)]
#[macro_export]
macro_rules! reductions {
    ($callback:ident) => {
        $callback! {
            /// Their sum; 0 for none. Integers wrap, for bool the logical or.
            Sum "sum" (Own, Zero, Add) = "sum" -> gpuarray(sum);
            /// Their product; 1 for none. Integers wrap, for bool the logical and.
            Product "product" (Own, One, Multiply) = "prod";
            /// The smallest; NaN if any is.
            Minimum "minimum" (Own, Highest, Minimum) = "min" -> gpuarray(min);
            /// The largest; NaN if any is.
            Maximum "maximum" (Own, Lowest, Maximum) = "max" -> gpuarray(max);
            /// True if any is not zero.
            Any "any" (Bool, Zero, Add) = "any" -> gpuarray(any);
            /// True if none is zero.
            All "all" (Bool, One, Multiply) = "all" -> gpuarray(all);
        }
    };
}

// The parts of a row: kinds of elements, types, cost.

/// A set of kinds of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    const fn of(kinds: &[Kind]) -> Kinds {
        let (mut set, mut index) = (0, 0);
        while index < kinds.len() {
            set |= 1 << kinds[index] as u8;
            index += 1;
        }
        Kinds(set)
    }

    /// Integers.
    pub const INTEGERS: Kinds = Kinds::of(&[Kind::Unsigned, Kind::Signed]);
    /// Truth values and integers.
    pub const WHOLE: Kinds = Kinds::of(&[Kind::Bool, Kind::Unsigned, Kind::Signed]);
    /// Integers and floating-point numbers.
    pub const ORDERED: Kinds = Kinds::of(&[Kind::Unsigned, Kind::Signed, Kind::Float]);
    /// Floating-point numbers.
    pub const FLOAT: Kinds = Kinds::of(&[Kind::Float]);
    /// All except complex numbers and records.
    pub const REAL: Kinds = Kinds::WHOLE.with(Kinds::FLOAT);
    /// All except truth values and records.
    pub const ARITHMETIC: Kinds = Kinds::ORDERED.with(Kinds::of(&[Kind::Complex]));
    /// All except records.
    pub const NUMBERS: Kinds = Kinds::REAL.with(Kinds::ARITHMETIC);
    /// All kinds.
    pub const EVERY: Kinds = Kinds::NUMBERS.with(Kinds::of(&[Kind::Opaque]));

    const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Returns true if the set contains `kind`.
    #[inline]
    pub const fn contain(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }
}

/// The type that a function computes in, from the common type of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compute {
    /// The common type.
    Own,
    /// [`DType::inexact`] of the common type.
    Inexact,
    /// The common type if it is inexact, else `Float64`.
    Double,
    /// The common type; `Int8` for bool.
    Integer,
}

impl Compute {
    /// Returns the type for arguments of the common type `common`.
    #[inline]
    pub const fn of(self, common: DType) -> DType {
        match self {
            Compute::Inexact => common.inexact(),
            Compute::Double if !common.is_inexact() => DType::Float64,
            Compute::Integer if matches!(common, DType::Bool) => DType::Int8,
            _ => common,
        }
    }
}

/// The type of a function's value, from the type that it computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// The type that the function computes in.
    Own,
    /// [`DType::real`] of that type.
    Real,
    /// A truth value.
    Bool,
}

impl ValueType {
    /// Returns the type for a function that computes in `compute`.
    #[inline]
    pub const fn of(self, compute: DType) -> DType {
        match self {
            ValueType::Own => compute,
            ValueType::Real => compute.real(),
            ValueType::Bool => DType::Bool,
        }
    }
}

/// The number of instructions of a function on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// Few: memory bandwidth limits the speed.
    Light,
    /// Few for real numbers, many for complex ones.
    LightReal,
    /// Many, in the inexact types that the function computes in.
    Heavy,
    /// Many in every type, integers included.
    Heaviest,
}

impl Cost {
    /// Returns true if the function takes many instructions in `compute`.
    pub const fn is_long(self, compute: DType) -> bool {
        match self {
            Cost::Light => false,
            Cost::LightReal => compute.is_complex(),
            Cost::Heavy | Cost::Heaviest => true,
        }
    }
}

/// The way in which programs use a function. It decides which code is compiled ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Usage {
    /// One of the four arithmetic operations, the most frequent: also on slices, broadcast rows and
    /// long arrays.
    Arithmetic,
    /// An operator whose first argument may be a number.
    Operator,
    /// A function that many programs call.
    Call,
    /// A function that few programs call: ahead of time it is compiled for few dtypes.
    Seldom,
}

impl Usage {
    /// Returns the usage given in a row of the table; [`Usage::Call`] if it is omitted.
    pub(super) const fn of(given: &[Usage]) -> Usage {
        match given {
            [usage, ..] => *usage,
            [] => Usage::Call,
        }
    }
}

/// The start value of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zero.
    Zero,
    /// One.
    One,
    /// The least value of the type. The reduction of no elements does not have a value.
    Lowest,
    /// The greatest value of the type. The reduction of no elements does not have a value.
    Highest,
}

/// Returns the first of the names, if any.
pub(super) const fn first(names: &[&'static str]) -> Option<&'static str> {
    match names {
        [name, ..] => Some(*name),
        [] => None,
    }
}
