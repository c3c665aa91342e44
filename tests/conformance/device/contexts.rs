//! Other libraries in the process: their contexts stay current, and their streams can be used.

use crate::context::{Context, Gate, expect_error, pause};
use crate::driver_functions::Raw;
use crate::harness::{Capability, Outcome, tests};
use crate::programs::{self, grid, launch};
use gpuarray::memory::{DeviceMemory, PinnedMemory};
use gpuarray::{
    CaptureMode, Device, DeviceArray, ErrorKind, EventOptions, Feature, Stream, StreamOptions,
};
use std::sync::Arc;

tests![
    an_external_context_stays_current needs [ExternalContexts],
    an_external_context_of_another_device_stays_current needs [ExternalContexts, SecondDevice],
    a_thread_without_a_context_gets_that_of_the_first_device needs [ExternalContexts],
    a_thread_without_a_context_gets_none_of_another_device needs [ExternalContexts, SecondDevice],
    making_current_is_for_other_libraries needs [ExternalContexts],
    objects_are_dropped_under_an_external_context needs [ExternalContexts],
    external_streams_are_refused_by_name,
    the_drivers_stream_handles_are_taken needs [ExternalStreams],
    a_threads_default_stream_is_that_threads_alone needs [ExternalStreams],
    each_thread_has_a_default_stream needs [ExternalStreams],
    a_stream_of_another_library_is_taken needs [ExternalStreams],
    a_stream_taken_by_its_handle_is_not_destroyed needs [ExternalStreams],
    an_external_event_orders_and_is_not_destroyed needs [ExternalStreams],
    streams_tell_how_they_were_made,
    priorities_are_within_their_range,
];

/// Makes every kind of call, with a check after each.
fn every_call(
    context: &Context,
    device: &Arc<dyn Device>,
    check: &dyn Fn(&str) -> Outcome,
) -> Outcome {
    let options = StreamOptions::default().non_blocking(true);
    let stream = device.create_stream(options)?;
    check("create_stream")?;
    let event = device.create_event(EventOptions::default())?;
    check("create_event")?;
    let plain = DeviceMemory::plain(device, 4096)?;
    check("allocate")?;
    let pooled = DeviceMemory::for_stream(device, &stream, 5 << 20)?;
    check("stream allocate")?;
    let pinned = PinnedMemory::new(device, 4096)?;
    check("allocate_pinned")?;
    let x = DeviceArray::<f32>::full(device, &[1000], 2.0)?;
    check("fill")?;
    let y = (&x.on(&stream)? * &x)?;
    check("execute")?;
    assert_eq!(y.sum()?, 4000.0);
    check("sum")?;
    // SAFETY: the ranges are inside allocations that outlive the copy.
    unsafe { stream.fill(pooled.address(), 1, 1, 4096)? };
    check("stream fill")?;
    stream.record(event.as_ref())?;
    check("record")?;
    device.default_stream().wait_event(event.as_ref())?;
    check("wait_event")?;
    event.synchronize()?;
    event.query()?;
    check("event synchronize")?;
    stream.query()?;
    stream.synchronize()?;
    check("synchronize")?;
    device.memory_info()?;
    check("memory_info")?;
    assert!(device.can_access(plain.address(), 1));
    device.pinned_address(pinned.pointer())?;
    check("can_access")?;
    let source = programs::SOURCE;
    let source = gpuarray::ModuleSource::Source { text: source, name: "p.cu", options: &[] };
    // SAFETY: the text contains only functions.
    let module = unsafe { device.load_module(&source, &gpuarray::LoadOptions::default()) }?;
    check("load_module")?;
    let axpy = module.kernel("axpy")?;
    module.global("counter")?;
    axpy.parameters()?;
    axpy.active_blocks(128, 0)?;
    check("kernel")?;
    launch(&axpy, grid(8, 128), &stream, (1.0f32, &x, &mut y.clone(), 1000))?;
    check("launch")?;
    stream.begin_capture(CaptureMode::default())?;
    check("begin_capture")?;
    y.clone().fill(0.0)?;
    let graph = stream.end_capture()?;
    check("end_capture")?;
    // SAFETY: the array that the capture uses is alive.
    unsafe { graph.launch(&stream)? };
    check("graph launch")?;
    device.trim_memory(0)?;
    check("trim_memory")?;
    device.priority_range()?;
    device.synchronize()?;
    check("device synchronize")?;
    // Dropping these objects also calls the driver.
    drop((graph, axpy, module));
    check("drop of code")?;
    drop((x, y, plain, pooled, pinned));
    check("drop of memory")?;
    drop((event, stream));
    check("drop of a stream")?;
    let _ = context;
    Ok(())
}

/// Runs `work` on a separate thread, under another library's context.
fn under(
    context: &Context,
    ordinal: usize,
    work: impl FnOnce(&dyn Fn(&str) -> Outcome) -> Outcome + Send,
) -> Outcome {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| -> Result<(), String> {
            let run = || -> Outcome {
                let raw = Raw::new(context)?;
                let external = raw.create_context(ordinal)?;
                let result = work(&|call| match raw.current_context()? {
                    current if current == external => Ok(()),
                    other => Err(format!("{call} left the context {other:#x}").into()),
                });
                raw.destroy_context(external)?;
                result
            };
            run().map_err(|error| error.to_string())
        });
        Ok(thread.join().unwrap()?)
    })
}

