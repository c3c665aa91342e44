//! A pool of device memory.
//!
//! A block stays the same `DeviceMemory` for all its users, so it remembers which streams have used it.
//! The next user's work is ordered after theirs, without any wait on the host. A block is free as soon as
//! only the pool refers to it.

use super::{Bins, PoolCounts, bin_number, block_size};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Allocator, DeviceMemory};
use crate::process::ProcessMutex;
use crate::properties::DeviceId;
use crate::stream::Stream;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;
use std::sync::{Arc, MutexGuard};

/// Hashes addresses: multiples of large powers of two.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing: the odd number nearest to 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

struct Active {
    memory: Arc<DeviceMemory>,
    size: usize,
}

struct State {
    bins: Bins<Arc<DeviceMemory>>,
    active: HashMap<u64, Active, BuildHasherDefault<AddressHasher>>,
    device: Option<DeviceId>,
    /// The requests that no held block could serve since the active blocks were last checked.
    misses: usize,
}

/// Blocks of one device's memory.
///
/// A block without other references serves the next request of its size, on any stream. That request's
/// work is ordered after the block's earlier uses, and the host does not wait. All blocks belong to one
/// device, the device of the first request.
///
/// A block serves the next request immediately, even if work on it is still queued:
///
/// ```
/// use gpuarray::memory::DevicePool;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let pool = DevicePool::new();
/// let first = pool.make(&device, 1 << 20)?;
/// let address = first.address();
/// drop(first);
/// let second = pool.find(&device, 1 << 20)?.expect("the pool kept the block");
/// assert_eq!(second.address(), address);
/// # Ok(())
/// # }
/// ```
pub struct DevicePool {
    /// A forked child starts with an empty pool, because it cannot reach its parent's blocks.
    state: ProcessMutex<State>,
    drop_blocks: fn(Vec<Arc<DeviceMemory>>),
}

impl Default for DevicePool {
    fn default() -> DevicePool {
        DevicePool::new()
    }
}

impl fmt::Debug for DevicePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "DevicePool({})", state.bins.counts())
    }
}

impl State {
    fn new() -> State {
        State { bins: Bins::new(), active: HashMap::default(), device: None, misses: 0 }
    }

    fn give_out(&mut self, memory: &Arc<DeviceMemory>, size: usize) {
        let active = Active { memory: memory.clone(), size };
        if let Some(before) = self.active.insert(memory.address(), active) {
            // The user released the memory, and the device has allocated the address again.
            self.bins.give_up(before.size);
        }
    }

    /// Takes back a block without other references; returns it if it is to be freed.
    #[must_use]
    fn take_back(&mut self, active: Active) -> Option<Arc<DeviceMemory>> {
        if active.memory.is_allocated() {
            return self.bins.give_back(active.memory, active.size);
        }
        // The last user released the memory instead of dropping it.
        self.bins.give_up(active.size);
        Some(active.memory)
    }

    /// Takes back all blocks without other references; returns those to be freed.
    #[must_use]
    fn collect(&mut self) -> Vec<Arc<DeviceMemory>> {
        self.misses = 0;
        let unused = self.active.extract_if(|_, active| Arc::get_mut(&mut active.memory).is_some());
        let unused: Vec<_> = unused.collect();
        unused.into_iter().filter_map(|(_, active)| self.take_back(active)).collect()
    }
}

impl DevicePool {
    /// Returns an empty pool.
    pub const fn new() -> DevicePool {
        DevicePool::dropping_with(drop)
    }

