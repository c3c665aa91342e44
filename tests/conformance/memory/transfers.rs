//! Copies between host and device, contiguous and strided, and fills.

use crate::context::{Context, Gate, expect_error};
use crate::harness::{Outcome, tests};
use crate::reference::{Reference, for_every_type, samples};
use gpuarray::memory::{DeviceMemory, PinnedMemory};
use gpuarray::{DeviceArray, Direction, ErrorKind, Stream, Transfer};
use hal::HostRange;

tests![
    what_is_sent_comes_back_in_every_type,
    large_arrays_come_back_whole,
    strided_arrays_are_sent_and_fetched_by_index,
    a_copy_between_arrays_of_one_device_keeps_the_bytes,
    ranges_of_host_memory_arrive_one_behind_the_other,
    pitched_rows_and_slices_are_copied,
    a_copy_from_pinned_memory_does_not_wait,
    a_copy_from_pageable_memory_has_read_it_when_it_returns,
    fills_of_each_width_repeat_their_bytes,
    a_fill_of_another_width_or_alignment_is_refused,
    the_host_reads_through_a_device_pointer needs [HostAddresses],
    an_array_with_gaps_is_no_single_transfer,
];

fn what_is_sent_comes_back_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        for count in [0, 1, 3, 1000] {
            let host = samples::<T>(count, count);
            let mut array = DeviceArray::from_slice(&context.device, &host)?;
            assert_eq!(array.to_vec()?, host);
            let reversed: Vec<T> = host.iter().rev().copied().collect();
            array.copy_from_slice(&reversed)?;
            let mut back = vec![T::ONE; count];
            array.copy_to_slice(&mut back)?;
            assert_eq!(back, reversed);
        }
        Ok(())
    }
    for_every_type!(check(context));
    Ok(())
}

