//! Element-wise operations.

mod expression;
mod key;
mod plan;
mod source;
mod tiled_source;
mod tiles;

pub(super) use key::Key;
pub(super) use plan::plan;
