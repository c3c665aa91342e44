//! The streams that Python programs have created or passed in, by device and handle.
//!
//! The registry does not keep streams alive. It is used to return the same object for the same handle, and to
//! wait for every stream of a device.

use crate::external_stream::ExternalStream;
use gpuarray::{Device, DeviceId, Stream};
use hal::layers::Layered;
use hal::process::ProcessMutex;
use pyo3::prelude::*;
use std::sync::{Arc, Weak};

/// Ends the capture of a stream when the last Python object for the stream is dropped. The capture could no
/// longer be ended otherwise, and the memory that it uses may keep the stream itself alive.
pub(crate) struct CaptureGuard {
    stream: Arc<dyn Stream>,
}

impl Drop for CaptureGuard {
    fn drop(&mut self) {
        if self.stream.is_capturing().unwrap_or(false) {
            let stream = self.stream.clone();
            // The collector runs on any thread, where a failure cannot be reported.
            Python::try_attach(|py| py.detach(|| drop(stream.abandon_capture())));
        }
    }
}

/// The entry of one stream.
struct Entry {
    stream: Weak<dyn Stream>,
    /// For a stream that was created here; the Python objects for it share the guard.
    capture_guard: Option<Weak<CaptureGuard>>,
    /// For a stream that another library created.
    external: Option<Weak<Layered<ExternalStream>>>,
    device: DeviceId,
    /// [`Device::epoch`] at registration: a reset destroys the stream, and another may get its handle.
    epoch: u64,
}

/// All streams except the default streams.
static STREAMS: ProcessMutex<Vec<Entry>> = ProcessMutex::new(Vec::new);

fn register(device: &dyn Device, entry: impl FnOnce(DeviceId, u64) -> Entry) {
    let new = entry(device.id(), device.epoch());
    let mut streams = STREAMS.lock();
    if streams.len() == streams.capacity() {
        streams.retain(|entry| entry.stream.strong_count() > 0);
    }
    streams.push(new);
}

/// Registers a stream that was created here; returns the guard for its first Python object.
pub(crate) fn register_own(device: &dyn Device, stream: &Arc<dyn Stream>) -> Arc<CaptureGuard> {
    let guard = Arc::new(CaptureGuard { stream: stream.clone() });
    register(device, |device, epoch| Entry {
        stream: Arc::downgrade(stream),
        capture_guard: Some(Arc::downgrade(&guard)),
        external: None,
        device,
        epoch,
    });
    guard
}

/// Registers a stream that another library created.
pub(crate) fn register_external(device: &dyn Device, external: &Arc<Layered<ExternalStream>>) {
    let stream: Arc<dyn Stream> = external.clone();
    register(device, |device, epoch| Entry {
        stream: Arc::downgrade(&stream),
        capture_guard: None,
        external: Some(Arc::downgrade(external)),
        device,
        epoch,
    });
}

/// Returns the live streams of a device, except its default streams and streams that a reset has destroyed.
pub(crate) fn live_streams(device: &dyn Device) -> Vec<Arc<dyn Stream>> {
    let (id, epoch) = (device.id(), device.epoch());
    let streams = STREAMS.lock();
    let own = streams.iter().filter(|entry| entry.device == id && entry.epoch == epoch);
    own.filter_map(|entry| entry.stream.upgrade()).collect()
}

/// Returns the guard that the Python objects for a stream share; `None` for a stream that was not
/// created here.
pub(crate) fn capture_guard(stream: &Arc<dyn Stream>) -> Option<Arc<CaptureGuard>> {
    let mut streams = STREAMS.lock();
    let address = Arc::as_ptr(stream).addr();
    let entry = streams.iter_mut().find(|entry| entry.stream.as_ptr().addr() == address)?;
    let shared = entry.capture_guard.as_mut()?;
    Some(shared.upgrade().unwrap_or_else(|| {
        let guard = Arc::new(CaptureGuard { stream: stream.clone() });
        *shared = Arc::downgrade(&guard);
        guard
    }))
}

/// A stream, and its object if another library created it.
type LiveStream = (Arc<dyn Stream>, Option<Arc<Layered<ExternalStream>>>);

/// Returns the live stream of a device with a handle.
pub(crate) fn find(device: &dyn Device, handle: u64) -> Option<LiveStream> {
    with_handle(device, handle, |epoch| epoch == device.epoch())
}

/// Returns true if a reset destroyed the stream with this handle, and its object still exists.
pub(crate) fn was_taken(device: &dyn Device, handle: u64) -> bool {
    with_handle(device, handle, |epoch| epoch != device.epoch()).is_some()
}

fn with_handle(device: &dyn Device, handle: u64, of: impl Fn(u64) -> bool) -> Option<LiveStream> {
    let id = device.id();
    // Searched after the lock is released, because the last reference to a stream also drops its owner.
    let live: Vec<LiveStream> = {
        let streams = STREAMS.lock();
        let own = streams.iter().filter(|entry| entry.device == id && of(entry.epoch));
        own.filter_map(|entry| {
            Some((entry.stream.upgrade()?, entry.external.as_ref().and_then(Weak::upgrade)))
        })
        .collect()
    };
    live.into_iter().find(|(stream, _)| stream.has_handle(handle))
}
