//! Compiles and runs texts of CUDA C. Expected values are computed by hand.

use crate::units::{failure, launch_with, load, pointer, run, shape};
use host_executor::{Error, FailureKind, Kernel, Schedule, Shape};

#[test]
fn plain_kernels_reach_every_thread_once() {
    let library = load(
        r#"
extern "C" __global__ void count(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += i;
}
extern "C" __global__ void axes(int *a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
    a[(z * h + y) * w + x] += 100 * z + 10 * y + x;
}
"#,
    );
    let mut array = vec![1; 100_000];
    run(&library, "count", 100_000_u32.div_ceil(256), 256, &mut array);
    assert!(array.iter().enumerate().all(|(i, &it)| it == i as i32 + 1));
    let kernel = Kernel::find(&library, "axes").expect("the kernel");
    let mut array = vec![0; 6 * 6 * 4];
    let shape = Shape { grid: [3, 2, 2], block: [2, 3, 2], cooperative: false };
    launch_with(&kernel, &shape, &Schedule::default(), &mut array).expect("it runs");
    for (i, &it) in array.iter().enumerate() {
        let (x, y, z) = (i % 6, i / 6 % 6, i / 36);
        assert_eq!(it as usize, 100 * z + 10 * y + x);
    }
}

// Blocks of a row run in one call, until one has a barrier, fails, or the row ends.
#[test]
fn blocks_that_run_in_one_call_are_told_apart() {
    let library = load(
        r#"
extern "C" __global__ void some_wait(int *a) {
    __shared__ int last;
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int i = block * blockDim.x + threadIdx.x;
    if (block % 5 == 3) {
        if (threadIdx.x == blockDim.x - 1) last = block;
        if (block % 2 == 0 || threadIdx.x % 2 == 0) __syncthreads();
        a[i] += last;
    } else {
        a[i] += 2 * block;
    }
}
extern "C" __global__ void fails(int *a) {
    a[blockIdx.y * gridDim.x + blockIdx.x] += 1;
    if (blockIdx.x == 37 && blockIdx.y == 2) __trap();
}
"#,
    );
    let kernel = Kernel::find(&library, "some_wait").expect("the kernel");
    for [x, y, z] in [[1, 1, 1], [40, 1, 1], [7, 9, 3], [1, 50, 2], [300, 2, 1]] {
        let (blocks, threads) = (x * y * z, 6);
        let shape = Shape { grid: [x, y, z], block: [threads, 1, 1], cooperative: false };
        for reversed in [false, true] {
            let schedule = Schedule { reversed, ..Schedule::default() };
            let mut array = vec![1; (blocks * threads) as usize];
            launch_with(&kernel, &shape, &schedule, &mut array).expect("it runs");
            for (i, &it) in array.iter().enumerate() {
                let block = (i / threads as usize) as i32;
                // Only the last thread of a block, and threads that wait for it, are certain to read after
                // all have written.
                let waits = block % 5 == 3;
                if !waits || block % 2 == 0 {
                    assert_eq!(it, 1 + if waits { block } else { 2 * block }, "{i} of {shape:?}");
                }
            }
        }
    }
    let kernel = Kernel::find(&library, "fails").expect("the kernel");
    let shape = Shape { grid: [64, 4, 1], block: [1, 1, 1], cooperative: false };
    let mut array = vec![0; 256];
    let error =
        launch_with(&kernel, &shape, &Schedule::default(), &mut array).expect_err("it fails");
    assert!(error.to_string().contains("in block (37, 2, 0)"), "{error}");
    assert!(array.iter().all(|&it| it <= 1) && array[2 * 64 + 37] == 1);
}

#[test]
fn an_index_may_be_too_large_for_a_signed_number() {
    let library = load(
        r#"
extern "C" __global__ void ends(int *a) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    a[threadIdx.x] = j < 0 ? (int)(i >> 1) : -1;
    if (threadIdx.x == blockDim.x - 1) __trap();
}
"#,
    );
    let kernel = Kernel::find(&library, "ends").expect("the kernel");
    // The last block runs first, and ends the launch.
    let schedule = Schedule { reversed: true, ..Schedule::default() };
    let (mut array, blocks) = (vec![0; 1024], (1 << 21) + 3);
    let (mut address, none) = (array.as_mut_ptr(), || None);
    let arguments = [pointer(&mut address)];
    // SAFETY: the kernel takes a pointer to one number per thread of a block.
    let result = unsafe { kernel.launch(&shape(blocks, 1024), &schedule, &arguments, &none) };
    assert!(result.is_err());
    let first = i64::from(blocks - 1) * 1024;
    assert!(array.iter().zip(first..).all(|(&it, index)| i64::from(it) == index >> 1));
}

