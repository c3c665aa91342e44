//! Modules: loaded code, and the kernels in it.

mod kernel;

use crate::enumeration::setters;
use crate::error::{Error, Result, common_kind};
use crate::status::Status;
pub use kernel::{Kernel, KernelAttribute, LaunchConfig, LaunchLimits, Parameter};
use std::any::Any;
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// The code that a module is made from.
///
/// A kernel from source text, compiled by the device's own compiler:
///
/// ```
/// use gpuarray::{LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// assert_eq!(module.kernel("scale")?.name(), "scale");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum ModuleSource<'a> {
    /// CUDA C source for the device's run-time compiler.
    Source {
        /// The text.
        text: &'a str,
        /// The name that the compiler's messages show.
        name: &'a str,
        /// Options of the compiler.
        options: &'a [&'a str],
    },
    /// Code for the device: a cubin, fatbin, PTX text or code object.
    Image(&'a [u8]),
    /// A file that contains such code.
    File(&'a Path),
}

/// The text that a module was compiled from, and the compiler options.
///
/// ```
/// use gpuarray::{LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let text = r#"extern "C" __global__ void clear(REAL *x) { x[threadIdx.x] = 0; }"#;
/// let source = ModuleSource::Source { text, name: "clear.cu", options: &["-DREAL=float"] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let source = module.source().expect("the module was compiled from it");
/// assert_eq!((source.text.as_str(), &source.options[..]), (text, &["-DREAL=float".to_owned()][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The text.
    pub text: String,
    /// The options of the compiler.
    pub options: Vec<String>,
}

impl SourceText {
    /// Returns the text and the options of a module's source; `None` for compiled code.
    pub fn of(source: &ModuleSource<'_>) -> Option<SourceText> {
        let ModuleSource::Source { text, options, .. } = *source else { return None };
        let options = options.iter().map(|&it| it.to_owned()).collect();
        Some(SourceText { text: text.to_owned(), options })
    }
}

/// Returns the bytes of a file with code.
///
/// # Errors
/// The status `FILE_NOT_FOUND` if the file does not exist; `InvalidArgument` if it cannot be read or is not a regular
/// file, since a pipe or a device may never end.
pub fn file_bytes(path: &Path) -> Result<Vec<u8>> {
    read_regular(path).map_err(|error| {
        let detail = format!("file {}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                let status = Status::host(Status::FILE_NOT_FOUND);
                Error::new(common_kind(status.code), status, "load_module", detail)
            }
            _ => Error::invalid("load_module", detail),
        }
    })
}

/// Returns the bytes of a regular file.
///
/// # Errors
/// The system's; `InvalidInput` for another kind of file.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Opening a pipe must not wait for its other end.
        options.custom_flags(libc::O_NONBLOCK);
    }
    let mut file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Options of the driver's compiler and loader, for code that is not yet in the device's own form
/// (`CUjit_option`).
///
/// A module for a profiler, with kernels that use few registers:
///
/// ```
/// use gpuarray::{LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let options = LoadOptions::default().line_info(true).max_registers(Some(32));
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &options)? };
/// assert!(module.kernel("scale").is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The maximum number of registers per thread; `None` for the driver's choice.
    pub max_registers: Option<u32>,
    /// The optimisation level, from 0 to 4; `None` for the driver's default, 4.
    pub optimization_level: Option<u32>,
    /// True to generate information for a debugger.
    pub debug: bool,
    /// True to generate line numbers for a profiler.
    pub line_info: bool,
    /// True for a verbose log.
    pub verbose: bool,
}

setters! {
    LoadOptions:
    max_registers: Option<u32>; optimization_level: Option<u32>; debug: bool; line_info: bool; verbose: bool;
}

