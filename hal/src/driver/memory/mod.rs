//! A device's memory: the driver's pool, and in front of it the streams' lists of freed blocks.

pub(super) mod free_list;
pub(super) mod pool;
