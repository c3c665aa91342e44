//! Accesses outside of memory, to freed memory, and to memory that has never been written.

use super::{Arrays, ORDER, OTHERS, found, load, pointer, run};
use host_executor::{Checking, Error, FailureKind, Kernel, Shape, fill_uninitialised};

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
    found(
        run(2),
        FailureKind::Address,
        &["frees the block of size 16 at", "again, in kernel.cu:14"],
    );
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
        // SAFETY: the memory belongs to the vector.
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
    let texts = ["thread (0, 0, 0) reads 1 byte", "kernel.cu:8:", "offset 32 of the 96 bytes"];
    found(run("bytes", 32), kind, &texts);
    assert_eq!(run("add", 7), None);
    found(run("add", 8), kind, &["reads 4 bytes", "kernel.cu:10:", "offset 32 of", "array a"]);
    assert_eq!(run("shared", 8), None);
    let texts = ["thread (7, 0, 0) reads 4 bytes", "kernel.cu:15:", "offset 28 of", "memory s"];
    found(run("shared", 7), kind, &texts);
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

/// Constants in functions and templates, in addition to constants at file scope.
#[test]
fn writes_to_constants_are_found_wherever_these_are_declared() {
    let library = load(
        r#"
template <class T> __constant__ T scale = 3;
namespace n { namespace { template <class T, int N> static __constant__ T parts[N] = {1, 2}; } }
template <> __constant__ double scale<double> = 5;
__device__ int plain, others[3];
template <int N> __device__ int row(int i, int n) {
    static __constant__ int values[N] = {N, N + 1}, other;
    if (n == 1) values[i] = n;
    return values[i] + other;
}
struct Table {
    __device__ int at(int i, int n) {
        __constant__ static short values[3] = {4, 5, 6};
        if (n == 2) values[i] = n;
        return values[i];
    }
};
extern "C" __global__ void constants(int *a, int n) {
    static __constant__ int values[3] = {1, 2, 3};
    static int counter = 1;
    auto more = [=](int i) { static __constant__ char c[2] = {7, 8}; if (n == 3) c[i] = n; return c[i]; };
    a[0] = row<2>(1, n) + row<3>(1, 0) + Table().at(1, n) + values[1] + more(1) + counter;
    if (n == 4) values[a[0] & 1] = 1;
    if (n == 5) scale<int> = 1;
    if (n == 6) n::parts<float, 3>[1] = 2;
    if (n == 7) scale<double> = 2;
    plain = others[1] = counter++;
    a[1] = scale<int> + n::parts<float, 3>[1] + (int)scale<double>;
}
"#,
    );
    let mut array = vec![0; 64];
    let mut run = |number| run(&library, "constants", (1, 1), &mut array, number, ORDER);
    assert_eq!(run(0), None);
    for (number, line) in [(1, 8), (2, 14), (3, 21), (4, 23), (5, 24), (6, 25), (7, 26)] {
        let text = format!("of constant memory in kernel.cu:{line}");
        found(run(number), FailureKind::Address, &["thread (0, 0, 0) writes", &text]);
    }
}
