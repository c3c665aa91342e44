//! The same as `targets.rs` in a build without the feature `aot`, which compiles for no target.

use super::environment::Environment;
use super::{Built, TARGET_VARIABLE};
use std::path::Path;

/// No targets.
#[derive(Debug)]
pub(crate) struct Targets;

impl Targets {
    /// Reads the variable.
    ///
    /// # Errors
    /// A line that names the feature if the variable names targets.
    pub(crate) fn requested(environment: &Environment) -> Result<Targets, String> {
        let list = environment.variable(TARGET_VARIABLE).unwrap_or_default();
        match list.to_string_lossy().trim() {
            "" => Ok(Targets),
            list => Err(format!(
                "{TARGET_VARIABLE} is {list:?}, but this build compiles nothing ahead of time; \
                 enable the feature aot of gpuarray, or unset {TARGET_VARIABLE}"
            )),
        }
    }

    pub(crate) fn backend(&self) -> Option<&'static str> {
        None
    }

    pub(crate) fn build(&self, _: &Environment, _: &Path) -> Result<Built, String> {
        Ok(Built::default())
    }
}
