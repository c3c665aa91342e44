//! Times kernels against plain loops in C, launches, barriers and the compiler. Best of some runs, in turn, and
//! the processors' time beside it, which other work on the machine changes less.
//!
//! `cargo run --release -p gpuarray-cuda-c --example speed`; names of kernels leave out the others.

use cuda_c::{Compiler, Kernel, Language, Library, Schedule, Shape, Source};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::error::Error;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TEXT: &str = r#"
extern "C" {

__global__ void axpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void plane_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    for (long i = blockIdx.x * (long)n; i < (blockIdx.x + 1) * (long)n; ++i) y[i] = a * x[i] + y[i];
}
__global__ void strided(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
// The same as a loop in C: each block is one thread with a part of the elements.
__global__ void axpy_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    long begin = long(n) * blockIdx.x / gridDim.x, end = long(n) * (blockIdx.x + 1) / gridDim.x;
    for (long i = begin; i < end; ++i) y[i] = a * x[i] + y[i];
}

__global__ void sum(float a, const float *x, float *y, int n) {
    __shared__ float part[256];
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
    part[threadIdx.x] = own;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__global__ void sum_loop(float a, const float *x, float *y, int n) {
    long begin = long(n) * blockIdx.x / gridDim.x, end = long(n) * (blockIdx.x + 1) / gridDim.x;
    float parts[16] = {};
    for (long i = begin; i + 16 <= end; i += 16)
        for (int k = 0; k < 16; ++k) parts[k] += x[i + k];
    for (int k = 1; k < 16; ++k) parts[0] += parts[k];
    y[blockIdx.x] = parts[0];
}

// n is the width of square matrices; x is one of them, y is x * x.
__global__ void product(float a, const float *x, float *y, int n) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[threadIdx.y][threadIdx.x] = x[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = x[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    y[row * n + column] = sum;
}
__global__ void product_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    int row = blockIdx.x;
    for (int j = 0; j < n; ++j) y[row * n + j] = 0;
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) y[row * n + j] += x[row * n + k] * x[k * n + j];
}

// n is the width of square images.
__global__ void plane(float a, const float *x, float *y, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) y[row * n + column] = a * x[row * n + column] + y[row * n + column];
}

// n is the width of cubes; tiles of 32 * 8 move along z, with a halo of one element.
#define TILE_X 32
#define TILE_Y 8
__global__ void stencil(float a, const float *x, float *y, int n) {
    __shared__ float tile[TILE_Y + 2][TILE_X + 2];
    int i = blockIdx.x * TILE_X + threadIdx.x, j = blockIdx.y * TILE_Y + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1, here = j * n + i, slice = n * n;
    float behind = 0, own = x[here], ahead;
    for (int k = 0; k < n; ++k, here += slice) {
        ahead = k + 1 < n ? x[here + slice] : 0;
        tile[ty][tx] = own;
        if (threadIdx.x == 0) tile[ty][0] = i > 0 ? x[here - 1] : 0;
        if (threadIdx.x == TILE_X - 1) tile[ty][tx + 1] = i + 1 < n ? x[here + 1] : 0;
        if (threadIdx.y == 0) tile[0][tx] = j > 0 ? x[here - n] : 0;
        if (threadIdx.y == TILE_Y - 1) tile[ty + 1][tx] = j + 1 < n ? x[here + n] : 0;
        __syncthreads();
        y[here] = a * own + tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] + behind + ahead;
        __syncthreads();
        behind = own;
        own = ahead;
    }
}
__global__ void stencil_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    int k = blockIdx.x;
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
            long c = ((long)k * n + j) * n + i, slice = (long)n * n;
            float left = i > 0 ? x[c - 1] : 0, right = i + 1 < n ? x[c + 1] : 0;
            float above = j > 0 ? x[c - n] : 0, below = j + 1 < n ? x[c + n] : 0;
            float behind = k > 0 ? x[c - slice] : 0, ahead = k + 1 < n ? x[c + slice] : 0;
            y[c] = a * x[c] + left + right + above + below + behind + ahead;
        }
}

__global__ void barriers(float a, const float *x, float *y, int n) {
    for (int k = 0; k < n; ++k) __syncthreads();
}
__global__ void shuffles(float a, const float *x, float *y, int n) {
    float v = threadIdx.x;
    for (int k = 0; k < n; ++k) v += __shfl_xor_sync(~0u, v, 1);
    y[threadIdx.x] = v;
}
}
"#;

/// The best time of some calls, and the least that they took of all processors.
fn best(count: usize, mut call: impl FnMut()) -> [Duration; 2] {
    let mut best = [Duration::MAX; 2];
    for _ in 0..count {
        let (start, before) = (Instant::now(), processors());
        call();
        let times = [start.elapsed(), processors() - before];
        best = [best[0].min(times[0]), best[1].min(times[1])];
    }
    best
}

