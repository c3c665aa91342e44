//! Many cycles of allocate, launch and free on many threads: no resource grows.
//!
//! `cargo test --release --test soak -- --ignored --nocapture` runs a million cycles on the best
//! available backend, or on the one that `PYGPU_BACKEND` names. `GPUARRAY_SOAK_CYCLES` and
//! `GPUARRAY_SOAK_THREADS` (16) change the numbers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use gpuarray::array::functions;
use gpuarray::memory::{DeviceMemory, PinnedMemory, last_failed_free};
use gpuarray::{
    CaptureMode, Choice, Device, DeviceArray, ErrorKind, EventOptions, Kernel, LaunchConfig,
    LoadOptions, ModuleSource, Result, Stream, StreamOptions,
};
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// The number of cycles between two uses of rarely created objects.
const RARELY: usize = 2000;

const SOURCE: &str = "extern \"C\" __global__ void add(int* values, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += value;
}";

/// Returns the kernel; `None` on devices without a compiler.
fn kernel(device: &Arc<dyn Device>) -> Result<Option<Arc<dyn Kernel>>> {
    let source = ModuleSource::Source { text: SOURCE, name: "soak.cu", options: &[] };
    // SAFETY: the module is compiled from the text above.
    match unsafe { device.load_module(&source, &LoadOptions::default()) } {
        Ok(module) => module.kernel("add").map(Some),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// The objects of one thread.
struct Worker<'a> {
    device: &'a Arc<dyn Device>,
    kernel: &'a Option<Arc<dyn Kernel>>,
    shared: DeviceArray<i32>,
    stream: Arc<dyn Stream>,
}

fn stream(device: &Arc<dyn Device>) -> Result<Arc<dyn Stream>> {
    device.create_stream(StreamOptions::default().non_blocking(true))
}

impl Worker<'_> {
    fn cycle(&self, number: usize) -> Result<()> {
        let count = 1 + number * 7919 % 5000;
        let memory = DeviceMemory::for_stream(self.device, &self.stream, 4 * count)?;
        // SAFETY: the range is the allocation, which is freed after the fill.
        unsafe { self.stream.fill(memory.address(), 1, 4, count)? };
        let memory = Arc::new(memory);
        if let Some(kernel) = self.kernel {
            let config = LaunchConfig::linear(count as u32, 128);
            // SAFETY: the kernel takes these arguments and stays inside the memory.
            unsafe { kernel.launch(config, &self.stream, (memory.clone(), 1, count as i32))? };
        }
        if number.is_multiple_of(4) {
            let one = DeviceArray::<i32>::ones(self.device, &[100])?;
            drop((&self.shared.on(&self.stream)? + &one)?);
        }
        Ok(())
    }

    /// Creates and drops one object of every kind.
    fn rare(&mut self) -> Result<()> {
        let event = self.device.create_event(EventOptions::default())?;
        self.stream.record(event.as_ref())?;
        event.synchronize()?;
        drop(PinnedMemory::new(self.device, 10_000)?);
        drop(DeviceMemory::plain(self.device, 10_000)?);
        let mut array = DeviceArray::<i32>::zeros(self.device, &[100])?.on(&self.stream)?.copy()?;
        match self.stream.begin_capture(CaptureMode::default()) {
            Ok(()) => {
                array.update_scalar(functions::Add, 1)?;
                let doubled = (&array + &array)?;
                let graph = self.stream.end_capture()?;
                // SAFETY: the array that the capture uses is alive.
                unsafe { graph.launch(&self.stream)? };
                assert_eq!(doubled.to_vec()?[0], 2);
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => return Err(error),
        }
        drop(kernel(self.device)?);
        self.stream.synchronize()?;
        self.stream = stream(self.device)?;
        Ok(())
    }
}

/// The quantities that must not grow.
#[derive(Debug)]
struct Figures {
    device_bytes: usize,
    resident_bytes: usize,
    files: usize,
    threads: usize,
}

impl Figures {
    fn now(device: &Arc<dyn Device>) -> Result<Figures> {
        device.synchronize()?;
        device.trim_memory(0)?;
        let info = device.memory_info()?;
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: usize = pages.split(' ').nth(1).map_or(0, |text| text.parse().unwrap());
        let entries = |path| fs::read_dir(path).map_or(0, Iterator::count);
        Ok(Figures {
            device_bytes: info.total - info.free,
            resident_bytes: 4096 * pages,
            files: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
        })
    }
}

/// Runs the cycles on all threads.
fn run(device: &Arc<dyn Device>, cycles: usize, threads: usize) -> Result<()> {
    let kernel = kernel(device)?;
    let shared = DeviceArray::<i32>::zeros(device, &[100])?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let (kernel, shared) = (&kernel, shared.clone());
                scope.spawn(move || -> Result<()> {
                    let mut worker = Worker { device, kernel, shared, stream: stream(device)? };
                    for number in (first..cycles).step_by(threads) {
                        worker.cycle(number)?;
                        if number / threads % RARELY == RARELY - 1 {
                            worker.rare()?;
                        }
                    }
                    worker.stream.synchronize()
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })
}

fn soak(choice: Choice, cycles: usize, threads: usize) {
    let backend = gpuarray::open(choice).unwrap();
    let device = backend.device(0).unwrap();
    // Caches, lists of free blocks and the libraries' own memory fill up in the first half.
    run(&device, cycles / 2, threads).unwrap();
    let before = Figures::now(&device).unwrap();
    let begun = Instant::now();
    run(&device, cycles / 2, threads).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let after = Figures::now(&device).unwrap();
    let name = backend.name();
    let each = seconds / (cycles / 2) as f64 * 1e6;
    let mut out = std::io::stdout();
    writeln!(out, "{name}: {cycles} cycles on {threads} threads, {each:.2} us each").unwrap();
    writeln!(out, "before: {before:?}\nafter:  {after:?}").unwrap();
    assert!(last_failed_free().is_success());
    assert!(after.device_bytes <= before.device_bytes + (4 << 20), "device memory grows");
    // In a short run, the allocator does not reach a steady state.
    let settled = cycles >= 500_000;
    assert!(
        !settled || after.resident_bytes <= before.resident_bytes + (16 << 20),
        "the process grows"
    );
    assert!(after.files <= before.files, "open files grow");
    // The host's stream threads end some time after their streams.
    assert!(after.threads <= before.threads + threads, "threads grow");
}

fn setting(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn a_short_while_on_the_host() {
    soak(Choice::Host, 40_000, 4);
}

#[test]
#[ignore = "takes long"]
fn a_million_cycles() {
    let cycles = setting("GPUARRAY_SOAK_CYCLES", 1_000_000);
    soak(Choice::Auto, cycles, setting("GPUARRAY_SOAK_THREADS", 16));
}
