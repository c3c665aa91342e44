//! Sorts rows, and computes the indices that sort them.
//!
//! Real numbers are sorted as integers: see `words`. Complex numbers are compared and merged: see `merge`.

use super::blocks::unsupported;
use super::copy::pointer;
use super::merge;
use super::number::{Number, with_number};
use super::parallel::Workers;
use super::words::{self, LONG};
use hal::operation::Sort;
use hal::{Complex, Result};
use std::cmp::Ordering;
use std::sync::OnceLock;

/// An element with numpy's order: NaN is last, and zeros are equal. Sorts are stable, and fail only if the system
/// cannot provide memory.
pub(super) trait Sortable: Number {
    /// Memory that the rows of one thread use in turn.
    type Space: Default;

    /// Sorts the elements of one row into another.
    ///
    /// # Safety
    /// Both rows must have this number of elements. They are the same or do not overlap.
    unsafe fn sort(
        from: *const Self,
        to: *mut Self,
        length: usize,
        space: &mut Self::Space,
        workers: &Workers<'_>,
    ) -> Result<()>;

    /// Calls `write` with each position of the sorted row and the index in `row` of the element there.
    fn indices(
        row: &[Self],
        space: &mut Self::Space,
        workers: &Workers<'_>,
        write: impl FnMut(usize, i64),
    ) -> Result<()>;
}

impl<T: words::Ordered> Sortable for T {
    type Space = words::Space<T::Word>;

    unsafe fn sort(
        from: *const Self,
        to: *mut Self,
        length: usize,
        space: &mut Self::Space,
        workers: &Workers<'_>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { words::sort(from, to, length, space, workers) }
    }

    fn indices(
        row: &[Self],
        space: &mut Self::Space,
        workers: &Workers<'_>,
        write: impl FnMut(usize, i64),
    ) -> Result<()> {
        words::indices(row, space, workers, write)
    }
}

impl<T: PartialOrd + Number> Sortable for Complex<T>
where
    Complex<T>: Number,
{
    type Space = Vec<Placed<Self>>;

    unsafe fn sort(
        from: *const Self,
        to: *mut Self,
        length: usize,
        _: &mut Self::Space,
        workers: &Workers<'_>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        let elements = unsafe {
            std::ptr::copy(from, to, length);
            std::slice::from_raw_parts_mut(to, length)
        };
        merge::sort(elements, threads(length, workers), workers, &by_parts)
    }

    fn indices(
        row: &[Self],
        pairs: &mut Self::Space,
        workers: &Workers<'_>,
        mut write: impl FnMut(usize, i64),
    ) -> Result<()> {
        pairs.clear();
        if pairs.capacity() < row.len() {
            *pairs = merge::memory(row.len(), 1)?;
        }
        pairs.extend(row.iter().enumerate().map(|(index, key)| Placed { key: *key, index }));
        let order = |a: &Placed<Self>, b: &Placed<Self>| by_parts(&a.key, &b.key);
        merge::sort(pairs, threads(row.len(), workers), workers, &order)?;
        let indices = pairs.iter().map(|pair| pair.index as i64);
        indices.enumerate().for_each(|(place, index)| write(place, index));
        Ok(())
    }
}

/// Returns the number of threads that sort a row.
fn threads(length: usize, workers: &Workers<'_>) -> usize {
    if length >= LONG { workers.threads() } else { 1 }
}

#[inline]
fn by_value<T: PartialOrd + Number>(x: &T, y: &T) -> Ordering {
    // Neither less, greater nor equal: one is NaN.
    x.partial_cmp(y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

#[inline]
fn by_parts<T: PartialOrd + Number>(x: &Complex<T>, y: &Complex<T>) -> Ordering {
    let nan = |z: &Complex<T>| (z.re.is_nan(), z.im.is_nan());
    let values = || by_value(&x.re, &y.re).then_with(|| by_value(&x.im, &y.im));
    nan(x).cmp(&nan(y)).then_with(values)
}

/// A complex number and its index. Comparisons find the number directly, without following an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<T> {
    key: T,
    index: usize,
}

/// Executes a sort.
///
/// # Errors
/// `Unsupported` for a dtype without an order; `OutOfMemory` if the system cannot provide memory for a copy
/// of a row.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Sort, workers: &Workers<'_>) -> Result<()> {
    let dtype = operation.input.dtype;
    with_number!(dtype, T => {
        // SAFETY: passed on to the caller; elements are of type `T`.
        unsafe { sort::<T>(operation, workers) }
    }, else Err(unsupported(format!("a sort of dtype {dtype}"))))
}

/// # Safety
/// See [`hal::operation`]; elements are of type `T`.
unsafe fn sort<T: Sortable>(operation: &Sort, workers: &Workers<'_>) -> Result<()> {
    let Sort { rows, length, indices, input, output } = operation;
    let row = |space: &mut T::Space, row: usize| {
        let from = pointer(input.address as usize).cast::<T>().wrapping_add(row * length);
        if !indices {
            let to = pointer(output.address as usize).cast::<T>().wrapping_add(row * length);
            // SAFETY: a row of the input, and one of the output, which are the same or do not overlap.
            return unsafe { T::sort(from, to, *length, space, workers) };
        }
        let to = pointer(output.address as usize).cast::<i64>().wrapping_add(row * length);
        // SAFETY: a row of the input, and one of the output, without overlap.
        let keys = unsafe { std::slice::from_raw_parts(from, *length) };
        T::indices(keys, space, workers, |place, index| {
            // SAFETY: places in the row, which need no initial value.
            unsafe { to.wrapping_add(place).write(index) };
        })
    };
    if *length >= LONG {
        let mut space = T::Space::default();
        return (0..*rows).try_for_each(|number| row(&mut space, number));
    }
    // One comparison for each element and each doubling of the length.
    let work = rows * length * (1 + length.checked_ilog2().unwrap_or(0) as usize);
    let failed = OnceLock::new();
    workers.split(*rows, 1, work, &|mut range| {
        let mut space = T::Space::default();
        if let Err(error) = range.try_for_each(|number| row(&mut space, number)) {
            let _ = failed.set(error);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}
