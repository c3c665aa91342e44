//! Gather and scatter.

mod plan;

pub(super) use plan::{GatherKey, ScatterKey, plan_gather, plan_scatter};