#[test]
fn barriers_order_the_threads_of_a_block() {
    let library = load(
        r#"
__device__ void twice(int *t) {
    __syncthreads();
    int other = t[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    t[threadIdx.x] = other;
}
template <class T> __device__ T turned(T value) {
    __shared__ T t[1024];
    t[threadIdx.x] = value;
    __syncthreads();
    return t[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void rotate(int *a) {
    extern __shared__ int t[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[threadIdx.x] = a[i];
    for (int k = 0; k < 3; ++k) twice(t);
    a[i] = turned(t[threadIdx.x]);
}
extern "C" __global__ void sum(int *a, int n) {
    __shared__ int t[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[threadIdx.x] = i < n ? a[i] : 0;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) t[threadIdx.x] += t[threadIdx.x + half];
    }
    if (threadIdx.x == 0) a[blockIdx.x * blockDim.x] = t[0];
}
// Threads that return early, and barriers under conditions that are the same for all.
extern "C" __global__ void early(int *a) {
    __shared__ int t;
    if (threadIdx.x % 3 == 1) return;
    if (threadIdx.x == 0) t = blockIdx.x + 1;
    __syncthreads();
    a[blockIdx.x * blockDim.x + threadIdx.x] = t;
    if (blockIdx.x % 2) { __syncthreads(); a[blockIdx.x * blockDim.x + threadIdx.x] += 1000; }
}
"#,
    );
    let original: Vec<i32> = (0..16 * 96).collect();
    let mut array = original.clone();
    run(&library, "rotate", 16, 96, &mut array);
    for (i, &it) in array.iter().enumerate() {
        let (block, thread) = (i / 96, i % 96);
        assert_eq!(it as usize, block * 96 + (95 - thread + 3) % 96);
    }
    let mut array = original.clone();
    run(&library, "sum", 6, 256, &mut array);
    for block in 0..6 {
        let expected: i32 = original[block * 256..][..256].iter().sum();
        assert_eq!(array[block * 256], expected);
    }
    let mut array = vec![-1; 40 * 50];
    run(&library, "early", 40, 50, &mut array);
    for (i, &it) in array.iter().enumerate() {
        let (block, thread) = (i as i32 / 50, i as i32 % 50);
        let expected = if thread % 3 == 1 { -1 } else { block + 1 + block % 2 * 1000 };
        assert_eq!(it, expected);
    }
}

#[test]
fn warps_meet_by_masks_and_by_places() {
    let library = load(
        r#"
struct Shuffle { int value, from, result; };
static void combine(void *const *records, gpuarray_abi::Lanes lanes) {
    for (int lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        Shuffle *own = static_cast<Shuffle *>(records[lane]);
        own->result = lanes >> own->from & 1 ? static_cast<Shuffle *>(records[own->from])->value : -1;
    }
}
__device__ int shuffle(gpuarray_abi::Lanes lanes, int value, int from) {
    Shuffle it = {value, from, 0};
    gpuarray_abi::rendezvous(lanes, &it, combine, __FILE__, __LINE__);
    return it.result;
}
__device__ gpuarray_abi::Lanes active(int line) {
    return gpuarray_abi::rendezvous(0, nullptr, nullptr, __FILE__, line);
}
extern "C" __global__ void rotate(int *a) {
    int i = threadIdx.x, lane = i % 32;
    int left = shuffle(~0u, i, (lane + 1) % 32);
    // Halves diverge, and one of them twice.
    int v = lane < 16 ? shuffle(0xffff, left, lane ^ 1) : shuffle(0xffff0000, left, lane ^ 2);
    if (lane >= 16) v = shuffle(0xffff0000, v, lane ^ 2);
    a[i] = v;
}
extern "C" __global__ void masks(int *a) {
    if (threadIdx.x == 5) return;
    if (threadIdx.x % 2) a[threadIdx.x] = int(active(1)); else a[threadIdx.x] = int(active(2));
    a[32 + threadIdx.x] = int(active(3));
}
extern "C" __global__ void partly(int *a) {
    if (threadIdx.x >= 20) return;
    a[threadIdx.x] = shuffle(~0u, threadIdx.x, (threadIdx.x + 4) % 32);
}
"#,
    );
    let mut array = vec![0; 96];
    run(&library, "rotate", 1, 96, &mut array);
    for (i, &it) in array.iter().enumerate() {
        let (warp, lane) = (i / 32, i % 32);
        let from = if lane < 16 { lane ^ 1 } else { lane };
        assert_eq!(it as usize, warp * 32 + (from + 1) % 32);
    }
    let mut array = vec![0; 64];
    run(&library, "masks", 1, 32, &mut array);
    for lane in (0..32).filter(|&lane| lane != 5) {
        let expected = if lane % 2 == 1 { 0xaaaa_aa8a_u32 } else { 0x5555_5555 };
        assert_eq!((array[lane] as u32, array[32 + lane] as u32), (expected, !(1 << 5)));
    }
    let mut array = vec![0; 20];
    run(&library, "partly", 1, 32, &mut array);
    let expected: Vec<i32> = (0..20).map(|it| if it < 16 { it + 4 } else { -1 }).collect();
    assert_eq!(array, expected);
}

#[test]
fn failures_name_kernel_and_block_and_the_process_lives() {
    let library = load(
        r#"
extern "C" __global__ void stuck(int *a) {
    if (threadIdx.x < 3) { __syncthreads(); }
    else { gpuarray_abi::barrier("other.cu", 7, 0, 3); }
}
extern "C" __global__ void wild(int *a) { if (blockIdx.x == 3) *(volatile int *)8 = 1; }
extern "C" __global__ void traps(int *a, int n) {
    if (threadIdx.x == 2) gpuarray_abi::trap(gpuarray_abi::ASSERT, "a == b", __FILE__, __LINE__);
}
__device__ int deep(volatile int *a, int n) { volatile int big[1000]; big[n % 1000] = n; return n ? deep(a, n + 1) + big[3] : 0; }
extern "C" __global__ void overflows(int *a, int n) { a[0] = deep(a, n); }
template <int bytes> __device__ int waits(volatile int *a, int n) {
    volatile char big[bytes];
    big[n % bytes] = n;
    __syncthreads();
    return n ? waits<bytes>(a, n + 1) + big[3] : 0;
}
extern "C" __global__ void overflows_at_barriers(int *a, int n) { a[0] = waits<48>(a, n); }
extern "C" __global__ void overflows_at_large_frames(int *a, int n) { a[0] = waits<5000>(a, n); }
extern "C" __global__ void alone(int *a) {
    if (threadIdx.x == 1) gpuarray_abi::rendezvous(4, nullptr, nullptr, __FILE__, __LINE__);
}
extern "C" __global__ void halves(int *a) {
    __syncwarp();
    if (threadIdx.x < 20) __syncthreads(); else __syncwarp();
}
extern "C" __global__ void others(int *a) {
    if (threadIdx.x < 20) a[threadIdx.x] = __shfl_sync(~0u, 1, 2);
    else a[threadIdx.x] = __any_sync(~0u, 1);
}
extern "C" __global__ void fine(int *a) { __syncthreads(); a[threadIdx.x] = 7; }
"#,
    );
    for _ in 0..3 {
        let (kind, text) = failure(&library, "halves", 1, 40);
        assert_eq!(kind, FailureKind::Deadlock);
        for part in [
            "threads 0 to 19 wait for a barrier at kernel.cu:25",
            "threads 20 to 31 wait for lanes 0xffffffff of their warp at kernel.cu:25",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let (kind, text) = failure(&library, "others", 1, 32);
        assert_eq!(kind, FailureKind::Deadlock);
        for part in ["threads 0 to 19 wait for lanes", "threads 20 to 31 wait for lanes"] {
            assert!(text.contains(part), "{text}");
        }
        let (kind, text) = failure(&library, "stuck", 4, 8);
        assert_eq!(kind, FailureKind::Deadlock);
        for part in [
            "kernel stuck failed in block (",
            "threads 0 to 2 wait for a barrier at kernel.cu:3",
            "threads 3 to 7 wait for a barrier at other.cu:7",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let (kind, text) = failure(&library, "wild", 5, 8);
        assert_eq!(kind, FailureKind::Address);
        assert!(
            text.contains("kernel wild failed in block (3, 0, 0): an access to address 0x8"),
            "{text}"
        );
        let (kind, text) = failure(&library, "traps", 1, 8);
        assert_eq!(kind, FailureKind::Assert);
        assert!(text.contains("assertion \"a == b\" failed in thread 2 at kernel.cu:8"), "{text}");
        for (name, block) in [
            ("overflows", 1),
            ("overflows_at_barriers", 1),
            ("overflows_at_barriers", 40),
            ("overflows_at_large_frames", 40),
        ] {
            let (kind, text) = failure(&library, name, 1, block);
            assert_eq!(kind, FailureKind::Address, "{text}");
            assert!(text.contains("need more than a stack of 228 KiB"), "{text}");
        }
        let (kind, text) = failure(&library, "alone", 1, 8);
        assert!(
            kind == FailureKind::Deadlock
                && text.contains("the mask is 0x4, without the calling lane 1"),
            "{text}"
        );
        let mut array = vec![0; 8];
        run(&library, "fine", 1, 8, &mut array);
        assert_eq!(array, [7; 8]);
    }
}

#[test]
fn a_cooperative_grid_waits_for_all_blocks() {
    let library = load(
        r#"
extern "C" __global__ void rotate(int *a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int k = 0; k < 5; ++k) {
        int next = a[(i + 1) % n];
        gpuarray_abi::grid_barrier(__FILE__, __LINE__);
        a[i] = next;
        gpuarray_abi::grid_barrier(__FILE__, __LINE__);
    }
}
extern "C" __global__ void fails(int *a) {
    if (blockIdx.x == 1) gpuarray_abi::trap(gpuarray_abi::TRAP, nullptr, __FILE__, __LINE__);
    gpuarray_abi::grid_barrier(__FILE__, __LINE__);
}
"#,
    );
    let kernel = Kernel::find(&library, "rotate").expect("the kernel");
    let mut array: Vec<i32> = (0..7 * 33).collect();
    let together = Shape { cooperative: true, ..shape(7, 33) };
    launch_with(&kernel, &together, &Schedule::default(), &mut array).expect("it runs");
    assert!(array.iter().enumerate().all(|(i, &it)| it as usize == (i + 5) % (7 * 33)));
    let kernel = Kernel::find(&library, "fails").expect("the kernel");
    let error =
        launch_with(&kernel, &together, &Schedule::default(), &mut array).expect_err("it fails");
    assert!(error.to_string().contains("__trap() was called"), "{error}");
    let error = launch_with(&kernel, &shape(7, 33), &Schedule::default(), &mut array);
    assert!(error.is_err());
}

#[test]
fn the_schedule_is_a_setting() {
    let library = load(
        r#"
extern "C" __global__ void fresh(int *a) {
    __shared__ int t[4]; extern __shared__ int d[];
    a[2 * blockIdx.x] = t[1]; a[2 * blockIdx.x + 1] = d[5];
    t[1] = d[5] = 3;
}
static __device__ int next = 0;
extern "C" __global__ void order(int *a) { a[blockIdx.x] = next++; }
"#,
    );
    let kernel = Kernel::find(&library, "fresh").expect("the kernel");
    let schedule = Schedule { fill: Some(0xcd), ..Schedule::default() };
    let mut array = vec![0; 20];
    launch_with(&kernel, &shape(10, 1), &schedule, &mut array).expect("it runs");
    assert_eq!(array, [0xcdcd_cdcd_u32 as i32; 20]);
    let schedule = |bytes| Schedule { dynamic_shared: Some(bytes), ..schedule };
    launch_with(&kernel, &shape(10, 1), &schedule(24), &mut array).expect("it stays inside");
    let error =
        launch_with(&kernel, &shape(10, 1), &schedule(20), &mut array).expect_err("outside");
    let Error::Kernel(failure) = error else { panic!("{error}") };
    assert_eq!(failure.kind, FailureKind::Address);
    assert!(failure.message.contains("behind the 20 bytes"), "{}", failure.message);
    let kernel = Kernel::find(&library, "order").expect("the kernel");
    let schedule = Schedule { reversed: true, ..Schedule::default() };
    let mut array = vec![0; 5];
    let (mut address, none) = (array.as_mut_ptr(), || None);
    let arguments = [pointer(&mut address)];
    // SAFETY: the kernel takes a pointer to five numbers.
    unsafe { kernel.launch(&shape(5, 1), &schedule, &arguments, &none) }.expect("it runs");
    assert_eq!(array, [4, 3, 2, 1, 0]);
}

#[test]
fn threads_launch_at_the_same_time() {
    let library = load(
        r#"
extern "C" __global__ void turn(int *a) {
    __shared__ int t[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    t[63 - threadIdx.x] = a[i];
    __syncthreads();
    a[i] = t[threadIdx.x];
}
"#,
    );
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let library = &library;
            scope.spawn(move || {
                let mut array: Vec<i32> = (0..64 * 50).map(|it| it + thread).collect();
                for _ in 0..20 {
                    run(library, "turn", 50, 64, &mut array);
                }
                assert!(array.iter().enumerate().all(|(i, &it)| it == i as i32 + thread));
            });
        }
    });
}

#[test]
fn kernels_may_have_the_names_of_functions() {
    let names = ["min", "max", "norm", "round", "pow", "y0", "isnan", "conj", "time", "index"];
    let text: String = names
        .iter()
        .zip(1..)
        .map(|(name, it)| {
            format!("extern \"C\" __global__ void {name}(int *a) {{ a[threadIdx.x] += {it}; }}\n")
        })
        .collect();
    let library = load(&text);
    let mut array = vec![0; 4];
    for name in names {
        run(&library, name, 1, 4, &mut array);
    }
    assert_eq!(array, [55; 4]);
    let overloaded = load(
        "__device__ int twice(int x) { return 2 * x; }\n\
         extern \"C\" __global__ void twice(int *a) { a[threadIdx.x] = twice(a[threadIdx.x]); }",
    );
    run(&overloaded, "twice", 1, 4, &mut array);
    assert_eq!(array, [110; 4]);
}

#[test]
fn constructors_of_shared_variables_do_not_run() {
    let library = load(
        r#"
struct One { int value; __device__ One() : value(1) {} __device__ ~One() {} };
extern "C" __global__ void read(int *a) {
    __shared__ One ones[4];
    a[threadIdx.x] = ones[threadIdx.x].value;
}
"#,
    );
    let kernel = Kernel::find(&library, "read").expect("the kernel");
    let schedule = Schedule { fill: Some(7), ..Schedule::default() };
    let mut array = [0; 4];
    launch_with(&kernel, &shape(3, 4), &schedule, &mut array).expect("it runs");
    assert_eq!(array, [0x0707_0707; 4]);
}

/// The results match NVIDIA GPUs, for operands in registers, memory and variables, and the process continues.
#[test]
fn divisions_that_processors_refuse_have_results() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let library = load(
        r#"
__device__ int nothing = 0;
template <typename T> __device__ void divide(int *a, T x, T y) {
    const volatile T by = y;
    a[0] = (int)(T)(x / by);
    a[1] = (int)(T)(x % by);
    a[2] = (int)((long long)(T)(x / by) >> 32);
    a[3] = (int)((long long)(T)(x % by) >> 32);
}
extern "C" {
__global__ void ints(int *a, int n) { divide(a, 0x7fffffff - n, a[5]); }
__global__ void unsigneds(int *a, int n) { divide(a, 7u + n, (unsigned)a[5]); }
__global__ void longs(int *a, int n) { divide(a, -7ll - n, (long long)a[5]); }
__global__ void short_longs(int *a, int n) { divide(a, 7ull + n, (unsigned long long)a[5]); }
__global__ void shorts(int *a, int n) { divide(a, (unsigned short)(9 + n), (unsigned short)a[5]); }
__global__ void bytes(int *a, int n) { divide(a, (signed char)(n - 20), (signed char)a[5]); }
__global__ void least(int *a, int n) { divide(a, (int)0x80000000 + a[5], a[5] - 1); }
__global__ void least_long(int *a, int n) { divide(a, (long long)(1ull << 63) + a[5], (long long)a[5] - 1); }
__global__ void variables(int *a, int n) {
    for (int k = 0; k < 4; ++k) a[k] = (n + k) / nothing;
    for (int k = 0; k < 4; ++k) a[k] &= (n + k) % a[k + 5];
}
__global__ void some(int *a, int n) { if (threadIdx.x < 5) a[threadIdx.x] = 100 / ((int)threadIdx.x - 2); }
}
"#,
    );
    let least = i32::MIN;
    for (name, expected) in [
        ("ints", [-1, -1, -1, -1]),
        ("unsigneds", [-1, -1, 0, 0]),
        ("longs", [-1, -1, -1, -1]),
        ("short_longs", [-1, -1, 0, 0]),
        ("shorts", [65535, 65535, 0, 0]),
        ("bytes", [-1, -1, -1, -1]),
        ("least", [least, 0, -1, 0]),
        ("least_long", [0, 0, least, 0]),
        ("variables", [-1, -1, -1, -1]),
        ("some", [-50, -100, -1, 100]),
    ] {
        let mut array = vec![0; 16];
        run(&library, name, 1, 32, &mut array);
        assert_eq!(array[..4], expected, "{name}");
    }
}
