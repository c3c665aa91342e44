//! hipRTC, found at run time when the program first compiles a kernel.
//!
//! If `PYGPU_HIPRTC` is set, only that file is tried. Otherwise hipRTC comes from the first of: `libhiprtc.so` in
//! the HIP runtime's folder, the runtime itself (it contains hipRTC in ROCm 5), the loader's folders, `ROCM_PATH`,
//! `HIP_PATH` and `/opt/rocm`, and the directories of [`hal::library::add_search_directory`]. It works without a
//! GPU.
//!
//! Options may have the names that NVIDIA's compilers use if clang has an equivalent; `options.rs` lists them.

use crate::abi::Abi;
use crate::bindings as sys;
use crate::comgr::Comgr;
use crate::options::{translate, unit};
use crate::search::{COMPILER_VARIABLE, SearchPaths};
use codegen::compile::program::ProgramCalls;
use codegen::compile::{Compilation, Compiled, Compiler};
use hal::library::{Library, Search};
use hal::poison::Unpoisoned as _;
use hal::process::ProcessMutex;
use hal::{Api, Error, ErrorKind, Result};
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Program = sys::_hiprtcProgram;

/// Held during a compilation: hipRTC of ROCm 5 crashes if the first two compilations run concurrently.
static COMPILING: ProcessMutex<()> = ProcessMutex::new(|| ());

/// The name under which every text is compiled. hipRTC of ROCm 6 and 7 writes the text to a file of this name in its
/// own folder; a name with `..` would lead out of it. The text itself sets the name that messages use.
const FILE: &str = "CompileSource";

/// The default language standard, the same as NVRTC's; hipRTC's own default is older.
const LANGUAGE: &str = "-std=c++17";

/// Allows narrowing conversions in braced initialisers, as NVIDIA's compilers do.
const NARROWING: &str = "-Wno-c++11-narrowing";

/// CUDA programs pass values that only some lanes have set, as in `if (lane == leader) first = atomicAdd(...); first
/// = __shfl_sync(mask, first, leader);`. Passing an unset argument is undefined behaviour in C++, so clang would
/// assume that the condition is always true. These options turn off the analysis that leads to this assumption.
const UNSET_ARGUMENTS: [&str; 2] = ["-Xclang", "-no-enable-noundef-analysis"];

/// The option that names the architecture.
const ARCHITECTURE_OPTION: &str = "--offload-arch=";

/// The hipRTC for the devices of one HIP runtime.
#[derive(Debug)]
pub struct Hiprtc {
    /// The file of the runtime.
    driver: Option<PathBuf>,
    found: Mutex<Option<Arc<LoadedHiprtc>>>,
}

impl Hiprtc {
    /// Creates the compiler for the runtime in a file, if that is known. Opens no library yet.
    pub fn new(driver: Option<PathBuf>) -> Hiprtc {
        Hiprtc { driver, found: Mutex::new(None) }
    }

    /// Returns the file of the compiler.
    ///
    /// # Errors
    /// `Unsupported`, saying what to install, if hipRTC is not found.
    pub fn file(&self) -> Result<PathBuf> {
        self.find().map(|found| found.file.clone())
    }

    /// Returns hipRTC. Failures are not cached: hipRTC may be installed while the program runs.
    fn find(&self) -> Result<Arc<LoadedHiprtc>> {
        let mut found = self.found.lock().unpoisoned();
        if let Some(known) = &*found {
            return Ok(known.clone());
        }
        let paths = SearchPaths::of_environment();
        let search = Search::new("hipRTC")
            .kind(ErrorKind::Unsupported)
            .explicit(COMPILER_VARIABLE, paths.compiler.clone())
            .candidates(paths.compilers(self.driver.as_deref()))
            .advice(paths.advice("hipRTC", COMPILER_VARIABLE));
        // SAFETY: the names are AMD's libraries, or the user chose the file.
        let new = Arc::new(unsafe { search.open(LoadedHiprtc::load) }?);
        log::debug!("{} in {} compiles", new.identity(), new.file.display());
        *found = Some(new.clone());
        Ok(new)
    }
}

impl Compiler for Hiprtc {
    fn identity(&self, target: &str) -> Result<String> {
        check(target)?;
        Ok(self.find()?.identity())
    }

    fn variables(&self) -> &'static [&'static str] {
        &["HIPRTC_COMPILE_OPTIONS_APPEND", "HIPRTC_LINK_OPTIONS_APPEND"]
    }

    fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled> {
        check(compilation.target)?;
        let found = self.find()?;
        let given = translate(compilation.options);
        let mut own = UNSET_ARGUMENTS.map(str::to_owned).to_vec();
        own.push(NARROWING.to_owned());
        let mut targets: Vec<_> =
            given.iter().filter_map(|it| it.strip_prefix(ARCHITECTURE_OPTION)).collect();
        if targets.is_empty() {
            own.push(format!("{ARCHITECTURE_OPTION}{}", compilation.target));
            targets.push(compilation.target);
        }
        for target in targets {
            check(target)?;
            found.check(target)?;
        }
        if !given.iter().any(|it| it.starts_with("-std=")) {
            own.push(LANGUAGE.to_owned());
        }
        if compilation.headers {
            let folder = SearchPaths::of_environment().headers(&found.file);
            own.extend(folder.map(|folder| format!("-I{}", folder.display())));
        }
        let options: Vec<&str> = own.iter().chain(&given).map(String::as_str).collect();
        let text = &unit(compilation.name, compilation.options, compilation.text);
        let compilation = &Compilation { text, name: FILE, ..*compilation };
        let _compiling = COMPILING.lock();
        as_known(&options, |options| found.calls.compile(compilation, options))
    }
}

