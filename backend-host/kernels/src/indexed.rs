//! Gathers and scatters: elements selected by arrays of indices.

use super::copy::{Place, copy_tile, pointer};
use super::parallel::Workers;
use super::strided::{count, for_each, offset, widest, without};
use super::tile::{Argument, BUFFER, Buffer, Output, Scratch};
use hal::DType;
use hal::operation::{Gather, Indexed, Input, Scatter};
use std::ptr;

/// The elements selected by indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picker<'a> {
    /// The indices, read as 64-bit integers.
    pub(super) indices: Argument<'a>,
    /// The address of the element whose indices are all zero.
    pub(super) address: usize,
    /// The distances between elements along the axes of the iteration space, in bytes.
    pub(super) strides: &'a [isize],
    /// The size of an element in bytes.
    pub(super) size: usize,
    length: usize,
    axis_stride: isize,
    /// True if indices of 2^63 or more appear as negative ones.
    unsigned: bool,
}

/// A tile of picked elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picked {
    /// The elements for index zero.
    pub(super) base: Place,
    /// The indices.
    pub(super) indices: Place,
    /// Rows and columns.
    pub(super) extent: (usize, usize),
}

impl<'a> Picker<'a> {
    /// Creates the picker of an operation.
    pub(super) fn new(indexed: &'a Indexed) -> Self {
        Picker {
            indices: Argument::new(&indexed.indices, DType::Int64),
            address: indexed.base.address as usize,
            strides: &indexed.base.strides,
            size: indexed.base.dtype.size(),
            length: indexed.axis_length,
            axis_stride: indexed.axis_stride,
            unsigned: indexed.indices.dtype == DType::UInt64,
        }
    }

    /// Calls `visit` for each element of a tile with its number and its address. The address is `None` if the
    /// index is out of bounds.
    ///
    /// # Safety
    /// The indices must be readable, and fit the buffers.
    #[inline(always)]
    unsafe fn visit(
        &self,
        tile: &Picked,
        buffer: &mut Buffer,
        staging: &mut Buffer,
        mut visit: impl FnMut(usize, Option<usize>),
    ) {
        let (rows, columns) = tile.extent;
        // SAFETY: passed on to the caller.
        let ready =
            unsafe { self.indices.load(tile.indices, tile.extent, false, false, buffer, staging) };
        let indices = pointer(ready.address).cast::<i64>();
        let length = i64::try_from(self.length).unwrap_or(i64::MAX);
        for row in 0..rows {
            let base = offset(tile.base.address, row, tile.base.row);
            for column in 0..columns {
                let number = row * columns + column;
                // SAFETY: as many indices as elements.
                let index = unsafe { *indices.add(number) };
                let wrapped = if index < 0 { index.wrapping_add(length) } else { index };
                let inside = (wrapped >= 0) & (wrapped < length) & !(self.unsigned & (index < 0));
                let element = offset(base, column, tile.base.column);
                let address = offset(element, wrapped as usize, self.axis_stride);
                visit(number, inside.then_some(address));
            }
        }
    }

    /// Copies the elements of a tile to a packed target. Out-of-bounds indices give zero.
    ///
    /// # Safety
    /// The elements at valid indices must be readable. The target must be writable and must not overlap them.
    /// The indices must fit the buffers.
    pub(super) unsafe fn gather(
        &self,
        tile: &Picked,
        target: usize,
        buffer: &mut Buffer,
        staging: &mut Buffer,
    ) {
        // SAFETY: passed on to the caller; elements are of the size of the type used.
        unsafe {
            match self.size {
                1 => self.gather_typed::<u8>(tile, target, buffer, staging),
                2 => self.gather_typed::<u16>(tile, target, buffer, staging),
                4 => self.gather_typed::<u32>(tile, target, buffer, staging),
                8 => self.gather_typed::<u64>(tile, target, buffer, staging),
                size => self.visit(tile, buffer, staging, |number, address| {
                    let place = pointer(target).wrapping_add(number * size);
                    match address {
                        Some(address) => ptr::copy_nonoverlapping(pointer(address), place, size),
                        None => place.write_bytes(0, size),
                    }
                }),
            }
        }
    }

    /// # Safety
    /// See [`Picker::gather`].
    unsafe fn gather_typed<T: Copy + Default>(
        &self,
        tile: &Picked,
        target: usize,
        buffer: &mut Buffer,
        staging: &mut Buffer,
    ) {
        let target = pointer(target).cast::<T>();
        // SAFETY: passed on to the caller.
        unsafe {
            self.visit(tile, buffer, staging, |number, address| {
                let value = match address {
                    Some(address) => pointer(address).cast::<T>().read_unaligned(),
                    None => T::default(),
                };
                target.wrapping_add(number).write_unaligned(value);
            });
        }
    }
}

/// Returns the number of columns of a tile whose elements and indices fit the buffers.
pub(super) fn tile_columns(largest: usize) -> usize {
    (BUFFER / largest.max(size_of::<i64>())).min(1024)
}

