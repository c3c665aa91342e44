//! Programs written before `__syncwarp`, in which the lanes of a warp exchange values through volatile memory:
//! all lanes read, then all write. Expected values are computed by hand.

use crate::units::{launch_with, load, load_checked, load_in, run, shape};
use host_executor::{Kernel, Language, Schedule};

const SUM: &str = r#"
template <unsigned size> __device__ void warp_sum(volatile int *s, unsigned t) {
    if (size >= 64) s[t] += s[t + 32];
    if (size >= 32) s[t] += s[t + 16];
    s[t] = s[t] + s[t + 8];
    s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
extern "C" __global__ void sum(int *a) {
    extern __shared__ int s[];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) warp_sum<64>(s, threadIdx.x);
    __syncthreads();
    a[threadIdx.x] = s[0];
}
extern "C" __global__ void halves(int *a) {
    __shared__ volatile int s[64];
    int mine = s[threadIdx.x] = a[threadIdx.x];
    for (int d = 32; d > 0; d >>= 1) {
        __syncthreads();
        if (threadIdx.x < d) s[threadIdx.x] = mine = mine + s[threadIdx.x + d];
    }
    __syncthreads();
    a[threadIdx.x] = s[0];
}
extern "C" __global__ void scan(int *a) {
    __shared__ int shared[4][48];
    volatile int *s = shared[threadIdx.x / 32];
    const int lane = threadIdx.x % 32, at = lane + 16;
    if (lane < 16) s[lane] = 0;
    s[at] = a[threadIdx.x];
    s[at] += s[at - 1];
    s[at] += s[at - 2];
    int other = s[at - 4];
    s[at] += other;
    s[at] += s[at - 8];
    s[at] += s[at - 16];
    a[threadIdx.x] = s[at];
}
"#;

#[test]
fn qualifiers_stand_in_any_order() {
    for declaration in [
        "__shared__ volatile int s[64]",
        "volatile __shared__ int s[64]",
        "int volatile __shared__ s[64]",
        "volatile __shared__ __align__(16) int s[64]",
        "__shared__ volatile __attribute__((aligned(16))) int s[64]",
        "__shared__ volatile int s[64] __attribute__((aligned(16)))",
        "alignas(8) volatile __shared__ int s[64]",
        "volatile __shared__ int before, s[64], *behind",
        "extern volatile __shared__ int s[]",
        "volatile extern __shared__ int s[]",
    ] {
        let text = format!(
            r#"
extern "C" __global__ void sum(int *a) {{
    {declaration};
    volatile __shared__ int flag __attribute__((aligned(4)));
    const int t = threadIdx.x;
    if (t == 0) flag = 0;
    s[t] = a[t];
    __syncthreads();
    if (t < 32) {{
        s[t] += s[t + 32];
        s[t] += s[t + 16]; s[t] += s[t + 8];
        s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
        if (t == 0) flag = 1;
    }} else {{
        while (!flag) {{}}
    }}
    __syncthreads();
    a[t] = s[0];
}}
"#
        );
        let mut array: Vec<i32> = (0..64).collect();
        run(&load(&text), "sum", 1, 64, &mut array);
        assert_eq!(array, [2016; 64], "{declaration}");
    }
}

#[test]
fn lanes_read_before_one_of_them_writes() {
    for library in [load(SUM), load_checked(SUM)] {
        let mut array: Vec<i32> = (0..64).map(|it| it * it).collect();
        let sum = array.iter().sum();
        for name in ["sum", "halves"] {
            let mut array = array.clone();
            run(&library, name, 1, 64, &mut array);
            assert_eq!(array, [sum; 64], "{name}");
        }
        let mut sums = array.clone();
        for warp in sums.chunks_mut(32) {
            for lane in 1..32 {
                warp[lane] += warp[lane - 1];
            }
        }
        run(&library, "scan", 1, 64, &mut array);
        assert_eq!(array, sums);
    }
}

