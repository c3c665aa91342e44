//! Blocks of plain memory that the processes of one user can share.

pub(crate) mod handle;
pub(crate) mod process;
pub(crate) mod segment;
