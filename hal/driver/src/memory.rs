//! The allocator of a device: the streams' lists of freed blocks, backed by the driver's pool.

pub(super) mod pool;

use crate::calls::Handle;
use crate::context::{Contents, Context};
use hal::error::Result;
use hal::locks::{GIVING_BACK, LEAF, Ranked};
use hal::memory::BlockOwner;
use hal::status::Status;
use pool::{GRANULE, Pool, out_of_memory};
use std::collections::BTreeMap;
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

    /// Creates the list of a new stream.
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

    /// Allocates memory for work that is queued on the list's stream from now on.
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
            // The retried allocation reports how much memory is available now.
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

    /// Allocates memory from the driver; also returns the driver's status. The pool is used on the list's stream,
    /// unless that stream captures or a capture bars it. In these cases the request would become part of the
    /// capture, and NVIDIA's driver crashes if another thread begins or ends a capture meanwhile. The context
    /// is current.
    fn take(&self, list: &FreeList, size: usize) -> Result<(u64, c_int)> {
        let state = &self.pool.context().capture_state;
        let _none_changes = state.beginning.lock();
        match state.are_possible() && list.may_capture(self.pool.context()) {
            true => Ok(self.pool.take_plain(size)),
            false => self.pool.take(list.stream(), size),
        }
    }

    /// Returns all unused memory to the driver, after waiting for the device's work.
    pub(super) fn give_all_back(&self) -> Result<()> {
        // A failure on one stream does not prevent the release of the others' blocks.
        let mut result = Ok(());
        for list in self.lists() {
            result = result.and(list.give_back(&self.pool));
        }
        result?;
        self.pool.give_unused_back()
    }

    /// Returns the freed bytes in the streams' lists and in the driver's pool. The context is current.
    pub(super) fn kept(&self) -> usize {
        let lists: usize = self.lists().iter().map(|list| list.bytes()).sum();
        lists + self.pool.unused()
    }

    /// Forgets everything, because the device is about to be reset. Returns the addresses that the driver may still
    /// hold afterwards, for [`Pool::free_left`].
    pub(super) fn end(&self) -> Vec<u64> {
        let left = self.pool.end();
        for list in self.lists() {
            list.forget();
        }
        left
    }
}

impl Contents for DeviceAllocator {
    /// The caller may hold any locks except those of rank [`LEAF`].
    fn forget(&self) {
        self.lists().iter().for_each(|list| list.forget());
        self.pool.leave();
    }
}

impl BlockOwner for DeviceAllocator {
    fn epoch(&self) -> u64 {
        self.pool.context().epoch()
    }

    fn is_alive(&self, epoch: u64) -> bool {
        self.pool.context().is_alive(epoch)
    }

    unsafe fn free_block(&self, address: u64, _bytes: usize) -> Result<()> {
        let _scope = self.pool.context().enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.pool.put_behind_all(address) }
    }
}

// Each stream has a list of freed blocks, in front of the pool, because a driver call costs more than most work on
// small arrays.
//
// A block that is freed on a stream may be reused immediately by later work of the same stream. Blocks up to
// [`LARGEST_KEPT`] are kept in this way, up to [`MOST_KEPT`] bytes per stream; larger ones return to the driver's
// pool. For a driver without pools, plain allocation takes the pool's place, and the lists keep blocks of every
// size.

/// The size of the largest block that a stream keeps if the driver has a pool.
const LARGEST_KEPT: usize = 1 << 20;
/// The maximum number of bytes that a stream keeps.
const MOST_KEPT: usize = 64 << 20;
/// Like [`MOST_KEPT`], for a driver without a pool: it frees memory only after waiting for the device.
const MOST_KEPT_PLAIN: usize = 512 << 20;
/// The number of size classes up to [`LARGEST_KEPT`], four per power of two.
const CLASSES: usize = 4 * (LARGEST_KEPT / GRANULE).ilog2() as usize + 1;

