mod fake;

use super::buffers::{BYTES, LEAST_CHUNK, LEAST_PART, MOST_CHUNK, SLOTS, THREADS};
use super::*;
use crate::state::DeviceState;
use crate::stream::DriverStream;
use Direction::{DeviceToHost, HostToDevice};
use fake::Fake;
use hal::stream::{HostRange, StreamCore, StreamMemory as _, StreamOptions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// A size that counts as large in both directions.
const LEAST: usize = LEAST_UP;

/// Two threads with chunks of 256 KiB, so that a copy goes round the chunks several times.
const SIZES: Sizes = Sizes { threads: 2, chunk: 256 << 10 };
const PINNED: usize = SIZES.threads * SLOTS * SIZES.chunk;

struct Device {
    fake: Arc<Fake>,
    state: Arc<DeviceState>,
}

impl Device {
    fn with(sizes: Sizes) -> Device {
        let (fake, state) = Fake::device();
        state.staging.sizes.set(Ok(sizes)).expect("sizes are set once");
        state.staging.unstaged.store(WORTH, Ordering::Relaxed);
        Device { fake, state }
    }

    fn new() -> Device {
        Device::with(SIZES)
    }

    /// Waits until all threads have their chunks, because a thread that is not needed may start
    /// late.
    fn drain(&self) {
        let start = Instant::now();
        while self.fake.pinned_bytes() < PINNED {
            assert!(start.elapsed() < Duration::from_secs(60), "a thread is missing");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.fake.pinned_bytes(), PINNED);
    }

    /// The same, after a copy that starts the threads.
    fn drain_after(&self, stream: &DriverStream) {
        round(stream, HostToDevice, LEAST);
        self.drain();
    }

    fn stream(&self) -> DriverStream {
        DriverStream::create(&self.state, StreamOptions::default()).expect("a stream")
    }

    fn default_stream(&self) -> DriverStream {
        DriverStream::default_of(&self.state)
    }
}

/// Returns bytes whose period is not a power of two.
fn noise(bytes: usize, seed: u8) -> Vec<u8> {
    const PERIOD: usize = 8191;
    let period: Vec<u8> = (0..PERIOD).map(|i| (i * 167 + (i >> 5) * 13) as u8 ^ seed).collect();
    let mut noise = period.repeat(bytes / PERIOD + 1);
    noise.truncate(bytes);
    noise
}

fn copy(stream: &DriverStream, direction: Direction, to: &mut [u8], from: &[u8]) -> Result<()> {
    assert_eq!(to.len(), from.len());
    let (to, from, bytes) = (to.as_mut_ptr() as u64, from.as_ptr() as u64, to.len());
    // SAFETY: the slices outlive the call, after which no copy is in progress.
    unsafe { stream.transfer(&Transfer::linear(direction, to, from, bytes, false)) }
}

/// Copies bytes to a new buffer, and checks that it equals them when the call returns.
fn round(stream: &DriverStream, direction: Direction, bytes: usize) {
    let from = noise(bytes, 1);
    let mut to = vec![0; bytes];
    copy(stream, direction, &mut to, &from).expect("a copy");
    assert!(to == from, "{direction:?} of {bytes} bytes");
}

#[test]
fn threads_and_chunks_stay_within_the_bytes() {
    for bytes in [128 << 10, 200_000, 1 << 20, 7 << 20, 64 << 20, 1 << 30] {
        for threads in [0, 1, 2, 3, 8, 256] {
            let sizes = Sizes::new(threads, bytes);
            assert!(sizes.threads * SLOTS * sizes.chunk <= bytes, "{threads}, {bytes}: {sizes:?}");
            assert!((LEAST_CHUNK..=MOST_CHUNK).contains(&sizes.chunk), "{sizes:?}");
            assert!(sizes.chunk.is_power_of_two(), "{sizes:?}");
            assert_eq!(sizes.threads == 0, threads == 0);
        }
    }
    assert_eq!(Sizes::new(8, 32 << 20), Sizes { threads: 8, chunk: MOST_CHUNK });
    assert_eq!(Sizes::new(8, 1 << 20).threads, 8);
    assert_eq!(Sizes::new(8, 128 << 10), Sizes { threads: 1, chunk: LEAST_CHUNK });
}

#[test]
fn every_thread_gets_parts_that_fit_and_are_not_tiny() {
    for limit in [128 << 10, 1 << 20, 64 << 20] {
        let sizes = Sizes::new(8, limit);
        for bytes in [LEAST_DOWN, LEAST_DOWN + 1, 5_000_000, 16 << 20, 1 << 30] {
            let part = sizes.part(bytes);
            assert!(part <= sizes.chunk && part >= LEAST_PART.min(sizes.chunk), "{bytes}: {part}");
            assert!(bytes / part >= sizes.threads || part <= LEAST_PART, "{bytes}: {part}");
            assert!(part.is_power_of_two(), "{part}");
        }
    }
    assert_eq!(Sizes::new(8, 64 << 20).part(1 << 30), MOST_CHUNK);
}

#[test]
fn parts_are_cut_at_multiples_of_the_hosts_address() {
    let unit = 64 << 10;
    for (offset, bytes) in [(0, 3 * unit), (1, 3 * unit), (unit - 1, 2), (77, 5), (9, 200_001)] {
        let (host, device) = (10 * unit + offset, 7);
        let row = HostSide::Row(host as u64);
        let whole = Part { direction: HostToDevice, device, host: row, bytes, job: 3 };
        let (mut rest, mut sum) = (whole, 0);
        while rest.bytes > 0 {
            let part = rest.split(unit);
            let HostSide::Row(address) = part.host else { panic!("{part:?}") };
            assert_eq!((address - host as u64, part.device - device), (sum, sum));
            assert!(part.bytes > 0 && part.bytes <= unit && part.job == 3, "{part:?}");
            sum += part.bytes as u64;
            assert!(
                rest.bytes == 0 || (address as usize + part.bytes).is_multiple_of(unit),
                "{part:?}"
            );
        }
        assert_eq!(sum, bytes as u64);
    }
}

#[test]
fn the_environment_sets_threads_and_bytes() {
    let from = |variables: &[(&str, &str)]| {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        Sizes::from_variables(|name| variables.get(name).map(OsString::from))
    };
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    assert_eq!(from(&[]).expect("defaults"), Sizes::new(cores.clamp(2, 16), 64 << 20));
    assert_eq!(from(&[(THREADS, "0")]).expect("none").threads, 0);
    assert_eq!(
        from(&[(THREADS, "3"), (BYTES, "6M")]).expect("sizes"),
        Sizes { threads: 3, chunk: 1 << 20 }
    );
    for (name, value) in
        [(THREADS, "-1"), (THREADS, "257"), (THREADS, "many"), (BYTES, "127K"), (BYTES, "0")]
    {
        let error = from(&[(name, value)]).expect_err(value);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.detail().contains(name) && error.detail().contains(value), "{error}");
    }
}

