//! The allocator of a device: the driver's pool, and in front of it the streams' lists of freed
//! blocks.

pub(super) mod free_list;
pub(super) mod pool;

use super::calls::Handle;
use super::context::Context;
use free_list::{FreeList, rounded};
use hal::error::Result;
use hal::locks::{LEAF, Ranked};
use hal::status::Status;
use pool::{Pool, out_of_memory};
use std::ffi::c_int;
use std::sync::{Arc, Weak};

/// Allocates and frees the stream-ordered memory of one device.
#[derive(Debug)]
pub(super) struct DeviceAllocator {
    pub(super) pool: Pool,
    /// The lists of all streams, whose blocks are freed when memory is short.
    lists: Ranked<Vec<Weak<FreeList>>, LEAF>,
}

impl DeviceAllocator {
    /// Returns the allocator of a device. The driver's pool is created at first use.
    pub(super) fn new(context: &Arc<Context>) -> DeviceAllocator {
        DeviceAllocator { pool: Pool::new(context), lists: Ranked::default() }
    }

    /// The list of a new stream.
    pub(super) fn new_list(&self, stream: Handle) -> Arc<FreeList> {
        let list = Arc::new(FreeList::new(stream));
        let mut lists = self.lists.lock();
        lists.retain(|list| list.strong_count() > 0);
        lists.push(Arc::downgrade(&list));
        list
    }

    /// The streams' lists.
    fn lists(&self) -> Vec<Arc<FreeList>> {
        self.lists.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Memory for work that is queued on the list's stream from now on.
    #[inline]
    pub(super) fn allocate(&self, list: &FreeList, bytes: usize) -> Result<u64> {
        match list.pop(bytes) {
            Some(address) => Ok(address),
            None => self.allocate_new(list, bytes),
        }
    }

    #[cold]
    fn allocate_new(&self, list: &FreeList, bytes: usize) -> Result<u64> {
        let size = rounded(bytes);
        if let Some(address) = list.pop_large(size) {
            return Ok(address);
        }
        let context = self.pool.context();
        let scope = context.enter()?;
        let (address, code) = self.take(list, size)?;
        if code == Status::SUCCESS {
            return Ok(address);
        }
        if !context.driver.is_out_of_memory(code) {
            return Err(context.failed("allocate", code));
        }
        drop(scope);
        if let Err(error) = self.give_all_back() {
            // The request tells what there is now.
            log::warn!("giving unused memory back failed: {error}");
        }
        let _scope = context.enter()?;
        let (address, code) = self.take(list, size)?;
        match code {
            Status::SUCCESS => Ok(address),
            code if context.driver.is_out_of_memory(code) => {
                Err(out_of_memory(context, bytes, code))
            }
            code => Err(context.failed("allocate", code)),
        }
    }

    /// Memory from the driver, with its status: on the list's stream, unless that captures or a capture bars
    /// it. The request would become part of the capture, and NVIDIA's driver crashes where one begins or ends
    /// meanwhile on another thread. The context is current.
    fn take(&self, list: &FreeList, size: usize) -> Result<(u64, c_int)> {
        let state = &self.pool.context().capture_state;
        let _none_changes = state.beginning.lock();
        match state.are_possible() && list.may_capture(self.pool.context()) {
            true => Ok(self.pool.take_plain(size)),
            false => self.pool.take(list.stream(), size),
        }
    }

    /// Gives every unused byte back to the driver. Waits for the device's work.
    pub(super) fn give_all_back(&self) -> Result<()> {
        // A failure on one stream does not keep the blocks of the others.
        let mut result = Ok(());
        for list in self.lists() {
            result = result.and(list.give_back(&self.pool));
        }
        result?;
        self.pool.give_unused_back()
    }

    /// Freed bytes in the streams' lists and in the driver's pool. The context is current.
    pub(super) fn kept(&self) -> usize {
        let lists: usize = self.lists().iter().map(|list| list.bytes()).sum();
        lists + self.pool.unused()
    }

    /// Forgets what there was before another library has reset the device. Called under any locks but the last ones.
    pub(super) fn forget(&self) {
        self.lists().iter().for_each(|list| list.forget());
        self.pool.leave();
    }

    /// Forgets everything, since the device is about to be reset. Returns what the driver may
    /// still hold afterwards, for [`Pool::free_left`].
    pub(super) fn end(&self) -> Vec<u64> {
        let left = self.pool.end();
        for list in self.lists() {
            list.forget();
        }
        left
    }
}
