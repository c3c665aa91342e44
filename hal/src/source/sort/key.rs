//! The key of the kernels of a sort.

use crate::dtype::DType;

/// Everything that changes the code of the kernels of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    pub(super) dtype: DType,
    /// The result is the indices of the elements.
    pub(super) indices: bool,
}
