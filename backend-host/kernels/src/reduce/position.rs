//! Positions of extremes along contiguous elements, which are read once.

use crate::blocks::Routine;
use crate::combine::{self, Combiner};
use crate::copy::pointer;
use crate::function;
use crate::pairwise::Cell;
use crate::parallel::Workers;
use crate::reduce_input::first_flag;
use crate::strided::{for_each, offset, stride, widest, without};
use hal::DType;
use hal::function::{BinaryFunction, Function};
use hal::operation::{Operand, Reduce};

/// The number of elements from which the work for few results is divided among threads.
pub(super) const SEGMENTED: usize = 1 << 18;
/// The number of elements of a block. The extremes of blocks tell which block is searched.
const BLOCK: usize = 1024;
/// The number of elements that are searched in one step.
const STEP: usize = 256;

/// The loops that find an extreme element.
struct Search {
    combiner: Combiner,
    equal: Routine,
    /// For types with NaN: the loop that finds NaN.
    differ: Option<Routine>,
    size: usize,
}

/// Finds the indices of the first minimum or maximum along one axis. Returns false if the elements along the axis are
/// not contiguous, or the type has a faster way.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn along_axis(
    operation: &Reduce,
    elements: &Operand,
    workers: &Workers<'_>,
) -> bool {
    let Reduce { reduction, compute, shape, output, .. } = operation;
    let mut reduced =
        (0..shape.len()).filter(|&axis| shape[axis] > 1 && stride(&output.strides, axis) == 0);
    let (Some(axis), None) = (reduced.next(), reduced.next()) else { return false };
    let size = compute.size();
    // A truth value decides as soon as it is found.
    if stride(&elements.strides, axis) != size as isize
        || elements.dtype != *compute
        || *compute == DType::Bool
        || shape.contains(&0)
    {
        return false;
    }
    let find = |function| function::kernel(Function::Binary(function), *compute).map(|it| it.run);
    let (Some(combiner), Some(equal)) =
        (combine::combiner(*reduction, *compute), find(BinaryFunction::Equal))
    else {
        return false;
    };
    let differ = find(BinaryFunction::NotEqual).filter(|_| compute.is_inexact());
    let search = Search { combiner, equal, differ, size };
    let (length, kept) = (shape[axis], without(shape, &[Some(axis)]));
    let strides = [&elements.strides[..], &output.strides[..]];
    let addresses = [elements.address as usize, output.address as usize];
    let write = |[row, result]: [usize; 2], workers: Option<&Workers<'_>>| {
        // SAFETY: passed on to the caller.
        unsafe {
            let index = search.first(row, length, workers);
            pointer(result).cast::<i64>().write(index as i64);
        }
    };
    let axis = widest(&kept);
    if kept[axis] == 1 {
        write(addresses, Some(workers));
        return true;
    }
    let work = kept.iter().product::<usize>().saturating_mul(length + 64);
    workers.split(kept[axis], 1, work, &|range| {
        let mut part = kept.clone();
        part[axis] = range.len();
        let first = [0, 1]
            .map(|operand| offset(addresses[operand], range.start, stride(strides[operand], axis)));
        for_each(&part, &strides, first, |addresses| write(*addresses, None));
    });
    true
}

impl Search {
    /// Returns the index of the first extreme element of a row, or of the first NaN.
    ///
    /// # Safety
    /// The elements must be readable.
    unsafe fn first(&self, row: usize, length: usize, workers: Option<&Workers<'_>>) -> usize {
        let extreme = |block: usize| {
            let mut cell = Cell([0; 16]);
            let start = block * BLOCK;
            let elements = pointer(offset(row, start, self.size as isize));
            // SAFETY: passed on to the caller; a cell holds an element of any type.
            unsafe {
                (self.combiner.whole)(elements, BLOCK.min(length - start), cell.0.as_mut_ptr());
            }
            cell
        };
        let blocks = length.div_ceil(BLOCK);
        let mut best = (0, extreme(0));
        let mut compare = |block, other: Cell| {
            let before = best.1;
            // SAFETY: two elements of the type. Of two equal ones, the result is the first one.
            unsafe { (self.combiner.rows)(best.1.0.as_mut_ptr(), other.0.as_ptr(), 1) };
            if best.1.0 != before.0 {
                best.0 = block;
            }
        };
        let mut cells: Vec<Cell> = Vec::new();
        // Without memory for a cell of each block, this thread does everything.
        let workers = workers.filter(|_| length >= SEGMENTED);
        match workers.filter(|_| cells.try_reserve_exact(blocks).is_ok()) {
            None => (1..blocks).for_each(|block| compare(block, extreme(block))),
            Some(workers) => {
                cells.resize(blocks, Cell([0; 16]));
                let address = cells.as_mut_ptr().expose_provenance();
                workers.split(blocks, 1, length, &|range| {
                    for block in range {
                        let place = offset(address, block, size_of::<Cell>() as isize);
                        // SAFETY: the cell of a block, which only this call writes.
                        unsafe { pointer(place).cast::<Cell>().write(extreme(block)) };
                    }
                });
                cells
                    .into_iter()
                    .enumerate()
                    .skip(1)
                    .for_each(|(block, cell)| compare(block, cell));
            }
        }
        let (block, value) = best;
        let start = block * BLOCK;
        let elements = offset(row, start, self.size as isize);
        // SAFETY: a block of the elements.
        start + unsafe { self.find(value, elements, BLOCK.min(length - start)) }
    }

    /// Returns the index of the first element that equals the value, or is NaN if the value is.
    ///
    /// # Safety
    /// There must be this number of readable elements.
    unsafe fn find(&self, value: Cell, elements: usize, length: usize) -> usize {
        let mut flags = [0u8; STEP];
        // No element equals NaN.
        for (run, is_nan) in [(Some(self.equal), false), (self.differ, true)] {
            let Some(run) = run else { break };
            for start in (0..length).step_by(STEP) {
                let number = STEP.min(length - start);
                let x = pointer(offset(elements, start, self.size as isize)).cast_const();
                let (y, repeated) =
                    if is_nan { (x, 0) } else { (value.0.as_ptr(), u32::from(number > 1) << 1) };
                // SAFETY: passed on to the caller; one byte for each element.
                unsafe { run.call(flags.as_mut_ptr(), &[x, y, x, y], repeated, number) };
                if let Some(place) = first_flag(&flags[..number]) {
                    return start + place;
                }
            }
        }
        0
    }
}
