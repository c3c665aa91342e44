//! Finds the indices of true elements, and the values at these indices.

use super::copy::pointer;
use super::parallel::Workers;
use hal::DType;
use hal::operation::{Nonzero, Operand};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of elements of a chunk, whose true elements are counted together.
const CHUNK: usize = 1 << 16;

/// The number of true elements that are found before they are stored.
const FOUND: usize = 256;

/// Executes a search for true elements.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Nonzero, workers: &Workers<'_>) {
    let Nonzero { length, values, output, .. } = operation;
    let chunks = length.div_ceil(CHUNK);
    // The output positions at which the true elements of each chunk begin.
    let places: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    workers.split(chunks, 1, *length, &|range| {
        for index in range {
            // SAFETY: this function's contract.
            let mask = unsafe { chunk(operation, index) };
            places[index].store(count(mask), Ordering::Relaxed);
        }
    });
    let mut before = 0;
    for place in &places {
        before += place.swap(before, Ordering::Relaxed);
    }
    let search = Search { operation, places: &places, workers };
    // SAFETY: elements of the output, and of the values, which are of its type.
    unsafe {
        match (values, output.dtype) {
            (None, DType::Int32) => search.store(|element| element as i32),
            (None, _) => search.store(|element| element as i64),
            (Some(values), DType::Complex64) => search.store_values::<[u32; 2]>(values),
            (Some(values), DType::Complex128) => search.store_values::<[u64; 2]>(values),
            (Some(values), dtype) => match dtype.size() {
                1 => search.store_values::<u8>(values),
                2 => search.store_values::<u16>(values),
                4 => search.store_values::<u32>(values),
                _ => search.store_values::<u64>(values),
            },
        }
    }
}

/// A search for which the true elements before each chunk have been counted.
struct Search<'a> {
    operation: &'a Nonzero,
    places: &'a [AtomicUsize],
    workers: &'a Workers<'a>,
}

impl Search<'_> {
    /// Stores the value at each true element, as plain bits.
    ///
    /// # Safety
    /// See [`hal::operation`]; values and output have this size and alignment.
    unsafe fn store_values<T: Copy>(&self, values: &Operand) {
        let values = values.address as usize;
        // SAFETY: an element of the mask is one of the values.
        unsafe { self.store(|element| pointer(values).cast::<T>().add(element).read()) }
    }

    /// Stores `found` of the index of each true element.
    ///
    /// # Safety
    /// See [`hal::operation`]; the output has this type.
    unsafe fn store<T>(&self, found: impl Fn(usize) -> T + Sync) {
        let Nonzero { length, most, output, .. } = self.operation;
        let output = output.address as usize;
        self.workers.split(self.places.len(), 1, *length, &|range| {
            for number in range {
                let mut place = self.places[number].load(Ordering::Relaxed);
                let mut offsets = [0_u32; FOUND];
                let mut count = 0;
                let mut flush = |offsets: &[u32]| {
                    for &offset in &offsets[..offsets.len().min(most.saturating_sub(place))] {
                        let element = number * CHUNK + offset as usize;
                        // SAFETY: an element of the output, which has `most`.
                        unsafe { pointer(output).cast::<T>().add(place).write(found(element)) };
                        place += 1;
                    }
                };
                // SAFETY: the caller may execute the operation.
                let mask = unsafe { chunk(self.operation, number) };
                for (word, truths) in mask.chunks(8).enumerate() {
                    let mut bytes = [0; 8];
                    bytes[..truths.len()].copy_from_slice(truths);
                    if u64::from_ne_bytes(bytes) == 0 {
                        continue;
                    }
                    // Offsets of elements that are not true are overwritten by the next one, which avoids a
                    // branch.
                    for (k, truth) in (0..).zip(bytes) {
                        offsets[count] = word as u32 * 8 + k;
                        count += usize::from(truth != 0);
                    }
                    if count > FOUND - 8 {
                        flush(&offsets[..count]);
                        count = 0;
                    }
                }
                flush(&offsets[..count]);
            }
        });
    }
}

/// Returns the bytes of the mask in a chunk.
///
/// # Safety
/// See [`hal::operation`].
unsafe fn chunk(operation: &Nonzero, index: usize) -> &[u8] {
    let begin = index * CHUNK;
    let length = CHUNK.min(operation.length - begin);
    // SAFETY: elements of the mask, read as bytes; nothing writes to them meanwhile.
    unsafe { std::slice::from_raw_parts(pointer(operation.mask.address as usize + begin), length) }
}

/// Returns the number of true elements in a mask.
fn count(mask: &[u8]) -> usize {
    // Few enough to be counted in bytes, of which a register holds many.
    let few = |some: &[u8]| some.iter().map(|&truth| u8::from(truth != 0)).sum::<u8>();
    mask.chunks(128).map(|some| usize::from(few(some))).sum()
}
