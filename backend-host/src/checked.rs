//! Checked launches of kernels, and the code that they need.
//!
//! A module that is compiled while checks are enabled contains them. Any other module is compiled again, from
//! the text in its image, for its first checked launch. Before each launch, the variables of that second
//! library are set to the values of the first one; afterwards the values that the kernel wrote are copied
//! back.

use crate::compile;
use crate::device::HostDevice;
use crate::kernel::{self, Arguments};
use crate::module::LoadedCode;
use hal::checking::{self, Checks};
use hal::process::ProcessMutex;
use hal::{Error, Parameter, Result};
use host_executor::{Allocation, Library, Memory, Shape};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The source, name and options that a module was compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModuleText {
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) options: Vec<String>,
}

/// The mark at the end of an image that contains its text.
const MARK: &[u8; 16] = b"gpuarray's text\n";

impl ModuleText {
    /// Appends the text to a library, where loaders do not read it.
    pub(crate) fn append(&self, image: &mut Vec<u8>) {
        let start = image.len();
        let parts = [&self.text, &self.name].into_iter().chain(&self.options);
        for part in parts {
            image.extend((part.len() as u64).to_le_bytes());
            image.extend(part.as_bytes());
        }
        image.extend(((image.len() - start) as u64).to_le_bytes());
        image.extend(MARK);
    }

    /// Returns the text in an image, if it contains one.
    pub(crate) fn of(image: &[u8]) -> Option<ModuleText> {
        let image = image.strip_suffix(MARK)?;
        let (image, bytes) = image.split_last_chunk()?;
        let bytes = usize::try_from(u64::from_le_bytes(*bytes)).ok()?;
        let mut rest = image.get(image.len().checked_sub(bytes)?..)?;
        let mut parts = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            parts.push(String::from_utf8(behind.get(..length)?.to_vec()).ok()?);
            rest = &behind[length..];
        }
        let mut parts = parts.into_iter();
        Some(ModuleText { text: parts.next()?, name: parts.next()?, options: parts.collect() })
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
    variables: ProcessMutex<()>,
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
    fn count(&self, kernel: &str) {
        let mut launches = self.launches.lock();
        let count = launches.entry(kernel.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns the library with checks, for a module whose own library does not have them.
    fn library(&self) -> Result<&Arc<Library>> {
        let compile = || {
            let Some(ModuleText { text, name, options }) = &self.text else {
                return Err(Error::unsupported(
                    "launch",
                    "the module's code has no checks, and its image does not hold the text to compile \
                     it again; compile it while something is looked for",
                ));
            };
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let compiled = compile::compile(text, name, &options, true)?;
            // SAFETY: the code that loaded the module has trusted this text.
            unsafe { Library::load(&compiled.code) }.map_err(compile::error)
        };
        self.compiled.get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}

/// The parameters of a checked launch, in addition to its arguments.
#[derive(Clone, Debug)]
pub(crate) struct CheckedLaunch {
    pub(crate) checks: Checks,
    pub(crate) shape: Shape,
    pub(crate) shared_bytes: u32,
    pub(crate) parameters: Vec<Parameter>,
}

/// Runs a kernel with checks on the calling thread.
///
/// # Errors
/// `LaunchFailed` with a description of the finding, or the compiler's errors if the code is compiled for
/// this launch.
///
/// # Safety
/// The same as for [`kernel::run`].
pub(crate) unsafe fn run(
    code: &LoadedCode,
    kernel: &host_executor::Kernel,
    launch: &CheckedLaunch,
    arguments: &[*mut c_void],
) -> Result<()> {
    let is_own = code.library.is_checked();
    let library = if is_own { &code.library } else { code.checked().library()? };
    let name = kernel.name();
    if !launch.checks.are_lasting() {
        code.checked().count(name);
    }
    let found = host_executor::Kernel::find(library, name);
    let kernel = found.ok_or_else(|| {
        Error::unsupported("launch", format!("kernel {name} is not in the module's text"))
    })?;
    let checking = host_executor::Checking {
        checks: kinds(launch.checks),
        memory: &DeviceMemory(code.device()),
        shared_bytes: launch.shared_bytes,
    };
    // Aligned for the parameters' types; the program's own copies need not be.
    // SAFETY: the caller's promise.
    let copied = unsafe { Arguments::copy(&launch.parameters, arguments) };
    let pointers = copied.pointers();
    let run = || {
        kernel::interruptibly("", |is_interrupted| {
            let is_interrupted = is_interrupted.unwrap_or(&|| false);
            // SAFETY: the caller's promise.
            unsafe { kernel.launch_checked(&launch.shape, &checking, &pointers, is_interrupted) }
        })
    };
    match is_own {
        true => run(),
        false => {
            let _own = code.checked().variables.lock();
            // SAFETY: the lock keeps other launches away, and the program has ordered its uses of the
            // module's variables around this launch.
            unsafe {
                let taken = library.take_variables(&code.library);
                let result = run();
                library.give_variables(&code.library, &taken);
                result
            }
        }
    }
}

fn kinds(checks: Checks) -> host_executor::Checks {
    host_executor::Checks {
        bounds: checks.contains(Checks::BOUNDS),
        uninitialised: checks.contains(Checks::UNINITIALISED),
        races: checks.contains(Checks::RACES),
        barriers: checks.contains(Checks::BARRIERS),
        arithmetic: checks.contains(Checks::ARITHMETIC),
    }
}

/// Access to the device's memory for the checks.
struct DeviceMemory<'a>(&'a HostDevice);

impl Memory for DeviceMemory<'_> {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        let address = address as u64;
        let texture = || self.0.textures().object(address);
        let (start, bytes) = self.0.allocation(address).or_else(texture)?;
        Some(start as usize..start as usize + bytes)
    }

    fn nearest(&self, address: usize) -> Option<Allocation> {
        let known = checking::nearest(address as u64);
        let known = known.map(|it| Allocation {
            range: it.range.start as usize..it.range.end as usize,
            is_live: !it.is_freed,
            description: it.text,
        });
        if known.as_ref().is_some_and(|it| it.range.contains(&address)) {
            return known;
        }
        let live = self.live(address).map(|range| Allocation {
            range,
            is_live: true,
            description: "memory that was allocated without checks".to_owned(),
        });
        live.or(known)
    }
}

#[cfg(test)]
mod tests {
    use super::ModuleText;

    #[test]
    fn an_image_holds_its_text() {
        let text = ModuleText {
            text: "__global__ void f() {}".to_owned(),
            name: String::new(),
            options: vec!["-DX".to_owned(), "-w".to_owned()],
        };
        let mut image = b"library".to_vec();
        assert_eq!(ModuleText::of(&image), None);
        text.append(&mut image);
        assert!(image.starts_with(b"library"));
        assert_eq!(ModuleText::of(&image), Some(text));
        let cut = &image[image.len() - 40..];
        assert_eq!(ModuleText::of(cut), None);
    }
}
