//! Maps names to types of C++ and CUDA C.

use super::{Number, ValueType};

#[cfg(not(windows))]
const LONG: u8 = 8;
#[cfg(windows)]
const LONG: u8 = 4;

/// The words that name built-in types of C++.
const BUILTIN: [&str; 9] =
    ["void", "bool", "char", "short", "int", "long", "signed", "unsigned", "float"];

/// Returns true for a word of a built-in type.
pub(super) fn is_builtin(word: &str) -> bool {
    BUILTIN.contains(&word) || matches!(word, "double" | "__int64" | "__signed__")
}

/// Returns the built-in type that a sequence of words names.
pub(super) fn builtin(words: &[&str]) -> ValueType {
    let count = |word: &str| words.iter().filter(|it| **it == word).count();
    let is_unsigned = count("unsigned") > 0;
    let integer = |size: u8| {
        ValueType::Number(if is_unsigned { Number::Unsigned(size) } else { Number::Signed(size) })
    };
    match (count("long"), words) {
        (0, ["void"]) => ValueType::Void,
        (0, ["bool"]) => ValueType::Number(Number::Bool),
        (0, ["float"]) => ValueType::Number(Number::Float(4)),
        (0, ["double"]) => ValueType::Number(Number::Float(8)),
        _ if count("float") + count("double") + count("void") + count("bool") > 0 => {
            ValueType::Unknown
        }
        (2, _) => integer(8),
        (1, _) => integer(LONG),
        _ if count("char") > 0 => integer(1),
        _ if count("short") > 0 => integer(2),
        _ if count("__int64") > 0 => integer(8),
        _ => integer(4),
    }
}

/// Returns the integer type for a name of the C headers that compilers of kernels predefine.
fn integer(name: &str) -> Option<Number> {
    Some(match name {
        "int8_t" => Number::Signed(1),
        "int16_t" => Number::Signed(2),
        "int32_t" => Number::Signed(4),
        "int64_t" | "ptrdiff_t" | "intptr_t" | "ssize_t" => Number::Signed(8),
        "uint8_t" => Number::Unsigned(1),
        "uint16_t" | "ushort" => Number::Unsigned(2),
        "uint32_t" | "uint" => Number::Unsigned(4),
        "uint64_t" | "size_t" | "uintptr_t" => Number::Unsigned(8),
        "ulong" => Number::Unsigned(LONG),
        _ => return None,
    })
}

/// Returns the vector type for a name such as `float4`.
fn vector(name: &str) -> Option<ValueType> {
    let count = name.bytes().last().filter(|it| (b'1'..=b'4').contains(it))? - b'0';
    let number = match &name[..name.len() - 1] {
        "char" => Number::Signed(1),
        "uchar" => Number::Unsigned(1),
        "short" => Number::Signed(2),
        "ushort" => Number::Unsigned(2),
        "int" => Number::Signed(4),
        "uint" => Number::Unsigned(4),
        "long" => Number::Signed(LONG),
        "ulong" => Number::Unsigned(LONG),
        "longlong" => Number::Signed(8),
        "ulonglong" => Number::Unsigned(8),
        "float" => Number::Float(4),
        "double" => Number::Float(8),
        "half" | "__half" if count == 2 => Number::Float(2),
        "__nv_bfloat16" if count == 2 => Number::Bfloat16,
        _ => return None,
    };
    Some(ValueType::Vector(number, count))
}

/// Returns the type for a name that the program does not define. `path` includes the namespaces; `argument`
/// is the template argument.
pub(super) fn named(path: &[&str], argument: Option<ValueType>) -> ValueType {
    let Some((name, spaces)) = path.split_last() else { return ValueType::Unknown };
    let standard = spaces.iter().all(|it| matches!(*it, "std" | "cuda"));
    if *name == "complex"
        && (standard || matches!(spaces, ["pycuda" | "thrust"]))
        && let Some(ValueType::Number(Number::Float(part @ (4 | 8)))) = argument
    {
        return ValueType::Complex(part);
    }
    if argument.is_some() || !standard {
        return ValueType::Unknown;
    }
    if let Some(number) = integer(name) {
        return ValueType::Number(number);
    }
    if !spaces.is_empty() {
        return ValueType::Unknown;
    }
    match *name {
        "half" | "__half" => ValueType::Number(Number::Float(2)),
        "__nv_bfloat16" | "nv_bfloat16" | "__hip_bfloat16" => ValueType::Number(Number::Bfloat16),
        "cuComplex" | "cuFloatComplex" | "hipComplex" | "hipFloatComplex" => ValueType::Complex(4),
        "cuDoubleComplex" | "hipDoubleComplex" => ValueType::Complex(8),
        name => vector(name).unwrap_or(ValueType::Unknown),
    }
}
