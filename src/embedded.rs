//! What this build carries: code compiled ahead of time, and the backend that is tried first.

use crate::Choice;
use codegen::compile::embedded::{self, EmbeddedTarget};

// TARGETS and PREFERRED, by the build script.
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// How this library was built.
///
/// A line for a program's `--version`, and the backend that it opens first:
///
/// ```
/// # fn main() -> gpuarray::Result<()> {
/// let info = gpuarray::build_info();
/// println!("{} targets, prefers {}", info.targets.len(), info.default_backend);
/// assert!(gpuarray::open(info.default_backend).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BuildInfo {
    /// The devices that builtin operations were compiled for ahead of time, in the order of
    /// `PYBIND_GPU_TARGET`: for each its name, the compiler, the number of kernels and of
    /// bytes.
    pub targets: &'static [EmbeddedTarget],
    /// The backend that [`Choice::Auto`] tries first: that of `PYBIND_GPU_PREFERRED_BACKEND`,
    /// else of the first target; [`Choice::Auto`] itself without either.
    pub default_backend: Choice,
}

/// Returns how this library was built. Opens nothing.
pub fn build_info() -> BuildInfo {
    BuildInfo { targets: TARGETS, default_backend: PREFERRED }
}

/// Makes the code known to devices that are opened from now on.
pub(crate) fn register() {
    embedded::register(TARGETS);
}
