//! Reductions, which combine the elements along some axes into one.
//!
//! Depending on the order of the elements in memory, a reduction runs along lines, with one result in each
//! step, or row by row, with many neighbouring results together. In both cases, the order of combination
//! depends only on shape, strides and dtypes.

mod fold;
mod position;

use super::blocks::{Routine, unsupported};
use super::cast;
use super::combine::{self, Combiner};
use super::copy::{Place, pointer};
use super::elementwise;
use super::fused::CompiledRow;
use super::number::Number;
use super::pairwise::{Cell, Pairwise};
use super::parallel::Workers;
use super::reduce_input::{ReduceInput, Scratch};
use super::strided::{count, for_each, offset, stride, widest, without};
use super::tile::{self, Output};
use super::values::{self, Values};
use hal::function::{Reduction, Start};
use hal::operation::{ElementMap, Epilogue, FormulaValues, Mapped, Operand, Reduce, Shape};
use hal::{Complex, DType, Error, ErrorKind, Result, Scalar, Status};
use position::SEGMENTED;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of rows that are combined before they enter the pairwise combination.
const ROUNDS: usize = 16;
/// The number of elements of a tile that is combined into one.
const LINE: usize = 1024;
/// The size of a row of results in bytes.
const WIDTH: usize = 16384;
/// The number of elements between two checks whether the result is decided.
const DECISION: usize = 1 << 15;
/// A prepared reduction.
struct Reducer<'a> {
    input: ReduceInput<'a>,
    combiner: Combiner,
    /// The type in which elements are combined. `size` is its size in bytes.
    working: DType,
    size: usize,
    epilogue: Epilogue,
    /// Converts from that type to the result's type.
    narrow: Option<Routine>,
    output: Output<'a>,
    /// The shape, with reduced axes of length 1.
    kept: Shape,
    /// The shape, with kept axes of length 1.
    folded: Shape,
    /// The reduced axis of the tiles' rows.
    rows: Option<usize>,
    /// The axis of the tiles' columns: a kept one if many results are computed together, otherwise a reduced
    /// one.
    columns: Option<usize>,
    /// The maximum number of results computed together; 1 along lines.
    width: usize,
    /// The number of parts into which the reduced axes are cut.
    segments: usize,
    /// For truth values, the value that decides the result regardless of the others.
    decisive: Option<u8>,
}

/// Refuses a formula whose values cannot be combined in their order, or deviations and positions of values that would be
/// computed slowly twice.
pub(super) fn check_worthwhile(operation: &Reduce) -> Result<()> {
    let Reduce { shape, input, output, .. } = operation;
    let Mapped::Formula(it) = input else { return Ok(()) };
    if it.map == ElementMap::Identity {
        let (kept, folded) = kept_and_folded(operation);
        return Reducer::new(operation, (None, None), kept, folded).map(|_| ());
    }
    let nearest = (0..shape.len())
        .filter(|&axis| shape[axis] > 1)
        .min_by_key(|&axis| stride(&it.values.strides, axis).unsigned_abs());
    let is_line = nearest.is_none_or(|axis| stride(&output.strides, axis) == 0);
    let is_quick = is_line && !it.formula.is_long() && values::is_flat(it);
    match is_quick {
        true => Ok(()),
        false => Err(unsupported(format!("a formula for {:?} in two passes", it.map))),
    }
}

/// Returns the shape with reduced axes of length 1, and the shape with kept axes of length 1.
fn kept_and_folded(operation: &Reduce) -> (Shape, Shape) {
    let Reduce { shape, output, .. } = operation;
    let mut kept = shape.clone();
    let mut folded = shape.clone();
    for axis in 0..shape.len() {
        let reduced = stride(&output.strides, axis) == 0;
        let one = if reduced { &mut kept } else { &mut folded };
        one[axis] = 1;
    }
    (kept, folded)
}

/// Executes a reduction.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(
    operation: &Reduce,
    row: Option<&CompiledRow>,
    workers: &Workers<'_>,
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        match operation.input.elements().map(|(map, _)| map) {
            Some(ElementMap::SquaredDeviation) => deviations(operation, row, workers),
            Some(ElementMap::Position) => positions(operation, row, workers),
            Some(ElementMap::Identity) | None => pass(operation, None, row, workers),
        }
    }
}

