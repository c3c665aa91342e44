//! Pairwise combination of a sequence of partial results, with memory for only a few of them.

use super::combine::Combiner;
use super::copy::pointer;
use super::strided::offset;
use std::ptr;

/// Sixteen aligned bytes, enough for an element of any type.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct Cell(pub(super) [u8; 16]);

/// Partial results of 1, 2, 4, ... inputs, each with the same number of elements.
#[derive(Debug)]
pub(super) struct Pairwise<'a> {
    combiner: &'a Combiner,
    base: usize,
    length: usize,
    bytes: usize,
    count: u64,
}

impl<'a> Pairwise<'a> {
    /// Creates an empty sequence of partial results, each with `length` elements in `bytes` bytes.
    ///
    /// # Safety
    /// `base` must be aligned memory for `levels(n)` such results, where `n` is the number of results that
    /// will be pushed. Nothing else may use this memory.
    pub(super) unsafe fn new(
        combiner: &'a Combiner,
        base: usize,
        length: usize,
        bytes: usize,
    ) -> Self {
        Pairwise { combiner, base, length, bytes, count: 0 }
    }

    /// Returns the number of partial results to keep for `inputs` inputs.
    pub(super) fn levels(inputs: usize) -> usize {
        (usize::BITS - inputs.leading_zeros()) as usize + 1
    }

    fn level(&self, level: u32) -> usize {
        let pitch = self.bytes.next_multiple_of(size_of::<Cell>());
        offset(self.base, level as usize, pitch as isize)
    }

    /// Adds the next input.
    ///
    /// # Safety
    /// The input must have the promised length, and must not overlap the memory of the partial results.
    pub(super) unsafe fn push(&mut self, input: usize) {
        let complete = self.count.trailing_ones();
        let mut current = input;
        for level in (0..complete).map(|level| self.level(level)) {
            // SAFETY: an earlier and a later result with the same number of elements.
            unsafe {
                (self.combiner.rows)(pointer(level), pointer(current), self.length);
            }
            current = level;
        }
        // SAFETY: the first level that does not hold a result.
        unsafe {
            let free = pointer(self.level(complete));
            ptr::copy_nonoverlapping(pointer(current), free, self.bytes);
        }
        self.count += 1;
    }

    /// Combines all partial results and copies the result to `target`. Does nothing without inputs.
    ///
    /// # Safety
    /// The target must be writable and must not overlap the memory of the partial results.
    pub(super) unsafe fn finish(self, target: usize) {
        let mut current = None;
        for level in (0..u64::BITS).filter(|level| self.count >> level & 1 == 1) {
            let level = self.level(level);
            if let Some(current) = current {
                // SAFETY: an earlier and a later result with the same number of elements.
                unsafe {
                    (self.combiner.rows)(pointer(level), pointer(current), self.length);
                }
            }
            current = Some(level);
        }
        if let Some(current) = current {
            // SAFETY: passed on to the caller.
            unsafe {
                ptr::copy_nonoverlapping(pointer(current), pointer(target), self.bytes);
            }
        }
    }
}
