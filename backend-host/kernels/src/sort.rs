//! Sorts rows, and computes the indices that sort them.

use super::copy::pointer;
use super::merge;
use super::number::{Number, Truth, for_each, with_number};
use super::parallel::Workers;
use super::unsupported;
use hal::dtype::narrow::Narrow;
use hal::operation::Sort;
use hal::{Complex, Result};
use std::cmp::Ordering;
use std::sync::OnceLock;

/// The number of elements from which a row is sorted by several threads.
const LONG: usize = 1 << 16;

/// An element with numpy's order: NaN is last, and zeros are equal.
trait Sortable: Number {
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! sortable {
    ([$order:expr] $dtype:ident, $own:ty) => {
        impl Sortable for $own {
            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                $order(self, other)
            }
        }
    };
}

for_each!(integer => sortable [Ord::cmp]);
for_each!(narrow => sortable [by_bits]);
for_each!(complex => sortable [by_parts]);
sortable!([|x: &Truth, y: &Truth| x.get().cmp(&y.get())] Bool, Truth);

/// Without an `#[inline]` hint, because the library's sort is a sixth slower with one.
macro_rules! real {
    ($real:ident) => {
        impl Sortable for $real {
            fn order(&self, other: &Self) -> Ordering {
                self.partial_cmp(other)
                    .unwrap_or_else(|| $real::is_nan(*self).cmp(&$real::is_nan(*other)))
            }
        }
    };
}
real!(f32);
real!(f64);

/// Compares numbers by their bits, which order numbers with the same sign.
#[inline]
fn by_bits<T: Narrow + Number>(x: &T, y: &T) -> Ordering {
    let place = |number: &T| {
        let magnitude = i32::from(number.bits() & !T::SIGN);
        let signed = if number.bits() & T::SIGN == 0 { magnitude } else { -magnitude };
        if number.is_nan() { i32::MAX } else { signed }
    };
    place(x).cmp(&place(y))
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

/// An element and its index. Comparisons find the element directly, without following an index. The index is
/// split into two words, so that a pair does not need padding.
#[derive(Clone, Copy)]
struct Placed<T> {
    key: T,
    index: [u32; 2],
}

impl<T> Placed<T> {
    fn new(key: T, index: usize) -> Self {
        Placed { key, index: [index as u32, (index as u64 >> 32) as u32] }
    }

    fn index(&self) -> i64 {
        i64::from(self.index[1]) << 32 | i64::from(self.index[0])
    }
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
    let threads = if *length >= LONG { workers.threads() } else { 1 };
    let row = |pairs: &mut Vec<Placed<T>>, row: usize| {
        let from = pointer(input.address as usize).cast::<T>().wrapping_add(row * length);
        if !indices {
            let to = pointer(output.address as usize).cast::<T>().wrapping_add(row * length);
            // SAFETY: a row of the input, and one of the output, which are the same or do not overlap.
            let elements = unsafe {
                std::ptr::copy(from, to, *length);
                std::slice::from_raw_parts_mut(to, *length)
            };
            return merge::sort(elements, threads, workers, &T::order);
        }
        let to = pointer(output.address as usize).cast::<i64>().wrapping_add(row * length);
        // SAFETY: a row of the input, and one of the output, without overlap.
        let keys = unsafe { std::slice::from_raw_parts(from, *length) };
        pairs.clear();
        if pairs.capacity() < *length {
            *pairs = merge::memory(*length, 1)?;
        }
        pairs.extend(keys.iter().enumerate().map(|(index, key)| Placed::new(*key, index)));
        let order = |a: &Placed<T>, b: &Placed<T>| a.key.order(&b.key);
        merge::sort(pairs, threads, workers, &order)?;
        for (index, pair) in pairs.iter().enumerate() {
            // SAFETY: the row has this many indices, which need no initial value.
            unsafe { to.wrapping_add(index).write(pair.index()) };
        }
        Ok(())
    };
    if threads > 1 {
        let mut pairs = Vec::new();
        return (0..*rows).try_for_each(|number| row(&mut pairs, number));
    }
    // One comparison for each element and each doubling of the length.
    let work = rows * length * (1 + length.checked_ilog2().unwrap_or(0) as usize);
    let failed = OnceLock::new();
    workers.split(*rows, 1, work, &|mut range| {
        let mut pairs = Vec::new();
        if let Err(error) = range.try_for_each(|number| row(&mut pairs, number)) {
            let _ = failed.set(error);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}
