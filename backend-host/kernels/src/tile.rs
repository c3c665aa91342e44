//! Operands as tiles: two-dimensional pieces that fit the nearest cache, brought into the type
//! and order that a loop wants.

use super::blocks::Routine;
use super::cast;
use super::copy::{Place, copy_tile};
use super::strided::stride;
use hal::DType;
use hal::operation::Operand;
use std::mem::MaybeUninit;

/// Bytes of one buffer.
pub(super) const BUFFER: usize = 16384;
/// The length from which a row is worth a call of its own.
pub(super) const ROW: usize = 32;

/// A piece of memory for one operand of a tile.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Buffer([MaybeUninit<u8>; BUFFER]);

impl Buffer {
    /// Its address.
    pub(super) fn address(&mut self) -> usize {
        self.0.as_mut_ptr().expose_provenance()
    }
}

/// Buffers for the operands of a tile.
#[derive(Debug)]
pub(super) struct Scratch {
    /// One for each argument.
    pub(super) arguments: [Buffer; 4],
    /// For the value.
    pub(super) value: Buffer,
    /// For elements on the way from one to another.
    pub(super) staging: Buffer,
}

impl Scratch {
    /// Buffers without contents.
    pub(super) fn new() -> Self {
        const EMPTY: Buffer = Buffer([MaybeUninit::uninit(); BUFFER]);
        Scratch { arguments: [EMPTY; 4], value: EMPTY, staging: EMPTY }
    }
}

/// Where an operand of a tile lies once a loop can use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    /// The address of the first element.
    pub(super) address: usize,
    /// Bytes from one row to the next.
    pub(super) row: isize,
    /// True if each row is one element repeated.
    pub(super) repeated: bool,
    /// True if the rows follow each other without gaps, or all are the same repeated element.
    pub(super) packed: bool,
}

/// An operand that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument<'a> {
    /// The address of the first element.
    pub(super) address: usize,
    /// Bytes between elements; none at all for one element.
    pub(super) strides: &'a [isize],
    /// Bytes of an element.
    pub(super) size: usize,
    /// Bytes of an element that the loop gets.
    pub(super) wanted: usize,
    /// How the elements become what the loop wants.
    pub(super) convert: Option<Routine>,
    /// True if the elements are the same memory as the output and must be read first.
    pub(super) staged: bool,
}

impl<'a> Argument<'a> {
    /// No operand.
    pub(super) const NONE: Argument<'static> =
        Argument { address: 0, strides: &[], size: 1, wanted: 1, convert: None, staged: false };

    /// An operand in device memory, wanted as `wanted`.
    pub(super) fn new(operand: &'a Operand, wanted: DType) -> Self {
        Argument {
            address: operand.address as usize,
            strides: &operand.strides,
            size: operand.dtype.size(),
            wanted: wanted.size(),
            convert: cast::conversion(operand.dtype, wanted),
            staged: false,
        }
    }

    /// Bytes of the larger of the element's two forms.
    pub(super) fn largest(&self) -> usize {
        self.size.max(self.wanted)
    }

    /// The stride of an axis, zero for no axis.
    pub(super) fn stride(&self, axis: Option<usize>) -> isize {
        axis.map_or(0, |axis| stride(self.strides, axis))
    }

    /// True if a loop can use the elements along an axis as they are.
    #[inline(always)]
    pub(super) fn is_direct(&self, stride: isize, length: usize) -> bool {
        self.convert.is_none()
            && !self.staged
            && (length == 1 || stride == 0 || stride == self.size as isize)
    }

    /// Brings a tile into the form that a loop can use. With `by_rows`, the rows may lie apart
    /// or be one element repeated each; without, they are packed, or, if `repeatable`, one
    /// element altogether.
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
    /// Bytes between elements.
    pub(super) strides: &'a [isize],
    /// Bytes of an element.
    pub(super) size: usize,
    /// Bytes of an element of the loop's value.
    pub(super) given: usize,
    /// How the loop's values become elements.
    pub(super) convert: Option<Routine>,
}

impl<'a> Output<'a> {
    /// An operand in device memory that gets values of type `given`.
    pub(super) fn new(operand: &'a Operand, given: DType) -> Self {
        Output {
            address: operand.address as usize,
            strides: &operand.strides,
            size: operand.dtype.size(),
            given: given.size(),
            convert: cast::conversion(given, operand.dtype),
        }
    }

    /// Bytes of the larger of the element's two forms.
    pub(super) fn largest(&self) -> usize {
        self.size.max(self.given)
    }

    /// The stride of an axis, zero for no axis.
    pub(super) fn stride(&self, axis: Option<usize>) -> isize {
        axis.map_or(0, |axis| stride(self.strides, axis))
    }

    /// True if a loop can write the elements along an axis where they belong.
    #[inline(always)]
    pub(super) fn is_direct(&self, stride: isize, length: usize) -> bool {
        self.convert.is_none() && (length == 1 || stride == self.size as isize)
    }

    /// Stores packed values of a tile.
    ///
    /// # Safety
    /// The values at `from` and the elements at `to` must be valid and apart; converted, the
    /// tile must fit the buffer.
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
