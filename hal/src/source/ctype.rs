//! How the generated source names dtypes and the functions on them.

use super::prelude::Prelude;
use crate::dtype::{DType, Kind};
use crate::function::{Function, Reduction, Start};
use std::borrow::Cow;

/// The type of a value in registers.
pub(super) const fn value(dtype: DType) -> &'static str {
    dtype.c_names().value
}

/// The type of a value in memory and in the arguments of a kernel.
pub(super) const fn stored(dtype: DType) -> &'static str {
    dtype.c_names().stored
}

/// The struct whose members are the functions on a type.
pub(super) const fn functions(dtype: DType) -> &'static str {
    dtype.c_names().functions
}

/// The parts of the prelude that [`functions`] of a type need.
pub(super) const fn prelude(dtype: DType) -> Prelude {
    match dtype.kind() {
        Kind::Bool => Prelude::BOOL,
        Kind::Unsigned | Kind::Signed | Kind::Opaque => Prelude::INTEGER,
        Kind::Complex => Prelude::COMPLEX.with(Prelude::REAL),
        Kind::Float if dtype.working().size() > dtype.size() => Prelude::NARROW.with(Prelude::REAL),
        Kind::Float => Prelude::REAL,
    }
}

/// The type of indices and of offsets in bytes.
pub(super) const fn index(wide: bool) -> (&'static str, &'static str) {
    if wide { ("u64", "i64") } else { ("u32", "i32") }
}

/// The type of a partial result of a reduction.
pub(super) const fn accumulator(reduction: Reduction, compute: DType) -> DType {
    reduction.result(compute).working()
}

/// What a reduction starts with.
pub(super) fn identity(reduction: Reduction, compute: DType) -> String {
    let accumulator = accumulator(reduction, compute);
    let (value, functions) = (value(accumulator), functions(accumulator));
    match reduction.start() {
        Start::Zero => format!("convert<{value}>((i32)0)"),
        Start::One => format!("convert<{value}>((i32)1)"),
        Start::Highest => format!("{functions}::highest()"),
        Start::Lowest => format!("{functions}::lowest()"),
    }
}

/// The `struct` that a reduction's generic code takes: identity and combination.
pub(super) fn operator(name: &str, reduction: Reduction, compute: DType) -> String {
    let accumulator = accumulator(reduction, compute);
    let (value, functions) = (value(accumulator), functions(accumulator));
    let combine = reduction.combine().properties().name;
    let identity = identity(reduction, compute);
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
