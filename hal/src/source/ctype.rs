//! How the generated source names dtypes and the functions on them.

use super::fragment::Fragments;
use crate::dtype::{DType, Kind};
use crate::function::{BinaryFunction, Function, Reduction, UnaryFunction};

/// The type of a value in registers.
pub(super) const fn value(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::Int8 => "i8",
        DType::Int16 => "i16",
        DType::Int32 => "i32",
        DType::Int64 => "i64",
        DType::UInt8 => "u8",
        DType::UInt16 => "u16",
        DType::UInt32 => "u32",
        DType::UInt64 => "u64",
        DType::Float16 => "f16",
        DType::Float32 => "f32",
        DType::Float64 => "f64",
        DType::Complex64 => "c64",
        DType::Complex128 => "c128",
        // Records become words before any source is written.
        DType::Opaque(_) => "u8",
    }
}

/// The type of a value in memory and in the arguments of a kernel.
pub(super) const fn stored(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "u8",
        other => value(other),
    }
}

/// The struct whose members are the functions on a type.
pub(super) const fn functions(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "BoolFunctions",
        DType::Int8 => "IntegerFunctions<i8>",
        DType::Int16 => "IntegerFunctions<i16>",
        DType::Int32 => "IntegerFunctions<i32>",
        DType::Int64 => "IntegerFunctions<i64>",
        DType::UInt8 | DType::Opaque(_) => "IntegerFunctions<u8>",
        DType::UInt16 => "IntegerFunctions<u16>",
        DType::UInt32 => "IntegerFunctions<u32>",
        DType::UInt64 => "IntegerFunctions<u64>",
        DType::Float16 => "HalfFunctions",
        DType::Float32 => "RealFunctions<f32>",
        DType::Float64 => "RealFunctions<f64>",
        DType::Complex64 => "ComplexFunctions<f32>",
        DType::Complex128 => "ComplexFunctions<f64>",
    }
}

/// The fragments that [`functions`] of a type needs.
pub(super) const fn fragments(dtype: DType) -> Fragments {
    match dtype.kind() {
        Kind::Bool => Fragments::BOOL,
        Kind::Unsigned | Kind::Signed | Kind::Opaque => Fragments::INTEGER,
        Kind::Complex => Fragments::COMPLEX.with(Fragments::REAL),
        Kind::Float if dtype.size() == 2 => Fragments::HALF.with(Fragments::REAL),
        Kind::Float => Fragments::REAL,
    }
}

/// The type of indices and of offsets in bytes.
pub(super) const fn index(wide: bool) -> (&'static str, &'static str) {
    if wide { ("u64", "i64") } else { ("u32", "i32") }
}

/// The type in which elements of `compute` are combined: sums and products of `Float16` keep
/// the precision of `Float32` until they are stored.
pub(super) const fn working(compute: DType) -> DType {
    match compute {
        DType::Float16 => DType::Float32,
        other => other,
    }
}

/// The type of a partial result of a reduction.
pub(super) const fn accumulator(reduction: Reduction, compute: DType) -> DType {
    working(reduction.result(compute))
}

/// The `struct` that a reduction's generic code takes: identity and combination.
pub(super) fn operator(name: &str, reduction: Reduction, compute: DType) -> String {
    let accumulator = accumulator(reduction, compute);
    let (value, functions) = (value(accumulator), functions(accumulator));
    let (identity, combine) = match reduction {
        Reduction::Sum | Reduction::Any => (format!("convert<{value}>((i32)0)"), "add"),
        Reduction::Product | Reduction::All => (format!("convert<{value}>((i32)1)"), "multiply"),
        Reduction::Minimum => (format!("{functions}::highest()"), "minimum"),
        Reduction::Maximum => (format!("{functions}::lowest()"), "maximum"),
    };
    format!(
        "struct {name}_operator {{
    typedef {value} value;
    static METHOD value identity() {{ return {identity}; }}
    static METHOD value combine(value x, value y) {{ return {functions}::{combine}(x, y); }}
}};
"
    )
}

/// The short name of a reduction.
pub(super) const fn reduction(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum => "sum",
        Reduction::Product => "product",
        Reduction::Minimum => "minimum",
        Reduction::Maximum => "maximum",
        Reduction::Any => "any",
        Reduction::All => "all",
    }
}

/// The name of a function in the prelude and in the names of kernels.
pub(super) const fn function(function: Function) -> &'static str {
    use BinaryFunction::*;
    use UnaryFunction::*;
    match function {
        Function::Select => "select",
        Function::SelectPositive => "select_positive",
        Function::LinearCombination => "linear_combination",
        Function::CompareMixed(comparison) => match comparison {
            Equal => "mixed_equal",
            NotEqual => "mixed_not_equal",
            Less => "mixed_less",
            LessEqual => "mixed_less_equal",
            Greater => "mixed_greater",
            // The plan refuses what is no comparison.
            _ => "mixed_greater_equal",
        },
        Function::Unary(unary) => match unary {
            Copy => "copy",
            Negative => "negative",
            Absolute => "absolute",
            Sign => "sign",
            Conjugate => "conjugate",
            Real => "real",
            Imaginary => "imaginary",
            LogicalNot => "logical_not",
            Invert => "invert",
            Sqrt => "sqrt",
            Exp => "exp",
            Log => "log",
            Log2 => "log2",
            Log10 => "log10",
            Sin => "sin",
            Cos => "cos",
            Tan => "tan",
            Asin => "asin",
            Acos => "acos",
            Atan => "atan",
            Sinh => "sinh",
            Cosh => "cosh",
            Tanh => "tanh",
            Floor => "floor",
            Ceil => "ceil",
            Trunc => "trunc",
            Fraction => "fraction",
            Rint => "rint",
            Mantissa => "mantissa",
            Exponent => "exponent",
            IsNan => "is_nan",
        },
        Function::Binary(binary) => match binary {
            Add => "add",
            Subtract => "subtract",
            Multiply => "multiply",
            Divide => "divide",
            FloorDivide => "floor_divide",
            Remainder => "remainder",
            Fmod => "fmod",
            Power => "power",
            Minimum => "minimum",
            Maximum => "maximum",
            Ldexp => "ldexp",
            Atan2 => "atan2",
            LogicalAnd => "logical_and",
            LogicalOr => "logical_or",
            BitwiseAnd => "bitwise_and",
            BitwiseOr => "bitwise_or",
            BitwiseXor => "bitwise_xor",
            LeftShift => "left_shift",
            RightShift => "right_shift",
            Equal => "equal",
            NotEqual => "not_equal",
            Less => "less",
            LessEqual => "less_equal",
            Greater => "greater",
            GreaterEqual => "greater_equal",
        },
    }
}
