//! Calls that end a capture early, and other threads that use the capturing stream.

use crate::captures::captured_memory::wait_for_free;
use crate::captures::failed_captures::check_usable;
use crate::captures::graphs::{capture, numbers, replay};
use crate::context::{Context, error_of, expect_error};
use crate::harness::{Capability, Outcome, tests};
use gpuarray::array::functions;
use gpuarray::{CaptureMode, ErrorKind, EventOptions, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

tests![
    an_event_of_a_capture_is_not_waited_for needs [Graphs],
    captured_work_waits_for_no_other_work needs [Graphs],
    captures_do_not_become_one needs [Graphs],
    the_default_stream_does_nothing_during_a_capture_that_it_waits_for needs [Graphs],
    waiting_for_the_device_ends_a_capture needs [Graphs],
    captured_work_waits_once_for_a_busy_stream needs [Graphs],
    a_relaxed_capture_ends_on_any_thread needs [Graphs],
    a_capture_that_is_spoilt_lets_its_memory_go needs [Graphs],
    what_threads_queue_runs_or_is_captured_once needs [Graphs],
    what_threads_allocate_beside_captures_is_freed needs [Graphs],
    a_write_beside_a_capture_hides_no_captured_use needs [Graphs],
];

const KIND: ErrorKind = ErrorKind::InvalidArgument;

/// Checks that the capture is invalid, and that the stream works after it has ended.
fn check_spoilt(context: &Context, stream: &Arc<dyn Stream>) -> Outcome {
    expect_error(stream.end_capture(), KIND, &["captur"])?;
    check_usable(context, stream)
}

fn an_event_of_a_capture_is_not_waited_for(context: &Context) -> Outcome {
    let (stream, other) = (context.stream()?, context.stream()?);
    let event = context.device.create_event(EventOptions::ORDERING)?;
    let mut x = numbers(context, &stream, 9)?;
    for waits in [false, true] {
        stream.begin_capture(CaptureMode::Relaxed)?;
        x.fill(1)?;
        stream.record(event.as_ref())?;
        let refused = if waits { event.synchronize() } else { event.query().map(drop) };
        expect_error(refused, KIND, &["captur"])?;
        check_spoilt(context, &stream)?;
        // After the capture, no other stream can wait for the event.
        assert_eq!(error_of(other.wait_event(event.as_ref())).kind(), KIND);
        assert!(!other.is_capturing()?);
    }
    // Recorded again outside a capture, it is an ordinary event.
    other.record(event.as_ref())?;
    event.synchronize()?;
    assert_eq!(x.to_vec()?, (0..9).collect::<Vec<_>>(), "nothing has run");
    Ok(())
}

fn captured_work_waits_for_no_other_work(context: &Context) -> Outcome {
    let (stream, other) = (context.stream()?, context.stream()?);
    let event = context.device.create_event(EventOptions::ORDERING)?;
    let mut x = numbers(context, &stream, 9)?;
    // Waiting for an event that was never recorded is ignored.
    let graph = capture(&stream, || {
        stream.wait_event(event.as_ref())?;
        x.update_scalar(functions::Add, 1)
    })?;
    replay(&graph, &stream)?;
    assert_eq!(x.to_vec()?, (1..10).collect::<Vec<_>>());
    let _y = (&numbers(context, &other, 9)? + 1)?;
    other.record(event.as_ref())?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    assert_eq!(error_of(stream.wait_event(event.as_ref())).kind(), KIND);
    check_spoilt(context, &stream)
}

fn captures_do_not_become_one(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let event = context.device.create_event(EventOptions::ORDERING)?;
    let mut x = numbers(context, &first, 9)?;
    first.begin_capture(CaptureMode::Relaxed)?;
    second.begin_capture(CaptureMode::Relaxed)?;
    x.fill(1)?;
    first.record(event.as_ref())?;
    assert_eq!(error_of(second.wait_event(event.as_ref())).kind(), KIND);
    expect_error(first.end_capture(), KIND, &["captur"])?;
    check_spoilt(context, &second)?;
    check_usable(context, &first)
}

fn the_default_stream_does_nothing_during_a_capture_that_it_waits_for(
    context: &Context,
) -> Outcome {
    let stream = context.blocking_stream()?;
    let mut x = context.counting(&[5])?;
    let mut y = numbers(context, &stream, 5)?;
    // Compiles the kernel before the capture.
    x.update_scalar(functions::Add, 0)?;
    let mut dropped = Some(context.counting(&[50])?);
    context.device.synchronize()?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    y.update_scalar(functions::Add, 1)?;
    // Memory may be freed during the capture.
    dropped = dropped.filter(|_| false);
    assert!(dropped.is_none());
    let graph = stream.end_capture()?;
    replay(&graph, &stream)?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    y.update_scalar(functions::Add, 1)?;
    expect_error(x.update_scalar(functions::Add, 1), KIND, &["default stream", "captures"])?;
    check_spoilt(context, &stream)?;
    x.update_scalar(functions::Add, 1)?;
    assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5]));
    Ok(())
}