/// Returns the class of a size and the bytes of its blocks; `None` for sizes above [`LARGEST_KEPT`].
#[inline]
fn class(bytes: usize) -> Option<(usize, usize)> {
    let granules = bytes.div_ceil(GRANULE).max(1);
    if granules > LARGEST_KEPT / GRANULE {
        return None;
    }
    if granules <= 4 {
        // The numbers follow the scheme of the larger classes, so the numbers between them are unused.
        let index = [0, 4, 6, 8][granules - 1];
        return Some((index, granules * GRANULE));
    }
    let doubling = (granules - 1).ilog2() as usize;
    let step = 1 << (doubling - 2);
    let quarters = granules.div_ceil(step);
    // Quarters 5 to 8 of the power of two.
    Some((4 * doubling + quarters - 4, quarters * step * GRANULE))
}

/// Returns the bytes of a class's blocks.
fn class_size(index: usize) -> usize {
    let granules = index.checked_sub(1).map_or(1, |index| ((index % 4 + 5) << (index / 4)) >> 2);
    granules * GRANULE
}

/// Returns the number of bytes that an allocation actually gets.
fn rounded(bytes: usize) -> usize {
    match class(bytes) {
        Some((_, bytes)) => bytes,
        None => bytes.checked_next_multiple_of(LARGEST_KEPT).unwrap_or(bytes),
    }
}

#[derive(Debug)]
struct Lists {
    small: [Vec<u64>; CLASSES],
    /// Larger blocks by size; used only without a pool.
    large: BTreeMap<usize, Vec<u64>>,
    bytes: usize,
}

impl Lists {
    const fn new() -> Lists {
        Lists { small: [const { Vec::new() }; CLASSES], large: BTreeMap::new(), bytes: 0 }
    }

    /// Takes every block, with its size, and leaves the lists empty.
    fn take_all(&mut self) -> Vec<(u64, usize)> {
        let Lists { small, large, .. } = std::mem::replace(self, Lists::new());
        let small = small.into_iter().enumerate().flat_map(|(index, blocks)| {
            let size = class_size(index);
            blocks.into_iter().map(move |block| (block, size))
        });
        let large = large
            .into_iter()
            .flat_map(|(size, blocks)| blocks.into_iter().map(move |block| (block, size)));
        small.chain(large).collect()
    }

    /// Keeps a block of a size that [`rounded`] returns.
    fn keep(&mut self, address: u64, size: usize) {
        self.bytes += size;
        match class(size) {
            Some((class, _)) => self.small[class].push(address),
            None => self.large.entry(size).or_default().push(address),
        }
    }
}

/// The blocks that were freed on one stream and not returned to the driver.
#[derive(Debug)]
pub(crate) struct FreeList {
    stream: Handle,
    /// False after the stream is gone. Locked while blocks are returned in the order of the stream, so that the
    /// stream exists meanwhile.
    is_open: Ranked<bool, GIVING_BACK>,
    lists: Ranked<Lists, LEAF>,
}

impl FreeList {
    /// Creates the list of a stream.
    fn new(stream: Handle) -> FreeList {
        let lists = Ranked::new(Lists::new());
        FreeList { stream, is_open: Ranked::new(true), lists }
    }

    /// Returns the driver's handle of the stream.
    fn stream(&self) -> Handle {
        self.stream
    }

    /// Takes a kept block of the size's class, for work that is queued on the stream from now on.
    #[inline]
    fn pop(&self, bytes: usize) -> Option<u64> {
        let (class, size) = class(bytes)?;
        let mut lists = self.lists.lock();
        let address = lists.small[class].pop()?;
        lists.bytes -= size;
        Some(address)
    }

    /// Takes a kept block of this size, a result of [`rounded`] above the classes.
    fn pop_large(&self, size: usize) -> Option<u64> {
        let mut lists = self.lists.lock();
        let address = lists.large.get_mut(&size).and_then(Vec::pop)?;
        lists.bytes -= size;
        Some(address)
    }