/// Reads the elements once. `about` holds the values that they are compared with, one for each result.
///
/// # Safety
/// See [`hal::operation`].
unsafe fn pass(
    operation: &Reduce,
    about: Option<&Operand>,
    row: Option<&CompiledRow>,
    workers: &Workers<'_>,
) -> Result<()> {
    let Reduce { reduction, output, .. } = operation;
    let (kept, folded) = kept_and_folded(operation);
    if count(&kept) == 0 {
        return Ok(());
    }
    if count(&folded) == 0 {
        let identity = i64::from(reduction.start() == Start::One);
        let value = match operation.epilogue {
            Epilogue::Identity => Scalar::new(identity),
            // Without elements, the identity is zero or NaN, whose square root is the same.
            Epilogue::Quotient(by) | Epilogue::RootOfQuotient(by) => {
                let value = identity as f64 / by;
                let imaginary = if output.dtype.is_complex() { value } else { 0.0 };
                Scalar::new(Complex::new(value, imaginary))
            }
        };
        let value = value.cast(output.dtype)?;
        // SAFETY: passed on to the caller.
        return unsafe { elementwise::fill(&kept, output, value, workers) };
    }
    let reducer = Reducer::new(operation, (about, row), kept, folded)?;
    // SAFETY: passed on to the caller.
    unsafe { reducer.run(workers) };
    reducer.input.values().map_or(Ok(()), Values::failure)
}

impl<'a> Reducer<'a> {
    fn new(
        operation: &'a Reduce,
        (about, row): (Option<&'a Operand>, Option<&'a CompiledRow>),
        kept: Shape,
        folded: Shape,
    ) -> Result<Self> {
        let Reduce { compute, output, .. } = operation;
        // The minimum of truth values is true if all are true.
        let reduction = match (operation.reduction, *compute) {
            (Reduction::Minimum, DType::Bool) => Reduction::All,
            (Reduction::Maximum, DType::Bool) => Reduction::Any,
            (reduction, _) => reduction,
        };
        // Truth values are added and multiplied. Sums of 16-bit floats stay in binary32 until the end.
        let (way, working, result) = match (reduction, *compute) {
            (Reduction::Any, _) => (Reduction::Sum, DType::Bool, DType::Bool),
            (Reduction::All, _) => (Reduction::Product, DType::Bool, DType::Bool),
            (Reduction::Sum | Reduction::Product, compute) => {
                (reduction, compute.working(), compute)
            }
            (_, compute) => (reduction, compute, compute),
        };
        let combiner = combine::combiner(way, working)
            .ok_or_else(|| unsupported(format!("{reduction:?} of dtype {compute}")))?;
        let input = ReduceInput::new(operation, about, row, working)?;
        let nearest = |shape: &[usize], not: Option<usize>| {
            (0..shape.len())
                .rev()
                .filter(|&axis| shape[axis] > 1 && Some(axis) != not)
                .min_by_key(|&axis| input.distance(axis))
        };
        let line = nearest(&folded, None);
        let neighbour = nearest(&kept, None);
        let many = neighbour.filter(|&kept_axis| {
            let closer = line.is_none_or(|axis| input.distance(kept_axis) < input.distance(axis));
            (kept[kept_axis] >= 16 && closer) || (kept[kept_axis] >= 32 && count(&folded) <= 32)
        });
        let along = if many.is_some() { many } else { line };
        let distance = along.map_or(0, |axis| stride(input.strides()[0], axis));
        if input.values().is_some_and(|values| along.is_some() && !values.has_columns(distance)) {
            return Err(unsupported("a formula of such strides in a reduction".to_owned()));
        }
        let (rows, columns, width) = match many {
            Some(axis) if input.is_direct(axis) => (line, many, WIDTH / working.size()),
            Some(_) => (line, many, (input.capacity() / ROUNDS).max(1)),
            None => (nearest(&folded, line), line, 1),
        };
        let tasks = match many {
            Some(axis) => count(&without(&kept, &[many])) * kept[axis].div_ceil(width),
            None => count(&kept),
        };
        let elements = count(&folded).saturating_mul(count(&kept));
        let divisible =
            if elements >= SEGMENTED && tasks < 8 { elements / (SEGMENTED / 4) } else { 1 };
        Ok(Reducer {
            input,
            combiner,
            working,
            size: working.size(),
            epilogue: operation.epilogue,
            narrow: cast::conversion(working, result),
            output: Output::new(output, result),
            kept,
            folded,
            rows,
            columns,
            width,
            segments: divisible.clamp(1, 64),
            decisive: match reduction {
                Reduction::Any => Some(1),
                Reduction::All => Some(0),
                _ => None,
            },
        })
    }

