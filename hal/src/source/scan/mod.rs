//! Scans.

mod key;
mod plan;
mod source;

pub(super) use key::Key;
pub(super) use plan::plan;

use super::prelude::Prelude;

/// Returns the functions that scans are made of, in the namespace `gpuarray`, for kernels around an
/// operator of a program's own: `scan_range`, `scan_total` and `Carries`. Blocks have 256 threads.
///
/// An operator is a struct with the type `value` and the static functions `identity()` and
/// `combine(value, value)`, the first of which is the earlier operand.
pub fn scan_functions() -> String {
    Prelude::REDUCE.with(Prelude::SCAN).enclose("")
}