/// Each kernel adds the 32 numbers of its warp, written in a different form.
const FORMS: &str = r#"
typedef volatile int Volatile;
struct Holder {
    Volatile *s;
    __device__ void sum(int t) {
        this->s[t] += this->s[t + 16], this->s[t] += s[t + 8];
        this->s[t] += this->s[t + 4], this->s[t] += s[t + 2], s[t] += s[t + 1];
    }
};
#define STEP(n) *(s + t) += *(s + t + n);
extern "C" __global__ void sum(int *a) {
    __shared__ int ints[64];
    __shared__ volatile struct { int other, value; } pairs[64], more[64];
    const int t = threadIdx.x;
    auto *v = (Volatile *)ints;
    pairs[t].value = more[t].value = v[t + 32] = 0;
    int mine = v[t] = a[t];
    if (t < 16) {
        Volatile *s = ints;
        STEP(16) STEP(8) STEP(4) STEP(2) STEP(1)
    }
    int result = v[0];
    v[t] = mine;
    if (t < 16)
        for (int d = 16; d; d /= 2)
            mine = ((volatile int *)ints)[t] = mine + ((volatile int *)ints)[t + d];
    result += v[0];
    v[t] = a[t];
    Holder holder = {ints};
    if (t < 16) holder.sum(t);
    result += v[0];
    more[t].value = a[t];
    for (int d = 1; d < 32; d *= 2)
        if (t >= d) more[t].value += more[t - d].value;
    result += more[31].value;
    a[t] = result;
}
extern "C" __global__ void k(int *a) {
    __shared__ volatile int s[2];
    __shared__ int *volatile nothing[1];
    const int t = threadIdx.x;
    const auto put = [&](int i, int value) { s[i] = value; };
    for (int turn = 0; turn < 32; ++turn) {
        if (t == turn) s[0] = a[t];
        if (t < 32 - turn) { if (t == 31 - turn) { put(1, a[t]); nothing[0] = 0; } if (t == 40) s[1] = t; }
        a[t] = (a[t] + s[0] + 2 * s[1] + (nothing[0] != nullptr)) % 1000;
    }
}
"#;

#[test]
fn lanes_exchange_values_in_global_memory() {
    let library = load(
        r#"
extern "C" __global__ void sum(int *a) {
    const int t = threadIdx.x;
    if (t < 32) {
        volatile int *s = a;
        s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8];
        s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
    }
}
__device__ volatile int kept[64];
extern "C" __global__ void sort(int *a) {
    const int t = threadIdx.x, next = t ^ 1;
    kept[t] = a[t];
    if (t < next) {
        const int mine = kept[t], other = kept[next];
        if (mine > other) {
            kept[t] = other;
            kept[next] = mine;
        }
    }
    a[t] = kept[t];
}
extern "C" __global__ void own(int *a) {
    volatile int values[2] = {0, 0};
    for (int i = 0; i < threadIdx.x; ++i) values[i & 1] += a[i];
    __syncthreads();
    a[threadIdx.x] = values[0] + values[1];
}
"#,
    );
    let first: Vec<i32> = (0..64).map(|t| t * 37 % 64).collect();
    let mut array = first.clone();
    run(&library, "sum", 1, 64, &mut array);
    assert_eq!(array[0], 63 * 64 / 2);
    array.clone_from(&first);
    run(&library, "sort", 1, 64, &mut array);
    let pairs = first.chunks(2).flat_map(|it| [it[0].min(it[1]), it[0].max(it[1])]);
    assert_eq!(array, pairs.collect::<Vec<_>>());
    array.clone_from(&first);
    run(&library, "own", 1, 64, &mut array);
    let before = |t: usize| first[..t].iter().sum::<i32>();
    assert_eq!(array, (0..64).map(before).collect::<Vec<_>>());
}

#[test]
fn writes_have_many_forms() {
    for library in [load(FORMS), load_checked(FORMS)] {
        let mut array: Vec<i32> = (0..32).map(|it| it * it).collect();
        let sum: i32 = array.iter().sum();
        run(&library, "sum", 1, 32, &mut array);
        assert_eq!(array, [4 * sum; 32]);
        let mut expected: Vec<i32> = (1..33).collect();
        let mut array = expected.clone();
        for turn in 0..32 {
            let added = expected[turn] + 2 * expected[31 - turn];
            expected.iter_mut().for_each(|it| *it = (*it + added) % 1000);
        }
        run(&library, "k", 1, 32, &mut array);
        assert_eq!(array, expected);
    }
}

