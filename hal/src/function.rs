//! The functions that builtin operations apply to elements, and the types they work in.

use crate::dtype::{DType, Kind};
use crate::enumeration::enumeration;
use crate::error::{Error, Result};

enumeration! {
/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnaryFunction {
    /// The element itself: a copy, a cast, or a fill when the input is a scalar.
    Copy,
    /// `-x`; integers wrap.
    Negative,
    /// `|x|`; of a complex number its modulus, a real number.
    Absolute,
    /// -1, 0 or 1 (NaN for NaN); not for complex numbers.
    Sign,
    /// The complex conjugate; the element itself where it is real.
    Conjugate,
    /// The real part.
    Real,
    /// The imaginary part; zero where the element is real.
    Imaginary,
    /// True where the element is zero.
    LogicalNot,
    /// All bits inverted; for bool the logical not.
    Invert,
    /// Square root.
    Sqrt,
    /// `e` to the power of the element.
    Exp,
    /// Natural logarithm.
    Log,
    /// Logarithm to the base 2; not for complex numbers.
    Log2,
    /// Logarithm to the base 10.
    Log10,
    /// Sine of an angle in radians.
    Sin,
    /// Cosine of an angle in radians.
    Cos,
    /// Tangent of an angle in radians.
    Tan,
    /// Inverse sine, in radians.
    Asin,
    /// Inverse cosine, in radians.
    Acos,
    /// Inverse tangent, in radians.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// The largest whole number not above the element; real types only.
    Floor,
    /// The smallest whole number not below the element; real types only.
    Ceil,
    /// The element without its fraction; real types only.
    Trunc,
    /// The element without its whole part, with the element's sign, as C's `modf`: a zero for a
    /// whole number and for an infinity; integers and floating-point numbers only.
    Fraction,
    /// The nearest whole number, halves to even; real types only.
    Rint,
    /// The fraction `m` of `x = m * 2^e`, `0.5 <= |m| < 1`, as C's `frexp`; real types only.
    Mantissa,
    /// The exponent `e` of `x = m * 2^e`, as C's `frexp`, in the element's own type; real
    /// types only.
    Exponent,
    /// True where the element is not a number.
    IsNan,
}
}

enumeration! {
/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BinaryFunction {
    /// `x + y`; integers wrap, for bool the logical or.
    Add,
    /// `x - y`; integers wrap; not for bool.
    Subtract,
    /// `x * y`; integers wrap, for bool the logical and.
    Multiply,
    /// `x / y` with fractions, also for integers.
    Divide,
    /// The largest whole number not above `x / y`; 0 for an integer divided by 0; real only.
    FloorDivide,
    /// `x - floor(x / y) * y`, with the sign of `y`; 0 for an integer modulo 0; real only.
    Remainder,
    /// The remainder of the division rounded towards zero, with the sign of `x` (C's `fmod`);
    /// 0 for an integer modulo 0; real only.
    Fmod,
    /// `x` to the power of `y`; integers wrap; a negative integer exponent gives what the
    /// exact quotient rounds to towards zero (1, -1 or 0; 0 for a base of 0).
    Power,
    /// The smaller; NaN if either is (numpy's rule); complex numbers in lexicographic order.
    Minimum,
    /// The larger; NaN if either is (numpy's rule); complex numbers in lexicographic order.
    Maximum,
    /// `x * 2^y`, with `y` rounded towards zero (C's `ldexp`); real only.
    Ldexp,
    /// The angle of the point (y's abscissa, x's ordinate): C's `atan2(x, y)`; real only.
    Atan2,
    /// True where both are not zero.
    LogicalAnd,
    /// True where either is not zero.
    LogicalOr,
    /// Bits of both; integers and bool.
    BitwiseAnd,
    /// Bits of either; integers and bool.
    BitwiseOr,
    /// Bits of exactly one; integers and bool.
    BitwiseXor,
    /// The bits of `x` moved up by `y`, zeros moved in; 0 for `y` below 0 or not below the
    /// number of bits (numpy's rule); integers and bool.
    LeftShift,
    /// The bits of `x` moved down by `y`, copies of the sign moved in; -1 or 0, the sign alone,
    /// for `y` below 0 or not below the number of bits (numpy's rule); integers and bool.
    RightShift,
    /// `x == y`.
    Equal,
    /// `x != y`.
    NotEqual,
    /// `x < y`; complex numbers in lexicographic order.
    Less,
    /// `x <= y`; complex numbers in lexicographic order.
    LessEqual,
    /// `x > y`; complex numbers in lexicographic order.
    Greater,
    /// `x >= y`; complex numbers in lexicographic order.
    GreaterEqual,
}
}

/// A function that an element-wise operation applies; its arguments are the inputs in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Function {
    /// One argument.
    Unary(UnaryFunction),
    /// Two arguments.
    Binary(BinaryFunction),
    /// Three arguments: the second where the first is not zero, else the third. The first
    /// keeps its own type, the other two are converted to the computing type.
    Select,
    /// Three arguments: the second where the first is greater than zero, else the third. The
    /// first keeps its own type, the other two are converted to the computing type.
    SelectPositive,
    /// Four arguments `a, x, b, y`: `a * x + b * y`, rounded after each step.
    LinearCombination,
    /// Two arguments of types that no integer type holds both of: a comparison, exact, whose
    /// first argument is converted to `Int64` and whose second to `UInt64`. It computes in
    /// `Int64`; the other order of the types is [`BinaryFunction::swapped`].
    CompareMixed(BinaryFunction),
}

