//! Element-wise operations: tiles of the iteration space pass through a loop over contiguous elements.
//!
//! Operands that are contiguous and of the right type are used in place. Others pass through buffers that
//! stay in the first-level cache, so that an operation does not allocate memory.

use super::blocks::{Kernel, Routine, unsupported};
use super::cast;
use super::copy::{Place, copy_tile, pointer, prefetch};
use super::direct;
use super::function;
use super::pairwise::Cell;
use super::parallel::Workers;
use super::strided::{count, for_each, offset, widest, without};
use super::tile::{BUFFER, InputOperand, Output, ROW, Scratch};
use hal::function::{Function, UnaryFunction};
use hal::operation::{Elementwise, Input, Operand, Shape};
use hal::{DType, Kind, Result, Scalar};

/// The number of columns in a tile that is read across its rows. The buffers limit the number of elements:
/// with more columns there would be fewer rows, and thus less contiguous memory to read for each column. Now
/// it is 128 bytes, without conversion. The value was measured.
const ACROSS: usize = 128;
/// The number of elements in a tile that is read along its rows.
const LINE: usize = 1024;

/// The work for a tile.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Copy the elements unchanged.
    Copy,
    /// Compute the values with a loop.
    Call(Kernel),
}

/// A prepared operation.
struct Program<'a> {
    step: Step,
    arguments: [InputOperand<'a>; 4],
    arity: usize,
    output: Output<'a>,
}

/// The division of the iteration space into tiles.
#[derive(Debug)]
struct Plan {
    rows: Option<usize>,
    columns: Option<usize>,
    tile_rows: usize,
    tile_columns: usize,
}

/// Executes an element-wise operation.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Elementwise, workers: &Workers<'_>) -> Result<()> {
    // SAFETY: passed on to the caller.
    if unsafe { direct::run(operation, workers) } {
        return Ok(());
    }
    let elements = count(&operation.shape);
    if elements == 0 {
        return Ok(());
    }
    let mut cells = [Cell([0; 16]); 4];
    let mut program = Program::new(operation);
    if !prepare(operation, &mut cells, &mut program)? {
        return Ok(());
    }
    let work = program.work(elements);
    if let &[length] = &operation.shape[..]
        && let Step::Call(kernel) = program.step
        && let Some(repeated) = program.direct(length)
    {
        let arguments = program.arguments.map(|argument| (argument.address, argument.size));
        let output = (program.output.address, program.output.size);
        // SAFETY: contiguous or repeated elements of the loop's types; the output does not overlap the
        // arguments.
        unsafe { direct::call(kernel, output, &arguments, repeated, length, workers) };
        return Ok(());
    }
    // SAFETY: passed on to the caller.
    unsafe { program.iterate(&operation.shape, work, workers) };
    Ok(())
}

/// The loop of an operation along one axis whose operands it can use in place, or that are only converted.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLoop {
    /// The loop.
    pub(super) routine: Routine,
    /// The numbers among the arguments.
    pub(super) cells: [Cell; 4],
    /// A bit for each argument that is one repeated element.
    pub(super) repeated: u32,
    /// The conversion of each argument, and of the value, with the size of an element that the loop uses.
    pub(super) conversions: [Option<(Routine, usize)>; 5],
}

impl RowLoop {
    /// Returns the loop of an operation; `None` if an operand has to be copied.
    pub(super) fn of(operation: &Elementwise) -> Result<Option<RowLoop>> {
        let &[length] = &operation.shape[..] else { return Ok(None) };
        let mut cells = [Cell([0; 16]); 4];
        let mut program = Program::new(operation);
        if !prepare(operation, &mut cells, &mut program)? {
            return Ok(None);
        }
        let Step::Call(Kernel { run: routine, .. }) = program.step else { return Ok(None) };
        let mut conversions = [None; 5];
        for (conversion, argument) in conversions.iter_mut().zip(&mut program.arguments) {
            *conversion = argument.convert.take().map(|routine| (routine, argument.wanted));
        }
        let output = &mut program.output;
        conversions[4] = output.convert.take().map(|routine| (routine, output.given));
        let repeated = program.direct(length);
        Ok(repeated.map(|repeated| RowLoop { routine, cells, repeated, conversions }))
    }
}

