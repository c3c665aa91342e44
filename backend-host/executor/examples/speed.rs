//! Times kernels against plain loops in C, and also launches, barriers and the compiler. Runs alternate, and
//! the best time of each is printed, together with the CPU time, on which other work on the machine has less
//! influence.
//!
//! `cargo run --release -p gpuarray-host-executor --example speed`; if kernels are named as arguments, only
//! those run.

use host_executor::{Compiler, Kernel, Language, Library, Schedule, Shape, Source};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::error::Error;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TEXT: &str = include_str!("speed.cu");
/// The number of elements in a cache line.
const LINE: usize = 16;

/// Returns the best time of some calls, and the least CPU time.
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

/// Returns the CPU time that this process has used.
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
            // SAFETY: all kernels have these parameters, and stay inside the arrays.
            let result = unsafe { kernel.launch(&shape, &schedule, &arguments, &pool) };
            result.unwrap_or_else(|error| panic!("{error}"));
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    let compiler = Compiler::find(Language::default())?;
    let source = Source { text: TEXT, name: "speed.cu", ..Source::default() };
    let time = |source: &Source<'_>| best(3, || drop(compiler.compile(source)))[0];
    // A single kernel of about thirty lines.
    let alone = TEXT.split_once("// n is the width of cubes").map_or("", |it| it.1);
    let (alone, _) = alone.split_once("__global__ void stencil_loop").unwrap_or((alone, ""));
    let alone = format!("extern \"C\" {{ //{alone} }}");
    let one = time(&Source { text: &alone, ..source });
    let compile = time(&source);
    let library = compiler.compile(&source)?.library;
    // SAFETY: the text belongs to this program.
    let library = unsafe { Library::load(&library)? };
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get());
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build()?);
    let bench = Bench { library, pool };
    let n = 16 << 20;
    // Aligned like a GPU's memory. The allocator starts long arrays 16 bytes after a boundary.
    let (x, mut y) = (vec![1.0_f32; n + LINE], vec![0.0_f32; n + LINE]);
    let [at_x, at_y] = [x.as_ptr(), y.as_ptr()].map(|it| it.align_offset(LINE * size_of::<f32>()));
    let (x, y) = (&x[at_x..at_x + n], &mut y[at_y..at_y + n]);
    writeln!(
        out,
        "{threads} threads; {} lines compile in {compile:.2?}, {} in {one:.2?}",
        TEXT.lines().count(),
        alone.lines().count()
    )?;
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
        // Runs alternate, so that other work on the machine slows all of them.
        for round in 0..20 {
            let loops = (other, [[parts, 1, 1], [1; 3]], false);
            let all = [(name, [grid, block], false), loops, (name, [grid, block], true)];
            for (which, best) in all.into_iter().zip(&mut best) {
                if which.2 && (!has_regions || round % 7 != 0) {
                    continue;
                }
                let times = bench.time(which, x, y, n as i32, 3);
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
    let [empty, _] = bench.time(("axpy", [[1, 1, 1], [32, 1, 1]], false), x, y, 32, 15);
    writeln!(out, "launch of a block of 32 threads {empty:.2?}")?;
    for name in ["barriers", "shuffles"].into_iter().filter(|it| is_asked(it)) {
        let count = 1000;
        let [time, _] = bench.time((name, [[1, 1, 1], [256, 1, 1]], true), x, y, count, 15);
        let each = time.as_secs_f64() * 1e9 / f64::from(count) / 256.0;
        writeln!(out, "{name:10} {each:.1} ns a thread")?;
    }
    Ok(())
}
