//! Matrix products. Single-precision and double-precision numbers are multiplied by the crate
//! `matrixmultiply`, others by loops over rows. Elements that neither can use in place pass through buffers,
//! in blocks.

use super::blocks::{Routine, unsupported};
use super::cast;
use super::copy::{Place, pointer};
use super::multiversion::select_variant;
use super::number::{Number, Truth};
use super::parallel::Workers;
use super::strided::{count, for_each, offset, widest};
use super::tile::{BUFFER, InputOperand, Output, Scratch};
use hal::operation::{MatrixProduct, Operand, Shape};
use hal::{DType, Result};

/// The way in which the output is updated.
#[derive(Clone, Copy)]
enum Update {
    /// Store the product.
    Replace,
    /// Add the product.
    Add,
    /// Store the product minus the previous value.
    Subtract,
}

/// Matrices with the same element type.
struct Block {
    rows: usize,
    terms: usize,
    columns: usize,
    left: Place,
    right: Place,
    output: Place,
    update: Update,
}

/// Multiplies the matrices of a block.
///
/// # Safety
/// The elements that the places reach are valid, and the output does not overlap the others. Strides are
/// multiples of the element size. If `Multiplier::by_rows` is true, the elements of a row are contiguous, and
/// the update is not `Subtract`.
type Multiply = unsafe fn(&Block);

/// The function that multiplies elements of a type.
struct Multiplier {
    run: Multiply,
    /// True if the elements of a row have to be contiguous.
    by_rows: bool,
}

macro_rules! reals {
    ($($name:ident $function:ident $type:ty;)*) => {$(
        /// # Safety
        /// See [`Multiply`].
        unsafe fn $name(block: &Block) {
            let Block { rows, terms, columns, left, right, output, update } = *block;
            let (sign, kept) = match update {
                Update::Replace => (1.0, 0.0),
                Update::Add => (1.0, 1.0),
                Update::Subtract => (-1.0, 1.0),
            };
            let address = |place: Place| pointer(place.address).cast::<$type>();
            let step = |stride: isize| stride / size_of::<$type>() as isize;
            // SAFETY: passed on to the caller.
            unsafe {
                matrixmultiply::$function(
                    rows, terms, columns, sign,
                    address(left), step(left.row), step(left.column),
                    address(right), step(right.row), step(right.column),
                    kept, address(output), step(output.row), step(output.column),
                );
            }
        }
    )*};
}
reals! {
    single sgemm f32;
    double dgemm f64;
}

/// Multiplies complex matrices as four real ones, which is faster than the crate's own complex products.
///
/// # Safety
/// See [`Multiply`]; `multiply` is for the parts' type `R`.
unsafe fn parts<R>(multiply: Multiply, block: &Block) {
    let part =
        |place: Place, k: usize| Place { address: place.address + k * size_of::<R>(), ..place };
    let Block { left, right, output, update, .. } = *block;
    for (x, y, z, update) in
        [(0, 0, 0, update), (1, 1, 0, Update::Subtract), (0, 1, 1, update), (1, 0, 1, Update::Add)]
    {
        let (left, right, output) = (part(left, x), part(right, y), part(output, z));
        // SAFETY: passed on to the caller.
        unsafe { multiply(&Block { left, right, output, update, ..*block }) };
    }
}

/// # Safety
/// See [`Multiply`].
unsafe fn complex_single(block: &Block) {
    // SAFETY: passed on to the caller.
    unsafe { parts::<f32>(single, block) }
}

/// # Safety
/// See [`Multiply`].
unsafe fn complex_double(block: &Block) {
    // SAFETY: passed on to the caller.
    unsafe { parts::<f64>(double, block) }
}

/// Adds rows of the right matrix, times elements of the left one, to rows of the output.
///
/// # Safety
/// See [`Multiply`].
#[inline(always)]
unsafe fn rows_body<T: Number>(block: &Block) {
    let Block { rows, terms, columns, left, right, output, update } = *block;
    // SAFETY: the elements of a row are contiguous.
    let line = |place: Place, row: usize, length: usize| unsafe {
        let first = pointer(offset(place.address, row, place.row)).cast::<T>();
        std::slice::from_raw_parts(first.cast_const(), length)
    };
    for row in 0..rows {
        // SAFETY: a row of the output, to which nothing else refers.
        let sums = unsafe {
            let first = pointer(offset(output.address, row, output.row)).cast::<T>();
            if matches!(update, Update::Replace) {
                (0..columns).for_each(|column| first.wrapping_add(column).write(T::from_u8(0)));
            }
            std::slice::from_raw_parts_mut(first, columns)
        };
        let factors = line(left, row, terms);
        let fours = factors.chunks_exact(4);
        let rest = terms - fours.remainder().len();
        for (four, factors) in fours.clone().enumerate() {
            let lines: [&[T]; 4] = std::array::from_fn(|k| line(right, four * 4 + k, columns));
            for (column, sum) in sums.iter_mut().enumerate() {
                for k in 0..4 {
                    *sum = sum.add(factors[k].multiply(lines[k][column]));
                }
            }
        }
        for (k, &factor) in fours.remainder().iter().enumerate() {
            for (sum, &x) in sums.iter_mut().zip(line(right, rest + k, columns)) {
                *sum = sum.add(factor.multiply(x));
            }
        }
    }
}

