//! Operands as tiles: two-dimensional pieces that fit the first-level cache, converted to the type and order
//! that a loop needs.

use super::blocks::Routine;
use super::cast;
use super::copy::{Place, copy_tile};
use super::strided::stride;
use hal::DType;
use hal::operation::Operand;
use std::mem::MaybeUninit;

/// The size of a buffer in bytes.
pub(super) const BUFFER: usize = 16384;
/// The row length from which a separate call per row pays off.
pub(super) const ROW: usize = 32;

/// A buffer for one operand of a tile.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Buffer([MaybeUninit<u8>; BUFFER]);

impl Buffer {
    /// Returns the address of the buffer.
    pub(super) fn address(&mut self) -> usize {
        self.0.as_mut_ptr().expose_provenance()
    }
}

/// Buffers for the operands of a tile.
#[derive(Debug)]
pub(super) struct Scratch {
    /// One buffer for each argument.
    pub(super) arguments: [Buffer; 4],
    /// The buffer for the value.
    pub(super) value: Buffer,
    /// The buffer for intermediate elements.
    pub(super) staging: Buffer,
}

impl Scratch {
    /// Creates uninitialised buffers.
    pub(super) fn new() -> Self {
        const EMPTY: Buffer = Buffer([MaybeUninit::uninit(); BUFFER]);
        Scratch { arguments: [EMPTY; 4], value: EMPTY, staging: EMPTY }
    }
}

/// The location of an operand of a tile, in a form that a loop can use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    /// The address of the first element.
    pub(super) address: usize,
    /// The distance between rows in bytes.
    pub(super) row: isize,
    /// True if each row is one element repeated.
    pub(super) repeated: bool,
    /// True if the rows are contiguous, or all are the same repeated element.
    pub(super) packed: bool,
}

impl Ready {
    /// Returns packed elements.
    pub(super) fn packed(address: usize, columns: usize, size: usize) -> Ready {
        Ready { address, row: (columns * size) as isize, repeated: false, packed: true }
    }
}

/// An operand that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputOperand<'a> {
    /// The address of the first element.
    pub(super) address: usize,
    /// The distances between elements in bytes; empty for a single element.
    pub(super) strides: &'a [isize],
    /// The size of an element in bytes.
    pub(super) size: usize,
    /// The size of an element that the loop receives, in bytes.
    pub(super) wanted: usize,
    /// Converts the elements to the type that the loop needs.
    pub(super) convert: Option<Routine>,
    /// True if the elements overlap the output and must be copied first.
    pub(super) staged: bool,
}

impl<'a> InputOperand<'a> {
    /// No operand.
    pub(super) const NONE: InputOperand<'static> =
        InputOperand { address: 0, strides: &[], size: 1, wanted: 1, convert: None, staged: false };

    /// Describes an operand in device memory, to be read as type `wanted`.
    pub(super) fn new(operand: &'a Operand, wanted: DType) -> Self {
        InputOperand {
            address: operand.address as usize,
            strides: &operand.strides,
            size: operand.dtype.size(),
            wanted: wanted.size(),
            convert: cast::conversion(operand.dtype, wanted),
            staged: false,
        }
    }

    /// Returns packed elements in the type that the loop needs.
    ///
    /// # Safety
    /// The elements must be readable and fit the buffer.
    pub(super) unsafe fn converted(
        &self,
        address: usize,
        (rows, columns): (usize, usize),
        buffer: &mut Buffer,
    ) -> Ready {
        let Some(convert) = self.convert else { return Ready::packed(address, columns, self.size) };
        let target = buffer.address();
        // SAFETY: passed on to the caller.
        unsafe { cast::convert(convert, address, target, rows * columns) };
        Ready::packed(target, columns, self.wanted)
    }

    /// Returns the larger of an element's two sizes in bytes.
    pub(super) fn largest(&self) -> usize {
        self.size.max(self.wanted)
    }

    /// Returns the stride of an axis, or zero for no axis.
    pub(super) fn stride(&self, axis: Option<usize>) -> isize {
        axis.map_or(0, |axis| stride(self.strides, axis))
    }

    /// Returns true if a loop can use the elements along an axis in place.
    #[inline(always)]
    pub(super) fn is_direct(&self, stride: isize, length: usize) -> bool {
        self.convert.is_none()
            && !self.staged
            && (length == 1 || stride == 0 || stride == self.size as isize)
    }

