//! Reads the parameters of a program's kernels from its text, without a preprocessor: their names, types,
//! `const` and `restrict`.
//!
//! A kernel gets no signature, or parameters of an unknown type, if it cannot be read with certainty. Examples
//! are macros with arguments, conditions that the text alone does not decide, types of headers, and
//! overloaded kernels.

mod macros;
mod mangled;
mod reader;
#[cfg(test)]
mod tests;
mod types;

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
    written: String,
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

/// The name and the parameters of a kernel.
///
/// ```
/// use cuda_c::{Number, Signatures, ValueType};
///
/// let text = r#"
/// typedef float real;
/// extern "C" __global__ void axpy(real a, real *x, const real *__restrict__ y, int n) {}
/// "#;
/// let signature = Signatures::of(text, &[]).kernel("axpy").expect("it is plain to read");
/// assert_eq!(signature.to_string(), "axpy(real a, real *x, const real *__restrict__ y, int n)");
/// let y = &signature.parameters[2];
/// assert!(y.is_pointer && y.is_const && y.of == ValueType::Number(Number::Float(4)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The name in the program.
    pub name: String,
    /// The parameters, in order.
    pub parameters: Vec<SignatureParameter>,
}

/// Formats the signature as a declaration: `axpy(float a, float *x, int n)`.
impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let parameters: Vec<_> =
            self.parameters.iter().map(SignatureParameter::to_string).collect();
        write!(f, "{}({})", self.name, parameters.join(", "))
    }
}

/// The signatures of all kernels of a program.
///
/// ```
/// use cuda_c::Signatures;
///
/// let text = r#"extern "C" __global__ void first(int n) {}"#;
/// let signatures = Signatures::of(text, &[]);
/// assert!(signatures.kernel("first").is_some());
/// assert!(signatures.kernel("second").is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Signatures {
    kernels: Vec<reader::Kernel>,
}

impl Signatures {
    /// Reads a program that is compiled with these options. `-DNAME=VALUE` defines a macro.
    pub fn of(text: &str, options: &[&str]) -> Signatures {
        let kernels = macros::expanded(text, options).and_then(|text| reader::kernels(&text));
        Signatures { kernels: kernels.unwrap_or_default() }
    }

    /// Returns the names of all kernels, in the order of the text, including those without a signature.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|it| it.name.as_str())
    }

    /// Returns the signature of a kernel, given its plain or mangled name. Returns `None` if the text alone
    /// does not determine it.
    pub fn kernel(&self, name: &str) -> Option<Signature> {
        let symbol = mangled::read(name);
        let own = symbol.as_ref().map_or(name, |it| it.name);
        let kernel = self.kernels.iter().find(|it| it.name == own)?;
        let types = symbol.map(|it| it.arguments).unwrap_or_default();
        let parameters = kernel.parameters.as_ref()?;
        let parameters = parameters.iter().map(|it| it.instantiated(&types)).collect();
        Some(Signature { name: own.into(), parameters })
    }
}
