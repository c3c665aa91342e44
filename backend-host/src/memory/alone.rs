//! Blocks that are returned to the process's allocator as soon as they are freed: page-aligned blocks, and
//! all blocks if no memory is kept. In the second case, blocks have exactly the requested size, so that
//! tools which watch the allocator detect accesses beyond a block and to a freed block.

use super::block::{ALIGNMENT, page_layout};
use super::quarantine::Freed;
use super::{Block, Memory, fresh};
use hal::Result;
use std::alloc::{Layout, dealloc};

impl Memory {
    /// Returns true if no memory is kept.
    pub(super) fn is_exact(&self) -> bool {
        self.cache_limit == 0
    }

    /// Allocates at least `bytes` bytes, starting at a page boundary.
    ///
    /// # Errors
    /// The same as [`Memory::allocate`].
    pub(crate) fn allocate_pages(&self, bytes: usize) -> Result<u64> {
        self.account(bytes, || self.take_alone(page_layout(bytes)?, bytes))
    }

    /// Frees memory of [`Memory::allocate_pages`].
    ///
    /// # Safety
    /// Address and size belong to one allocation, and nothing uses it any longer.
    pub(crate) unsafe fn free_pages(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.end(Freed { address, bytes, put_back: Memory::put_back_pages }) };
    }

    /// # Safety
    /// The same as for [`Memory::free_pages`].
    unsafe fn put_back_pages(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.put_back_alone(address, page_layout(bytes)) };
    }

    /// Allocates a block of exactly this many bytes.
    pub(super) fn take_exact(&self, bytes: usize) -> Option<u64> {
        self.take_alone(exact_layout(bytes)?, bytes)
    }

    /// # Safety
    /// Address and size come from [`Memory::take_exact`], and nothing uses the block any longer.
    pub(super) unsafe fn put_back_exact(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.put_back_alone(address, exact_layout(bytes)) };
    }

    /// Allocates a block with a layout whose size is not zero. The block starts at offset `front` in it.
    fn take_alone(&self, (layout, front): (Layout, usize), bytes: usize) -> Option<u64> {
        // SAFETY: the layout's size is not zero.
        let pointer = unsafe { fresh(layout) };
        if pointer.is_null() {
            return None;
        }
        // SAFETY: `front` is inside the layout.
        let pointer = unsafe { pointer.add(front) };
        self.blocks.lock().insert(pointer as usize, Block::Large(bytes));
        Some(pointer as u64)
    }

    /// # Safety
    /// The block was allocated with this layout, and nothing uses it any longer.
    unsafe fn put_back_alone(&self, address: u64, layout: Option<(Layout, usize)>) {
        self.blocks.lock().remove(&(address as usize));
        if let Some((layout, front)) = layout {
            // SAFETY: the caller's promise.
            unsafe { dealloc((address as usize - front) as *mut u8, layout) };
        }
    }
}

fn exact_layout(bytes: usize) -> Option<(Layout, usize)> {
    Some((Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?, 0))
}
