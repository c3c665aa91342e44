//! The build script: turns `PYBIND_GPU_TARGET` and `PYBIND_GPU_PREFERRED_BACKEND` into the file that
//! `src/embedded.rs` includes.

#[cfg(feature = "aot")]
pub(crate) mod compiler;
#[cfg_attr(
    not(feature = "aot"),
    allow(dead_code, reason = "only the search for compilers looks for folders and programs")
)]
pub(crate) mod environment;
#[cfg_attr(not(feature = "aot"), path = "without_targets.rs")]
pub(crate) mod targets;
#[cfg(feature = "aot")]
pub(crate) mod units;

use environment::Environment;
use std::fs;
use std::path::Path;
use targets::Targets;

/// The variable with the targets.
pub(crate) const TARGET_VARIABLE: &str = "PYBIND_GPU_TARGET";

/// The variable with the backend that is tried first.
pub(crate) const PREFERRED_VARIABLE: &str = "PYBIND_GPU_PREFERRED_BACKEND";

/// Reads the variables, compiles, and writes the files that the facade includes to `OUT_DIR`:
/// `code0.bin` and so on, and `embedded.rs`. Returns warnings.
///
/// # Errors
/// One line with the reason and the remedy.
pub(crate) fn run(environment: &Environment) -> Result<Vec<String>, String> {
    let targets = Targets::requested(environment)?;
    let preferred = preferred(environment, targets.backend())?;
    let out = environment.variable("OUT_DIR").ok_or("OUT_DIR is not set; cargo sets it")?;
    let out = Path::new(&out);
    let built = targets.build(environment, out)?;
    let text = format!(
        "{}static TARGETS: &[EmbeddedTarget] = &[\n{}];\n\npub(crate) const PREFERRED: Choice = \
         Choice::{preferred};\n",
        built.code, built.rows
    );
    let path = out.join("embedded.rs");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(built.warnings)
}

/// Returns the facade's `Choice` that is tried first: the variable's, or the first target's.
pub(crate) fn preferred(
    environment: &Environment,
    first_target: Option<&'static str>,
) -> Result<&'static str, String> {
    let text = environment.variable(PREFERRED_VARIABLE).unwrap_or_default();
    match text.to_string_lossy().trim() {
        "" => Ok(first_target.unwrap_or("Auto")),
        name if name.eq_ignore_ascii_case("cuda") => Ok("Cuda"),
        name if name.eq_ignore_ascii_case("rocm") => Ok("Hip"),
        name => {
            Err(format!("{PREFERRED_VARIABLE} is {name:?}; allowed are CUDA and ROCM, or unset it"))
        }
    }
}

/// The result of the build.
#[derive(Debug, Default)]
pub(crate) struct Built {
    /// The rows of the facade's table of embedded targets, in Rust.
    pub(crate) rows: String,
    /// The definitions of the code that the rows name, in Rust.
    pub(crate) code: String,
    pub(crate) warnings: Vec<String>,
}