    /// Returns the kept axis along which many results are computed together.
    fn many(&self) -> Option<usize> {
        self.columns.filter(|&axis| self.kept[axis] > 1)
    }

    /// # Safety
    /// See [`hal::operation`].
    unsafe fn run(&self, workers: &Workers<'_>) {
        let work = count(&self.kept).saturating_mul(count(&self.folded));
        let axis = widest(&self.kept);
        let length = self.kept.get(axis).copied().unwrap_or(1);
        if self.segments > 1 {
            // SAFETY: passed on to the caller.
            return unsafe { self.results(axis, 0..length, workers) };
        }
        let granularity = if self.many() == Some(axis) { self.width } else { 1 };
        workers.split(length, granularity, work, &|range| {
            // SAFETY: a part of the results, disjoint from the others.
            unsafe { self.results(axis, range, workers) };
        });
    }

    /// Computes the results whose index along a kept axis is in a range.
    ///
    /// # Safety
    /// See [`hal::operation`].
    unsafe fn results(&self, axis: usize, range: Range<usize>, workers: &Workers<'_>) {
        let many = self.many();
        let mut outer = without(&self.kept, &[many]);
        let mut columns = 0..many.map_or(1, |axis| self.kept[axis]);
        let [first, second, positions] = self.input.strides();
        let strides = [first, second, positions, self.output.strides];
        let [first, second, position] = self.input.addresses();
        let mut addresses = [first, second, position, self.output.address];
        if many == Some(axis) {
            columns = range;
        } else if let Some(length) = outer.get_mut(axis) {
            *length = range.len();
            for (address, strides) in addresses.iter_mut().zip(&strides) {
                *address = offset(*address, range.start, stride(strides, axis));
            }
        }
        let mut scratch = Scratch::new();
        let mut memory = Vec::new();
        let mut cell = [Cell([0; 16]); 1];
        let mut wide = Vec::new();
        if many.is_some() {
            wide = vec![Cell([0; 16]); (self.width * self.size).div_ceil(16)];
        }
        let target = match many {
            Some(_) => wide.as_mut_ptr().expose_provenance(),
            None => cell.as_mut_ptr().expose_provenance(),
        };
        for_each(&outer, &strides, addresses, |start| {
            let mut column = columns.start;
            while column < columns.end {
                let length = self.width.min(columns.end - column);
                let [first, second, position, output] = std::array::from_fn(|operand| {
                    let stride = many.map_or(0, |axis| stride(strides[operand], axis));
                    offset(start[operand], column, stride)
                });
                // SAFETY: results and elements of the operation, and memory of this call.
                unsafe {
                    let elements = [first, second, position];
                    if self.segments > 1 {
                        self.fold_segments(elements, length, target, workers);
                    } else {
                        self.fold(
                            &self.folded,
                            elements,
                            length,
                            target,
                            &mut memory,
                            &mut scratch,
                        );
                    }
                    self.store(target, output, length, &mut scratch);
                }
                column += length;
            }
        });
    }

    /// Converts results and stores them in the output.
    ///
    /// # Safety
    /// The results must be at the address and not be used elsewhere, and the output's elements must be
    /// writable.
    unsafe fn store(&self, results: usize, output: usize, length: usize, scratch: &mut Scratch) {
        let tile::Scratch { value, staging, .. } = &mut scratch.tile;
        // SAFETY: packed results, which belong to the caller.
        unsafe { finish(self.epilogue, self.working, results, length) };
        let mut results = results;
        if let Some(narrow) = self.narrow {
            let source = std::mem::replace(&mut results, value.address());
            // SAFETY: packed elements, which fit the buffer.
            unsafe { cast::convert(narrow, source, results, length) };
        }
        let column = self.output.stride(self.many());
        let place = Place { address: output, row: 0, column };
        // SAFETY: packed results of the right type.
        unsafe { self.output.store(results, place, (1, length), staging) };
    }

