//! Code for devices: from text to code objects, without a driver.
//!
//! Converts text, options and a [`Target`] to bytes that a driver loads. A build script can use it
//! without a driver. Whether a device accepts the bytes is only known when it loads them.
//!
//! | part | contents |
//! |---|---|
//! | [`Compiler`], [`Compilation`], [`Compiled`] | a compiler that is present at run time |
//! | [`program`] | NVRTC and hipRTC, one C interface under two prefixes |
//! | [`cuda_search`] | the search for CUDA's libraries |
//! | [`CodeCache`], [`compile_cached`] | compiled code on disk |
//! | [`embedded`] | code compiled ahead of time and embedded in the program |
//! | [`mod@format`] | checks that bytes are complete ELF files, fat binaries or PTX |
//! | [`JitOptions`] | options and logs of the drivers' loaders and linkers |

mod cache;
mod cached;
pub mod cuda_search;
pub mod embedded;
pub mod format;
pub mod program;
mod ptx;
mod target;

pub use cache::{CodeCache, CodeKey};
use cached::settings;
pub use cached::{compile_cached, compile_closed, may_read_files};
use embedded::registered;
use hal::error::{Error, ErrorKind, Result};
pub use hal::module::Compiled;
use hal::module::LoadOptions;
use std::ffi::{c_int, c_void};
use std::fmt::Debug;
use std::sync::Arc;
pub use target::{TARGETS, Target};

// Compilers of CUDA C that are available at run time.

/// The input of a compilation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compilation<'a> {
    /// The text.
    pub text: &'a str,
    /// The name that messages show as the file name.
    pub name: &'a str,
    /// The device's architecture: `sm_90`, `gfx90a:xnack-`.
    pub target: &'a str,
    /// The compiler's options. An option that names the architecture overrides `target`.
    pub options: &'a [&'a str],
    /// Expressions that name kernels and variables, for example `scale<float>`. Templates are
    /// instantiated for them, and their names in the code are returned.
    pub names: &'a [&'a str],
    /// True if the compiler should search for the vendor's headers, as far as they are installed.
    pub headers: bool,
}

/// A compiler that is available at run time.
pub trait Compiler: Send + Sync + Debug {
    /// Returns the name and the version of the compiler for `target`, which are part of the cache's key.
    ///
    /// # Errors
    /// `Unsupported` that says what to install if no compiler is available.
    fn identity(&self, target: &str) -> Result<String>;

    /// Returns the environment variables that affect the result of a compilation. Their values are also
    /// part of the key.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Compiles CUDA C.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log as the detail; `InvalidArgument` for a text with a zero
    /// byte or a target of another vendor; the errors of [`Compiler::identity`].
    fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled>;
}

// Options of the drivers' loaders and linkers, and their logs.

/// The size of each log in bytes.
const LOG_BYTES: usize = 64 << 10;

/// `CU_JIT_*`; `hipJitOption` has the same numbers.
const MAX_REGISTERS: c_int = 0;
const INFO_LOG: c_int = 3;
const INFO_LOG_SIZE: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;
const OPTIMIZATION_LEVEL: c_int = 7;
const DEBUG: c_int = 11;
const VERBOSE: c_int = 12;
const LINE_INFO: c_int = 13;

/// The options of a call that compiles or links, and its logs.
#[derive(Debug)]
pub struct JitOptions {
    keys: Vec<c_int>,
    values: Vec<*mut c_void>,
    info: Vec<u8>,
    error: Vec<u8>,
}

