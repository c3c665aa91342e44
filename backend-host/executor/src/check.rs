//! Checks for faults that a kernel's results may hide.
//!
//! A unit compiled with checks calls the executor for each memory access, each fence and each barrier
//! (`include/cuda_c/check.h`). In a launch with checks, blocks run one at a time, so the history of
//! accesses does not need locks. The first fault ends the launch.

mod barriers;
mod block;
mod calls;
mod heap;
mod launch;
mod lines;
mod lookup;
mod memory;
mod order;
mod publications;
mod report;
mod shadow;
mod turn;
mod unit;

pub(crate) use calls::CHECKED_EXECUTOR;
pub(crate) use launch::{Launch, begin_block, describe_fault, end_block};
pub(crate) use lines::folder_option;
pub use memory::fill_uninitialised;
pub(crate) use turn::Turn;
pub(crate) use unit::Unit;

use std::ops::Range;

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
