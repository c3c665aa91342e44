//! Evenly spaced values.

use super::blocks::unsupported;
use super::copy::pointer;
use super::multiversion::{places, select_variant};
use super::number::{Convert as _, Number, with_number};
use super::parallel::Workers;
use super::strided::{offset, stride};
use hal::operation::Sequence;
use hal::{Result, Scalar};

/// The loop of one element type, for a range of indices.
type Fill = unsafe fn(&Sequence, usize, usize);

/// # Safety
/// See [`hal::operation`].
#[inline(always)]
unsafe fn fill_body<T: Number>(operation: &Sequence, first: usize, end: usize) {
    let [start, step] = [&operation.start, &operation.step].map(|scalar| read::<T>(scalar));
    let (start, step) = (start.convert::<T::Working>(), step.convert::<T::Working>());
    let stride = stride(&operation.output.strides, 0);
    let address = operation.output.address as usize;
    // Steps of binary16 would be lost beyond 2048; numpy also computes in binary32.
    let value = |index: T::Working| start.add(index.multiply(step)).convert::<T>();
    if stride == size_of::<T>() as isize && i32::try_from(end).is_ok() {
        // There are vector instructions that convert 32-bit indices.
        let place = pointer(offset(address, first, stride));
        // SAFETY: a part of the output.
        let places = unsafe { places::<T>(place, end - first) };
        for (place, index) in places.iter_mut().zip(first as i32..) {
            place.write(value(T::Working::from_i32(index)));
        }
        return;
    }
    for index in first..end {
        let place = pointer(offset(address, index, stride)).cast::<T>();
        // SAFETY: an element of the output.
        unsafe { place.write(value(T::Working::from_u64(index as u64))) };
    }
}

select_variant!(fill<T: Number>, fill_body, Fill,
    (operation: &Sequence, first: usize, end: usize));

fn read<T: Number>(scalar: &Scalar) -> T {
    let mut bytes = [0; 16];
    for (byte, &given) in bytes.iter_mut().zip(scalar.bytes()) {
        *byte = given;
    }
    // SAFETY: the type has this many bytes, and every bit pattern is valid.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// Executes a sequence.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Sequence, workers: &Workers<'_>) -> Result<()> {
    let dtype = operation.output.dtype;
    let fill: Fill = with_number!(dtype, T => fill::<T>(),
        else return Err(unsupported(format!("a sequence of dtype {dtype}"))));
    workers.split(operation.length, 64, operation.length, &|range| {
        // SAFETY: a part of the operation.
        unsafe { fill(operation, range.start, range.end) };
    });
    Ok(())
}
