//! Sizes and layouts of blocks.

use std::alloc::Layout;
use std::sync::atomic::AtomicUsize;

/// Alignment of every allocation: a cache line, and the widest vector register.
pub(super) const ALIGNMENT: usize = 64;
/// Smaller requests get a block of this size.
pub(super) const SMALLEST: usize = 64;
/// From this size on blocks are kept in one ordered list; below, in one list per size.
pub(super) const LARGE: usize = 1 << 20;
/// Sizes from [`SMALLEST`] to below [`LARGE`]: four to each doubling.
pub(super) const SMALL_SIZES: usize = 4 * (LARGE / SMALLEST).ilog2() as usize;
/// From this size on blocks are aligned for, and advised to use, huge pages.
pub(super) const HUGE: usize = 4 << 20;
pub(super) const HUGE_PAGE: usize = 2 << 20;
pub(super) const PAGE: usize = 4096;
/// Behind each block, and nobody's: what a kernel writes that does not compare its threads with the length of its
/// array, as many do, for a GPU lets them write up to the end of a page. It has room for a block of 1024 threads
/// with eight bytes each, which otherwise would end the process at some later time.
pub(super) const BEHIND: usize = 8192;
/// In front of each block, likewise, for what reaches to the left of an array. Its first word, which nothing short
/// reaches, is the mark of a small block of no chunk: the bytes that its allocation asked for, zero while it is free. So
/// such a block and what is known of it share a page, and the margin behind it is not touched.
pub(super) const FRONT: usize = 1024;

/// The size that a request is rounded up to, so that blocks fit later requests: small ones to
/// a quarter of the power of two below, large ones to an eighth; itself where no such size fits.
pub(super) fn block_size(bytes: usize) -> usize {
    if bytes <= SMALLEST {
        return SMALLEST;
    }
    let magnitude = 1usize << (bytes - 1).ilog2();
    let step = if bytes < LARGE { magnitude / 4 } else { magnitude / 8 };
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

/// The size of the blocks in a list of small ones.
pub(super) const fn small_size(index: usize) -> usize {
    let magnitude = SMALLEST << (index / 4);
    magnitude + magnitude / 4 * (index % 4)
}

/// Which list of small blocks a size of [`block_size`] belongs to.
pub(super) const fn small_index(size: usize) -> Option<usize> {
    if size >= LARGE {
        return None;
    }
    let magnitude = size.ilog2();
    let quarter = (size >> (magnitude - 2)) & 3;
    Some(4 * (magnitude - SMALLEST.ilog2()) as usize + quarter)
}

/// The layout of a block with its margins, and where in it the block begins.
pub(super) fn block_layout(size: usize) -> Option<(Layout, usize)> {
    with_margins(size, if size >= HUGE { HUGE_PAGE } else { ALIGNMENT })
}

fn with_margins(size: usize, alignment: usize) -> Option<(Layout, usize)> {
    let front = FRONT.next_multiple_of(alignment);
    let layout = Layout::from_size_align(size.checked_add(front + BEHIND)?, alignment);
    Some((layout.ok()?, front))
}

/// The mark of a small block of no chunk (`arena.rs`).
///
/// # Safety
/// The block is a small one, and stays allocated while the mark is used.
pub(super) unsafe fn mark<'a>(address: usize) -> &'a AtomicUsize {
    // SAFETY: the layout of blocks has room for it in front of them, aligned as they are.
    unsafe { AtomicUsize::from_ptr((address - FRONT) as *mut usize) }
}

/// Whole pages for so many bytes, with margins, and where they begin.
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
