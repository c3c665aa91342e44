//! Sorting of rows, and the indices that sort them.

mod key;
mod plan;
mod source;

pub(super) use key::Key;
pub(super) use plan::plan;
