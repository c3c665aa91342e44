//! The operands and the loops of a formula's steps, called for parts of a row.

use crate::blocks::Routine;
use crate::copy::pointer;
use crate::elementwise::{self, RowLoop};
use crate::pairwise::Cell;
use crate::parallel::Workers;
use crate::strided::offset;
use hal::operation::{Elementwise, Formula, Input, Operand, Shape, Step, Strides, Term};
use hal::{DType, Result};
use smallvec::{SmallVec, smallvec};

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
pub(crate) struct Buffer(Vec<[u8; LINE]>);

impl Buffer {
    /// Returns the address of room for this many bytes, which replaces an earlier one.
    pub(crate) fn room(&mut self, bytes: usize) -> usize {
        self.0.reserve(bytes / LINE + 2);
        self.0.as_mut_ptr().expose_provenance().next_multiple_of(LINE)
    }
}

/// The places of the steps' values in the buffer of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The number of the place of each step; `None` for an output.
    of_step: SmallVec<[Option<u8>; 8]>,
    /// The size of an element of each place.
    sizes: SmallVec<[usize; 8]>,
}

impl Places {
    pub(crate) fn of(formula: &Formula) -> Places {
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
    pub(crate) fn elements(&self) -> usize {
        self.elements_within(BYTES).min(MOST)
    }

    /// Returns the number of elements whose values need at most this many bytes, if those are many.
    fn elements_within(&self, bytes: usize) -> usize {
        let each = self.sizes.iter().sum::<usize>().max(1);
        (bytes / each / FEWEST * FEWEST).max(FEWEST)
    }

    /// Returns the start of each place for pieces of this many elements, and the bytes of all.
    pub(super) fn starts(&self, elements: usize) -> (SmallVec<[usize; 8]>, usize) {
        let mut end = 0;
        let starts = self.sizes.iter().map(|size| {
            let start = end;
            end += (size * elements).next_multiple_of(LINE);
            start
        });
        (starts.collect(), end)
    }
}

/// The operands of a piece.
pub(super) struct Operands {
    pub(super) inputs: SmallVec<[Input; 4]>,
    pub(super) outputs: SmallVec<[Operand; 2]>,
}

impl Operands {
    /// Returns the operation of a step. `place` returns the address of a place.
    pub(super) fn step(
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
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Operand> {
        let inputs = self.inputs.iter().filter_map(|input| match input {
            Input::Array(operand) => Some(operand),
            Input::Scalar(_) => None,
        });
        inputs.chain(&self.outputs)
    }
}

/// Calls `each` with the addresses of the arrays, inputs first, for each row of a piece along its last axis.
pub(super) fn for_each_row(
    outer: &[usize],
    operands: &Operands,
    mut each: impl FnMut(&[usize]) -> Result<()>,
) -> Result<()> {
    let mut addresses: SmallVec<[usize; 8]> = SmallVec::new();
    for row in 0..outer.iter().product() {
        addresses.clear();
        addresses.extend(operands.arrays().map(|operand| {
            let (mut address, mut rest) = (operand.address as usize, row);
            for axis in (0..outer.len()).rev() {
                address = offset(address, rest % outer[axis], operand.strides[axis]);
                rest /= outer[axis];
            }
            address
        }));
        each(&addresses)?;
    }
    Ok(())
}

pub(super) fn last_stride(operand: &Operand) -> isize {
    operand.strides.last().copied().unwrap_or(0)
}

/// Returns the number of the output that is the value of a step.
fn output_of(formula: &Formula, position: usize) -> usize {
    formula.outputs().position(|output| output == position).unwrap_or_default()
}

/// Returns an input with another place of its array.
pub(super) fn of_array(input: &Input, place: impl Fn(&Operand) -> Operand) -> Input {
    match input {
        Input::Array(operand) => Input::Array(place(operand)),
        Input::Scalar(scalar) => Input::Scalar(*scalar),
    }
}

/// Returns the place of elements that are contiguous in C order.
pub(crate) fn contiguous(address: usize, dtype: DType, shape: &[usize]) -> Operand {
    let mut strides = Strides::from_elem(0, shape.len());
    let mut next = dtype.size() as isize;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next *= extent as isize;
    }
    Operand { address: address as u64, dtype, strides }
}

/// The bytes of all intermediate values of the loops that stay in the first-level cache, which also holds the same part
/// of each array.
const FIRST_LEVEL: usize = 32 << 10;

/// The loops of a formula's steps along the last axis. They compute fewer elements at a time, whose values stay in the
/// first-level cache.
#[derive(Debug)]
pub(super) struct Calls {
    calls: SmallVec<[Call; 4]>,
    /// The last stride of each array: of the inputs, then of the outputs.
    strides: SmallVec<[isize; 8]>,
    /// The number of elements at a time.
    elements: usize,
    /// The start of each place, and the bytes of all.
    starts: SmallVec<[usize; 8]>,
    bytes: usize,
}

/// A loop, or an operation that has to copy an operand.
#[derive(Debug)]
struct Call {
    body: Body,
    arguments: SmallVec<[Source; 4]>,
    value: Source,
    /// True if there is one element, which is repeated.
    is_single: bool,
}

#[derive(Debug)]
enum Body {
    Loop {
        routine: Routine,
        cells: [Cell; 4],
        repeated: u32,
    },
    /// The addresses change with each part of the row.
    Operation(Elementwise),
}

/// The location of an operand of a step.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The array with this number.
    Array(usize),
    /// The values in a place.
    Place(usize),
    /// The argument's own cell.
    Cell,
}