select_variant!(select_rows<T: Number>, rows_body, Multiply, (block: &Block));

fn multiplier(working: DType) -> Option<Multiplier> {
    let whole = |run| Multiplier { run, by_rows: true };
    let library = |run| Multiplier { run, by_rows: false };
    Some(match working {
        DType::Float32 => library(single),
        DType::Float64 => library(double),
        DType::Complex64 => library(complex_single),
        DType::Complex128 => library(complex_double),
        DType::Bool => whole(select_rows::<Truth>()),
        // Wrapping sums and products are the same for signed and unsigned integers.
        DType::Int8 | DType::UInt8 => whole(select_rows::<u8>()),
        DType::Int16 | DType::UInt16 => whole(select_rows::<u16>()),
        DType::Int32 | DType::UInt32 => whole(select_rows::<u32>()),
        DType::Int64 | DType::UInt64 => whole(select_rows::<u64>()),
        _ => return None,
    })
}

/// An operand and its last two axes.
#[derive(Clone, Copy)]
struct Factor<'a> {
    elements: InputOperand<'a>,
    /// Converts from the computing type to the working type, if these differ for the elements.
    widen: Option<Routine>,
    /// The strides of the matrix.
    matrix: [isize; 2],
}

impl<'a> Factor<'a> {
    fn new(operand: &'a Operand, compute: DType, working: DType) -> Self {
        let is_direct = operand.dtype == compute;
        Factor {
            elements: InputOperand::new(operand, if is_direct { working } else { compute }),
            widen: if is_direct { None } else { cast::conversion(compute, working) },
            matrix: matrix(operand),
        }
    }

    /// Returns true if the elements can be multiplied in place.
    fn is_direct(&self) -> bool {
        let size = self.elements.size as isize;
        self.elements.convert.is_none() && self.matrix.iter().all(|stride| stride % size == 0)
    }

    fn place(&self, address: usize, [row, column]: [usize; 2]) -> Place {
        place(address, self.matrix, [row, column])
    }
}

/// Returns the strides of the last two axes.
fn matrix(operand: &Operand) -> [isize; 2] {
    let axes = operand.strides.len();
    [operand.strides[axes - 2], operand.strides[axes - 1]]
}

fn place(address: usize, [down, along]: [isize; 2], [row, column]: [usize; 2]) -> Place {
    Place { address: offset(offset(address, row, down), column, along), row: down, column: along }
}

/// A prepared product.
struct Product<'a> {
    multiplier: Multiplier,
    terms: usize,
    left: Factor<'a>,
    right: Factor<'a>,
    output: Output<'a>,
    target: [isize; 2],
    /// Converts from the working type to the computing type, if these differ for the output.
    narrow: Option<Routine>,
    /// The size of an element's largest form in bytes.
    largest: usize,
    working: usize,
}

/// Executes matrix products.
///
/// # Errors
/// `Unsupported` for a computing type that does not support products.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &MatrixProduct, workers: &Workers<'_>) -> Result<()> {
    let MatrixProduct { compute, batch, rows, terms, columns, left, right, output } = operation;
    let working = compute.working();
    let multiplier = multiplier(working)
        .ok_or_else(|| unsupported(format!("products of matrices of dtype {compute}")))?;
    let is_direct = output.dtype == *compute;
    let [left, right] = [left, right].map(|operand| Factor::new(operand, *compute, working));
    let sizes = [left.elements.largest(), right.elements.largest(), output.dtype.size()];
    let product = Product {
        multiplier,
        terms: *terms,
        left,
        right,
        output: Output::new(output, if is_direct { working } else { *compute }),
        target: matrix(output),
        narrow: if is_direct { None } else { cast::conversion(working, *compute) },
        largest: sizes.into_iter().fold(working.size().max(compute.size()), usize::max),
        working: working.size(),
    };
    let axes: Shape = batch.iter().chain([rows, columns]).copied().collect();
    let along = widest(&axes);
    let granularity = if along < batch.len() { 1 } else { 32 };
    // A product and a sum take less time than an element of a loop over memory.
    let work = count(&axes).saturating_mul(*terms) / 8;
    let addresses = [product.output.address, left.elements.address, right.elements.address];
    workers.split(axes[along], granularity, work, &|range| {
        let mut extents = axes.clone();
        extents[along] = range.len();
        let mut starts = addresses;
        let moves = |address, stride| offset(address, range.start, stride);
        let (first, second) = (product.left.elements.strides, product.right.elements.strides);
        starts[0] = moves(starts[0], product.output.strides[along]);
        if along != batch.len() + 1 {
            starts[1] = moves(starts[1], first[along]);
        }
        if along != batch.len() {
            starts[2] = moves(starts[2], second[along]);
        }
        let [batch @ .., rows, columns] = &extents[..] else { return };
        let mut scratch = Scratch::new();
        for_each(batch, &[product.output.strides, first, second], starts, |addresses| {
            // SAFETY: some of the matrices or a part of each, disjoint from the others.
            unsafe { product.multiply([*rows, *columns], addresses, &mut scratch) };
        });
    });
    Ok(())
}

