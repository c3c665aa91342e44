//! The initialisers of a unit's variables, called as a kernel is run.

use super::{Grid, Shape};
use crate::abi;
use crate::error::Result;
use crate::library::Library;
use std::ffi::c_void;

/// Calls the initialisers of a unit's variables, as a kernel of one thread is run: a fault in them ends the call
/// with an error.
///
/// # Errors
/// `Kernel` if one fails; `System` if there is no memory for a stack.
///
/// # Safety
/// The functions are those of the unit, which is loaded, and its executor is set.
pub(crate) unsafe fn initialise(library: &Library, functions: &[Initialiser]) -> Result<()> {
    let mut list = (functions.as_ptr(), functions.len());
    let arguments = [(&raw mut list).cast::<c_void>()];
    let shape = Shape { grid: [1; 3], block: [1; 3], cooperative: false };
    let grid = Grid::new(None, call_all, library, &shape, &arguments);
    grid.work(0..1);
    grid.result()
}

/// The initialiser of a variable.
pub(crate) type Initialiser = unsafe extern "C" fn();

/// # Safety
/// The argument is address and number of functions that may be called.
unsafe extern "C" fn call_all(launch: *const abi::Launch, _: *const abi::Index, _: u32) {
    // SAFETY: the caller's promise. Nothing here needs dropping, for a fault leaves this function.
    unsafe {
        let (first, count) = **(*launch).arguments.cast::<*const (*const Initialiser, usize)>();
        for index in 0..count {
            (*first.add(index))();
        }
    }
}
