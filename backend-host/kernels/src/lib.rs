//! Builtin operations in native Rust.
//!
//! An operation runs as loops over contiguous elements (`multiversion`), one for each function and
//! element type; what is not contiguous or of another type passes through small buffers
//! (`tile`). Nothing here allocates memory of an operand's size, and no result depends on
//! the number of threads.

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
mod divisor;
mod elementwise;
mod exponent;
mod float;
mod indexed;
mod integer;
mod kernel;
mod math;
mod merge;
mod mixed;
mod multiversion;
mod neighbour;
mod nonzero;
mod number;
mod pairwise;
mod parallel;
mod power;
mod product;
mod random;
mod reduce;
mod reduce_input;
mod saturate;
mod scan;
mod sequence;
mod sort;
mod strided;
mod sums;
mod tile;
mod unary;

use hal::operation::{Description, Operation};
use hal::{Error, Result};
use rayon_core::ThreadPool;
use std::sync::Arc;

/// Executes an operation before it returns.
///
/// `pool` is asked for threads only if there is enough work for several; without an answer
/// the calling thread does everything. The result is the same.
///
/// # Errors
/// `Unsupported` for a function that this backend does not have. Nothing has been written then.
///
/// # Safety
/// The operation must be as [`hal::operation`] describes: every element that shapes and
/// strides reach is valid and aligned, the output's elements are not used by others
/// meanwhile, and they are disjoint from the inputs' unless they are the very same ones.
pub unsafe fn execute(
    operation: &Operation,
    pool: &(dyn Fn() -> Option<Arc<ThreadPool>> + Sync),
) -> Result<()> {
    let workers = parallel::Workers::new(pool);
    // SAFETY: passed on to the caller.
    unsafe {
        match operation.description() {
            Description::Elementwise(operation) => elementwise::run(operation, &workers),
            Description::Reduce(operation) => reduce::run(operation, &workers),
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

/// Single loops and conversions for the tests of this crate; no part of its interface.
#[doc(hidden)]
pub mod loops {
    pub use super::cast::conversion;
    pub use super::divide::kernel as integer_division;
    pub use super::exponent::Parts;
    pub use super::kernel::{Kernel, kernel};
    pub use super::saturate::Saturate;
}

#[cold]
fn unsupported(what: String) -> Error {
    Error::unsupported("execute", format!("the host backend does not have {what}"))
}
