//! Array tests: a file for each kind of operation.

pub(crate) mod dtypes;
pub(crate) mod elementwise;
pub(crate) mod expressions;
pub(crate) mod functions;
pub(crate) mod indexed;
pub(crate) mod random_expressions;
pub(crate) mod reductions;
pub(crate) mod sorting;
pub(crate) mod typed;
pub(crate) mod views;
