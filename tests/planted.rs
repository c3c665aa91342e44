//! Planted faults: `make sanitize` runs each, and fails if its sanitizer does not report it. No
//! other run executes them.

use gpuarray::{Choice, Result, StreamOptions};
use std::hint::black_box;

#[test]
#[ignore = "a data race, for ThreadSanitizer to find"]
fn a_race() -> Result<()> {
    let device = gpuarray::open(Choice::Host)?.device(0)?;
    let options = StreamOptions::default().non_blocking(true);
    let streams = [device.create_stream(options)?, device.create_stream(options)?];
    let bytes = 1 << 20;
    let address = device.allocate(bytes)?;
    for value in 0..20 {
        for stream in &streams {
            // SAFETY: the range is allocated. The streams are not ordered, which is the planted
            // fault.
            unsafe { stream.fill(address, value, 1, bytes)? };
        }
    }
    device.synchronize()
}

#[test]
#[ignore = "a use of freed memory, for AddressSanitizer to find"]
fn a_use_of_freed_memory() {
    let value = black_box(Box::new(7_u64));
    let address = &raw const *value;
    drop(value);
    // SAFETY: none, which is the planted fault.
    black_box(unsafe { address.read_volatile() });
}

#[test]
#[ignore = "a leak, for LeakSanitizer to find"]
fn a_leak() {
    std::mem::forget(black_box(vec![1_u8; 1000]));
}
