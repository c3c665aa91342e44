//! Words of the language that loop variants depend on.

/// The words of built-in types.
const TYPES: [&str; 9] =
    ["unsigned", "signed", "int", "long", "short", "char", "bool", "float", "double"];

/// Other integer types, by the names that headers give them.
const INTEGERS: [&str; 12] = [
    "size_t",
    "ptrdiff_t",
    "uint",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uchar",
];

/// The words of both lists that may name a type too small for a thread's index.
const NARROW: [&str; 8] =
    ["bool", "char", "short", "uchar", "int8_t", "uint8_t", "int16_t", "uint16_t"];

const SPECIFIERS: [&str; 7] =
    ["const", "constexpr", "register", "volatile", "struct", "__restrict__", "__restrict"];

/// A kernel that contains one of these words gets no loop variant.
const REFUSED: [&str; 31] = [
    "auto",
    "decltype",
    "__typeof__",
    "typeof",
    "goto",
    "asm",
    "__asm__",
    "__asm",
    "try",
    "catch",
    "throw",
    "new",
    "delete",
    "co_await",
    "co_return",
    "co_yield",
    "using",
    "typedef",
    "static",
    "class",
    "union",
    "enum",
    "template",
    "typename",
    "operator",
    "namespace",
    "friend",
    "this",
    "...",
    "__extension__",
    "_Pragma",
];

/// Reserved words, which cannot be names.
const KEYWORDS: [&str; 26] = [
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "return",
    "break",
    "continue",
    "sizeof",
    "alignof",
    "alignas",
    "true",
    "false",
    "nullptr",
    "static_cast",
    "reinterpret_cast",
    "const_cast",
    "void",
    "extern",
    "thread_local",
    "inline",
    "noexcept",
    "__attribute__",
];

/// Pure functions of the language: they take and return values, without side effects.
const FUNCTIONS: [&str; 96] = [
    "min",
    "max",
    "abs",
    "labs",
    "llabs",
    "fabs",
    "fabsf",
    "fmin",
    "fminf",
    "fmax",
    "fmaxf",
    "sqrt",
    "sqrtf",
    "rsqrt",
    "rsqrtf",
    "cbrt",
    "cbrtf",
    "exp",
    "expf",
    "exp2",
    "exp2f",
    "exp10",
    "exp10f",
    "expm1",
    "expm1f",
    "log",
    "logf",
    "log2",
    "log2f",
    "log10",
    "log10f",
    "log1p",
    "log1pf",
    "sin",
    "sinf",
    "cos",
    "cosf",
    "tan",
    "tanf",
    "asin",
    "asinf",
    "acos",
    "acosf",
    "atan",
    "atanf",
    "atan2",
    "atan2f",
    "sinh",
    "sinhf",
    "cosh",
    "coshf",
    "tanh",
    "tanhf",
    "pow",
    "powf",
    "fma",
    "fmaf",
    "fmod",
    "fmodf",
    "floor",
    "floorf",
    "ceil",
    "ceilf",
    "round",
    "roundf",
    "trunc",
    "truncf",
    "rint",
    "rintf",
    "hypot",
    "hypotf",
    "erf",
    "erff",
    "erfc",
    "erfcf",
    "copysign",
    "copysignf",
    "isnan",
    "isinf",
    "isfinite",
    "umin",
    "umax",
    "__expf",
    "__logf",
    "__sinf",
    "__cosf",
    "__fdividef",
    "__fmaf_rn",
    "__mul24",
    "__umul24",
    "__popc",
    "__clz",
    "__ffs",
    "__brev",
    "__saturatef",
    "__powf",
];

pub(super) const INDICES: [&str; 4] = ["threadIdx", "blockIdx", "blockDim", "gridDim"];

/// Returns true for a word of a built-in type.
pub(super) fn is_type(word: &str) -> bool {
    TYPES.contains(&word)
}

/// Returns true for a word of a type that may be too small for a thread's index.
pub(super) fn is_narrow(word: &str) -> bool {
    NARROW.contains(&word)
}

/// Returns true for the words of integer types.
pub(super) fn is_integer(word: &str) -> bool {
    INTEGERS.contains(&word) || (is_type(word) && !matches!(word, "float" | "double"))
}

pub(super) fn is_specifier(word: &str) -> bool {
    SPECIFIERS.contains(&word)
}

pub(super) fn is_refused(word: &str) -> bool {
    REFUSED.contains(&word)
}

/// Returns true for words that cannot name a type, a function or a variable of the program.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || is_type(word) || is_specifier(word) || is_refused(word)
}

/// Returns true for functions of the language whose result depends only on their arguments.
pub(super) fn is_known_function(word: &str) -> bool {
    FUNCTIONS.contains(&word)
}
