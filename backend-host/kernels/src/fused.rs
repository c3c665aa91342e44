//! Formulas: the iteration space in pieces whose intermediate values stay in a processor's cache.
//!
//! Each step of a formula is an element-wise operation on a piece. Values that later steps need, and that are not
//! outputs, are in a buffer of the thread. Once a step's values are no longer needed, a later step reuses their part of
//! the buffer.

mod loops;

use super::elementwise;
use super::kernel::EXPENSIVE;
use super::parallel::Workers;
use super::strided::{count, offset};
use hal::operation::{Elementwise, Formula, Fused, Input, Operand, Shape, Step, Strides, Term};
use hal::{DType, Result};
use loops::Calls;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// The bytes of all intermediate values of a piece: half of a common second-level cache, which also holds the
/// piece of each array.
const BYTES: usize = 128 << 10;

/// The largest number of elements of a piece. More would not amortise the beginning of a step any further.
const MOST: usize = 16 << 10;

/// The fewest elements of a piece.
const FEWEST: usize = 256;

/// The fewest elements of a row for which loops are called directly.
const ROW: usize = 512;

/// The alignment of the values of a step: a cache line.
const LINE: usize = 64;

/// Memory of a thread, which begins at a cache line.
#[derive(Debug, Default)]
pub(super) struct Buffer(Vec<[u8; LINE]>);

impl Buffer {
    /// Returns the address of memory for this many bytes, which replaces the memory of an earlier call.
    pub(super) fn room(&mut self, bytes: usize) -> usize {
        self.0.reserve(bytes / LINE + 2);
        self.0.as_mut_ptr().expose_provenance().next_multiple_of(LINE)
    }
}

/// The memory that a thread keeps from one piece of a formula to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    values: Buffer,
    calls: Option<Calls>,
}

/// The places of the steps' values in the buffer of a thread.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The number of the place of each step; `None` for an output.
    of_step: SmallVec<[Option<u8>; 8]>,
    /// The size of an element of each place.
    sizes: SmallVec<[usize; 8]>,
}

impl Places {
    pub(super) fn of(formula: &Formula) -> Places {
        let steps = formula.steps();
        let last_use = |position: usize| {
            let uses = |step: &Step| step.arguments.contains(&Term::Step(position as u8));
            steps.iter().rposition(uses).unwrap_or(position)
        };
        let mut places = Places { of_step: SmallVec::new(), sizes: SmallVec::new() };
        // The step after which each place is free.
        let mut busy: SmallVec<[usize; 8]> = SmallVec::new();
        for (position, step) in steps.iter().enumerate() {
            if formula.outputs().any(|output| output == position) {
                places.of_step.push(None);
                continue;
            }
            let size = step.dtype.size();
            let place = busy.iter().position(|&until| until < position).unwrap_or(busy.len());
            if place == busy.len() {
                busy.push(0);
                places.sizes.push(0);
            }
            busy[place] = last_use(position);
            places.sizes[place] = places.sizes[place].max(size);
            places.of_step.push(Some(place as u8));
        }
        places
    }

    /// Returns the number of elements of a piece.
    pub(super) fn elements(&self) -> usize {
        self.elements_within(BYTES).min(MOST)
    }

    /// Returns the number of elements whose values need at most this many bytes, but at least [`FEWEST`].
    fn elements_within(&self, bytes: usize) -> usize {
        let each = self.sizes.iter().sum::<usize>().max(1);
        (bytes / each / FEWEST * FEWEST).max(FEWEST)
    }

    /// Returns the start of each place for pieces of this many elements, and the bytes of all.
    fn starts(&self, elements: usize) -> (SmallVec<[usize; 8]>, usize) {
        let mut end = 0;
        let starts = self.sizes.iter().map(|size| {
            let start = end;
            end += (size * elements).next_multiple_of(LINE);
            start
        });
        (starts.collect(), end)
    }
}

/// Executes a formula.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Fused, workers: &Workers<'_>) -> Result<()> {
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
    let work = elements.saturating_mul(formula.steps().iter().map(weight).sum::<usize>() + 1) / 2;
    let per_row = rows.div_ceil(step);
    let failure = OnceLock::new();
    workers.split(outer * per_row, 1, work, &|range| {
        let mut memory = Memory::default();
        let steps = Steps::new(formula, &places, step * inner, &mut memory);
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
    memory: &'a mut Memory,
}

impl<'a> Steps<'a> {
    /// Prepares for pieces of at most this many elements.
    pub(super) fn new(
        formula: &'a Formula,
        places: &'a Places,
        elements: usize,
        memory: &'a mut Memory,
    ) -> Steps<'a> {
        Steps { formula, places, elements, memory }
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
        let Steps { formula, places, elements, memory } = self;
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

/// The operands of a piece.
struct Operands {
    inputs: SmallVec<[Input; 4]>,
    outputs: SmallVec<[Operand; 2]>,
}

impl Operands {
    /// Returns the operation of a step. `place` returns the address of a place.
    fn step(
        &self,
        formula: &Formula,
        places: &Places,
        position: usize,
        piece: &Shape,
        place: impl Fn(u8) -> usize,
    ) -> Result<Elementwise> {
        let steps = formula.steps();
        let step = &steps[position];
        let value = |position: usize| match places.of_step[position] {
            Some(number) => contiguous(place(number), steps[position].dtype, piece),
            None => self.outputs[output_of(formula, position)].clone(),
        };
        let argument = |(at, &term): (usize, &Term)| {
            Ok(match term {
                Term::Step(earlier) => Input::Array(value(earlier.into())),
                Term::Input(input) => match &self.inputs[usize::from(input)] {
                    Input::Array(operand) => Input::Array(operand.clone()),
                    Input::Scalar(scalar) => {
                        Input::Scalar(step.function.take_scalar(at, step.compute, scalar)?)
                    }
                },
            })
        };
        Ok(Elementwise {
            function: step.function,
            compute: step.compute,
            shape: piece.clone(),
            inputs: step.arguments.iter().enumerate().map(argument).collect::<Result<_>>()?,
            output: value(position),
        })
    }

    /// Returns the arrays among the operands, inputs first.
    fn arrays(&self) -> impl Iterator<Item = &Operand> {
        let inputs = self.inputs.iter().filter_map(|input| match input {
            Input::Array(operand) => Some(operand),
            Input::Scalar(_) => None,
        });
        inputs.chain(&self.outputs)
    }
}

/// Returns the number of the output that is the value of a step.
fn output_of(formula: &Formula, position: usize) -> usize {
    formula.outputs().position(|output| output == position).unwrap_or_default()
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

/// Returns the input with its array at another place.
fn of_array(input: &Input, place: impl Fn(&Operand) -> Operand) -> Input {
    match input {
        Input::Array(operand) => Input::Array(place(operand)),
        Input::Scalar(scalar) => Input::Scalar(*scalar),
    }
}

/// Returns the place of elements that are contiguous in C order.
pub(super) fn contiguous(address: usize, dtype: DType, shape: &[usize]) -> Operand {
    let mut strides = Strides::from_elem(0, shape.len());
    let mut next = dtype.size() as isize;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next *= extent as isize;
    }
    Operand { address: address as u64, dtype, strides }
}
