//! Products of matrices by tiles in shared memory.

mod key;
mod plan;
mod source;

pub(super) use key::Key;
pub(super) use plan::plan;
