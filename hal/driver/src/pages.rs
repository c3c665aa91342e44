//! Page-locked memory: pages of the process that the driver page-locks. A reset of the device, also by another
//! library, ends the page-locking but keeps the pages, so that code that reads or writes them can continue.
//!
//! Page-locking costs far more than reusing page-locked memory, so small requests share a block.

use crate::context::Context;
use hal::locks::{LEAF, Ranked};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;
/// The size of a part; a shared block has 128 parts.
const PART: usize = 4 * PAGE;
const SHARED: usize = 128 * PART;
/// The maximum number of parts of a request that shares a block.
const MOST_PARTS: u32 = 64;

/// Returns the number of parts that a request takes; `None` for a request that gets a block of its own.
fn parts_of(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.max(1).div_ceil(PART)).ok().filter(|parts| *parts <= MOST_PARTS)
}

/// A page-locked range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// The epoch in which it was page-locked. In another epoch, it no longer is.
    pub(super) epoch: u64,
    /// False if the block serves a single request.
    is_shared: bool,
    /// A bit for each part in use.
    used: u128,
}

impl Block {
    /// Allocates a block for a request of this many bytes, and for others if there is room; `None` if not enough
    /// memory is available.
    pub(super) fn allocate(bytes: usize, context: &Context) -> Option<Block> {
        let is_shared = parts_of(bytes).is_some();
        let layout = Self::layout(if is_shared { SHARED } else { bytes })?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        let (bytes, epoch) = (layout.size(), context.epoch());
        let start = (!start.is_null()).then(|| start.expose_provenance())?;
        Some(Block { start, bytes, epoch, is_shared, used: 0 })
    }

    fn layout(bytes: usize) -> Option<Layout> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
        Layout::from_size_align(bytes, PAGE).ok()
    }

    /// # Safety
    /// The block is not page-locked by a driver, and is no longer used.
    pub(super) unsafe fn free(self) {
        if let Some(layout) = Self::layout(self.bytes) {
            // SAFETY: the block was allocated with this layout; the caller's promise.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(self.start), layout) };
        }
    }

    /// Returns the bits of the first free range of this many parts.
    fn find(&self, parts: u32) -> Option<u128> {
        let bits = (1_u128 << parts) - 1;
        (0..=u128::BITS - parts).map(|at| bits << at).find(|bits| self.used & bits == 0)
    }
}

/// The page-locked blocks of a device.
#[derive(Debug)]
pub(super) struct Pages {
    context: Arc<Context>,
    /// The blocks by address.
    blocks: Ranked<BTreeMap<usize, Block>, LEAF>,
}

impl Pages {
    pub(super) fn new(context: &Arc<Context>) -> Pages {
        Pages { context: context.clone(), blocks: Ranked::default() }
    }

    /// Takes a free part of an existing block; `None` if there is none.
    pub(super) fn take(&self, bytes: usize) -> Option<*mut u8> {
        let parts = parts_of(bytes)?;
        let epoch = self.context.epoch();
        self.blocks.lock().values_mut().find_map(|block| {
            let bits = block.find(parts).filter(|_| block.epoch == epoch && block.is_shared)?;
            block.used |= bits;
            let start = block.start + bits.trailing_zeros() as usize * PART;
            Some(std::ptr::with_exposed_provenance_mut(start))
        })
    }

    /// Adds a block that has been page-locked, and returns its first `bytes` bytes.
    pub(super) fn add(&self, mut block: Block, bytes: usize) -> *mut u8 {
        block.used = parts_of(bytes).map_or(1, |parts| (1 << parts) - 1);
        self.blocks.lock().insert(block.start, block);
        std::ptr::with_exposed_provenance_mut(block.start)
    }

    /// Returns the block that contains an address.
    pub(super) fn block_of(&self, pointer: *mut u8) -> Option<Block> {
        let blocks = self.blocks.lock();
        let (start, block) = blocks.range(..=pointer.addr()).next_back()?;
        (pointer.addr() - start < block.bytes).then_some(*block)
    }

