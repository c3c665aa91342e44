//! Evenly spaced values.

use super::copy::pointer;
use super::nest::{offset, stride};
use super::number::{Number, with_number};
use super::parallel::Workers;
use super::unsupported;
use hal::operation::Sequence;
use hal::{DType, Result, Scalar, f16};
use std::ops::Range;

/// The loop of one element type.
type Fill = unsafe fn(&Sequence, Range<usize>);

/// # Safety
/// See [`hal::operation`].
unsafe fn fill<T: Number, W: Number>(operation: &Sequence, range: Range<usize>) {
    let [start, step] = [&operation.start, &operation.step].map(|scalar| read::<T>(scalar));
    let (start, step) = (start.convert::<W>(), step.convert::<W>());
    let stride = stride(&operation.output.strides, 0);
    let address = operation.output.address as usize;
    for index in range {
        let value = start.add(W::from_u64(index as u64).multiply(step));
        let place = pointer(offset(address, index, stride)).cast::<T>();
        // SAFETY: an element of the output.
        unsafe { place.write(value.convert()) };
    }
}

fn read<T: Number>(scalar: &Scalar) -> T {
    let mut bytes = [0; 16];
    let value = scalar.cast(T::DTYPE).unwrap_or(*scalar);
    for (byte, &given) in bytes.iter_mut().zip(value.bytes()) {
        *byte = given;
    }
    // SAFETY: as many bytes as the type has, and every pattern of them is valid.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// Executes a sequence.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Sequence, workers: &Workers<'_>) -> Result<()> {
    let fill: Fill = match operation.output.dtype {
        // Steps of binary16 would be lost beyond 2048; numpy too calculates in binary32.
        DType::Float16 => fill::<f16, f32>,
        dtype => with_number!(dtype, T => fill::<T, T>,
            else return Err(unsupported(format!("a sequence of dtype {dtype}")))),
    };
    workers.split(operation.length, 64, operation.length, &|range| {
        // SAFETY: a part of the operation.
        unsafe { fill(operation, range) };
    });
    Ok(())
}
