//! Sizes and layouts of blocks.

use std::alloc::Layout;
use std::sync::atomic::AtomicUsize;

/// The alignment of every allocation: a cache line, and the widest vector register.
pub(super) const ALIGNMENT: usize = 64;
/// The minimum block size.
pub(super) const SMALLEST: usize = 64;
/// The size from which blocks are kept in one ordered list. Smaller ones have one list per size.
pub(super) const LARGE: usize = 1 << 20;
/// The number of sizes from [`SMALLEST`] to below [`LARGE`]: four per power of two.
pub(super) const SMALL_SIZES: usize = 4 * (LARGE / SMALLEST).ilog2() as usize;
/// The size from which blocks are aligned for huge pages, and advised to use them.
pub(super) const HUGE: usize = 4 << 20;
pub(super) const HUGE_PAGE: usize = 2 << 20;
pub(super) const PAGE: usize = 4096;
/// The unused margin after each block. Many kernels do not compare their threads with the length of an array,
/// because a GPU lets them write up to the end of a page. The margin has room for a block of 1024 threads
/// with eight bytes each. Without it, such a write would crash the process some time later.
pub(super) const BEHIND: usize = 8192;
/// The unused margin before each block, for writes to the left of an array. Its first word, which short
/// overruns do not reach, is the mark of a small block outside of chunks: the number of bytes that its
/// allocation requested, zero while it is free. The block and its mark thus share a page, and the margin
/// after it is not touched.
pub(super) const FRONT: usize = 1024;

/// Returns the size to which a request is rounded up, so that blocks fit later requests. Small sizes are
/// rounded to a quarter of the next lower power of two, large ones to an eighth. If the rounded size would
/// overflow, returns the size itself.
pub(super) fn block_size(bytes: usize) -> usize {
    if bytes <= SMALLEST {
        return SMALLEST;
    }
    let magnitude = 1usize << (bytes - 1).ilog2();
    let step = if bytes < LARGE { magnitude / 4 } else { magnitude / 8 };
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

/// Returns the size of the blocks in a list of small ones.
pub(super) const fn small_size(index: usize) -> usize {
    let magnitude = SMALLEST << (index / 4);
    magnitude + magnitude / 4 * (index % 4)
}

/// Returns the index of the list for a size of [`block_size`], or `None` for large blocks.
pub(super) const fn small_index(size: usize) -> Option<usize> {
    if size >= LARGE {
        return None;
    }
    let magnitude = size.ilog2();
    let quarter = (size >> (magnitude - 2)) & 3;
    Some(4 * (magnitude - SMALLEST.ilog2()) as usize + quarter)
}

/// Returns the layout of a block with its margins, and the offset of the block in it.
pub(super) fn block_layout(size: usize) -> Option<(Layout, usize)> {
    with_margins(size, if size >= HUGE { HUGE_PAGE } else { ALIGNMENT })
}

fn with_margins(size: usize, alignment: usize) -> Option<(Layout, usize)> {
    let front = FRONT.next_multiple_of(alignment);
    let layout = Layout::from_size_align(size.checked_add(front + BEHIND)?, alignment);
    Some((layout.ok()?, front))
}

/// Returns the mark of a small block outside of chunks (`arena.rs`).
///
/// # Safety
/// The block is a small one, and stays allocated while the mark is used.
pub(super) unsafe fn mark<'a>(address: usize) -> &'a AtomicUsize {
    // SAFETY: the layout has an aligned margin before the block.
    unsafe { AtomicUsize::from_ptr((address - FRONT) as *mut usize) }
}

/// Returns the layout of whole pages with margins, and the offset of the pages in it.
pub(super) fn page_layout(bytes: usize) -> Option<(Layout, usize)> {
    with_margins(bytes.max(1).checked_next_multiple_of(PAGE)?, PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_fits_its_block_and_small_lists_know_their_size() {
        for bytes in (1..3000).chain([4096, 65_537, LARGE - 1, LARGE, LARGE + 1, 123_456_789]) {
            let size = block_size(bytes);
            assert!(size >= bytes && block_size(size) == size, "{bytes} -> {size}");
            match small_index(size) {
                Some(index) => assert_eq!(small_size(index), size, "{bytes}"),
                None => assert!(size >= LARGE),
            }
        }
    }
}
