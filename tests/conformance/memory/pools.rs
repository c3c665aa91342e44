//! Freed memory: which allocation gets it, when it returns to the device, and what happens when
//! memory runs out.

use crate::context::{Context, Gate, error_of, expect_error};
use crate::driver_functions::Raw;
use crate::harness::{Outcome, tests};
use gpuarray::memory::DeviceMemory;
use gpuarray::{DeviceArray, ErrorKind, Feature, Status};

tests![
    trimming_gives_memory_back_and_takes_none_in_use,
    a_release_threshold_is_refused_by_name_without_a_pool,
    a_freed_block_serves_later_work_of_its_stream,
    a_freed_block_does_not_serve_another_stream_at_once needs [StreamOrderedReuse],
    freed_blocks_of_many_sizes_are_found_again needs [StreamOrderedReuse],
    the_device_gets_freed_memory_when_it_is_trimmed needs [StreamOrderedReuse],
    the_device_gets_memory_above_the_threshold needs [DriverPool],
    what_a_pool_keeps_counts_as_free needs [DriverPool],
    running_out_says_how_much_there_is needs [StreamOrderedReuse],
    the_pool_gives_way_to_plain_memory needs [StreamOrderedReuse],
    the_pool_of_one_stream_gives_way_to_another needs [StreamOrderedReuse],
    memory_can_be_used_after_running_out needs [StreamOrderedReuse],
    an_address_tells_its_allocation,
];

fn trimming_gives_memory_back_and_takes_none_in_use(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let kept = context.counting(&[1000])?.on(&stream)?.copy()?;
    drop(DeviceArray::<u8>::zeros(&context.device, &[4 << 20])?.on(&stream)?.copy()?);
    for keep in [1 << 20, 0, 0] {
        context.device.trim_memory(keep)?;
        assert_eq!(kept.to_vec()?, (0..1000).collect::<Vec<_>>());
    }
    Ok(())
}

fn a_release_threshold_is_refused_by_name_without_a_pool(context: &Context) -> Outcome {
    if context.can(Feature::DriverPool) {
        return Ok(context.device.set_release_threshold(usize::MAX)?);
    }
    let refused = context.device.set_release_threshold(0);
    expect_error(refused, ErrorKind::Unsupported, &["set_release_threshold"])
}

fn a_freed_block_serves_later_work_of_its_stream(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.device.default_stream()] {
        for bytes in [1, 5000, 1 << 20] {
            let first = DeviceMemory::for_stream(&context.device, &stream, bytes)?;
            let address = first.address();
            let gate = Gate::on(stream.as_ref())?;
            drop(first);
            // The block's work may not have run yet; later work is ordered after it.
            let second = DeviceMemory::for_stream(&context.device, &stream, bytes)?;
            if context.can(Feature::StreamOrderedReuse) {
                assert_eq!(second.address(), address, "{bytes} bytes");
            }
            // SAFETY: the memory is allocated for the stream, and freed after its work.
            unsafe { stream.fill(second.address(), 1, 1, bytes)? };
            gate.open();
            stream.synchronize()?;
        }
    }
    Ok(())
}

fn a_freed_block_does_not_serve_another_stream_at_once(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    for bytes in [4000, 1 << 20, 9 << 20] {
        let memory = DeviceMemory::for_stream(&context.device, &first, bytes)?;
        let address = memory.address();
        let gate = Gate::on(first.as_ref())?;
        // SAFETY: the memory is allocated for the stream, and freed after its work.
        unsafe { first.fill(address, 7, 1, bytes)? };
        drop(memory);
        let other = DeviceMemory::for_stream(&context.device, &second, bytes)?;
        assert!(
            other.address() + bytes as u64 <= address || address + bytes as u64 <= other.address(),
            "{bytes} bytes at {address:#x} are still to be filled"
        );
        gate.open();
        first.synchronize()?;
    }
    Ok(())
}

fn freed_blocks_of_many_sizes_are_found_again(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let sizes: Vec<usize> = (0..40).map(|i| 1 + (i * i * 397) % 900_000).collect();
    let allocate = || -> gpuarray::Result<Vec<DeviceMemory>> {
        sizes.iter().map(|&it| DeviceMemory::for_stream(&context.device, &stream, it)).collect()
    };
    let mut addresses: Vec<u64> = allocate()?.iter().map(DeviceMemory::address).collect();
    addresses.sort_unstable();
    for _ in 0..3 {
        let mut again: Vec<u64> = allocate()?.iter().map(DeviceMemory::address).collect();
        again.sort_unstable();
        assert_eq!(again, addresses, "the same blocks serve the same sizes");
    }
    Ok(())
}

/// More than a stream keeps in its own list.
const LARGE: usize = 96 << 20;

fn the_device_gets_freed_memory_when_it_is_trimmed(context: &Context) -> Outcome {
    let raw = Raw::new(context)?;
    let stream = context.stream()?;
    context.device.trim_memory(0)?;
    let before = raw.free_memory()?;
    let large = DeviceMemory::for_stream(&context.device, &stream, LARGE)?;
    let small: Vec<_> = (0..8)
        .map(|_| DeviceMemory::for_stream(&context.device, &stream, 1 << 20))
        .collect::<gpuarray::Result<_>>()?;
    assert!(raw.free_memory()? <= before - LARGE);
    drop((large, small));
    stream.synchronize()?;
    assert!(raw.free_memory()? <= before - LARGE, "the pool keeps what is freed");
    context.device.trim_memory(LARGE / 2)?;
    let trimmed = raw.free_memory()?;
    assert!(trimmed + LARGE >= before, "{trimmed} of {before} bytes are free");
    context.device.trim_memory(0)?;
    assert!(raw.free_memory()? + (2 << 20) >= before, "nothing is kept");
    Ok(())
}

