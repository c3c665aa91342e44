//! Running sums, products, minima and maxima along an axis.

use super::blocks::unsupported;
use super::combine::{self, Combiner, Running};
use super::copy::{Place, copy_tile, pointer};
use super::pairwise::Cell;
use super::parallel::Workers;
use super::strided::{count, for_each, offset, stride, widest, without};
use super::tile::{BUFFER, InputOperand, Output, Scratch};
use hal::operation::{Scan, Shape};
use hal::{DType, Result};

/// The number of lines that run together.
const LINES: usize = 64;

/// A prepared scan.
struct Scanner<'a> {
    combiner: Combiner,
    input: InputOperand<'a>,
    output: Output<'a>,
    axis: usize,
    /// The axis of the lines that run together.
    columns: Option<usize>,
    /// The initial value of an exclusive scan.
    initial: Option<Cell>,
    size: usize,
}

/// Executes a scan.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Scan, workers: &Workers<'_>) -> Result<()> {
    let Scan { reduction, compute, shape, axis, exclusive, initial, input, output } = operation;
    let combiner = combine::combiner(*reduction, *compute)
        .ok_or_else(|| unsupported(format!("a scan by {reduction:?} of dtype {compute}")))?;
    if count(shape) == 0 {
        return Ok(());
    }
    let mut cell = Cell([0; 16]);
    if *exclusive {
        cell.0[..compute.size()].copy_from_slice(initial.bytes());
    }
    let input = InputOperand::new(input, *compute);
    let distance = |axis: usize| stride(input.strides, axis).unsigned_abs();
    // Neighbours in memory run together, unless the scanned axis has the smallest stride.
    let columns = (0..shape.len())
        .rev()
        .filter(|&other| other != *axis && shape[other] > 1)
        .min_by_key(|&other| distance(other))
        .filter(|&other| distance(other) < distance(*axis));
    let scanner = Scanner {
        combiner,
        input,
        output: Output::new(output, *compute),
        axis: *axis,
        columns,
        initial: exclusive.then_some(cell),
        size: DType::size(*compute),
    };
    let lines = without(shape, &[Some(*axis)]);
    let along = widest(&lines);
    let granularity = if columns == Some(along) { LINES } else { 1 };
    let length = lines.get(along).copied().unwrap_or(1);
    workers.split(length, granularity, count(shape), &|range| {
        let mut part = shape.clone();
        if along != *axis
            && let Some(length) = part.get_mut(along)
        {
            *length = range.len();
        }
        let start = range.start;
        let input = offset(scanner.input.address, start, scanner.input.stride(Some(along)));
        let output = offset(scanner.output.address, start, scanner.output.stride(Some(along)));
        // SAFETY: some of the lines, disjoint from the others.
        unsafe { scanner.lines(&part, [input, output]) };
    });
    Ok(())
}

impl Scanner<'_> {
    /// Scans all lines of a shape.
    ///
    /// # Safety
    /// See [`hal::operation`].
    unsafe fn lines(&self, shape: &Shape, addresses: [usize; 2]) {
        let rows = shape.get(self.axis).copied().unwrap_or(1);
        let columns = self.columns.map_or(1, |axis| shape[axis]);
        let largest = self.input.largest().max(self.output.largest());
        let width = columns.min(LINES);
        let height = (BUFFER / largest / width).min(1024);
        let outer =
            without(shape, &[Some(self.axis).filter(|&axis| axis < shape.len()), self.columns]);
        let mut scratch = Scratch::new();
        for_each(&outer, &[self.input.strides, self.output.strides], addresses, |start| {
            for column in (0..columns).step_by(width) {
                let lines = width.min(columns - column);
                let mut carry = [Cell([0; 16]); LINES];
                let carry = carry.as_mut_ptr().expose_provenance();
                for row in (0..rows).step_by(height) {
                    let extent = (height.min(rows - row), lines);
                    let place = |address, along: isize, across: isize| Place {
                        address: offset(offset(address, row, along), column, across),
                        row: along,
                        column: across,
                    };
                    let axis = Some(self.axis);
                    let from =
                        place(start[0], self.input.stride(axis), self.input.stride(self.columns));
                    let to =
                        place(start[1], self.output.stride(axis), self.output.stride(self.columns));
                    // SAFETY: a tile of the operation, which fits the buffers; `carry` holds the values
                    // before it.
                    unsafe { self.tile(from, to, extent, row == 0, carry, &mut scratch) };
                }
            }
        });
    }

    /// # Safety
    /// See [`hal::operation`]; the tile must fit the buffers, and `carry` must have one element for each
    /// column.
    unsafe fn tile(
        &self,
        from: Place,
        to: Place,
        (rows, columns): (usize, usize),
        first: bool,
        carry: usize,
        scratch: &mut Scratch,
    ) {
        let Scratch { arguments: [buffer, ..], value, staging, .. } = scratch;
        // SAFETY: passed on to the caller.
        let ready =
            unsafe { self.input.load(from, (rows, columns), false, false, buffer, staging) };
        let direct = self.output.convert.is_none() && to.is_packed(rows, columns, self.output.size);
        let target = if direct { to.address } else { value.address() };
        let carried = Place::packed(carry, columns, self.size);
        let mut skipped = 0;
        match self.initial {
            Some(initial) if first => {
                let address = (&raw const initial).expose_provenance();
                let from = Place { address, row: 0, column: 0 };
                // SAFETY: one element for each column.
                unsafe { copy_tile(self.size, from, carried, 1, columns) };
            }
            None if first => {
                // The first element is its own running value.
                let row = Place::packed(ready.address, columns, self.size);
                let top = Place::packed(target, columns, self.size);
                // SAFETY: a row of the tile; nothing has to be done if it is the same memory.
                unsafe {
                    copy_tile(self.size, row, carried, 1, columns);
                    if ready.address != target {
                        copy_tile(self.size, row, top, 1, columns);
                    }
                }
                skipped = columns * self.size;
            }
            _ => {}
        }
        let running = Running {
            source: pointer(ready.address).wrapping_add(skipped),
            target: pointer(target).wrapping_add(skipped),
            carry: pointer(carry),
            rows: rows - usize::from(skipped > 0),
            columns,
            exclusive: self.initial.is_some(),
        };
        // SAFETY: packed elements and values, which are the same memory or do not overlap.
        unsafe { (self.combiner.running)(running) };
        if !direct {
            // SAFETY: the values of the tile, packed.
            unsafe { self.output.store(target, to, (rows, columns), staging) };
        }
    }
}
