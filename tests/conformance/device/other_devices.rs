//! Calls that take two objects, one of which belongs to another device or another instance of the backend:
//! each call is refused before it has any effect, or works correctly.

use crate::context::{Context, error_of, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{self, ONE};
use gpuarray::memory::{Access, AccessGuard, Allocator, DeviceMemory};
use gpuarray::{
    CaptureMode, Device, DeviceArray, ErrorKind, EventOptions, Feature, PinnedBuffer,
    PinnedOptions, Stream, StreamOptions,
};
use hal::memory::pool::{DevicePool, PinnedPool};
use std::sync::Arc;

tests![
    another_devices_event_is_not_recorded,
    another_openings_event_is_not_waited_for,
    another_devices_event_has_no_time,
    another_devices_capture_is_not_joined needs [Graphs],
    another_openings_events_are_nothing_for_a_capture needs [Graphs],
    another_devices_graph_is_not_launched needs [Graphs],
    another_devices_kernel_is_not_launched needs [Kernels],
    another_devices_event_is_not_shared needs [Sharing],
    another_devices_streams_and_arrays_are_refused,
    another_openings_memory_is_not_ordered,
    pools_have_memory_of_one_opening,
    pinned_buffers_of_other_devices_hold_what_is_copied,
];

const KIND: ErrorKind = ErrorKind::InvalidArgument;

/// Returns a stream of each kind.
fn streams(device: &Arc<dyn Device>) -> gpuarray::Result<[Arc<dyn Stream>; 3]> {
    let stream =
        |non_blocking| device.create_stream(StreamOptions::default().non_blocking(non_blocking));
    Ok([device.default_stream(), stream(false)?, stream(true)?])
}

fn is_apart(one: &Arc<dyn Device>, other: &Arc<dyn Device>) -> bool {
    one.id().instance != other.id().instance
}

fn another_devices_event_is_not_recorded(context: &Context) -> Outcome {
    for other in context.other_devices()? {
        let (foreign, own) = (
            other.create_event(EventOptions::default())?,
            context.device.create_event(EventOptions::default())?,
        );
        for stream in streams(&context.device)? {
            expect_error(stream.record(foreign.as_ref()), KIND, &["event", "device"])?;
            assert_eq!(stream.last_status(), error_of(stream.record(foreign.as_ref())).status());
            stream.record(own.as_ref())?;
        }
        for stream in streams(&other)? {
            expect_error(stream.record(own.as_ref()), KIND, &["event", "device"])?;
            stream.record(foreign.as_ref())?;
        }
        foreign.synchronize()?;
        own.synchronize()?;
    }
    Ok(())
}

fn another_openings_event_is_not_waited_for(context: &Context) -> Outcome {
    for other in context.other_devices()? {
        let event = other.create_event(EventOptions::default())?;
        // An event that was never recorded is not waited for, but it still belongs to another instance.
        for recorded in [false, true] {
            if recorded {
                other.default_stream().record(event.as_ref())?;
            }
            for stream in streams(&context.device)? {
                let waited = stream.wait_event(event.as_ref());
                match is_apart(&context.device, &other) {
                    true => expect_error(waited, KIND, &["event", "device"])?,
                    false => waited?,
                }
            }
        }
    }
    context.device.synchronize()?;
    Ok(())
}

fn another_devices_event_has_no_time(context: &Context) -> Outcome {
    for other in context.other_devices()? {
        let event = |device: &Arc<dyn Device>| -> gpuarray::Result<_> {
            let event = device.create_event(EventOptions::default())?;
            device.default_stream().record(event.as_ref())?;
            event.synchronize()?;
            Ok(event)
        };
        let (own, foreign) = (event(&context.device)?, event(&other)?);
        expect_error(own.elapsed_since(foreign.as_ref()), KIND, &["start"])?;
        expect_error(foreign.elapsed_since(own.as_ref()), KIND, &["start"])?;
        assert!(own.elapsed_since(own.as_ref())? >= 0.0);
    }
    Ok(())
}

fn another_devices_capture_is_not_joined(context: &Context) -> Outcome {
    for other in context.other_devices()? {
        if !other.features().contains(Feature::Graphs) {
            continue;
        }
        let capturing = other.create_stream(StreamOptions::default().non_blocking(true))?;
        let mut array = DeviceArray::<i32>::zeros(&other, &[64])?.on(&capturing)?;
        array.fill(1)?;
        capturing.begin_capture(CaptureMode::Relaxed)?;
        array.fill(2)?;
        let event = capturing.create_event(EventOptions::ORDERING)?;
        capturing.record(event.as_ref())?;
        for stream in streams(&context.device)? {
            expect_error(stream.wait_event(event.as_ref()), KIND, &["event", "device"])?;
            assert!(!stream.is_capturing()?);
            let mut own = DeviceArray::<i32>::ones(&context.device, &[64])?.on(&stream)?;
            own.fill(3)?;
            assert_eq!(own.to_vec()?, [3; 64]);
        }
        assert!(capturing.is_capturing()?);
        assert_eq!(capturing.end_capture()?.node_count(), 1);
        assert_eq!(array.to_vec()?, [1; 64]);
    }
    Ok(())
}

fn another_openings_events_are_nothing_for_a_capture(context: &Context) -> Outcome {
    let other = context.device_apart()?;
    let event = other.create_event(EventOptions::ORDERING)?;
    other.default_stream().record(event.as_ref())?;
    let stream = context.stream()?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    expect_error(stream.wait_event(event.as_ref()), KIND, &["event"])?;
    expect_error(stream.record(event.as_ref()), KIND, &["event"])?;
    // The call was refused before it had any effect, so the capture continues.
    stream.end_capture()?;
    Ok(())
}

fn another_devices_graph_is_not_launched(context: &Context) -> Outcome {
    let stream = context.stream()?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    let graph = stream.end_capture()?;
    for other in context.other_devices()? {
        for foreign in streams(&other)? {
            // SAFETY: the graph is empty, and the launch refused.
            expect_error(unsafe { graph.launch(&foreign) }, KIND, &["stream", "device"])?;
        }
    }
    Ok(())
}

fn another_devices_kernel_is_not_launched(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "nothing")?;
    for other in context.other_devices()? {
        for foreign in streams(&other)? {
            expect_error(
                programs::launch(&kernel, ONE, &foreign, ()),
                KIND,
                &["stream", "device"],
            )?;
        }
    }
    Ok(())
}

