//! Sorting of rows, and the indices that sort them.

use super::copy::pointer;
use super::merge;
use super::number::{Number, for_each, with_number};
use super::parallel::Workers;
use super::unsupported;
use hal::Result;
use hal::operation::Sort;
use std::cmp::Ordering;

/// Rows of at least so many elements are sorted by several threads each.
const LONG: usize = 1 << 16;

/// An element, and its place in the order.
trait Sortable: Number {
    /// What is not a number is last.
    #[inline(always)]
    fn order(&self, other: &Self) -> Ordering {
        if self.less(*other) {
            Ordering::Less
        } else if other.less(*self) {
            Ordering::Greater
        } else {
            self.is_nan().cmp(&other.is_nan())
        }
    }
}

macro_rules! sortable {
    ([] $dtype:ident, $own:ty) => {
        impl Sortable for $own {}
    };
    ([by parts] $dtype:ident, $own:ty) => {
        impl Sortable for $own {
            #[inline(always)]
            fn order(&self, other: &Self) -> Ordering {
                let nan = |z: &Self| (z.re.is_nan(), z.im.is_nan());
                let parts = || self.re.order(&other.re).then_with(|| self.im.order(&other.im));
                nan(self).cmp(&nan(other)).then_with(parts)
            }
        }
    };
}

for_each!(whole => sortable []);
for_each!(float => sortable []);
for_each!(complex => sortable [by parts]);

/// Executes a sort.
///
/// # Errors
/// `Unsupported` for a dtype without an order.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Sort, workers: &Workers<'_>) -> Result<()> {
    let dtype = operation.input.dtype;
    with_number!(dtype, T => {
        // SAFETY: passed on to the caller; elements are of type `T`.
        unsafe { sort::<T>(operation, workers) }
    }, else return Err(unsupported(format!("a sort of dtype {dtype}"))));
    Ok(())
}

/// # Safety
/// See [`hal::operation`]; elements are of type `T`.
unsafe fn sort<T: Sortable>(operation: &Sort, workers: &Workers<'_>) {
    let Sort { rows, length, indices, input, output } = operation;
    let threads = if *length >= LONG { workers.threads() } else { 1 };
    let row = |row: usize| {
        let from = pointer(input.address as usize).cast::<T>().wrapping_add(row * length);
        if !indices {
            let to = pointer(output.address as usize).cast::<T>().wrapping_add(row * length);
            // SAFETY: a row of the input, and one of the output, which are the same or apart.
            let elements = unsafe {
                std::ptr::copy(from, to, *length);
                std::slice::from_raw_parts_mut(to, *length)
            };
            return merge::sort(elements, threads, workers, &T::order);
        }
        let to = pointer(output.address as usize).cast::<i64>().wrapping_add(row * length);
        // SAFETY: a row of the input, and one of the output, apart; indices need no initial value.
        let (keys, found) = unsafe {
            for index in 0..*length {
                to.wrapping_add(index).write(index as i64);
            }
            let found = std::slice::from_raw_parts_mut(to, *length);
            (std::slice::from_raw_parts(from, *length), found)
        };
        let order = |a: &i64, b: &i64| keys[*a as usize].order(&keys[*b as usize]);
        merge::sort(found, threads, workers, &order);
    };
    if threads > 1 {
        return (0..*rows).for_each(row);
    }
    // A comparison for each element and doubling of the length.
    let work = rows * length * (1 + length.checked_ilog2().unwrap_or(0) as usize);
    workers.split(*rows, 1, work, &|range| range.for_each(row));
}