impl Calls {
    pub(super) fn new(formula: &Formula, places: &Places, operands: &Operands) -> Result<Calls> {
        let row = |operand: &Operand| {
            let strides = Strides::from_elem(last_stride(operand), 1);
            Operand { address: operand.address, dtype: operand.dtype, strides }
        };
        let rows = Operands {
            inputs: operands.inputs.iter().map(|input| of_array(input, row)).collect(),
            outputs: operands.outputs.iter().map(row).collect(),
        };
        let inputs = operands.arrays().count() - operands.outputs.len();
        let value = |position: usize| match places.of_step[position] {
            Some(place) => Source::Place(place.into()),
            None => Source::Array(inputs + output_of(formula, position)),
        };
        let source = |term: &Term| match *term {
            Term::Step(earlier) => value(earlier.into()),
            Term::Input(input) => match &operands.inputs[usize::from(input)] {
                Input::Scalar(_) => Source::Cell,
                Input::Array(_) => {
                    let before = &operands.inputs[..usize::from(input)];
                    Source::Array(before.iter().filter(|it| matches!(it, Input::Array(_))).count())
                }
            },
        };
        let own = places.sizes.len();
        let mut all = places.clone();
        let mut converted = |number: usize, size: usize| {
            all.sizes.resize(all.sizes.len().max(own + number + 1), 0);
            all.sizes[own + number] = all.sizes[own + number].max(size);
            Source::Place(own + number)
        };
        let mut calls: SmallVec<[Call; 4]> = SmallVec::new();
        let piece = Shape::from_elem(FEWEST, 1);
        for (position, step) in formula.steps().iter().enumerate() {
            // No array has the address of a place.
            let place = |place: u8| usize::MAX - usize::from(place);
            let operation = rows.step(formula, places, position, &piece, place)?;
            let mut arguments: SmallVec<_> = step.arguments.iter().map(source).collect();
            let mut value = value(position);
            let Some(found) = RowLoop::of(&operation)? else {
                let body = Body::Operation(operation);
                calls.push(Call { body, arguments, value, is_single: false });
                continue;
            };
            let RowLoop { routine, cells, repeated, conversions } = found;
            for (number, argument) in arguments.iter_mut().enumerate() {
                if let Some((routine, size)) = conversions[number] {
                    let to = converted(number, size);
                    let is_single = repeated >> number & 1 == 1;
                    calls.push(Call::conversion(routine, *argument, to, is_single));
                    *argument = to;
                }
            }
            let last = conversions[4].map(|(routine, size)| {
                let from = converted(4, size);
                Call::conversion(routine, from, std::mem::replace(&mut value, from), false)
            });
            let body = Body::Loop { routine, cells, repeated };
            calls.push(Call { body, arguments, value, is_single: false });
            calls.extend(last);
        }
        let is_loop = |call: &Call| matches!(call.body, Body::Loop { .. });
        let elements = match calls.iter().all(is_loop) {
            true => all.elements_within(FIRST_LEVEL).min(MOST),
            false => all.elements(),
        };
        let (starts, bytes) = all.starts(elements);
        let strides: SmallVec<[isize; 8]> = operands.arrays().map(last_stride).collect();
        Ok(Calls { calls, strides, elements, starts, bytes })
    }

