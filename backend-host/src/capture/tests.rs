//! Behaviour on which drivers differ, as the host implements it.

use crate::config::HostConfig;
use crate::handle::HostHandle;
use array::DeviceArray;
use hal::memory::DeviceMemory;
use hal::{CaptureMode, Device, Error, EventOptions, Result, Stream, StreamOptions};
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};

fn device() -> Arc<dyn Device> {
    HostHandle::new(HostConfig { memory: 1 << 24, cache: 1 << 20, threads: 1 })
}

fn stream(device: &Arc<dyn Device>) -> Result<Arc<dyn Stream>> {
    device.create_stream(StreamOptions::default().non_blocking(true))
}

fn used(device: &Arc<dyn Device>) -> Result<usize> {
    device.memory_info().map(|info| info.total - info.free)
}

#[test]
fn only_the_thread_that_began_a_capture_ends_it() -> Result<()> {
    let device = device();
    let stream = stream(&device)?;
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal] {
        stream.begin_capture(mode)?;
        let end = || stream.end_capture();
        let refused = std::thread::scope(|scope| scope.spawn(end).join().expect("no panic"));
        assert_eq!(refused.map_err(|error| error.status().code).err(), Some(908));
        // The capture is still active.
        stream.end_capture()?;
    }
    Ok(())
}

#[test]
fn a_stream_captures_beside_the_default_stream_that_it_does_not_wait_for() -> Result<()> {
    let device = device();
    let (default, stream) = (device.default_stream(), stream(&device)?);
    let (open, opened) = channel::<()>();
    default.host_function(Box::new(move || opened.recv().unwrap_or(())))?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    let joined = self::stream(&device)?;
    let event = device.create_event(EventOptions::ORDERING)?;
    stream.record(event.as_ref())?;
    joined.wait_event(event.as_ref())?;
    assert!(joined.is_capturing()? && !default.query()?);
    stream.end_capture()?;
    drop(open);
    default.synchronize()
}

#[test]
fn a_capture_contains_no_launch_of_a_graph() -> Result<()> {
    let device = device();
    let (stream, other) = (stream(&device)?, stream(&device)?);
    stream.begin_capture(CaptureMode::Relaxed)?;
    let graph = stream.end_capture()?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    // SAFETY: the graph does not use memory.
    let refused = unsafe { graph.launch(&stream) };
    let detail = refused.map_err(|error| error.detail().to_owned());
    assert_eq!(
        detail,
        Err("the stream captures: a launch of a graph cannot be captured".to_owned())
    );
    // SAFETY: as above.
    unsafe { graph.launch(&other)? };
    assert_eq!(stream.end_capture()?.node_count(), 0);
    Ok(())
}

#[test]
fn a_graph_is_launched_on_its_own_device() -> Result<()> {
    let (device, another) = (device(), device());
    let (stream, foreign) = (stream(&device)?, stream(&another)?);
    stream.begin_capture(CaptureMode::Relaxed)?;
    let graph = stream.end_capture()?;
    // SAFETY: the graph does not use memory.
    let refused = unsafe { graph.launch(&foreign) };
    assert!(refused.is_err_and(|error: Error| error.detail().contains("of opening")));
    Ok(())
}

/// Uses raw addresses, without memory objects.
#[test]
fn memory_of_a_capture_goes_with_its_last_launch() -> Result<()> {
    let device = device();
    let (stream, other) = (stream(&device)?, stream(&device)?);
    let before = stream.allocate(5000)?;
    let clear = used(&device)? - 5000;
    stream.begin_capture(CaptureMode::Relaxed)?;
    let (kept, freed) = (stream.allocate(3000)?, stream.allocate(2000)?);
    // SAFETY: each address is an allocation of this size; the graphs use it while they exist.
    unsafe {
        for (address, bytes) in [(before, 5000), (kept, 3000), (freed, 2000)] {
            stream.fill(address, 7, 1, bytes)?;
        }
        stream.free(before, 5000)?;
        stream.free(freed, 2000)?;
    }
    let graph = stream.end_capture()?;
    assert_eq!(used(&device)? - clear, 10_000);
    let (open, opened) = std::sync::mpsc::channel::<()>();
    other.host_function(Box::new(move || _ = opened.recv()))?;
    // SAFETY: as above; nothing else uses the memory.
    unsafe { graph.launch(&other)? };
    drop(graph);
    assert_eq!(used(&device)? - clear, 10_000, "a launch is still to run");
    drop(open);
    other.synchronize()?;
    // SAFETY: the memory that the capture allocated and did not free.
    unsafe { stream.free(kept, 3000)? };
    stream.synchronize()?;
    device.synchronize()?;
    // The launch's task is dropped a moment after it has run.
    while used(&device)? > clear {
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn a_graph_is_all_that_is_left_of_a_device() -> Result<()> {
    let device = device();
    let (graph, left) = {
        let stream = stream(&device)?;
        let x = DeviceArray::<i32>::zeros(&device, &[100])?.on(&stream)?;
        stream.begin_capture(CaptureMode::Relaxed)?;
        let y = (&x + 1)?;
        let memory: Weak<DeviceMemory> = Arc::downgrade(y.untyped().memory());
        (stream.end_capture()?, memory)
    };
    drop(device);
    assert!(left.upgrade().is_some());
    drop(graph);
    assert!(left.upgrade().is_none(), "nothing keeps the memory");
    Ok(())
}