/// Executes a gather.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn gather(operation: &Gather, workers: &Workers<'_>) {
    let Gather { shape, source, output } = operation;
    let picker = Picker::new(source);
    let output = Output::new(output, source.base.dtype);
    // The last axis is cut into tiles, of any size if nothing is converted.
    let columns = shape.len().checked_sub(1);
    let length = columns.map_or(1, |axis| shape[axis]);
    let strides = [picker.strides, picker.indices.strides, output.strides];
    let addresses = [picker.address, picker.indices.address, output.address];
    let stride_of = |operand: usize, axis| super::strided::stride(strides[operand], axis);
    let contiguous = output.is_direct(output.stride(columns), length);
    let largest = picker.size.max(output.size);
    let width = if contiguous { tile_columns(1) } else { tile_columns(largest).max(1) };
    let part = |axis: usize, range: std::ops::Range<usize>| {
        let mut outer = without(shape, &[columns]);
        let mut within = 0..length;
        if columns == Some(axis) {
            within = range.clone();
        } else if !shape.is_empty() {
            outer[axis] = range.len();
        }
        let first = std::array::from_fn(|operand| {
            let start = if columns == Some(axis) { 0 } else { range.start };
            offset(addresses[operand], start, stride_of(operand, axis))
        });
        let mut scratch = Scratch::new();
        for_each(&outer, &strides, first, |start| {
            let mut column = within.start;
            while column < within.end {
                let number = width.min(within.end - column);
                let [base, indices, target] = std::array::from_fn(|operand| {
                    let stride = columns.map_or(0, |axis| stride_of(operand, axis));
                    let address = offset(start[operand], column, stride);
                    Place { address, row: 0, column: stride }
                });
                let tile = Picked { base, indices, extent: (1, number) };
                let Scratch { arguments: [buffer, ..], value, staging } = &mut scratch;
                // SAFETY: a tile of the operation, which fits the buffers unless it is written directly to
                // the output.
                unsafe {
                    if contiguous {
                        picker.gather(&tile, target.address, buffer, staging);
                    } else if picker.size > BUFFER {
                        picker.visit(&tile, buffer, staging, |_, address| match address {
                            Some(address) => ptr::copy_nonoverlapping(
                                pointer(address),
                                pointer(target.address),
                                picker.size,
                            ),
                            None => pointer(target.address).write_bytes(0, picker.size),
                        });
                    } else {
                        let packed = value.address();
                        picker.gather(&tile, packed, buffer, staging);
                        output.store(packed, target, tile.extent, staging);
                    }
                }
                column += number;
            }
        });
    };
    let axis = widest(shape);
    let work = count(shape).saturating_mul(4);
    workers.split(shape.get(axis).copied().unwrap_or(1), 1, work, &|range| part(axis, range));
}

/// Executes a scatter on one thread, because several threads could store to the same element concurrently.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn scatter(operation: &Scatter) {
    let Scatter { shape, input, target } = operation;
    let dtype = target.base.dtype;
    let picker = Picker::new(target);
    let cell;
    let source = match input {
        Input::Array(operand) => Argument::new(operand, dtype),
        Input::Scalar(scalar) => {
            // Two words, so that the value is aligned for every type.
            let mut words = [0u64; 2];
            for (index, &byte) in scalar.bytes().iter().enumerate() {
                words[index / 8] |= u64::from(byte) << (index % 8 * 8);
            }
            cell = words.map(u64::to_le);
            let address = (&raw const cell).expose_provenance();
            Argument { address, size: dtype.size(), wanted: dtype.size(), ..Argument::NONE }
        }
    };
    let columns = shape.len().checked_sub(1);
    let length = columns.map_or(1, |axis| shape[axis]);
    let largest = source.largest().max(picker.size);
    let width = tile_columns(largest).max(1);
    let outer = without(shape, &[columns]);
    let strides = [picker.strides, picker.indices.strides, source.strides];
    let addresses = [picker.address, picker.indices.address, source.address];
    let size = picker.size;
    let mut scratch = Scratch::new();
    for_each(&outer, &strides, addresses, |start| {
        let mut column = 0;
        while column < length {
            let number = width.min(length - column);
            let [base, indices, from] = std::array::from_fn(|operand| {
                let stride =
                    columns.map_or(0, |axis| super::strided::stride(strides[operand], axis));
                let address = offset(start[operand], column, stride);
                Place { address, row: 0, column: stride }
            });
            let tile = Picked { base, indices, extent: (1, number) };
            let Scratch { arguments: [buffer, elements, ..], staging, .. } = &mut scratch;
            // SAFETY: a tile of the operation, which fits the buffers. A record larger than a buffer is a
            // tile of its own and needs none. Only elements at valid indices are written.
            unsafe {
                let ready = source.load(from, tile.extent, true, true, elements, staging);
                let step = if ready.repeated { 0 } else { size };
                picker.visit(&tile, buffer, staging, |number, address| {
                    let Some(address) = address else { return };
                    let from = Place::packed(ready.address + number * step, 1, size);
                    copy_tile(size, from, Place::packed(address, 1, size), 1, 1);
                });
            }
            column += number;
        }
    });
}