    /// Combines the elements of each of `length` results in parts, on several threads.
    ///
    /// # Safety
    /// The same as for [`Reducer::fold`].
    unsafe fn fold_segments(
        &self,
        addresses: [usize; 3],
        length: usize,
        target: usize,
        workers: &Workers<'_>,
    ) {
        let axis = widest(&self.folded);
        let extent = self.folded[axis];
        let unit = if extent >= 1 << 16 { LINE } else { 1 };
        let step = extent.div_ceil(self.segments).next_multiple_of(unit);
        let segments = extent.div_ceil(step);
        let bytes = length * self.size;
        let pitch = bytes.next_multiple_of(size_of::<Cell>());
        let levels = Pairwise::levels(segments);
        let mut memory = vec![Cell([0; 16]); (segments + levels) * pitch / size_of::<Cell>()];
        let base = memory.as_mut_ptr().expose_provenance();
        let partial = |segment| offset(base, segment, pitch as isize);
        let work = count(&self.folded).saturating_mul(length);
        let is_decided = AtomicBool::new(false);
        workers.split(segments, 1, work, &|range| {
            let mut scratch = Scratch::new();
            let mut memory = Vec::new();
            for segment in range {
                if let Some(value) = self.decisive.filter(|_| is_decided.load(Ordering::Relaxed)) {
                    // SAFETY: the truth value of this segment's own partial result.
                    unsafe { pointer(partial(segment)).write(value) };
                    continue;
                }
                let start = segment * step;
                let mut folded = self.folded.clone();
                folded[axis] = step.min(extent - start);
                let strides = self.input.strides();
                let addresses = std::array::from_fn(|operand| {
                    offset(addresses[operand], start, stride(strides[operand], axis))
                });
                let target = partial(segment);
                // SAFETY: a part of the elements, and the segment's own partial result.
                unsafe { self.fold(&folded, addresses, length, target, &mut memory, &mut scratch) };
                // SAFETY: the partial result has a first byte.
                if length == 1 && self.decisive == Some(unsafe { pointer(target).read() }) {
                    is_decided.store(true, Ordering::Relaxed);
                }
            }
        });
        // SAFETY: as many levels as the segments need, after the partial results.
        unsafe {
            let mut pairwise = Pairwise::new(&self.combiner, partial(segments), length, bytes);
            for segment in 0..segments {
                pairwise.push(partial(segment));
            }
            pairwise.finish(target);
        }
    }
}

/// A value for each result of a reduction.
struct Reference {
    operand: Operand,
    /// The memory of the operand.
    _memory: Vec<Cell>,
}

impl Reference {
    /// Computes the values of `reduction` over the operation's elements.
    ///
    /// # Safety
    /// The same as for [`pass`].
    unsafe fn new(
        operation: &Reduce,
        (reduction, compute, epilogue): (Reduction, DType, Epilogue),
        row: Option<&CompiledRow>,
        workers: &Workers<'_>,
    ) -> Result<Self> {
        let Reduce { shape, input, output, .. } = operation;
        let mut size = compute.size();
        let mut strides = output.strides.clone();
        for axis in (0..shape.len()).rev().filter(|&axis| stride(&output.strides, axis) != 0) {
            strides[axis] = size as isize;
            size *= shape[axis];
        }
        let mut memory = Vec::new();
        let cells = size.div_ceil(size_of::<Cell>());
        memory.try_reserve_exact(cells).map_err(|_| no_memory(size))?;
        memory.resize(cells, Cell([0; 16]));
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let operand = Operand { address, dtype: compute, strides };
        let values = Reduce {
            reduction,
            compute,
            shape: shape.clone(),
            input: themselves(input),
            output: operand.clone(),
            epilogue,
        };
        // SAFETY: passed on to the caller; the results have separate memory.
        unsafe { pass(&values, None, row, workers)? };
        Ok(Reference { operand, _memory: memory })
    }
}

/// Returns the elements or values of an input, without what is computed for each.
fn themselves(input: &Mapped) -> Mapped {
    match input {
        Mapped::SquaredDeviation(elements) | Mapped::Position(elements) => {
            Mapped::Identity(elements.clone())
        }
        Mapped::Formula(it) => {
            Mapped::Formula(Box::new(FormulaValues { map: ElementMap::Identity, ..(**it).clone() }))
        }
        other => other.clone(),
    }
}

