//! Times kernels with each kind of check against the same kernels without checks, on one thread. Prints the
//! best of several runs.
//!
//! `cargo run --release -p gpuarray-host-executor --example checks`

use host_executor::{
    Allocation, Checking, Checks, Compiler, Kernel, Language, Library, Memory, Schedule, Shape,
    Source,
};
use std::error::Error;
use std::ffi::c_void;
use std::io::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

const TEXT: &str = r#"
extern "C" {

__global__ void axpy(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] + y[i];
}
__global__ void sum(const float *x, float *y, int n) {
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__global__ void histogram(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(y + i % 64, x[i]);
}
__global__ void shuffles(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int bit = 16; bit > 0; bit /= 2) v += __shfl_xor_sync(~0u, v, bit);
    __syncwarp();
    y[i] = v;
}
}
"#;

const BLOCKS: u32 = 1024;
const THREADS: u32 = 256;

/// The arrays that the checks look up.
struct Arrays([Range<usize>; 2]);

impl Memory for Arrays {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        self.0.iter().find(|range| range.contains(&address)).cloned()
    }

    fn nearest(&self, _: usize) -> Option<Allocation> {
        None
    }
}

fn best(mut call: impl FnMut()) -> Duration {
    let times = (0..7).map(|_| {
        let start = Instant::now();
        call();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn kernel(checked: bool, name: &str) -> Result<Kernel, Box<dyn Error>> {
    let compiler = Compiler::find(Language { checked, ..Language::default() })?;
    let source = Source { text: TEXT, name: "checks.cu", ..Source::default() };
    // SAFETY: the text belongs to this program.
    let library = unsafe { Library::load(&compiler.compile(&source)?.library)? };
    Ok(Kernel::find(&library, name).ok_or("no such kernel")?)
}

fn main() -> Result<(), Box<dyn Error>> {
    const NONE: Checks = Checks {
        bounds: false,
        uninitialised: false,
        races: false,
        barriers: false,
        arithmetic: false,
    };
    let kinds = [
        ("code", NONE),
        ("bounds", Checks { bounds: true, ..NONE }),
        ("uninitialised", Checks { uninitialised: true, ..NONE }),
        ("races", Checks { races: true, ..NONE }),
        ("barriers", Checks { barriers: true, ..NONE }),
        ("arithmetic", Checks { arithmetic: true, ..NONE }),
        ("all", Checks::ALL),
    ];
    let mut out = std::io::stdout();
    let n = (BLOCKS * THREADS) as usize;
    let (x, mut y) = (vec![1.0_f32; n], vec![0.0_f32; n]);
    let range = |array: &[f32]| {
        let Range { start, end } = array.as_ptr_range();
        start as usize..end as usize
    };
    let memory = Arrays([range(&x), range(&y)]);
    let (mut from, mut to, mut count) = (x.as_ptr(), y.as_mut_ptr(), n as i32);
    let arguments: [*mut c_void; 3] =
        [(&raw mut from).cast(), (&raw mut to).cast(), (&raw mut count).cast()];
    let shape = Shape { grid: [BLOCKS, 1, 1], block: [THREADS, 1, 1], cooperative: false };
    for name in ["axpy", "sum", "histogram", "shuffles"] {
        let plain = kernel(false, name)?;
        // SAFETY: all kernels have these parameters, and stay inside the arrays.
        let run = || unsafe { plain.launch(&shape, &Schedule::default(), &arguments, &|| None) };
        let plain_time = best(|| run().unwrap_or_else(|error| panic!("{error}")));
        write!(out, "{name:10} {plain_time:9.1?} for {n} threads; times longer:")?;
        let checked = kernel(true, name)?;
        for (kind, checks) in kinds {
            let checking = Checking { checks, memory: &memory, shared_bytes: 0 };
            // SAFETY: as above.
            let run =
                || unsafe { checked.launch_checked(&shape, &checking, &arguments, &|| false) };
            let time = best(|| run().unwrap_or_else(|error| panic!("{error}")));
            write!(out, "  {kind} {:.0}", time.as_secs_f64() / plain_time.as_secs_f64())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
