//! The key of the kernels of a product of matrices.

use hal::dtype::DType;

/// Everything that changes the code of the kernels of a product of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    pub(super) compute: DType,
    pub(super) left: DType,
    pub(super) right: DType,
    pub(super) output: DType,
    /// In the left matrix, and in the right one, the terms of a sum are nearer to one another than
    /// those of different sums.
    pub(super) along_terms: [bool; 2],
    /// Rows and columns of a thread; a tile has 16 times as many.
    pub(super) thread: [u8; 2],
    /// Parts of each sum are added by a second kernel.
    pub(super) split: bool,
    /// The class of the number of axes before those of the matrices, and whether indices over them
    /// need 64 bits.
    pub(super) rank: u8,
    pub(super) wide: bool,
}