#[test]
fn every_byte_arrives_and_none_beside() {
    let device = Device::new();
    for stream in [device.default_stream(), device.stream()] {
        for (start, bytes) in
            [(0, LEAST), (1, LEAST), (4095, LEAST + 1), (63, 4_999_999), (0, 9 << 20)]
        {
            for (direction, skew) in [(HostToDevice, 5), (DeviceToHost, 11)] {
                let from = noise(bytes, 2);
                let mut to = vec![0xaa; start + bytes + skew];
                copy(&stream, direction, &mut to[start..start + bytes], &from).expect("a copy");
                assert!(to[start..start + bytes] == from, "{direction:?} {start} {bytes}");
                let beside = to[..start].iter().chain(&to[start + bytes..]);
                assert!(beside.copied().all(|byte| byte == 0xaa), "{direction:?} {start} {bytes}");
            }
        }
    }
    assert_eq!(device.fake.count("direct"), 0);
    device.drain();
}

#[test]
fn work_queued_before_runs_before() {
    let device = Device::new();
    for stream in [device.default_stream(), device.stream()] {
        // A queued fill must not run after the later copy to the same memory.
        let mut there = vec![0; LEAST];
        let address = there.as_mut_ptr() as u64;
        // SAFETY: the buffer lives until the stream has been waited for.
        unsafe { stream.fill(address, 9, 1, LEAST) }.expect("a fill");
        let from = noise(LEAST, 3);
        copy(&stream, HostToDevice, &mut there, &from).expect("a copy");
        assert!(there == from);
        stream.synchronize().expect("nothing fails");
        assert!(there == from);
        // And a queued fill must run before the copy that reads it.
        // SAFETY: as above.
        unsafe { stream.fill(address, 7, 1, LEAST) }.expect("a fill");
        let mut back = vec![0; LEAST];
        copy(&stream, DeviceToHost, &mut back, &there).expect("a copy");
        assert!(back.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn work_that_the_stream_waits_for_runs_before() {
    let device = Device::new();
    let streams = [device.default_stream(), device.stream()];
    for (first, then) in [(&streams[0], &streams[1]), (&streams[1], &streams[0])] {
        let mut there = vec![0; LEAST];
        // SAFETY: the buffer lives until the fill has run.
        unsafe { first.fill(there.as_mut_ptr() as u64, 7, 1, LEAST) }.expect("a fill");
        let mut back = vec![0; LEAST];
        copy(then, DeviceToHost, &mut back, &there).expect("a copy");
        assert!(back.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn only_large_copies_of_pageable_memory_are_staged() {
    let device = Device::new();
    let stream = device.stream();
    round(&stream, HostToDevice, LEAST_UP - 1);
    round(&stream, DeviceToHost, LEAST_DOWN - 1);
    let pinned = device.fake.pin(noise(LEAST, 4));
    let mut to = vec![0; LEAST];
    let there = to.as_mut_ptr() as u64;
    // SAFETY: both ranges live until the copy has been waited for.
    unsafe { stream.transfer(&Transfer::linear(HostToDevice, there, pinned, LEAST, true)) }
        .expect("a copy");
    assert!(to == noise(LEAST, 4));
    let announced = device.state.context.capture_state.announce();
    round(&stream, HostToDevice, LEAST);
    drop(announced);
    assert_eq!(device.fake.count("allocate_pinned"), 0);
    assert_eq!(device.fake.count("direct"), 3);
    round(&stream, HostToDevice, LEAST);
    assert_eq!(device.fake.count("direct"), 3);
}

#[test]
fn threads_are_made_when_they_are_worth_it() {
    for direct in [&[][..], &[LEAST, WORTH - LEAST - 1]] {
        let device = Device::new();
        device.state.staging.unstaged.store(0, Ordering::Relaxed);
        let stream = device.stream();
        for &bytes in direct {
            round(&stream, HostToDevice, bytes);
        }
        assert_eq!(device.fake.count("direct"), direct.len());
        assert_eq!(device.fake.count("allocate_pinned"), 0);
        round(&stream, HostToDevice, if direct.is_empty() { WORTH } else { LEAST });
        round(&stream, DeviceToHost, LEAST_DOWN);
        assert_eq!(device.fake.count("direct"), direct.len());
    }
}

#[test]
fn no_threads_is_the_direct_way() {
    let device = Device::with(Sizes { threads: 0, chunk: 1 << 20 });
    round(&device.stream(), HostToDevice, LEAST);
    round(&device.default_stream(), DeviceToHost, LEAST);
    assert_eq!((device.fake.count("direct"), device.fake.count("allocate_pinned")), (2, 0));
}

#[test]
fn a_bad_setting_is_an_error_of_the_copy() {
    let (_fake, state) = Fake::device();
    let sizes = Sizes::from_variables(|name| (name == THREADS).then(|| "x".into()));
    state.staging.sizes.set(sizes).expect("sizes are set once");
    let stream = DriverStream::default_of(&state);
    let error = copy(&stream, HostToDevice, &mut vec![0; LEAST], &vec![1; LEAST]).expect_err("x");
    assert!(error.detail().contains(THREADS), "{error}");
}

#[test]
fn a_failure_in_the_middle_ends_the_copy_and_no_more() {
    let device = Device::new();
    let stream = device.stream();
    round(&stream, HostToDevice, LEAST);
    let bytes = 8 << 20;
    for (direction, call) in [
        (HostToDevice, "to_device"),
        (HostToDevice, "event_record"),
        (HostToDevice, "event_synchronize"),
        (DeviceToHost, "to_host"),
        (DeviceToHost, "event_record"),
        (DeviceToHost, "event_synchronize"),
    ] {
        for later in [1, 2, 5, 9] {
            // The caller itself uses an event before the threads begin.
            let later = later + usize::from(call.starts_with("event"));
            device.fake.fail(call, device.fake.count(call) + later, 304);
            let before = device.fake.count(call);
            let error =
                copy(&stream, direction, &mut vec![0; bytes], &noise(bytes, 5)).expect_err(call);
            assert_eq!((error.status().code, error.call()), (304, "transfer"), "{call}: {error}");
            assert!(device.fake.is_idle(), "{call}");
            // Each thread may find the failure by itself, with two parts in progress.
            let made = device.fake.count(call) - before;
            assert!(made < later + SIZES.threads * (SLOTS + 1), "{call}: {made} more calls");
            device.fake.mend();
            round(&stream, direction, bytes);
        }
    }
    device.drain();
    assert_eq!(device.fake.count("allocate_pinned"), SIZES.threads, "one set of workers for all");
}

#[test]
fn a_failure_before_the_copy_is_that_of_the_wait() {
    let device = Device::new();
    let stream = device.stream();
    for call in ["event_create", "event_record", "event_synchronize"] {
        device.drain_after(&stream);
        let copies = device.fake.count("to_device");
        device.fake.fail(call, device.fake.count(call) + 1, 304);
        let (mut to, from) = (vec![0; LEAST], vec![1; LEAST]);
        let error = copy(&stream, HostToDevice, &mut to, &from).expect_err(call);
        assert_eq!(error.status().code, 304);
        assert_eq!(device.fake.count("to_device"), copies);
        device.fake.mend();
    }
}

#[test]
fn a_panic_in_a_thread_is_an_error() {
    let device = Device::new();
    let stream = device.stream();
    round(&stream, HostToDevice, LEAST);
    for direction in [HostToDevice, DeviceToHost] {
        device.fake.calls_to_panic.store(6, Ordering::SeqCst);
        let (mut to, from) = (vec![0; 4 * LEAST], vec![1; 4 * LEAST]);
        let error = copy(&stream, direction, &mut to, &from).expect_err("a panic");
        assert!(error.detail().contains("panicked"), "{error}");
        assert!(device.fake.is_idle(), "{direction:?}");
        device.fake.calls_to_panic.store(usize::MAX, Ordering::SeqCst);
        round(&stream, direction, 4 * LEAST);
    }
}

#[test]
fn without_page_locked_memory_the_driver_copies() {
    let device = Device::new();
    let stream = device.stream();
    device.fake.fail("allocate_pinned", 1, Status::OUT_OF_MEMORY);
    round(&stream, HostToDevice, LEAST);
    round(&stream, DeviceToHost, LEAST);
    assert_eq!((device.fake.count("direct"), device.fake.live()), (2, [1, 0, 0]));
    // With some page-locked memory, there are fewer threads.
    let some = device.fake.count("allocate_pinned") + 2;
    device.fake.mend();
    device.fake.fail("allocate_pinned", some, Status::OUT_OF_MEMORY);
    round(&stream, HostToDevice, 9 << 20);
    device.fake.mend();
    assert_eq!(device.fake.count("direct"), 2);
    assert_eq!(device.fake.pinned_bytes(), SLOTS * SIZES.chunk);
}

#[test]
fn copies_of_several_threads_share_the_ring() {
    let device = Device::new();
    std::thread::scope(|scope| {
        for number in 0..6_u8 {
            let device = &device;
            scope.spawn(move || {
                let stream = device.stream();
                for turn in 0..4 {
                    let bytes = LEAST + 333_333 * usize::from(number + turn);
                    let direction = if turn % 2 == 0 { HostToDevice } else { DeviceToHost };
                    let from = noise(bytes, number);
                    let mut to = vec![0; bytes];
                    copy(&stream, direction, &mut to, &from).expect("a copy");
                    assert!(to == from, "{number}, {turn}");
                }
            });
        }
    });
    assert_eq!(device.fake.count("direct"), 0);
    device.drain();
}

#[test]
fn a_copy_behind_other_work_holds_nobody_up() {
    let device = Device::new();
    let (slow, quick) = (device.stream(), device.stream());
    device.fake.shut(slow.handle(), true);
    std::thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..4).map(|_| scope.spawn(|| round(&slow, HostToDevice, 4 * LEAST))).collect();
        let start = Instant::now();
        while device.fake.count("is_shut") < 8 {
            assert!(start.elapsed() < Duration::from_secs(60), "the copies do not wait");
            std::thread::sleep(Duration::from_millis(1));
        }
        round(&quick, HostToDevice, 4 * LEAST);
        round(&quick, DeviceToHost, 4 * LEAST);
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        device.fake.shut(slow.handle(), false);
    });
}

#[test]
fn what_is_released_is_made_anew() {
    let device = Device::new();
    let stream = device.stream();
    let mut rings = 0;
    let mut next = || {
        round(&stream, HostToDevice, 9 << 20);
        rings += 1;
        device.drain();
        assert_eq!(device.fake.count("allocate_pinned"), rings * SIZES.threads);
    };
    next();
    device.state.trim(1).expect("nothing is given back");
    assert_eq!(device.fake.pinned_bytes(), PINNED);
    device.state.trim(0).expect("memory is given back");
    assert_eq!(device.fake.live(), [1, 0, 0]);
    next();
    let announced = device.state.context.capture_state.announce();
    device.state.staging.release();
    drop(announced);
    assert_eq!(device.fake.pinned_bytes(), PINNED);
    device.state.reset().expect("a reset");
    assert_eq!(device.fake.pinned_bytes(), 0);
    round(&device.default_stream(), DeviceToHost, LEAST);
    assert!(device.fake.pinned_bytes() > 0);
}

#[test]
fn the_end_of_the_context_frees_everything() {
    let Device { fake, state } = Device::new();
    round(&DriverStream::default_of(&state), HostToDevice, 5 << 20);
    drop(state);
    assert_eq!(fake.live(), [0, 0, 0]);
}

#[test]
fn a_lost_device_is_not_asked_to_free_anything() {
    let Device { fake, state } = Device::new();
    let stream = DriverStream::default_of(&state);
    round(&stream, HostToDevice, LEAST);
    fake.fail("to_host", 1, Status::ILLEGAL_ADDRESS);
    copy(&stream, DeviceToHost, &mut vec![0; LEAST], &vec![1; LEAST]).expect_err("a lost device");
    assert!(state.context.is_lost());
    drop((stream, state));
    assert_eq!(fake.count("free_pinned") + fake.count("stream_destroy"), 0);
}

#[cfg(unix)]
#[test]
fn a_forked_child_leaves_the_ring_alone() {
    hal::backend::watch_process();
    let Device { fake, state } = Device::new();
    let stream = DriverStream::default_of(&state);
    round(&stream, HostToDevice, LEAST);
    let (mut to, from) = (vec![0; LEAST], noise(LEAST, 6));
    // SAFETY: the child does not wait for a lock that another thread may hold, and exits
    // immediately.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a signal ends the child if it hangs.
        unsafe { libc::alarm(20) };
        let refused = copy(&stream, HostToDevice, &mut to, &from)
            .is_err_and(|error| error.kind() == ErrorKind::InvalidHandle);
        let refused = refused && state.trim(0).is_err();
        drop((stream, state));
        // SAFETY: exits the child without running the parent's exit handlers.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: the status is written before the call returns.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "how the child ended");
    copy(&stream, HostToDevice, &mut to, &from).expect("a copy");
    assert!(to == from);
    drop((stream, state));
    assert_eq!(fake.live(), [0, 0, 0]);
}

// Copies of many ranges of host memory.

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
