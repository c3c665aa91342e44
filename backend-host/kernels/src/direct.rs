//! Element-wise operations whose operands a loop can use in place.

use super::blocks::Kernel;
use super::cast;
use super::copy::{Place, copy_tile, pointer};
use super::function;
use super::pairwise::Cell;
use super::parallel::Workers;
use super::strided::offset;
use hal::DType;
use hal::function::{Function, UnaryFunction};
use hal::operation::{Elementwise, Input, Operand};

/// The number of elements up to which work is not divided among threads.
const LINE: usize = 1024;

/// Executes operations that need no preparation, since preparation takes as long as a short operation. These
/// are copies along one axis, and functions of contiguous arrays and numbers in their computing type. Returns
/// false for other operations.
///
/// # Safety
/// See [`hal::operation`].
#[inline]
pub(super) unsafe fn run(operation: &Elementwise, workers: &Workers<'_>) -> bool {
    match (operation.function, &operation.inputs[..], &operation.shape[..]) {
        (_, _, &[] | &[0] | &[_, _, ..]) => false,
        (Function::Unary(UnaryFunction::Copy), [Input::Array(source)], &[length]) => {
            // SAFETY: passed on to the caller.
            unsafe { copy(operation, source, length, workers) }
        }
        (Function::Unary(_) | Function::Binary(_), _, &[length]) => {
            // SAFETY: passed on to the caller.
            unsafe { apply(operation, length, workers) }
        }
        _ => false,
    }
}

/// Copies the elements of an array along one axis. They can be converted if both arrays are contiguous.
///
/// # Safety
/// See [`hal::operation`].
#[inline]
unsafe fn copy(
    operation: &Elementwise,
    source: &Operand,
    length: usize,
    workers: &Workers<'_>,
) -> bool {
    let Elementwise { compute, output, .. } = operation;
    let (size, from_size) = (output.dtype.size(), source.dtype.size());
    let (to, from) = (output.address as usize, source.address as usize);
    let (to_stride, from_stride) = (output.strides[0], source.strides[0]);
    if source.dtype == output.dtype {
        // Truth values that a program wrote become 0 or 1.
        if *compute != source.dtype || *compute == DType::Bool || to == from {
            return false;
        }
        workers.split(length, LINE, length.saturating_mul(size.div_ceil(8)), &|range| {
            let from = Place {
                address: offset(from, range.start, from_stride),
                row: 0,
                column: from_stride,
            };
            let to =
                Place { address: offset(to, range.start, to_stride), row: 0, column: to_stride };
            // SAFETY: passed on to the caller, for a part of the elements.
            unsafe { copy_tile(size, from, to, 1, range.len()) };
        });
        return true;
    }
    // A cast through either of the two types is a single conversion.
    let is_plain = [source.dtype, output.dtype].contains(compute)
        && from_stride == from_size as isize
        && to_stride == size as isize
        && to != from;
    match cast::conversion(source.dtype, output.dtype) {
        Some(run) if is_plain => {
            let kernel = Kernel { run, cheap: true, in_place: false };
            // SAFETY: contiguous elements of the loop's types, without overlap.
            unsafe { call(kernel, (to, size), &[(from, from_size); 4], 0, length, workers) };
            true
        }
        _ => false,
    }
}

/// # Safety
/// See [`hal::operation`].
#[inline]
unsafe fn apply(operation: &Elementwise, length: usize, workers: &Workers<'_>) -> bool {
    let Elementwise { function, compute, inputs, output, .. } = operation;
    let size = compute.size();
    let result = output.dtype;
    let is_plain =
        function.result(*compute) == result && output.strides[0] == result.size() as isize;
    if !is_plain || matches!(compute, DType::Opaque(_)) {
        return false;
    }
    let mut cells = [Cell([0; 16]); 2];
    let mut arguments = [(0, size); 4];
    let mut repeated = 0;
    let mut in_place = false;
    for (index, input) in inputs.iter().enumerate() {
        match input {
            Input::Array(operand) => {
                if operand.dtype != *compute || operand.strides[0] != size as isize {
                    return false;
                }
                in_place |= operand.address == output.address;
                arguments[index].0 = operand.address as usize;
            }
            Input::Scalar(scalar) => {
                cells[index].0[..size].copy_from_slice(scalar.bytes());
                arguments[index].0 = (&raw const cells[index]).expose_provenance();
                repeated |= u32::from(length > 1) << index;
            }
        }
    }
    let Some(kernel) = function::kernel(*function, *compute) else { return false };
    if in_place && !(kernel.in_place && result == *compute) {
        return false;
    }
    let output = (output.address as usize, result.size());
    // SAFETY: contiguous or repeated elements of the loop's types; an argument is the output itself only if
    // the loop allows it.
    unsafe { call(kernel, output, &arguments, repeated, length, workers) };
    true
}

/// Calls a loop for operands that it can use in place. Each operand is an address and the size of an element.
///
/// # Safety
/// See [`super::multiversion::Loop`].
#[inline]
pub(super) unsafe fn call(
    kernel: Kernel,
    output: (usize, usize),
    arguments: &[(usize, usize); 4],
    repeated: u32,
    length: usize,
    workers: &Workers<'_>,
) {
    workers.split(length, LINE, kernel.work(length), &|range| {
        let at = |(address, size): (usize, usize)| offset(address, range.start, size as isize);
        let arguments = std::array::from_fn(|index| {
            let argument = arguments[index];
            let is_repeated = repeated >> index & 1 == 1;
            pointer(if is_repeated { argument.0 } else { at(argument) }).cast_const()
        });
        // SAFETY: passed on to the caller, for a part of the elements.
        unsafe { kernel.run.call(pointer(at(output)), &arguments, repeated, range.len()) };
    });
}