fn large_arrays_come_back_whole(context: &Context) -> Outcome {
    let host: Vec<u32> = (0..2_500_001u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let array = DeviceArray::from_slice(&context.device, &host)?;
    assert!(array.to_vec()? == host);
    let on_stream = array.on(&context.stream()?)?;
    assert!(on_stream.copy()?.to_vec()? == host);
    Ok(())
}

fn strided_arrays_are_sent_and_fetched_by_index(context: &Context) -> Outcome {
    let array = DeviceArray::<i32>::zeros(&context.device, &[4, 3])?;
    let mut turned = array.transpose(None)?;
    let host: Vec<i32> = (1..=12).collect();
    turned.copy_from_slice(&host)?;
    assert_eq!(turned.to_vec()?, host);
    assert_eq!(array.to_vec()?, [1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12]);
    Ok(())
}

fn a_copy_between_arrays_of_one_device_keeps_the_bytes(context: &Context) -> Outcome {
    let host = samples::<f64>(0, 333);
    let source = context.array(&[333], &host)?;
    let mut target = DeviceArray::<f64>::zeros(&context.device, &[333])?;
    target.assign(&source)?;
    let stream = context.stream()?;
    let memory = DeviceMemory::plain(&context.device, 333 * 8)?;
    let (from, to) = (target.as_device_pointer(), memory.address());
    context.device.synchronize()?;
    let copy = Transfer::linear(Direction::DeviceToDevice, to, from, 333 * 8, true);
    // SAFETY: both ranges are allocated and idle, and the call waits.
    unsafe { stream.transfer(&copy)? };
    let mut back = vec![0f64; 333];
    fetch(stream.as_ref(), to, &mut back)?;
    assert_eq!(back, host);
    Ok(())
}

fn ranges_of_host_memory_arrive_one_behind_the_other(context: &Context) -> Outcome {
    let host: Vec<u8> =
        (0..9_000_001u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let lengths =
        [vec![], vec![0, 3, 0, 70_000, 1], vec![999; 5000], vec![1, 5_000_000, 0, 3_999_999]];
    for (stream, lengths) in [context.stream()?, context.device.default_stream()]
        .iter()
        .flat_map(|stream| lengths.iter().map(move |lengths| (stream, lengths)))
    {
        // From the last piece of the host's bytes to the first.
        let mut end = host.len();
        let pieces: Vec<&[u8]> = lengths
            .iter()
            .map(|length| {
                end -= length;
                &host[end..end + length]
            })
            .collect();
        let ranges: Vec<_> = pieces
            .iter()
            .map(|piece| HostRange { address: piece.as_ptr() as u64, bytes: piece.len() })
            .collect();
        let expected = [&[9; 8], &*pieces.concat(), &[9; 8]].concat();
        let memory = DeviceMemory::plain(&context.device, expected.len())?;
        let mut back = vec![0; expected.len()];
        // SAFETY: the ranges are allocated, earlier work is on the same stream, and the call waits.
        unsafe {
            stream.fill(memory.address(), 9, 1, expected.len())?;
            stream.gather(memory.address() + 8, &ranges)?;
        }
        fetch(stream.as_ref(), memory.address(), &mut back)?;
        assert!(back == expected, "{} ranges", lengths.len());
    }
    Ok(())
}

/// Copies device memory into a slice and waits.
fn fetch<T: gpuarray::Element>(
    stream: &dyn Stream,
    address: u64,
    values: &mut [T],
) -> gpuarray::Result<()> {
    let to = values.as_mut_ptr() as u64;
    let copy = Transfer::linear(Direction::DeviceToHost, to, address, size_of_val(values), true);
    // SAFETY: the callers pass an address with at least as many bytes, and the call waits.
    unsafe { stream.transfer(&copy) }
}

fn pitched_rows_and_slices_are_copied(context: &Context) -> Outcome {
    // Two slices of three rows of four bytes, from a block with a pitch of 7 and 5 rows per slice.
    let (pitch, rows) = (7usize, 5usize);
    let host: Vec<u8> = (0..(2 * rows * pitch) as u8).collect();
    for stream in [context.stream()?, context.device.default_stream()] {
        let memory = DeviceMemory::plain(&context.device, 2 * 3 * 16)?;
        let send = Transfer {
            direction: Direction::HostToDevice,
            destination: memory.address(),
            source: host.as_ptr() as u64,
            width: 4,
            height: 3,
            depth: 2,
            destination_pitch: 16,
            source_pitch: pitch,
            destination_slice: 48,
            source_slice: rows * pitch,
            wait: true,
        };
        // SAFETY: the rows are inside the vector and the allocation, and the call waits.
        unsafe { stream.transfer(&send)? };
        let mut back = vec![0xffu8; 2 * 3 * 4];
        let receive = Transfer {
            direction: Direction::DeviceToHost,
            destination: back.as_mut_ptr() as u64,
            source: memory.address(),
            destination_pitch: 4,
            source_pitch: 16,
            destination_slice: 12,
            source_slice: 48,
            ..send
        };
        // SAFETY: as above.
        unsafe { stream.transfer(&receive)? };
        let expected: Vec<u8> = (0..2 * 3 * 4)
            .map(|i| host[i / 12 * rows * pitch + i / 4 % 3 * pitch + i % 4])
            .collect();
        assert_eq!(back, expected);
    }
    Ok(())
}

fn a_copy_from_pinned_memory_does_not_wait(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut source = PinnedMemory::new(&context.device, 4096)?;
    source.fill(3);
    let memory = DeviceMemory::for_stream(&context.device, &stream, 4096)?;
    let gate = Gate::on(stream.as_ref())?;
    let from = source.pointer() as u64;
    let copy = Transfer::linear(Direction::HostToDevice, memory.address(), from, 4096, false);
    // SAFETY: both ranges live until the stream has been waited for.
    unsafe { stream.transfer(&copy)? };
    assert!(!stream.query()?);
    gate.open();
    let mut back = vec![0u8; 4096];
    fetch(stream.as_ref(), memory.address(), &mut back)?;
    assert!(back.iter().all(|&byte| byte == 3));
    Ok(())
}

fn a_copy_from_pageable_memory_has_read_it_when_it_returns(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = DeviceArray::<u8>::zeros(&context.device, &[1000])?.on(&stream)?;
    context.device.synchronize()?;
    let mut source = vec![5u8; 1000];
    let gate = Gate::on(stream.as_ref())?;
    let opener = gate.open_later();
    // SAFETY: the source is allocated until the call returns, by which it must have been read.
    unsafe { array.untyped().upload(source.as_ptr(), false)? };
    source.fill(9);
    opener.join().unwrap();
    assert_eq!((array.min()?, array.max()?), (5, 5));
    Ok(())
}

fn fills_of_each_width_repeat_their_bytes(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.device.default_stream()] {
        for (width, value, pattern) in [
            (1, 0xaabb_ccddu32, vec![0xdd]),
            (2, 0xaabb_ccdd, 0xccddu16.to_ne_bytes().to_vec()),
            (4, 0xaabb_ccdd, 0xaabb_ccddu32.to_ne_bytes().to_vec()),
        ] {
            let memory = DeviceMemory::plain(&context.device, 64)?;
            let mut back = vec![0u8; 64];
            // SAFETY: the elements are inside the allocation, which outlives the fill.
            unsafe {
                stream.fill(memory.address(), 0, 4, 16)?;
                stream.fill(memory.address() + 8, value, width, 5)?;
            }
            fetch(stream.as_ref(), memory.address(), &mut back)?;
            assert_eq!(back[8..8 + 5 * width], pattern.repeat(5));
            assert!(back[8 + 5 * width..].iter().all(|&byte| byte == 0));
        }
    }
    Ok(())
}

fn a_fill_of_another_width_or_alignment_is_refused(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let memory = DeviceMemory::plain(&context.device, 64)?;
    for (offset, width, named) in [(0, 3, "3"), (0, 0, "0"), (1, 2, "2"), (2, 4, "4")] {
        // SAFETY: the range is inside the allocation.
        let result = unsafe { stream.fill(memory.address() + offset, 1, width, 4) };
        expect_error(result, ErrorKind::InvalidArgument, &[named])?;
    }
    Ok(())
}

fn the_host_reads_through_a_device_pointer(context: &Context) -> Outcome {
    let array = context.counting(&[10])?;
    let view = array.index(&[(4..).into()])?;
    context.device.synchronize()?;
    // SAFETY: the address points to six integers on the host, and nothing writes them.
    let seen = unsafe { std::slice::from_raw_parts(view.as_device_pointer() as *const i32, 6) };
    assert_eq!(seen, [4, 5, 6, 7, 8, 9]);
    assert!(context.device.can_access(array.as_device_pointer(), 40));
    assert!(!context.device.can_access(8, 8));
    Ok(())
}

fn an_array_with_gaps_is_no_single_transfer(context: &Context) -> Outcome {
    let array = context.counting(&[4, 4])?;
    let column = array.index(&[(..).into(), 0.into()])?;
    let mut back = [0u8; 64];
    // SAFETY: the buffer has room for the elements.
    let result = unsafe { column.untyped().download(back.as_mut_ptr(), true) };
    expect_error(result, ErrorKind::InvalidArgument, &["gaps", "(4,)", "16"])?;
    let turned = array.transpose(None)?;
    // SAFETY: as above; a transposed array is contiguous, and is copied in its memory order.
    unsafe { turned.untyped().download(back.as_mut_ptr(), true)? };
    assert_eq!(back[4..8], 1i32.to_ne_bytes());
    Ok(())
}
