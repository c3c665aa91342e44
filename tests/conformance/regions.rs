//! Memory with an end of its own, and pools.

use crate::context::{Context, Outcome};
use crate::harness::conformance;
use gpuarray::memory::{DeviceMemory, DevicePool, Managed, PinnedPool, Pitched};
use gpuarray::{
    Array, DType, ErrorKind, Layout, PinnedOptions, PrefetchTarget, Result, StreamOptions,
};
use std::sync::Arc;

conformance! {
    pitched_rows_start_at_multiples_of_the_pitch,
    managed_memory_is_the_hosts_and_the_devices needs [ManagedMemory],
    a_region_ends_once,
    a_pool_hands_blocks_out_again_on_any_stream,
    a_recalled_block_is_refused_to_its_former_user,
    a_pinned_pool_hands_blocks_out_again,
}
