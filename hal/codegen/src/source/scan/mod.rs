//! Scans.

mod key;
mod plan;
mod source;

pub(super) use key::Key;
pub(super) use plan::plan;

use super::prelude::Prelude;

/// Returns the functions that scans are made of, in the namespace `gpuarray`, for kernels around an
/// operator of a program's own: `scan_range` for one block, and `clear_state` and `scan_tiles` for an
/// array of many tiles. Blocks have 256 threads.
///
/// An operator is a struct with the type `value` and the static function `combine(value, value)`, the
/// first of which is the earlier operand. It has to be associative, and need not be commutative.
pub fn scan_functions() -> String {
    Prelude::SCAN.enclose("")
}
