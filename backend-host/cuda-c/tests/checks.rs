//! Kernels with a fault, each found where it is, and the same kernels without.

mod units;

use cuda_c::{
    Allocation, Checking, Checks, Error, FailureKind, Kernel, Library, Memory, Shape,
    fill_uninitialised,
};
use std::ops::Range;
use std::sync::Arc;
use units::{load_checked as load, pointer};

/// The memory of a test: arrays with a name each, the first of which is freed if its name says so.
#[derive(Default)]
struct Arrays(Vec<(Range<usize>, &'static str)>);

impl Memory for Arrays {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        let live = self.0.iter().filter(|(_, name)| *name != "freed");
        live.map(|(range, _)| range).find(|range| range.contains(&address)).cloned()
    }

    fn nearest(&self, address: usize) -> Option<Allocation> {
        let distance = |range: &Range<usize>| match address {
            _ if address < range.start => range.start - address,
            _ => address.saturating_sub(range.end - 1),
        };
        let (range, name) = self.0.iter().min_by_key(|(range, _)| distance(range))?;
        Some(Allocation {
            range: range.clone(),
            is_live: *name != "freed",
            description: format!("array {name}"),
        })
    }
}

/// All but races, which kernels that are short for a test have.
const OTHERS: Checks = Checks { races: false, ..Checks::ALL };
/// Without uninitialised memory, for kernels that read and write what they are about.
const ORDER: Checks = Checks { uninitialised: false, ..Checks::ALL };

/// Launches a kernel that takes an array and a number; returns what was found.
fn run(
    library: &Arc<Library>,
    name: &str,
    (grid, block): (u32, u32),
    array: &mut [i32],
    number: i32,
    checks: Checks,
) -> Option<(FailureKind, String)> {
    let range = array.as_ptr_range();
    let memory = Arrays(vec![(range.start as usize..range.end as usize, "a")]);
    let checking = Checking { checks, memory: &memory, shared_bytes: 64 };
    let kernel = Kernel::find(library, name).expect("the kernel");
    let (mut address, mut number) = (array.as_mut_ptr(), number);
    let arguments = [pointer(&mut address), pointer(&mut number)];
    let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], cooperative: false };
    // SAFETY: the tests' kernels take a pointer and a number.
    match unsafe { kernel.launch_checked(&shape, &checking, &arguments, &|| false) } {
        Ok(()) => None,
        Err(Error::Kernel(failure)) => Some((failure.kind, failure.message)),
        Err(other) => panic!("{other}"),
    }
}

/// Asserts that a fault is found, of this kind and with these texts in its sentence.
#[track_caller]
fn found(result: Option<(FailureKind, String)>, kind: FailureKind, texts: &[&str]) {
    let (found, message) = result.expect("a fault");
    assert_eq!(found, kind, "{message}");
    for text in texts {
        assert!(message.contains(text), "{text:?} in {message}");
    }
}