fn an_external_context_stays_current(context: &Context) -> Outcome {
    under(context, 0, |check| every_call(context, &context.device, check))
}

fn an_external_context_of_another_device_stays_current(context: &Context) -> Outcome {
    let second = context.second_device()?;
    under(context, 1, |check| {
        every_call(context, &context.device, check)?;
        every_call(context, &second, check)
    })?;
    under(context, 0, |check| every_call(context, &second, check))
}

/// Runs `work`, with the driver's own functions, on a thread without a context.
fn on_a_fresh_thread(context: &Context, work: impl FnOnce(&Raw) -> Outcome + Send) -> Outcome {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let raw = Raw::new(context).map_err(|error| error.to_string())?;
            assert_eq!(raw.current_context().map_err(|error| error.to_string())?, 0);
            work(&raw).map_err(|error| error.to_string())
        });
        Ok(thread.join().unwrap()?)
    })
}

fn a_thread_without_a_context_gets_that_of_the_first_device(context: &Context) -> Outcome {
    on_a_fresh_thread(context, |raw| {
        context.device.synchronize()?;
        let own = raw.current_context()?;
        assert_ne!(own, 0);
        every_call(context, &context.device, &|call| match raw.current_context()? {
            current if current == own => Ok(()),
            other => Err(format!("{call} left the context {other:#x}").into()),
        })
    })
}

fn a_thread_without_a_context_gets_none_of_another_device(context: &Context) -> Outcome {
    let second = context.second_device()?;
    on_a_fresh_thread(context, |raw| {
        every_call(context, &second, &|call| match raw.current_context()? {
            0 => Ok(()),
            other => Err(format!("{call} left the context {other:#x}").into()),
        })
    })
}

fn making_current_is_for_other_libraries(context: &Context) -> Outcome {
    on_a_fresh_thread(context, |raw| {
        let external = raw.create_context(0)?;
        context.device.make_current()?;
        let primary = raw.current_context()?;
        assert!(primary != external && primary != 0);
        assert_eq!(context.device.context_handle()?, primary as u64);
        context.device.synchronize()?;
        assert_eq!(raw.current_context()?, primary);
        raw.set_context(external)?;
        context.device.synchronize()?;
        assert_eq!(raw.current_context()?, external);
        raw.destroy_context(external)
    })
}

fn objects_are_dropped_under_an_external_context(context: &Context) -> Outcome {
    let array = context.counting(&[100_000])?;
    let kernel = programs::kernel(context, "set")?;
    let stream = context.stream()?;
    let copy = array.on(&stream)?.copy()?;
    under(context, 0, move |check| {
        drop((array, kernel, copy, stream));
        check("drop")
    })?;
    assert_eq!(context.counting(&[4])?.sum()?, 6);
    Ok(())
}

fn external_streams_are_refused_by_name(context: &Context) -> Outcome {
    if context.can(Feature::ExternalStreams) {
        return Ok(());
    }
    // SAFETY: the call is refused.
    let refused = unsafe { context.device.stream_from_handle(2) };
    expect_error(refused, ErrorKind::Unsupported, &["stream_from_handle", "0x2"])?;
    // SAFETY: as above.
    let refused = unsafe { context.device.event_from_handle(2) };
    expect_error(refused, ErrorKind::Unsupported, &["event_from_handle", "0x2"])
}

fn an_external_event_orders_and_is_not_destroyed(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let event = context.device.create_event(EventOptions::ORDERING)?;
    let array = context.counting(&[100_000])?.on(&first)?;
    let doubled = (&array + &array)?;
    first.record(event.as_ref())?;
    // SAFETY: the driver's event outlives the object.
    let external = unsafe { context.device.event_from_handle(event.handle())? };
    second.wait_event(external.as_ref())?;
    drop(external);
    second.synchronize()?;
    assert!(event.query()?);
    first.record(event.as_ref())?;
    event.synchronize()?;
    drop(doubled);
    Ok(())
}

/// Returns the stream for a driver's handle.
fn taken(context: &Context, handle: u64) -> gpuarray::Result<Arc<dyn Stream>> {
    // SAFETY: the callers pass a handle that lives as long as the test.
    unsafe { context.device.stream_from_handle(handle) }
}

fn use_stream(context: &Context, stream: &Arc<dyn Stream>) -> Outcome {
    let array = context.counting(&[1000])?.on(stream)?;
    let doubled = (&array + &array)?;
    assert_eq!(doubled.sum()?, 999_000);
    stream.synchronize()?;
    assert!(stream.query()?);
    Ok(())
}

