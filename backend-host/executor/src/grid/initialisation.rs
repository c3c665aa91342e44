//! Initialisers and destructors of a unit's variables, called as a kernel is run.

use super::{Grid, What};
use crate::abi;
use crate::error::Result;
use crate::launch::Shape;
use crate::library::Library;
use std::ffi::c_void;

/// Destructors of a unit that may fail before the rest is left to the system.
const MOST_FAILURES: usize = 1000;

/// Calls the initialisers of a unit's variables, as a kernel of one thread is run: a fault in them ends the call
/// with an error.
///
/// # Errors
/// `Kernel` if one fails; `System` if there is no memory for a stack.
///
/// # Safety
/// The functions are those of the unit, which is loaded, and its executor is set.
pub(crate) unsafe fn initialise(library: &Library, functions: &[Initialiser]) -> Result<()> {
    // SAFETY: the caller's promise.
    let all = || functions.iter().for_each(|function| unsafe { function() });
    // SAFETY: as above; a fault leaves nothing of the closure that needs dropping.
    unsafe { call(library, What::Initialisers, &all) }
}

/// Calls the destructors of a unit's variables, as a kernel of one thread is run: one that fails is named in the
/// log, and the others are called.
///
/// # Safety
/// The unit is loaded, nothing uses its variables any longer, and `handle` is what it has registered them by.
pub(crate) unsafe fn destroy(library: &Library, handle: *mut c_void) {
    unsafe extern "C" {
        /// Calls the functions that were registered by a handle and have not been called. It holds no lock while it
        /// calls one.
        fn __cxa_finalize(handle: *mut c_void);
    }
    for _ in 0..MOST_FAILURES {
        // SAFETY: the caller's promise.
        let all = || unsafe { __cxa_finalize(handle) };
        // SAFETY: as above; a fault leaves nothing of the closure that needs dropping.
        match unsafe { call(library, What::Destructors, &all) } {
            Ok(()) => return,
            Err(error) => log::warn!("{error}"),
        }
    }
}

/// Calls a function as the only thread of a kernel.
///
/// # Safety
/// What it does may be left at a fault, and is the unit's.
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
    // SAFETY: the caller's promise. Nothing here needs dropping, for a fault leaves this function.
    unsafe { (**(*launch).arguments.cast::<*const &dyn Fn()>())() }
}
