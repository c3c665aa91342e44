//! The generated source: that it exists for every operation, and that it computes what the
//! operations say, by running it on the host.

#![allow(
    clippy::unwrap_used,
    clippy::type_complexity,
    clippy::needless_range_loop,
    clippy::print_stderr,
    reason = "tests fail by panicking, and compare arrays index by index"
)]

#[path = "source/complex.rs"]
mod complex;
#[path = "source/elementwise.rs"]
mod elementwise;
#[path = "source/harness.rs"]
mod harness;
#[path = "source/movement.rs"]
mod movement;
#[path = "source/operations.rs"]
mod operations;
#[path = "source/structure.rs"]
mod structure;
#[path = "source/text.rs"]
mod text;
