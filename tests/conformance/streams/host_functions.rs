//! Host functions: the waits that they may not make, the objects that they drop, and reports of their
//! failures.

use crate::context::{Context, error_of, expect_error, pause};
use crate::driver_functions::Raw;
use crate::harness::{Capability, Outcome, tests};
use gpuarray::memory::{Access, AccessGuard, DeviceMemory, PinnedMemory};
use gpuarray::{
    CaptureMode, DeviceArray, Error, ErrorKind, Event, EventOptions, LoadOptions, ModuleSource,
    PinnedBuffer, Result, Status, Stream,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

tests![
    nothing_waits_in_a_function,
    what_a_function_drops_is_freed,
    what_a_function_drops_is_destroyed needs [Graphs, Kernels],
    an_error_of_a_function_is_reported_with_its_status,
    whoever_waits_hears_of_a_failure_once,
    an_event_before_a_function_has_not_failed,
    what_the_library_waits_for_itself_takes_no_failure,
    the_failure_of_a_dropped_stream_is_the_devices,
    an_operation_under_ones_own_guard_is_an_error,
    captures_begin_beside_threads_that_go_on needs [Graphs],
];

/// Returns the default stream, a blocking stream and a non-blocking stream.
fn streams(context: &Context) -> Result<[Arc<dyn Stream>; 3]> {
    Ok([context.device.default_stream(), context.blocking_stream()?, context.stream()?])
}

/// Runs a function on a stream, and returns its result.
fn run_on<T: Send + 'static>(
    stream: &Arc<dyn Stream>,
    function: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (told, heard) = mpsc::channel();
    stream.host_function(move || told.send(function()).unwrap())?;
    stream.synchronize()?;
    Ok(heard.recv().expect("the function has run"))
}

fn nothing_waits_in_a_function(context: &Context) -> Outcome {
    for stream in streams(context)? {
        for other in streams(context)? {
            let (own, device) = (stream.clone(), context.device.clone());
            let event = own.create_event(EventOptions::ORDERING)?;
            own.record(event.as_ref())?;
            let array = context.counting(&[100])?.on(&other)?;
            let mut target = array.copy()?;
            let outcomes = run_on(&stream, move || {
                let mut slice = [0; 100];
                [
                    ("the stream", own.synchronize()),
                    ("another stream", other.synchronize()),
                    ("an event", event.synchronize()),
                    ("the device", device.synchronize()),
                    ("a download", array.copy_to_slice(&mut slice)),
                    ("an element", array.sum().map(drop)),
                    ("an upload", target.copy_from_slice(&slice)),
                ]
                .map(|(what, result)| (what, result.err()))
            })?;
            for (what, error) in outcomes {
                let Some(error) = error else { panic!("{what} was waited for") };
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
                assert!(error.detail().contains("function"), "{what}: {error}");
            }
        }
        if context.can(gpuarray::Feature::Graphs) {
            let other = context.stream()?;
            let begun = run_on(&stream, {
                let other = other.clone();
                move || other.begin_capture(CaptureMode::Relaxed)
            })?;
            expect_error(begun, ErrorKind::InvalidArgument, &["function"])?;
            assert!(!other.is_capturing()?);
        }
    }
    context.device.synchronize()?;
    Ok(())
}

fn what_a_function_drops_is_freed(context: &Context) -> Outcome {
    // Memory that is allocated on first use stays allocated.
    let _first =
        (context.counting(&[1000])?.to_vec()?, PinnedBuffer::<i32>::new(&context.device, 1000)?);
    let before = context.free_memory()?;
    for stream in streams(context)? {
        let beside = context.stream()?;
        let shared = context.counting(&[1000])?;
        let mut use_of_it = shared.on(&beside)?;
        use_of_it.fill(3)?;
        let pinned = PinnedMemory::new(&context.device, 4096)?;
        let plain = DeviceMemory::plain(&context.device, 4096)?;
        let source = context.counting(&[1000])?.on(&stream)?;
        let copy = source.copy_to_pinned(PinnedBuffer::new(&context.device, 1000)?)?;
        let unused = PinnedBuffer::<f64>::new(&context.device, 100)?;
        stream.host_function(move || {
            drop((pinned, plain, copy, unused));
            drop((shared, use_of_it, source));
        })?;
        stream.synchronize()?;
    }
    context.device.synchronize()?;
    if context.can(Capability::ExactAccounting) {
        assert_eq!(context.free_memory()?, before);
    }
    Ok(())
}