fn another_devices_event_is_not_shared(context: &Context) -> Outcome {
    let options = EventOptions::ORDERING.interprocess(true);
    for other in context.other_devices()? {
        let Ok(event) = other.create_event(options) else { continue };
        expect_error(context.device.export_event(event.as_ref()), KIND, &["event"])?;
    }
    Ok(())
}

fn another_devices_streams_and_arrays_are_refused(context: &Context) -> Outcome {
    let mut array = context.counting(&[16])?;
    for other in context.other_devices()? {
        let foreign = DeviceArray::<i32>::ones(&other, &[16])?;
        for stream in streams(&other)? {
            expect_error(array.on(&stream), KIND, &["stream"])?;
            expect_error(DeviceMemory::for_stream(&context.device, &stream, 8), KIND, &["stream"])?;
            let zeros = DeviceArray::<i32>::zeros_on(&context.device, &stream, &[4]);
            expect_error(zeros, KIND, &["stream"])?;
        }
        expect_error(array.assign(&foreign), KIND, &["devices"])?;
        expect_error(&array + &foreign, KIND, &["devices"])?;
        expect_error(array.dot(&foreign), KIND, &["devices"])?;
    }
    assert_eq!(array.to_vec()?, crate::context::counting(16));
    Ok(())
}

fn another_openings_memory_is_not_ordered(context: &Context) -> Outcome {
    let other = context.device_apart()?;
    let foreign = DeviceArray::<i32>::ones(&other, &[16])?;
    for access in [Access::Read, Access::Write] {
        for stream in streams(&context.device)? {
            let uses = [(foreign.untyped().memory(), access)];
            expect_error(AccessGuard::acquire(&stream, &uses), KIND, &["memory", "device"])?;
        }
    }
    assert_eq!(foreign.to_vec()?, [1; 16]);
    Ok(())
}

fn pools_have_memory_of_one_opening(context: &Context) -> Outcome {
    let other = context.device_apart()?;
    let (pool, pinned) = (DevicePool::new(), PinnedPool::new(PinnedOptions::default()));
    let stream = context.device.default_stream();
    drop(Allocator::allocate(&pool, &context.device, &stream, 100)?);
    drop(pinned.allocate(&context.device, 100)?);
    let foreign = Allocator::allocate(&pool, &other, &other.default_stream(), 100);
    expect_error(foreign, KIND, &["pool"])?;
    expect_error(pinned.allocate(&other, 100), KIND, &["pool"])?;
    drop(pinned.allocate(&context.device, 100)?);
    Ok(())
}

fn pinned_buffers_of_other_devices_hold_what_is_copied(context: &Context) -> Outcome {
    let array = context.counting(&[1000])?;
    for other in context.other_devices()? {
        let buffer = PinnedBuffer::<i32>::new(&other, 1000)?;
        let copied = array.copy_to_pinned(buffer)?.wait()?;
        assert_eq!(copied[..], crate::context::counting(1000)[..]);
        let mut back = DeviceArray::<i32>::zeros(&context.device, &[1000])?;
        drop(back.copy_from_pinned(copied)?);
        assert_eq!(back.to_vec()?, crate::context::counting(1000));
    }
    Ok(())
}
