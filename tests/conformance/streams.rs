//! Streams and events, and how they order work.

pub(crate) mod events;
pub(crate) mod hazards;
pub(crate) mod host_functions;
pub(crate) mod random_streams;
pub(crate) mod recordings;
pub(crate) mod stream_order;
pub(crate) mod threads;
