//! A launch with checks, and the thread that runs a block of it.

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

/// A launch with checks.
pub(crate) struct Launch<'a> {
    pub(super) checking: Checking<'a>,
    pub(super) unit: &'a Unit,
    pub(super) library: &'a Library,
    /// What the loop over threads reads besides the kernel's own memory.
    pub(super) arguments: Vec<Range<usize>>,
    pub(crate) turn: Turn,
    /// Used by the thread whose turn it is.
    pub(super) history: RefCell<History>,
}

/// What is remembered of all blocks.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) global: Shadow,
    pub(super) publications: Publications,
    /// How often all blocks have met.
    pub(super) grid_rounds: u64,
}

impl<'a> Launch<'a> {
    /// `arguments` are the ranges that hold the launch itself.
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

    /// Lets the calling thread run blocks of the launch with checks, while the result lives.
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
        // SAFETY: `begin` has made it of a box, and the launch outlives this object.
        let block = unsafe { Box::from_raw(self.0) };
        block.launch().turn.leave();
    }
}

/// What runs with checks on the calling thread; null without.
pub(super) fn current() -> *mut Block {
    CURRENT.get()
}

/// The block of the calling thread has ended; returns what is wrong with it after all.
pub(crate) fn end_block() -> Option<(FailureKind, String)> {
    // SAFETY: the object is this thread's, and the only reference to it ends here.
    let Fault { kind, message } = unsafe { current().as_mut() }?.doubtful.take()?.fault;
    Some((kind, message))
}

/// What a launch with checks on the calling thread says of an access that faulted, for which the compiler calls no
/// function, at an instruction: a write of what can only be read; `None` for another one.
pub(crate) fn describe_fault(address: usize, instruction: usize) -> Option<String> {
    // SAFETY: the object is this thread's, and the only reference to it ends here.
    let unit = unsafe { current().as_ref() }?.launch().unit;
    let line = || unit.lines.describe(unit.lines.offset(instruction + 1));
    unit.is_read_only(address)
        .then(|| format!("a write to address {address:#x}, which can only be read, in {}", line()))
}

/// A block begins on the calling thread, which runs with checks.
pub(crate) fn begin_block(linear: u64) {
    // SAFETY: the object is this thread's, and the only reference to it ends here.
    if let Some(block) = unsafe { current().as_mut() } {
        block.begin(linear);
    }
}
