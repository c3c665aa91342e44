//! A loop and its cost.

use super::blocks::Routine;

/// A loop and its cost.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The loop.
    pub run: Routine,
    /// True if the loop is limited by memory rather than arithmetic.
    pub cheap: bool,
    /// True if an argument of the value's type may be overwritten by the value.
    pub in_place: bool,
}

/// The weight of an element in a loop that is limited by arithmetic.
pub(super) const EXPENSIVE: usize = 8;

impl Kernel {
    /// Returns the work for this number of elements, counted in elements of a cheap loop.
    #[inline]
    pub(super) fn work(&self, elements: usize) -> usize {
        if self.cheap { elements } else { elements.saturating_mul(EXPENSIVE) }
    }
}
