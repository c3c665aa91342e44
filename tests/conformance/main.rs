//! The conformance suite: one table of plain functions, run against every backend.
//!
//! `cargo test --test conformance -- [FILTER] [--exact] [--skip TEXT] [--list]`. A test that
//! a backend lacks a capability for is skipped; a backend that cannot be opened is skipped
//! with its reason, unless `GPUARRAY_REQUIRE` (names with commas between) lists it.
//! `GPUARRAY_WITHOUT` lists features whose functions the driver has and that refuse all work;
//! `GPUARRAY_TEST_SECONDS` sets how long one test may take (60).

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod attack;
mod backends;
mod capture_rules;
mod captures;
mod captures_at_once;
mod context;
mod contexts;
mod dtypes;
mod elementwise;
mod errors;
mod events;
mod functions;
mod gate;
mod graphs;
mod harness;
mod hazards;
mod host_functions;
mod identity;
mod indexed;
mod isolated;
mod kept;
mod kernels;
mod launches;
mod memory;
mod modules;
mod other_devices;
mod overlaps;
mod owned_memory;
mod peers;
mod pinned;
mod pitched;
mod pools;
mod programs;
mod random_streams;
mod raw;
mod reductions;
mod reference;
mod renamed;
mod replays;
mod scenarios;
mod shared_captures;
mod sharing;
mod skeleton;
mod sorting;
mod streams;
mod textures;
mod threads;
mod transfers;
mod typed;
mod typed_methods;
mod views;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A process that a test has started.
    if let Some(end) = scenarios::run() {
        return end;
    }
    let tables = [
        ("identity", identity::TESTS),
        ("typed", typed::TESTS),
        ("typed_methods", typed_methods::TESTS),
        ("memory", memory::TESTS),
        ("sorting", sorting::TESTS),
        ("streams", streams::TESTS),
        ("events", events::TESTS),
        ("hazards", hazards::TESTS),
        ("random_streams", random_streams::TESTS),
        ("replays", replays::TESTS),
        ("threads", threads::TESTS),
        ("dtypes", dtypes::TESTS),
        ("elementwise", elementwise::TESTS),
        ("functions", functions::TESTS),
        ("views", views::TESTS),
        ("reductions", reductions::TESTS),
        ("indexed", indexed::TESTS),
        ("transfers", transfers::TESTS),
        ("errors", errors::TESTS),
        ("owned_memory", owned_memory::TESTS),
        ("pitched", pitched::TESTS),
        ("overlaps", overlaps::TESTS),
        ("pinned", pinned::TESTS),
        ("pools", pools::TESTS),
        ("textures", textures::TESTS),
        ("modules", modules::TESTS),
        ("kernels", kernels::TESTS),
        ("launches", launches::TESTS),
        ("graphs", graphs::TESTS),
        ("captures", captures::TESTS),
        ("captures_at_once", captures_at_once::TESTS),
        ("capture_rules", capture_rules::TESTS),
        ("kept", kept::TESTS),
        ("contexts", contexts::TESTS),
        ("shared_captures", shared_captures::TESTS),
        ("sharing", sharing::TESTS),
        ("peers", peers::TESTS),
        ("other_devices", other_devices::TESTS),
        ("host_functions", host_functions::TESTS),
        ("attack", attack::TESTS),
        ("isolated", isolated::TESTS),
    ];
    harness::run(&tables, &backends::BACKENDS)
}
