//! The driver's calls that launch a kernel.

use super::calls::{Calls, Handle};
use hal::module::LaunchConfig;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Queues a kernel; returns the driver's number.
///
/// # Safety
/// Function and stream are live and of the current context; the arguments are those of the function,
/// and what they name lives until the kernel has run. The driver reads them before it returns.
#[inline]
pub(super) unsafe fn launch(
    calls: &Calls,
    function: Handle,
    stream: Handle,
    config: &LaunchConfig,
    arguments: *mut *mut c_void,
) -> c_int {
    let ([gx, gy, gz], [bx, by, bz], shared) = (config.grid, config.block, config.shared_bytes);
    let launch = calls.launch;
    // SAFETY: the caller's promise.
    unsafe { launch(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, null_mut()) }
}