/// Stores one value in every element of an output.
///
/// # Safety
/// The elements must be writable.
pub(super) unsafe fn fill(
    shape: &Shape,
    output: &Operand,
    value: Scalar,
    workers: &Workers<'_>,
) -> Result<()> {
    let operation = Elementwise {
        function: Function::Unary(UnaryFunction::Copy),
        compute: output.dtype,
        shape: shape.clone(),
        inputs: [Input::Scalar(value)].into_iter().collect(),
        output: output.clone(),
    };
    // SAFETY: passed on to the caller.
    unsafe { run(&operation, workers) }
}

/// Chooses loops and conversions. Returns false if there is nothing to do. The program is filled in place,
/// since moving it takes as long as a short operation.
#[inline]
fn prepare<'a>(
    operation: &'a Elementwise,
    cells: &mut [Cell; 4],
    program: &mut Program<'a>,
) -> Result<bool> {
    let Elementwise { function, compute, inputs, output, .. } = operation;
    let arity = function.arity();
    let copy = *function == Function::Unary(UnaryFunction::Copy);
    let same = copy && inputs[0].dtype() == output.dtype && *compute == output.dtype;
    program.arity = arity;
    let arguments = &mut program.arguments;
    for (index, input) in inputs.iter().enumerate() {
        let wanted = function.argument(index, *compute);
        let condition = wanted.is_none();
        let wanted = wanted.unwrap_or(DType::Bool);
        match input {
            Input::Array(operand) => {
                arguments[index] = InputOperand::new(operand, wanted);
                if condition && *function == Function::SelectPositive {
                    arguments[index].convert = cast::positive(operand.dtype);
                }
                arguments[index].staged = operand.address == output.address;
            }
            Input::Scalar(value) => {
                cells[index].0[..wanted.size()].copy_from_slice(value.bytes());
                arguments[index].address = (&raw const cells[index]).expose_provenance();
                arguments[index].size = wanted.size();
                arguments[index].wanted = wanted.size();
            }
        }
    }
    let result = function.result(*compute);
    if same && (compute.kind() == Kind::Opaque || *compute != DType::Bool) {
        // Elements that are copied to themselves do not change.
        return Ok(!arguments[0].staged);
    }
    // A cast through either of the two types is a single conversion.
    let source = inputs[0].dtype();
    if copy
        && matches!(inputs[0], Input::Array(_))
        && [source, output.dtype].contains(compute)
        && let Some(run) = cast::conversion(source, output.dtype)
    {
        arguments[0].convert = None;
        arguments[0].wanted = arguments[0].size;
        program.step = Step::Call(Kernel { run, cheap: true, in_place: false });
        return Ok(true);
    }
    let kernel = function::kernel(*function, *compute)
        .ok_or_else(|| unsupported(format!("{function:?} for dtype {compute}")))?;
    if kernel.in_place && result == *compute && output.dtype == result {
        for (argument, input) in arguments.iter_mut().zip(inputs) {
            argument.staged &= input.dtype() != result;
        }
    }
    program.step = Step::Call(kernel);
    program.output = Output::new(output, result);
    Ok(true)
}

impl<'a> Program<'a> {
    #[inline]
    fn new(operation: &'a Elementwise) -> Program<'a> {
        Program {
            step: Step::Copy,
            arguments: [InputOperand::NONE; 4],
            arity: 0,
            output: Output::new(&operation.output, operation.output.dtype),
        }
    }
}

impl Program<'_> {
    fn arguments(&self) -> &[InputOperand<'_>] {
        &self.arguments[..self.arity]
    }

    /// Returns the work, counted in elements of a cheap loop.
    fn work(&self, elements: usize) -> usize {
        match self.step {
            Step::Call(kernel) => kernel.work(elements),
            Step::Copy => elements.saturating_mul(self.output.size.div_ceil(8)),
        }
    }

