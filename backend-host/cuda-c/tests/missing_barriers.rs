//! Kernels that leave barriers out where a GPU's threads run together: what they compute there is computed here.
//!
//! `PYGPU_FUZZ_ROUNDS` sets how many texts the search compiles, `PYGPU_FUZZ_SEED` where it starts.

#[path = "missing_barriers/search.rs"]
mod search;
mod units;

use cuda_c::{Kernel, Library, Optimization, Schedule, Source};
use std::ffi::c_void;
use units::Random;

const THREADS: usize = 96;
const BLOCKS: usize = 3;

/// Each kernel adds to `out`, of one number for each thread, what its threads get; `data` has as many.
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

fn data() -> Vec<i32> {
    (0..(THREADS * BLOCKS) as i32).map(|it| it.wrapping_mul(0x9e37_79b1_u32 as i32) >> 7).collect()
}

/// What the kernels compute: statement by statement, by all threads of a block.
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
            "two_reductions" => {
                let most = first[..96].iter().copied().max().unwrap_or_default();
                let sum: i32 = first[..96].iter().map(|it| it & 0xff ^ (most & 0xff)).sum();
                sum.wrapping_add(most)
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
        let without = ["shuffles", "votes", "last_warp", "bound"];
        let has_form = without.iter().all(|it| !name.contains(it));
        assert_eq!(kernel.has_regions(), has_form, "{name}");
        let (right, left) = expected(name);
        check(&kernel, KERNELS, &right, &left);
    }
}

/// Runs a kernel in both forms, and compares what it leaves.
fn check(kernel: &Kernel, text: &str, right: &[i32], left: &[i32]) {
    for fibers in [false, true] {
        let (mut out, mut state) = (vec![0_i32; THREADS * BLOCKS], data());
        let (mut to, mut from) = (out.as_mut_ptr(), state.as_mut_ptr());
        let arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut from).cast()];
        let schedule = Schedule { fibers, fill: Some(0x5a), ..Schedule::default() };
        let shape = units::shape(BLOCKS as u32, THREADS as u32);
        // SAFETY: the kernel takes these, and stays inside of the arrays.
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

/// Compiles random kernels, so many in a text, and compares each with a model that runs statement by statement.
fn search(optimization: Optimization, seed: u64, [few, all]: [usize; 2], kernels: usize) {
    let setting = |name: &str| -> Option<usize> {
        std::env::var(name).ok().map(|text| text.parse().expect(name))
    };
    let mut random = Random(setting("PYGPU_FUZZ_SEED").map_or(seed, |it| seed + 1000 * it as u64));
    let is_long = std::env::var_os("PYGPU_TEST_ALL").is_some();
    let texts = setting("PYGPU_FUZZ_ROUNDS").unwrap_or(if is_long { all } else { few });
    for _ in 0..texts {
        let made: Vec<_> = (0..kernels).map(|_| search::list(&mut random, None, 0)).collect();
        let text: String =
            made.iter().enumerate().map(|(number, it)| search::text(number, it)).collect();
        let compiler = units::compiler().optimizing_for(optimization).with_regions(true);
        let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
        let compiled = compiler.compile(&source).unwrap_or_else(|error| panic!("{error}\n{text}"));
        // SAFETY: the text is this test's.
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
