//! Copies of many ranges of host memory.

use super::{Device, LEAST, SIZES, noise};
use crate::staging::Sizes;
use crate::stream::DriverStream;
use hal::error::Result;
use hal::stream::{HostRange, StreamMemory as _};

/// The size from which ranges are not collected.
const SMALL_RANGE: usize = 64 << 10;

/// Gathers pieces of the given lengths, and checks that they follow each other when the call returns and that
/// the bytes around them are unchanged.
fn gather(stream: &DriverStream, lengths: &[usize]) -> Result<()> {
    let pieces: Vec<_> = lengths.iter().map(|&bytes| noise(bytes, bytes as u8)).collect();
    let ranges: Vec<_> = pieces
        .iter()
        .map(|piece| HostRange { address: piece.as_ptr() as u64, bytes: piece.len() })
        .collect();
    let expected = [&[7; 5][..], &pieces.concat(), &[7; 5]].concat();
    let mut to = vec![7; expected.len()];
    // SAFETY: the pieces and the target outlive the call, after which no copy is in progress.
    unsafe { stream.gather(to[5..].as_mut_ptr() as u64, &ranges)? };
    assert!(to == expected, "{lengths:?}");
    Ok(())
}

#[test]
fn ranges_arrive_one_behind_the_other() {
    let device = Device::new();
    let streams = [device.stream(), device.default_stream()];
    for stream in &streams {
        // Small ranges alone, and together still too small to be staged.
        gather(stream, &[]).expect("nothing");
        gather(stream, &[0, 3, 0, 0, 70_000, 1]).expect("few bytes");
        // Staged: pieces of every size, empty ones, and ends that coincide with the ends of chunks.
        gather(stream, &[SIZES.chunk; 20]).expect("chunks");
        gather(stream, &[0, LEAST, 0, 1, 1, SIZES.chunk - 2, 0])
            .expect("a large one and small ones");
        gather(stream, &[999; 5000]).expect("many small ones");
        let mut state = 12345_usize;
        let lengths: Vec<_> = (0..300)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) % if state & 0x700_0000 == 0 { 900_000 } else { 3_000 }
            })
            .collect();
        gather(stream, &lengths).expect("random lengths");
    }
    assert!(device.fake.pinned_bytes() > 0, "nothing was staged");
}

#[test]
fn ranges_arrive_without_threads() {
    let device = Device::with(Sizes::new(0, 1 << 20));
    gather(&device.stream(), &[LEAST, 5, SMALL_RANGE, SMALL_RANGE - 1, 0, 1]).expect("a copy");
    gather(&device.stream(), &[1000; 5000]).expect("small ones");
    assert_eq!(device.fake.pinned_bytes(), 0);
}

#[test]
fn a_failure_ends_a_gather() {
    let device = Device::new();
    let stream = device.stream();
    gather(&stream, &[300_000; 40]).expect("a copy");
    for later in [1, 4, 9] {
        device.fake.fail("to_device", device.fake.count("to_device") + later, 304);
        let error = gather(&stream, &[300_000; 40]).expect_err("a part fails");
        assert_eq!(error.status().code, 304, "{error}");
        assert!(device.fake.is_idle());
        device.fake.mend();
        gather(&stream, &[300_000; 40]).expect("the next copy");
    }
}
