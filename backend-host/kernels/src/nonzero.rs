//! The indices of true elements, or what another array has there.

use super::copy::pointer;
use super::parallel::Workers;
use hal::operation::Nonzero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements whose true ones are counted together.
const CHUNK: usize = 1 << 16;

/// Executes a search for true elements.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Nonzero, workers: &Workers<'_>) {
    let Nonzero { length, values, output, .. } = operation;
    let chunks = length.div_ceil(CHUNK);
    let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    workers.split(chunks, 1, *length, &|range| {
        for index in range {
            let count = true_elements(operation, index).count();
            counts[index].store(count, Ordering::Relaxed);
        }
    });
    let mut before = 0;
    for count in &counts {
        before += count.swap(before, Ordering::Relaxed);
    }
    let search = Search { operation, counts: &counts, workers };
    let from = values.as_ref().map(|values| values.address as usize);
    // SAFETY: elements of the output, and of the values, of which each element of the mask has one.
    unsafe {
        match (from, output.dtype.size()) {
            (None, 4) => search.store(|element| element as i32),
            (None, _) => search.store(|element| element as i64),
            (Some(from), 1) => search.copy::<u8>(from),
            (Some(from), 2) => search.copy::<u16>(from),
            (Some(from), 4) => search.copy::<u32>(from),
            (Some(from), 8) => search.copy::<[u32; 2]>(from),
            (Some(from), _) => search.copy::<[u64; 2]>(from),
        }
    }
}

/// A search that has counted the true elements before each chunk.
struct Search<'a> {
    operation: &'a Nonzero,
    counts: &'a [AtomicUsize],
    workers: &'a Workers<'a>,
}

impl Search<'_> {
    /// Stores what each true element has.
    ///
    /// # Safety
    /// The output is of this type, and `value` may be called for each true element.
    unsafe fn store<T>(&self, value: impl Fn(usize) -> T + Sync) {
        let Nonzero { length, most, output, .. } = self.operation;
        self.workers.split(self.counts.len(), 1, *length, &|range| {
            for index in range {
                let places = self.counts[index].load(Ordering::Relaxed)..*most;
                for (element, place) in true_elements(self.operation, index).zip(places) {
                    // SAFETY: an element of the output, which has `most`.
                    unsafe {
                        pointer(output.address as usize)
                            .cast::<T>()
                            .add(place)
                            .write(value(element));
                    }
                }
            }
        });
    }

    /// Stores the elements of an array.
    ///
    /// # Safety
    /// The output, and the array at `from`, are of a type of this size and a multiple of its alignment.
    unsafe fn copy<T: Copy>(&self, from: usize) {
        // SAFETY: this function's contract.
        unsafe { self.store(|element| pointer(from).cast::<T>().add(element).read()) }
    }
}

/// The true elements of a chunk.
fn true_elements(operation: &Nonzero, index: usize) -> impl Iterator<Item = usize> {
    let (begin, mask) = (index * CHUNK, operation.mask.address as usize);
    let chunk = begin..operation.length.min(begin + CHUNK);
    // SAFETY: an element of the mask, read as the byte that it is.
    chunk.filter(move |element| unsafe { pointer(mask + element).read() != 0 })
}
