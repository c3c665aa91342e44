//! Reductions that compare elements with a value of the whole: the mean, the minimum or the maximum. They
//! read the elements twice, first to compute that value. This is cheaper here than the additional state that
//! a single pass would need.

use super::{pass, position};
use crate::pairwise::Cell;
use crate::parallel::Workers;
use crate::strided::stride;
use hal::function::Reduction;
use hal::operation::{Epilogue, Mapped, Operand, Reduce};
use hal::{DType, Error, ErrorKind, Result, Status};

/// A value for each result of a reduction.
struct Values {
    operand: Operand,
    /// The memory of the operand.
    _memory: Vec<Cell>,
}

impl Values {
    /// Computes the values of `reduction` over the operation's elements.
    ///
    /// # Safety
    /// The same as for [`pass`].
    unsafe fn new(
        operation: &Reduce,
        (reduction, compute, epilogue): (Reduction, DType, Epilogue),
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
            epilogue,
        };
        // SAFETY: passed on to the caller; the results have separate memory.
        unsafe { pass(&values, None, workers)? };
        Ok(Values { operand, _memory: memory })
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

/// Sums the squared deviations from the mean.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn deviations(
    operation: &Reduce,
    elements: &Operand,
    workers: &Workers<'_>,
) -> Result<()> {
    let Reduce { compute, shape, output, .. } = operation;
    let reduced = (0..shape.len()).filter(|&axis| stride(&output.strides, axis) == 0);
    let count = reduced.map(|axis| shape[axis]).product::<usize>();
    let mean = (Reduction::Sum, *compute, Epilogue::Quotient(count as f64));
    // SAFETY: the means belong to this call; the rest is passed on to the caller.
    unsafe {
        let means = Values::new(operation, mean, elements, workers)?;
        pass(operation, Some(&means.operand), workers)
    }
}

/// Finds the indices of the first minimum or maximum.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn positions(
    operation: &Reduce,
    elements: &Operand,
    workers: &Workers<'_>,
) -> Result<()> {
    // SAFETY: passed on to the caller.
    if unsafe { position::along_axis(operation, elements, workers) } {
        return Ok(());
    }
    let Reduce { reduction, compute, shape, output, .. } = operation;
    let extreme = (*reduction, *compute, Epilogue::Identity);
    // SAFETY: passed on to the caller.
    let extremes = unsafe { Values::new(operation, extreme, elements, workers)? };
    let reduced = (0..shape.len()).filter(|&axis| stride(&output.strides, axis) == 0);
    let longest = reduced.map(|axis| shape[axis]).max().unwrap_or(1);
    let index = if i32::try_from(longest).is_ok() { DType::Int32 } else { DType::Int64 };
    let first = Reduce { reduction: Reduction::Minimum, compute: index, ..operation.clone() };
    // SAFETY: passed on to the caller.
    unsafe { pass(&first, Some(&extremes.operand), workers) }
}