    /// Frees memory after the work queued so far.
    ///
    /// # Safety
    /// Address and bytes belong to one allocation of this device's pool that has not been freed. Other streams' work
    /// on the memory is ordered before this call.
    #[inline]
    pub(crate) unsafe fn free(&self, pool: &Pool, address: u64, bytes: usize) -> Result<()> {
        let (size, most) = match class(bytes) {
            Some((_, size)) => (size, MOST_KEPT),
            None if pool.is_pooled() => (bytes, 0),
            None => (rounded(bytes), MOST_KEPT_PLAIN),
        };
        {
            let mut lists = self.lists.lock();
            if lists.bytes + size <= most {
                lists.keep(address, size);
                return Ok(());
            }
        }
        let context = pool.context();
        let _scope = context.enter()?;
        // Another thread may begin a capture on the stream, and the call would become part of it. On the default
        // stream, the call would end a capture that the default stream waits for.
        let _none_begins = context.capture_state.beginning.lock();
        if context.capture_state.are_possible() && self.may_capture(context) {
            self.lists.lock().keep(address, rounded(bytes));
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { pool.put(self.stream, address) }
    }

    /// Returns the bytes of the kept blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.lock().bytes
    }

    /// Returns all kept blocks to the driver, unless the stream captures: the frees would then become part of the
    /// graph.
    pub(crate) fn give_back(&self, pool: &Pool) -> Result<()> {
        if self.bytes() == 0 {
            // The driver is not called either, because a reset may have destroyed the handle.
            return Ok(());
        }
        let context = pool.context();
        let is_open = self.is_open.lock();
        // The stream must not begin to capture before the last block has been returned.
        let _none_begins = context.capture_state.beginning.lock();
        if !*is_open || (context.capture_state.are_possible() && self.may_capture(context)) {
            return Ok(());
        }
        self.give_back_held(pool)
    }

    /// Returns false if the driver reports that the stream is not part of a capture and does not wait for one.
    /// Returns true if the stream cannot be queried: another library may have destroyed it, so it must not be used.
    fn may_capture(&self, context: &Context) -> bool {
        let Ok(_scope) = context.enter() else { return true };
        if self.stream == 0 {
            return context.default_is_barred();
        }
        let can_tell = context.driver.calls.capture_info.is_some();
        !can_tell || !matches!(context.capture_of(self.stream), Ok(None))
    }

    /// Takes every kept block, for the caller to free. The list does not use the stream afterwards.
    pub(crate) fn take(&self) -> Vec<(u64, usize)> {
        *self.is_open.lock() = false;
        self.lists.lock().take_all()
    }

    /// Returns all kept blocks to the driver, and does not use the stream afterwards: it is about to be destroyed.
    pub(crate) fn close(&self, pool: &Pool) -> Result<()> {
        let mut is_open = self.is_open.lock();
        *is_open = false;
        self.give_back_held(pool)
    }

    /// The shared part of `give_back` and `close`, with `is_open` locked.
    fn give_back_held(&self, pool: &Pool) -> Result<()> {
        let _scope = pool.context().enter()?;
        let blocks = self.lists.lock().take_all();
        let mut result = Ok(());
        for (address, size) in blocks {
            // SAFETY: the list owned the block, whose last use was on this stream.
            if let Err(error) = unsafe { pool.put(self.stream, address) } {
                self.lists.lock().keep(address, size);
                result = Err(error);
            }
        }
        result
    }

    /// Forgets all blocks, because the device was reset.
    pub(crate) fn forget(&self) {
        *self.lists.lock() = Lists::new();
    }
}

#[cfg(test)]
mod free_list_tests {
    use super::{CLASSES, GRANULE, LARGEST_KEPT, class, class_size};

    #[test]
    fn a_class_holds_what_it_is_asked_for_and_little_more() {
        let mut last = (0, 0);
        for bytes in 1..=LARGEST_KEPT {
            let (index, size) = class(bytes).expect("small enough to be kept");
            assert!(index < CLASSES && size >= bytes, "{bytes}: class {index} of {size}");
            assert!(size <= GRANULE.max(bytes + bytes / 4 + GRANULE), "{bytes}: {size}");
            assert!((index, size) >= last, "{bytes}: {index} of {size} after {last:?}");
            assert_eq!(index == last.0, size == last.1 || last.1 == 0, "{bytes}");
            assert_eq!(class(size), Some((index, size)));
            assert_eq!(class_size(index), size);
            last = (index, size);
        }
        assert_eq!(class(LARGEST_KEPT + 1), None);
    }
}