    /// If a one-dimensional iteration space does not need buffers, returns a bit for each repeated argument.
    #[inline]
    fn direct(&self, length: usize) -> Option<u32> {
        let mut repeated = 0;
        for (index, argument) in self.arguments().iter().enumerate() {
            let stride = argument.stride(Some(0));
            if !argument.is_direct(stride, length) {
                return None;
            }
            repeated |= u32::from(stride == 0 && length > 1) << index;
        }
        self.output.is_direct(self.output.stride(Some(0)), length).then_some(repeated)
    }

    /// Iterates over a shape with any number of axes.
    ///
    /// # Safety
    /// See [`hal::operation`].
    #[inline(never)]
    unsafe fn iterate(&self, shape: &Shape, work: usize, workers: &Workers<'_>) {
        if shape.is_empty() {
            // SAFETY: passed on to the caller.
            return unsafe { self.part(shape, self.addresses(0, 0)) };
        }
        let axis = widest(shape);
        workers.split(shape[axis], 1, work, &|range| {
            let mut part = shape.clone();
            part[axis] = range.len();
            // SAFETY: a part of the iteration, disjoint from the others.
            unsafe { self.part(&part, self.addresses(axis, range.start)) };
        });
    }

    /// Returns the addresses of the arguments and of the output at an index of one axis.
    fn addresses(&self, axis: usize, index: usize) -> [usize; 5] {
        std::array::from_fn(|operand| match self.arguments.get(operand) {
            Some(argument) => offset(argument.address, index, argument.stride(Some(axis))),
            None => offset(self.output.address, index, self.output.stride(Some(axis))),
        })
    }

    /// Chooses the axes and the size of the tiles.
    fn plan(&self, shape: &[usize]) -> Plan {
        let long = |axis: &usize| shape[*axis] > 1;
        let mut axes = (0..shape.len()).rev().filter(long);
        let columns = axes.next();
        let previous = axes.next();
        let Some(last) = columns else {
            return Plan { rows: None, columns, tile_rows: 1, tile_columns: 1 };
        };
        let length = shape[last];
        let largest = self.arguments().iter().map(InputOperand::largest).max().unwrap_or(1);
        let capacity = BUFFER / largest.max(self.output.largest()).clamp(1, BUFFER);
        // An argument that is contiguous along another axis is read across the tile's rows.
        let across = self.arguments().iter().find_map(|argument| {
            let stride_of = |axis: usize| argument.stride(Some(axis)).unsigned_abs();
            let smallest = (0..shape.len())
                .filter(|axis| shape[*axis] > 1 && *axis != last && stride_of(*axis) != 0)
                .min_by_key(|axis| stride_of(*axis))?;
            (stride_of(smallest) < stride_of(last)).then_some(smallest)
        });
        if let Some(rows) = across {
            let tile_columns = length.min(ACROSS).min(capacity);
            let tile_rows = (capacity / tile_columns).min(shape[rows]);
            return Plan { rows: Some(rows), columns, tile_rows, tile_columns };
        }
        let copies = matches!(self.step, Step::Copy);
        if let Some(rows) = previous.filter(|_| length < 128 && (copies || length < capacity)) {
            let limit = if copies { usize::MAX } else { capacity.min(LINE) };
            let tile_rows = (limit / length).clamp(1, shape[rows]);
            return Plan { rows: Some(rows), columns, tile_rows, tile_columns: length };
        }
        let in_place = self
            .arguments()
            .iter()
            .all(|argument| argument.is_direct(argument.stride(columns), length))
            && self.output.is_direct(self.output.stride(columns), length);
        let tile_columns = if copies || in_place { length } else { capacity.min(LINE) };
        Plan { rows: None, columns, tile_rows: 1, tile_columns: tile_columns.min(length) }
    }

