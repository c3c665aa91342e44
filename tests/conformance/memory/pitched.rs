//! Pitched memory, and copies of rows and slices between all kinds of memory.

use crate::context::{Context, Gate, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{read, write};
use gpuarray::memory::{DeviceMemory, PinnedMemory};
use gpuarray::{Device, Direction, ErrorKind, Result, Stream, Transfer};
use std::sync::Arc;

tests![
    pitched_memory_has_aligned_rows,
    pitched_memory_of_other_elements_is_refused,
    pitched_memory_beyond_the_address_space_is_refused,
    rows_of_pitched_memory_keep_apart,
    rows_go_in_every_direction,
    slices_need_not_be_multiples_of_the_pitch,
    one_row_or_one_column_is_copied,
    a_copy_of_nothing_copies_nothing,
    rows_from_pinned_memory_do_not_wait,
    rows_from_pageable_memory_are_read_when_the_call_returns,
    rows_of_many_shapes_agree_with_a_loop,
];

/// Rows of device memory that are freed on drop.
struct Pitched {
    device: Arc<dyn Device>,
    address: u64,
    pitch: usize,
    height: usize,
}

impl Pitched {
    fn new(context: &Context, width: usize, height: usize, element: usize) -> Result<Pitched> {
        let device = context.device.clone();
        let (address, pitch) = device.allocate_pitched(width, height, element)?;
        Ok(Pitched { device, address, pitch, height })
    }
}

impl Drop for Pitched {
    fn drop(&mut self) {
        // SAFETY: allocated with these bytes; the tests wait for their copies.
        unsafe { self.device.free(self.address, self.pitch * self.height) }.unwrap();
    }
}

fn pitched_memory_has_aligned_rows(context: &Context) -> Outcome {
    for (width, height, element) in [(1, 1, 4), (13, 7, 4), (512, 3, 8), (513, 100, 16)] {
        let rows = Pitched::new(context, width, height, element)?;
        assert!(rows.pitch >= width, "{} for {width}", rows.pitch);
        assert!(rows.pitch.is_multiple_of(element), "{} for {element}", rows.pitch);
        assert!(rows.address.is_multiple_of(16), "{:#x}", rows.address);
    }
    Ok(())
}

fn pitched_memory_of_other_elements_is_refused(context: &Context) -> Outcome {
    for element in [0, 1, 2, 3, 5, 12, 32] {
        let refused = context.device.allocate_pitched(64, 4, element);
        let named = element.to_string();
        expect_error(refused, ErrorKind::InvalidArgument, &[&named, "4, 8 and 16"])?;
    }
    Ok(())
}

fn pitched_memory_beyond_the_address_space_is_refused(context: &Context) -> Outcome {
    for (width, height) in [(usize::MAX, 2), (1 << 40, 1 << 40), (1 << 20, usize::MAX)] {
        let result = context.device.allocate_pitched(width, height, 4);
        let kind = result.err().map(|error| error.kind());
        assert!(
            matches!(kind, Some(ErrorKind::Overflow | ErrorKind::OutOfMemory)),
            "{width} times {height}: {kind:?}"
        );
    }
    Ok(())
}

fn rows_of_pitched_memory_keep_apart(context: &Context) -> Outcome {
    let (width, height) = (37, 5);
    let rows = Pitched::new(context, width, height, 4)?;
    let stream = context.stream()?;
    let zeros = vec![0u8; rows.pitch * height];
    write(stream.as_ref(), rows.address, &zeros)?;
    let host: Vec<u8> = (0..(width * height) as u8).collect();
    let copy = Transfer {
        direction: Direction::HostToDevice,
        destination: rows.address,
        source: host.as_ptr() as u64,
        width,
        height,
        depth: 1,
        destination_pitch: rows.pitch,
        source_pitch: width,
        destination_slice: 0,
        source_slice: 0,
        wait: true,
    };
    // SAFETY: the rows are inside the vector and the allocation, and the call waits.
    unsafe { stream.transfer(&copy)? };
    let mut all = vec![9u8; rows.pitch * height];
    read(stream.as_ref(), rows.address, &mut all)?;
    for (row, bytes) in all.chunks(rows.pitch).enumerate() {
        assert_eq!(bytes[..width], host[row * width..][..width]);
        assert!(bytes[width..].iter().all(|&byte| byte == 0), "nothing behind a row is touched");
    }
    Ok(())
}

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
struct Side {
    offset: usize,
    pitch: usize,
    slice: usize,
}

/// A copy: its extents, and the layout of both sides.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    from: Side,
    to: Side,
}