/// One input of [`Device::link`](crate::Device::link).
///
/// Two inputs for a linker (the host does not have one):
///
/// ```
/// use gpuarray::{ErrorKind, LinkInput, LinkKind, LoadOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let inputs = [
///     LinkInput { kind: LinkKind::Ptx, data: b".version 8.0", name: "main.ptx" },
///     LinkInput { kind: LinkKind::Library, data: b"!<arch>", name: "parts.a" },
/// ];
/// let error = device.link(&inputs, &LoadOptions::default()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unsupported);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LinkInput<'a> {
    /// The form of the code.
    pub kind: LinkKind,
    /// The bytes.
    pub data: &'a [u8],
    /// The name that messages show.
    pub name: &'a str,
}

/// The forms of code that a linker accepts (`CUjitInputType`).
///
/// The form of a file, by its name:
///
/// ```
/// use gpuarray::LinkKind;
///
/// # fn main() -> gpuarray::Result<()> {
/// fn kind(name: &str) -> LinkKind {
///     match name.rsplit_once('.').map(|it| it.1) {
///         Some("ptx") => LinkKind::Ptx,
///         Some("o") => LinkKind::Object,
///         Some("a") => LinkKind::Library,
///         Some("fatbin") => LinkKind::Fatbin,
///         _ => LinkKind::Cubin,
///     }
/// }
/// assert_eq!(kind("kernels.ptx"), LinkKind::Ptx);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// A cubin.
    Cubin,
    /// PTX text.
    Ptx,
    /// A fat binary: code for several devices.
    Fatbin,
    /// An object file with device code.
    Object,
    /// An archive of object files.
    Library,
}

/// Loaded code. It is unloaded when the module and all its kernels have been dropped
/// (`cuModuleUnload`, `hipModuleUnload`).
///
/// Programs get a module from [`Device::load_module`](crate::Device::load_module), look up kernels in it by name, and
/// seldom need it afterwards. Only backends that run programs' kernels implement the trait.
///
/// A kernel and a variable of the same code:
///
/// ```
/// use gpuarray::{LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let text = r#"
/// __device__ float factors[4];
/// extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= factors[threadIdx.x]; }
/// "#;
/// let source = ModuleSource::Source { text, name: "factors.cu", options: &[] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let (address, bytes) = module.global("factors")?;
/// assert!(address != 0 && bytes == 16);
/// assert!(module.kernel("scale").is_ok() && module.kernel("scales").is_err());
/// # Ok(())
/// # }
/// ```
pub trait Module: Send + Sync + Debug {
    /// Returns the kernel with a name (`cuModuleGetFunction`, `hipModuleGetFunction`).
    ///
    /// # Errors
    /// The status `NOT_FOUND`, with the name, if no kernel has it.
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>>;

    /// Returns the address and the bytes of a variable in device memory. The variable lives as long as the module
    /// (`cuModuleGetGlobal`, `hipModuleGetGlobal`).
    ///
    /// # Errors
    /// The status `NOT_FOUND`, with the name, if no variable has it.
    fn global(&self, name: &str) -> Result<(u64, usize)>;

    /// Returns the source that the module was compiled from; `None` if it was loaded as code.
    fn source(&self) -> Option<&SourceText> {
        None
    }

    /// Returns the messages of the compiler and the driver about the module; empty if there were none.
    fn log(&self) -> &str {
        ""
    }

    /// Returns the backend's own object, inside all layers.
    fn as_any(&self) -> &dyn Any;
}

/// Code for a device, and the compiler's messages.
///
/// Code that is compiled once and loaded later:
///
/// ```
/// use gpuarray::{Compiled, LoadOptions, ModuleSource, Program};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let program = Program::new("__global__ void nothing() {}").extern_c(true);
/// let Compiled { code, log, .. } = program.compile(device.as_ref())?;
/// assert!(log.is_empty());
/// // SAFETY: the program does not declare variables with initialisers.
/// let module = unsafe { device.load_module(&ModuleSource::Image(&code), &LoadOptions::default())? };
/// assert!(module.kernel("nothing").is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// A cubin, PTX text followed by a zero byte, or a code object.
    pub code: Vec<u8>,
    /// Warnings; empty if there were none.
    pub log: String,
    /// The mangled forms of the compilation's `names`, in the same order.
    pub lowered: Vec<String>,
}
