//! Formulas: the iteration space in pieces whose intermediate values stay in a processor's cache.
//!
//! Each step of a formula is an element-wise operation on a piece. Values that later steps need, and that are not
//! outputs, are in a buffer of the thread. Once a step's values are no longer needed, a later step reuses their part of
//! the buffer.

mod compiled;
pub(super) mod loops;

use super::blocks::EXPENSIVE;
use super::elementwise;
use super::parallel::Workers;
use super::strided::{count, offset};
pub use compiled::{CompiledRow, RowFunction};
use hal::Result;
use hal::operation::{Formula, Fused, Input, Operand, Shape, Step};
use loops::{Buffer, Calls, Operands, Places, of_array};
use std::sync::OnceLock;

/// The fewest elements of a row for which loops are called directly.
const ROW: usize = 512;

/// The memory that a thread keeps from one piece of a formula to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    values: Buffer,
    calls: Option<Calls>,
}

/// Executes a formula.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(
    operation: &Fused,
    row: Option<&CompiledRow>,
    workers: &Workers<'_>,
) -> Result<()> {
    let Fused { formula, shape, .. } = operation;
    let elements = count(shape);
    if elements == 0 {
        return Ok(());
    }
    let places = Places::of(formula);
    let (axis, step) = pieces(shape, places.elements());
    let inner: usize = shape[axis..].iter().skip(1).product();
    let outer: usize = shape[..axis].iter().product();
    let rows = shape.get(axis).copied().unwrap_or(1);
    // A loop over values in the first-level cache takes about half of a cheap loop's time.
    let weight = |step: &Step| if step.function.is_long(step.compute) { 2 * EXPENSIVE } else { 1 };
    let work = match row {
        // Steps in registers cost little.
        Some(_) => elements.saturating_mul(formula.steps().len() + 16) / 16,
        None => elements.saturating_mul(formula.steps().iter().map(weight).sum::<usize>() + 1) / 2,
    };
    let per_row = rows.div_ceil(step);
    let failure = OnceLock::new();
    workers.split(outer * per_row, 1, work, &|range| {
        let mut memory = Memory::default();
        let steps = Steps::new(formula, &places, step * inner, row, &mut memory);
        let mut part = Part { operation, steps, axis };
        for number in range {
            let (before, from) = (number / per_row, number % per_row * step);
            // SAFETY: a part of the iteration, disjoint from the others, whose values fit into the buffer.
            if let Err(error) = unsafe { part.run(before, from, step.min(rows - from)) } {
                let _ = failure.set(error);
                return;
            }
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Returns the axis along which the space is cut, and the number of indices of a piece: it contains all
/// indices of the later axes, and about `elements` elements.
fn pieces(shape: &[usize], elements: usize) -> (usize, usize) {
    let mut behind = 1;
    for axis in (0..shape.len()).rev() {
        if behind * shape[axis] >= elements || axis == 0 {
            return (axis, (elements / behind).clamp(1, shape[axis]));
        }
        behind *= shape[axis];
    }
    (0, 1)
}

/// The work of one thread.
struct Part<'a> {
    operation: &'a Fused,
    steps: Steps<'a>,
    axis: usize,
}

impl Part<'_> {
    /// Computes the piece of `length` indices from `from` along the axis, at the index `before` of the
    /// earlier axes.
    ///
    /// # Safety
    /// See [`hal::operation`]; the piece fits into the buffer.
    unsafe fn run(&mut self, before: usize, from: usize, length: usize) -> Result<()> {
        let Fused { shape, inputs, outputs, .. } = self.operation;
        let axis = self.axis;
        let mut piece: Shape = shape.get(axis..).unwrap_or_default().iter().copied().collect();
        if let Some(first) = piece.first_mut() {
            *first = length;
        }
        let here = |operand: &Operand| {
            let strides = &operand.strides;
            let mut address = operand.address as usize;
            let mut rest = before;
            for outer in (0..axis).rev() {
                address = offset(address, rest % shape[outer], strides[outer]);
                rest /= shape[outer];
            }
            if let Some(&stride) = strides.get(axis) {
                address = offset(address, from, stride);
            }
            let strides = strides.get(axis..).unwrap_or_default();
            Operand { address: address as u64, dtype: operand.dtype, strides: strides.into() }
        };
        // SAFETY: passed on to the caller.
        unsafe { self.steps.run(&piece, inputs, here, |output| here(&outputs[output])) }
    }
}

/// The steps of a formula, and a buffer for the values of those that are not outputs.
pub(super) struct Steps<'a> {
    formula: &'a Formula,
    places: &'a Places,
    elements: usize,
    row: Option<&'a CompiledRow>,
    memory: &'a mut Memory,
}

impl<'a> Steps<'a> {
    /// Prepares for pieces of at most this many elements. `row` is a compiled loop of the formula.
    pub(super) fn new(
        formula: &'a Formula,
        places: &'a Places,
        elements: usize,
        row: Option<&'a CompiledRow>,
        memory: &'a mut Memory,
    ) -> Steps<'a> {
        Steps { formula, places, elements, row, memory }
    }

    /// Computes a piece. `here` returns the piece of an input, and `output` the piece of an output.
    ///
    /// # Safety
    /// See [`hal::operation`]; the piece has at most the number of elements.
    pub(super) unsafe fn run(
        &mut self,
        piece: &Shape,
        inputs: &[Input],
        here: impl Fn(&Operand) -> Operand,
        output: impl Fn(usize) -> Operand,
    ) -> Result<()> {
        let outputs = 0..self.formula.outputs().len();
        let operands = Operands {
            inputs: inputs.iter().map(|input| of_array(input, &here)).collect(),
            outputs: outputs.map(output).collect(),
        };
        if let Some(row) = self.row.filter(|row| row.fits(piece, &operands)) {
            // SAFETY: passed on to the caller; the loop is for the operands.
            unsafe { row.run(piece, &operands) };
            return Ok(());
        }
        let Steps { formula, places, elements, memory, .. } = self;
        let Memory { values, calls } = &mut **memory;
        let is_long = piece.last().is_some_and(|&columns| columns >= ROW);
        if is_long && !calls.as_ref().is_some_and(|it| it.are_for(&operands)) {
            *calls = Some(Calls::new(formula, places, &operands)?);
        }
        // SAFETY: passed on to the caller.
        unsafe {
            match calls {
                Some(calls) if is_long => calls.run(piece, &operands, values),
                _ => {
                    let (starts, bytes) = places.starts(*elements);
                    let base = values.room(bytes);
                    let place = |place: u8| base + starts[usize::from(place)];
                    one_by_one(formula, places, piece, &operands, place)
                }
            }
        }
    }
}

/// Computes a piece, one step after the other.
///
/// # Safety
/// See [`hal::operation`]; each place has room for the piece.
unsafe fn one_by_one(
    formula: &Formula,
    places: &Places,
    piece: &Shape,
    operands: &Operands,
    place: impl Fn(u8) -> usize,
) -> Result<()> {
    for position in 0..formula.steps().len() {
        let operation = operands.step(formula, places, position, piece, &place)?;
        // SAFETY: passed on to the caller.
        unsafe { elementwise::run(&operation, &Workers::new(&|| None))? };
    }
    Ok(())
}
