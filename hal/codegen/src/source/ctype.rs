//! The names of dtypes and their functions in the generated source.

use super::prelude::Prelude;
use hal::dtype::{DType, Kind};
use hal::function::{Function, Reduction, Start};
use std::borrow::Cow;

macro_rules! names {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        /// Returns the names of a dtype in registers, in memory, and of the struct with its functions. Records
        /// have been converted to words before any source is generated.
        const fn names(dtype: DType) -> [&'static str; 3] {
            match dtype {
                $(DType::$variant => [$value, $stored, $functions],)*
                _ => names(DType::UInt8),
            }
        }

        /// Returns how often programs calculate with a dtype. This decides which code is compiled ahead of time.
        pub(super) const fn frequency(dtype: DType) -> Frequency {
            match dtype {
                $(DType::$variant => Frequency::$use,)*
                _ => Frequency::Seldom,
            }
        }
    };
}
hal::dtypes!(names);

/// The frequency of calculations with a dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frequency {
    /// Most arrays have this dtype.
    Often,
    /// Less often.
    Sometimes,
    /// The dtype is mostly stored, and converted for calculations.
    Seldom,
}

/// Returns the type of a value in registers.
pub(super) const fn value(dtype: DType) -> &'static str {
    names(dtype)[0]
}

/// Returns the type of a value in memory and in the arguments of a kernel.
pub(super) const fn stored(dtype: DType) -> &'static str {
    names(dtype)[1]
}

/// Returns the struct whose members are the functions on a type.
pub(super) const fn functions(dtype: DType) -> &'static str {
    names(dtype)[2]
}

/// Returns the parts of the prelude that [`functions`] of a type need.
pub(super) const fn prelude(dtype: DType) -> Prelude {
    match dtype.kind() {
        Kind::Bool => Prelude::BOOL,
        Kind::Complex => Prelude::COMPLEX.with(Prelude::REAL),
        Kind::Float if dtype.working().size() > dtype.size() => Prelude::NARROW.with(Prelude::REAL),
        Kind::Float => Prelude::REAL,
        _ => Prelude::INTEGER,
    }
}

/// Returns the types of indices and of offsets in bytes.
pub(super) const fn index(wide: bool) -> (&'static str, &'static str) {
    if wide { ("u64", "i64") } else { ("u32", "i32") }
}

/// Returns the type of a partial result of a reduction.
pub(super) const fn accumulator(reduction: Reduction, compute: DType) -> DType {
    reduction.result(compute).working()
}

/// Returns the start value of a reduction.
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

/// Returns the `struct` for a reduction's generic code: identity and combination.
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

/// Returns the name of a function in the prelude and in the names of kernels.
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
