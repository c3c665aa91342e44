//! Gather and scatter.

mod key;
mod plan;
mod source;

pub(super) use key::{GatherKey, ScatterKey};
pub(super) use plan::{plan_gather, plan_scatter};
