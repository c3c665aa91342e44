//! The keys of gather and scatter kernels.

use crate::source::kernel_key::InputType;
use hal::dtype::DType;

/// Elements whose index, and then value, a thread reads before it stores the first.
pub(super) const BATCH: u64 = 4;

/// Everything that changes the code of a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct GatherKey {
    pub(super) element: DType,
    pub(super) index: DType,
    pub(super) output: DType,
    pub(super) rank: u8,
    pub(super) wide: bool,
}

/// Everything that changes the code of a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct ScatterKey {
    pub(super) input: InputType,
    pub(super) index: DType,
    pub(super) target: DType,
    pub(super) rank: u8,
    pub(super) wide: bool,
}