    /// Frees the memory of a request, which no work uses any longer. If nothing else in the block is in use, and the
    /// block is not kept for later requests, returns the block.
    pub(super) fn give_back(&self, pointer: *mut u8, bytes: usize) -> Option<Block> {
        let (mut blocks, epoch) = (self.blocks.lock(), self.context.epoch());
        let is_kept = |block: &Block| block.is_shared && block.epoch == epoch;
        let empty = blocks.values().filter(|block| is_kept(block) && block.used == 0).count();
        let (_, block) = blocks.range_mut(..=pointer.addr()).next_back()?;
        let bits = parts_of(bytes).map_or(1, |parts| (1_u128 << parts) - 1);
        block.used &= !(bits << ((pointer.addr() - block.start) / PART));
        if block.used != 0 || (is_kept(block) && empty == 0) {
            return None;
        }
        let start = block.start;
        blocks.remove(&start)
    }

    /// Removes and returns the kept blocks that are not in use.
    pub(super) fn take_empty(&self) -> Vec<Block> {
        let mut blocks = self.blocks.lock();
        let empty = blocks.values().filter(|block| block.used == 0).copied().collect::<Vec<_>>();
        blocks.retain(|_, block| block.used != 0);
        empty
    }
}

// Managed memory across a reset of the device. The driver unmaps the addresses, but numpy's arrays may still refer to
// them, so ordinary memory with the same bytes replaces it.

/// The managed memory of a device, and the ordinary memory that replaced it at resets.
#[derive(Debug, Default)]
pub(super) struct ManagedRanges {
    /// The sizes in bytes, by address.
    live: Ranked<BTreeMap<u64, usize>, LEAF>,
    detached: Ranked<Vec<Detached>, LEAF>,
}

/// Ordinary pages in place of managed memory, and the ranges in them that are not freed yet.
#[derive(Debug)]
struct Detached {
    start: u64,
    bytes: usize,
    ranges: Vec<u64>,
}

/// A copy of the pages before the reset.
#[derive(Debug)]
pub(super) struct Saved {
    pages: Detached,
    #[cfg(target_os = "linux")]
    copy: Option<std::fs::File>,
}

impl ManagedRanges {
    pub(super) fn add(&self, address: u64, bytes: usize) {
        self.live.lock().insert(address, bytes);
    }

    /// Removes a range that is about to be freed.
    pub(super) fn remove(&self, address: u64) {
        self.live.lock().remove(&address);
    }

    /// Copies all bytes, for [`ManagedRanges::restore`] after the reset.
    pub(super) fn save(&self) -> Vec<Saved> {
        let live = std::mem::take(&mut *self.live.lock());
        let mut all: Vec<Detached> = Vec::new();
        for (address, bytes) in live {
            let start = address / PAGE as u64 * PAGE as u64;
            let end = (address + bytes as u64).next_multiple_of(PAGE as u64);
            match all.last_mut() {
                // Small ranges share pages.
                Some(last) if start <= last.start + last.bytes as u64 => {
                    last.bytes = last.bytes.max((end - last.start) as usize);
                    last.ranges.push(address);
                }
                _ => all.push(Detached {
                    start,
                    bytes: (end - start) as usize,
                    ranges: vec![address],
                }),
            }
        }
        all.into_iter().map(Saved::of).collect()
    }

    /// Maps ordinary memory in place of the memory that the driver has unmapped.
    pub(super) fn restore(&self, saved: Vec<Saved>) {
        let back = saved.into_iter().filter_map(Saved::put_back);
        let mut back = back.collect::<Vec<_>>();
        self.detached.lock().append(&mut back);
    }