/// Streams, events, modules and graphs: the fake driver counts its live objects.
fn what_a_function_drops_is_destroyed(context: &Context) -> Outcome {
    const SOURCE: &str = "extern \"C\" __global__ void k(int *x) { *x = 1; }";
    let live = || -> Result<Vec<u64>, Box<dyn std::error::Error>> {
        if !context.can(Capability::Double) {
            return Ok(Vec::new());
        }
        context.device.synchronize()?;
        let raw = Raw::new(context)?;
        let kinds = ["streams", "events", "modules", "graphs", "graph_execs"];
        kinds.into_iter().map(|it| raw.live(it)).collect()
    };
    let made = || -> Result<_> {
        let stream = context.stream()?;
        stream.begin_capture(CaptureMode::Relaxed)?;
        let graph = stream.end_capture()?;
        let event = context.device.create_event(EventOptions::default())?;
        stream.record(event.as_ref())?;
        let source = ModuleSource::Source { text: SOURCE, name: "k.cu", options: &[] };
        // SAFETY: the text contains only functions.
        let module = unsafe { context.device.load_module(&source, &LoadOptions::default())? };
        Ok((graph, event, module, stream))
    };
    drop(made()?);
    for stream in streams(context)? {
        let before = live()?;
        let dropped = made()?;
        stream.host_function(move || drop(dropped))?;
        stream.synchronize()?;
        assert_eq!(live()?, before);
    }
    Ok(())
}

fn failure() -> Result<()> {
    Err(Error::new(ErrorKind::OutOfMemory, Status::cuda(2), "library", "the library returned 2"))
}

fn an_error_of_a_function_is_reported_with_its_status(context: &Context) -> Outcome {
    for stream in streams(context)? {
        stream.host_function(|| Ok(()))?;
        stream.host_function(Box::new(|| ()))?;
        stream.synchronize()?;
        stream.host_function(failure)?;
        let error = error_of(stream.synchronize());
        assert_eq!((error.kind(), error.status()), (ErrorKind::OutOfMemory, Status::cuda(2)));
        assert_eq!(error.detail(), "the library returned 2");
        assert_eq!(stream.last_status(), Status::cuda(2));
        stream.synchronize()?;
    }
    Ok(())
}

/// Returns a function that waits for a stream's work so far, and that reports the failure of an earlier host
/// function.
type Wait = fn(&Context, &Arc<dyn Stream>) -> Result<Box<dyn FnOnce() -> Result<()>>>;

fn whoever_waits_hears_of_a_failure_once(context: &Context) -> Outcome {
    let waits: [(&str, Wait); 4] = [
        ("a stream", |_, stream| {
            let stream = stream.clone();
            Ok(Box::new(move || stream.synchronize()))
        }),
        ("the device", |context, _| {
            let device = context.device.clone();
            Ok(Box::new(move || device.synchronize()))
        }),
        ("an event", |_, stream| {
            let event = stream.create_event(EventOptions::ORDERING)?;
            stream.record(event.as_ref())?;
            Ok(Box::new(move || event.synchronize()))
        }),
        ("a copy", |context, stream| {
            // A new array, so that its use does not wait for other work.
            let array = DeviceArray::<i32>::zeros_on(&context.device, stream, &[1000])?;
            let copy = array.copy_to_pinned(PinnedBuffer::new(&context.device, 1000)?)?;
            Ok(Box::new(move || copy.wait().map(drop)))
        }),
    ];
    for stream in streams(context)? {
        for panics in [false, true] {
            for (what, wait) in &waits {
                match panics {
                    false => stream.host_function(failure)?,
                    true => stream.host_function(|| panic!("on purpose"))?,
                }
                let error = error_of(wait(context, &stream)?());
                let expected =
                    if panics { ErrorKind::LaunchFailed } else { ErrorKind::OutOfMemory };
                assert_eq!(error.kind(), expected, "{what}: {error}");
                // The failure is reported only once, whichever call comes next.
                for (again, wait) in &waits {
                    wait(context, &stream)?()
                        .map_err(|error| format!("{what}, {again}: {error}"))?;
                }
            }
        }
    }
    Ok(())
}

