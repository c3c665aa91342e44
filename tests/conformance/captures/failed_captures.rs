//! Captures that fail, and work that may run during a capture.

use crate::captures::graphs::{capture, numbers, replay};
use crate::context::{Context, error_of, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions;
use gpuarray::memory::{Access, AccessGuard, DeviceMemory};
use gpuarray::{
    CaptureMode, DeviceArray, Direction, ErrorKind, EventOptions, Feature, Stream, Transfer,
};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

tests![
    captures_are_refused_by_name,
    waiting_during_a_capture_is_an_error_and_ends_it needs [Graphs],
    a_fork_that_is_not_joined_is_an_error needs [Graphs],
    what_a_graph_cannot_repeat_is_refused needs [Graphs],
    the_default_stream_captures_nothing needs [Graphs],
    captures_begin_and_end_in_pairs needs [Graphs],
    another_stream_cannot_end_a_capture needs [Graphs],
    an_empty_capture_is_a_graph needs [Graphs],
    a_stream_is_dropped_while_it_captures needs [Graphs],
    a_stream_is_dropped_that_memory_of_its_capture_refers_to needs [Graphs],
    other_streams_work_during_a_capture needs [Graphs],
    the_default_stream_works_during_a_capture_beside_it needs [Graphs],
    other_threads_work_during_a_capture needs [Graphs],
    two_streams_capture_at_once needs [Graphs],
    every_mode_captures needs [Graphs],
    work_beside_a_capture_does_not_become_part_of_it needs [Graphs],
    trimming_beside_a_capture_leaves_the_graph_alone needs [Graphs],
    a_capture_begins_behind_work_that_is_being_queued needs [Graphs],
];

fn captures_are_refused_by_name(context: &Context) -> Outcome {
    if context.can(Feature::Graphs) {
        return Ok(());
    }
    let stream = context.stream()?;
    let kind = ErrorKind::Unsupported;
    expect_error(stream.begin_capture(CaptureMode::default()), kind, &["begin_capture"])?;
    expect_error(stream.end_capture(), kind, &["end_capture"])?;
    assert!(!stream.is_capturing()?);
    Ok(())
}

/// Checks that the stream no longer captures, and works.
pub(crate) fn check_usable(context: &Context, stream: &Arc<dyn Stream>) -> Outcome {
    assert!(!stream.is_capturing()?);
    let mut x = numbers(context, stream, 5)?;
    assert_eq!((&x + 1)?.to_vec()?, [1, 2, 3, 4, 5]);
    let graph = capture(stream, || x.update_scalar(functions::Add, 10))?;
    replay(&graph, stream)?;
    assert_eq!(x.to_vec()?, [10, 11, 12, 13, 14]);
    Ok(())
}

fn waiting_during_a_capture_is_an_error_and_ends_it(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.blocking_stream()?] {
        let mut x = numbers(context, &stream, 10)?;
        stream.begin_capture(CaptureMode::default())?;
        x.fill(1)?;
        let error = error_of(stream.synchronize());
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.detail().contains("captur"), "{error}");
        let error = error_of(stream.end_capture());
        assert!(error.detail().contains("captur"), "{error}");
        assert_eq!(x.to_vec()?, (0..10).collect::<Vec<_>>(), "nothing has run");
        check_usable(context, &stream)?;
    }
    Ok(())
}

fn a_fork_that_is_not_joined_is_an_error(context: &Context) -> Outcome {
    let (main, side) = (context.stream()?, context.stream()?);
    let mut y = numbers(context, &side, 50)?;
    let fork = context.device.create_event(EventOptions::ORDERING)?;
    let result = capture(&main, || {
        main.record(fork.as_ref())?;
        side.wait_event(fork.as_ref())?;
        y.fill(0)
    });
    let error = error_of(result);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    check_usable(context, &main)?;
    check_usable(context, &side)
}

fn what_a_graph_cannot_repeat_is_refused(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let memory = DeviceMemory::plain(&context.device, 64)?;
    let mut host = [0u8; 64];
    let mut x = numbers(context, &stream, 10)?;
    let kind = ErrorKind::InvalidArgument;
    let graph = capture(&stream, || {
        x.update_scalar(functions::Add, 1)?;
        for (direction, to, from) in [
            (Direction::HostToDevice, memory.address(), host.as_ptr() as u64),
            (Direction::DeviceToHost, host.as_mut_ptr() as u64, memory.address()),
        ] {
            for (wait, named) in [(true, "wait"), (false, "page-locked")] {
                let copy = Transfer::linear(direction, to, from, 64, wait);
                // SAFETY: the ranges are allocated; the copy is refused.
                let refused = unsafe { stream.transfer(&copy) };
                expect_error(refused, kind, &["captures", named]).unwrap();
            }
        }
        let refused = stream.host_function(Box::new(|| ()));
        expect_error(refused, kind, &["captures", "host_function"]).unwrap();
        Ok(())
    })?;
    assert_eq!(graph.node_count(), 1, "the capture is still whole");
    replay(&graph, &stream)?;
    assert_eq!(x.to_vec()?[9], 10);
    Ok(())
}

