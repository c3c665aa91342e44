//! The key of the kernels of a scan: dtypes and how rows are shared among threads.

use hal::dtype::DType;
use hal::function::Reduction;

/// How rows are shared among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Method {
    /// A thread for each row.
    Threads,
    /// A block for each row.
    Blocks,
    /// Totals of chunks, their scan, then a thread for each chunk.
    ThreadChunks,
    /// A block for each tile, which takes what precedes it from the blocks before it.
    Tiles,
}

/// Everything that changes the code of the kernels of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    pub(super) reduction: Reduction,
    pub(super) compute: DType,
    pub(super) input: DType,
    pub(super) output: DType,
    pub(super) exclusive: bool,
    pub(super) method: Method,
    /// Elements are neighbours along the axis, in both arrays.
    pub(super) dense: bool,
    pub(super) rank: u8,
    pub(super) wide: bool,
}
