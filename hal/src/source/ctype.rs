//! How the generated source names dtypes and the functions on them.

use super::fragment::Fragments;
use crate::dtype::{DType, Kind};
use crate::function::{Function, Reduction, Start};
use std::borrow::Cow;

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
    let combine = reduction.combine().properties().name;
    let identity = match reduction.start() {
        Start::Zero => format!("convert<{value}>((i32)0)"),
        Start::One => format!("convert<{value}>((i32)1)"),
        Start::Highest => format!("{functions}::highest()"),
        Start::Lowest => format!("{functions}::lowest()"),
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

/// The name of a function in the prelude and in the names of kernels.
pub(super) fn function(function: Function) -> Cow<'static, str> {
    Cow::Borrowed(match function {
        Function::Unary(unary) => unary.properties().name,
        Function::Binary(binary) => binary.properties().name,
        Function::CompareMixed(comparison) => {
            return Cow::Owned(format!("mixed_{}", comparison.properties().name));
        }
        Function::Select => "select",
        Function::SelectPositive => "select_positive",
        Function::LinearCombination => "linear_combination",
    })
}
