//! Checked launches of kernels.
//!
//! A module that is compiled while checks are enabled contains the checks. Any other module is compiled
//! again, from the text in its image, for its first checked launch. Before each launch, the variables of that
//! second library are set to the values of the first one; afterwards the values that the kernel wrote are
//! copied back.

use crate::code::LoadedCode;
use crate::device::HostDevice;
use crate::launch::{self, Arguments};
use hal::checking::{self, Checks};
use hal::{Error, Parameter, Result};
use host_executor::{Allocation, Memory, Shape};
use std::ffi::c_void;
use std::ops::Range;

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
/// The same as for [`launch::run`].
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
    // These copies are aligned for the parameters' types; the program's own need not be. SAFETY: the caller's
    // promise.
    let copied = unsafe { Arguments::copy(&launch.parameters, arguments) };
    let pointers = copied.pointers();
    let run = || {
        launch::interruptibly("", |is_interrupted| {
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