    /// Returns true if the operands have the strides that these loops were made for.
    pub(super) fn are_for(&self, operands: &Operands) -> bool {
        operands.arrays().map(last_stride).eq(self.strides.iter().copied())
    }

    /// Computes a piece.
    ///
    /// # Safety
    /// See [`hal::operation`]; the loops are for the operands.
    pub(super) unsafe fn run(
        &mut self,
        piece: &Shape,
        operands: &Operands,
        buffer: &mut Buffer,
    ) -> Result<()> {
        let Some((&columns, outer)) = piece.split_last() else { return Ok(()) };
        let base = buffer.room(self.bytes);
        for_each_row(outer, operands, |addresses| {
            for start in (0..columns).step_by(self.elements) {
                let length = self.elements.min(columns - start);
                // SAFETY: passed on to the caller, for a part of the piece.
                unsafe { self.part(addresses, start, length, base)? };
            }
            Ok(())
        })
    }

    /// Computes the elements from `start` of rows at these addresses; `base` is the address of the places.
    ///
    /// # Safety
    /// See [`Calls::run`].
    unsafe fn part(
        &mut self,
        rows: &[usize],
        start: usize,
        length: usize,
        base: usize,
    ) -> Result<()> {
        let Calls { calls, strides, starts, .. } = self;
        let address = |source: Source| match source {
            Source::Array(array) => offset(rows[array], start, strides[array]),
            Source::Place(place) => base + starts[place],
            Source::Cell => 0,
        };
        for call in calls {
            let value = address(call.value);
            let length = if call.is_single { 1 } else { length };
            match &mut call.body {
                Body::Loop { routine, cells, repeated } => {
                    let argument = |at: usize| match call.arguments.get(at) {
                        None => std::ptr::null(),
                        Some(Source::Cell) => (&raw const cells[at]).cast(),
                        Some(&source) => pointer(address(source)).cast_const(),
                    };
                    let arguments = std::array::from_fn(argument);
                    // SAFETY: contiguous or repeated elements of the loop's types. An argument is the value's memory
                    // only if the loop allows it.
                    unsafe { routine.call(pointer(value), &arguments, *repeated, length) };
                }
                Body::Operation(operation) => {
                    operation.shape[0] = length;
                    operation.output.address = value as u64;
                    for (input, &source) in operation.inputs.iter_mut().zip(&call.arguments) {
                        if let Input::Array(operand) = input {
                            operand.address = address(source) as u64;
                        }
                    }
                    // SAFETY: passed on to the caller.
                    unsafe { elementwise::run(operation, &Workers::new(&|| None))? };
                }
            }
        }
        Ok(())
    }
}

impl Call {
    fn conversion(routine: Routine, from: Source, to: Source, is_single: bool) -> Call {
        let body = Body::Loop { routine, cells: [Cell([0; 16]); 4], repeated: 0 };
        Call { body, arguments: smallvec![from], value: to, is_single }
    }
}
