//! NVRTC, found at run time when the program first compiles a kernel.
//!
//! If `PYGPU_NVRTC` is set, only that file is tried. Otherwise NVRTC comes from the first of: the
//! colon-separated folders in `PYGPU_NVRTC_PATH` (library folders or Python package folders), the
//! loader's folders, the CUDA toolkits in `CUDA_HOME`, `CUDA_PATH` and `/usr/local/cuda`, and the
//! directories of [`hal::library::add_search_directory`]. A version whose code the driver could not
//! load is the last resort: a later major version than the driver, or a later minor version that
//! can only make PTX for the device.

use crate::abi::Abi;
use codegen::compile::cuda_search::{self, SearchPaths};
use codegen::compile::program::ProgramCalls;
use codegen::compile::{Compilation, Compiled, Compiler};
use cudarc::nvrtc::sys;
use driver::abi::check_function;
use hal::library::{Library, Search};
use hal::poison::Unpoisoned as _;
use hal::{Api, Error, ErrorKind, Result};
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Program = sys::_nvrtcProgram;

/// Output formats, preferred first.
const OUTPUTS: &[&str] = &[CUBIN, "PTX"];
const CUBIN: &str = "CUBIN";

/// The architectures that every NVRTC without `nvrtcGetSupportedArchs` (before 11.2) supports.
const ASSUMED_ARCHITECTURES: &[c_int] = &[50, 52, 53, 60, 61, 62, 70, 72, 75];

/// The NVRTC compilers for the devices of one driver.
#[derive(Debug)]
pub struct Nvrtc {
    /// The driver's major and minor version; zeros if unknown.
    driver: (c_int, c_int),
    /// The libraries found so far, each with the architecture that it was found for.
    found: Mutex<Vec<(c_int, Arc<LoadedNvrtc>)>>,
}

impl Nvrtc {
    /// Creates the compilers for a driver of this version, encoded like `cuDriverGetVersion` (12080
    /// is 12.8; 0 if unknown). Opens no library yet.
    pub fn new(driver_version: i32) -> Nvrtc {
        let driver = (driver_version / 1000, driver_version % 1000 / 10);
        Nvrtc { driver, found: Mutex::new(Vec::new()) }
    }

    /// Returns the file of the NVRTC that compiles for a target.
    ///
    /// # Errors
    /// The errors of [`Compiler::identity`].
    pub fn file(&self, target: &str) -> Result<PathBuf> {
        self.find(number(target)?).map(|found| found.file.clone())
    }

    /// Returns the NVRTC for an architecture. Failures are not cached: NVRTC may be installed while
    /// the program runs.
    fn find(&self, architecture: c_int) -> Result<Arc<LoadedNvrtc>> {
        let mut found = self.found.lock().unpoisoned();
        if let Some((_, known)) = found.iter().find(|(it, _)| *it == architecture) {
            return Ok(known.clone());
        }
        let new = Arc::new(LoadedNvrtc::search(
            &SearchPaths::of_environment(),
            self.driver,
            architecture,
        )?);
        log::debug!("{} in {} compiles for sm_{architecture}", new.identity(), new.file.display());
        found.push((architecture, new.clone()));
        Ok(new)
    }
}

impl Compiler for Nvrtc {
    fn identity(&self, target: &str) -> Result<String> {
        self.find(number(target)?).map(|found| found.identity())
    }

    fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled> {
        let number = number(compilation.target)?;
        let found = self.find(number)?;
        let mut own = Vec::new();
        if !compilation.options.iter().any(|it| is_architecture(it)) {
            let architecture = found.architecture(compilation.target, number)?;
            own.push(format!("--gpu-architecture={architecture}"));
        }
        if compilation.headers {
            let folders = SearchPaths::of_environment().headers(&found.file);
            own.extend(folders.iter().map(|folder| format!("-I{}", folder.display())));
        }
        let own = own.iter().map(String::as_str);
        let options: Vec<&str> = own.chain(compilation.options.iter().copied()).collect();
        found.calls.compile(compilation, &options)
    }
}

/// Returns true for an option that names the architecture, as a part of the option or in the next one.
fn is_architecture(option: &str) -> bool {
    matches!(option.split('=').next(), Some("-arch" | "--gpu-architecture"))
}

/// Returns the number in `sm_90` or `sm_90a`.
fn number(target: &str) -> Result<c_int> {
    let digits = target.strip_prefix("sm_").map(|it| it.trim_end_matches(['a', 'f']));
    digits.and_then(|it| it.parse().ok()).filter(|it| *it > 0).ok_or_else(|| {
        Error::invalid(
            "compile",
            format!("target is {target:?}; allowed are sm_ and a number, as in sm_90"),
        )
    })
}

/// An opened NVRTC library.
#[derive(Debug)]
struct LoadedNvrtc {
    calls: ProgramCalls<Program>,
    file: PathBuf,
    version: (c_int, c_int),
    /// The supported architectures, in ascending order.
    architectures: Vec<c_int>,
}

