//! Tests of the generated source: it exists for every operation, and it computes the correct results on the host
//! and, if available, on a GPU.
//!
//! Both use the same cases, references and tolerances. GPU results must be exact where IEEE 754 defines the result:
//! arithmetic, division, square root, rounding, conversions and integers. The options forbid contraction, and
//! NVRTC's defaults neither flush subnormal numbers nor approximate. Transcendental functions may differ by a few
//! units in the last place, because the device's mathematical functions are not the host's. Real ones are compared
//! within 1e-14, which is 45 units of f64. Complex ones, which combine several functions, are compared within 1e-14
//! for f64 and 4e-6 for f32, which is 34 units, relative to the number or to 1.

#![allow(
    clippy::unwrap_used,
    clippy::type_complexity,
    clippy::needless_range_loop,
    clippy::print_stderr,
    clippy::duplicate_mod,
    reason = "tests fail by panicking, compare arrays index by index, and run twice"
)]

// The name that backends use, whose tests share modules with these.
extern crate gpuarray_codegen as codegen;

#[path = "source/cuda.rs"]
mod cuda;
#[path = "source/gpu.rs"]
mod gpu;
#[path = "source/harness.rs"]
mod harness;
#[path = "source/operations.rs"]
mod operations;
#[path = "source/text.rs"]
mod text;

/// The cases, run on the host.
#[path = "source"]
mod on_host {
    use crate::harness::run;
    fn takes_all() -> bool {
        true
    }
    mod bfloat16;
    mod complex;
    mod edges;
    mod elementwise;
    mod functions;
    mod movement;
    mod moves;
    mod packs;
    mod product;
    mod sort;
    mod structure;
}

/// The cases of kernels whose threads share memory, with checks that GPUs do not provide. Only some of them: dtypes
/// whose kernels share memory in the same way are only tested with `PYGPU_TEST_ALL`.
#[path = "source"]
mod checked {
    fn takes_all() -> bool {
        std::env::var_os("PYGPU_TEST_ALL").is_some()
    }
    fn run(operations: &[hal::operation::Description]) -> bool {
        crate::harness::run_as(crate::harness::Runs::Checked, operations)
    }
    mod product;
    mod sort;
    mod structure;
}

/// The same cases, run on the GPU.
#[path = "source"]
mod on_gpu {
    use crate::gpu::run;
    fn takes_all() -> bool {
        true
    }
    mod bfloat16;
    mod complex;
    mod edges;
    mod elementwise;
    mod functions;
    mod movement;
    mod moves;
    mod packs;
    mod product;
    mod sort;
    mod structure;
}
