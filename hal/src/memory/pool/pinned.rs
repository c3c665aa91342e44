//! A pool of page-locked memory.

use super::{Bins, PoolCounts, bin_number, block_size};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::PinnedMemory;
use crate::process::{self, ProcessMutex};
use crate::properties::{DeviceId, PinnedOptions};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

struct State {
    /// A forked child starts with an empty pool, because it cannot reach its parent's blocks.
    bins: ProcessMutex<Bins<PinnedMemory>>,
    options: PinnedOptions,
    /// The device of the first request.
    device: OnceLock<DeviceId>,
    drop_blocks: fn(Vec<PinnedMemory>),
}

impl State {
    /// Checks that all devices that use the pool belong to one opening. For devices of another opening, its
    /// memory would not be page-locked.
    fn check(&self, device: &Arc<dyn Device>) -> Result<()> {
        let first = *self.device.get_or_init(|| device.id());
        device.id().check_opening("allocate", "the pool", first)
    }

    fn free(&self, blocks: Vec<PinnedMemory>) {
        if !blocks.is_empty() {
            (self.drop_blocks)(blocks);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let held = self.bins.lock().take_held();
        self.free(held);
    }
}

/// A pool that keeps returned page-locked memory for later requests of its size.
///
/// Buffers in a loop that does not allocate in each iteration:
///
/// ```
/// use gpuarray::{PinnedOptions, memory::PinnedPool};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let pool = PinnedPool::new(PinnedOptions::default());
/// for round in 0..3u8 {
///     let mut buffer = pool.allocate(&device, 4096)?;
///     buffer.fill(round);
/// }
/// assert_eq!(pool.counts().held_blocks, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PinnedPool(Arc<State>);

impl fmt::Debug for PinnedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedPool({})", self.counts())
    }
}

impl PinnedPool {
    /// Returns an empty pool that allocates blocks with `options`.
    pub fn new(options: PinnedOptions) -> PinnedPool {
        PinnedPool::dropping_with(options, drop)
    }

    /// Returns a pool that passes blocks that are to be freed to `drop_blocks`. Freeing them waits for the
    /// device, so a caller may want to do it on another thread or without a lock of its own.
    pub fn dropping_with(options: PinnedOptions, drop_blocks: fn(Vec<PinnedMemory>)) -> PinnedPool {
        let (bins, device) = (ProcessMutex::new(Bins::new), OnceLock::new());
        PinnedPool(Arc::new(State { bins, options, device, drop_blocks }))
    }

    /// Returns a block of at least `size` bytes, kept or new. Its bytes have the values that the last user
    /// stored. If memory is short, kept blocks are freed, the largest first.
    ///
    /// # Errors
    /// `OutOfMemory`; `Overflow` for a size larger than any block; `InvalidArgument` if the pool's memory
    /// belongs to another backend or opening.
    pub fn allocate(&self, device: &Arc<dyn Device>, size: usize) -> Result<PooledPinned> {
        self.0.check(device)?;
        if let Some(block) = self.take(size) {
            return Ok(block);
        }
        loop {
            match self.make(device, size) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory && self.free_largest() => {}
                made => return made,
            }
        }
    }

    /// Returns a kept block of at least `size` bytes, if one is free.
    pub fn take(&self, size: usize) -> Option<PooledPinned> {
        let block = self.0.bins.lock().take(size)?;
        Some(self.block(block, size))
    }

    /// Returns a new block of at least `size` bytes.
    ///
    /// # Errors
    /// As for [`PinnedPool::allocate`].
    pub fn make(&self, device: &Arc<dyn Device>, size: usize) -> Result<PooledPinned> {
        self.0.check(device)?;
        let too_large =
            || Error::overflow("allocate", format!("size is {size}; no block is that large"));
        let bytes = block_size(bin_number(size)).ok_or_else(too_large)?;
        let memory = PinnedMemory::with_options(device, bytes, self.0.options)?;
        self.0.bins.lock().add(size, bytes);
        Ok(self.block(memory, size))
    }

    /// Frees one of the largest kept blocks; returns false if none is kept.
    pub fn free_largest(&self) -> bool {
        let largest = self.0.bins.lock().take_largest();
        let found = largest.is_some();
        self.0.free(largest.into_iter().collect());
        found
    }

    /// Returns the numbers of used and kept blocks, and their bytes.
    pub fn counts(&self) -> PoolCounts {
        self.0.bins.lock().counts()
    }

    /// Frees the blocks that are kept for later requests.
    pub fn free_held(&self) {
        let held = self.0.bins.lock().take_held();
        self.0.free(held);
    }

    /// Frees the kept blocks; from now on, frees returned blocks immediately.
    pub fn stop_holding(&self) {
        let held = self.0.bins.lock().stop_holding();
        self.0.free(held);
    }

    fn block(&self, memory: PinnedMemory, size: usize) -> PooledPinned {
        let (pool, generation) = (self.0.clone(), process::generation());
        PooledPinned { memory: Some(memory), size, pool, generation }
    }
}

/// Page-locked memory of a pool. It returns to the pool when it is dropped.
///
/// A block is a slice with the requested number of bytes:
///
/// ```
/// use gpuarray::{PinnedOptions, memory::{PinnedPool, PooledPinned}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let pool = PinnedPool::new(PinnedOptions::default());
/// let mut block: PooledPinned = pool.allocate(&device, 1000)?;
/// block[..4].copy_from_slice(&[1, 2, 3, 4]);
/// assert_eq!(block.len(), 1000);
/// drop(block);
/// assert_eq!(pool.counts().active_blocks, 0);
/// # Ok(())
/// # }
/// ```
pub struct PooledPinned {
    /// `None` while it is being dropped.
    memory: Option<PinnedMemory>,
    size: usize,
    pool: Arc<State>,
    generation: u32,
}

impl fmt::Debug for PooledPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PooledPinned({} bytes)", self.size)
    }
}

impl PooledPinned {
    /// Returns the whole block, at least as large as requested.
    pub fn memory(&self) -> &PinnedMemory {
        self.memory.as_ref().expect("it is there until the drop")
    }
}

impl Deref for PooledPinned {
    type Target = [u8];

    /// Returns the requested number of bytes.
    fn deref(&self) -> &[u8] {
        &self.memory()[..self.size]
    }
}

impl DerefMut for PooledPinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        let size = self.size;
        &mut self.memory.as_mut().expect("it is there until the drop")[..size]
    }
}

impl Drop for PooledPinned {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            return;
        }
        if let Some(memory) = self.memory.take() {
            let unwanted = self.pool.bins.lock().give_back(memory, self.size);
            self.pool.free(unwanted.into_iter().collect());
        }
    }
}
