//! Element-wise operations.

mod plan;
mod source;
mod tiled;

pub(super) use plan::{Key, Slot, plan};
