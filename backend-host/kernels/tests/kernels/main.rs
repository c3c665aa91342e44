//! Compares the kernels with a naive interpreter of operations.

mod arrays;
mod bfloat16;
mod blocks;
mod divide;
mod edges;
mod elementwise;
mod exponent;
mod functions;
mod fused;
mod indexed;
mod modulus;
mod naive;
mod power;
mod product;
mod reduce;
mod saturate;
mod scalar;
mod sort;

use gpuarray_host_kernels::execute;
use hal::operation::{Description, Operation};
use hal::{DType, Scalar};
use rayon_core::ThreadPool;
use std::sync::Arc;

fn sealed(operation: &Description) -> Operation {
    Operation::new(operation.clone()).expect("an operation")
}

/// Executes an operation on this thread alone.
fn run(operation: &Description) {
    // SAFETY: the tests make operations on arrays that are alive.
    unsafe { execute(&sealed(operation), &|| None) }.expect("execute");
}

/// Executes an operation with several threads.
fn run_with(operation: &Description, pool: &Arc<ThreadPool>) {
    // SAFETY: the tests make operations on arrays that are alive.
    unsafe { execute(&sealed(operation), &|| Some(pool.clone())) }.expect("execute");
}

fn pool(threads: usize) -> Arc<ThreadPool> {
    Arc::new(rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool"))
}

/// Executes an operation and compares each element of its output with the interpreter's.
fn check(operation: &Description) {
    let expected = naive::values(operation);
    run(operation);
    for (address, expected) in expected {
        let got = arrays::read(address, expected.dtype());
        assert!(close(&got, &expected), "{got:?} instead of {expected:?}\n{operation:?}");
    }
}

/// Returns true if values are equal, or inexact values are close.
fn close(got: &Scalar, expected: &Scalar) -> bool {
    let tolerance = match expected.dtype().real() {
        DType::Float16 => 2e-3,
        DType::BFloat16 => 1.6e-2,
        DType::Float32 => 1e-5,
        DType::Float64 => 1e-11,
        _ => return got == expected,
    };
    let parts = |scalar: &Scalar| {
        let value = scalar.cast(DType::Complex128).expect("number");
        value.get::<hal::Complex<f64>>().expect("complex")
    };
    let near = |x: f64, y: f64, scale: f64| {
        (x.is_nan() && y.is_nan()) || x == y || (x - y).abs() <= tolerance * scale.max(1e-2)
    };
    let (got, expected) = (parts(got), parts(expected));
    let scale = expected.re.abs().max(expected.im.abs());
    near(got.re, expected.re, scale) && near(got.im, expected.im, scale)
}
