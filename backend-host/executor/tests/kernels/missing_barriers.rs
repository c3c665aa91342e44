//! Kernels that omit barriers because a GPU's threads run together. The results must be the same as on a GPU.
//!
//! `PYGPU_FUZZ_ROUNDS` sets the number of texts that the search compiles, `PYGPU_FUZZ_SEED` its start.

mod search;

use crate::units::{self, Random};
use host_executor::{Kernel, Library, Optimization, Schedule, Source};
use std::ffi::c_void;

const THREADS: usize = 96;
const BLOCKS: usize = 3;

/// Each kernel adds the values that its threads read to `out`, which has one number per thread; `data` has
/// the same size.
const KERNELS: &str = r#"
extern "C" __global__ void state_of_a_block(int *out, int *data) {
    int mine = data[blockIdx.x];
    int t = threadIdx.x;
    mine = mine * 3 + t;
    if (t == 0) data[blockIdx.x] = mine + 1000;
    out[blockIdx.x * blockDim.x + t] = mine;
}
extern "C" __global__ void state_of_a_warp(int *out, int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = i / 32, lane = threadIdx.x % 32;
    int mine = data[row];
    for (int k = 0; k < 3; ++k) mine = mine * 3 + k;
    out[i] = mine + lane;
    if (lane == 0) data[row] = mine + 1000;
}
extern "C" __global__ void state_behind_a_bound(int *out, int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int warp = i >> 5;
    if (i < 250) {
        int mine = data[warp];
        mine = mine * 3 + 1;
        out[i] = mine;
        if ((threadIdx.x & 31) == 0) data[warp] = mine + 1000;
    }
}
extern "C" __global__ void state_with_shuffles(int *out, int *data) {
    int t = threadIdx.x;
    int sum = __shfl_xor_sync(0xffffffff, t, 1);
    int mine = data[blockIdx.x];
    out[blockIdx.x * blockDim.x + t] = mine + sum;
    if (t == 0) data[blockIdx.x] = mine + 1000;
}
extern "C" __global__ void tiles(int *out, int *data) {
    __shared__ int tile[96];
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < 4; ++k) {
        tile[t] = data[(t + 7 * k) % 96];
        __syncthreads();
        for (int j = 0; j < 96; ++j) sum = sum * 3 + tile[j];
    }
    out[blockIdx.x * blockDim.x + t] = sum;
}
extern "C" __global__ void tiles_with_votes(int *out, int *data) {
    __shared__ int tile[96];
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < 4; ++k) {
        tile[t] = data[(t + 7 * k) % 96];
        __syncthreads();
        for (int j = 0; j < 96; ++j) sum = sum * 3 + tile[j];
        sum += __any_sync(0xffffffff, t == 200);
    }
    out[blockIdx.x * blockDim.x + t] = sum;
}
extern "C" __global__ void counters(int *out, int *data) {
    __shared__ int count[8];
    int t = threadIdx.x;
    if (t < 8) count[t] = 0;
    atomicAdd(&count[(unsigned)data[t] % 8], 1);
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = count[t % 8];
}
extern "C" __global__ void counters_of_one(int *out, int *data) {
    __shared__ unsigned total, other[2];
    int t = threadIdx.x;
    if (t == 50) { total = 0; other[1] = 5; }
    for (int i = t; i < 200; i += blockDim.x) atomicAdd(&total, (unsigned)data[i % 96] & 15);
    atomicMax(other + 1, (unsigned)t);
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = total + other[1];
}
extern "C" __global__ void two_reductions(int *out, int *data) {
    __shared__ int s[96];
    int t = threadIdx.x;
    s[t] = data[t];
    __syncthreads();
    for (int k = 48; k >= 3; k /= 2) {
        if (t < k) s[t] = max(s[t], s[t + k]);
        __syncthreads();
    }
    int m = max(max(s[0], s[1]), s[2]);
    s[t] = data[t] & 0xff ^ (m & 0xff);
    __syncthreads();
    for (int k = 48; k >= 3; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = s[0] + s[1] + s[2] + m;
}
__device__ int most_of(int v, int *s) {
    int t = threadIdx.x;
    s[t] = v;
    __syncthreads();
    for (int k = 48; k >= 3; k /= 2) {
        if (t < k) s[t] = max(s[t], s[t + k]);
        __syncthreads();
    }
    return max(max(s[0], s[1]), s[2]);
}
__device__ int sum_of(int v) {
    __shared__ int s[96];
    int t = threadIdx.x;
    s[t] = v;
    __syncthreads();
    for (int k = 48; k >= 3; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    return s[0] + s[1] + s[2];
}
extern "C" __global__ void two_reductions_by_functions(int *out, int *data) {
    __shared__ int s[96];
    int t = threadIdx.x, m = most_of(data[t], s);
    s[t] = 7 - t;
    __syncthreads();
    m = most_of(data[95 - t], s);
    sum_of(s[0]);
    out[blockIdx.x * blockDim.x + t] = sum_of(data[t] & 0xff ^ (m & 0xff)) + m;
}
extern "C" __global__ void two_reductions_by_pointers(int *out, int *data) {
    __shared__ unsigned char all[96 * 4];
    int *s = reinterpret_cast<int *>(all);
    int t = threadIdx.x;
    s[t] = data[t];
    __syncthreads();
    for (int k = 48; k >= 3; k /= 2) {
        if (t < k) s[t] = max(s[t], s[t + k]);
        __syncthreads();
    }
    int m = max(max(s[0], s[1]), s[2]);
    s[t] = data[t] & 0xff ^ (m & 0xff);
    __syncthreads();
    for (int k = 48; k >= 3; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = s[0] + s[1] + s[2] + m;
}
extern "C" __global__ void two_reductions_by_a_lambda(int *out, int *data) {
    __shared__ int s[96];
    int t = threadIdx.x;
    auto all = [&](int v, auto both) {
        s[t] = v;
        __syncthreads();
        for (int k = 48; k >= 3; k /= 2) {
            if (t < k) s[t] = both(s[t], s[t + k]);
            __syncthreads();
        }
        return both(both(s[0], s[1]), s[2]);
    };
    int m = all(data[t], [](int a, int b) { return max(a, b); });
    int sum = all(data[t] & 0xff ^ (m & 0xff), [](int a, int b) { return a + b; });
    out[blockIdx.x * blockDim.x + t] = sum + m;
}
extern "C" __global__ void last_warp(int *out, int *data) {
    __shared__ int s[96];
    int t = threadIdx.x;
    s[t] = data[t] & 0xff;
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 64];
        s[t] += s[t + 32];
    }
    if (t < 16) {
        s[t] += s[t + 16];
        s[t] += s[t + 8];
        s[t] += s[t + 4];
        s[t] += s[t + 2];
        s[t] += s[t + 1];
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = s[0];
}
"#;

/// The effect of a statement on the block's elements, executed by the threads in a list.
type Step = fn(&mut [i32], &[usize]);

/// Each of these reads an element in the same statement in which another thread writes it. They work on the
/// block's part of the data: in shared memory, which is copied from the data before and to `out` afterwards,
/// or directly on the data.
const STATEMENTS: [(&str, &str, Step); 24] = [
    ("divided_by_the_first", "s[t] = s[t] / (s[0] | 1);", |s, all| {
        each(s, all, |s, t| s[t].wrapping_div(s[0] | 1));
    }),
    ("exchanged", "s[t] += s[t ^ 1];", |s, all| {
        each(s, all, |s, t| s[t].wrapping_add(s[t ^ 1]));
    }),
    ("reversed", "s[t] = s[95 - t];", |s, all| each(s, all, |s, t| s[95 - t])),
    ("behind_a_bound", "if (t < 80) s[t] = s[t] - s[0] * 3;", |s, all| {
        each(s, &all[..80], |s, t| s[t].wrapping_sub(s[0].wrapping_mul(3)));
    }),
    (
        "behind_a_bound_and_else",
        "if (t < 48) s[t] += s[47 - t]; else { s[t] -= s[48]; }",
        |s, all| {
            let before = s.to_vec();
            for &t in all {
                s[t] = match t < 48 {
                    true => before[t].wrapping_add(before[47 - t]),
                    false => before[t].wrapping_sub(before[48]),
                };
            }
        },
    ),
    ("behind_a_value", "if (s[t] & 1) { s[t] -= s[95 - t]; }", |s, all| {
        let odd: Vec<usize> = all.iter().copied().filter(|&t| s[t] & 1 == 1).collect();
        each(s, &odd, |s, t| s[t].wrapping_sub(s[95 - t]));
    }),
    ("by_a_pointer", "int *p = s + 32; if (t < 64) p[t] = p[t] - p[0];", |s, all| {
        each(&mut s[32..], &all[..64], |s, t| s[t].wrapping_sub(s[0]));
    }),
    ("by_a_pointer_and_a_name", "int *const p = &s[1]; if (t < 95) p[t] = s[t] ^ 5;", |s, all| {
        let before = s.to_vec();
        all[..95].iter().for_each(|&t| s[t + 1] = before[t] ^ 5);
    }),
    ("by_an_address", "*(s + t) ^= *s;", |s, all| each(s, all, |s, t| s[t] ^ s[0])),
    ("in_rounds", "for (int i = t; i < 80; i += blockDim.x) s[i] -= s[0];", |s, all| {
        each(s, &all[..80], |s, t| s[t].wrapping_sub(s[0]));
    }),
    (
        "in_more_rounds",
        "__shared__ int u[192]; u[t] = s[t]; u[t + 96] = s[95 - t]; __syncthreads(); \
      for (int i = t; i < 2 * n; i += blockDim.x) { u[i] -= u[i ^ 1]; } \
      __syncthreads(); s[t] = u[t] ^ u[t + 96];",
        |s, all| {
            let mut u: Vec<i32> = s.iter().chain(s.iter().rev()).copied().collect();
            let whole: Vec<usize> = (0..192).collect();
            each(&mut u, &whole, |u, t| u[t].wrapping_sub(u[t ^ 1]));
            all.iter().for_each(|&t| s[t] = u[t] ^ u[t + 96]);
        },
    ),
    ("a_function_reads", "s[t] = from_the_first(s, t);", |s, all| {
        each(s, all, |s, t| s[t].wrapping_sub(s[0]));
    }),
    (
        "steps_of_a_scan",
        "for (int d = 1; d < 96; d *= 2) if (t >= d) s[t] += s[t - d];",
        |s, all| {
            for d in [1, 2, 4, 8, 16, 32, 64] {
                each(s, &all[d..], |s, t| s[t].wrapping_add(s[t - d]));
            }
        },
    ),
    ("shifted", "s[t] = s[(t + 1) % 96];", |s, all| each(s, all, |s, t| s[(t + 1) % 96])),
    ("all_lanes_of_a_row", "s[t / 32] = s[t / 32] * 3 + 1;", |s, all| {
        each(s, &all[..3], |s, t| s[t].wrapping_mul(3).wrapping_add(1));
    }),
    ("counted_up", "s[7]++;", |s, _| s[7] = s[7].wrapping_add(1)),
    ("by_a_table", "s[t] = s[(s[t] & 0xff) % 96];", |s, all| {
        each(s, all, |s, t| s[(s[t] & 0xff) as usize % 96]);
    }),
    ("of_data", "mine[t] = mine[t] - mine[0];", |s, all| {
        each(s, all, |s, t| s[t].wrapping_sub(s[0]));
    }),
    (
        "of_data_by_the_block",
        "int i = blockIdx.x * blockDim.x + t, row = blockIdx.x; data[i] = data[i] - data[row * n];",
        |s, all| each(s, all, |s, t| s[t].wrapping_sub(s[0])),
    ),
    (
        "of_data_by_the_row",
        "int i = blockIdx.x * blockDim.x + t, row = i / n; \
      if (row < 3) data[i] -= data[row * n];",
        |s, all| each(s, all, |s, t| s[t].wrapping_sub(s[0])),
    ),
    (
        "of_data_in_rounds",
        "for (int i = t; i < 60; i += blockDim.x) mine[i] /= mine[0] | 1;",
        |s, all| {
            each(s, &all[..60], |s, t| s[t].wrapping_div(s[0] | 1));
        },
    ),
    ("of_data_backwards", "mine[t] = mine[n - 1 - t];", |s, all| each(s, all, |s, t| s[95 - t])),
    ("of_data_behind_a_bound", "if (t < n - 5) mine[t] -= mine[1] + mine[t ^ 1];", |s, all| {
        each(s, &all[..91], |s, t| s[t].wrapping_sub(s[1].wrapping_add(s[t ^ 1])));
    }),
    (
        "of_data_at_the_rest",
        "if (t < n - 5) { int k = t * 3; mine[t] -= mine[1] + k; }",
        |s, all| {
            each(s, &all[..91], |s, t| s[t].wrapping_sub(s[1].wrapping_add(t as i32 * 3)));
        },
    ),
];

/// Sets the elements of some threads. Each value is computed from the elements before the statement.
fn each(s: &mut [i32], threads: &[usize], value: impl Fn(&[i32], usize) -> i32) {
    let before = s.to_vec();
    threads.iter().for_each(|&t| s[t] = value(&before, t));
}

#[test]
fn statements_read_before_they_write() {
    let mut text = String::from(
        "__device__ int from_the_first(const int *x, int i) { return x[i] - x[0]; }\n",
    );
    for (name, statement, _) in STATEMENTS {
        let work = "__shared__ int s[96]; int t = threadIdx.x, n = 96; \
                    int *mine = data + blockIdx.x * 96; s[t] = mine[t]; __syncthreads();";
        let last = match name.starts_with("of_data") {
            true => "",
            false => "__syncthreads(); out[blockIdx.x * 96 + t] = s[t];",
        };
        let work = if last.is_empty() {
            "int t = threadIdx.x, n = 96; int *mine = data + blockIdx.x * 96;"
        } else {
            work
        };
        text += &format!(
            "extern \"C\" __global__ void {name}(int *out, int *data) {{ {work}\n{statement}\n{last} }}\n"
        );
    }
    let library = units::load(&text);
    let all: Vec<usize> = (0..THREADS).collect();
    for (name, statement, step) in STATEMENTS {
        let kernel = Kernel::find(&library, name).expect(name);
        assert!(kernel.has_regions(), "{name}");
        let (mut right, mut left) = (data(), data());
        right.chunks_mut(THREADS).for_each(|it| step(it, &all));
        if name.starts_with("of_data") {
            left = std::mem::replace(&mut right, vec![0; THREADS * BLOCKS]);
        }
        check(&kernel, statement, &right, &left);
    }
}

/// A text with volatile writes, whose kernels do not get a loop variant.
const WITH_VOLATILE_WRITES: &str = r#"
__device__ void last(volatile int *s, int t) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
}
__device__ int sum_of(int v, int *s) {
    int t = threadIdx.x;
    s[t] = v;
    s[96 + t % 32] = 0;
    __syncthreads();
    if (t < 32) { s[t] += s[t + 64]; last(s, t); }
    __syncthreads();
    return s[0];
}
extern "C" __global__ void two_sums(int *out, int *data) {
    __shared__ int s[128];
    int t = threadIdx.x, first = sum_of(data[t] & 0xff, s);
    out[blockIdx.x * blockDim.x + t] = sum_of(data[t] & 0xff ^ (first & 0xff), s) + first;
}
"#;

fn data() -> Vec<i32> {
    (0..(THREADS * BLOCKS) as i32).map(|it| it.wrapping_mul(0x9e37_79b1_u32 as i32) >> 7).collect()
}

/// Returns the results of the kernels, computed statement by statement for all threads of a block.
fn expected(name: &str) -> (Vec<i32>, Vec<i32>) {
    let mut state = data();
    let first = data();
    let value = |block: usize, t: usize, state: &mut Vec<i32>| -> i32 {
        let (i, t32) = (block * THREADS + t, t as i32);
        let tile_sum = || {
            let mut sum = 0_i32;
            for k in 0..4 {
                for j in 0..96 {
                    sum = sum.wrapping_mul(3).wrapping_add(first[(j + 7 * k) % 96]);
                }
            }
            sum
        };
        match name {
            "state_of_a_block" => {
                let mine = first[block].wrapping_mul(3).wrapping_add(t32);
                if t == 0 {
                    state[block] = mine.wrapping_add(1000);
                }
                mine
            }
            "state_of_a_warp" => {
                let mut mine = first[i / 32];
                for k in 0..3 {
                    mine = mine.wrapping_mul(3).wrapping_add(k);
                }
                if t.is_multiple_of(32) {
                    state[i / 32] = mine.wrapping_add(1000);
                }
                mine.wrapping_add(t32 % 32)
            }
            "state_behind_a_bound" if i < 250 => {
                let mine = first[i / 32].wrapping_mul(3).wrapping_add(1);
                if t.is_multiple_of(32) {
                    state[i / 32] = mine.wrapping_add(1000);
                }
                mine
            }
            "state_behind_a_bound" => 0,
            "state_with_shuffles" => {
                if t == 0 {
                    state[block] = first[block].wrapping_add(1000);
                }
                first[block].wrapping_add(t32 ^ 1)
            }
            "tiles" | "tiles_with_votes" => tile_sum(),
            "counters" => {
                let of = |it: i32| (it as u32 % 8) as usize;
                first[..96].iter().filter(|it| of(**it) == t % 8).count() as i32
            }
            "counters_of_one" => (0..200).map(|it| first[it % 96] & 15).sum::<i32>() + 95,
            "two_reductions"
            | "two_reductions_by_functions"
            | "two_reductions_by_pointers"
            | "two_reductions_by_a_lambda" => {
                let most = first[..96].iter().copied().max().unwrap_or_default();
                let sum: i32 = first[..96].iter().map(|it| it & 0xff ^ (most & 0xff)).sum();
                sum.wrapping_add(most)
            }
            "two_sums" => {
                let of = |mask: i32| first[..96].iter().map(|it| it & 0xff ^ mask).sum::<i32>();
                of(of(0) & 0xff) + of(0)
            }
            "last_warp" => first[..96].iter().map(|it| it & 0xff).sum(),
            other => panic!("{other}"),
        }
    };
    let mut out = Vec::new();
    for block in 0..BLOCKS {
        for t in 0..THREADS {
            out.push(value(block, t, &mut state));
        }
    }
    (out, state)
}

#[test]
fn what_works_on_gpus_without_barriers_works() {
    let library = units::load(KERNELS);
    let names = KERNELS.split("__global__ void ").skip(1).filter_map(|it| it.split('(').next());
    for name in names {
        let kernel = Kernel::find(&library, name).expect(name);
        let without = ["shuffles", "votes", "_by_"];
        let has_form = without.iter().all(|it| !name.contains(it));
        assert_eq!(kernel.has_regions(), has_form, "{name}");
        let (right, left) = expected(name);
        check(&kernel, KERNELS, &right, &left);
    }
}

#[test]
fn texts_with_volatile_writes_have_meetings() {
    let kernel = Kernel::find(&units::load(WITH_VOLATILE_WRITES), "two_sums").expect("the kernel");
    let (right, left) = expected("two_sums");
    check(&kernel, WITH_VOLATILE_WRITES, &right, &left);
}

/// Runs a kernel in both forms, and compares the results.
fn check(kernel: &Kernel, text: &str, right: &[i32], left: &[i32]) {
    for fibers in [false, true] {
        let (mut out, mut state) = (vec![0_i32; THREADS * BLOCKS], data());
        let (mut to, mut from) = (out.as_mut_ptr(), state.as_mut_ptr());
        let arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut from).cast()];
        let schedule = Schedule { fibers, fill: Some(0x5a), ..Schedule::default() };
        let shape = units::shape(BLOCKS as u32, THREADS as u32);
        // SAFETY: the kernel takes these arguments, and stays inside the arrays.
        let done = unsafe { kernel.launch(&shape, &schedule, &arguments, &|| None) };
        done.unwrap_or_else(|error| panic!("{}: {error}", kernel.name()));
        assert!(
            out == right && state == left,
            "{} with fibers {fibers}: {:?}\n{text}",
            kernel.name(),
            out.iter().zip(right).enumerate().find(|(_, (a, b))| a != b)
        );
    }
}