impl LoadedNvrtc {
    fn search(
        paths: &SearchPaths,
        driver: (c_int, c_int),
        architecture: c_int,
    ) -> Result<LoadedNvrtc> {
        let mut last_resort = None;
        let search = Search::new("NVRTC")
            .kind(ErrorKind::Unsupported)
            .explicit(cuda_search::FILE_VARIABLE, paths.file.clone())
            .candidates(paths.candidates(driver.0))
            .advice(paths.advice(driver.0));
        let accept = |library: Library| {
            let found = LoadedNvrtc::load(library)?;
            if paths.file.is_some() {
                return Ok(found);
            }
            found.virtual_architecture(architecture)?;
            let (major, minor) = found.version;
            let newer =
                if found.knows(architecture) { major > driver.0 } else { found.version > driver };
            if driver.0 > 0 && newer {
                last_resort.get_or_insert(found);
                let detail =
                    format!("{major}.{minor} is newer than the driver's {}.{}", driver.0, driver.1);
                return Err(Error::unsupported("compile", detail));
            }
            Ok(found)
        };
        // SAFETY: NVRTC's initialisers do not have preconditions, and the search opens no other
        // library.
        let result = unsafe { search.open(accept) };
        result.or_else(|error| {
            let found = last_resort.ok_or(error)?;
            let (identity, file) = (found.identity(), found.file.display());
            log::warn!("{identity} in {file} may be too new for the driver; there is no other");
            Ok(found)
        })
    }

    fn load(library: Library) -> Result<LoadedNvrtc> {
        let mut symbols = library.symbols();
        // SAFETY: the types are checked against the declarations in `sys` below.
        let (calls, count, list) = unsafe {
            (
                ProgramCalls::find(&mut symbols, Api::Nvrtc, "nvrtc", OUTPUTS)?,
                symbols.optional::<Numbers>("nvrtcGetNumSupportedArchs"),
                symbols.optional::<Numbers>("nvrtcGetSupportedArchs"),
            )
        };
        let version = calls.version()?;
        let mut architectures = ASSUMED_ARCHITECTURES.to_vec();
        if let (Some(count), Some(list)) = (count, list) {
            let mut length = 0;
            // SAFETY: the pointer is valid.
            if unsafe { count(&mut length) } == 0 && (1..1000).contains(&length) {
                let mut numbers = vec![0; length as usize];
                // SAFETY: the buffer has the length that NVRTC returned.
                if unsafe { list(numbers.as_mut_ptr()) } == 0 {
                    architectures = numbers;
                }
            }
        }
        architectures.sort_unstable();
        let file = library.file("nvrtcVersion").unwrap_or_else(|| library.path().to_owned());
        Ok(LoadedNvrtc { calls, file, version, architectures })
    }

    fn identity(&self) -> String {
        format!("NVRTC {}.{}", self.version.0, self.version.1)
    }

    /// Returns true if this NVRTC makes device code for exactly this architecture.
    fn knows(&self, number: c_int) -> bool {
        self.architectures.contains(&number) && self.calls.has_output(CUBIN)
    }

    /// Returns the target if this NVRTC compiles device code for it. Otherwise returns the virtual
    /// architecture: the driver compiles its PTX for the device.
    fn architecture(&self, target: &str, number: c_int) -> Result<String> {
        if self.knows(number) {
            return Ok(target.to_owned());
        }
        self.virtual_architecture(number).map(|it| format!("compute_{it}"))
    }

    /// Returns the latest supported architecture that is not newer than the device's.
    fn virtual_architecture(&self, number: c_int) -> Result<c_int> {
        let usable = self.architectures.iter().rev().find(|it| **it <= number);
        usable.copied().ok_or_else(|| {
            let oldest = self.architectures.first().copied().unwrap_or_default();
            let (identity, file) = (self.identity(), self.file.display());
            let detail = format!("{identity} in {file} has sm_{oldest} and later, not sm_{number}");
            Error::unsupported("compile", detail)
        })
    }
}

/// `nvrtcGetNumSupportedArchs` and `nvrtcGetSupportedArchs`.
type Numbers = unsafe extern "C" fn(*mut c_int) -> c_int;

codegen::check_program_calls! {
    Abi, Program, "Rust";
    version: sys::nvrtcVersion, create: sys::nvrtcCreateProgram,
    destroy: sys::nvrtcDestroyProgram, compile: sys::nvrtcCompileProgram,
    add_name: sys::nvrtcAddNameExpression, lowered_name: sys::nvrtcGetLoweredName,
    error_string: sys::nvrtcGetErrorString,
    sizes: [sys::nvrtcGetProgramLogSize, sys::nvrtcGetCUBINSize, sys::nvrtcGetPTXSize],
    outputs: [sys::nvrtcGetProgramLog, sys::nvrtcGetCUBIN, sys::nvrtcGetPTX],
}

const _: () = {
    type Declaration = unsafe fn(*mut c_int) -> sys::nvrtcResult;
    check_function::<Abi, Numbers, Declaration>(sys::nvrtcGetNumSupportedArchs);
    check_function::<Abi, Numbers, Declaration>(sys::nvrtcGetSupportedArchs);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_numbers() {
        for (target, expected) in [("sm_75", 75), ("sm_90a", 90), ("sm_103f", 103)] {
            assert_eq!(number(target).expect(target), expected);
        }
        for target in
            ["", "sm_", "90", "sm_-1", "sm_0", "compute_90", "gfx90a:xnack-", "sm_99999999999"]
        {
            let error = number(target).expect_err(target);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.detail().contains(&format!("{target:?}")), "{error}");
        }
    }

    #[test]
    fn options_that_give_the_architecture_are_known() {
        for option in
            ["-arch", "-arch=sm_90", "--gpu-architecture", "--gpu-architecture=compute_80"]
        {
            assert!(is_architecture(option), "{option}");
        }
        for option in ["-architecture=x", "-DX=-arch", "--std=c++14", ""] {
            assert!(!is_architecture(option), "{option}");
        }
    }
}
