//! Races, and barriers.

use super::{Arrays, ORDER, found, load, pointer, run};
use host_executor::{Checking, Error, FailureKind, Kernel, Shape};

#[test]
fn races_in_a_block_are_found() {
    let library = load(
        r#"
extern "C" __global__ void shift(int *a, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (n) __syncthreads();
    a[blockIdx.x * 64 + threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
extern "C" __global__ void shift_in_warp(int *a, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (n) __syncwarp(); else __shfl_sync(~0u, 1, 0);
    a[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void beyond_warp(int *a, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    a[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x ^ n];
}
extern "C" __global__ void read_then_write(int *a, int n) {
    int *mine = a + blockIdx.x * 64;
    int v = mine[(threadIdx.x + 1) % 64];
    if (n) __syncthreads();
    mine[threadIdx.x] = v;
}
extern "C" __global__ void bytes(int *a, int n) {
    unsigned char *b = (unsigned char *)(a + blockIdx.x * 64);
    b[threadIdx.x] = 1;
    b[threadIdx.x + 64 - n] = 2;
}
extern "C" __global__ void counted(int *a, int n) {
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    if (n) __barrier_sync_count(1, 64);
    a[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x % 32];
}
extern "C" __global__ void returned(int *a, int n) {
    int *mine = a + blockIdx.x * 64;
    mine[threadIdx.x] = 1;
    if (threadIdx.x > 5) return;
    if (n) __syncthreads();
    mine[threadIdx.x] += mine[63 - threadIdx.x];
}
"#,
    );
    let mut array = vec![1; 128];
    let mut run = |name, number| run(&library, name, (2, 64), &mut array, number, ORDER);
    let kind = FailureKind::Race;
    assert_eq!(run("shift", 1), None);
    let texts = [
        "failed in block (0, 0, 0): thread (1, 0, 0) writes 4 bytes in kernel.cu:4, in a race with a \
         read by thread (0, 0, 0) in kernel.cu:6: address 0x",
        "offset 4 of the 256 bytes at",
        "shared memory s",
    ];
    found(run("shift", 0), kind, &texts);
    assert_eq!(run("shift_in_warp", 1), None);
    found(run("shift_in_warp", 0), kind, &["in kernel.cu:12", "in kernel.cu:10", "memory s"]);
    assert_eq!(run("beyond_warp", 31), None);
    found(run("beyond_warp", 32), kind, &["thread (32, 0, 0) writes", "by thread (0, 0, 0)"]);
    assert_eq!(run("read_then_write", 1), None);
    let texts = ["thread (1, 0, 0) reads", "kernel.cu:22", "write", "kernel.cu:24", "array a"];
    found(run("read_then_write", 0), kind, &texts[1..]);
    assert_eq!(run("bytes", 0), None);
    found(run("bytes", 1), kind, &["1 byte in kernel.cu:2", "by thread (", "in kernel.cu:2"]);
    assert_eq!(run("counted", 1), None);
    found(run("counted", 0), kind, &["thread (32, 0, 0) reads", "write by thread (0, 0, 0)"]);
    assert_eq!(run("returned", 1), None);
    found(run("returned", 0), kind, &["in kernel.cu:39", "in kernel.cu:42"]);
}

#[test]
fn races_of_blocks_are_found() {
    let library = load(
        r#"
__device__ int done;
__device__ int parts[8], flagged;
__device__ unsigned met;
// The last block adds what all have written.
extern "C" __global__ void last_block(int *a, int n) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x;
        if (n & 1) __threadfence();
        is_last = atomicAdd(&done, 1) == gridDim.x - 1;
    }
    if (n & 2) __syncthreads(); else __syncwarp();
    if (is_last) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
        a[threadIdx.x] = sum;
        if (threadIdx.x == 0) done = 0;
    }
}
// All threads write, and fence; one of them tells it.
extern "C" __global__ void fences_of_all(int *a, int n) {
    a[blockIdx.x * 64 + threadIdx.x] = 1;
    if (n) __threadfence();
    __syncthreads();
    __shared__ bool is_last;
    if (threadIdx.x == 0) is_last = atomicInc(&met, gridDim.x) == gridDim.x - 1;
    __syncthreads();
    if (is_last) a[threadIdx.x] += a[64 + threadIdx.x] + a[128 + threadIdx.x];
    if (is_last && threadIdx.x == 0) met = 0;
}
extern "C" __global__ void flag(int *a, int n) {
    volatile int *flag = &flagged;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        a[0] = 5;
        if (n) __threadfence();
        *flag = 1;
    }
    if (blockIdx.x == 1 && threadIdx.x == 7) {
        while (!*flag) {}
        a[1] = a[0];
        *flag = 0;
    }
}
extern "C" __global__ void counter(int *a, int n) {
    if (n) atomicAdd(a, 1); else a[0] += 1;
}
extern "C" __global__ void mixed(int *a, int n) {
    if (n || blockIdx.x) atomicAdd(a, 1); else a[0] = 1;
}
__device__ int released;
extern "C" __global__ void release(int *a, int n) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) a[0] = 3;
    int order = n ? __NV_ATOMIC_ACQ_REL : __NV_ATOMIC_RELAXED;
    int before = n ? __nv_atomic_fetch_add(&released, 1, __NV_ATOMIC_ACQ_REL)
                   : __nv_atomic_fetch_add(&released, 1, __NV_ATOMIC_RELAXED);
    if (before == 2) { a[1] = a[0]; released = 0; }
}
extern "C" __global__ void neighbour(int *a, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    a[i] = n ? i : a[(i + 64) % 192];
}
"#,
    );
    let mut array = vec![1; 192];
    let mut run = |name, number| run(&library, name, (3, 64), &mut array, number, ORDER);
    let kind = FailureKind::Race;
    assert_eq!(run("last_block", 3), None);
    let texts = [
        "block (2, 0, 0)",
        "reads 4 bytes in kernel.cu:16",
        "of block (0, 0, 0) in kernel.cu:9",
        "parts",
    ];
    found(run("last_block", 2), kind, &texts);
    assert_eq!(run("fences_of_all", 1), None);
    found(run("fences_of_all", 0), kind, &["kernel.cu:29", "kernel.cu:23", "array a"]);
    assert_eq!(run("flag", 1), None);
    found(run("flag", 0), kind, &["thread (7, 0, 0) reads", "of block (0, 0, 0) in kernel.cu:35"]);
    assert_eq!(run("counter", 1), None);
    found(run("counter", 0), kind, &["thread (1, 0, 0)", "thread (0, 0, 0) in kernel.cu:4"]);
    assert_eq!(run("mixed", 1), None);
    found(run("mixed", 0), kind, &["write", "kernel.cu:49"]);
    assert_eq!(run("release", 1), None);
    found(run("release", 0), kind, &["block (2, 0, 0)", "in kernel.cu:54"]);
    assert_eq!(run("neighbour", 1), None);
    found(run("neighbour", 0), kind, &["block (1, 0, 0)", "of block (0, 0, 0)", "kernel.cu:62"]);
}