/// Compiles random kernels, `kernels` in each text, and compares each one with a model that runs statement by
/// statement.
fn search(optimization: Optimization, seed: u64, [few, all]: [usize; 2], kernels: usize) {
    let setting = |name: &str| -> Option<usize> {
        std::env::var(name).ok().map(|text| text.parse().expect(name))
    };
    let mut random = Random(setting("PYGPU_FUZZ_SEED").map_or(seed, |it| seed + 1000 * it as u64));
    let is_long = std::env::var_os("PYGPU_TEST_ALL").is_some();
    let texts = setting("PYGPU_FUZZ_ROUNDS").unwrap_or(if is_long { all } else { few });
    for _ in 0..texts {
        let made: Vec<_> = (0..kernels).map(|_| search::list(&mut random, None, 0)).collect();
        let kernels = made.iter().enumerate().map(|(number, it)| search::text(number, it));
        let text = search::FUNCTION.to_owned() + &kernels.collect::<String>();
        let compiler = units::compiler().optimizing_for(optimization).with_regions(true);
        let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
        let compiled = compiler.compile(&source).unwrap_or_else(|error| panic!("{error}\n{text}"));
        // SAFETY: the text belongs to this test.
        let library = unsafe { Library::load(&compiled.library) }.expect("a unit");
        for (number, statements) in made.iter().enumerate() {
            let kernel = Kernel::find(&library, &format!("kernel_{number}")).expect("the kernel");
            assert!(kernel.has_regions(), "{}", search::text(number, statements));
            let mut left = data();
            let right = search::run(statements, &mut left);
            check(&kernel, &search::text(number, statements), &right, &left);
        }
    }
}

#[test]
fn random_kernels_compute_what_threads_that_run_together_do() {
    search(Optimization::Compilation, 11, [2, 60], 40);
}

#[test]
fn random_kernels_compute_what_threads_that_run_together_do_in_vectors() {
    search(Optimization::Speed, 12, [1, 20], 12);
}
