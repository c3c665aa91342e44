//! Copies two-dimensional pieces of memory with any strides and element types.

use super::multiversion::select_variant;
use super::strided::offset;
use std::mem::MaybeUninit;
use std::ptr;

/// The location of a tile's elements: an address, and the distances between rows and columns in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The address of the first element.
    pub(super) address: usize,
    /// The distance between rows in bytes.
    pub(super) row: isize,
    /// The distance between columns in bytes.
    pub(super) column: isize,
}

impl Place {
    /// Returns the place of contiguous elements, row after row.
    pub(super) fn packed(address: usize, columns: usize, size: usize) -> Self {
        Place { address, row: (columns * size) as isize, column: size as isize }
    }

    fn transposed(self) -> Self {
        Place { address: self.address, row: self.column, column: self.row }
    }

    /// Returns true if the elements of a tile are contiguous, row after row.
    #[inline(always)]
    pub(super) fn is_packed(self, rows: usize, columns: usize, size: usize) -> bool {
        let row = (columns * size) as isize;
        (rows == 1 || self.row == row) && (columns == 1 || self.column == size as isize)
    }
}

/// Converts an address of an operation to a pointer.
#[inline(always)]
pub(super) fn pointer(address: usize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address)
}

/// Prefetches the tile that is read next. Its cache lines are too far apart for the processor to predict. The
/// addresses need not be readable.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn prefetch(tile: Place, rows: usize, columns: usize, size: usize) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    const LINE: usize = 64;
    let (lines, step, bytes) = if tile.column == size as isize {
        (rows, tile.row, columns * size)
    } else if tile.row == size as isize {
        (columns, tile.column, rows * size)
    } else {
        return;
    };
    for line in 0..lines {
        let address = offset(tile.address, line, step);
        for byte in (0..bytes).step_by(LINE) {
            // SAFETY: every x86-64 processor has the instruction. It does not have visible effects, and ignores
            // addresses that cannot be read.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(pointer(address.wrapping_add(byte)).cast()) };
        }
    }
}

/// Does nothing, because this target does not have a stable function for it.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) fn prefetch(_: Place, _: usize, _: usize, _: usize) {}

/// Copies `rows` times `columns` elements of `size` bytes.
///
/// # Safety
/// All elements of `from` must be readable and all elements of `to` writable, and they must not overlap.
pub(super) unsafe fn copy_tile(size: usize, from: Place, to: Place, rows: usize, columns: usize) {
    if rows == 0 || columns == 0 || size == 0 {
        return;
    }
    if from.is_packed(rows, columns, size) && to.is_packed(rows, columns, size) {
        // SAFETY: both are contiguous, and disjoint by the caller's promise.
        unsafe {
            ptr::copy_nonoverlapping(
                pointer(from.address),
                pointer(to.address),
                rows * columns * size,
            );
        }
        return;
    }
    // The inner loop runs along the axis that is contiguous for the source, or otherwise along the longer
    // axis.
    let turn = columns == 1
        || (rows > 1
            && (from.row.unsigned_abs() < from.column.unsigned_abs()
                || (from.row == from.column && to.row.unsigned_abs() < to.column.unsigned_abs())));
    let (from, to, rows, columns) = if turn {
        (from.transposed(), to.transposed(), columns, rows)
    } else {
        (from, to, rows, columns)
    };
    let typed = match size {
        1 => select_typed::<u8>(),
        2 => select_typed::<u16>(),
        4 => select_typed::<u32>(),
        8 => select_typed::<u64>(),
        16 => select_typed::<[u64; 2]>(),
        // SAFETY: passed on to the caller.
        _ => return unsafe { copy_records(size, from, to, rows, columns) },
    };
    // SAFETY: passed on to the caller.
    unsafe { typed(from, to, rows, columns) }
}

/// # Safety
/// See [`copy_tile`].
#[inline(never)]
unsafe fn copy_records(size: usize, from: Place, to: Place, rows: usize, columns: usize) {
    for row in 0..rows {
        for column in 0..columns {
            let source = offset(offset(from.address, row, from.row), column, from.column);
            let target = offset(offset(to.address, row, to.row), column, to.column);
            // SAFETY: an element of each, disjoint by the caller's promise.
            unsafe { ptr::copy_nonoverlapping(pointer(source), pointer(target), size) };
        }
    }
}

/// A loop that copies elements of one size.
type TypedCopy = unsafe fn(Place, Place, usize, usize);

/// The side length of the squares that are transposed in one step.
const SIDE: usize = 8;

