//! Memory pools: blocks that are kept for later requests of their size, in PyCUDA's bins.

mod bins;
mod device;
mod pinned;

pub use bins::{PoolCounts, bin_number, block_size};
pub use device::DevicePool;
pub use pinned::{PinnedPool, PooledPinned};
