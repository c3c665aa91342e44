//! Blocks of memory kept by size, in PyCUDA's bins.
//!
//! A bin's number is the position of the size's highest bit and the four bits behind it; a
//! block is as large as the largest size of its bin, at most one sixteenth more than asked for.

use std::fmt;

const LEADING_BITS: u32 = 4;
const MANTISSA: u32 = (1 << LEADING_BITS) - 1;

/// Shifts to the left; to the right if negative.
fn shift(value: usize, by: i32) -> usize {
    if by < 0 { value >> -by } else { value << by }
}

/// The bin of a size.
pub(super) fn bin_number(size: usize) -> u32 {
    let exponent = size.checked_ilog2().unwrap_or(0);
    let leading = shift(size, LEADING_BITS as i32 - exponent as i32) as u32;
    exponent << LEADING_BITS | leading & MANTISSA
}

/// The size of a bin's blocks; `None` for a bin that no size has.
pub(super) fn block_size(bin: u32) -> Option<usize> {
    let exponent = bin >> LEADING_BITS;
    if exponent >= usize::BITS {
        return None;
    }
    let by = exponent as i32 - LEADING_BITS as i32;
    let head = shift((1 << LEADING_BITS | bin & MANTISSA) as usize, by);
    Some(head | shift(1, by).saturating_sub(1))
}

/// Blocks that are held for the next request, and counts of those in use.
pub(super) struct Bins<B> {
    held: Vec<Vec<B>>,
    pub(super) held_blocks: usize,
    pub(super) active_blocks: usize,
    pub(super) managed_bytes: usize,
    pub(super) active_bytes: usize,
    /// False once blocks that come back are to be freed.
    pub(super) is_holding: bool,
}

impl<B> fmt::Display for Bins<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blocks in use ({} bytes), {} kept, {} bytes in all",
            self.active_blocks, self.active_bytes, self.held_blocks, self.managed_bytes
        )
    }
}

impl<B> Bins<B> {
    pub(super) fn new() -> Bins<B> {
        Bins {
            held: Vec::new(),
            held_blocks: 0,
            active_blocks: 0,
            managed_bytes: 0,
            active_bytes: 0,
            is_holding: true,
        }
    }

    /// A held block for `size` bytes, in use from now on.
    pub(super) fn take(&mut self, size: usize) -> Option<B> {
        let block = self.held.get_mut(bin_number(size) as usize)?.pop()?;
        self.held_blocks -= 1;
        self.active_blocks += 1;
        self.active_bytes += size;
        Some(block)
    }

    /// Counts a new block, in use from now on.
    pub(super) fn add(&mut self, size: usize, block_bytes: usize) {
        self.active_blocks += 1;
        self.active_bytes += size;
        self.managed_bytes += block_bytes;
    }

    /// Takes back a block that was used for `size` bytes; gives it if it is to be freed.
    #[must_use]
    pub(super) fn give_back(&mut self, block: B, size: usize) -> Option<B> {
        if !self.is_holding {
            self.give_up(size);
            return Some(block);
        }
        self.active_blocks -= 1;
        self.active_bytes -= size;
        let bin = bin_number(size);
        if self.held.len() <= bin as usize {
            self.held.resize_with(bin as usize + 1, Vec::new);
        }
        self.held[bin as usize].push(block);
        self.held_blocks += 1;
        None
    }

    /// Counts a block no longer that was used for `size` bytes and does not come back.
    pub(super) fn give_up(&mut self, size: usize) {
        self.active_blocks -= 1;
        self.active_bytes -= size;
        self.managed_bytes -= block_size(bin_number(size)).unwrap_or(0);
    }

    /// The held blocks, to be freed.
    #[must_use]
    pub(super) fn take_held(&mut self) -> Vec<B> {
        let mut all = Vec::with_capacity(self.held_blocks);
        while let Some(block) = self.take_largest() {
            all.push(block);
        }
        all
    }

    /// One of the largest held blocks, to be freed.
    pub(super) fn take_largest(&mut self) -> Option<B> {
        let (bin, blocks) =
            self.held.iter_mut().enumerate().rev().find(|(_, blocks)| !blocks.is_empty())?;
        let block = blocks.pop()?;
        self.held_blocks -= 1;
        self.managed_bytes -= block_size(bin as u32).unwrap_or(0);
        Some(block)
    }
}
