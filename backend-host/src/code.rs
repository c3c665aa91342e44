//! The loaded code of a module, and the same code with checks.

use crate::compile::{self, ModuleText};
use crate::device::HostDevice;
use hal::checking::Checks;
use hal::process::ProcessMutex;
use hal::{Error, Result};
use host_executor::Library;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A library whose variables are device memory while it is loaded.
pub(crate) struct LoadedCode {
    device: Arc<HostDevice>,
    pub(crate) library: Arc<Library>,
    checked: CheckedCode,
}

impl fmt::Debug for LoadedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.library.fmt(f)
    }
}

impl LoadedCode {
    pub(crate) fn new(
        device: Arc<HostDevice>,
        library: Arc<Library>,
        text: Option<ModuleText>,
    ) -> Arc<LoadedCode> {
        let mut variables = device.variables().lock();
        variables.extend(library.variables());
        drop(variables);
        Arc::new(LoadedCode { device, library, checked: CheckedCode::new(text) })
    }

    pub(crate) fn device(&self) -> &Arc<HostDevice> {
        &self.device
    }

    /// Returns the same code with checks.
    pub(crate) fn checked(&self) -> &CheckedCode {
        &self.checked
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        let mut variables = self.device.variables().lock();
        for (address, _) in self.library.variables() {
            variables.remove(&address);
        }
    }
}

/// The number of launches of a kernel that count as its first ones. The second launch starts with the data
/// that the first one left.
const FIRST_LAUNCHES: u32 = 2;

/// The checked code of a module.
#[derive(Debug)]
pub(crate) struct CheckedCode {
    text: Option<ModuleText>,
    compiled: OnceLock<Result<Arc<Library>>>,
    /// The number of checked launches of each kernel, while only first launches are checked.
    launches: ProcessMutex<HashMap<String, u32>>,
    /// Held while the variables of the second library are in use.
    pub(crate) variables: ProcessMutex<()>,
}

impl CheckedCode {
    pub(crate) fn new(text: Option<ModuleText>) -> CheckedCode {
        let (compiled, launches) = (OnceLock::new(), ProcessMutex::default());
        CheckedCode { text, compiled, launches, variables: ProcessMutex::default() }
    }

    /// Returns true if a launch of this kernel is checked.
    pub(crate) fn looks(&self, checks: Checks, kernel: &str) -> bool {
        if checks.are_lasting() {
            return true;
        }
        if self.text.is_none() {
            return false;
        }
        self.launches.lock().get(kernel).is_none_or(|&count| count < FIRST_LAUNCHES)
    }

    /// Counts a checked launch of a kernel.
    pub(crate) fn count(&self, kernel: &str) {
        let mut launches = self.launches.lock();
        let count = launches.entry(kernel.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns the library with checks, for a module whose own library does not have them.
    pub(crate) fn library(&self) -> Result<&Arc<Library>> {
        let compile = || {
            let Some(ModuleText { text, name, options }) = &self.text else {
                return Err(Error::unsupported(
                    "launch",
                    "the module's code has no checks, and its image does not hold the text to compile \
                     it again; compile it while checks are enabled",
                ));
            };
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let compiled = compile::compile(text, name, &options, true)?;
            // SAFETY: the caller that loaded the module trusts this text.
            unsafe { Library::load(&compiled.code) }.map_err(compile::error)
        };
        self.compiled.get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}
