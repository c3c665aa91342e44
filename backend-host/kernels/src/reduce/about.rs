//! Reductions that compare elements with a value of all: their mean, or the least or greatest. They read
//! the elements twice, first to find those values, which costs less here than what a single pass has to
//! carry along.

use super::pass;
use crate::elementwise;
use crate::pairwise::Cell;
use crate::parallel::Workers;
use crate::strided::{count, stride};
use hal::function::{BinaryFunction, Function, Reduction};
use hal::operation::{Elementwise, Input, Mapped, Operand, Reduce, Shape};
use hal::{DType, Error, ErrorKind, Result, Scalar, Status};

/// A value for each result of a reduction.
struct Values {
    operand: Operand,
    /// What the operand is about.
    _memory: Vec<Cell>,
}

impl Values {
    /// Those that `reduction` makes of the operation's elements.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn new(
        operation: &Reduce,
        (reduction, compute): (Reduction, DType),
        elements: &Operand,
        workers: &Workers<'_>,
    ) -> Result<Self> {
        let Reduce { shape, output, .. } = operation;
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
            input: Mapped::Identity(elements.clone()),
            output: operand.clone(),
        };
        // SAFETY: passed on to the caller; the results have memory of their own.
        unsafe { pass(&values, None, workers)? };
        Ok(Values { operand, _memory: memory })
    }
}

#[cold]
fn no_memory(bytes: usize) -> Error {
    let detail = format!("there are no {bytes} bytes for what elements are compared with");
    let status = Status::host(Status::OUT_OF_MEMORY);
    Error::new(ErrorKind::OutOfMemory, status, "reduce", detail)
}

/// Sums of the squares of deviations from the mean.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn deviations(
    operation: &Reduce,
    elements: &Operand,
    workers: &Workers<'_>,
) -> Result<()> {
    let Reduce { compute, shape, output, .. } = operation;
    let is_kept = |axis: usize| stride(&output.strides, axis) != 0;
    let extents = |kept: bool| -> Shape {
        let along = |axis: usize| if is_kept(axis) == kept { shape[axis] } else { 1 };
        (0..shape.len()).map(along).collect()
    };
    // SAFETY: passed on to the caller.
    let means = unsafe { Values::new(operation, (Reduction::Sum, *compute), elements, workers)? };
    let divide = Elementwise {
        function: Function::Binary(BinaryFunction::Divide),
        compute: *compute,
        shape: extents(true),
        inputs: [
            Input::Array(means.operand.clone()),
            Input::Scalar(Scalar::new(count(&extents(false)) as f64).cast(*compute)?),
        ]
        .into_iter()
        .collect(),
        output: means.operand.clone(),
    };
    // SAFETY: the means are this call's own; the rest is passed on to the caller.
    unsafe {
        elementwise::run(&divide, workers)?;
        pass(operation, Some(&means.operand), workers)
    }
}

/// Indices of the first of the least or greatest elements.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn positions(
    operation: &Reduce,
    elements: &Operand,
    workers: &Workers<'_>,
) -> Result<()> {
    let Reduce { reduction, compute, shape, output, .. } = operation;
    // SAFETY: passed on to the caller.
    let extremes = unsafe { Values::new(operation, (*reduction, *compute), elements, workers)? };
    let reduced = (0..shape.len()).filter(|&axis| stride(&output.strides, axis) == 0);
    let longest = reduced.map(|axis| shape[axis]).max().unwrap_or(1);
    let index = if i32::try_from(longest).is_ok() { DType::Int32 } else { DType::Int64 };
    let first = Reduce { reduction: Reduction::Minimum, compute: index, ..operation.clone() };
    // SAFETY: passed on to the caller.
    unsafe { pass(&first, Some(&extremes.operand), workers) }
}
