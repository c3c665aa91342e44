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
pub mod cuda_search;
pub mod embedded;
pub mod format;
pub mod program;
mod ptx;
mod target;

pub use cache::{CodeCache, CodeKey};
pub use hal::module::Compiled;
pub use target::{TARGETS, Target};

use embedded::registered;
use hal::error::{Error, ErrorKind, Result};
use hal::module::LoadOptions;
use std::ffi::{OsString, c_int, c_void};
use std::fmt::Debug;
use std::sync::Arc;

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

// A run-time compiler with an on-disk cache.

/// Compiles, unless the cache has the result of the same compilation. Text that includes other files
/// is always compiled, because those may have changed.
///
/// # Errors
/// The compiler's.
pub fn compile_cached(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
) -> Result<Compiled> {
    compile_with(compiler, cache, compilation, |name| std::env::var_os(name))
}

/// Compiles, unless the cache has the result of the same compilation. For compilations that do not
/// read files, even if their text appears to.
///
/// # Errors
/// The compiler's.
pub fn compile_closed(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
) -> Result<Compiled> {
    let settings = settings(compiler, |name| std::env::var_os(name));
    compile_kept(compiler, cache, compilation, &settings)
}

fn compile_with(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Compiled> {
    let settings = settings(compiler, variable);
    let reads_files = may_read_files(compilation) || settings.contains("include");
    if reads_files {
        return compiler.compile(compilation);
    }
    compile_kept(compiler, cache, compilation, &settings)
}

/// Returns true if a compilation may include files.
pub fn may_read_files(compilation: &Compilation<'_>) -> bool {
    let includes = |text: &str| text.contains("include");
    // A directive may be split over lines; options such as `-include` also include files.
    includes(compilation.text)
        || includes(&compilation.text.replace("\\\r\n", "").replace("\\\n", ""))
        || compilation.options.iter().any(|option| includes(option))
}

fn compile_kept(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
    settings: &str,
) -> Result<Compiled> {
    if cache.folder().is_none() {
        return compiler.compile(compilation);
    }
    let identity = compiler.identity(compilation.target)? + settings;
    let key = CodeKey::new(compilation, &identity);
    if let Some(compiled) = cache.load(&key).and_then(|entry| unpack(&entry)) {
        return Ok(compiled);
    }
    let compiled = compiler.compile(compilation)?;
    cache.store(&key, &pack(&compiled));
    Ok(compiled)
}

/// Returns the environment variables that affect a compiler, as part of the key; empty if none is
/// set.
fn settings(compiler: &dyn Compiler, variable: impl Fn(&str) -> Option<OsString>) -> String {
    let value = |name| variable(name).filter(|value: &OsString| !value.is_empty());
    let set = compiler.variables().iter().filter_map(|name| Some((name, value(name)?)));
    // Quoted, so that one value cannot be taken for two.
    set.map(|(name, value)| format!(", {name}={value:?}")).collect()
}

/// Serialises a result: the number of strings, the length and bytes of each, then the code.
fn pack(compiled: &Compiled) -> Vec<u8> {
    let strings = || std::iter::once(&compiled.log).chain(&compiled.lowered);
    let mut entry = (strings().count() as u64).to_le_bytes().to_vec();
    for string in strings() {
        entry.extend((string.len() as u64).to_le_bytes());
        entry.extend(string.as_bytes());
    }
    entry.extend(&compiled.code);
    entry
}

fn unpack(entry: &[u8]) -> Option<Compiled> {
    fn number(rest: &mut &[u8]) -> Option<usize> {
        let (number, behind) = rest.split_first_chunk::<8>()?;
        *rest = behind;
        usize::try_from(u64::from_le_bytes(*number)).ok()
    }
    let mut rest = entry;
    let mut strings = Vec::new();
    for _ in 0..number(&mut rest)? {
        let length = number(&mut rest)?;
        let (string, behind) = rest.split_at_checked(length)?;
        strings.push(String::from_utf8(string.to_vec()).ok()?);
        rest = behind;
    }
    let mut strings = strings.into_iter();
    Some(Compiled { log: strings.next()?, lowered: strings.collect(), code: rest.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A compiler that returns the text in capitals, and counts its calls.
    #[derive(Debug, Default)]
    struct Capitals(AtomicUsize);

    impl Compiler for Capitals {
        fn identity(&self, target: &str) -> Result<String> {
            Ok(format!("capitals for {target}"))
        }

        fn variables(&self) -> &'static [&'static str] {
            &["CAPITALS_APPEND", "CAPITALS_LINK"]
        }

        fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Compiled {
                code: compilation.text.to_uppercase().into_bytes(),
                log: "a warning".into(),
                lowered: compilation.names.iter().map(|name| format!("_{name}")).collect(),
            })
        }
    }

    #[test]
    fn the_same_compilation_runs_once() {
        let folder = std::env::temp_dir().join(format!("pygpu-compiler-{}", std::process::id()));
        let cache = CodeCache::new(&folder, 1 << 20);
        let compiler = Capitals::default();
        let plain = Compilation { text: "text", names: &["a<b>", "c"], ..Default::default() };
        let compile = |it: &Compilation<'_>| {
            let compiled = compile_cached(&compiler, &cache, it).expect("it compiles");
            assert_eq!(compiled.code, it.text.to_uppercase().into_bytes());
            (compiled, compiler.0.load(Ordering::Relaxed))
        };
        let (compiled, runs) = compile(&plain);
        assert_eq!((compiled.lowered.join(" "), runs), ("_a<b> _c".into(), 1));
        assert_eq!(compile(&plain), (compiled, 1));
        let others = [
            Compilation { text: "other", ..plain },
            Compilation { target: "sm_90", ..plain },
            Compilation { options: &["-G"], ..plain },
            Compilation { options: &["-", "G"], ..plain },
            Compilation { names: &["a<b>c"], ..plain },
            Compilation { headers: true, ..plain },
            Compilation { name: "file.cu", ..plain },
        ];
        for (i, other) in others.iter().enumerate() {
            assert_eq!(compile(other).1, 2 + i, "{other:?}");
            assert_eq!(compile(other).1, 2 + i, "{other:?}");
        }
        std::fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn what_a_compiler_reads_in_the_environment_is_part_of_the_key() {
        let folder = std::env::temp_dir().join(format!("pygpu-variables-{}", std::process::id()));
        let cache = CodeCache::new(&folder, 1 << 20);
        let compiler = Capitals::default();
        let it = Compilation { text: "text", ..Default::default() };
        let runs = |append: &'static str, link: &'static str| {
            let variable = |name: &str| match name {
                "CAPITALS_APPEND" => Some(OsString::from(append)),
                "CAPITALS_LINK" => Some(OsString::from(link)),
                _ => None,
            };
            compile_with(&compiler, &cache, &it, variable).expect("it compiles");
            compiler.0.load(Ordering::Relaxed)
        };
        let settings = [("", ""), ("-O1", ""), ("-O2", ""), ("", "-O2"), ("-O1", "-O2")];
        for (number, (append, link)) in settings.into_iter().enumerate() {
            assert_eq!(runs(append, link), number + 1, "{append:?} {link:?}");
        }
        for (append, link) in settings {
            assert_eq!(runs(append, link), settings.len(), "{append:?} {link:?} is kept");
        }
        // Compilations whose options include files are never cached.
        assert_eq!(runs("-include a.h", ""), settings.len() + 1);
        assert_eq!(runs("-include a.h", ""), settings.len() + 2);
        std::fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn what_reads_files_is_compiled_each_time() {
        let folder = std::env::temp_dir().join(format!("pygpu-include-{}", std::process::id()));
        let cache = CodeCache::new(&folder, 1 << 20);
        let compiler = Capitals::default();
        for text in ["# include <a.h>", "#inc\\\nlude <a.h>", "#inc\\\r\nlude <a.h>"] {
            let before = compiler.0.load(Ordering::Relaxed);
            for _ in 0..2 {
                let it = Compilation { text, ..Default::default() };
                compile_cached(&compiler, &cache, &it).expect("it compiles");
            }
            assert_eq!(compiler.0.load(Ordering::Relaxed), before + 2, "{text}");
        }
        assert!(!folder.exists());
    }

    #[test]
    fn entries_of_another_form_are_none() {
        let compiled = Compiled { code: vec![1, 2], log: "x".into(), lowered: vec!["y".into()] };
        let entry = pack(&compiled);
        assert_eq!(unpack(&entry), Some(compiled));
        assert_eq!(unpack(&entry[..20]), None);
        assert_eq!(unpack(&[0xff; 40]), None);
        assert_eq!(unpack(&[0; 8]), None);
    }
}