    /// Frees a range in ordinary memory that replaced managed memory. It is no longer used.
    pub(super) fn free_detached(&self, address: u64) {
        let mut detached = self.detached.lock();
        for pages in detached.iter_mut() {
            pages.ranges.retain(|range| *range != address);
        }
        let ended = detached.extract_if(.., |pages| pages.ranges.is_empty());
        let ended = ended.collect::<Vec<_>>();
        drop(detached);
        ended.iter().for_each(Detached::unmap);
    }
}

#[cfg(target_os = "linux")]
impl Saved {
    /// Copies the pages with a system call, because accessing memory of a failed device directly may fault.
    /// Unreadable bytes become zeros.
    fn of(pages: Detached) -> Saved {
        use std::os::fd::{AsRawFd, FromRawFd};
        // SAFETY: the name ends with a zero byte.
        let file = unsafe { libc::memfd_create(c"pygpu-managed".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: the descriptor was created above and is not shared.
        let file = (file >= 0).then(|| unsafe { std::fs::File::from_raw_fd(file) });
        let copy = file.filter(|file| file.set_len(pages.bytes as u64).is_ok());
        if let Some(file) = &copy {
            let (mut done, descriptor) = (0, file.as_raw_fd());
            while done < pages.bytes {
                let from = std::ptr::with_exposed_provenance((pages.start as usize) + done);
                let left = pages.bytes - done;
                // SAFETY: the system checks the range, which is inside managed memory.
                let wrote = unsafe { libc::pwrite(descriptor, from, left, done as libc::off_t) };
                let Some(wrote) = usize::try_from(wrote).ok().filter(|wrote| *wrote > 0) else {
                    log::warn!(
                        "managed memory at {:#x} could not be kept over a reset",
                        pages.start
                    );
                    break;
                };
                done += wrote;
            }
        }
        Saved { pages, copy }
    }

    fn put_back(self) -> Option<Detached> {
        use std::os::fd::AsRawFd;
        let Saved { pages, copy } = self;
        let place = std::ptr::with_exposed_provenance_mut(pages.start as usize);
        let (file, flags) = match &copy {
            Some(file) => (file.as_raw_fd(), libc::MAP_PRIVATE),
            None => (-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
        };
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_FIXED_NOREPLACE);
        // SAFETY: no existing mapping is replaced; the addresses belong to memory that no longer exists.
        let mapped = unsafe { libc::mmap(place, pages.bytes, access, flags, file, 0) };
        if mapped == place {
            return Some(pages);
        }
        if mapped != libc::MAP_FAILED {
            // SAFETY: an old kernel ignored the flag and has just mapped the pages elsewhere.
            unsafe { libc::munmap(mapped, pages.bytes) };
        }
        log::warn!("managed memory at {:#x} could not be kept over a reset", pages.start);
        None
    }
}

#[cfg(target_os = "linux")]
impl Detached {
    fn unmap(&self) {
        let place = std::ptr::with_exposed_provenance_mut(self.start as usize);
        // SAFETY: the pages replaced ranges that have all been freed by now.
        unsafe { libc::munmap(place, self.bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Saved {
    fn of(pages: Detached) -> Saved {
        Saved { pages }
    }

    fn put_back(self) -> Option<Detached> {
        log::warn!("a reset has destroyed the managed memory at {:#x}", self.pages.start);
        None
    }
}

#[cfg(not(target_os = "linux"))]
impl Detached {
    fn unmap(&self) {}
}

#[cfg(test)]
mod tests {
    use super::{Block, PART, SHARED};

    #[test]
    fn parts_are_found_where_they_are_free() {
        let mut block = Block { start: 0, bytes: SHARED, epoch: 0, is_shared: true, used: 0 };
        assert_eq!(block.find(64), Some((1 << 64) - 1));
        block.used = 0b1011;
        assert_eq!((block.find(1), block.find(2)), (Some(0b100), Some(0b11_0000)));
        block.used = !(1 << 127);
        assert_eq!((block.find(1), block.find(2)), (Some(1 << 127), None));
        assert_eq!(SHARED / PART, u128::BITS as usize);
    }
}