#[test]
fn accesses_outside_of_memory_are_found() {
    let library = load(
        r#"
__device__ int table[5];
extern "C" __global__ void behind(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = i;
}
extern "C" __global__ void before(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 4) a[i] = __ldg(a + i - n);
}
extern "C" __global__ void null(int *a, int n) {
    if (threadIdx.x == 3) *(int *)(size_t)(16 * n) = 0;
}
extern "C" __global__ void of_variable(int *a, int n) {
    table[threadIdx.x * n] = 1;
}
extern "C" __global__ void dynamic_shared(int *a, int n) {
    extern __shared__ int s[];
    s[threadIdx.x + n] = 1;
}
extern "C" __global__ void copies(int *a, int n) {
    struct Big { int all[10]; };
    if (threadIdx.x == 1) memcpy(a + n, a, 40);
    if (threadIdx.x == 2) ((Big *)a)[1] = ((Big *)a)[0];
}
"#,
    );
    let mut array = vec![7; 20];
    let mut run = |name, number| run(&library, name, (3, 8), &mut array, number, OTHERS);
    assert_eq!(run("behind", 20), None);
    let texts = [
        "kernel behind failed in block (2, 0, 0)",
        "thread (4, 0, 0) writes 4 bytes outside any live allocation in kernel.cu:6: address 0x",
        ", 0 bytes behind the end of the 80 bytes at",
        "array a",
    ];
    found(run("behind", 21), FailureKind::Address, &texts);
    assert_eq!(run("before", 0), None);
    let texts = ["thread (0, 0, 0) reads 4 bytes", "kernel.cu:10:", "8 bytes before the start"];
    found(run("before", 2), FailureKind::Address, &texts);
    found(run("null", 1), FailureKind::Address, &["thread (3, 0, 0) writes", "address 0x10"]);
    assert_eq!(run("of_variable", 0), None);
    assert_eq!(run("dynamic_shared", 8), None);
    let texts = ["thread (7, 0, 0) writes", "0 bytes behind the end of the 64 bytes", "shared"];
    found(run("dynamic_shared", 9), FailureKind::Address, &texts);
    assert_eq!(run("copies", 10), None);
    let texts = ["thread (1, 0, 0) writes 40 bytes", "kernel.cu:24", "offset 44 of the 80 bytes"];
    found(run("copies", 11), FailureKind::Address, &texts);
}

#[test]
fn accesses_to_freed_memory_are_found() {
    let library = load(
        r#"
extern "C" __global__ void sum(int *a, const int *b) {
    a[threadIdx.x] += b[threadIdx.x];
}
extern "C" __global__ void own_memory(int *a, int n) {
    int *own = (int *)malloc(16);
    for (int i = 0; i < 4; ++i) own[i] = i;
    a[threadIdx.x] = own[3];
    int *other = new int[2];
    other[1] = 1;
    delete[] other;
    free(own);
    if (n == 1) a[0] = own[2];
    if (n == 2) free(own);
    if (n == 3) free(a);
    if (n == 4) a[0] = other[n - 4];
}
"#,
    );
    let (mut a, b) = (vec![1; 8], vec![2; 8]);
    let range = |array: &[i32]| {
        let range = array.as_ptr_range();
        range.start as usize..range.end as usize
    };
    let kernel = Kernel::find(&library, "sum").expect("the kernel");
    let mut launch = |name| {
        let memory = Arrays(vec![(range(&a), "a"), (range(&b), name)]);
        let checking = Checking { checks: OTHERS, memory: &memory, shared_bytes: 0 };
        let (mut a, mut b) = (a.as_mut_ptr(), b.as_ptr());
        let arguments = [pointer(&mut a), pointer(&mut b)];
        let shape = Shape { grid: [1; 3], block: [8, 1, 1], cooperative: false };
        // SAFETY: the kernel takes two pointers.
        unsafe { kernel.launch_checked(&shape, &checking, &arguments, &|| false) }
    };
    launch("b").expect("it runs");
    let Err(Error::Kernel(failure)) = launch("freed") else { panic!("it runs") };
    let texts = [
        "thread (0, 0, 0) reads 4 bytes",
        "of freed memory in kernel.cu:3: address",
        "offset 0 of the 32",
    ];
    found(Some((failure.kind, failure.message)), FailureKind::Address, &texts);
    assert_eq!(a, [3; 8]);
    let mut run = |number| run(&library, "own_memory", (2, 8), &mut a, number, OTHERS);
    assert_eq!(run(0), None);
    found(run(1), FailureKind::Address, &["kernel.cu:13:", "freed memory", "offset 8 of the 16"]);
    found(run(2), FailureKind::Address, &["frees the 16 bytes at", "again, in kernel.cu:14"]);
    found(run(3), FailureKind::Address, &["where no kernel has allocated, in kernel.cu:15"]);
    found(
        run(4),
        FailureKind::Address,
        &["kernel.cu:16:", "freed memory", "offset 0 of the 8 bytes"],
    );
}