    /// Returns a pool that passes blocks that are to be freed to `drop_blocks`. Freeing them may wait for
    /// the device, so a caller may want to do it on another thread or without a lock of its own.
    pub const fn dropping_with(drop_blocks: fn(Vec<Arc<DeviceMemory>>)) -> DevicePool {
        DevicePool { state: ProcessMutex::new(State::new), drop_blocks }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn free_unwanted(&self, blocks: Vec<Arc<DeviceMemory>>) {
        if !blocks.is_empty() {
            (self.drop_blocks)(blocks);
        }
    }

    /// Returns the counts of the pool, after all unused blocks are taken back.
    pub fn counts(&self) -> PoolCounts {
        self.change(|bins| bins.counts())
    }

    /// Frees the blocks that are kept for later requests; may wait for the device.
    pub fn free_held(&self) {
        let held = self.change(Bins::take_held);
        self.free_unwanted(held);
    }

    /// Frees the kept blocks; from now on, frees returned blocks immediately.
    pub fn stop_holding(&self) {
        let held = self.change(Bins::stop_holding);
        self.free_unwanted(held);
    }

    /// Changes the bins, after all unused blocks are taken back.
    fn change<T>(&self, change: impl FnOnce(&mut Bins<Arc<DeviceMemory>>) -> T) -> T {
        let mut state = self.lock();
        let unused = state.collect();
        let result = change(&mut state.bins);
        drop(state);
        self.free_unwanted(unused);
        result
    }

    /// Returns a kept block of at least `size` bytes, if one is free, without waiting.
    ///
    /// # Errors
    /// `InvalidArgument` if the pool's memory belongs to another device.
    pub fn find(&self, device: &Arc<dyn Device>, size: usize) -> Result<Option<Arc<DeviceMemory>>> {
        let mut state = self.lock();
        match state.device {
            None => state.device = Some(device.id()),
            Some(own) if own == device.id() => {}
            Some(own) => {
                let (own, here) = (own.beside(&device.id()), device.id().beside(&own));
                return Err(Error::invalid(
                    "allocate",
                    format!(
                        "the pool has memory of device {own}, the current device is {here}; each \
                         device needs a pool of its own"
                    ),
                ));
            }
        }
        if let Some(memory) = state.bins.take(size) {
            state.give_out(&memory, size);
            return Ok(Some(memory));
        }
        state.misses += 1;
        // The search visits each active block, so it is done once per many requests.
        if state.misses < state.active.len() / 4 {
            return Ok(None);
        }
        let unused = state.collect();
        let found = state.bins.take(size);
        if let Some(memory) = &found {
            state.give_out(memory, size);
        }
        drop(state);
        self.free_unwanted(unused);
        Ok(found)
    }

    /// Allocates a new block of at least `size` bytes. If memory is short, kept blocks are freed, the
    /// largest first. Freeing may wait for the device.
    ///
    /// # Errors
    /// `OutOfMemory`; `Overflow` for a size larger than any block.
    pub fn make(&self, device: &Arc<dyn Device>, size: usize) -> Result<Arc<DeviceMemory>> {
        let too_large =
            || Error::overflow("allocate", format!("size is {size}; no block is that large"));
        let bytes = block_size(bin_number(size)).ok_or_else(too_large)?;
        let mut first = true;
        let memory = loop {
            match DeviceMemory::plain(device, bytes) {
                Ok(memory) => break Arc::new(memory),
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    let unused = if std::mem::take(&mut first) {
                        let mut state = self.lock();
                        let mut unused = state.collect();
                        unused.extend(state.bins.take_largest());
                        unused
                    } else {
                        self.lock().bins.take_largest().into_iter().collect()
                    };
                    if unused.is_empty() {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let mut state = self.lock();
        state.bins.add(size, bytes);
        state.give_out(&memory, size);
        Ok(memory)
    }

    /// Takes the block at a base address back if it has no other references. Otherwise, a later request
    /// finds the block when it is free.
    pub fn drain(&self, address: u64) {
        let mut state = self.lock();
        let unused = state
            .active
            .get_mut(&address)
            .is_some_and(|active| Arc::get_mut(&mut active.memory).is_some());
        if unused {
            self.release(state, address);
        }
    }

    fn release(&self, mut state: MutexGuard<'_, State>, address: u64) {
        let Some(active) = state.active.remove(&address) else {
            return;
        };
        let unwanted = state.take_back(active);
        drop(state);
        self.free_unwanted(unwanted.into_iter().collect());
    }

    /// Takes a block back even if the program still has an object for its memory; later uses of that
    /// object fail.
    ///
    /// # Errors
    /// As for [`DeviceMemory::reissue`].
    pub fn recall(&self, memory: &DeviceMemory) -> Result<()> {
        let is_lent = |active: &Active| ptr::eq(Arc::as_ptr(&active.memory), memory);
        // After a block was freed elsewhere, memory outside the pool may have been allocated at its
        // address.
        let is_own = self.lock().active.get(&memory.address()).is_some_and(is_lent);
        if !is_own && memory.is_allocated() {
            return Ok(());
        }
        let renewed = memory.reissue()?.map(Arc::new);
        let mut state = self.lock();
        if !state.active.get(&memory.address()).is_some_and(is_lent) {
            return Ok(());
        }
        let Some(active) = state.active.remove(&memory.address()) else {
            return Ok(());
        };
        let Some(renewed) = renewed else {
            // A graph uses the block, and will free it.
            state.bins.give_up(active.size);
            return Ok(());
        };
        let unwanted = state.bins.give_back(renewed, active.size);
        drop(state);
        self.free_unwanted(unwanted.into_iter().collect());
        Ok(())
    }
}

impl Drop for DevicePool {
    fn drop(&mut self) {
        let held = self.lock().bins.take_held();
        self.free_unwanted(held);
    }
}

// SAFETY: the pool's blocks are allocations on the requested device with at least the requested size;
// `find` returns a block without other references, as a new object.
unsafe impl Allocator for DevicePool {
    fn allocate(
        &self,
        device: &Arc<dyn Device>,
        _stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Arc<DeviceMemory>> {
        match self.find(device, bytes)? {
            Some(memory) => Ok(memory),
            None => self.make(device, bytes),
        }
    }
}
