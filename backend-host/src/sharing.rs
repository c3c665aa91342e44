//! Objects that the processes of one user can share: blocks of plain memory, and events.

pub(crate) mod event;
pub(crate) mod handle;
pub(crate) mod process;
pub(crate) mod segment;
