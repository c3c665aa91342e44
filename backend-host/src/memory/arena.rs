//! Chunks of small blocks, with margins that are nobody's between them.
//!
//! What a kernel writes a little beside a small array reaches no other one, and nothing of the process's allocator: the
//! first blocks are as far from each other as large ones (`block.rs`). Where there are many, each would keep a page
//! busy, so later chunks have smaller margins. What is known of the blocks stands at the beginning of their chunk,
//! which a block finds by its address.

use super::block::{ALIGNMENT, BEHIND, FRONT, small_size};
use super::fresh;
use std::alloc::{Layout, dealloc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The largest block of a chunk. Larger ones would save little: they fill pages, and margins are not touched.
pub(super) const LARGEST: usize = 1024;
/// A chunk is as large, and begins at a multiple of it.
pub(super) const CHUNK: usize = 256 << 10;
/// No two blocks begin in one window; the chunk begins with a mark for each.
const WINDOW: usize = 1024;
/// Where the first block begins.
const FIRST: usize = CHUNK / WINDOW * size_of::<u32>() + FRONT;
/// The margin behind each block of a narrow chunk.
const NARROW: usize = 1024;
/// So many chunks of a process's device are wide, at most.
const MOST_WIDE: usize = 80;

/// Chunks of one size without a block in use that are kept, at most.
const MOST_EMPTY: usize = 128;

/// How the blocks of a chunk lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    is_wide: bool,
    /// From one block to the next.
    stride: usize,
}

impl Shape {
    fn of(size: usize, is_wide: bool) -> Shape {
        let margin = if is_wide { FRONT + BEHIND } else { NARROW };
        Shape { is_wide, stride: (size + margin).next_multiple_of(ALIGNMENT) }
    }

    /// Blocks of a chunk, behind the last of which there is a whole margin.
    fn count(self, size: usize) -> usize {
        (CHUNK - FIRST - size - BEHIND) / self.stride + 1
    }

    /// The block whose part of a chunk an address is in.
    pub(super) fn block(self, chunk: usize, address: usize) -> Option<usize> {
        let behind = address.checked_sub(chunk + FIRST).filter(|it| *it < CHUNK - FIRST)?;
        Some(address - behind % self.stride)
    }
}

/// The mark of a block: the bytes that its allocation asked for, zero while it is free.
///
/// # Safety
/// The block is one of a chunk, which stays allocated while the mark is used.
#[inline]
pub(super) unsafe fn mark<'a>(address: usize) -> &'a AtomicU32 {
    let within = address % CHUNK;
    let place = address - within + within / WINDOW * size_of::<u32>();
    // SAFETY: a chunk begins at a multiple of its size with a mark for each window.
    unsafe { AtomicU32::from_ptr(place as *mut u32) }
}

#[derive(Debug)]
struct Chunk {
    shape: Shape,
    /// Blocks that are handed out, and those that never were.
    live: usize,
    fresh: usize,
    /// Blocks that came back.
    free: Vec<usize>,
}

/// The chunks of one size of blocks.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: HashMap<usize, Chunk>,
    /// Those of them with a block to hand out, and how many have no other ones.
    open: Vec<usize>,
    empty: usize,
}

fn layout() -> Layout {
    Layout::from_size_align(CHUNK, CHUNK).expect("a power of two")
}

impl Arena {
    /// A block of the list `index`, and its chunk and shape if that is a new one; `wide` counts the wide chunks. `None` if
    /// the system has no more.
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

    /// Takes a block back. If it was the last one of its chunk, and that is not to be kept, or some are, the chunk is no
    /// longer one, and is returned for [`end`]. A forked child knows none of its parent's.
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

    /// Bytes of chunks without a block in use.
    pub(super) fn kept(&self) -> usize {
        self.empty * CHUNK
    }

    /// A chunk without a block in use, for [`end`].
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

/// Gives a chunk back to the system.
///
/// # Safety
/// It is one that an arena has returned for this, and nobody looks for its blocks any longer.
pub(super) unsafe fn end(chunk: usize) {
    // SAFETY: the caller's promise.
    unsafe { dealloc(chunk as *mut u8, layout()) };
}