#[test]
fn threads_at_different_barriers_are_found() {
    let library = load(
        r#"
__device__ void meet() { __syncthreads(); }
extern "C" __global__ void branches(int *a, int n) {
    if (n && threadIdx.x % 2)
        __syncthreads();
    else
        __syncthreads();
}
extern "C" __global__ void loops(int *a, int n) {
    for (int i = 0; i < 3 + n; ++i) __syncthreads();
    if (n == 0 || threadIdx.x < 32)
        for (int i = 0; i < 2; ++i) meet();
    else
        for (int i = 0; i < 2; ++i) __syncthreads();
    if (threadIdx.x % 3 == 0) return;
    __syncthreads();
    __syncthreads_count(1);
}
"#,
    );
    let mut array = vec![1; 64];
    let mut run = |name, number| run(&library, name, (2, 64), &mut array, number, ORDER);
    assert_eq!(run("branches", 0), None);
    let kind = FailureKind::Divergence;
    let texts = [
        "block (0, 0, 0)",
        "thread (1, 0, 0) waits at the barrier in kernel.cu:5",
        "thread (0, 0, 0) at that in kernel.cu:7",
    ];
    found(run("branches", 1), kind, &texts);
    assert_eq!(run("loops", 0), None);
    found(run("loops", 1), kind, &["thread (32, 0, 0)", "kernel.cu:14", "kernel.cu:2"]);
}

#[test]
fn blocks_of_a_cooperative_launch_are_ordered_by_their_barriers() {
    let library = load(
        r#"
#include <cooperative_groups.h>
__device__ int arrived;
extern "C" __global__ void turn(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    a[i] = i;
    if (n == 1) cooperative_groups::this_grid().sync();
    if (n == 2) {
        // A barrier of the program's own.
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd(&arrived, 1);
            while (*(volatile int *)&arrived < gridDim.x) {}
        }
        __syncthreads();
    }
    int v = a[all - 1 - i];
    if (n == 1) cooperative_groups::this_grid().sync();
    if (n <= 1) a[i] = v;
}
"#,
    );
    let kernel = Kernel::find(&library, "turn").expect("the kernel");
    let mut array = vec![0; 96];
    let mut launch = |mut number: i32| {
        let range = array.as_ptr_range();
        let memory = Arrays(vec![(range.start as usize..range.end as usize, "a")]);
        let checking = Checking { checks: ORDER, memory: &memory, shared_bytes: 0 };
        let mut address = array.as_mut_ptr();
        let arguments = [pointer(&mut address), pointer(&mut number)];
        let shape = Shape { grid: [3, 1, 1], block: [32, 1, 1], cooperative: true };
        // SAFETY: the kernel takes a pointer and a number.
        let result = unsafe { kernel.launch_checked(&shape, &checking, &arguments, &|| false) };
        (result, array.clone())
    };
    let (result, found_values) = launch(1);
    result.expect("no fault");
    assert!(found_values.iter().rev().copied().eq(0..96));
    launch(2).0.expect("no fault");
    let Err(Error::Kernel(failure)) = launch(0).0 else { panic!("it runs") };
    found(
        Some((failure.kind, failure.message)),
        FailureKind::Race,
        &["kernel.cu:6", "kernel.cu:18"],
    );
}