fn waiting_for_the_device_ends_a_capture(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, 9)?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    x.fill(1)?;
    expect_error(context.device.synchronize(), KIND, &["captur"])?;
    check_spoilt(context, &stream)?;
    context.device.synchronize()?;
    Ok(())
}

/// A capture uses memory that a stream wrote long ago, while other threads keep that stream busy.
fn captured_work_waits_once_for_a_busy_stream(context: &Context) -> Outcome {
    const THREADS: usize = 4;
    // More additions than a queue holds, and fewer than are queued before it happens to be empty.
    const MOST: usize = 50_000;
    let (stream, busy) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &busy, 9)?;
    let mut both = x.on(&stream)?;
    let others: Vec<_> =
        (0..THREADS).map(|_| numbers(context, &busy, 1 << 16)).collect::<Result<_, _>>()?;
    let (is_done, additions) = (AtomicBool::new(false), AtomicUsize::new(0));
    let graph = std::thread::scope(|scope| {
        let (is_done, additions) = (&is_done, &additions);
        let adding: Vec<_> = others
            .into_iter()
            .map(|mut other| {
                scope.spawn(move || {
                    while !is_done.load(Ordering::Acquire) {
                        other.update_scalar(functions::Add, 1)?;
                        additions.fetch_add(1, Ordering::AcqRel);
                    }
                    gpuarray::Result::Ok(())
                })
            })
            .collect();
        let graph = capture(&stream, || {
            while additions.load(Ordering::Acquire) < 100 {
                std::thread::yield_now();
            }
            let before = additions.load(Ordering::Acquire);
            both.update_scalar(functions::Add, 1)?;
            let further = additions.load(Ordering::Acquire) - before;
            assert!(further < MOST, "it waited for {further} additions that were queued later");
            // Also with memory that one operation reads and writes.
            let sum = (&both + &both)?;
            both.assign(&sum)
        });
        is_done.store(true, Ordering::Release);
        adding.into_iter().try_for_each(|it| it.join().expect("no panic")).and(graph)
    })?;
    replay(&graph, &stream)?;
    assert_eq!(x.to_vec()?, (0..9).map(|it| 2 * (it + 1)).collect::<Vec<_>>());
    x.update_scalar(functions::Add, 1)?;
    Ok(())
}

fn a_relaxed_capture_ends_on_any_thread(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, 9)?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    x.update_scalar(functions::Add, 1)?;
    let end = || stream.end_capture();
    let graph = std::thread::scope(|scope| scope.spawn(end).join().expect("no panic"))?;
    replay(&graph, &stream)?;
    assert_eq!(x.to_vec()?[8], 9);
    Ok(())
}

fn a_capture_that_is_spoilt_lets_its_memory_go(context: &Context) -> Outcome {
    for (stream, is_shared) in [(context.stream()?, false), (context.blocking_stream()?, true)] {
        let other = context.stream()?;
        let x = numbers(context, &stream, 1000)?;
        if is_shared {
            assert_eq!((&x.on(&other)? + 1)?.to_vec()?[0], 1);
        }
        let mut kept = Vec::new();
        for _ in 0..2 {
            stream.begin_capture(CaptureMode::Relaxed)?;
            let y = (&x + 1)?;
            kept.push(Arc::downgrade(y.untyped().memory()));
            drop((&y + &x)?);
            drop(y);
            assert_eq!(error_of(stream.synchronize()).kind(), KIND);
            expect_error(stream.end_capture(), KIND, &["captur"])?;
            assert!(kept.iter().all(|memory| memory.upgrade().is_none()), "nobody uses it");
        }
        drop(x);
        check_usable(context, &stream)?;
    }
    Ok(())
}

