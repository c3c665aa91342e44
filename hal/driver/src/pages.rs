//! Page-locked memory: pages of the process's own, which the driver page-locks. A reset of the device, by whomever,
//! ends the page-locking and leaves the pages, so that whoever reads or writes them goes on.
//!
//! Page-locking costs far more than it does to hand out memory that is page-locked already: small requests share
//! a block.

use super::context::Context;
use hal::locks::{LEAF, Ranked};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;
/// A block that is shared has 128 parts.
const PART: usize = 4 * PAGE;
const SHARED: usize = 128 * PART;
/// The most parts of a request that shares a block.
const MOST_PARTS: u32 = 64;

/// The parts of a block that a request takes; `None` for one that has a block alone.
fn parts_of(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.max(1).div_ceil(PART)).ok().filter(|parts| *parts <= MOST_PARTS)
}

/// A page-locked range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// In which it was page-locked: another epoch's is page-locked no longer.
    pub(super) epoch: u64,
    /// False if a request has it alone.
    is_shared: bool,
    /// The parts in use.
    used: u128,
}

impl Block {
    /// New memory for a request of so many bytes, and for others if there is room; `None` if there is not so much.
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
    /// The block is page-locked by no driver, and nobody uses it any longer.
    pub(super) unsafe fn free(self) {
        if let Some(layout) = Self::layout(self.bytes) {
            // SAFETY: the block was allocated with this layout; the caller's promise.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(self.start), layout) };
        }
    }

    /// The bits of so many parts from the first place that has them free.
    fn find(&self, parts: u32) -> Option<u128> {
        let bits = (1_u128 << parts) - 1;
        (0..=u128::BITS - parts).map(|at| bits << at).find(|bits| self.used & bits == 0)
    }
}

/// The page-locked blocks of a device.
#[derive(Debug)]
pub(super) struct Pages {
    context: Arc<Context>,
    /// By address.
    blocks: Ranked<BTreeMap<usize, Block>, LEAF>,
}

impl Pages {
    pub(super) fn new(context: &Arc<Context>) -> Pages {
        Pages { context: context.clone(), blocks: Ranked::default() }
    }

    /// A part of a block that is there; `None` if there is none.
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

    /// Takes over a block that has been page-locked, and returns the first `bytes` of it.
    pub(super) fn add(&self, mut block: Block, bytes: usize) -> *mut u8 {
        block.used = parts_of(bytes).map_or(1, |parts| (1 << parts) - 1);
        self.blocks.lock().insert(block.start, block);
        std::ptr::with_exposed_provenance_mut(block.start)
    }

    /// The block in which an address lies.
    pub(super) fn block_of(&self, pointer: *mut u8) -> Option<Block> {
        let blocks = self.blocks.lock();
        let (start, block) = blocks.range(..=pointer.addr()).next_back()?;
        (pointer.addr() - start < block.bytes).then_some(*block)
    }

    /// Gives back what a request got, which no work uses any longer. Returns the block if that was its last user, and
    /// it is not kept for the next.
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

    /// The blocks that are kept without a user, which are forgotten.
    pub(super) fn take_empty(&self) -> Vec<Block> {
        let mut blocks = self.blocks.lock();
        let empty = blocks.values().filter(|block| block.used == 0).copied().collect::<Vec<_>>();
        blocks.retain(|_, block| block.used != 0);
        empty
    }
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
