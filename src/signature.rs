//! The parameters of kernels as the program's text declares them: names, types, `const` and `restrict`.
//!
//! A driver reports each parameter's size; the program's text declares its type. [`of`] reads the text that a module
//! was compiled from. It returns `None` for a kernel if the kernel's declaration cannot be read with certainty, or if
//! the module was loaded as compiled code.

pub use cuda_c::{Number, Signature, SignatureParameter, Signatures, ValueType};
use hal::{Kernel, Module};

/// Returns the signature of a kernel of a module that was compiled from source.
///
/// ```
/// use gpuarray::signature::{self, Number, ValueType};
/// use gpuarray::{LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let text = r#"extern "C" __global__ void scale(float *x, const float by) { x[threadIdx.x] *= by; }"#;
/// let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let signature = signature::of(module.as_ref(), "scale").expect("it is plain to read");
/// assert_eq!(signature.to_string(), "scale(float *x, const float by)");
/// assert_eq!(signature.parameters[1].of, ValueType::Number(Number::Float(4)));
/// # Ok(())
/// # }
/// ```
pub fn of(module: &dyn Module, kernel: &str) -> Option<Signature> {
    let source = module.source()?;
    let options: Vec<_> = source.options.iter().map(String::as_str).collect();
    let kernel = module.kernel(kernel).ok()?;
    of_kernel(&Signatures::of(&source.text, &options), kernel.as_ref())
}

/// Returns the kernel's signature from its program's text. Returns `None` if the text does not declare the kernel
/// clearly, or if the driver reports a different number of parameters or different sizes.
pub fn of_kernel(signatures: &Signatures, kernel: &dyn Kernel) -> Option<Signature> {
    let signature = signatures.kernel(kernel.name())?;
    let Some(known) = kernel.parameters().ok()? else { return Some(signature) };
    let agrees = |(own, known): (&SignatureParameter, &hal::Parameter)| match own.is_pointer {
        true => known.size == size_of::<u64>() && known.is_pointer != Some(false),
        false => {
            own.of.size().is_none_or(|size| size == known.size) && known.is_pointer != Some(true)
        }
    };
    let agree = signature.parameters.len() == known.len()
        && signature.parameters.iter().zip(known).all(agrees);
    agree.then_some(signature)
}
