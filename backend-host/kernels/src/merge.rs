//! Stable sorting of one long row by several threads: each sorts a part, then all merge the parts pairwise.
//!
//! `rayon` also sorts, but its code for one order of one type is a hundred times as long, and there are
//! thirty such combinations.

use super::parallel::Workers;
use hal::{Error, ErrorKind, Result, Status};
use std::cmp::Ordering;
use std::ops::Range;

/// The number of elements merged in one step. Each step first determines where its elements come from.
const SEGMENT: usize = 1 << 14;

/// A row of which several threads write disjoint parts.
#[derive(Clone, Copy)]
struct Row<T>(*mut T);

// SAFETY: an address; each use states its own requirements.
unsafe impl<T: Send> Send for Row<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Row<T> {}

impl<T> Row<T> {
    /// # Safety
    /// The elements must be in the row, and nothing else may use them while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "the caller promises that parts are disjoint")]
    unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        // SAFETY: passed on to the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }

    /// # Safety
    /// The elements must be in the row, and nothing may write to them while the slice lives.
    unsafe fn shared(&self, range: Range<usize>) -> &[T] {
        // SAFETY: passed on to the caller.
        unsafe { std::slice::from_raw_parts(self.0.add(range.start), range.len()) }
    }
}

/// Allocates memory for copies of `length` elements.
///
/// # Errors
/// `OutOfMemory` if the system cannot provide the memory.
pub(super) fn memory<T>(length: usize, copies: usize) -> Result<Vec<T>> {
    let mut memory = Vec::new();
    match memory.try_reserve_exact(length * copies) {
        Ok(()) => Ok(memory),
        Err(_) => Err(Error::new(
            ErrorKind::OutOfMemory,
            Status::host(Status::OUT_OF_MEMORY),
            "sort",
            format!(
                "out of memory: sorting {length} elements needs another {} bytes, which the system refused",
                length * copies * size_of::<T>()
            ),
        )),
    }
}

/// The number of elements up to which a sort needs so little memory that a failure to allocate it may end the
/// process.
const FEW: usize = 1 << 12;

/// Sorts elements by an order, using `threads` threads. The sort is stable.
///
/// # Errors
/// `OutOfMemory` if the system cannot provide memory for a copy of the elements.
pub(super) fn sort<T: Copy + Send + Sync>(
    elements: &mut [T],
    threads: usize,
    workers: &Workers<'_>,
    order: &(impl Fn(&T, &T) -> Ordering + Sync),
) -> Result<()> {
    let length = elements.len();
    if length > FEW {
        // The library's sort needs the same amount, and aborts if it cannot allocate it.
        drop(memory::<T>(length, if threads <= 1 { 1 } else { 2 })?);
    }
    if threads <= 1 {
        elements.sort_by(order);
        return Ok(());
    }
    let rounds = threads.next_power_of_two().ilog2();
    let run = length.div_ceil(1 << rounds);
    let mut copy = memory(length, 1)?;
    copy.extend_from_slice(elements);
    let (mut from, mut to) = (Row(elements.as_mut_ptr()), Row(copy.as_mut_ptr()));
    // Each round merges from one row into the other, and the last one into the elements.
    if rounds % 2 == 1 {
        std::mem::swap(&mut from, &mut to);
    }
    workers.split(1 << rounds, 1, usize::MAX, &|runs| {
        for number in runs {
            let range = (number * run).min(length)..((number + 1) * run).min(length);
            // SAFETY: a part of the row that only this call uses.
            unsafe { from.part(range) }.sort_by(order);
        }
    });
    for round in 0..rounds {
        let run = run << round;
        workers.split(length.div_ceil(SEGMENT), 1, usize::MAX, &|segments| {
            // SAFETY: in this round, all threads only read this row, and write disjoint parts of the other
            // one.
            let (source, start) = (unsafe { from.shared(0..length) }, segments.start * SEGMENT);
            let target = start..(segments.end * SEGMENT).min(length);
            // SAFETY: as above.
            merge_range(source, run, target.clone(), unsafe { to.part(target) }, order);
        });
        std::mem::swap(&mut from, &mut to);
    }
    Ok(())
}

/// Writes a range of the row that results from merging neighbouring runs.
fn merge_range<T: Copy>(
    source: &[T],
    run: usize,
    target: Range<usize>,
    mut values: &mut [T],
    order: &impl Fn(&T, &T) -> Ordering,
) {
    let mut at = target.start;
    while at < target.end {
        let pair = at - at % (2 * run);
        let middle = (pair + run).min(source.len());
        let pair_end = (pair + 2 * run).min(source.len());
        let end = target.end.min(pair_end);
        let (left, right) = (&source[pair..middle], &source[middle..pair_end]);
        let first = taken_from_left(left, right, at - pair, order);
        let last = taken_from_left(left, right, end - pair, order);
        let (part, rest) = values.split_at_mut(end - at);
        merge(&left[first..last], &right[at - pair - first..end - pair - last], part, order);
        (values, at) = (rest, end);
    }
}

/// Returns how many of the first `count` merged elements come from the left run.
fn taken_from_left<T>(
    left: &[T],
    right: &[T],
    count: usize,
    order: &impl Fn(&T, &T) -> Ordering,
) -> usize {
    let (mut low, mut high) = (count.saturating_sub(right.len()), count.min(left.len()));
    while low < high {
        let middle = low.midpoint(high);
        // The element of the left run is among them, unless the element that would take its place is less.
        if order(&right[count - middle - 1], &left[middle]) == Ordering::Less {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Merges two runs. Of two equal elements, the left one comes first.
fn merge<T: Copy>(left: &[T], right: &[T], values: &mut [T], order: &impl Fn(&T, &T) -> Ordering) {
    if let (Some(last), Some(first)) = (left.last(), right.first())
        && order(first, last) != Ordering::Less
    {
        let (lower, upper) = values.split_at_mut(left.len());
        lower.copy_from_slice(left);
        return upper.copy_from_slice(right);
    }
    let (mut i, mut j) = (0, 0);
    for value in values {
        // A selection instead of a branch, while both runs have elements left.
        let (x, y) = match (left.get(i), right.get(j)) {
            (Some(x), Some(y)) => (x, y),
            (Some(x), None) => {
                (*value, i) = (*x, i + 1);
                continue;
            }
            (None, Some(y)) => {
                (*value, j) = (*y, j + 1);
                continue;
            }
            (None, None) => return,
        };
        let is_right = order(y, x) == Ordering::Less;
        *value = if is_right { *y } else { *x };
        (i, j) = (i + usize::from(!is_right), j + usize::from(is_right));
    }
}