fn the_drivers_stream_handles_are_taken(context: &Context) -> Outcome {
    let default = context.device.default_stream();
    // Both handles mean the legacy default stream.
    for handle in [0, 1] {
        assert_eq!(taken(context, handle)?.id(), default.id());
    }
    for (handle, known) in [(1, 0), (2, 2)] {
        let stream = taken(context, handle)?;
        assert_eq!(stream.handle(), known);
        use_stream(context, &stream)?;
        // Each of these streams is ordered with the work of the default stream.
        let mut array = context.counting(&[100])?;
        let gate = Gate::on(default.as_ref())?;
        array.fill(5)?;
        let copy = (&array.on(&stream)? + 1)?;
        gate.open();
        assert_eq!(copy.to_vec()?, [6; 100]);
    }
    Ok(())
}

fn each_thread_has_a_default_stream(context: &Context) -> Outcome {
    let own = taken(context, 2)?;
    // The first use of a thread's stream creates it, which may wait.
    use_stream(context, &own)?;
    let gate = Gate::on(own.as_ref())?;
    std::thread::scope(|scope| -> gpuarray::Result<()> {
        let thread = scope.spawn(|| -> gpuarray::Result<bool> {
            let other = taken(context, 2)?;
            other.synchronize()?;
            other.query()
        });
        assert!(thread.join().unwrap()?, "another thread's stream does not wait for this one");
        Ok(())
    })?;
    if context.can(Capability::Progress) {
        assert!(!own.query()?);
    }
    gate.open();
    own.synchronize()?;
    Ok(())
}

fn a_threads_default_stream_is_that_threads_alone(context: &Context) -> Outcome {
    let own = taken(context, 2)?;
    use_stream(context, &own)?;
    let array = context.counting(&[1000])?;
    context.device.synchronize()?;
    array.on(&own)?.fill(7)?;
    // Too large for the stream's list of freed blocks, so freeing it calls the driver.
    let large = DeviceArray::<u8>::zeros(&context.device, &[4 << 20])?.on(&own)?.copy()?;
    let elsewhere = |large: DeviceArray<u8>| -> Outcome {
        // The second thread's own default stream, which is independent of the first.
        let here = taken(context, 2)?;
        use_stream(context, &here)?;
        assert_eq!((&array.on(&here)? + 1)?.to_vec()?, [8; 1000], "behind the other's work");
        let kind = ErrorKind::InvalidHandle;
        expect_error(array.on(&own)?.fill(0), kind, &["stream", "thread"])?;
        expect_error(own.allocate(64), kind, &["stream", "thread"])?;
        // Waiting for an event of that stream happens on the host.
        let event = context.device.create_event(EventOptions::ORDERING)?;
        own.record(event.as_ref())?;
        here.wait_event(event.as_ref())?;
        own.synchronize()?;
        drop(large);
        Ok(())
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| elsewhere(large).map_err(|error| error.to_string()));
        thread.join().unwrap()
    })?;
    array.on(&own)?.fill(9)?;
    assert_eq!(array.to_vec()?, [9; 1000]);
    Ok(())
}

fn a_stream_of_another_library_is_taken(context: &Context) -> Outcome {
    let raw = Raw::new(context)?;
    context.device.make_current()?;
    let handle = raw.create_stream()?;
    {
        let stream = taken(context, handle as u64)?;
        assert_eq!(stream.handle(), handle as u64);
        assert!(stream.options()?.non_blocking, "the driver tells how it was made");
        use_stream(context, &stream)?;
        // Arrays order their work on it as on any other stream.
        let mut array = context.counting(&[100])?;
        let gate = Gate::on(stream.as_ref())?;
        array.on(&stream)?.fill(9)?;
        let doubled = (&array + &array)?;
        pause();
        gate.open();
        assert_eq!(doubled.to_vec()?, [18; 100]);
        array.fill(0)?;
        drop(array.on(&stream)?.copy()?);
    }
    raw.synchronize_stream(handle)?;
    raw.destroy_stream(handle)
}

fn a_stream_taken_by_its_handle_is_not_destroyed(context: &Context) -> Outcome {
    let stream = context.stream()?;
    for _ in 0..3 {
        let again = taken(context, stream.handle())?;
        assert_ne!(again.id(), stream.id());
        use_stream(context, &again)?;
    }
    use_stream(context, &stream)
}

fn streams_tell_how_they_were_made(context: &Context) -> Outcome {
    for non_blocking in [false, true] {
        let options = StreamOptions::default().non_blocking(non_blocking);
        let stream = context.device.create_stream(options)?;
        if context.can(Feature::ExternalStreams) {
            assert_eq!(stream.options()?, options);
            assert_eq!(taken(context, stream.handle())?.options()?, options);
        }
    }
    assert!(!context.device.default_stream().options()?.non_blocking);
    Ok(())
}

fn priorities_are_within_their_range(context: &Context) -> Outcome {
    let (least, greatest) = context.device.priority_range()?;
    assert!(greatest <= least, "smaller numbers run first");
    assert!((greatest..=least).contains(&0));
    for priority in [least, greatest] {
        let options = StreamOptions::default().non_blocking(true).priority(priority);
        let stream = context.device.create_stream(options)?;
        if context.can(Feature::ExternalStreams) {
            assert_eq!(stream.options()?.priority, priority);
            assert_eq!(taken(context, stream.handle())?.options()?.priority, priority);
        }
        use_stream(context, &stream)?;
    }
    Ok(())
}