/// The time that this process took of all processors.
fn processors() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is written.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

struct Bench {
    library: Arc<Library>,
    pool: Arc<ThreadPool>,
}

impl Bench {
    /// Runs a kernel `count` times, and returns the best time.
    fn time(
        &self,
        (name, [grid, block], fibers): (&str, [[u32; 3]; 2], bool),
        x: &[f32],
        y: &mut [f32],
        n: i32,
        count: usize,
    ) -> [Duration; 2] {
        let kernel =
            Kernel::find(&self.library, name).unwrap_or_else(|| panic!("no kernel {name}"));
        let (mut a, mut x, mut y, mut n) = (0.5_f32, x.as_ptr(), y.as_mut_ptr(), n);
        let arguments: [*mut c_void; 4] =
            [(&raw mut a).cast(), (&raw mut x).cast(), (&raw mut y).cast(), (&raw mut n).cast()];
        let shape = Shape { grid, block, cooperative: false };
        let pool = || Some(self.pool.clone());
        let schedule = Schedule { fibers, ..Schedule::default() };
        best(count, || {
            // SAFETY: all kernels have these parameters, and stay inside of the arrays.
            let result = unsafe { kernel.launch(&shape, &schedule, &arguments, &pool) };
            result.unwrap_or_else(|error| panic!("{error}"));
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    let compiler = Compiler::find(Language::default())?;
    let source = Source { text: TEXT, name: "speed.cu", ..Source::default() };
    let [compile, _] = best(3, || drop(compiler.compile(&source)));
    let library = compiler.compile(&source)?.library;
    // SAFETY: the text is this program's.
    let library = unsafe { Library::load(&library)? };
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get());
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build()?);
    let bench = Bench { library, pool };
    let n = 16 << 20;
    let x = vec![1.0_f32; n];
    let mut y = vec![0.0_f32; n];
    writeln!(out, "{threads} threads; {} lines compile in {compile:.1?}", TEXT.lines().count())?;
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|it| it == name);
    let chunks = 64 * threads as u32;
    let mut pair = |name: &str,
                    grid: [u32; 3],
                    block: [u32; 3],
                    other: &str,
                    parts: u32,
                    n: usize| {
        if !is_asked(name) {
            return Ok(());
        }
        let has_regions = Kernel::find(&bench.library, name).is_some_and(|it| it.has_regions());
        let mut best = [[f64::INFINITY; 2]; 3];
        // In turn, so that what else the machine does slows all of them.
        for round in 0..20 {
            let loops = (other, [[parts, 1, 1], [1; 3]], false);
            let all = [(name, [grid, block], false), loops, (name, [grid, block], true)];
            for (which, best) in all.into_iter().zip(&mut best) {
                if which.2 && (!has_regions || round % 7 != 0) {
                    continue;
                }
                let times = bench.time(which, &x, &mut y, n as i32, 3);
                for (best, time) in best.iter_mut().zip(times) {
                    *best = best.min(time.as_secs_f64() * 1e3);
                }
            }
        }
        let [kernel, plain, fibers] = best;
        let [ratio, of_processors] = [0, 1].map(|it| kernel[it] / plain[it]);
        write!(
            out,
            "{name:10} {:7.2} ms, loops in C {:7.2} ms: ratio {ratio:.2}, of processors {of_processors:.2}",
            kernel[0], plain[0]
        )?;
        match has_regions {
            false => writeln!(out),
            true => writeln!(out, "; as fibres {:.2}", fibers[1] / plain[1]),
        }
    };
    pair("axpy", [(n / 256) as u32, 1, 1], [256, 1, 1], "axpy_loop", chunks, n)?;
    pair("plane", [4096 / 64, 4096 / 4, 1], [64, 4, 1], "plane_loop", 4096, 4096)?;
    pair("strided", [256, 1, 1], [256, 1, 1], "axpy_loop", chunks, n)?;
    pair("sum", [256, 1, 1], [256, 1, 1], "sum_loop", 256, n)?;
    pair("product", [32, 32, 1], [16, 16, 1], "product_loop", 512, 512)?;
    pair("stencil", [256 / 32, 256 / 8, 1], [32, 8, 1], "stencil_loop", 256, 256)?;
    let [empty, _] = bench.time(("axpy", [[1, 1, 1], [32, 1, 1]], false), &x, &mut y, 32, 15);
    writeln!(out, "launch of a block of 32 threads {empty:.2?}")?;
    for name in ["barriers", "shuffles"].into_iter().filter(|it| is_asked(it)) {
        let count = 1000;
        let [time, _] = bench.time((name, [[1, 1, 1], [256, 1, 1]], true), &x, &mut y, count, 15);
        let each = time.as_secs_f64() * 1e9 / f64::from(count) / 256.0;
        writeln!(out, "{name:10} {each:.1} ns a thread")?;
    }
    Ok(())
}
