//! The indices of true elements.

use super::copy::pointer;
use super::parallel::Workers;
use hal::DType;
use hal::operation::Nonzero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements whose true ones are counted together.
const CHUNK: usize = 1 << 16;

/// Executes a search for true elements.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Nonzero, workers: &Workers<'_>) {
    let Nonzero { length, most, mask, output } = operation;
    let chunks = length.div_ceil(CHUNK);
    let chunk = |index: usize| index * CHUNK..(*length).min((index + 1) * CHUNK);
    let is_true = |index: usize| {
        // SAFETY: an element of the mask, read as the byte that it is.
        unsafe { pointer(mask.address as usize + index).read() != 0 }
    };
    let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    workers.split(chunks, 1, *length, &|range| {
        for index in range {
            let count = chunk(index).filter(|&element| is_true(element)).count();
            counts[index].store(count, Ordering::Relaxed);
        }
    });
    let mut before = 0;
    for count in &counts {
        before += count.swap(before, Ordering::Relaxed);
    }
    workers.split(chunks, 1, *length, &|range| {
        for index in range {
            let places = counts[index].load(Ordering::Relaxed)..*most;
            for (element, place) in chunk(index).filter(|&it| is_true(it)).zip(places) {
                let address = output.address as usize + place * output.dtype.size();
                // SAFETY: an element of the output, which has `most`.
                unsafe {
                    match output.dtype {
                        DType::Int32 => pointer(address).cast::<i32>().write(element as i32),
                        _ => pointer(address).cast::<i64>().write(element as i64),
                    }
                }
            }
        }
    });
}
