//! Copies whose source and destination overlap give the same result as copies through a separate buffer.
//!
//! `GPUARRAY_OVERLAPS` is the number of random copies of each search; `GPUARRAY_OVERLAP_SEED` is the first
//! seed.

use crate::captures::graphs::{capture, replay};
use crate::context::Context;
use crate::harness::{Outcome, tests};
use crate::kernels::textures;
use crate::programs::{read, write};
use crate::streams::random_streams::{Random, setting};
use gpuarray::memory::DeviceMemory;
use gpuarray::{Direction, Feature, Result, Stream, Transfer};
use std::sync::Arc;

tests![
    random_copies_within_a_memory_agree_with_a_reference,
    large_plain_copies_within_a_memory_agree_with_a_reference,
    copies_from_the_hosts_side_of_a_memory_agree needs [HostAddresses],
    peer_copies_within_a_device_agree needs [Driver],
    copies_within_an_array_agree_with_a_reference needs [Textures],
];

const BYTES: usize = 6000;

/// The method of a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Waiting,
    Queued,
    Captured,
    Peer,
}

/// Returns the bytes of a block after a copy within it.
fn expected(block: &[u8], base: u64, copy: &Transfer) -> Vec<u8> {
    let mut copied = block.to_vec();
    let place = |start: u64, pitch: usize, slice: usize, z: usize, y: usize| {
        (start - base) as usize + z * slice + y * pitch
    };
    for z in 0..copy.depth {
        for y in 0..copy.height {
            let from = place(copy.source, copy.source_pitch, copy.source_slice, z, y);
            let to = place(copy.destination, copy.destination_pitch, copy.destination_slice, z, y);
            copied[to..][..copy.width].copy_from_slice(&block[from..][..copy.width]);
        }
    }
    copied
}

/// Returns a random copy within `BYTES` bytes at `base`. In two of three copies, both sides have the same
/// gaps.
fn random_copy(random: &mut Random, base: u64) -> Transfer {
    let [height, depth] = match random.below(3) {
        0 => [1, 1],
        1 => [1 + random.below(12), 1],
        _ => [1 + random.below(6), 1 + random.below(5)],
    };
    let width = 1 + random.below(if height * depth == 1 { BYTES / 2 } else { 70 });
    let mut side = || {
        let pitch = width + random.below(2) * random.below(40);
        let tight = (height - 1) * pitch + width;
        let slice = match random.below(3) {
            0 => tight + random.below(30),
            _ => height * pitch + random.below(2) * pitch,
        };
        (pitch, slice)
    };
    let from = side();
    let other = side();
    let to = if random.below(3) == 0 { other } else { from };
    let mut start = |(pitch, slice): (usize, usize)| {
        let reach = (depth - 1) * slice + (height - 1) * pitch + width;
        random.below(BYTES - reach + 1) as u64
    };
    let (source, anywhere) = (start(from), start(to));
    let reach = ((depth - 1) * to.1 + (height - 1) * to.0 + width) as u64;
    let near = (source + random.below(9) as u64).saturating_sub(4).min(BYTES as u64 - reach);
    let destination = if random.below(2) == 0 { near } else { anywhere };
    Transfer {
        direction: Direction::DeviceToDevice,
        destination: base + destination,
        source: base + source,
        width,
        height,
        depth,
        destination_pitch: to.0,
        source_pitch: from.0,
        destination_slice: to.1,
        source_slice: from.1,
        wait: false,
    }
}

fn run(context: &Context, stream: &Arc<dyn Stream>, copy: &Transfer, way: Way) -> Result<()> {
    let device = context.device.as_ref();
    let queue = |wait: bool| {
        let &Transfer { destination, source, width, .. } = copy;
        // SAFETY: both sides are in one block, which lives until the stream has been waited for.
        unsafe {
            match way {
                Way::Peer => {
                    device.transfer_peer(stream.as_ref(), destination, source, device, width)
                }
                _ => stream.transfer(&Transfer { wait, ..*copy }),
            }
        }
    };
    if way == Way::Captured {
        return replay(&capture(stream, || queue(false))?, stream);
    }
    queue(way == Way::Waiting)
}

/// Copies within a memory, and compares all of its bytes with the expected ones.
fn check(
    context: &Context,
    (stream, way): (&Arc<dyn Stream>, Way),
    memory: &DeviceMemory,
    block: &[u8],
    copy: &Transfer,
) -> Outcome {
    write(stream.as_ref(), memory.address(), block)?;
    run(context, stream, copy, way)?;
    let mut back = vec![0; block.len()];
    read(stream.as_ref(), memory.address(), &mut back)?;
    assert!(back == expected(block, memory.address(), copy), "{way:?} {copy:?}");
    Ok(())
}