/// One thread adds to an array on a stream while another thread begins and ends captures of the stream. Each
/// addition runs, or is a node of exactly one graph.
fn what_threads_queue_runs_or_is_captured_once(context: &Context) -> Outcome {
    const ADDITIONS: i32 = 400;
    let (stream, other) = (context.stream()?, context.stream()?);
    for is_shared in [false, true] {
        let x = numbers(context, &stream, 10)?;
        x.clone().update_scalar(functions::Add, 0)?;
        if is_shared {
            assert_eq!((&x.on(&other)? + 1)?.to_vec()?[0], 1);
        }
        stream.synchronize()?;
        let is_done = AtomicBool::new(false);
        let graphs = std::thread::scope(|scope| {
            let adding = scope.spawn(|| {
                let result = (0..ADDITIONS).try_for_each(|number| {
                    if number % 8 == 0 {
                        std::thread::yield_now();
                    }
                    x.clone().update_scalar(functions::Add, 1)
                });
                is_done.store(true, Ordering::Release);
                result
            });
            let mut graphs = Vec::new();
            while !is_done.load(Ordering::Acquire) {
                stream.begin_capture(CaptureMode::Relaxed)?;
                std::thread::yield_now();
                graphs.push(stream.end_capture()?);
            }
            adding.join().expect("no panic").map(|()| graphs)
        })?;
        let captured: usize = graphs.iter().map(|graph| graph.node_count()).sum();
        assert_eq!(x.to_vec()?[9], 9 + ADDITIONS - captured as i32);
        for graph in &graphs {
            replay(graph, &stream)?;
        }
        assert_eq!(x.to_vec()?[9], 9 + ADDITIONS);
    }
    Ok(())
}

/// One thread allocates and frees on a stream while another thread begins and ends captures of it. After the
/// graphs are dropped, all memory is free.
fn what_threads_allocate_beside_captures_is_freed(context: &Context) -> Outcome {
    const CAPTURES: usize = 300;
    // On a GPU other processes may allocate meanwhile, so the blocks are large enough that a leak of many
    // would show.
    let is_alone = context.can(Capability::Double) || context.backend.name() == "host";
    let (bytes, of_others) = if is_alone { (1 << 10, 0) } else { (1 << 20, 100 << 20) };
    let stream = context.stream()?;
    let turn = || -> gpuarray::Result<()> {
        let address = stream.allocate(bytes)?;
        // SAFETY: the allocation has `bytes` bytes, and nothing uses it.
        unsafe { stream.free(address, bytes) }
    };
    let free = || -> gpuarray::Result<usize> {
        context.device.synchronize()?;
        context.device.trim_memory(0)?;
        context.free_memory()
    };
    turn()?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    drop(stream.end_capture()?);
    let before = free()?;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let allocating = scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                turn()?;
                std::thread::yield_now();
            }
            gpuarray::Result::Ok(())
        });
        let captures = (0..CAPTURES).try_for_each(|_| {
            stream.begin_capture(CaptureMode::Relaxed)?;
            std::thread::yield_now();
            stream.end_capture().map(drop)
        });
        is_done.store(true, Ordering::Release);
        captures.and(allocating.join().expect("no panic"))
    })?;
    // A driver may release a graph's memory some time after the graph.
    wait_for_free(free, before.saturating_sub(of_others))
}

/// Two streams of a capture use an array, while a stream outside the capture writes it in between. Each
/// captured use is still ordered after the earlier captured uses.
fn a_write_beside_a_capture_hides_no_captured_use(context: &Context) -> Outcome {
    // For each use of the array, whether it writes. The uses alternate between the two streams of the capture.
    for uses in [[true, false, true], [false, true, false], [true, true, true]] {
        let (main, side, beside) = (context.stream()?, context.stream()?, context.stream()?);
        let x = numbers(context, &main, 100)?;
        let mut seen: Vec<_> =
            (0..3).map(|_| numbers(context, &main, 100)).collect::<Result<_, _>>()?;
        let (fork, join) = (
            context.device.create_event(EventOptions::ORDERING)?,
            context.device.create_event(EventOptions::ORDERING)?,
        );
        // Every stream uses the array first, so that it counts as shared.
        assert_eq!((&x.on(&side)? + 1)?.to_vec()?[1], 2);
        context.device.synchronize()?;
        let graph = capture(&main, || {
            main.record(fork.as_ref())?;
            side.wait_event(fork.as_ref())?;
            for (number, writes) in uses.into_iter().enumerate() {
                let mut own = x.on([&main, &side][number % 2])?;
                match writes {
                    true => own.update_scalar(functions::Add, 10)?,
                    false => seen[number].on([&main, &side][number % 2])?.assign(&own)?,
                }
                x.on(&beside)?.update_scalar(functions::Add, 1)?;
            }
            side.record(join.as_ref())?;
            main.wait_event(join.as_ref())
        })?;
        let mut value = x.to_vec()?[7];
        assert_eq!(value, 7 + 3, "only what is beside the capture has run");
        for _ in 0..2 {
            replay(&graph, &main)?;
            for (number, writes) in uses.into_iter().enumerate() {
                value += 10 * i32::from(writes);
                if !writes {
                    assert_eq!(seen[number].to_vec()?[7], value, "use {number} of {uses:?}");
                }
            }
            assert_eq!(x.to_vec()?[7], value, "{uses:?}");
        }
        seen.clear();
    }
    Ok(())
}
