//! Builtin operations in native Rust.
//!
//! An operation runs as loops over contiguous elements (`multiversion`), with one loop for each function and
//! element type. Operands that are not contiguous, or have another type, pass through small buffers (`tile`).
//! Only sorts allocate memory of an operand's size, and no result depends on the number of threads.
//!
//! The modules have an order: each names only modules before it, and a test checks this. Types (`number`) and
//! processors (`multiversion`) come first, then `blocks`, `tile`, the functions (`unary`, `binary`), `elementwise`,
//! `fused`, `values`, and last `reduce`.

mod binary;
mod blocks;
mod bodies;
mod cast;
mod combine;
mod complex;
mod convert;
mod copy;
mod direct;
mod divide;
mod elementwise;
mod exponent;
mod float;
mod function;
mod fused;
mod indexed;
mod integer;
mod math;
mod merge;
mod mixed;
mod multiversion;
mod nonzero;
mod number;
mod pairs;
mod pairwise;
mod parallel;
mod power;
mod product;
mod quicksort;
mod random;
mod reduce;
mod reduce_input;
mod saturate;
mod scan;
mod sequence;
mod sort;
mod strided;
mod tile;
mod unary;
mod values;
#[cfg(target_arch = "x86_64")]
mod vector;
mod words;

pub use fused::{CompiledRow, RowFunction};
use hal::Result;
use hal::operation::{Description, Operation};
use rayon_core::ThreadPool;
use std::sync::Arc;

/// Refuses an operation that cannot combine the values of its formula, or takes longer than separate operations. A queued
/// operation cannot tell its caller.
///
/// # Errors
/// `Unsupported`.
pub fn check_worthwhile(operation: &Operation) -> Result<()> {
    match operation.description() {
        Description::Reduce(operation) => reduce::check_worthwhile(operation),
        _ => Ok(()),
    }
}

/// Executes an operation before it returns.
///
/// `pool` is called for threads only if there is enough work for several. If it returns `None`, the calling
/// thread does everything. The result is the same.
///
/// # Errors
/// `Unsupported` for a function that this backend does not support. Nothing has been written then.
///
/// # Safety
/// The operation must satisfy [`hal::operation`]: every element that shapes and strides reach is valid and
/// aligned. No other code uses the output's elements meanwhile. They do not overlap the inputs' elements,
/// unless they are the same elements.
pub unsafe fn execute(
    operation: &Operation,
    pool: &(dyn Fn() -> Option<Arc<ThreadPool>> + Sync),
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe { execute_with(operation, None, pool) }
}

/// Like [`execute`], with a compiled loop of the operation's formula.
///
/// # Errors
/// As for [`execute`].
///
/// # Safety
/// As for [`execute`].
pub unsafe fn execute_with(
    operation: &Operation,
    row: Option<&CompiledRow>,
    pool: &(dyn Fn() -> Option<Arc<ThreadPool>> + Sync),
) -> Result<()> {
    let workers = parallel::Workers::new(pool);
    // SAFETY: passed on to the caller.
    unsafe {
        match operation.description() {
            Description::Elementwise(operation) => elementwise::run(operation, &workers),
            Description::Fused(operation) => fused::run(operation, row, &workers),
            Description::Reduce(operation) => reduce::run(operation, row, &workers),
            Description::Scan(operation) => scan::run(operation, &workers),
            Description::Gather(operation) => {
                indexed::gather(operation, &workers);
                Ok(())
            }
            Description::Scatter(operation) => {
                indexed::scatter(operation);
                Ok(())
            }
            Description::Sequence(operation) => sequence::run(operation, &workers),
            Description::Random(operation) => random::run(operation, &workers),
            Description::Sort(operation) => sort::run(operation, &workers),
            Description::MatrixProduct(operation) => product::run(operation, &workers),
            Description::Nonzero(operation) => {
                nonzero::run(operation, &workers);
                Ok(())
            }
        }
    }
}

/// Single loops and conversions for the tests of this crate. They are not part of its interface.
#[doc(hidden)]
pub mod loops {
    pub use super::blocks::Kernel;
    pub use super::cast::conversion;
    pub use super::divide::kernel as integer_division;
    pub use super::exponent::Parts;
    pub use super::function::kernel;
    pub use super::quicksort::sort_without_vectors;
    pub use super::saturate::Saturate;
}