    /// Brings a tile into a form that a loop can use. With `by_rows`, the rows may be apart, or be one
    /// repeated element each. Otherwise they are packed or, if `repeatable`, all one repeated element.
    ///
    /// # Safety
    /// The elements must be readable; the tile must fit the buffers in both forms.
    pub(super) unsafe fn load(
        &self,
        from: Place,
        (rows, columns): (usize, usize),
        by_rows: bool,
        repeatable: bool,
        buffer: &mut Buffer,
        staging: &mut Buffer,
    ) -> Ready {
        let single =
            repeatable && (rows == 1 || from.row == 0) && (columns == 1 || from.column == 0);
        let packed = from.is_packed(rows, columns, self.size);
        if self.convert.is_none() && !self.staged {
            if single || packed {
                let row = if single { 0 } else { (columns * self.size) as isize };
                return Ready { address: from.address, row, repeated: single, packed: true };
            }
            let contiguous = columns == 1 || from.column == self.size as isize;
            if by_rows && (contiguous || (repeatable && from.column == 0)) {
                let repeated = !contiguous;
                return Ready { address: from.address, row: from.row, repeated, packed: false };
            }
        }
        let (rows, columns) = if single { (1, 1) } else { (rows, columns) };
        let address = buffer.address();
        match self.convert {
            None => {
                let to = Place::packed(address, columns, self.size);
                // SAFETY: the tile fits the buffer.
                unsafe { copy_tile(self.size, from, to, rows, columns) };
            }
            Some(convert) => {
                let mut source = from.address;
                if !packed && !single {
                    source = staging.address();
                    let to = Place::packed(source, columns, self.size);
                    // SAFETY: the tile fits the buffer.
                    unsafe { copy_tile(self.size, from, to, rows, columns) };
                }
                // SAFETY: packed elements of both types, which fit the buffer.
                unsafe { cast::convert(convert, source, address, rows * columns) };
            }
        }
        let row = if single { 0 } else { (columns * self.wanted) as isize };
        Ready { address, row, repeated: single, packed: true }
    }
}

/// An operand that is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output<'a> {
    /// The address of the first element.
    pub(super) address: usize,
    /// The distances between elements in bytes.
    pub(super) strides: &'a [isize],
    /// The size of an element in bytes.
    pub(super) size: usize,
    /// The size of an element of the loop's value, in bytes.
    pub(super) given: usize,
    /// Converts the loop's values to elements.
    pub(super) convert: Option<Routine>,
}

impl<'a> Output<'a> {
    /// Creates an output for an operand in device memory that receives values of type `given`.
    pub(super) fn new(operand: &'a Operand, given: DType) -> Self {
        Output {
            address: operand.address as usize,
            strides: &operand.strides,
            size: operand.dtype.size(),
            given: given.size(),
            convert: cast::conversion(given, operand.dtype),
        }
    }

    /// Returns the larger of an element's two sizes in bytes.
    pub(super) fn largest(&self) -> usize {
        self.size.max(self.given)
    }

    /// Returns the stride of an axis, or zero for no axis.
    pub(super) fn stride(&self, axis: Option<usize>) -> isize {
        axis.map_or(0, |axis| stride(self.strides, axis))
    }

    /// Returns true if a loop can write the elements along an axis in place.
    #[inline(always)]
    pub(super) fn is_direct(&self, stride: isize, length: usize) -> bool {
        self.convert.is_none() && (length == 1 || stride == self.size as isize)
    }

    /// Stores packed values of a tile.
    ///
    /// # Safety
    /// The values at `from` and the elements at `to` must be valid and must not overlap. If they are
    /// converted, the tile must fit the buffer.
    pub(super) unsafe fn store(
        &self,
        from: usize,
        to: Place,
        (rows, columns): (usize, usize),
        staging: &mut Buffer,
    ) {
        let mut from = from;
        if let Some(convert) = self.convert {
            let packed = to.is_packed(rows, columns, self.size);
            let target = if packed { to.address } else { staging.address() };
            // SAFETY: packed elements of both types, in the output or in the buffer.
            unsafe { cast::convert(convert, from, target, rows * columns) };
            if packed {
                return;
            }
            from = target;
        }
        // SAFETY: packed elements, and the tile of the output.
        unsafe {
            copy_tile(self.size, Place::packed(from, columns, self.size), to, rows, columns);
        }
    }
}