/// The types that a function works in: its arguments are converted to `compute`, its value
/// is of type `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The type that the arguments are converted to.
    pub compute: DType,
    /// The type of the function's value before it is converted to that of the output.
    pub result: DType,
}

impl Function {
    /// The number of arguments.
    pub const fn arity(self) -> usize {
        match self {
            Function::Unary(_) => 1,
            Function::Binary(_) | Function::CompareMixed(_) => 2,
            Function::Select | Function::SelectPositive => 3,
            Function::LinearCombination => 4,
        }
    }

    /// The type of the function's value when it computes in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        match self {
            Function::Unary(function) => function.result(compute),
            Function::Binary(function) | Function::CompareMixed(function) => {
                function.result(compute)
            }
            _ => compute,
        }
    }

    /// The type that the argument of a position is converted to when the function computes in
    /// `compute`; none for the condition of a selection, which keeps its own.
    pub const fn argument(self, position: usize, compute: DType) -> Option<DType> {
        match (self, position) {
            (Function::Select | Function::SelectPositive, 0) => None,
            (Function::CompareMixed(_), 1) => Some(DType::UInt64),
            _ => Some(compute),
        }
    }
}

impl UnaryFunction {
    /// The type of the value when the function computes in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        use UnaryFunction::*;
        match self {
            LogicalNot | IsNan => DType::Bool,
            Absolute | Real | Imaginary => compute.real(),
            _ => compute,
        }
    }

    /// The types for an argument of type `input`, by numpy's rules.
    ///
    /// # Errors
    /// `InvalidType` where the function is not defined for `input`.
    pub fn signature(self, input: DType) -> Result<Signature> {
        use UnaryFunction::*;
        let allowed = match (self, input.kind()) {
            (Copy, _) => true,
            (_, Kind::Opaque) => false,
            (Negative | Sign | Fraction, Kind::Bool) => false,
            (
                Sign | Log2 | Floor | Ceil | Trunc | Fraction | Rint | Mantissa | Exponent,
                Kind::Complex,
            ) => false,
            (Invert, Kind::Float | Kind::Complex) => false,
            _ => true,
        };
        if !allowed {
            return Err(Error::invalid_type(
                "elementwise",
                format!("{self:?} is not defined for dtype {input}"),
            ));
        }
        let compute = match self {
            Sqrt | Exp | Log | Log2 | Log10 | Sin | Cos | Tan | Asin | Acos | Atan | Sinh
            | Cosh | Tanh | Rint | Mantissa | Exponent => input.inexact(),
            _ => input,
        };
        Ok(Signature { compute, result: self.result(compute) })
    }
}

impl BinaryFunction {
    /// True for the comparisons by size and for equality.
    pub const fn is_comparison(self) -> bool {
        use BinaryFunction::*;
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }

    /// The comparison that has the same value when its arguments are exchanged; any other
    /// function itself.
    pub const fn swapped(self) -> Self {
        use BinaryFunction::*;
        match self {
            Less => Greater,
            LessEqual => GreaterEqual,
            Greater => Less,
            GreaterEqual => LessEqual,
            other => other,
        }
    }

    /// The type of the value when the function computes in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        use BinaryFunction::*;
        match self {
            LogicalAnd | LogicalOr | Equal | NotEqual | Less | LessEqual | Greater
            | GreaterEqual => DType::Bool,
            _ => compute,
        }
    }

    /// The types for arguments whose common type is `common`, by numpy's rules.
    ///
    /// # Errors
    /// `InvalidType` where the function is not defined for `common`.
    pub fn signature(self, common: DType) -> Result<Signature> {
        use BinaryFunction::*;
        let refused = matches!(
            (self, common.kind()),
            (_, Kind::Opaque)
                | (Subtract, Kind::Bool)
                | (FloorDivide | Remainder | Fmod | Ldexp | Atan2, Kind::Complex)
                | (
                    BitwiseAnd | BitwiseOr | BitwiseXor | LeftShift | RightShift,
                    Kind::Float | Kind::Complex
                )
        );
        if refused {
            let hint = if matches!((self, common), (Subtract, DType::Bool)) {
                "; use not-equal or the exclusive or"
            } else {
                ""
            };
            return Err(Error::invalid_type(
                "elementwise",
                format!("{self:?} is not defined for dtype {common}{hint}"),
            ));
        }
        let compute = match self {
            Divide if !common.is_inexact() => DType::Float64,
            Ldexp | Atan2 => common.inexact(),
            FloorDivide | Remainder | Fmod | Power | LeftShift | RightShift
                if common == DType::Bool =>
            {
                DType::Int8
            }
            _ => common,
        };
        Ok(Signature { compute, result: self.result(compute) })
    }
}

enumeration! {
/// How the elements of an array are combined into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// Their sum; 0 for none. Integers wrap, for bool the logical or.
    Sum,
    /// Their product; 1 for none. Integers wrap, for bool the logical and.
    Product,
    /// The smallest; NaN if any is.
    Minimum,
    /// The largest; NaN if any is.
    Maximum,
    /// True if any is not zero.
    Any,
    /// True if none is zero.
    All,
}
}

impl Reduction {
    /// The type of the value when the elements are combined in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        match self {
            Reduction::Any | Reduction::All => DType::Bool,
            _ => compute,
        }
    }

    /// True if no element at all has a value.
    pub const fn has_identity(self) -> bool {
        !matches!(self, Reduction::Minimum | Reduction::Maximum)
    }
}