/// The size of a case's blocks in bytes.
const BYTES: usize = 4096;
const EMPTY: u8 = 0xee;

impl Case {
    fn transfer(&self, direction: Direction, to: u64, from: u64, wait: bool) -> Transfer {
        let [width, height, depth] = self.extents;
        Transfer {
            direction,
            destination: to + self.to.offset as u64,
            source: from + self.from.offset as u64,
            width,
            height,
            depth,
            destination_pitch: self.to.pitch,
            source_pitch: self.from.pitch,
            destination_slice: self.to.slice,
            source_slice: self.from.slice,
            wait,
        }
    }

    /// Returns the bytes of the destination's block after the copy.
    fn expected(&self, source: &[u8]) -> Vec<u8> {
        let [width, height, depth] = self.extents;
        let mut block = vec![EMPTY; BYTES];
        for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
            let place = |side: &Side| side.offset + z * side.slice + y * side.pitch;
            block[place(&self.to)..][..width]
                .copy_from_slice(&source[place(&self.from)..][..width]);
        }
        block
    }
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// Runs a case in every direction, with pageable and pinned memory, waiting and not waiting.
fn check(context: &Context, stream: &dyn Stream, case: Case) -> Outcome {
    let source = pattern();
    let expected = case.expected(&source);
    let device = DeviceMemory::plain(&context.device, BYTES)?;
    let other = DeviceMemory::plain(&context.device, BYTES)?;
    let (near, far) = (device.address(), other.address());
    let mut pinned = PinnedMemory::new(&context.device, BYTES)?;
    let mut back = vec![0; BYTES];
    let kept = vec![EMPTY; BYTES];
    for (wait, from_pinned) in [(true, false), (true, true), (false, true)] {
        let what = format!("{case:?}, wait {wait}, pinned {from_pinned}");
        let host = match from_pinned {
            true => {
                pinned.copy_from_slice(&source);
                pinned.pointer() as u64
            }
            false => source.as_ptr() as u64,
        };
        write(stream, near, &kept)?;
        // SAFETY: here and below, every row is inside a block of `BYTES` bytes, which lives until
        // the stream has been waited for.
        unsafe { stream.transfer(&case.transfer(Direction::HostToDevice, near, host, wait))? };
        read(stream, near, &mut back)?;
        assert!(back == expected, "to the device: {what}");

        write(stream, near, &source)?;
        write(stream, far, &kept)?;
        // SAFETY: as above.
        unsafe { stream.transfer(&case.transfer(Direction::DeviceToDevice, far, near, wait))? };
        read(stream, far, &mut back)?;
        assert!(back == expected, "on the device: {what}");

        back.fill(EMPTY);
        pinned.fill(EMPTY);
        let host = match from_pinned {
            true => pinned.pointer() as u64,
            false => back.as_mut_ptr() as u64,
        };
        // SAFETY: as above.
        unsafe { stream.transfer(&case.transfer(Direction::DeviceToHost, host, near, wait))? };
        if !wait {
            stream.synchronize()?;
        }
        match from_pinned {
            true => assert!(pinned[..] == expected, "to the host: {what}"),
            false => assert!(back == expected, "to the host: {what}"),
        }
    }
    Ok(())
}

fn rows_go_in_every_direction(context: &Context) -> Outcome {
    let case = Case {
        extents: [13, 7, 5],
        from: Side { offset: 3, pitch: 29, slice: 29 * 9 },
        to: Side { offset: 1, pitch: 17, slice: 17 * 8 },
    };
    for stream in [context.stream()?, context.blocking_stream()?, context.device.default_stream()] {
        check(context, stream.as_ref(), case)?;
    }
    Ok(())
}

