//! Runs the initialisers and destructors of a unit's variables like kernels.

use super::{Grid, What};
use crate::abi;
use crate::error::Result;
use crate::launch::Shape;
use crate::library::Library;
use std::ffi::c_void;

/// The number of failing destructors of a unit after which the others are left to the system.
const MOST_FAILURES: usize = 1000;

/// Runs the initialisers of a unit's variables like a kernel with one thread, so that a fault ends the call
/// with an error.
///
/// # Errors
/// `Kernel` if one fails; `System` if there is not enough memory for a stack.
///
/// # Safety
/// The functions belong to the unit, the unit is loaded, and its executor is set.
pub(crate) unsafe fn initialise(library: &Library, functions: &[Initialiser]) -> Result<()> {
    // SAFETY: the caller's promise.
    let all = || functions.iter().for_each(|function| unsafe { function() });
    // SAFETY: as above; a fault leaves nothing of the closure that needs dropping.
    unsafe { call(library, What::Initialisers, &all) }
}

/// Runs the destructors of a unit's variables like a kernel with one thread. If one fails, it is named in the
/// log, and the others still run.
///
/// # Safety
/// The unit is loaded, nothing uses its variables any longer, and its destructors are registered under
/// `handle`.
pub(crate) unsafe fn destroy(library: &Library, handle: *mut c_void) {
    unsafe extern "C" {
        /// Calls the functions that are registered under a handle and have not been called. It does not hold
        /// a lock during a call.
        fn __cxa_finalize(handle: *mut c_void);
    }
    for _ in 0..MOST_FAILURES {
        // SAFETY: the caller's promise.
        let all = || unsafe { __cxa_finalize(handle) };
        // SAFETY: as above; a fault leaves nothing in the closure that needs to be dropped.
        match unsafe { call(library, What::Destructors, &all) } {
            Ok(()) => return,
            Err(error) => log::warn!("{error}"),
        }
    }
}

/// Runs a function as the only thread of a kernel.
///
/// # Safety
/// The function belongs to the unit, and may be abandoned at a fault.
unsafe fn call(library: &Library, what: What<'_>, function: &dyn Fn()) -> Result<()> {
    let mut function = function;
    let arguments = [(&raw mut function).cast::<c_void>()];
    let shape = Shape { grid: [1; 3], block: [1; 3], cooperative: false };
    let grid = Grid::new(what, run, library, &shape, &arguments);
    library.be_first();
    grid.work(0..1);
    grid.result()
}

/// The initialiser of a variable.
pub(crate) type Initialiser = unsafe extern "C" fn();

/// # Safety
/// The argument is the address of a function that may be called.
unsafe extern "C" fn run(launch: *const abi::Launch, _: *mut abi::Blocks, _: u32) {
    // SAFETY: the caller's promise. Nothing here needs to be dropped, because a fault leaves this function.
    unsafe { (**(*launch).arguments.cast::<*const &dyn Fn()>())() }
}
