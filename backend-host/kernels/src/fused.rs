//! Formulas: the iteration space in pieces whose intermediate values stay in a processor's cache.
//!
//! Each step of a formula is an element-wise operation on a piece. Values that later steps need, and that are not
//! outputs, are in a buffer of the thread, where a step that is no longer needed leaves its place to a later one.

use super::elementwise;
use super::parallel::Workers;
use super::strided::{count, offset};
use hal::Result;
use hal::operation::{Elementwise, Formula, Fused, Input, Operand, Shape, Step, Strides, Term};
use smallvec::SmallVec;
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

/// The places of the steps' values in the buffer of a thread.
struct Places {
    /// The number of the place of each step; `None` for an output.
    of_step: SmallVec<[Option<u8>; 8]>,
    /// The size of an element of each place.
    sizes: SmallVec<[usize; 8]>,
}

impl Places {
    fn of(formula: &Formula) -> Places {
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
    fn elements(&self) -> usize {
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
        let (starts, bytes) = places.starts(step * inner);
        let mut memory: Vec<[u8; LINE]> = Vec::with_capacity(bytes / LINE + 1);
        let base = memory.as_mut_ptr().expose_provenance();
        let base = base.next_multiple_of(LINE);
        let mut part = Part { operation, places: &places, starts, base, axis, shape: Shape::new() };
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
    places: &'a Places,
    starts: SmallVec<[usize; 8]>,
    base: usize,
    axis: usize,
    /// The shape of the piece.
    shape: Shape,
}

impl Part<'_> {
    /// Computes the piece of `length` indices from `from` along the axis, at the index `before` of the axes before.
    ///
    /// # Safety
    /// See [`hal::operation`]; the piece fits into the buffer.
    unsafe fn run(&mut self, before: usize, from: usize, length: usize) -> Result<()> {
        let Fused { formula, shape, inputs, outputs } = self.operation;
        let axis = self.axis;
        self.shape = shape.get(axis..).unwrap_or_default().iter().copied().collect();
        if let Some(first) = self.shape.first_mut() {
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
        for (position, step) in formula.steps().iter().enumerate() {
            let value = |position: usize| match self.places.of_step[position] {
                Some(place) => self.intermediate(usize::from(place), &formula.steps()[position]),
                None => {
                    let output = formula.outputs().position(|output| output == position);
                    here(&outputs[output.unwrap_or_default()])
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
                shape: self.shape.clone(),
                inputs: arguments.map(argument).collect::<Result<_>>()?,
                output: value(position),
            };
            // SAFETY: passed on to the caller.
            unsafe { elementwise::run(&operation, &Workers::new(&|| None))? };
        }
        Ok(())
    }

    /// Returns the values of a step in the buffer, in C order.
    fn intermediate(&self, place: usize, step: &Step) -> Operand {
        let mut strides = Strides::from_elem(0, self.shape.len());
        let mut next = step.dtype.size() as isize;
        for (stride, &extent) in strides.iter_mut().zip(&self.shape).rev() {
            *stride = next;
            next *= extent as isize;
        }
        let address = (self.base + self.starts[place]) as u64;
        Operand { address, dtype: step.dtype, strides }
    }
}
