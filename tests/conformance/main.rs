//! The conformance suite: one table of plain functions that run against every backend.
//!
//! `cargo test --test conformance -- [FILTER] [--exact] [--skip TEXT] [--list]`. A test is skipped
//! if a backend lacks a required capability. A backend that cannot be opened is skipped with its
//! reason, unless `GPUARRAY_REQUIRE` (comma-separated names) lists it. `GPUARRAY_WITHOUT` lists
//! features whose driver functions exist but refuse all work. `GPUARRAY_TEST_SECONDS` sets the time
//! limit of one test (default 60).

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod arrays;
mod backends;
mod captures;
mod context;
mod device;
mod driver_functions;
mod gates;
mod harness;
mod kernels;
mod memory;
mod programs;
mod reference;
mod renamed;
mod scenarios;
mod skeleton;
mod streams;

use std::process::ExitCode;

fn main() -> ExitCode {
    // This process was started by a test.
    if let Some(end) = scenarios::run() {
        return end;
    }
    let tables = [
        ("devices", device::devices::TESTS),
        ("typed", arrays::typed::TESTS),
        ("allocations", memory::allocations::TESTS),
        ("sorting", arrays::sorting::TESTS),
        ("stream_order", streams::stream_order::TESTS),
        ("events", streams::events::TESTS),
        ("hazards", streams::hazards::TESTS),
        ("recordings", streams::recordings::TESTS),
        ("random_streams", streams::random_streams::TESTS),
        ("replays", captures::replays::TESTS),
        ("threads", streams::threads::TESTS),
        ("dtypes", arrays::dtypes::TESTS),
        ("elementwise", arrays::elementwise::TESTS),
        ("expressions", arrays::expressions::TESTS),
        ("random_expressions", arrays::random_expressions::TESTS),
        ("functions", arrays::functions::TESTS),
        ("views", arrays::views::TESTS),
        ("reductions", arrays::reductions::TESTS),
        ("indexed", arrays::indexed::TESTS),
        ("transfers", memory::transfers::TESTS),
        ("errors", device::errors::TESTS),
        ("owned_memory", memory::owned_memory::TESTS),
        ("pitched", memory::pitched::TESTS),
        ("overlaps", memory::overlaps::TESTS),
        ("parts", memory::parts::TESTS),
        ("managed_arrays", memory::managed_arrays::TESTS),
        ("pinned", memory::pinned::TESTS),
        ("pools", memory::pools::TESTS),
        ("textures", kernels::textures::TESTS),
        ("modules", kernels::modules::TESTS),
        ("nvcc", kernels::nvcc::TESTS),
        ("attributes", kernels::attributes::TESTS),
        ("launches", kernels::launches::TESTS),
        ("graphs", captures::graphs::TESTS),
        ("failed_captures", captures::failed_captures::TESTS),
        ("captures_at_once", captures::captures_at_once::TESTS),
        ("capture_rules", captures::capture_rules::TESTS),
        ("captured_memory", captures::captured_memory::TESTS),
        ("contexts", device::contexts::TESTS),
        ("shared_captures", captures::shared_captures::TESTS),
        ("sharing", memory::sharing::TESTS),
        ("peers", memory::peers::TESTS),
        ("other_devices", device::other_devices::TESTS),
        ("host_functions", streams::host_functions::TESTS),
        ("hostile_programs", device::hostile_programs::TESTS),
        ("isolated", device::isolated::TESTS),
    ];
    harness::run(&tables, &backends::BACKENDS)
}