/// Returns bytes that repeat after a prime number, of which the distance of no copy is a multiple.
fn pattern(bytes: usize) -> Vec<u8> {
    let period = (0..65_521_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    let mut all = period.collect::<Vec<_>>().repeat(bytes.div_ceil(65_521));
    all.truncate(bytes);
    all
}

/// Returns every stream with every method that it supports.
fn ways(context: &Context) -> Result<Vec<(Arc<dyn Stream>, Way)>> {
    let own = [context.stream()?, context.blocking_stream()?];
    let streams = [&own[..], &[context.device.default_stream()]].concat();
    let plain = streams
        .into_iter()
        .flat_map(|stream| [(stream.clone(), Way::Waiting), (stream, Way::Queued)]);
    let captured = own.iter().map(|stream| (stream.clone(), Way::Captured));
    let has_graphs = context.can(Feature::Graphs);
    Ok(plain.chain(captured.filter(|_| has_graphs)).collect())
}

fn random_copies_within_a_memory_agree_with_a_reference(context: &Context) -> Outcome {
    let (ways, block) = (ways(context)?, pattern(BYTES));
    let memory = DeviceMemory::plain(&context.device, BYTES)?;
    let pooled = DeviceMemory::for_stream(&context.device, &ways[0].0, BYTES)?;
    ways[0].0.synchronize()?;
    let mut random = Random(setting("GPUARRAY_OVERLAP_SEED", 1));
    for number in 0..setting("GPUARRAY_OVERLAPS", 400) as usize {
        let memory = if number.is_multiple_of(3) { &pooled } else { &memory };
        let copy = random_copy(&mut random, memory.address());
        let (stream, way) = &ways[number % ways.len()];
        check(context, (stream, *way), memory, &block, &copy)?;
    }
    Ok(())
}

fn large_plain_copies_within_a_memory_agree_with_a_reference(context: &Context) -> Outcome {
    // Copies larger and smaller than one staging piece.
    for (bytes, shift) in [(40_000_003, 1), (20_000_003, 17_000_000), (9_000_001, 4096)] {
        let (stream, block) = (context.stream()?, pattern(bytes + shift));
        let memory = DeviceMemory::plain(&context.device, block.len())?;
        let (low, high) = (memory.address(), memory.address() + shift as u64);
        for (to, from) in [(low, high), (high, low)] {
            let copy = Transfer::linear(Direction::DeviceToDevice, to, from, bytes, false);
            check(context, (&stream, Way::Queued), &memory, &block, &copy)?;
        }
    }
    Ok(())
}

fn copies_from_the_hosts_side_of_a_memory_agree(context: &Context) -> Outcome {
    let (stream, block) = (context.stream()?, pattern(BYTES));
    let memory = DeviceMemory::plain(&context.device, BYTES)?;
    let mut random = Random(setting("GPUARRAY_OVERLAP_SEED", 2));
    for number in 0..setting("GPUARRAY_OVERLAPS", 60) {
        let direction = [Direction::HostToDevice, Direction::DeviceToHost][number as usize % 2];
        let copy = Transfer { direction, ..random_copy(&mut random, memory.address()) };
        check(context, (&stream, Way::Waiting), &memory, &block, &copy)?;
    }
    Ok(())
}

fn peer_copies_within_a_device_agree(context: &Context) -> Outcome {
    let (stream, block) = (context.stream()?, pattern(BYTES));
    let memory = DeviceMemory::plain(&context.device, BYTES)?;
    let at = memory.address();
    for (to, from) in [(at + 3, at), (at, at + 3), (at + 1000, at), (at, at + 2000), (at, at)] {
        let copy = Transfer::linear(Direction::DeviceToDevice, to, from, 4000, false);
        check(context, (&stream, Way::Peer), &memory, &block, &copy)?;
    }
    Ok(())
}

fn copies_within_an_array_agree_with_a_reference(context: &Context) -> Outcome {
    let mut random = Random(setting("GPUARRAY_OVERLAP_SEED", 3));
    for number in 0..setting("GPUARRAY_OVERLAPS", 40) {
        let is_captured = number % 3 == 0 && context.can(Feature::Graphs);
        textures::check_copy_within(context, |below| random.below(below), is_captured)?;
    }
    Ok(())
}
