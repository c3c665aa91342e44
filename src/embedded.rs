//! The operations that this build contains as compiled code, and the backend that is tried first.

use crate::choice::Choice;
use codegen::compile::embedded::{self, EmbeddedTarget};

// The build script defines TARGETS and PREFERRED.
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Describes how this library was built.
///
/// For example, a line for a program's `--version`, and the backend that this build opens first:
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
    /// `PYBIND_GPU_TARGET`, each with its name, compiler, number of kernels and number of bytes.
    pub targets: &'static [EmbeddedTarget],
    /// The backend that [`Choice::Auto`] tries first: the one in `PYBIND_GPU_PREFERRED_BACKEND`,
    /// else the backend of the first target. [`Choice::Auto`] itself if the build set neither.
    pub default_backend: Choice,
}

/// Returns how this library was built. Opens no backend.
pub fn build_info() -> BuildInfo {
    BuildInfo { targets: TARGETS, default_backend: PREFERRED }
}

/// Registers the embedded code for devices that are opened after this call.
pub(crate) fn register() {
    embedded::register(TARGETS);
}
