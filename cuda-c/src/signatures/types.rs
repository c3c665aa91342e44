//! The types of parameters, and the names of C++ and CUDA C for them.

use std::fmt::{Display, Formatter};

/// An arithmetic type.
///
/// ```
/// use cuda_c::Number;
///
/// assert_eq!(Number::Unsigned(4).size(), 4);
/// assert_eq!(Number::Bfloat16.size(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Number {
    /// `bool`.
    Bool,
    /// A signed integer with this number of bytes, including `char`.
    Signed(u8),
    /// An unsigned integer with this number of bytes.
    Unsigned(u8),
    /// An IEEE 754 number with two, four or eight bytes: `half`, `float`, `double`.
    Float(u8),
    /// `__nv_bfloat16`.
    Bfloat16,
}

impl Number {
    /// Returns the size of a value in bytes.
    pub fn size(self) -> usize {
        match self {
            Number::Bool => 1,
            Number::Bfloat16 => 2,
            Number::Signed(size) | Number::Unsigned(size) | Number::Float(size) => size.into(),
        }
    }
}

/// The type of a value, or the type that a pointer points to.
///
/// ```
/// use cuda_c::{Number, ValueType};
///
/// assert_eq!(ValueType::Vector(Number::Float(4), 3).size(), Some(12));
/// assert_eq!(ValueType::Void.size(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// `void`, as the target of a pointer.
    Void,
    /// An arithmetic type.
    Number(Number),
    /// A complex number of two floats, each with this number of bytes: `pycuda::complex<float>`,
    /// `cuDoubleComplex`.
    Complex(u8),
    /// A vector type with this number of elements: `float4`.
    Vector(Number, u8),
    /// A type that cannot be determined from the text alone: a structure, or a type of a header.
    Unknown,
}

impl ValueType {
    /// Returns the size of a value in bytes, if it is known.
    pub fn size(self) -> Option<usize> {
        match self {
            ValueType::Number(number) => Some(number.size()),
            ValueType::Complex(part) => Some(2 * usize::from(part)),
            ValueType::Vector(number, count) => Some(number.size() * usize::from(count)),
            ValueType::Void | ValueType::Unknown => None,
        }
    }
}

/// One parameter of a kernel.
///
/// ```
/// use cuda_c::Signatures;
///
/// let text = r#"extern "C" __global__ void fill(float *__restrict__ x, unsigned n) {}"#;
/// let signature = Signatures::of(text, &[]).kernel("fill").expect("it is plain to read");
/// let [x, n] = &signature.parameters[..] else { panic!("it has two parameters") };
/// assert!(x.is_pointer && x.is_restrict && !x.is_const);
/// assert_eq!((n.name.as_str(), n.type_name().as_str()), ("n", "unsigned"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureParameter {
    /// The name; empty if the parameter is unnamed.
    pub name: String,
    /// The type of the value, or the type that the pointer points to.
    pub of: ValueType,
    /// True for a pointer.
    pub is_pointer: bool,
    /// True for a pointer to constant values, and for a constant value.
    pub is_const: bool,
    /// True for a pointer with `__restrict__`.
    pub is_restrict: bool,
    /// The type as written, with every `*` but without `const` and `__restrict__`.
    pub(super) written: String,
}

impl SignatureParameter {
    /// Returns the type in C syntax, such as `const float *`.
    pub fn type_name(&self) -> String {
        let constant = if self.is_const { "const " } else { "" };
        let restrict = if self.is_restrict { "__restrict__" } else { "" };
        format!("{constant}{}{restrict}", self.written)
    }
}

/// Formats the parameter as a declaration: `const float *x`.
impl Display for SignatureParameter {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let of = self.type_name();
        let gap = if of.ends_with('*') || self.name.is_empty() { "" } else { " " };
        write!(f, "{of}{gap}{}", self.name)
    }
}

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