#[test]
fn wide_warps_meet_as_a_whole() {
    let library = load_in(Language { warp_size: 64, ..Language::default() }, SUM);
    let mut array: Vec<i32> = (1..=64).collect();
    run(&library, "sum", 1, 64, &mut array);
    assert_eq!(array, [2080; 64]);
}

#[test]
fn other_assignments_and_other_memory_are_as_before() {
    let library = load(
        r#"
struct Pair {
    int a, b;
    __device__ void operator=(const Pair &other) volatile { a = other.a; b = other.b; }
    __device__ void operator=(int both) volatile { a = b = both; }
    __device__ void operator+=(const Pair &other) volatile { a += other.a; b += other.b; }
};
extern "C" __global__ void mixed(int *out) {
    __shared__ volatile Pair pairs[32];
    __shared__ volatile unsigned char bytes[32];
    volatile int *far = out;
    const int t = threadIdx.x;
    pairs[t] = 3;
    pairs[t] = Pair{t, 2 * t};
    pairs[t] += Pair{1, 1};
    bytes[t] = 250;
    bytes[t] += 10; bytes[t]++; bytes[t] <<= 1; bytes[t] ^= 1;
    int local[2] = {0, 0};
    { int *s = local; s[1] = t; s[1] *= 2; }
    far[t] = pairs[t].a + pairs[t].b;
    far[t] += bytes[t] + local[1];
}
extern "C" __global__ void flagged(int *out) {
    __shared__ volatile int flag[1];
    if (threadIdx.x == 0) flag[0] = 7;
    while (flag[0] != 7) {}
    out[threadIdx.x] = flag[0];
}
"#,
    );
    let mut array = vec![0; 32];
    run(&library, "mixed", 1, 32, &mut array);
    // 250 + 10 + 1 is 5 in a byte; then 10, and 11.
    let expected: Vec<i32> = (0..32).map(|t| (t + 1) + (2 * t + 1) + 11 + 2 * t).collect();
    assert_eq!(array, expected);
    let kernel = Kernel::find(&library, "flagged").expect("the kernel");
    launch_with(&kernel, &shape(2, 32), &Schedule::default(), &mut array).expect("it runs");
    assert_eq!(array, [7; 32]);
}

#[test]
fn lanes_meet_however_a_program_says_that_memory_is_volatile() {
    let bodies = [
        ("several", "__shared__ volatile int other[2], b[64];", "b"),
        ("typed", "typedef volatile int V; __shared__ V b[64];", "b"),
        ("cast", "__shared__ int b[64];", "((volatile int *)b)"),
        ("rows", "__shared__ int c[2][64]; volatile int (*b)[64] = c;", "b[1]"),
        ("member", "struct S { volatile int b[64]; }; __shared__ S s;", "s.b"),
        ("guessed", "__shared__ int c[64]; auto b = (volatile int *)c;", "b"),
    ];
    let mut text = String::new();
    for (name, declaration, b) in bodies {
        let steps: String = [16, 8, 4, 2, 1].map(|d| format!("{b}[t] += {b}[t + {d}];")).concat();
        text.push_str(&format!(
            r#"extern "C" __global__ void {name}(int *a) {{
    {declaration}
    const int t = threadIdx.x;
    {b}[t] = a[t]; {b}[t + 32] = 0;
    {steps}
    a[t] = {b}[0];
}}
"#
        ));
    }
    text.push_str(
        r#"
extern "C" __global__ void pointed(int *a) {
    __shared__ int b[64];
    const int t = threadIdx.x;
    volatile int *p = b + t;
    *p = a[t]; *(p + 32) = 0;
    *p += p[16]; *p += p[8]; *p += p[4]; *p += p[2]; *p += p[1];
    a[t] = b[0];
}
extern "C" __global__ void valued(int *a) {
    __shared__ volatile int b[64];
    const int t = threadIdx.x;
    int x = b[t] = a[t];
    b[t + 32] = 0;
    for (int d = 16; d; x = b[t] = x + b[t + d], d /= 2) {}
    a[t] = b[0];
}
"#,
    );
    let library = load(&text);
    let array: Vec<i32> = (0..32).map(|it| it * it).collect();
    for name in bodies.map(|it| it.0).into_iter().chain(["pointed", "valued"]) {
        let mut array = array.clone();
        run(&library, name, 1, 32, &mut array);
        assert_eq!(array, [31 * 32 * 63 / 6; 32], "{name}");
    }
}

