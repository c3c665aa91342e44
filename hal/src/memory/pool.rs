//! Memory pools: blocks that are kept for later requests of their size, in PyCUDA's bins.
//!
//! A bin's number is the position of the size's highest bit, followed by the next four bits. A
//! block has the largest size of its bin, at most one sixteenth more than requested.

mod device;
mod pinned;

pub use device::DevicePool;
pub use pinned::{PinnedPool, PooledPinned};

use std::fmt;

const LEADING_BITS: u32 = 4;
const MANTISSA: u32 = (1 << LEADING_BITS) - 1;

/// Shifts to the left, or to the right if `by` is negative.
fn shift(value: usize, by: i32) -> usize {
    if by < 0 { value >> -by } else { value << by }
}

/// Returns the number of the bin whose blocks serve requests of `size` bytes.
pub fn bin_number(size: usize) -> u32 {
    let exponent = size.checked_ilog2().unwrap_or(0);
    let leading = shift(size, LEADING_BITS as i32 - exponent as i32) as u32;
    exponent << LEADING_BITS | leading & MANTISSA
}

/// Returns the size in bytes of a bin's blocks; `None` for an invalid bin.
pub fn block_size(bin: u32) -> Option<usize> {
    let exponent = bin >> LEADING_BITS;
    if exponent >= usize::BITS {
        return None;
    }
    let by = exponent as i32 - LEADING_BITS as i32;
    let head = shift((1 << LEADING_BITS | bin & MANTISSA) as usize, by);
    Some(head | shift(1, by).saturating_sub(1))
}

/// The number of blocks and bytes in a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolCounts {
    /// The blocks that are kept for later requests.
    pub held_blocks: usize,
    /// The blocks in use.
    pub active_blocks: usize,
    /// The bytes of all blocks, in use or kept.
    pub managed_bytes: usize,
    /// The requested bytes that are in use.
    pub active_bytes: usize,
}

impl fmt::Display for PoolCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blocks in use ({} bytes), {} kept, {} bytes in all",
            self.active_blocks, self.active_bytes, self.held_blocks, self.managed_bytes
        )
    }
}

/// Blocks that are held for later requests, and counts of the blocks in use.
struct Bins<B> {
    held: Vec<Vec<B>>,
    counts: PoolCounts,
    /// False if returned blocks are to be freed.
    is_holding: bool,
}

impl<B> Bins<B> {
    fn new() -> Bins<B> {
        Bins { held: Vec::new(), counts: PoolCounts::default(), is_holding: true }
    }

    fn counts(&self) -> PoolCounts {
        self.counts
    }

    /// Takes all held blocks, for the caller to free; blocks that are returned from now on are also
    /// freed.
    #[must_use]
    fn stop_holding(&mut self) -> Vec<B> {
        self.is_holding = false;
        self.take_held()
    }

    /// Takes a held block for `size` bytes; the block is then in use.
    fn take(&mut self, size: usize) -> Option<B> {
        let block = self.held.get_mut(bin_number(size) as usize)?.pop()?;
        self.counts.held_blocks -= 1;
        self.counts.active_blocks += 1;
        self.counts.active_bytes += size;
        Some(block)
    }

    /// Counts a new block; the block is then in use.
    fn add(&mut self, size: usize, block_bytes: usize) {
        self.counts.active_blocks += 1;
        self.counts.active_bytes += size;
        self.counts.managed_bytes += block_bytes;
    }

    /// Takes back a block that was used for `size` bytes; returns it if it is to be freed.
    #[must_use]
    fn give_back(&mut self, block: B, size: usize) -> Option<B> {
        if !self.is_holding {
            self.give_up(size);
            return Some(block);
        }
        self.counts.active_blocks -= 1;
        self.counts.active_bytes -= size;
        let bin = bin_number(size);
        if self.held.len() <= bin as usize {
            self.held.resize_with(bin as usize + 1, Vec::new);
        }
        self.held[bin as usize].push(block);
        self.counts.held_blocks += 1;
        None
    }

    /// Stops counting a block that was used for `size` bytes and will not be returned.
    fn give_up(&mut self, size: usize) {
        self.counts.active_blocks -= 1;
        self.counts.active_bytes -= size;
        self.counts.managed_bytes -= block_size(bin_number(size)).unwrap_or(0);
    }

    /// Takes all held blocks, for the caller to free.
    #[must_use]
    fn take_held(&mut self) -> Vec<B> {
        let mut all = Vec::with_capacity(self.counts.held_blocks);
        while let Some(block) = self.take_largest() {
            all.push(block);
        }
        all
    }

    /// Takes one of the largest held blocks, for the caller to free.
    fn take_largest(&mut self) -> Option<B> {
        let (bin, blocks) =
            self.held.iter_mut().enumerate().rev().find(|(_, blocks)| !blocks.is_empty())?;
        let block = blocks.pop()?;
        self.counts.held_blocks -= 1;
        self.counts.managed_bytes -= block_size(bin as u32).unwrap_or(0);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bins, bin_number, block_size};

    #[test]
    fn a_bins_blocks_serve_its_sizes_and_are_a_sixteenth_larger_at_most() {
        let mut last = 0;
        for size in (1..70_000).chain([1 << 20, (1 << 20) + 1, (3 << 30) + 7, 1 << 40]) {
            let bin = bin_number(size);
            let bytes = block_size(bin).expect("a bin of a size");
            assert!(bytes >= size && bytes - size <= size / 16, "{size}: {bytes}");
            assert_eq!(bin_number(bytes), bin, "{size}");
            assert!(bin >= last, "{size}");
            last = bin;
        }
        assert_eq!(block_size(usize::BITS << 4), None);
    }

    #[test]
    fn blocks_are_counted_wherever_they_are() {
        let mut bins = Bins::new();
        assert_eq!(bins.take(100), None);
        bins.add(100, 103);
        let counts = bins.counts();
        assert_eq!(
            (counts.active_blocks, counts.active_bytes, counts.managed_bytes),
            (1, 100, 103)
        );
        assert_eq!(bins.give_back("block", 100), None);
        assert_eq!((bins.counts().held_blocks, bins.counts().active_blocks), (1, 0));
        assert_eq!(bins.take(101), Some("block"));
        assert_eq!(bins.give_back("block", 101), None);
        assert_eq!(bins.stop_holding(), ["block"]);
        assert_eq!(bins.counts().managed_bytes, 0);
        bins.add(8, 8);
        assert_eq!(bins.give_back("another", 8), Some("another"));
        assert_eq!(bins.counts(), Default::default());
    }
}
