//! The conformance suite: one table of plain functions, run against every backend.
//!
//! `cargo test --test conformance -- [FILTER] [--exact] [--skip TEXT] [--list]`. A test that
//! a backend lacks a capability for is skipped; a backend that cannot be opened is skipped
//! with its reason, unless `GPUARRAY_REQUIRE` (names with commas between) lists it.
//! `GPUARRAY_TEST_SECONDS` sets how long one test may take (60).

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod backends;
mod context;
mod elementwise;
mod errors;
mod events;
mod gate;
mod harness;
mod hazards;
mod identity;
mod indexed;
mod memory;
mod modules;
mod reductions;
mod reference;
mod renamed;
mod streams;
mod threads;
mod transfers;
mod views;

use std::process::ExitCode;

fn main() -> ExitCode {
    let tables = [
        ("identity", identity::TESTS),
        ("memory", memory::TESTS),
        ("streams", streams::TESTS),
        ("events", events::TESTS),
        ("hazards", hazards::TESTS),
        ("threads", threads::TESTS),
        ("elementwise", elementwise::TESTS),
        ("views", views::TESTS),
        ("reductions", reductions::TESTS),
        ("indexed", indexed::TESTS),
        ("transfers", transfers::TESTS),
        ("errors", errors::TESTS),
        ("modules", modules::TESTS),
    ];
    harness::run(&tables, &backends::BACKENDS)
}
