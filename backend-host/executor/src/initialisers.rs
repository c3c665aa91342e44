//! The initialisers and destructors of a unit's variables. They are code of the program; if the system's loader ran
//! the initialisers, a fault would end the process. They are therefore removed from the loader's table and run like
//! kernels.

use crate::abi;
use crate::dispatch::work;
use crate::error::{Error, Result};
use crate::grid::{Grid, What};
use crate::launch::Shape;
use crate::library::Library;
use object::{Object as _, ObjectSection as _};
use std::borrow::Cow;
use std::ffi::c_void;

/// The size of an entry in the dynamic table, in bytes: a tag and a value.
const ENTRY: usize = 16;
/// The tags `DT_INIT_ARRAY` and `DT_INIT_ARRAYSZ`.
const ADDRESS: u64 = 25;
const BYTES: u64 = 27;

/// A table with the addresses of functions without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Initialisers {
    /// The address of the table, relative to the start of the library.
    pub(crate) start: u64,
    bytes: u64,
}

impl Initialisers {
    pub(crate) fn count(self) -> usize {
        self.bytes as usize / size_of::<usize>()
    }
}

/// Returns the library without initialisers that the loader would run, and the location of the initialisers.
///
/// # Errors
/// `NotAUnit` for other bytes.
pub(crate) fn take(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, Initialisers)> {
    let file = object::File::parse(bytes)
        .map_err(|error| Error::NotAUnit(format!("no compiled unit: {error}")))?;
    let mut found = Initialisers::default();
    let section = file.section_by_name(".dynamic").and_then(|it| it.file_range());
    let (start, length) = section.map_or((0, 0), |it| (it.0 as usize, it.1 as usize));
    let table = bytes.get(start..start.saturating_add(length)).unwrap_or_default();
    let mut size_at = None;
    for (index, entry) in table.chunks_exact(ENTRY).enumerate() {
        let word = |at: usize| {
            entry[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        match word(0) {
            ADDRESS => found.start = word(8),
            BYTES => {
                found.bytes = word(8);
                size_at = Some(start + index * ENTRY + 8);
            }
            _ => {}
        }
    }
    let Some(size_at) = size_at.filter(|_| found.bytes > 0) else {
        return Ok((Cow::Borrowed(bytes), Initialisers::default()));
    };
    let mut without = bytes.to_vec();
    without[size_at..size_at + 8].fill(0);
    Ok((Cow::Owned(without), found))
}

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
    work(&grid, 0..1);
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
