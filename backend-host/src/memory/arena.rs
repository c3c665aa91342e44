//! Chunks of small blocks, separated by unused margins.
//!
//! A kernel that writes slightly beyond a small array thus reaches neither another array nor memory of the
//! process's allocator. The first blocks are as far apart as large ones (`block.rs`). With many blocks, each
//! one would keep a page busy, so later chunks have smaller margins. The metadata of all blocks is at the
//! beginning of their chunk, whose address follows from a block's address.

use super::block::{ALIGNMENT, BEHIND, FRONT, small_size};
use super::fresh;
use std::alloc::{Layout, dealloc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The largest block size in chunks. For larger blocks the saving is small: they fill pages, and their
/// margins are not touched.
pub(super) const LARGEST: usize = 1024;
/// The size and alignment of a chunk.
pub(super) const CHUNK: usize = 256 << 10;
/// The chunk has one [`mark`] for each window of this size. At most one block begins in a window.
const WINDOW: usize = 1024;
/// The offset of the first block.
const FIRST: usize = CHUNK / WINDOW * size_of::<u32>() + FRONT;
/// The margin after each block of a narrow chunk.
const NARROW: usize = 1024;
/// The maximum number of wide chunks.
const MOST_WIDE: usize = 80;

/// The maximum number of kept chunks of one size without a used block.
const MOST_EMPTY: usize = 128;

/// The arrangement of the blocks in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    is_wide: bool,
    /// The distance from one block to the next.
    stride: usize,
}

impl Shape {
    fn of(size: usize, is_wide: bool) -> Shape {
        let margin = if is_wide { FRONT + BEHIND } else { NARROW };
        Shape { is_wide, stride: (size + margin).next_multiple_of(ALIGNMENT) }
    }

    /// Returns the number of blocks in a chunk. The last block is followed by a whole margin.
    fn count(self, size: usize) -> usize {
        (CHUNK - FIRST - size - BEHIND) / self.stride + 1
    }

    /// Returns the block whose part of the chunk contains an address.
    pub(super) fn block(self, chunk: usize, address: usize) -> Option<usize> {
        let behind = address.checked_sub(chunk + FIRST).filter(|it| *it < CHUNK - FIRST)?;
        Some(address - behind % self.stride)
    }
}

/// Returns the mark of a block: the number of bytes that its allocation requested, zero while it is free.
///
/// # Safety
/// The block is in a chunk that stays allocated while the mark is used.
#[inline]
pub(super) unsafe fn mark<'a>(address: usize) -> &'a AtomicU32 {
    let within = address % CHUNK;
    let place = address - within + within / WINDOW * size_of::<u32>();
    // SAFETY: a chunk is aligned to its size, and begins with a mark for each window.
    unsafe { AtomicU32::from_ptr(place as *mut u32) }
}

#[derive(Debug)]
struct Chunk {
    shape: Shape,
    /// The number of used blocks. `fresh` is the number of blocks that were never used.
    live: usize,
    fresh: usize,
    /// The blocks that were returned.
    free: Vec<usize>,
}

/// The chunks for one block size.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: HashMap<usize, Chunk>,
    /// The chunks with a block to hand out. `empty` is the number of chunks without a used block.
    open: Vec<usize>,
    empty: usize,
}

fn layout() -> Layout {
    Layout::from_size_align(CHUNK, CHUNK).expect("a power of two")
}

impl Arena {
    /// Takes a block of the list `index`. If its chunk is new, also returns the chunk and its shape. `wide`
    /// counts the wide chunks. Returns `None` if the system cannot provide more memory.
    pub(super) fn take(
        &mut self,
        index: usize,
        wide: &AtomicUsize,
    ) -> Option<(usize, Option<(usize, Shape)>)> {
        let size = small_size(index);
        let mut new = None;
        let base = match self.open.last() {
            Some(&base) => base,
            None => {
                let few = |it: usize| (it < MOST_WIDE).then_some(it + 1);
                let is_wide = wide.fetch_update(Ordering::Relaxed, Ordering::Relaxed, few).is_ok();
                let shape = Shape::of(size, is_wide);
                let base = self.add(shape, shape.count(size));
                if base.is_none() && is_wide {
                    wide.fetch_sub(1, Ordering::Relaxed);
                }
                new = base.map(|it| (it, shape));
                base?
            }
        };
        let chunk = self.chunks.get_mut(&base)?;
        self.empty -= usize::from(chunk.live == 0);
        chunk.live += 1;
        let address = chunk.free.pop().unwrap_or_else(|| {
            chunk.fresh -= 1;
            let number = chunk.shape.count(size) - 1 - chunk.fresh;
            base + FIRST + number * chunk.shape.stride
        });
        if chunk.fresh == 0 && chunk.free.is_empty() {
            self.open.pop();
        }
        Some((address, new))
    }

    fn add(&mut self, shape: Shape, blocks: usize) -> Option<usize> {
        // SAFETY: the layout's size is not zero.
        let pointer = unsafe { fresh(layout()) };
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the chunk begins with the marks.
        unsafe { pointer.write_bytes(0, FIRST - FRONT) };
        let base = pointer as usize;
        self.chunks.insert(base, Chunk { shape, live: 0, fresh: blocks, free: Vec::new() });
        self.open.push(base);
        self.empty += 1;
        Some(base)
    }

    /// Returns a block to its chunk. If the chunk is then unused and is not to be kept, or too many are kept,
    /// it is removed and returned for [`end`]. A forked child ignores its parent's blocks.
    pub(super) fn put_back(
        &mut self,
        address: usize,
        keeps: bool,
        wide: &AtomicUsize,
    ) -> Option<usize> {
        let base = address - address % CHUNK;
        let chunk = self.chunks.get_mut(&base)?;
        if chunk.fresh == 0 && chunk.free.is_empty() {
            self.open.push(base);
        }
        chunk.free.push(address);
        chunk.live -= 1;
        if chunk.live > 0 {
            return None;
        }
        self.empty += 1;
        (!keeps || self.empty > MOST_EMPTY).then(|| self.forget(base, wide))
    }

    /// Returns the number of bytes in chunks without a used block.
    pub(super) fn kept(&self) -> usize {
        self.empty * CHUNK
    }

    /// Removes a chunk without a used block, for [`end`].
    pub(super) fn take_empty(&mut self, wide: &AtomicUsize) -> Option<usize> {
        (self.empty > 0).then_some(())?;
        let base = *self.chunks.iter().find(|(_, chunk)| chunk.live == 0)?.0;
        Some(self.forget(base, wide))
    }

    fn forget(&mut self, base: usize, wide: &AtomicUsize) -> usize {
        let chunk = self.chunks.remove(&base);
        let is_wide = chunk.is_some_and(|it| it.shape.is_wide);
        wide.fetch_sub(usize::from(is_wide), Ordering::Relaxed);
        self.open.retain(|it| *it != base);
        self.empty -= 1;
        base
    }
}

/// Releases a chunk to the system.
///
/// # Safety
/// An arena has returned the chunk for this purpose, and nothing looks up its blocks any longer.
pub(super) unsafe fn end(chunk: usize) {
    // SAFETY: the caller's promise.
    unsafe { dealloc(chunk as *mut u8, layout()) };
}
