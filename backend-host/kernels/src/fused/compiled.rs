//! Loops that a C++ compiler has made from a whole formula.

use super::loops::{Operands, for_each_row, last_stride};
use crate::copy::pointer;
use hal::operation::{Input, Shape};
use smallvec::SmallVec;

/// A compiled loop. It receives the addresses of the arrays, inputs first, the addresses of the numbers, and the number
/// of elements.
pub type RowFunction = unsafe extern "C" fn(*const *mut u8, *const *const u8, u64);

/// The fewest elements of a row for which the loop is called.
const FEWEST: usize = 32;

/// A formula as one loop along the last axis, for arrays with certain strides.
#[derive(Clone, Debug)]
pub struct CompiledRow {
    run: RowFunction,
    strides: SmallVec<[isize; 8]>,
}

impl CompiledRow {
    /// Returns a loop for arrays with these last strides in bytes, inputs first.
    ///
    /// # Safety
    /// The function computes the formula of each operation that the loop is [passed with](crate::execute_with), with the bits
    /// of its steps. It stays loaded, and any thread may call it.
    pub unsafe fn new(run: RowFunction, strides: impl IntoIterator<Item = isize>) -> CompiledRow {
        CompiledRow { run, strides: strides.into_iter().collect() }
    }

    /// Returns true if the loop can compute a piece.
    pub(super) fn fits(&self, piece: &Shape, operands: &Operands) -> bool {
        piece.last().is_some_and(|&columns| columns >= FEWEST)
            && operands.arrays().map(last_stride).eq(self.strides.iter().copied())
    }

    /// Computes a piece.
    ///
    /// # Safety
    /// See [`hal::operation`]; the loop is for the operands.
    pub(super) unsafe fn run(&self, piece: &Shape, operands: &Operands) {
        let Some((&columns, outer)) = piece.split_last() else { return };
        let numbers = operands.inputs.iter().filter_map(|input| match input {
            Input::Scalar(scalar) => Some(scalar.bytes().as_ptr()),
            Input::Array(_) => None,
        });
        let numbers: SmallVec<[*const u8; 4]> = numbers.collect();
        let computed = for_each_row(outer, operands, |addresses| {
            let arrays: SmallVec<[*mut u8; 8]> =
                addresses.iter().map(|&address| pointer(address)).collect();
            // SAFETY: passed on to the caller.
            unsafe { (self.run)(arrays.as_ptr(), numbers.as_ptr(), columns as u64) };
            Ok(())
        });
        debug_assert!(computed.is_ok(), "the loop cannot fail");
    }
}
