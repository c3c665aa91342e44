//! Runs kernels on the cores.

use crate::device::HostDevice;
use hal::{Error, ErrorKind, Parameter, Result, Status, checking};
use host_executor::{FailureKind, Schedule, Shape};
use std::cell::Cell;
use std::ffi::c_void;

/// The arguments of a queued launch.
pub(crate) struct Arguments {
    words: Vec<u128>,
    /// The first word of each argument.
    positions: Vec<usize>,
}

impl Arguments {
    /// Copies the values, each to a multiple of 16 bytes.
    ///
    /// # Safety
    /// Each pointer is the address of a value with the parameter's size.
    pub(crate) unsafe fn copy(parameters: &[Parameter], arguments: &[*mut c_void]) -> Arguments {
        let mut copied = Arguments { words: Vec::new(), positions: Vec::new() };
        for (parameter, &argument) in parameters.iter().zip(arguments) {
            let first = copied.words.len();
            copied.positions.push(first);
            copied.words.resize(first + parameter.size.div_ceil(16), 0);
            // SAFETY: the caller's promise; the words have room for the value.
            unsafe {
                let target = copied.words.as_mut_ptr().add(first).cast::<u8>();
                target.copy_from_nonoverlapping(argument.cast(), parameter.size);
            }
        }
        copied
    }

    /// Returns the addresses of the values; kernels only read the values.
    pub(crate) fn pointers(&self) -> Vec<*mut c_void> {
        let base = self.words.as_ptr().cast_mut();
        self.positions.iter().map(|&word| base.wrapping_add(word).cast()).collect()
    }
}

/// Runs a kernel on the calling thread and the device's other threads.
///
/// # Errors
/// `LaunchFailed` with the names of the kernel and the block; if the launch is
/// [interruptible](hal::interruption), the error that ended it.
///
/// # Safety
/// The same as for [`hal::Kernel::launch_raw`]; the shape is within the kernel's limits.
pub(crate) unsafe fn run(
    device: &HostDevice,
    kernel: &host_executor::Kernel,
    shape: &Shape,
    arguments: &[*mut c_void],
) -> Result<()> {
    let (schedule, pool) = (Schedule::default(), || device.pool());
    // SAFETY: the caller's promise.
    interruptibly(checking::advice(), |is_interrupted| unsafe {
        match is_interrupted {
            None => kernel.launch(shape, &schedule, arguments, &pool),
            Some(is_interrupted) => {
                kernel.launch_interruptibly(shape, &schedule, arguments, &pool, is_interrupted)
            }
        }
    })
}

/// Runs a launch. If the thread is interruptible, passes a function to the launch, which ends when that
/// function returns true. The message of a fault ends with `advice`.
///
/// # Errors
/// `LaunchFailed` with the names of the kernel and the block, or the error that interrupted the launch.
pub(crate) fn interruptibly(
    advice: &str,
    launch: impl FnOnce(Option<&dyn Fn() -> bool>) -> host_executor::Result<()>,
) -> Result<()> {
    let interrupted = Cell::new(None);
    let result = match hal::interruption::check() {
        None => launch(None),
        Some(check) => launch(Some(&|| {
            let error = hal::interruption::call_in_kernel(check).err();
            let is_interrupted = error.is_some();
            interrupted.set(error);
            is_interrupted
        })),
    };
    result.map_err(|error| match error {
        host_executor::Error::Kernel(failure) if failure.kind == FailureKind::Interrupted => {
            let (kind, code) = (ErrorKind::LaunchFailed, Status::LAUNCH_FAILED);
            let ended = || Error::new(kind, Status::host(code), "launch", failure.message);
            interrupted.take().unwrap_or_else(ended)
        }
        host_executor::Error::Kernel(failure) => {
            let (kind, code) = match failure.kind {
                FailureKind::Unsupported => (ErrorKind::Unsupported, Status::NOT_SUPPORTED),
                FailureKind::Address => (ErrorKind::LaunchFailed, Status::ILLEGAL_ADDRESS),
                _ => (ErrorKind::LaunchFailed, Status::LAUNCH_FAILED),
            };
            let advice = if kind == ErrorKind::LaunchFailed { advice } else { "" };
            Error::new(kind, Status::host(code), "launch", format!("{}{advice}", failure.message))
        }
        other => {
            let status = Status::host(Status::OUT_OF_MEMORY);
            Error::new(ErrorKind::OutOfMemory, status, "launch", other.to_string())
        }
    })
}
