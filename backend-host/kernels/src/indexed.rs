//! Gathers and scatters: elements selected by arrays of indices.

use super::copy::{Place, copy_tile, pointer};
use super::parallel::Workers;
use super::strided::{count, for_each, offset, widest, without};
use super::tile::{BUFFER, Buffer, InputOperand, Output, Scratch};
use hal::DType;
use hal::iteration::simplify;
use hal::operation::{Gather, Indexed, Input, Scatter, Strides};
use std::ops::Range;
use std::ptr;

/// The most rows of a tile. All of its rows have the same indices.
const ROWS: usize = 64;

/// The elements selected by indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picker<'a> {
    /// The indices, read as 64-bit integers.
    pub(super) indices: InputOperand<'a>,
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
            indices: InputOperand::new(&indexed.indices, DType::Int64),
            address: indexed.base.address as usize,
            strides: &indexed.base.strides,
            size: indexed.base.dtype.size(),
            length: indexed.axis_length,
            axis_stride: indexed.axis_stride,
            unsigned: indexed.indices.dtype == DType::UInt64,
        }
    }

    /// Reads the indices of a tile as 64-bit integers, one row if all rows have the same ones. Returns their
    /// address, and whether all are in bounds and none is negative.
    ///
    /// # Safety
    /// The indices must be readable, and fit the buffers.
    #[inline(always)]
    unsafe fn load(
        &self,
        tile: &Picked,
        buffer: &mut Buffer,
        staging: &mut Buffer,
    ) -> (usize, bool) {
        let (rows, columns) = tile.extent;
        let extent = (if tile.indices.row == 0 { 1 } else { rows }, columns);
        // SAFETY: passed on to the caller.
        let ready =
            unsafe { self.indices.load(tile.indices, extent, false, false, buffer, staging) };
        let last = self.last();
        let found = pointer(ready.address).cast::<i64>();
        // The sign of an index, or of its distance from the last one. Without branches, for vectors.
        let outside = (0..extent.0 * extent.1).fold(0, |outside, number| {
            // SAFETY: as many indices.
            let index = unsafe { *found.add(number) };
            outside | index | last.wrapping_sub(index)
        });
        (ready.address, outside >= 0)
    }

    /// Returns the last valid index, or -1.
    fn last(&self) -> i64 {
        i64::try_from(self.length).unwrap_or(i64::MAX).wrapping_sub(1)
    }

    /// Returns the offset in bytes of the element at the index, or `None` if the index is out of bounds.
    #[inline(always)]
    fn place(&self, index: i64) -> Option<usize> {
        let length = i64::try_from(self.length).unwrap_or(i64::MAX);
        let wrapped = if index < 0 { index.wrapping_add(length) } else { index };
        let inside = (wrapped >= 0) & (wrapped < length) & !(self.unsigned & (index < 0));
        inside.then_some(offset(0, wrapped as usize, self.axis_stride))
    }

    /// Calls `visit` for each element of a tile with its row, its column and its address. The address is `None` if
    /// the index is out of bounds.
    ///
    /// # Safety
    /// The indices must be readable, and fit the buffers.
    #[inline(always)]
    unsafe fn visit(
        &self,
        tile: &Picked,
        buffer: &mut Buffer,
        staging: &mut Buffer,
        mut visit: impl FnMut(usize, usize, Option<usize>),
    ) {
        let (rows, columns) = tile.extent;
        // SAFETY: passed on to the caller.
        let (indices, inside) = unsafe { self.load(tile, buffer, staging) };
        for row in 0..rows {
            let first = if tile.indices.row == 0 { 0 } else { row * columns };
            let indices = pointer(indices).cast::<i64>().wrapping_add(first);
            let base = offset(tile.base.address, row, tile.base.row);
            // SAFETY: a row has this many indices.
            let index = |column: usize| unsafe { *indices.add(column) };
            if inside {
                for column in 0..columns {
                    let element = offset(base, column, tile.base.column);
                    let address = offset(element, index(column) as usize, self.axis_stride);
                    visit(row, column, Some(address));
                }
                continue;
            }
            for column in 0..columns {
                let element = offset(base, column, tile.base.column);
                visit(row, column, self.place(index(column)).map(|to| element.wrapping_add(to)));
            }
        }
    }

    /// Copies the elements of a tile to a target whose rows are contiguous. Out-of-bounds indices give zero.
    ///
    /// # Safety
    /// The elements at valid indices must be readable. The target must be writable and must not overlap them.
    /// The indices must fit the buffers.
    pub(super) unsafe fn gather(
        &self,
        tile: &Picked,
        target: Place,
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
                16 => self.gather_typed::<[u64; 2]>(tile, target, buffer, staging),
                32 => self.gather_typed::<[u64; 4]>(tile, target, buffer, staging),
                size => self.visit(tile, buffer, staging, |row, column, address| {
                    let place = offset(target.address, row, target.row);
                    let place = pointer(place).wrapping_add(column * size);
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
        target: Place,
        buffer: &mut Buffer,
        staging: &mut Buffer,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            self.visit(tile, buffer, staging, |row, column, address| {
                let value = match address {
                    Some(address) => pointer(address).cast::<T>().read_unaligned(),
                    None => T::default(),
                };
                let target = pointer(offset(target.address, row, target.row)).cast::<T>();
                target.wrapping_add(column).write_unaligned(value);
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
    let mut picker = Picker::new(source);
    let mut output = Output::new(output, source.base.dtype);
    let mut shape = shape.clone();
    let mut strides =
        [output.strides, picker.strides, picker.indices.strides].map(Strides::from_slice);
    if shape.len() > 1 {
        let moved;
        (shape, moved) = simplify(&shape, &mut strides);
        let addresses = [&mut output.address, &mut picker.address, &mut picker.indices.address];
        for (address, moved) in addresses.into_iter().zip(moved) {
            *address = address.wrapping_add(moved as usize);
        }
        // A contiguous run that one index selects is one large element.
        let steps = strides.each_ref().map(|strides| strides.last().copied());
        let size = picker.size as isize;
        if output.convert.is_none()
            && steps == [Some(size), Some(size), Some(0)]
            && let Some(length) = shape.pop()
        {
            strides.iter_mut().for_each(|strides| strides.truncate(shape.len()));
            picker.size *= length;
            (output.size, output.given) = (picker.size, picker.size);
        }
    }
    let strides = strides.each_ref().map(|strides| &strides[..]);
    let stride_of = |operand: usize, axis| super::strided::stride(strides[operand], axis);
    // The last axis is cut into tiles, of any size if nothing is converted. The rows of a tile have the same indices.
    let columns = shape.len().checked_sub(1);
    let step = columns.map_or([0; 3], |axis| [0, 1, 2].map(|operand| stride_of(operand, axis)));
    let contiguous = output.is_direct(step[0], columns.map_or(1, |axis| shape[axis]));
    let rows = shape.len().checked_sub(2).filter(|&axis| contiguous && stride_of(2, axis) == 0);
    let pitch = rows.map_or([0; 3], |axis| [0, 1, 2].map(|operand| stride_of(operand, axis)));
    let width = if contiguous {
        tile_columns(1)
    } else {
        tile_columns(picker.size.max(output.size)).max(1)
    };
    let part = |axis: usize, range: Range<usize>| {
        let mut shape = shape.clone();
        let mut first = [output.address, picker.address, picker.indices.address];
        if let Some(length) = shape.get_mut(axis) {
            *length = range.len();
            first = [0, 1, 2]
                .map(|operand| offset(first[operand], range.start, stride_of(operand, axis)));
        }
        let length = |axis: Option<usize>| axis.map_or(1, |axis| shape[axis]);
        let (rows, length, outer) =
            (length(rows), length(columns), without(&shape, &[rows, columns]));
        let mut scratch = Scratch::new();
        for_each(&outer, &strides, first, |start| {
            // Neighbouring tiles are computed one after the other, because they share cache lines of the source.
            let tiles = (0..rows)
                .step_by(ROWS)
                .flat_map(|row| (0..length).step_by(width).map(move |column| (row, column)));
            for (row, column) in tiles {
                let number = width.min(length - column);
                let [target, base, indices] = [0, 1, 2].map(|operand| Place {
                    address: offset(
                        offset(start[operand], row, pitch[operand]),
                        column,
                        step[operand],
                    ),
                    row: pitch[operand],
                    column: step[operand],
                });
                let tile = Picked { base, indices, extent: (ROWS.min(rows - row), number) };
                let Scratch { arguments: [buffer, ..], value, staging, .. } = &mut scratch;
                // SAFETY: a tile of the operation, which fits the buffers unless it is written directly to
                // the output.
                unsafe {
                    if contiguous {
                        picker.gather(&tile, target, buffer, staging);
                    } else if picker.size > BUFFER {
                        picker.visit(&tile, buffer, staging, |_, _, address| match address {
                            Some(address) => ptr::copy_nonoverlapping(
                                pointer(address),
                                pointer(target.address),
                                picker.size,
                            ),
                            None => pointer(target.address).write_bytes(0, picker.size),
                        });
                    } else {
                        let packed = Place::packed(value.address(), number, picker.size);
                        picker.gather(&tile, packed, buffer, staging);
                        output.store(packed.address, target, tile.extent, staging);
                    }
                }
            }
        });
    };
    let axis = widest(&shape);
    let work = count(&shape).saturating_mul(4 + picker.size / 16);
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
        Input::Array(operand) => InputOperand::new(operand, dtype),
        Input::Scalar(scalar) => {
            // Two words, so that the value is aligned for every type.
            let mut words = [0u64; 2];
            for (index, &byte) in scalar.bytes().iter().enumerate() {
                words[index / 8] |= u64::from(byte) << (index % 8 * 8);
            }
            cell = words.map(u64::to_le);
            let address = (&raw const cell).expose_provenance();
            InputOperand { address, size: dtype.size(), wanted: dtype.size(), ..InputOperand::NONE }
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
                picker.visit(&tile, buffer, staging, |_, column, address| {
                    let Some(address) = address else { return };
                    let from = Place::packed(ready.address + column * step, 1, size);
                    copy_tile(size, from, Place::packed(address, 1, size), 1, 1);
                });
            }
            column += number;
        }
    });
}
