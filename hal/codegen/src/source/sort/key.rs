//! The key of the kernels of a sort.

use hal::dtype::DType;

/// How rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Method {
    /// Tiles in shared memory, then merges of runs.
    Merge,
    /// A pass for each digit of eight bits; counts and indices have 64 bits if `wide`, else 32.
    Radix { wide: bool },
}

/// Everything that changes the code of the kernels of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    pub(super) dtype: DType,
    /// The result is the indices of the elements.
    pub(super) indices: bool,
    pub(super) method: Method,
}