fn the_device_gets_memory_above_the_threshold(context: &Context) -> Outcome {
    let raw = Raw::new(context)?;
    let stream = context.stream()?;
    context.device.trim_memory(0)?;
    let before = raw.free_memory()?;
    for (threshold, kept) in [(0, 0), (usize::MAX, LARGE)] {
        context.device.set_release_threshold(threshold)?;
        drop(DeviceMemory::for_stream(&context.device, &stream, LARGE)?);
        stream.synchronize()?;
        let free = raw.free_memory()?;
        match kept {
            0 => assert!(free + (2 << 20) >= before, "{free} of {before} bytes are free"),
            kept => assert!(free <= before - kept, "{free} of {before} bytes are free"),
        }
    }
    context.device.trim_memory(0)?;
    Ok(())
}

fn what_a_pool_keeps_counts_as_free(context: &Context) -> Outcome {
    let raw = Raw::new(context)?;
    let stream = context.stream()?;
    drop(DeviceMemory::for_stream(&context.device, &stream, LARGE)?);
    stream.synchronize()?;
    let info = context.device.memory_info()?;
    assert!(info.free >= raw.free_memory()? + LARGE, "{info:?}");
    assert!(info.free <= info.total, "{info:?}");
    Ok(())
}

fn running_out_says_how_much_there_is(context: &Context) -> Outcome {
    let total = context.device.memory_info()?.total;
    let stream = context.stream()?;
    let (asked, there) = ((2 * total).to_string(), total.to_string());
    let name = context.device.id().to_string();
    for error in [
        error_of(DeviceMemory::for_stream(&context.device, &stream, 2 * total)),
        error_of(DeviceMemory::plain(&context.device, 2 * total)),
    ] {
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert_eq!(error.status().code, Status::OUT_OF_MEMORY, "{error}");
        for word in [&asked, &there, &name] {
            assert!(error.detail().contains(word.as_str()), "the text lacks {word}: {error}");
        }
    }
    Ok(())
}

fn the_pool_gives_way_to_plain_memory(context: &Context) -> Outcome {
    let stream = context.stream()?;
    context.device.trim_memory(0)?;
    let most = context.device.memory_info()?.free / 8 * 5;
    drop(DeviceMemory::for_stream(&context.device, &stream, most)?);
    // This succeeds only if the pool's memory is released.
    let plain = DeviceMemory::plain(&context.device, most)?;
    // SAFETY: the range is inside the allocation, which outlives the fill.
    unsafe { stream.fill(plain.address() + most as u64 / 4 * 4 - 4, 5, 4, 1)? };
    stream.synchronize()?;
    drop(plain);
    context.device.trim_memory(0)?;
    Ok(())
}

fn the_pool_of_one_stream_gives_way_to_another(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    context.device.trim_memory(0)?;
    let most = context.device.memory_info()?.free / 8 * 5;
    for stream in [&first, &second, &first] {
        let memory = DeviceMemory::for_stream(&context.device, stream, most)?;
        // SAFETY: the range is inside the allocation, which is freed after the fill.
        unsafe { stream.fill(memory.address(), 5, 1, 1000)? };
    }
    context.device.trim_memory(0)?;
    Ok(())
}

fn memory_can_be_used_after_running_out(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let kept = context.counting(&[1000])?.on(&stream)?;
    let piece = context.device.memory_info()?.free / 5;
    let mut pieces = Vec::new();
    let error = loop {
        match DeviceMemory::for_stream(&context.device, &stream, piece) {
            Ok(memory) => pieces.push(memory),
            Err(error) => break error,
        }
        assert!(pieces.len() <= 6, "more memory than there is");
    };
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(pieces.len() >= 3, "{} pieces of a fifth: {error}", pieces.len());
    assert_eq!((&kept + &kept)?.to_vec()?[999], 1998, "what is small still works");
    pieces.pop();
    pieces.push(DeviceMemory::for_stream(&context.device, &stream, piece)?);
    drop(pieces);
    context.device.trim_memory(0)?;
    assert_eq!(kept.sum()?, 499_500);
    Ok(())
}

fn an_address_tells_its_allocation(context: &Context) -> Outcome {
    let memory = DeviceMemory::plain(&context.device, 10_000)?;
    let inside = memory.address() + 777;
    assert_eq!(context.device.address_range(inside)?, (memory.address(), 10_000));
    let outside = context.device.address_range(64);
    expect_error(outside, ErrorKind::InvalidArgument, &["0x40"])?;
    for (address, bytes, expected) in [
        (memory.address(), 10_000, true),
        (inside, 1, true),
        (inside, 10_000, false),
        (memory.address(), usize::MAX, false),
        (64, 1, false),
    ] {
        let can = context.device.can_access(address, bytes);
        assert_eq!(can, expected, "{bytes} bytes from {address:#x}");
    }
    Ok(())
}
