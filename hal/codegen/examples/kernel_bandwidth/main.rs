//! Measures the generated kernels on the first NVIDIA GPU, each next to a handwritten kernel for
//! the same bytes, in one process.
//!
//! ```text
//! cargo run --release -p gpuarray-codegen --example kernel_bandwidth [PART OF A NAME]
//! ```
//!
//! Bandwidths count the bytes read and written by ten consecutive launches with all their stages.
//! The result is the median of twelve measurements, alternating between the two kernels. Without a
//! GPU, only the cost of planning on the host is printed.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

mod cases;
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests")]
#[path = "../../tests/source/cuda.rs"]
mod cuda;

use cases::{BYTES, Buffers, N, ROWS, Reference};
use cuda::{Gpu, Handle};
use gpuarray_codegen::source::{KernelSpec, Plan, unit};
use hal::operation::{Description, Operation};
use std::collections::HashSet;
use std::error::Error;
use std::ffi::{CString, c_void};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

/// The size of the workspace, which no plan here exceeds.
const WORKSPACE: usize = 256 << 20;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    planning()?;
    match Gpu::new() {
        Ok(gpu) => Bench::new(&gpu)?.table(&filter),
        Err(reason) => {
            println!("no GPU to measure: {reason}");
            Ok(())
        }
    }
}