/// Compiles with options that begin with [`UNSET_ARGUMENTS`]. A compiler that does not know these options does not
/// make the analysis either, and is called without them.
fn as_known<T>(options: &[&str], compile: impl Fn(&[&str]) -> Result<T>) -> Result<T> {
    compile(options).or_else(|error| match error.detail().contains(UNSET_ARGUMENTS[1]) {
        true => compile(&options[UNSET_ARGUMENTS.len()..]),
        false => Err(error),
    })
}

/// Returns true for an AMD target: `gfx`, digits and letters, and features with a sign each.
pub(crate) fn is_target(target: &str) -> bool {
    let mut parts = target.split(':');
    let name = parts.next().and_then(|it| it.strip_prefix("gfx")).unwrap_or_default();
    let is_name = !name.is_empty()
        && name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
    let is_feature = |part: &str| {
        let feature = part.strip_suffix(['+', '-']).unwrap_or_default();
        !feature.is_empty() && feature.bytes().all(|it| it.is_ascii_lowercase())
    };
    is_name && parts.all(is_feature)
}

/// Returns an error for anything but an AMD target.
fn check(target: &str) -> Result<()> {
    if is_target(target) {
        return Ok(());
    }
    Err(Error::invalid(
        "compile",
        format!(
            "target is {target:?}; allowed are gfx and a number, then features, as in \
             gfx1030 and gfx90a:sramecc+:xnack-"
        ),
    ))
}

/// An opened hipRTC.
#[derive(Debug)]
struct LoadedHiprtc {
    calls: ProgramCalls<Program>,
    file: PathBuf,
    version: (c_int, c_int),
    comgr: Option<Comgr>,
}

impl LoadedHiprtc {
    fn load(library: Library) -> Result<LoadedHiprtc> {
        let mut symbols = library.symbols();
        // SAFETY: the types are checked against the bindings below.
        let calls = unsafe { ProgramCalls::find(&mut symbols, Api::Hiprtc, "hiprtc", &["Code"])? };
        let version = calls.version()?;
        let file = library.file("hiprtcVersion").unwrap_or_else(|| library.path().to_owned());
        let comgr = Comgr::beside(&file);
        Ok(LoadedHiprtc { calls, file, version, comgr })
    }

    /// Returns a description for messages. hipRTC reports version 9.0 in every generation, so this uses its file and
    /// the library that it compiles with.
    fn identity(&self) -> String {
        let real = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::metadata(&real).map_or(0, |it| it.len());
        let comgr = match self.comgr.as_ref().map(Comgr::version) {
            Some((major, minor)) => format!(", comgr {major}.{minor}"),
            None => String::new(),
        };
        format!("hipRTC {}.{} ({name}, {bytes} bytes{comgr})", self.version.0, self.version.1)
    }

    /// Returns an error for a target that this hipRTC cannot compile for.
    fn check(&self, target: &str) -> Result<()> {
        match &self.comgr {
            Some(comgr) if !comgr.knows(target) => {
                let (identity, file) = (self.identity(), self.file.display());
                let detail = format!("{identity} in {file} makes no code for {target}");
                Err(Error::unsupported("compile", detail))
            }
            _ => Ok(()),
        }
    }
}

codegen::check_program_calls! {
    Abi, Program, "C";
    version: sys::hiprtcVersion, create: sys::hiprtcCreateProgram,
    destroy: sys::hiprtcDestroyProgram, compile: sys::hiprtcCompileProgram,
    add_name: sys::hiprtcAddNameExpression, lowered_name: sys::hiprtcGetLoweredName,
    error_string: sys::hiprtcGetErrorString,
    sizes: [sys::hiprtcGetProgramLogSize, sys::hiprtcGetCodeSize],
    outputs: [sys::hiprtcGetProgramLog, sys::hiprtcGetCode],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_from_before_an_option_are_not_given_it() {
        let [first, second] = UNSET_ARGUMENTS;
        let given = [first, second, "-O3"];
        let of_old = |options: &[&str]| match options {
            ["-O3"] => Ok("compiled"),
            _ => Err(Error::invalid("compile", format!("error: unknown argument: '{second}'"))),
        };
        assert_eq!(as_known(&given, of_old).expect("the second try"), "compiled");
        let broken = |_: &[&str]| Err::<(), _>(Error::invalid("compile", "error: expected ';'"));
        assert_eq!(
            as_known(&given, broken).expect_err("no second try").detail(),
            "error: expected ';'"
        );
    }

    #[test]
    fn targets_have_a_number_and_features_with_signs() {
        for target in
            ["gfx90a", "gfx1030", "gfx90a:xnack-", "gfx942:sramecc+:xnack-", "gfx9-generic"]
        {
            check(target).expect(target);
        }
        for target in [
            "",
            "gfx",
            "sm_90",
            "gfx90a:",
            "gfx90a:xnack",
            "gfx90a:+",
            "GFX90A",
            "gfx90a -g",
            "gfx9\0",
        ] {
            let error = check(target).expect_err(target);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.detail().contains(&format!("{target:?}")), "{error}");
        }
    }
}
