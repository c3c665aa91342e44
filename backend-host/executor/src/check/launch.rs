//! A checked launch, and the thread that runs its blocks.

use super::block::{Block, Fault};
use super::publications::Publications;
use super::shadow::Shadow;
use super::{Checking, Turn, Unit};
use crate::error::FailureKind;
use crate::grid::Grid;
use crate::library::Library;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::ptr;

/// A checked launch.
pub(crate) struct Launch<'a> {
    pub(super) checking: Checking<'a>,
    pub(super) unit: &'a Unit,
    pub(super) library: &'a Library,
    /// Memory that the loop over threads reads, in addition to the kernel's own.
    pub(super) arguments: Vec<Range<usize>>,
    pub(crate) turn: Turn,
    /// Used only by the thread whose turn it is.
    pub(super) history: RefCell<History>,
}

/// The history that all blocks share.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) global: Shadow,
    pub(super) publications: Publications,
    /// The number of barriers that the whole grid has passed.
    pub(super) grid_rounds: u64,
}

impl<'a> Launch<'a> {
    /// Creates a launch. `arguments` are the ranges that hold the launch's parameters.
    pub(crate) fn new(
        checking: Checking<'a>,
        unit: &'a Unit,
        library: &'a Library,
        arguments: Vec<Range<usize>>,
    ) -> Launch<'a> {
        Launch {
            checking,
            unit,
            library,
            arguments,
            turn: Turn::default(),
            history: RefCell::default(),
        }
    }

    /// Lets the calling thread run blocks with checks while the result lives.
    pub(crate) fn begin(&'a self, grid: &Grid<'_>) -> Running {
        self.turn.take();
        let block = Box::into_raw(Box::new(Block::new(self, grid)));
        CURRENT.set(block);
        Running(block)
    }
}

thread_local! {
    static CURRENT: Cell<*mut Block> = const { Cell::new(ptr::null_mut()) };
}

/// Ends the checks of the calling thread when it is dropped.
pub(crate) struct Running(*mut Block);

impl Drop for Running {
    fn drop(&mut self) {
        CURRENT.set(ptr::null_mut());
        // SAFETY: `begin` created it from a box, and the launch outlives this object.
        let block = unsafe { Box::from_raw(self.0) };
        block.launch().turn.leave();
    }
}

/// Returns the checks of the calling thread, or null if it runs without checks.
pub(super) fn current() -> *mut Block {
    CURRENT.get()
}

/// Ends the block of the calling thread. Returns a fault that is only certain now.
pub(crate) fn end_block() -> Option<(FailureKind, String)> {
    // SAFETY: the object belongs to this thread, and the only reference to it ends here.
    let Fault { kind, message } = unsafe { current().as_mut() }?.doubtful.take()?.fault;
    Some((kind, message))
}

/// Describes an access that faulted without a call of the compiler's hooks: a write to read-only memory.
/// Returns `None` for any other access, or if the calling thread runs without checks.
pub(crate) fn describe_fault(address: usize, instruction: usize) -> Option<String> {
    // SAFETY: the object belongs to this thread, and the only reference to it ends here.
    let unit = unsafe { current().as_ref() }?.launch().unit;
    let line = || unit.lines.describe(unit.lines.offset(instruction + 1));
    unit.is_read_only(address)
        .then(|| format!("a write to address {address:#x}, which can only be read, in {}", line()))
}

/// Begins a block on the calling thread, if it runs with checks.
pub(crate) fn begin_block(linear: u64) {
    // SAFETY: the object belongs to this thread, and the only reference to it ends here.
    if let Some(block) = unsafe { current().as_mut() } {
        block.begin(linear);
    }
}
