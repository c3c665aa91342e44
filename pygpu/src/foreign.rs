//! Streams that other libraries made.

use crate::kept::KeptObject;
use gpuarray::hal::operation::Operation;
use gpuarray::memory::Use;
use gpuarray::{
    CaptureMode, Device, DeviceId, Event, EventOptions, Graph, PrefetchTarget, Result, Status,
    Stream, StreamOptions, Transfer,
};
use pyo3::prelude::*;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// A stream with the object of another library that it lives as long as.
pub(crate) struct KeptStream {
    inner: Arc<dyn Stream>,
    /// What memory knows of the stream.
    past: Arc<PastStream>,
    /// Behind the streams, since fields are dropped in this order.
    owner: OnceLock<KeptObject>,
}

impl KeptStream {
    /// A stream of a device.
    pub(crate) fn new(inner: Arc<dyn Stream>, device: &Arc<dyn Device>) -> KeptStream {
        let (id, device) = (inner.id(), device.clone());
        let past = PastStream { id, now: RwLock::new(inner.clone()), device };
        KeptStream { inner, past: Arc::new(past), owner: OnceLock::new() }
    }

    /// Keeps an object with the stream; the first one, which is enough.
    pub(crate) fn keep(&self, owner: &Bound<'_, PyAny>) {
        self.owner.get_or_init(|| KeptObject::new(owner.clone().unbind()));
    }
}

impl Drop for KeptStream {
    fn drop(&mut self) {
        if self.owner.get().is_some() && Arc::strong_count(&self.past) > 1 {
            self.past.end();
        }
    }
}

/// A stream as memory remembers it that was used on it: without the stream's owner, which may
/// have arrays of its own, and would never be freed.
///
/// When the stream itself goes, the default stream is made to wait for its work, and stands for it
/// from then on.
struct PastStream {
    id: u64,
    /// Locked for reading while the stream is used, so that its owner does not go meanwhile.
    now: RwLock<Arc<dyn Stream>>,
    device: Arc<dyn Device>,
}

impl PastStream {
    fn now(&self) -> RwLockReadGuard<'_, Arc<dyn Stream>> {
        // The stream is valid whatever failed elsewhere.
        self.now.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the default stream behind the stream's work, and in its place.
    fn end(&self) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let default = self.device.default_stream();
        let order = || {
            let event = self.device.create_event(EventOptions::ORDERING)?;
            now.record(event.as_ref())?;
            default.wait_event(event.as_ref())
        };
        if order().is_err() && now.synchronize().is_err() {
            log::warn!("a stream goes whose work could not be waited for");
        }
        *now = default;
    }
}

impl fmt::Debug for PastStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PastStream({})", self.id)
    }
}

impl fmt::Debug for KeptStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptStream({:?})", self.inner)
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
// SAFETY: every call that is made is that of the stream inside, or an error.
unsafe impl Stream for KeptStream {
    fn id(&self) -> u64 {
        self.inner.id()
    }

    fn device_id(&self) -> DeviceId {
        self.inner.device_id()
    }

    fn handle(&self) -> u64 {
        self.inner.handle()
    }

    fn has_handle(&self, handle: u64) -> bool {
        self.inner.has_handle(handle)
    }

    fn query(&self) -> Result<bool> {
        self.inner.query()
    }

    fn answers_queries(&self) -> bool {
        self.inner.answers_queries()
    }

    fn wait_for_room(&self) {
        self.inner.wait_for_room();
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.inner.record(event)
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.inner.wait_event(event)
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.inner.host_function(function)
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.inner.allocate(bytes)
    }

    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        self.inner.allocate_zeroed(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on, here and below.
        unsafe { self.inner.free(address, bytes) }
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.transfer(transfer) }
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.fill(address, value, width, count) }
    }

    unsafe fn transfer_peer(
        &self,
        destination: u64,
        destination_device: &dyn Device,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        let inner = &self.inner;
        // SAFETY: as above.
        unsafe {
            inner.transfer_peer(destination, destination_device, source, source_device, bytes)
        }
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.prefetch(address, bytes, to) }
    }

    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        self.inner.begin_capture(mode)
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        self.inner.end_capture()
    }

    fn is_capturing(&self) -> Result<bool> {
        self.inner.is_capturing()
    }

    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        self.inner.keep_for_graph(uses)
    }

    fn check_epoch(&self) -> Result<()> {
        self.inner.check_epoch()
    }

    fn check_before_capture(&self) -> Result<()> {
        self.inner.check_before_capture()
    }

    fn options(&self) -> Result<StreamOptions> {
        self.inner.options()
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.execute(operation) }
    }

    fn last_status(&self) -> Status {
        self.inner.last_status()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn foreign_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.owner.get().map(|owner| owner as _)
    }

    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        self.owner.get().map(|_| self.past.clone() as _)
    }
}

/// What ordering memory and freeing it need.
// SAFETY: every call that is made is that of the stream inside, or an error.
unsafe impl Stream for PastStream {
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        self.device.id()
    }

    fn handle(&self) -> u64 {
        self.now().handle()
    }

    fn has_handle(&self, handle: u64) -> bool {
        self.now().has_handle(handle)
    }

    fn query(&self) -> Result<bool> {
        self.now().query()
    }

    fn answers_queries(&self) -> bool {
        self.now().answers_queries()
    }

    fn synchronize(&self) -> Result<()> {
        self.now().synchronize()
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.now().record(event)
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.now().wait_event(event)
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.now().host_function(function)
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.now().allocate(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on, here and below.
        unsafe { self.now().free(address, bytes) }
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.now().transfer(transfer) }
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.now().fill(address, value, width, count) }
    }

    fn is_capturing(&self) -> Result<bool> {
        self.now().is_capturing()
    }

    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        self.now().keep_for_graph(uses)
    }

    fn check_epoch(&self) -> Result<()> {
        self.now().check_epoch()
    }

    fn check_before_capture(&self) -> Result<()> {
        self.now().check_before_capture()
    }

    fn options(&self) -> Result<StreamOptions> {
        self.now().options()
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.now().execute(operation) }
    }

    fn last_status(&self) -> Status {
        self.now().last_status()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