#[test]
fn reads_of_memory_that_nobody_has_written_are_found() {
    let library = load(
        r#"
extern "C" __global__ void copy(int *a, int n) {
    int i = threadIdx.x;
    a[16 + i] = a[n + i];
}
extern "C" __global__ void bytes(unsigned char *a, int n) {
    a[2] = 1;
    a[0] = a[2] + a[n];
}
extern "C" __global__ void add(int *a, int n) { atomicAdd(a + n, 1); atomicExch(a + 10, 1); }
extern "C" __global__ void shared(int *a, int n) {
    __shared__ int s[8];
    extern __shared__ short d[];
    if (threadIdx.x < n) s[threadIdx.x] = d[threadIdx.x] = 1;
    a[0] = s[threadIdx.x];
    a[1] = d[threadIdx.x];
}
"#,
    );
    let mut array = vec![0; 24];
    let mut run = |name, number| {
        // SAFETY: the memory is the vector's.
        unsafe { fill_uninitialised(array.as_mut_ptr().cast(), 96) };
        array[..8].fill(5);
        run(&library, name, (2, 8), &mut array, number, OTHERS)
    };
    let kind = FailureKind::Uninitialised;
    assert_eq!(run("copy", 0), None);
    found(
        run("copy", 1),
        kind,
        &["thread (7, 0, 0) reads 4 bytes", "kernel.cu:4:", "offset 32 of"],
    );
    assert_eq!(run("bytes", 31), None);
    let texts = ["thread (0, 0, 0) reads 1 bytes", "kernel.cu:8:", "offset 32 of the 96 bytes"];
    found(run("bytes", 32), kind, &texts);
    assert_eq!(run("add", 7), None);
    found(run("add", 8), kind, &["reads 4 bytes", "kernel.cu:10:", "offset 32 of", "array a"]);
    assert_eq!(run("shared", 8), None);
    let texts = ["thread (7, 0, 0) reads 4 bytes", "kernel.cu:15:", "offset 28 of", "memory s"];
    found(run("shared", 7), kind, &texts);
}

#[test]
fn divisions_by_zero_and_addresses_that_are_not_aligned_are_found() {
    let library = load(
        r#"
extern "C" __global__ void divide(int *a, int n) { a[threadIdx.x] = 10 / (n - (int)threadIdx.x); }
extern "C" __global__ void modulo(unsigned *a, unsigned n) { a[0] = 10u % (n - threadIdx.x); }
extern "C" __global__ void vector(char *a, int n) {
    float4 *v = (float4 *)(a + (16 - (size_t)a % 16) % 16 + n);
    v->x = 1;
}
extern "C" __global__ void integer(char *a, int n) { *(int *)(a + n) = 1; }
extern "C" __global__ void cached(char *a, int n) {
    int v =
        __ldg((const int *)(a + n));
    __stcg((int *)(a + n), v);
}
extern "C" __global__ void atomic(char *a, int n) {
    atomicAdd((unsigned *)(a + n), 1);
    atomicExch((unsigned long long *)a, 1ull);
    atomicCAS((unsigned short *)(a + n), (unsigned short)1, (unsigned short)2);
}
struct __attribute__((packed)) Packed { char kind; volatile int value; };
extern "C" __global__ void packed(Packed *a, int n) { if (threadIdx.x == 0) a->value = n; }
"#,
    );
    let mut array = vec![0; 24];
    let mut run = |name, number| run(&library, name, (1, 8), &mut array, number, OTHERS);
    assert_eq!(run("divide", 8), None);
    let texts = ["thread (5, 0, 0) divides by zero, in kernel.cu:2"];
    found(run("divide", 5), FailureKind::Trap, &texts);
    assert_eq!(run("modulo", 9), None);
    found(run("modulo", 3), FailureKind::Trap, &["thread (3, 0, 0)", "kernel.cu:3"]);
    assert_eq!(run("vector", 16), None);
    let texts = ["thread (0, 0, 0) accesses", "float4", "kernel.cu:6", "no multiple of 16"];
    found(run("vector", 4), FailureKind::Address, &texts);
    assert_eq!(run("integer", 4), None);
    found(run("integer", 2), FailureKind::Address, &["'int'", "kernel.cu:8", "no multiple of 4"]);
    assert_eq!(run("cached", 4), None);
    let texts = ["thread (0, 0, 0) accesses", "in kernel.cu:11", "no multiple of 4"];
    found(run("cached", 6), FailureKind::Address, &texts);
    assert_eq!(run("atomic", 8), None);
    let texts =
        ["accesses 4 bytes at", "by an atomic operation, in kernel.cu:15", "no multiple of 4"];
    found(run("atomic", 9), FailureKind::Address, &texts);
    assert_eq!(run("packed", 4), None);
    let without = Checks { arithmetic: false, ..OTHERS };
    assert_eq!(self::run(&library, "atomic", (1, 8), &mut [0; 24], 9, without), None);
}

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
    found(run("bytes", 1), kind, &["1 bytes in kernel.cu:2", "by thread (", "in kernel.cu:2"]);
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