fn an_event_before_a_function_has_not_failed(context: &Context) -> Outcome {
    for stream in streams(context)? {
        let event: Arc<dyn Event> = stream.create_event(EventOptions::ORDERING)?;
        stream.record(event.as_ref())?;
        stream.host_function(failure)?;
        event.synchronize()?;
        assert!(stream.synchronize().is_err());
    }
    Ok(())
}

fn what_the_library_waits_for_itself_takes_no_failure(context: &Context) -> Outcome {
    if !context.can(Capability::Driver) && !context.can(Capability::ExactAccounting) {
        // The minimal backend cannot wait without reporting the failure.
        return Ok(());
    }
    let stream = context.stream()?;
    let array = context.counting(&[1000])?.on(&stream)?;
    let buffer = PinnedBuffer::new(&context.device, 1000)?;
    stream.host_function(failure)?;
    drop(array.copy_to_pinned(buffer)?);
    let pinned = PinnedMemory::new(&context.device, 4096)?;
    drop((pinned, DeviceMemory::plain(&context.device, 4096)?));
    assert_eq!(error_of(stream.synchronize()).status(), Status::cuda(2));
    Ok(())
}

fn the_failure_of_a_dropped_stream_is_the_devices(context: &Context) -> Outcome {
    let stream = context.stream()?;
    stream.host_function(failure)?;
    drop(stream);
    pause();
    assert_eq!(error_of(context.device.synchronize()).status(), Status::cuda(2));
    context.device.synchronize()?;
    Ok(())
}

fn an_operation_under_ones_own_guard_is_an_error(context: &Context) -> Outcome {
    let kind = ErrorKind::InvalidArgument;
    for is_shared in [false, true] {
        let stream = context.stream()?;
        let mut array = context.counting(&[100])?.on(&stream)?.copy()?;
        let other = array.on(&context.stream()?)?;
        let mut unrelated = context.counting(&[100])?.on(&stream)?.copy()?;
        if is_shared {
            drop(other.copy()?);
        }
        let memory = array.untyped().memory().clone();
        let uses = [(&memory, Access::Write)];
        let guard = AccessGuard::acquire(&stream, &uses)?;
        // On another stream, or with memory that several streams use, the thread would wait for itself.
        expect_error(other.copy(), kind, &["AccessGuard"])?;
        if is_shared {
            expect_error(array.fill(1), kind, &["AccessGuard"])?;
        }
        expect_error(memory.release(), kind, &["AccessGuard"])?;
        if context.can(gpuarray::Feature::Graphs) {
            expect_error(stream.begin_capture(CaptureMode::Relaxed), kind, &["AccessGuard"])?;
        }
        unrelated.fill(2)?;
        drop(guard);
        array.fill(1)?;
        assert_eq!(other.to_vec()?, [1; 100]);
        assert_eq!(unrelated.to_vec()?, [2; 100]);
    }
    Ok(())
}

fn captures_begin_beside_threads_that_go_on(context: &Context) -> Outcome {
    // One thread keeps the default stream busy, another one the capturing stream; both use the same memory.
    for blocking in [true, false] {
        let stream = if blocking { context.blocking_stream()? } else { context.stream()? };
        let default = context.counting(&[5000])?;
        let array = default.on(&stream)?;
        let over = Arc::new(AtomicBool::new(false));
        let work = |mut array: DeviceArray<i32>| {
            let over = over.clone();
            thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    // Operations that a capture makes fail are tried again.
                    let _ = array.fill(7);
                }
            })
        };
        let threads = [work(default), work(array)];
        let mut result = Ok(());
        for _ in 0..5 {
            result = result.and(stream.begin_capture(CaptureMode::Relaxed));
            // The other threads' refused work may have invalidated the capture.
            let _ = stream.end_capture();
        }
        over.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|it| it.join().unwrap());
        result?;
    }
    Ok(())
}