fn the_default_stream_captures_nothing(context: &Context) -> Outcome {
    let stream = context.device.default_stream();
    let refused = stream.begin_capture(CaptureMode::default());
    expect_error(refused, ErrorKind::InvalidArgument, &["default stream"])?;
    assert!(!stream.is_capturing()?);
    assert_eq!((&context.counting(&[3])? + 1)?.to_vec()?, [1, 2, 3]);
    Ok(())
}

fn captures_begin_and_end_in_pairs(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let kind = ErrorKind::InvalidArgument;
    expect_error(stream.end_capture(), kind, &["begin a capture"])?;
    let mut x = numbers(context, &stream, 3)?;
    stream.begin_capture(CaptureMode::default())?;
    x.update_scalar(functions::Add, 1)?;
    let error = error_of(stream.begin_capture(CaptureMode::default()));
    assert!(error.detail().contains("captur"), "{error}");
    // The refused call did not change the first capture.
    let graph = stream.end_capture()?;
    replay(&graph, &stream)?;
    assert_eq!(x.to_vec()?, [1, 2, 3]);
    expect_error(stream.end_capture(), kind, &["begin a capture"])?;
    check_usable(context, &stream)
}

fn another_stream_cannot_end_a_capture(context: &Context) -> Outcome {
    let (main, side) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &main, 3)?;
    main.begin_capture(CaptureMode::default())?;
    x.fill(0)?;
    expect_error(side.end_capture(), ErrorKind::InvalidArgument, &["begin a capture"])?;
    assert!(main.is_capturing()?);
    replay(&main.end_capture()?, &main)?;
    assert_eq!(x.to_vec()?, [0; 3]);
    Ok(())
}

fn an_empty_capture_is_a_graph(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let graph = capture(&stream, || Ok(()))?;
    assert_eq!(graph.node_count(), 0);
    replay(&graph, &stream)?;
    check_usable(context, &stream)
}

fn a_stream_is_dropped_while_it_captures(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = numbers(context, &stream, 1000)?;
    stream.begin_capture(CaptureMode::default())?;
    let y = (&x + &x)?;
    drop((x, y, stream));
    // Nothing remains of the capture that would make other streams wait or fail.
    let other = context.blocking_stream()?;
    check_usable(context, &other)?;
    context.device.synchronize()?;
    assert_eq!((&context.counting(&[3])? + 1)?.to_vec()?, [1, 2, 3]);
    Ok(())
}

/// Queues work of all kinds, allocates new sizes, and waits.
fn other_work(context: &Context, stream: &Arc<dyn Stream>, size: usize) -> gpuarray::Result<()> {
    let x = DeviceArray::<i64>::full(&context.device, &[size], 3)?.on(stream)?;
    assert_eq!((&x + &x)?.sum()?, 6 * size as i64);
    let plain = DeviceMemory::plain(&context.device, 1000 + size)?;
    // SAFETY: the range is inside the allocation, which outlives the fill.
    unsafe { stream.fill(plain.address(), 1, 1, 1000)? };
    stream.synchronize()?;
    let event = context.device.create_event(EventOptions::default())?;
    stream.record(event.as_ref())?;
    event.synchronize()
}

fn a_stream_is_dropped_that_memory_of_its_capture_refers_to(context: &Context) -> Outcome {
    let on = [context.device.default_stream(), context.stream()?];
    for home in &on {
        let stream = context.stream()?;
        let x = numbers(context, home, 100)?;
        context.device.synchronize()?;
        stream.begin_capture(CaptureMode::Relaxed)?;
        // The call is refused, but the stream is recorded as a possible reader.
        let error = error_of(x.on(&stream)?.to_vec());
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        drop((x, stream));
        // This would be refused if the capture were still active.
        context.device.synchronize()?;
        check_usable(context, &context.stream()?)?;
    }
    Ok(())
}

fn other_streams_work_during_a_capture(context: &Context) -> Outcome {
    let (main, side) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &main, 10)?;
    let graph = capture(&main, || {
        x.update_scalar(functions::Add, 1)?;
        other_work(context, &side, 3_000_000)?;
        x.update_scalar(functions::Add, 1)
    })?;
    assert_eq!(graph.node_count(), 2);
    replay(&graph, &main)?;
    assert_eq!(x.to_vec()?, (2..12).collect::<Vec<_>>());
    Ok(())
}

fn the_default_stream_works_during_a_capture_beside_it(context: &Context) -> Outcome {
    // A stream that the default stream does not wait for.
    let main = context.stream()?;
    let mut x = numbers(context, &main, 10)?;
    let graph = capture(&main, || {
        other_work(context, &context.device.default_stream(), 2_000_000)?;
        x.update_scalar(functions::Add, 1)
    })?;
    assert_eq!(graph.node_count(), 1);
    replay(&graph, &main)?;
    assert_eq!(x.to_vec()?[9], 10);
    Ok(())
}