#[test]
fn accesses_outside_of_static_shared_memory_are_found() {
    let library = load(
        r#"
extern "C" __global__ void one(int *a, int n) {
    __shared__ int s[64];
    s[(int)threadIdx.x + n] = 1;
}
extern "C" __global__ void turns(int *a, int n) {
    __nanosleep(10);
    __nanosleep(n);
}
"#,
    );
    let mut array = vec![1; 64];
    let mut run = |name, number| run(&library, name, (1, 64), &mut array, number, ORDER);
    assert_eq!(run("one", 0), None);
    let texts =
        ["thread (63, 0, 0) writes", "kernel.cu:4:", "0 bytes behind the end of the 256 bytes"];
    found(run("one", 1), FailureKind::Address, &texts);
    found(run("one", 60), FailureKind::Address, &["thread (4, 0, 0) writes", "shared memory s"]);
    let texts =
        ["thread (0, 0, 0) writes", "4 bytes before the start of the 256 bytes", "memory s"];
    found(run("one", -1), FailureKind::Address, &texts);
    assert_eq!(run("turns", 0), None);
}

#[test]
fn constructors_of_variables_run_when_the_unit_is_loaded() {
    let library = load(
        r#"
struct Table {
    int *rows, values[64], copies[64];
    Table() : rows(new int[8]) {
        for (int i = 0; i < 64; ++i) values[i] = i;
        memcpy(copies, values, sizeof values);
        memmove(values + 1, values, 63 * sizeof(int));
        memset(values + 60, 0, 4 * sizeof(int));
        rows[7] = atomicAdd(&values[1], 40);
    }
    ~Table() { delete[] rows; }
};
__device__ Table table;
extern "C" __global__ void read(int *a, int n) {
    a[threadIdx.x] = table.values[threadIdx.x] + 100 * table.copies[threadIdx.x];
}
"#,
    );
    let mut array = vec![0; 64];
    assert_eq!(run(&library, "read", (1, 64), &mut array, 0, Checks::ALL), None);
    let values = [0, 40].into_iter().chain(1..59).chain([0; 4]);
    let expected: Vec<i32> = values.zip(0..).map(|(value, copy)| value + 100 * copy).collect();
    assert_eq!(array, expected);
}

#[test]
fn a_stack_that_overflows_ends_the_launch_wherever_it_does() {
    let library = load(
        r#"
template <int bytes> __device__ int deep(volatile int *a, int n) {
    volatile char big[bytes];
    big[n % bytes] = n;
    __syncthreads();
    return n ? deep<bytes>(a, n + 1) + big[3] : 0;
}
extern "C" __global__ void small(int *a, int n) { a[0] = deep<40>(a, n); }
extern "C" __global__ void large(int *a, int n) { a[0] = deep<3000>(a, n); }
"#,
    );
    for (name, block) in [("small", 1), ("small", 40), ("large", 1), ("large", 40)] {
        let result = run(&library, name, (1, block), &mut [0; 4], 1, OTHERS);
        found(result, FailureKind::Address, &["need more than a stack of 228 KiB"]);
    }
}