/// Measures the cost of planning an operation and listing its arguments.
fn planning() -> Outcome<()> {
    let at = Buffers { x: 1 << 20, y: 2 << 20, indices: 3 << 20, rows: 4 << 20, out: 5 << 20 };
    println!("{:<40} {:>8}", "planning on the host", "ns");
    for (name, description) in cases::small(&at) {
        let operation = Operation::new(description)?;
        let turn = || -> Outcome<usize> {
            let mut plan = Plan::new(black_box(&operation))?;
            plan.set_workspace(4096);
            Ok(plan.launches().iter().map(|launch| black_box(plan.arguments(launch)).len()).sum())
        };
        let mut times = Vec::new();
        for _ in 0..31 {
            let start = Instant::now();
            for _ in 0..2000 {
                black_box(turn()?);
            }
            times.push(start.elapsed().as_secs_f64() / 2000.0 * 1e9);
        }
        println!("{name:<40} {:>8.0}", median(times));
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The launches of an operation with their kernels, or a reference's launch.
enum Work<'a> {
    Generated(Box<Plan>, Vec<Handle>),
    ByHand(&'a Reference, Handle),
}

struct Bench<'a> {
    gpu: &'a Gpu,
    at: Buffers,
    workspace: u64,
    references: Handle,
}

impl<'a> Bench<'a> {
    fn new(gpu: &'a Gpu) -> Outcome<Self> {
        // SAFETY: the context is retained for the life of the process.
        gpu.check("cuCtxSetCurrent", unsafe { (gpu.driver.cuCtxSetCurrent)(gpu.context) });
        let allocate = |bytes: usize| {
            let mut address = 0;
            // SAFETY: a context is current; the memory lives as long as the process.
            let status = unsafe { (gpu.driver.cuMemAlloc_v2)(&mut address, bytes + 4096) };
            gpu.check("cuMemAlloc", status);
            address
        };
        let at = Buffers {
            x: allocate(BYTES),
            y: allocate(BYTES),
            indices: allocate(BYTES),
            rows: allocate(4 * ROWS),
            out: allocate(2 * BYTES),
        };
        let references = load(gpu, include_str!("reference.cu"));
        let bench = Bench { gpu, at, workspace: allocate(WORKSPACE), references };
        for (address, count, modulus) in
            [(at.x, N, 0), (at.y, N, 0), (at.indices, N, N as u64), (at.rows, ROWS, ROWS as u64)]
        {
            let noise = Reference {
                kernel: "noise",
                grid: [4096, 1, 1],
                block: [256, 1, 1],
                arguments: vec![address, count as u64, modulus],
                bytes: 0.0,
            };
            bench.launch(&bench.by_hand(&noise)?);
        }
        bench.wait();
        Ok(bench)
    }

    fn table(&self, filter: &str) -> Outcome<()> {
        let cases = cases::all(&self.at);
        let cases: Vec<_> = cases.iter().filter(|case| case.name.contains(filter)).collect();
        let small = cases::small(&self.at);
        let plans = cases.iter().map(|case| &case.operation).chain(small.iter().map(|it| &it.1));
        let mut seen = HashSet::new();
        let mut specs = Vec::new();
        for operation in plans {
            let spec = KernelSpec::of(&Operation::new(operation.clone())?)?;
            if seen.insert(spec.clone()) {
                specs.push(spec);
            }
        }
        let start = Instant::now();
        let module = load(self.gpu, &unit(specs.iter().cloned()));
        let seconds = start.elapsed().as_secs_f64();
        println!("{} specifications compiled in {seconds:.1} s", specs.len());
        println!("{:<40} {:>8} {:>8} {:>8} {:>6}", "", "us", "GB/s", "C, GB/s", "ratio");
        for case in cases {
            let generated = self.generated(module, &case.operation)?;
            let reference = self.by_hand(&case.reference)?;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for turn in 0..13 {
                let own = self.time(10, || self.launch(&generated));
                let by_hand = self.time(10, || self.launch(&reference));
                // The first measurement warms up.
                if turn > 0 {
                    ours.push(own);
                    theirs.push(by_hand);
                }
            }
            let (ours, theirs) = (median(ours), median(theirs));
            let rates = (case.bytes / ours / 1e9, case.reference.bytes / theirs / 1e9);
            println!(
                "{:<40} {:>8.1} {:>8.0} {:>8.0} {:>6.3}",
                case.name,
                ours * 1e6,
                rates.0,
                rates.1,
                rates.0 / rates.1
            );
        }
        println!("{:<40} {:>8} {:>8}", "one after another", "us", "launches");
        let nothing = Reference {
            kernel: "nothing",
            grid: [1, 1, 1],
            block: [32, 1, 1],
            arguments: Vec::new(),
            bytes: 0.0,
        };
        let mut works = vec![("a kernel that does nothing", self.by_hand(&nothing)?)];
        for (name, operation) in &small {
            works.push((name, self.generated(module, operation)?));
        }
        for (name, work) in works {
            self.time(200, || self.launch(&work));
            let times = (0..15).map(|_| self.time(200, || self.launch(&work))).collect();
            let launches = match &work {
                Work::Generated(plan, _) => plan.launches().len(),
                Work::ByHand(..) => 1,
            };
            println!("{name:<40} {:>8.2} {launches:>8}", median(times) * 1e6);
        }
        Ok(())
    }

    /// Returns the seconds per turn of `count` consecutive turns.
    fn time(&self, count: u32, turn: impl Fn()) -> f64 {
        let start = Instant::now();
        (0..count).for_each(|_| turn());
        self.wait();
        start.elapsed().as_secs_f64() / f64::from(count)
    }

    fn generated(&self, module: Handle, operation: &Description) -> Outcome<Work<'_>> {
        let mut plan = Plan::new(&Operation::new(operation.clone())?)?;
        assert!(plan.workspace_bytes() <= WORKSPACE, "a larger workspace");
        plan.set_workspace(self.workspace);
        let names = plan.spec().kernel_names();
        let kernels = names.iter().map(|name| self.kernel(module, name));
        let kernels = kernels.collect::<Outcome<_>>()?;
        Ok(Work::Generated(Box::new(plan), kernels))
    }

    fn by_hand<'r>(&self, reference: &'r Reference) -> Outcome<Work<'r>> {
        Ok(Work::ByHand(reference, self.kernel(self.references, reference.kernel)?))
    }

    fn kernel(&self, module: Handle, name: &str) -> Outcome<Handle> {
        let (mut kernel, text) = (0, CString::new(name)?);
        // SAFETY: the name ends with a zero byte and lives until the call returns.
        let status =
            unsafe { (self.gpu.driver.cuModuleGetFunction)(&mut kernel, module, text.as_ptr()) };
        self.gpu.check(name, status);
        Ok(kernel)
    }

    fn launch(&self, work: &Work) {
        let queue = |kernel, [x, y, z]: [u32; 3], [i, j, k]: [u32; 3], list: *mut *mut c_void| {
            // SAFETY: the list points to the kernel's arguments, whose addresses are inside
            // sufficiently large buffers of this context.
            let status = unsafe {
                (self.gpu.driver.cuLaunchKernel)(kernel, x, y, z, i, j, k, 0, 0, list, null_mut())
            };
            self.gpu.check("cuLaunchKernel", status);
        };
        match work {
            Work::Generated(plan, kernels) => {
                for launch in plan.launches() {
                    let mut list = plan.arguments(launch);
                    let config = launch.config;
                    queue(kernels[launch.kernel], config.grid, config.block, list.as_mut_ptr());
                }
            }
            Work::ByHand(reference, kernel) => {
                let words = reference.arguments.iter();
                let mut list: Vec<_> =
                    words.map(|word| std::ptr::from_ref(word).cast_mut().cast()).collect();
                queue(*kernel, reference.grid, reference.block, list.as_mut_ptr());
            }
        }
    }

    fn wait(&self) {
        // SAFETY: a context is current.
        self.gpu.check("cuCtxSynchronize", unsafe { (self.gpu.driver.cuCtxSynchronize)() });
    }
}

/// Compiles and loads the source.
fn load(gpu: &Gpu, source: &str) -> Handle {
    let (code, mut module) = (gpu.compile(source), 0);
    // SAFETY: a context is current, and the code is a complete cubin, which contains its size.
    let status = unsafe { (gpu.driver.cuModuleLoadData)(&mut module, code.as_ptr().cast()) };
    gpu.check("cuModuleLoadData", status);
    module
}
