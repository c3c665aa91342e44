//! A checked launch: its checks, and the history that its blocks share.

use super::knowledge::Publications;
use super::shadow::Shadow;
use super::unit::Unit;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

/// The faults that a launch checks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Accesses outside of live allocations, and to freed memory.
    pub bounds: bool,
    /// Reads of memory that has never been written.
    pub uninitialised: bool,
    /// Races: unordered accesses of two threads to the same memory, of which at least one writes and at least
    /// one is not atomic.
    pub races: bool,
    /// Threads of a block that wait at different barriers.
    pub barriers: bool,
    /// Integer divisions by zero, and misaligned addresses.
    pub arithmetic: bool,
}

impl Checks {
    /// All checks.
    pub const ALL: Checks =
        Checks { bounds: true, uninitialised: true, races: true, barriers: true, arithmetic: true };
}

/// An allocation, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The addresses of the allocation.
    pub range: Range<usize>,
    /// False if the memory was freed and its addresses have not been reused.
    pub is_live: bool,
    /// A description, and the place of the allocation: `array of shape (3,) and dtype int32, allocated at
    /// a.py:7`.
    pub description: String,
}

/// Information about memory that the launch did not allocate.
pub trait Memory: Sync {
    /// Returns the live allocation that contains an address.
    fn live(&self, address: usize) -> Option<Range<usize>>;

    /// Returns the live or freed allocation that contains an address or is closest to it.
    fn nearest(&self, address: usize) -> Option<Allocation>;
}

/// The parameters of a checked launch.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "the memory is the caller's")]
pub struct Checking<'a> {
    /// The faults to check for.
    pub checks: Checks,
    /// The memory that the kernel may access.
    pub memory: &'a dyn Memory,
    /// The dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

/// A checked launch.
pub(crate) struct Launch<'a> {
    pub(crate) checking: Checking<'a>,
    pub(crate) unit: &'a Unit,
    /// Memory of the executor that a unit reads: the launch's parameters, and the executor's table.
    pub(crate) own: Vec<Range<usize>>,
    pub(crate) turn: Turn,
    /// Used only by the thread whose turn it is.
    pub(crate) history: RefCell<History>,
}

/// The history that all blocks share.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) global: Shadow,
    pub(crate) publications: Publications,
    /// The number of barriers that the whole grid has passed.
    pub(crate) grid_rounds: u64,
}

impl<'a> Launch<'a> {
    /// Creates a launch. `own` is memory of the executor that the unit may read.
    pub(crate) fn new(
        checking: Checking<'a>,
        unit: &'a Unit,
        own: Vec<Range<usize>>,
    ) -> Launch<'a> {
        Launch { checking, unit, own, turn: Turn::default(), history: RefCell::default() }
    }
}

/// The right to run, granted in the order of requests: the operating-system threads that run the blocks of a
/// cooperative launch take turns.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    state: Mutex<Tickets>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Tickets {
    next: u64,
    serving: u64,
}

impl Turn {
    /// Waits for the turn.
    pub(crate) fn take(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = state.next;
        state.next += 1;
        while state.serving != own {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the turn.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.serving += 1;
        drop(state);
        self.changed.notify_all();
    }
}
