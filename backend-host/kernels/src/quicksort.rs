//! Sorts integers. Quicksort divides them by pivots, with vectors if the processor has them, until few are left.
//!
//! A step writes the lesser elements back to the memory that it reads from, and the greater elements to a second buffer
//! of the same size, so that no branch depends on the elements. The last step writes to the row.

use rayon_core::Scope;

#[cfg(target_arch = "x86_64")]
use super::vector;

/// The number of elements from which two parts of a row are sorted by different threads.
const PARALLEL: usize = 1 << 14;
/// The most elements that a pivot is chosen from.
const SAMPLE: usize = 32;

/// An integer that rows consist of.
pub(super) trait Word: Copy + Ord + Default + Send + Sync + 'static {
    /// The greatest integer.
    const MAX: Self;
    /// Returns the integer before this one, or `None` for the least.
    fn previous(self) -> Option<Self>;
    /// Returns the same integer with 64 bits.
    fn wide(self) -> i64;
    /// Returns the integer in the lowest bits of a 64-bit one.
    fn of_wide(wide: i64) -> Self;
    /// Returns how far the integer is above another one.
    #[inline(always)]
    fn distance(self, less: Self) -> u64 {
        self.wide().wrapping_sub(less.wide()) as u64
    }
    /// Returns the functions for this processor.
    fn steps() -> Steps<Self>;
}

/// The functions that do the work of a sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps<W> {
    /// The number of elements that `block` sorts.
    most: usize,
    /// Sorts up to `most` elements from one place to another, which may be the same.
    block: unsafe fn(*const W, usize, *mut W),
    /// Moves elements above a pivot to the end of the second place, and the rest to the beginning of the first.
    /// Returns the number of the rest.
    divide: unsafe fn(&mut [W], &mut [W], W) -> usize,
}

impl<W: Word> Steps<W> {
    /// The functions for every processor. The library's sort is as fast as more divisions.
    const PORTABLE: Self = Steps { most: PARALLEL, block: sort_few, divide };
}

macro_rules! word {
    ($($word:ident $vector:ident;)*) => {$(
        impl Word for $word {
            const MAX: Self = Self::MAX;

            #[inline(always)]
            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                self.into()
            }
            #[inline(always)]
            fn of_wide(wide: i64) -> Self {
                wide as Self
            }
            fn steps() -> Steps<Self> {
                #[cfg(target_arch = "x86_64")]
                if super::multiversion::has_avx2() {
                    type Vector = vector::$vector;
                    return Steps {
                        most: <Vector as vector::Vector>::BLOCK,
                        block: vector::sort_block::<Vector>,
                        divide: divide_by_vectors::<Vector>,
                    };
                }
                Steps::PORTABLE
            }
        }
    )*};
}
word! {
    i32 Eight;
    i64 Four;
}

/// Sorts elements from one place to another with the library.
///
/// # Safety
/// Both places must have this number of elements; they may be the same.
unsafe fn sort_few<W: Word>(from: *const W, length: usize, to: *mut W) {
    // SAFETY: passed on to the caller.
    unsafe {
        from.copy_to(to, length);
        std::slice::from_raw_parts_mut(to, length).sort_unstable();
    }
}

/// Divides without vectors: see [`Steps::divide`].
fn divide<W: Word>(elements: &mut [W], other: &mut [W], pivot: W) -> usize {
    let length = elements.len();
    divide_from(elements, &mut other[..length], pivot, 0, 0, length)
}

/// Divides with vectors: see [`Steps::divide`].
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn divide_by_vectors<V: vector::Vector<Word: Word>>(
    elements: &mut [V::Word],
    other: &mut [V::Word],
    pivot: V::Word,
) -> usize {
    let other = &mut other[..elements.len()];
    // SAFETY: passed on to the caller.
    let [whole, left, right] = unsafe { vector::divide::<V>(elements, other, pivot) };
    left + divide_from(elements, other, pivot, whole, left, right)
}

