//! Formulas: the iteration space in pieces whose intermediate values stay in a processor's cache.
//!
//! Each step of a formula is an element-wise operation on a piece. Values that later steps need, and that are not
//! outputs, are in a buffer of the thread, where a step that is no longer needed leaves its place to a later one.

use super::elementwise;
use super::parallel::Workers;
use super::strided::{count, offset};
use hal::operation::{Elementwise, Formula, Fused, Input, Operand, Shape, Step, Strides, Term};
use hal::{DType, Result};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The bytes of all intermediate values of a piece: half of a common second-level cache, which also holds the
/// piece of each array.
const BYTES: usize = 128 << 10;

/// The largest number of elements of a piece. More would not amortise the beginning of a step any further.
const MOST: usize = 16 << 10;

/// The fewest elements of a piece.
const FEWEST: usize = 256;

/// The alignment of the values of a step: a line of a cache.
const LINE: usize = 64;

/// Memory of a thread that begins with a line of a cache.
#[derive(Debug, Default)]
pub(super) struct Buffer(Vec<[u8; LINE]>);

impl Buffer {
    /// Returns the address of room for this many bytes, which replaces an earlier one.
    pub(super) fn room(&mut self, bytes: usize) -> usize {
        self.0.reserve(bytes / LINE + 2);
        self.0.as_mut_ptr().expose_provenance().next_multiple_of(LINE)
    }
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
        let bytes = self.sizes.iter().sum::<usize>().max(1);
        (BYTES / bytes).clamp(FEWEST, MOST)
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
    let (rows, work) = (shape.get(axis).copied().unwrap_or(1), elements * formula.steps().len());
    let per_row = rows.div_ceil(step);
    let failure = OnceLock::new();
    workers.split(outer * per_row, 1, work, &|range| {
        let mut buffer = Buffer::default();
        let steps = Steps::new(formula, &places, step * inner, &mut buffer);
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

/// Returns the axis along which the space is cut, and the number of indices of a piece: it contains all indices of
/// the axes behind, and about `elements` elements.
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
    /// Computes the piece of `length` indices from `from` along the axis, at the index `before` of the axes before.
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
    starts: SmallVec<[usize; 8]>,
    base: usize,
    memory: PhantomData<&'a mut Buffer>,
}

impl<'a> Steps<'a> {
    /// Prepares the buffer for pieces of this many elements.
    pub(super) fn new(
        formula: &'a Formula,
        places: &'a Places,
        elements: usize,
        buffer: &'a mut Buffer,
    ) -> Steps<'a> {
        let (starts, bytes) = places.starts(elements);
        Steps { formula, places, starts, base: buffer.room(bytes), memory: PhantomData }
    }

    /// Computes a piece. `here` returns the piece of an input, and `output` that of an output.
    ///
    /// # Safety
    /// See [`hal::operation`]; the piece fits into the buffer.
    pub(super) unsafe fn run(
        &mut self,
        piece: &Shape,
        inputs: &[Input],
        here: impl Fn(&Operand) -> Operand,
        output: impl Fn(usize) -> Operand,
    ) -> Result<()> {
        let steps = self.formula.steps();
        for (position, step) in steps.iter().enumerate() {
            let value = |position: usize| match self.places.of_step[position] {
                Some(place) => {
                    let address = self.base + self.starts[usize::from(place)];
                    contiguous(address, steps[position].dtype, piece)
                }
                None => {
                    let found = self.formula.outputs().position(|output| output == position);
                    output(found.unwrap_or_default())
                }
            };
            let argument = |(at, &term): (usize, &Term)| {
                Ok(match term {
                    Term::Step(earlier) => Input::Array(value(earlier.into())),
                    Term::Input(input) => match &inputs[usize::from(input)] {
                        Input::Array(operand) => Input::Array(here(operand)),
                        Input::Scalar(scalar) => {
                            Input::Scalar(step.function.take_scalar(at, step.compute, scalar)?)
                        }
                    },
                })
            };
            let arguments = step.arguments.iter().enumerate();
            let operation = Elementwise {
                function: step.function,
                compute: step.compute,
                shape: piece.clone(),
                inputs: arguments.map(argument).collect::<Result<_>>()?,
                output: value(position),
            };
            // SAFETY: passed on to the caller.
            unsafe { elementwise::run(&operation, &Workers::new(&|| None))? };
        }
        Ok(())
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
