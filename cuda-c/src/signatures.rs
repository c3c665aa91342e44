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

pub use types::{Number, SignatureParameter, ValueType};

use std::fmt::{Display, Formatter};

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
