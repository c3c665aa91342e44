//! The values of a formula that a reduction reads. They are computed in pieces that stay in a processor's cache.

use super::copy::Place;
use super::fused::loops::{Buffer, Places, contiguous};
use super::fused::{CompiledRow, Memory, Steps};
use super::strided::{offset, stride};
use hal::operation::{FormulaValues, Operand, Shape, Strides};
use hal::{Error, Result};
use smallvec::smallvec;
use std::sync::OnceLock;

/// The values of a formula, and the first error of their computation.
#[derive(Clone, Debug)]
pub(super) struct Values<'a> {
    description: &'a FormulaValues,
    places: Places,
    /// A compiled loop of the formula.
    row: Option<&'a CompiledRow>,
    /// True if each array is contiguous, or one element.
    is_flat: bool,
    size: usize,
    count: usize,
    failure: OnceLock<Error>,
}

/// A thread's memory for values, with the ones that it computed last.
#[derive(Debug, Default)]
pub(super) struct Window {
    values: Buffer,
    /// For the values of steps.
    steps: Memory,
    /// The address and the number of the first value, and the number of values.
    base: usize,
    first: usize,
    length: usize,
    /// The number of the value after those that were read last.
    next: usize,
}

/// Returns true if each array of a formula is contiguous, or one element.
pub(super) fn is_flat(description: &FormulaValues) -> bool {
    let shape = &description.shape;
    description.arrays().all(|array| {
        let is_one =
            (0..shape.len()).all(|axis| shape[axis] == 1 || stride(&array.strides, axis) == 0);
        is_one || matches!(array.strides[..], [stride] if stride == array.dtype.size() as isize)
    })
}

impl<'a> Values<'a> {
    pub(super) fn new(description: &'a FormulaValues, row: Option<&'a CompiledRow>) -> Values<'a> {
        let FormulaValues { formula, values, shape, .. } = description;
        Values {
            description,
            places: Places::of(formula),
            row,
            is_flat: is_flat(description),
            size: values.dtype.size(),
            count: shape.iter().product(),
            failure: OnceLock::new(),
        }
    }

    /// Returns true if tiles whose columns are `distance` bytes apart can be computed.
    pub(super) fn has_columns(&self, distance: isize) -> bool {
        self.is_flat || distance == self.size as isize
    }

    /// Returns the error of a value that was not computed.
    pub(super) fn failure(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Computes a tile, and returns the address of its values, which are contiguous. `other` is memory for a tile whose
    /// values do not follow each other.
    ///
    /// # Safety
    /// See [`hal::operation`]; the tile is a part of the values, and fits into `other` unless its values are contiguous.
    pub(super) unsafe fn load(
        &self,
        from: Place,
        (rows, columns): (usize, usize),
        window: &mut Window,
        other: usize,
    ) -> usize {
        let number = from.address / self.size;
        let computed = if from.is_packed(rows, columns, self.size) {
            // SAFETY: passed on to the caller.
            return unsafe { self.read(number, rows * columns, window) };
        } else if self.is_flat {
            let shape = smallvec![rows, columns];
            // SAFETY: passed on to the caller.
            unsafe { self.strided(from, &shape, other, &mut window.steps) }
        } else {
            (0..rows).try_for_each(|row| {
                let number = offset(from.address, row, from.row) / self.size;
                // SAFETY: passed on to the caller.
                unsafe {
                    let target = other + row * columns * self.size;
                    self.compute(number, columns, target, &mut window.steps)
                }
            })
        };
        self.note(computed);
        other
    }

    fn note(&self, computed: Result<()>) {
        if let Err(error) = computed {
            let _ = self.failure.set(error);
        }
    }

    /// Returns the address of some values, which are computed unless the window has them. If values are read one after
    /// the other, more are computed at a time.
    ///
    /// # Safety
    /// See [`hal::operation`]; the values exist.
    unsafe fn read(&self, number: usize, length: usize, window: &mut Window) -> usize {
        let is_next = number == window.next;
        window.next = number + length;
        if number >= window.first && number + length <= window.first + window.length {
            return window.base + (number - window.first) * self.size;
        }
        let more = if is_next { self.places.elements() } else { 0 };
        let wanted = length.max(more).min(self.count - number);
        let base = window.values.room(wanted * self.size);
        (window.base, window.first, window.length) = (base, number, wanted);
        // SAFETY: passed on to the caller; the memory has room for the values.
        self.note(unsafe { self.compute(number, wanted, base, &mut window.steps) });
        base
    }

    /// Computes values that follow each other.
    ///
    /// # Safety
    /// See [`hal::operation`]; the values exist, and there is memory for them.
    unsafe fn compute(
        &self,
        number: usize,
        length: usize,
        to: usize,
        memory: &mut Memory,
    ) -> Result<()> {
        let size = self.size as isize;
        if self.is_flat {
            let from = Place { address: number * self.size, row: 0, column: size };
            // SAFETY: passed on to the caller.
            return unsafe { self.strided(from, &smallvec![length], to, memory) };
        }
        let FormulaValues { formula, values, shape, inputs, .. } = self.description;
        let dtype = values.dtype;
        let mut steps = Steps::new(formula, &self.places, length, self.row, memory);
        let (mut at, end) = (number, number + length);
        while at < end {
            // The largest box of the inputs' axes that begins here.
            let mut behind = 1;
            let mut outer = (shape.len() - 1, 1);
            for axis in (0..shape.len()).rev() {
                if !at.is_multiple_of(behind) || behind > end - at {
                    break;
                }
                outer = (axis, behind);
                behind *= shape[axis];
            }
            let (axis, behind) = outer;
            let extent = (shape[axis] - at / behind % shape[axis]).min((end - at) / behind);
            let mut piece: Shape = shape[axis..].into();
            piece[0] = extent;
            let here = |operand: &Operand| {
                let (mut address, mut rest) = (operand.address as usize, at);
                for axis in (0..shape.len()).rev() {
                    address = offset(address, rest % shape[axis], operand.strides[axis]);
                    rest /= shape[axis];
                }
                let strides = operand.strides[axis..].into();
                Operand { address: address as u64, dtype: operand.dtype, strides }
            };
            let target = contiguous(to + (at - number) * self.size, dtype, &piece);
            // SAFETY: passed on to the caller.
            unsafe { steps.run(&piece, inputs, here, |_| target.clone())? };
            at += extent * behind;
        }
        Ok(())
    }

    /// Computes the values at a place, of one or two axes, from flat inputs.
    ///
    /// # Safety
    /// See [`hal::operation`]; the values exist, and there is memory for them.
    unsafe fn strided(
        &self,
        from: Place,
        piece: &Shape,
        to: usize,
        memory: &mut Memory,
    ) -> Result<()> {
        let FormulaValues { formula, values, inputs, .. } = self.description;
        let size = self.size as isize;
        let steps: Strides = match piece.len() {
            1 => smallvec![from.column / size],
            _ => smallvec![from.row / size, from.column / size],
        };
        let here = |operand: &Operand| {
            let step = operand.strides.iter().copied().find(|&stride| stride != 0).unwrap_or(0);
            Operand {
                address: offset(operand.address as usize, from.address / self.size, step) as u64,
                dtype: operand.dtype,
                strides: steps.iter().map(|along| along * step).collect(),
            }
        };
        let target = contiguous(to, values.dtype, piece);
        let mut steps = Steps::new(formula, &self.places, piece.iter().product(), self.row, memory);
        // SAFETY: passed on to the caller.
        unsafe { steps.run(piece, inputs, here, |_| target.clone()) }
    }
}
