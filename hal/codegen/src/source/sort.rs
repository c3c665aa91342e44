//! Sorting of rows, and the indices that sort them: by merges, or long rows digit by digit.

mod merge;
mod radix;
mod source;

/// Adds the launches of a sort and returns the key of their kernels.
pub(super) fn plan(operation: &Sort, launches: &mut Launches) -> Key {
    if radix::takes(operation) {
        radix::plan(operation, launches)
    } else {
        merge::plan(operation, launches)
    }
}

use crate::source::launches::Launches;
use hal::dtype::DType;
use hal::operation::Sort;

/// How rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// Tiles in shared memory, then merges of runs.
    Merge,
    /// A pass for each digit of eight bits; counts and indices have 64 bits if `wide`, else 32.
    Radix { wide: bool },
}

/// Everything that changes the code of the kernels of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    dtype: DType,
    /// The result is the indices of the elements.
    indices: bool,
    method: Method,
}
