//! Reductions.

mod key;
mod partial;
mod plan;
mod readers;
mod source;

pub(super) use key::Key;
pub(super) use plan::plan;
