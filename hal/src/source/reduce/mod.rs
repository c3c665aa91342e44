//! Reductions.

mod plan;
mod source;

pub(super) use plan::{Key, plan};