impl Product<'_> {
    /// Multiplies two matrices.
    ///
    /// # Safety
    /// See [`hal::operation`].
    unsafe fn multiply(
        &self,
        [rows, columns]: [usize; 2],
        &[output, left, right]: &[usize; 3],
        scratch: &mut Scratch,
    ) {
        let is_direct = !self.multiplier.by_rows
            && self.left.is_direct()
            && self.right.is_direct()
            && self.output.convert.is_none()
            && self.narrow.is_none()
            && self.target.iter().all(|stride| stride % self.working as isize == 0);
        if is_direct {
            let block = Block {
                rows,
                terms: self.terms,
                columns,
                left: self.left.place(left, [0, 0]),
                right: self.right.place(right, [0, 0]),
                output: place(output, self.target, [0, 0]),
                update: Update::Replace,
            };
            // SAFETY: passed on to the caller.
            return unsafe { (self.multiplier.run)(&block) };
        }
        let side = (BUFFER / self.largest).isqrt();
        for row in (0..rows).step_by(side) {
            for column in (0..columns).step_by(side) {
                let extent = [side.min(rows - row), side.min(columns - column)];
                let to = place(output, self.target, [row, column]);
                let at = [self.left.place(left, [row, 0]), self.right.place(right, [0, column])];
                // SAFETY: a block of the matrices, which fits the buffers.
                unsafe { self.block(extent, at, to, side, scratch) };
            }
        }
    }

    /// Computes a block of the output in a buffer, and stores it.
    ///
    /// # Safety
    /// See [`hal::operation`]; the block has at most `side` rows and columns.
    unsafe fn block(
        &self,
        [rows, columns]: [usize; 2],
        [left, right]: [Place; 2],
        to: Place,
        side: usize,
        scratch: &mut Scratch,
    ) {
        let Scratch { arguments: [one, two, three, four], value, staging, .. } = scratch;
        let sums = Place::packed(value.address(), columns, self.working);
        for term in (0..self.terms.max(1)).step_by(side) {
            let terms = side.min(self.terms - term);
            let mut load = |factor: &Factor<'_>, from: Place, extent: (usize, usize), buffers| {
                let [buffer, wide]: [&mut super::tile::Buffer; 2] = buffers;
                // SAFETY: elements of the operation, which fit the buffers.
                let ready = unsafe {
                    let by_rows = factor.widen.is_none();
                    factor.elements.load(from, extent, by_rows, false, buffer, staging)
                };
                let Some(widen) = factor.widen else {
                    let column = self.working as isize;
                    return Place { address: ready.address, row: ready.row, column };
                };
                let target = wide.address();
                // SAFETY: packed elements of both types, which fit the buffer.
                unsafe { cast::convert(widen, ready.address, target, extent.0 * extent.1) };
                Place::packed(target, extent.1, self.working)
            };
            let first = Place { address: offset(left.address, term, left.column), ..left };
            let second = Place { address: offset(right.address, term, right.row), ..right };
            let block = Block {
                rows,
                terms,
                columns,
                left: load(&self.left, first, (rows, terms), [&mut *one, &mut *two]),
                right: load(&self.right, second, (terms, columns), [&mut *three, &mut *four]),
                output: sums,
                update: if term > 0 { Update::Add } else { Update::Replace },
            };
            // SAFETY: the elements are in contiguous rows; the buffer does not overlap them.
            unsafe { (self.multiplier.run)(&block) };
        }
        let mut from = sums.address;
        if let Some(narrow) = self.narrow {
            from = one.address();
            // SAFETY: packed elements of both types, which fit the buffer.
            unsafe { cast::convert(narrow, sums.address, from, rows * columns) };
        }
        // SAFETY: packed values of a block that fits the buffers.
        unsafe { self.output.store(from, to, (rows, columns), staging) };
    }
}
