//! Faults that a kernel's own results may hide, looked for while it runs.
//!
//! A unit that is compiled with checks calls the executor for each access to memory, each fence and
//! each barrier (`include/cuda_c/check.h`). In a launch with checks the blocks run one at a time,
//! so that what is known of earlier accesses needs no locks. The first fault ends the launch.

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

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Accesses outside live allocations, and to freed memory.
    pub bounds: bool,
    /// Reads of memory that nobody has written.
    pub uninitialised: bool,
    /// Accesses of two threads to the same memory that nothing orders, of which one writes and one is not
    /// atomic.
    pub races: bool,
    /// Threads of a block that wait at different barriers.
    pub barriers: bool,
    /// Divisions of integers by zero, and addresses that are not aligned.
    pub arithmetic: bool,
}

impl Checks {
    /// Everything.
    pub const ALL: Checks =
        Checks { bounds: true, uninitialised: true, races: true, barriers: true, arithmetic: true };
}

/// An allocation, as reports name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Its addresses.
    pub range: Range<usize>,
    /// False if it was freed, and its addresses have not been used again.
    pub is_live: bool,
    /// What it is, and where it was allocated: `array of shape (3,) and dtype int32, allocated at a.py:7`.
    pub description: String,
}

/// What a launch with checks must know of memory that it did not allocate.
pub trait Memory: Sync {
    /// Returns the live allocation that an address lies in.
    fn live(&self, address: usize) -> Option<Range<usize>>;

    /// Returns the allocation, live or freed, that an address lies in or is closest to.
    fn nearest(&self, address: usize) -> Option<Allocation>;
}

/// How a launch is checked.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "the memory is the caller's")]
pub struct Checking<'a> {
    /// What is looked for.
    pub checks: Checks,
    /// The memory that the kernel may access.
    pub memory: &'a dyn Memory,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
}