fn slices_need_not_be_multiples_of_the_pitch(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let even = Side { offset: 0, pitch: 16, slice: 160 };
    let odd = Side { offset: 5, pitch: 21, slice: 211 };
    // The slice pitch is less than the rows' pitch times their number.
    let tight = Side { offset: 0, pitch: 20, slice: 8 * 20 + 11 };
    for (from, to) in [(odd, even), (even, odd), (odd, tight), (tight, odd), (tight, tight)] {
        check(context, stream.as_ref(), Case { extents: [11, 9, 6], from, to })?;
    }
    Ok(())
}

fn one_row_or_one_column_is_copied(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let from = Side { offset: 2, pitch: 19, slice: 19 * 12 };
    let to = Side { offset: 7, pitch: 23, slice: 23 * 11 };
    for extents in [[1, 11, 1], [17, 1, 1], [17, 1, 9], [1, 1, 9], [1, 1, 1], [1, 10, 9]] {
        check(context, stream.as_ref(), Case { extents, from, to })?;
    }
    Ok(())
}

fn a_copy_of_nothing_copies_nothing(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let side = Side { offset: 0, pitch: 16, slice: 160 };
    for extents in [[0, 5, 5], [5, 0, 5], [5, 5, 0], [0, 1, 1]] {
        check(context, stream.as_ref(), Case { extents, from: side, to: side })?;
    }
    Ok(())
}

fn rows_from_pinned_memory_do_not_wait(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut source = PinnedMemory::new(&context.device, BYTES)?;
    let memory = DeviceMemory::plain(&context.device, BYTES)?;
    let side = Side { offset: 0, pitch: 64, slice: 640 };
    let case = Case { extents: [60, 10, 6], from: side, to: side };
    write(stream.as_ref(), memory.address(), &[EMPTY; BYTES])?;
    let from = source.pointer() as u64;
    let copy = case.transfer(Direction::HostToDevice, memory.address(), from, false);
    let gate = Gate::on(stream.as_ref())?;
    // SAFETY: the rows are inside both blocks, which live until the stream has been waited for.
    unsafe { stream.transfer(&copy)? };
    assert!(!stream.query()?, "the copy waits behind the gate");
    // The copy has not read the source yet.
    source.copy_from_slice(&pattern());
    gate.open();
    let mut back = vec![0; BYTES];
    read(stream.as_ref(), memory.address(), &mut back)?;
    assert!(back == case.expected(&pattern()));
    Ok(())
}

fn rows_from_pageable_memory_are_read_when_the_call_returns(context: &Context) -> Outcome {
    let side = Side { offset: 0, pitch: 64, slice: 640 };
    for extents in [[60, 10, 1], [60, 10, 6]] {
        for stream in [context.stream()?, context.device.default_stream()] {
            let mut source = pattern();
            let memory = DeviceMemory::plain(&context.device, BYTES)?;
            let case = Case { extents, from: side, to: side };
            write(stream.as_ref(), memory.address(), &[EMPTY; BYTES])?;
            let from = source.as_ptr() as u64;
            let copy = case.transfer(Direction::HostToDevice, memory.address(), from, false);
            let gate = Gate::on(stream.as_ref())?;
            let opener = gate.open_later();
            // SAFETY: the source is allocated until the call returns; the test checks that the call
            // has read it by then.
            unsafe { stream.transfer(&copy)? };
            source.fill(EMPTY);
            opener.join().unwrap();
            let mut back = vec![0; BYTES];
            read(stream.as_ref(), memory.address(), &mut back)?;
            assert!(back == case.expected(&pattern()), "{extents:?}");
        }
    }
    Ok(())
}

fn rows_of_many_shapes_agree_with_a_loop(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut seed = 12345u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..25 {
        let extents = [1 + random(40), 1 + random(7), 1 + random(5)];
        let mut side = || {
            let pitch = extents[0] + random(9);
            let slice = pitch * (extents[1] - 1) + extents[0] + random(30);
            Side { offset: random(16), pitch, slice }
        };
        let (from, to) = (side(), side());
        check(context, stream.as_ref(), Case { extents, from, to })?;
    }
    Ok(())
}