#[test]
fn names_of_volatile_memory_may_be_those_of_something_else() {
    let library = load(
        r#"
struct Bits { unsigned a : 4, b : 4; };
struct Twice {
    int *p;
    __device__ void operator=(int value) { *p = 2 * value; }
};
struct Doubled {
    int *p;
    __device__ Twice operator[](int at) { return Twice{p + at}; }
};
__device__ void first(volatile int *s) { s[0] = 1; }
extern "C" __global__ void named(int *out) {
    __shared__ volatile Bits bits[32];
    volatile int *pointers[2];
    const int t = threadIdx.x;
    pointers[0] = 0; pointers[1] = NULL; pointers[1] = out;
    bits[t].a = t; bits[t].b = 1; bits[t].a += 1;
    Doubled s{out};
    s[t] = bits[t].a + bits[t].b + (pointers[0] != nullptr);
}
"#,
    );
    let mut array = vec![0; 32];
    run(&library, "named", 1, 32, &mut array);
    assert_eq!(array, (0..32).map(|t| 2 * ((t + 1) % 16 + 1)).collect::<Vec<i32>>());
}

#[test]
fn a_thread_that_waits_for_another_one_lets_it_run() {
    let library = load(
        r#"
#include <cuda/std/atomic>
extern "C" __global__ void flag(int *a) {
    __shared__ volatile int set[1];
    const int seven = a[0] + 7;
    if (threadIdx.x == 0) set[0] = seven;
    while (set[0] != seven) {}
    a[threadIdx.x] = set[0];
}
extern "C" __global__ void downwards(int *a) {
    __shared__ volatile int next;
    if (threadIdx.x == 0) next = 63;
    __syncthreads();
    while (next != threadIdx.x);
    a[threadIdx.x] = next;
    next = next - 1;
}
extern "C" __global__ void added(int *a) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 63;
    __syncthreads();
    while (atomicAdd(&next, 0) != threadIdx.x) {}
    a[threadIdx.x] = threadIdx.x;
    atomicSub(&next, 1);
}
extern "C" __global__ void loaded(int *a) {
    __shared__ int next;
    cuda::atomic_ref<int, cuda::thread_scope_block> place(next);
    if (threadIdx.x == 0) next = 63;
    __syncthreads();
    int turns = 0;
    while (place.load(cuda::std::memory_order_acquire) != threadIdx.x) turns++;
    a[threadIdx.x] = threadIdx.x;
    place.fetch_sub(1, cuda::memory_order_release);
}
extern "C" __global__ void converted(int *a) {
    __shared__ cuda::std::atomic<int> next;
    if (threadIdx.x == 0) next = 63;
    __syncthreads();
    for (;;) {
        if (next == threadIdx.x) break;
    }
    a[threadIdx.x] = threadIdx.x;
    --next;
}
__device__ int lock;
extern "C" __global__ void locked(int *a) {
    __shared__ volatile int count[1];
    count[0] = 0;
    __syncthreads();
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            count[0] = count[0] + 1;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    a[threadIdx.x] = count[0];
}
"#,
    );
    let numbers: Vec<i32> = (0..64).collect();
    for (name, expected) in [
        ("flag", vec![7; 64]),
        ("downwards", numbers.clone()),
        ("added", numbers.clone()),
        ("loaded", numbers.clone()),
        ("converted", numbers),
        ("locked", vec![64; 64]),
    ] {
        let mut array = vec![0; 64];
        run(&library, name, 1, 64, &mut array);
        assert_eq!(array, expected, "{name}");
    }
}