/// Divides the elements from `start`, and returns the number of those that are not above the pivot. `left` and
/// `right` are the free places at the beginning of one side and at the end of the other.
#[inline(always)]
fn divide_from<W: Word>(
    elements: &mut [W],
    other: &mut [W],
    pivot: W,
    start: usize,
    mut left: usize,
    mut right: usize,
) -> usize {
    let before = left;
    for index in start..elements.len() {
        let element = elements[index];
        let above = usize::from(element > pivot);
        elements[left] = element;
        other[right - 1] = element;
        (left, right) = (left + 1 - above, right - above);
    }
    left - before
}

/// A row, or a part of it, that is to be sorted.
struct Part<'a, W> {
    row: &'a mut [W],
    /// As much memory again.
    other: &'a mut [W],
    /// True if the elements are in `other`.
    elsewhere: bool,
    /// The number of divisions left before the library sorts the part: its sort is slow for no order of
    /// elements.
    divisions: u32,
}

/// Sorts a row. The memory must be as long as the row. If a scope of threads is given, the threads take part.
pub(super) fn sort<'a, W: Word>(
    row: &'a mut [W],
    memory: &'a mut [W],
    steps: Steps<W>,
    scope: Option<&Scope<'a>>,
) {
    if row.len() <= steps.most {
        let to = row.as_mut_ptr();
        // SAFETY: a place of this number of elements, and the function is for this processor.
        return unsafe { (steps.block)(to, row.len(), to) };
    }
    if row.is_sorted() {
        return;
    }
    if row.is_sorted_by(|x, y| x >= y) {
        return row.reverse();
    }
    let divisions = 2 * row.len().ilog2();
    let part = Part { row, other: memory, elsewhere: false, divisions };
    sort_part(part, steps, scope);
}

/// Sorts a row as on a processor without vectors, for tests.
pub fn sort_without_vectors(row: &mut [i64], pool: &rayon_core::ThreadPool) {
    let mut memory = vec![0; row.len()];
    pool.in_place_scope(|scope| sort(row, &mut memory, Steps::PORTABLE, Some(scope)));
}

fn sort_part<'a, W: Word>(mut part: Part<'a, W>, steps: Steps<W>, scope: Option<&Scope<'a>>) {
    loop {
        let Part { row, other, elsewhere, divisions } = part;
        let length = row.len();
        let to = row.as_mut_ptr();
        let from = if elsewhere { other.as_ptr() } else { to.cast_const() };
        if length <= steps.most || divisions == 0 {
            let block = if length > steps.most { sort_few } else { steps.block };
            // SAFETY: both have this number of elements, and the functions are for this processor.
            return unsafe { block(from, length, to) };
        }
        let (elements, free) =
            if elsewhere { (&mut *other, &mut *row) } else { (&mut *row, &mut *other) };
        let pivot = pivot(elements, steps);
        // SAFETY: the functions are for this processor.
        let mut left = unsafe { (steps.divide)(elements, free, pivot) };
        let all = left == length;
        if all {
            // No element is greater, so those that are equal are the last ones.
            // SAFETY: as above.
            left =
                pivot.previous().map_or(0, |less| unsafe { (steps.divide)(elements, free, less) });
        }
        let (row, right_row) = row.split_at_mut(left);
        let (other, right_other) = other.split_at_mut(left);
        part = Part { row, other, elsewhere, divisions: divisions - 1 };
        if all {
            right_row.fill(pivot);
            continue;
        }
        let right = Part {
            row: right_row,
            other: right_other,
            elsewhere: !elsewhere,
            divisions: divisions - 1,
        };
        match scope {
            Some(scope) if right.row.len() >= PARALLEL => {
                scope.spawn(move |scope| sort_part(right, steps, Some(scope)));
            }
            _ => sort_part(right, steps, scope),
        }
    }
}

/// Returns the median of some elements.
fn pivot<W: Word>(elements: &[W], steps: Steps<W>) -> W {
    let number = if elements.len() < 1024 { 8 } else { SAMPLE };
    let step = elements.len() / number;
    let mut sample = [W::MAX; SAMPLE];
    for (index, element) in sample.iter_mut().enumerate().take(number) {
        *element = elements[index * step + step / 2];
    }
    let place = sample.as_mut_ptr();
    // SAFETY: the array is longer, and the functions are for this processor.
    unsafe { (steps.block)(place, number, place) };
    sample[number / 2]
}
