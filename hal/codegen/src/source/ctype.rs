//! The vocabulary of the generated source: the parts of its prelude, and the names of dtypes and functions in it.

use hal::dtype::{DType, Kind};
use hal::function::{Function, Reduction, Start};
use std::borrow::Cow;

/// The parts of the prelude that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prelude(u16);

/// Every part, in an order in which each only depends on earlier ones.
const PARTS: [(Prelude, &str); 20] = [
    (Prelude::BOOL, include_str!("cuda/bool.cuh")),
    (Prelude::INTEGER, include_str!("cuda/integer.cuh")),
    (Prelude::REAL, include_str!("cuda/real.cuh")),
    (Prelude::NARROW, include_str!("cuda/narrow.cuh")),
    (Prelude::COMPLEX, include_str!("cuda/complex.cuh")),
    (Prelude::REDUCE, include_str!("cuda/reduce.cuh")),
    (Prelude::WORDS, include_str!("cuda/words.cuh")),
    (Prelude(64), include_str!("cuda/warp.cuh")),
    (Prelude(64), include_str!("cuda/scan_tile.cuh")),
    (Prelude(64), include_str!("cuda/scan.cuh")),
    (Prelude(8192), include_str!("cuda/nonzero.cuh")),
    (Prelude::INDEXED, include_str!("cuda/indexed.cuh")),
    (Prelude::RANDOM, include_str!("cuda/random_math.cuh")),
    (Prelude::RANDOM, include_str!("cuda/random.cuh")),
    (Prelude::SORT, include_str!("cuda/sort.cuh")),
    (Prelude(4096), include_str!("cuda/digits.cuh")),
    (Prelude(4096), include_str!("cuda/radix_tile.cuh")),
    (Prelude(4096), include_str!("cuda/radix_halves.cuh")),
    (Prelude(4096), include_str!("cuda/radix.cuh")),
    (Prelude::PRODUCT, include_str!("cuda/product.cuh")),
];

const TYPES: &str = include_str!("cuda/types.cuh");

impl Prelude {
    pub(super) const NONE: Prelude = Prelude(0);
    pub(super) const BOOL: Prelude = Prelude(1);
    pub(super) const INTEGER: Prelude = Prelude(2);
    pub(super) const REAL: Prelude = Prelude(4);
    pub(super) const NARROW: Prelude = Prelude(8);
    pub(super) const COMPLEX: Prelude = Prelude(16);
    pub(super) const REDUCE: Prelude = Prelude(32);
    pub(super) const WORDS: Prelude = Prelude(2048);
    pub(super) const SCAN: Prelude = Prelude(64).with(Self::WORDS);
    pub(super) const NONZERO: Prelude = Prelude(8192).with(Self::SCAN);
    pub(super) const INDEXED: Prelude = Prelude(128);
    pub(super) const RANDOM: Prelude = Prelude(256);
    pub(super) const SORT: Prelude = Prelude(512);
    pub(super) const RADIX: Prelude = Prelude(4096).with(Self::WORDS);
    pub(super) const PRODUCT: Prelude = Prelude(1024);

    pub(super) const fn with(self, other: Prelude) -> Prelude {
        Prelude(self.0 | other.0)
    }

    const fn has(self, other: Prelude) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the translation unit of `kernels`, preceded by these parts, with a namespace around
    /// all.
    pub(super) fn enclose(self, kernels: &str) -> String {
        // The types open the namespace.
        let mut text = String::from(TYPES);
        if self.has(Prelude::RANDOM) {
            text.push_str(&hal::random::definitions());
        }
        for (part, body) in PARTS {
            if self.has(part) {
                text.push('\n');
                text.push_str(body);
            }
        }
        text.push_str(kernels);
        text.push_str("\n} // namespace gpuarray\n");
        text
    }
}

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
