//! Prints the bandwidth of copies between pageable host memory and the first NVIDIA GPU.
//!
//! ```text
//! cargo run --release -p gpuarray-backend-cuda --example transfer_bandwidth
//! ```
//!
//! Bandwidths are medians of nine copies on the default stream, with a wait after each. "Fresh"
//! memory is allocated for the copy and freed after it, like a new numpy array. For sizes below 32
//! MiB, set `MALLOC_MMAP_THRESHOLD_=131072`; otherwise glibc reuses the same pages.
//! `PYGPU_STAGING_THREADS=0` shows the driver's own copies, for comparison.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use gpuarray_backend_cuda::open;
use hal::memory::{DeviceMemory, PinnedMemory};
use hal::{Direction, Result, Stream, Transfer};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::sync::Arc;
use std::time::Instant;

const MOST: usize = 256 << 20;

fn main() -> Result<()> {
    let device = open()?.device(0)?;
    let stream = device.default_stream();
    let on_device = DeviceMemory::plain(&device, MOST)?;
    let source: Vec<u8> = (0..MOST / 4).flat_map(|i| (i as u32).to_ne_bytes()).collect();
    let mut back = vec![0_u8; MOST];
    let start = Instant::now();
    send(&stream, &on_device, &source, MOST)?;
    println!("{:.2} ms for the first {MOST} bytes up", start.elapsed().as_secs_f64() * 1e3);
    receive(&stream, &on_device, back.as_mut_ptr(), MOST)?;
    assert!(back == source, "every byte comes back");

    println!("{:>10} {:>8} {:>8} {:>8}  GB/s", "bytes", "up", "down", "fresh");
    for shift in 17..=MOST.ilog2() {
        let bytes = 1 << shift;
        let up = median(|| send(&stream, &on_device, &source, bytes))?;
        let down = median(|| receive(&stream, &on_device, back.as_mut_ptr(), bytes))?;
        let fresh = median(|| receive_fresh(&stream, &on_device, bytes))?;
        let [up, down, fresh] = [up, down, fresh].map(|seconds| bytes as f64 / seconds / 1e9);
        println!("{bytes:>10} {up:>8.2} {down:>8.2} {fresh:>8.2}");
    }
    let mut pinned = PinnedMemory::new(&device, MOST)?;
    let up = median(|| send(&stream, &on_device, &pinned, MOST))?;
    let down = median(|| receive(&stream, &on_device, pinned.as_mut_ptr(), MOST))?;
    let [up, down] = [up, down].map(|seconds| MOST as f64 / seconds / 1e9);
    println!("{:>10} {up:>8.2} {down:>8.2}", "pinned");
    Ok(())
}

fn send(stream: &Arc<dyn Stream>, to: &DeviceMemory, from: &[u8], bytes: usize) -> Result<()> {
    let from = from[..bytes].as_ptr() as u64;
    let copy = Transfer::linear(Direction::HostToDevice, to.address(), from, bytes, true);
    // SAFETY: both ranges hold `bytes` bytes, and the call waits.
    unsafe { stream.transfer(&copy) }
}

/// Copies `bytes` bytes to `to`, which has room for them.
fn receive(stream: &Arc<dyn Stream>, from: &DeviceMemory, to: *mut u8, bytes: usize) -> Result<()> {
    let copy = Transfer::linear(Direction::DeviceToHost, to as u64, from.address(), bytes, true);
    // SAFETY: both ranges hold `bytes` bytes, and the call waits.
    unsafe { stream.transfer(&copy) }
}

fn receive_fresh(stream: &Arc<dyn Stream>, from: &DeviceMemory, bytes: usize) -> Result<()> {
    let layout = Layout::array::<u8>(bytes).expect("a size of memory");
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    let result = receive(stream, from, memory, bytes);
    // SAFETY: allocated above with this layout; the copy has been waited for.
    unsafe { dealloc(memory, layout) };
    result
}

/// Returns the median of nine timings in seconds, after one warm-up copy.
fn median(mut copy: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for turn in 0..10 {
        let start = Instant::now();
        copy()?;
        if turn > 0 {
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