    /// Iterates over a part of the iteration space on this thread.
    ///
    /// # Safety
    /// See [`hal::operation`].
    unsafe fn part(&self, shape: &Shape, addresses: [usize; 5]) {
        let plan = self.plan(shape);
        let outer = without(shape, &[plan.rows, plan.columns]);
        let rows = plan.rows.map_or(1, |axis| shape[axis]);
        let columns = plan.columns.map_or(1, |axis| shape[axis]);
        let [a, b, c, d] = self.arguments.map(|argument| argument.strides);
        let strides = [a, b, c, d, self.output.strides];
        let place = |operand: usize, address: usize| match self.arguments.get(operand) {
            Some(argument) => Place {
                address,
                row: argument.stride(plan.rows),
                column: argument.stride(plan.columns),
            },
            None => Place {
                address,
                row: self.output.stride(plan.rows),
                column: self.output.stride(plan.columns),
            },
        };
        let mut scratch = Scratch::new();
        for_each(&outer, &strides, addresses, |start| {
            let mut row = 0;
            while row < rows {
                let height = plan.tile_rows.min(rows - row);
                let mut column = 0;
                while column < columns {
                    let width = plan.tile_columns.min(columns - column);
                    let places: [Place; 5] = std::array::from_fn(|operand| {
                        let mut place = place(operand, start[operand]);
                        place.address = offset(place.address, row, place.row);
                        place.address = offset(place.address, column, place.column);
                        place
                    });
                    if height > 1 && column + width < columns {
                        for (argument, place) in self.arguments().iter().zip(&places) {
                            let next = offset(place.address, width, place.column);
                            prefetch(
                                Place { address: next, ..*place },
                                height,
                                width,
                                argument.size,
                            );
                        }
                    }
                    // SAFETY: a tile of the iteration, small enough for the buffers.
                    unsafe {
                        self.tile(&places, (height, width), plan.tile_columns, &mut scratch);
                    }
                    column += width;
                }
                row += height;
            }
        });
    }

    /// Computes one tile.
    ///
    /// # Safety
    /// See [`hal::operation`]; the tile must fit the buffers.
    #[inline]
    unsafe fn tile(
        &self,
        places: &[Place; 5],
        extent: (usize, usize),
        usual_columns: usize,
        scratch: &mut Scratch,
    ) {
        let (rows, columns) = extent;
        let output = places[4];
        let kernel = match self.step {
            Step::Copy => {
                // SAFETY: elements of the input and of the output, which are disjoint.
                return unsafe { copy_tile(self.output.size, places[0], output, rows, columns) };
            }
            Step::Call(kernel) => kernel,
        };
        let by_rows = rows == 1 || usual_columns >= ROW;
        let mut addresses = [0; 4];
        let mut steps = [0; 4];
        let mut repeated = 0;
        let mut packed = true;
        for (index, argument) in self.arguments().iter().enumerate() {
            let buffer = &mut scratch.arguments[index];
            // SAFETY: a tile of the argument, which fits the buffers.
            let ready = unsafe {
                let place = places[index];
                argument.load(place, extent, by_rows, true, buffer, &mut scratch.staging)
            };
            addresses[index] = ready.address;
            steps[index] = ready.row;
            repeated |= u32::from(ready.repeated) << index;
            packed &= ready.packed;
        }
        let size = self.output.size;
        let contiguous = columns == 1 || output.column == size as isize;
        let row_packed = output.is_packed(rows, columns, size);
        let direct = self.output.convert.is_none() && (row_packed || (contiguous && by_rows));
        let (value, step) = if direct {
            (output.address, output.row)
        } else {
            (scratch.value.address(), (columns * self.output.given) as isize)
        };
        let whole = packed && (row_packed || !direct);
        let (calls, length) = if whole { (1, rows * columns) } else { (rows, columns) };
        for row in 0..calls {
            let arguments = std::array::from_fn(|index| {
                pointer(offset(addresses[index], row, steps[index])).cast_const()
            });
            // SAFETY: contiguous or repeated elements of the loop's types; the output does not overlap the
            // arguments, since overlapping ones have been copied to a buffer.
            unsafe {
                kernel.run.call(pointer(offset(value, row, step)), &arguments, repeated, length);
            }
        }
        if !direct {
            // SAFETY: the values of the tile, packed.
            unsafe { self.output.store(value, output, extent, &mut scratch.staging) };
        }
    }
}