#[cold]
fn no_memory(bytes: usize) -> Error {
    let detail = format!(
        "out of memory: the reduction needs {bytes} bytes for reference values, which the system refused"
    );
    let status = Status::host(Status::OUT_OF_MEMORY);
    Error::new(ErrorKind::OutOfMemory, status, "reduce", detail)
}

/// Sums the squared deviations from the mean. The elements are read twice, which is cheaper than the additional state
/// that a single pass would need.
///
/// # Safety
/// See [`hal::operation`].
unsafe fn deviations(
    operation: &Reduce,
    row: Option<&CompiledRow>,
    workers: &Workers<'_>,
) -> Result<()> {
    let Reduce { compute, shape, output, .. } = operation;
    let reduced = (0..shape.len()).filter(|&axis| stride(&output.strides, axis) == 0);
    let count = reduced.map(|axis| shape[axis]).product::<usize>();
    let mean = (Reduction::Sum, *compute, Epilogue::Quotient(count as f64));
    // SAFETY: the means belong to this call; the rest is passed on to the caller.
    unsafe {
        let means = Reference::new(operation, mean, row, workers)?;
        pass(operation, Some(&means.operand), row, workers)
    }
}

/// Finds the indices of the first minimum or maximum.
///
/// # Safety
/// See [`hal::operation`].
unsafe fn positions(
    operation: &Reduce,
    row: Option<&CompiledRow>,
    workers: &Workers<'_>,
) -> Result<()> {
    if let Mapped::Position(elements) = &operation.input {
        // SAFETY: passed on to the caller.
        if unsafe { position::along_axis(operation, elements, workers) } {
            return Ok(());
        }
    }
    let Reduce { reduction, compute, shape, output, .. } = operation;
    let extreme = (*reduction, *compute, Epilogue::Identity);
    // SAFETY: passed on to the caller.
    let extremes = unsafe { Reference::new(operation, extreme, row, workers)? };
    let reduced = (0..shape.len()).filter(|&axis| stride(&output.strides, axis) == 0);
    let longest = reduced.map(|axis| shape[axis]).max().unwrap_or(1);
    let index = if i32::try_from(longest).is_ok() { DType::Int32 } else { DType::Int64 };
    let first = Reduce { reduction: Reduction::Minimum, compute: index, ..operation.clone() };
    // SAFETY: passed on to the caller.
    unsafe { pass(&first, Some(&extremes.operand), row, workers) }
}

/// Applies the epilogue to `length` packed values of an inexact type at this address.
///
/// # Safety
/// The values must be at the address, aligned and of this type, and nothing else may access them.
unsafe fn finish(epilogue: Epilogue, dtype: DType, address: usize, length: usize) {
    let by = epilogue.divisor();
    let root = match epilogue {
        Epilogue::Identity => return,
        Epilogue::Quotient(_) => false,
        Epilogue::RootOfQuotient(_) => true,
    };
    // SAFETY: passed on to the caller.
    unsafe {
        match dtype {
            DType::Float32 => replace(address, length, |sum: f32| {
                let quotient = sum / by as f32;
                if root { quotient.sqrt() } else { quotient }
            }),
            DType::Float64 => replace(address, length, |sum: f64| {
                let quotient = sum / by;
                if root { quotient.sqrt() } else { quotient }
            }),
            DType::Complex64 => {
                let by = Complex::new(by as f32, 0.0);
                replace(address, length, |sum: Complex<f32>| sum.divide(by));
            }
            DType::Complex128 => {
                let by = Complex::new(by, 0.0);
                replace(address, length, |sum: Complex<f64>| sum.divide(by));
            }
            // Sums of 16-bit floats have type `Float32`; other types do not have an epilogue.
            _ => {}
        }
    }
}

/// # Safety
/// The same as for [`finish`].
unsafe fn replace<T: Copy>(address: usize, length: usize, with: impl Fn(T) -> T) {
    // SAFETY: passed on to the caller.
    let values = unsafe { std::slice::from_raw_parts_mut(pointer(address).cast::<T>(), length) };
    for value in values {
        *value = with(*value);
    }
}
