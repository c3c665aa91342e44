//! Device memory, host memory, and copies between them.

pub(crate) mod allocations;
pub(crate) mod managed_arrays;
pub(crate) mod overlaps;
pub(crate) mod owned_memory;
pub(crate) mod parts;
pub(crate) mod peers;
pub(crate) mod pinned;
pub(crate) mod pitched;
pub(crate) mod pools;
pub(crate) mod sharing;
pub(crate) mod transfers;
