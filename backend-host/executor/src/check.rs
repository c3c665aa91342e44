//! Checks for faults that a kernel's results may hide.
//!
//! A unit compiled with checks calls the executor for each memory access, each fence and each barrier
//! (`include/cuda_c/check.h`). In a launch with checks, blocks run one at a time, so the history of
//! accesses does not need locks. The first fault ends the launch.

mod barriers;
mod block;
mod knowledge;
mod launch;
mod lines;
mod lookup;
mod memory;
mod order;
mod shadow;
mod unit;

pub(crate) use block::{Access, Fault, begin_block, current, describe_fault, end_block};
pub(crate) use launch::Launch;
pub use launch::{Allocation, Checking, Checks, Memory};
pub(crate) use lines::{folder_option, is_of_language};
pub use memory::fill_uninitialised;
pub(crate) use memory::{allocate, release};
pub(crate) use unit::Unit;
