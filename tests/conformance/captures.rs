//! Captures and graphs: which calls are recorded or refused, replays, and the memory of both.

pub(crate) mod capture_rules;
pub(crate) mod captured_memory;
pub(crate) mod captures_at_once;
pub(crate) mod failed_captures;
pub(crate) mod graphs;
pub(crate) mod replays;
pub(crate) mod shared_captures;