fn other_threads_work_during_a_capture(context: &Context) -> Outcome {
    let main = context.stream()?;
    let mut x = numbers(context, &main, 10)?;
    let graph = capture(&main, || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    scope.spawn(move || other_work(context, &context.stream()?, 1_100_000 + number))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })?;
        x.update_scalar(functions::Add, 1)
    })?;
    replay(&graph, &main)?;
    assert_eq!(x.to_vec()?[9], 10);
    Ok(())
}

fn two_streams_capture_at_once(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let (mut x, mut y) = (numbers(context, &first, 9)?, numbers(context, &second, 9)?);
    first.begin_capture(CaptureMode::Relaxed)?;
    second.begin_capture(CaptureMode::Relaxed)?;
    x.update_scalar(functions::Add, 1)?;
    let doubled = (&y + &y)?;
    y.update(functions::Add, &doubled)?;
    drop(doubled);
    let (one, two) = (first.end_capture()?, second.end_capture()?);
    assert_eq!((one.node_count(), two.node_count()), (1, 2));
    for _ in 0..2 {
        replay(&two, &first)?;
        replay(&one, &second)?;
    }
    assert_eq!(x.to_vec()?[8], 10);
    assert_eq!(y.to_vec()?[8], 72);
    Ok(())
}

fn every_mode_captures(context: &Context) -> Outcome {
    let stream = context.stream()?;
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
        let mut x = numbers(context, &stream, 1000)?;
        stream.begin_capture(mode)?;
        // The addition allocates memory, which the stricter modes must allow.
        let y = (&x + 1)?;
        x.update(functions::Add, &y)?;
        let graph = stream.end_capture()?;
        replay(&graph, &stream)?;
        assert_eq!(x.to_vec()?[999], 1999, "{mode:?}");
    }
    Ok(())
}

fn work_beside_a_capture_does_not_become_part_of_it(context: &Context) -> Outcome {
    for other in [context.stream()?, context.device.default_stream()] {
        let main = context.stream()?;
        let mut x = numbers(context, &main, 10)?;
        let mut beside = None;
        let graph = capture(&main, || {
            x.update_scalar(functions::Add, 5)?;
            // The last recorded write of the array is captured, and has not run.
            beside = Some((&x.on(&other)? + 1)?);
            Ok(())
        })?;
        assert_eq!(beside.expect("queued").to_vec()?, (1..11).collect::<Vec<_>>());
        assert_eq!(graph.node_count(), 1);
        replay(&graph, &main)?;
        assert_eq!(x.to_vec()?, (5..15).collect::<Vec<_>>());
    }
    Ok(())
}

fn trimming_beside_a_capture_leaves_the_graph_alone(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, 100)?;
    // The stream's list keeps the blocks of these temporaries.
    for _ in 0..3 {
        (&x + 1)?;
    }
    stream.synchronize()?;
    let work = |x: &mut DeviceArray<i32>| x.update_scalar(functions::Add, 1);
    let plain = capture(&stream, || work(&mut x))?;
    let mut trimmed = Ok(());
    let beside = capture(&stream, || {
        trimmed = context.device.trim_memory(0);
        work(&mut x)
    })?;
    trimmed?;
    assert_eq!(beside.node_count(), plain.node_count(), "a free is a node of the graph");
    for graph in [&plain, &beside, &beside] {
        replay(graph, &stream)?;
    }
    context.device.trim_memory(0)?;
    assert_eq!(x.to_vec()?, (3..103).collect::<Vec<_>>());
    Ok(())
}

/// A thread holds a guard for memory and queues work under it, while another thread begins a capture
/// of the stream. The work runs, and is not part of the graph.
fn a_capture_begins_behind_work_that_is_being_queued(context: &Context) -> Outcome {
    let (stream, other) = (context.stream()?, context.stream()?);
    for is_shared in [false, true] {
        let x = numbers(context, &stream, 4)?;
        let memory = x.untyped().memory().clone();
        if is_shared {
            assert_eq!((&x.on(&other)? + 1)?.to_vec()?, [1, 2, 3, 4]);
        }
        let guard = AccessGuard::acquire(&stream, &[(&memory, Access::Write)])?;
        let (begins, beginning) = channel();
        let graph = std::thread::scope(|scope| {
            let stream = &stream;
            let capture = scope.spawn(move || {
                begins.send(()).expect("the test waits");
                stream.begin_capture(CaptureMode::Relaxed)?;
                stream.end_capture()
            });
            beginning.recv().expect("a thread");
            // Gives the other thread many chances to begin the capture.
            for _ in 0..50 {
                std::thread::sleep(Duration::from_micros(100));
                assert!(!capture.is_finished(), "the capture has begun meanwhile");
            }
            // SAFETY: the guard orders the use of the memory, which has at least 16 bytes.
            unsafe { stream.fill(memory.address(), 7, 4, 4)? };
            drop(guard);
            capture.join().expect("no panic")
        })?;
        assert_eq!(graph.node_count(), 0);
        assert_eq!(x.to_vec()?, [7; 4]);
    }
    Ok(())
}