impl JitOptions {
    /// Returns the options, with buffers for the logs.
    pub fn new(options: &LoadOptions) -> JitOptions {
        let mut all = JitOptions {
            keys: Vec::new(),
            values: Vec::new(),
            info: vec![0; LOG_BYTES],
            error: vec![0; LOG_BYTES],
        };
        // A value is either a number with the size of a pointer, or a pointer.
        let size = LOG_BYTES as *mut c_void;
        let logs = [
            (INFO_LOG, all.info.as_mut_ptr().cast()),
            (INFO_LOG_SIZE, size),
            (ERROR_LOG, all.error.as_mut_ptr().cast()),
            (ERROR_LOG_SIZE, size),
        ];
        let number = |value: u32| value as usize as *mut c_void;
        let chosen = [
            options.max_registers.map(|value| (MAX_REGISTERS, number(value))),
            options.optimization_level.map(|value| (OPTIMIZATION_LEVEL, number(value))),
            options.debug.then_some((DEBUG, number(1))),
            options.line_info.then_some((LINE_INFO, number(1))),
            options.verbose.then_some((VERBOSE, number(1))),
        ];
        for (key, value) in logs.into_iter().chain(chosen.into_iter().flatten()) {
            all.keys.push(key);
            all.values.push(value);
        }
        all
    }

    /// Returns number, keys and values, as the driver's call takes them.
    pub fn as_arguments(&mut self) -> (u32, *mut c_int, *mut *mut c_void) {
        (self.keys.len() as u32, self.keys.as_mut_ptr(), self.values.as_mut_ptr())
    }

    fn text(bytes: &[u8]) -> String {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }

    /// Returns the log of the driver's compiler or linker; empty if there is none.
    pub fn info(&self) -> String {
        Self::text(&self.info)
    }

    /// Returns the error log of the loader or linker.
    pub fn errors(&self) -> String {
        Self::text(&self.error)
    }
}

// Code for a builtin operation: from the on-disk cache, or from a run-time compiler. Embedded code,
// which is preferred, is in `embedded::EmbeddedModule`.

/// Finds code for a compilation of a builtin source, made by any compiler, passes it to `load`, and
/// returns the result. Code from the cache that `load` refuses is compiled again.
///
/// # Errors
/// The errors of `load` and of the compiler; `Unsupported` that names every place that was searched.
pub fn find_code<T>(
    compilation: &Compilation<'_>,
    cache: &CodeCache,
    compiler: Result<Arc<dyn Compiler>>,
    load: impl Fn(&[u8]) -> Result<T>,
) -> Result<T> {
    let settings = match &compiler {
        Ok(compiler) => settings(compiler.as_ref(), |name| std::env::var_os(name)),
        // Code that any compiler has made before.
        Err(_) => String::new(),
    };
    let key = CodeKey::new(compilation, &format!("any compiler{settings}"));
    if let Some(code) = cache.load(&key) {
        match load(&code) {
            Err(error) if !would_fail_again(&error) => {
                log::warn!("{} from the on-disk cache is not used: {error}", compilation.name);
            }
            loaded => return loaded,
        }
    }
    log::debug!("{} is compiled: it is neither embedded nor kept", compilation.name);
    let compiled = compiler.and_then(|it| it.compile(compilation));
    let code = compiled.map_err(|error| no_code(cache, compilation, error))?.code;
    let loaded = load(&code)?;
    cache.store(&key, &code);
    Ok(loaded)
}

/// Returns true for a failure to load code that is not the code's fault.
pub fn would_fail_again(error: &Error) -> bool {
    use ErrorKind::{DeviceLost, InvalidHandle, LaunchFailed, OutOfMemory};
    matches!(error.kind(), DeviceLost | InvalidHandle | LaunchFailed | OutOfMemory)
}

/// Returns the error for missing code without a compiler. Another failure of the compiler is returned
/// unchanged.
fn no_code(cache: &CodeCache, compilation: &Compilation<'_>, error: Error) -> Error {
    if error.kind() != ErrorKind::Unsupported {
        return error;
    }
    let (name, target) = (compilation.name, compilation.target);
    let embedded = match &registered()[..] {
        [] => "this build embeds none".to_owned(),
        list => format!("this build embeds some for {} but not this", list.join(", ")),
    };
    let kept = match cache.folder() {
        Some(folder) => format!("{} has none", folder.display()),
        None => "the on-disk cache is off".to_owned(),
    };
    let detail = format!(
        "{name} needs code for {target}: {embedded} (PYBIND_GPU_TARGET={target} when building \
         adds it), {kept}, and nothing can compile it: {}",
        error.detail()
    );
    Error::new(error.kind(), error.status(), "execute", detail)
}
