//! Behaviour that a loop variant has in common with the original kernel: errors and their places, guarded
//! divisions, threads that return, and memory limits.

use crate::units::{launch_with, load, shape};
use host_executor::{Error, Kernel, Schedule, Shape};

const TEXT: &str = r#"
#include <assert.h>
extern "C" {
__global__ void asserts(int *a, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    assert(s[63 - threadIdx.x] != 40);
}
__global__ void traps(int *a, int n) {
    __syncthreads();
    if (threadIdx.x == 7) {
        __trap();
    }
}
__global__ void leaves_memory(int *a, int n) {
    __syncthreads();
    if (threadIdx.x == 9) *(volatile int *)16 = 1;
}
__global__ void divides(int *a, int n) {
    int divisor = a[0];
    __syncthreads();
    a[threadIdx.x] = n / divisor;
}
__global__ void guarded(int *a, int n) {
    __shared__ int s[64];
    const int none = n - 1024;
    s[threadIdx.x] = 5;
    __syncthreads();
    if (none == 0) return;
    int all = 100 / none, own = threadIdx.x % none;
    __syncthreads();
    a[threadIdx.x] = all + own + s[0];
}
__global__ void returns(int *a, int n) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    for (int turn = 0; turn < 1000000000; ++turn) {
        if (t % 5 <= turn) {
            a[t] = turn + s[(t + 4) / 5 * 5];
            return;
        }
        s[t] = turn;
        __syncthreads();
    }
}
__global__ void keeps_much(int *a, int n) {
    int own[64];
    for (int k = 0; k < 64; ++k) own[k] = k * threadIdx.x;
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 64; ++k) sum += own[k];
    a[threadIdx.x] = sum;
}
}
"#;

/// Runs a kernel in both forms, which must have the same result, and returns it.
fn both(name: &str, threads: u32) -> Result<Vec<i32>, String> {
    let kernel = Kernel::find(&load(TEXT), name).expect("the kernel");
    assert!(kernel.has_regions(), "{name}");
    let run = |fibers: bool| {
        let schedule = Schedule { fibers, fill: Some(0), ..Schedule::default() };
        let shape: Shape = shape(1, threads);
        let mut array = vec![0; 1024];
        match launch_with(&kernel, &shape, &schedule, &mut array) {
            Ok(()) => Ok(array),
            Err(Error::Kernel(failure)) => Err(failure.message),
            Err(other) => panic!("{other}"),
        }
    };
    let regions = run(false);
    assert_eq!(regions, run(true), "{name}");
    regions
}

#[test]
fn errors_name_the_same_thread_and_line() {
    let message = both("asserts", 64).expect_err("it fails");
    assert!(message.contains("in thread 23 at kernel.cu:8"), "{message}");
    let message = both("traps", 64).expect_err("it fails");
    assert!(message.contains("in thread 7 at kernel.cu:13"), "{message}");
    both("leaves_memory", 64).expect_err("it fails");
    if cfg!(target_arch = "x86_64") {
        let array = both("divides", 64).expect("as NVIDIA's devices divide");
        assert_eq!(array[..64], [-1; 64]);
    }
}

#[test]
fn what_a_return_guards_is_not_computed() {
    assert_eq!(both("guarded", 64), Ok(vec![0; 1024]));
}

#[test]
fn a_block_ends_with_its_last_thread() {
    let array = both("returns", 1000).expect("it runs");
    let expected = |t: usize| if t < 1000 { t as i32 % 5 } else { 0 };
    let found: Vec<i32> = (0..1024).map(expected).collect();
    assert_eq!(array, found);
}

#[test]
fn a_block_that_keeps_too_much_runs_as_fibres() {
    for threads in [16, 1024] {
        let array = both("keeps_much", threads).expect("it runs");
        let expected = |t: u32| if t < threads { 2016 * t as i32 } else { 0 };
        assert_eq!(array, (0..1024).map(expected).collect::<Vec<_>>());
    }
}