/// # Safety
/// See [`copy_tile`].
#[inline(always)]
unsafe fn typed_body<T: Copy>(from: Place, to: Place, rows: usize, columns: usize) {
    let size = size_of::<T>() as isize;
    let mut row = 0;
    if from.column == size && to.row == size {
        let (turned_rows, turned_columns) = (rows / SIDE * SIDE, columns / SIDE * SIDE);
        // Run along the rows of the target, because writing memory is slower than reading it.
        for column in (0..turned_columns).step_by(SIDE) {
            for row in (0..turned_rows).step_by(SIDE) {
                let at = |place: Place| {
                    offset(offset(place.address, row, place.row), column, place.column)
                };
                // SAFETY: a square of the tile.
                unsafe { transpose_square::<T>(at(from), from.row, at(to), to.column) };
            }
        }
        while row < turned_rows {
            // SAFETY: the rest of the columns of a row.
            unsafe { copy_row::<T>(from, to, row, turned_columns, columns) };
            row += 1;
        }
    }
    for row in row..rows {
        // SAFETY: a row of the tile.
        unsafe { copy_row::<T>(from, to, row, 0, columns) };
    }
}

/// # Safety
/// See [`copy_tile`].
#[inline(always)]
unsafe fn transpose_square<T: Copy>(from: usize, from_row: isize, to: usize, to_column: isize) {
    // The compiler transposes well only vectors of eight elements with these sizes.
    if !matches!(size_of::<T>(), 1 | 4) {
        for column in 0..SIDE {
            let target = pointer(offset(to, column, to_column)).cast::<T>();
            for row in 0..SIDE {
                let source = pointer(offset(from, row, from_row)).cast::<T>();
                // SAFETY: an element of each, of any alignment.
                unsafe {
                    target
                        .wrapping_add(row)
                        .write_unaligned(source.wrapping_add(column).read_unaligned());
                }
            }
        }
        return;
    }
    let mut square = [[MaybeUninit::<T>::uninit(); SIDE]; SIDE];
    for (row, line) in square.iter_mut().enumerate() {
        let source = pointer(offset(from, row, from_row)).cast::<[MaybeUninit<T>; SIDE]>();
        // SAFETY: contiguous elements of the source, of any alignment.
        *line = unsafe { source.read_unaligned() };
    }
    let columns: [[MaybeUninit<T>; SIDE]; SIDE] =
        std::array::from_fn(|column| std::array::from_fn(|row| square[row][column]));
    for (column, line) in columns.into_iter().enumerate() {
        let target = pointer(offset(to, column, to_column)).cast::<[MaybeUninit<T>; SIDE]>();
        // SAFETY: contiguous elements of the target, of any alignment.
        unsafe { target.write_unaligned(line) };
    }
}

/// Copies the columns of one row, starting at `first`.
///
/// # Safety
/// See [`copy_tile`].
#[inline(always)]
unsafe fn copy_row<T: Copy>(from: Place, to: Place, row: usize, first: usize, columns: usize) {
    let size = size_of::<T>() as isize;
    let start = |place: Place| offset(offset(place.address, row, place.row), first, place.column);
    let (source, target) = (start(from), start(to));
    let length = columns - first;
    if length == 0 {
        return;
    }
    if from.column == size && to.column == size {
        // SAFETY: a contiguous row in both.
        unsafe {
            ptr::copy_nonoverlapping(pointer(source), pointer(target), length * size_of::<T>());
        }
    } else if from.column == 0 {
        // SAFETY: one element of the source, of any alignment.
        let value = unsafe { pointer(source).cast::<T>().read_unaligned() };
        if to.column == size {
            for index in 0..length {
                let place = pointer(target).cast::<T>().wrapping_add(index);
                // SAFETY: an element of the target, of any alignment.
                unsafe { place.write_unaligned(value) };
            }
        } else {
            for index in 0..length {
                let place = pointer(offset(target, index, to.column)).cast::<T>();
                // SAFETY: an element of the target, of any alignment.
                unsafe { place.write_unaligned(value) };
            }
        }
    } else if to.column == size {
        for index in 0..length {
            let place = pointer(target).cast::<T>().wrapping_add(index);
            let element = pointer(offset(source, index, from.column)).cast::<T>();
            // SAFETY: an element of each, of any alignment.
            unsafe { place.write_unaligned(element.read_unaligned()) };
        }
    } else {
        for index in 0..length {
            let place = pointer(offset(target, index, to.column)).cast::<T>();
            let element = pointer(offset(source, index, from.column)).cast::<T>();
            // SAFETY: an element of each, of any alignment.
            unsafe { place.write_unaligned(element.read_unaligned()) };
        }
    }
}

select_variant!(select_typed<T: Copy>, typed_body, TypedCopy,
    (from: Place, to: Place, rows: usize, columns: usize));
