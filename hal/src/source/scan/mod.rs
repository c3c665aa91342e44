//! Scans.

mod plan;

pub(super) use plan::{Key, plan};
