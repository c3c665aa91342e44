//! Random numbers.

mod key;
mod plan;
mod source;

pub(super) use key::Key;
pub(super) use plan::plan;
