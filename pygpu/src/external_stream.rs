//! Streams that other libraries created.

use crate::owner::OwnerObject;
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

/// A stream that another library created, with the object that keeps it alive.
pub(crate) struct ExternalStream {
    inner: Arc<dyn Stream>,
    /// Stands for the stream in the memory that was used on it.
    proxy: Arc<StreamProxy>,
    /// Behind the streams, since fields are dropped in this order.
    owner: OnceLock<OwnerObject>,
}

impl ExternalStream {
    /// Returns the object for a stream of a device.
    pub(crate) fn new(inner: Arc<dyn Stream>, device: &Arc<dyn Device>) -> ExternalStream {
        let (id, device) = (inner.id(), device.clone());
        let proxy = StreamProxy { id, target: RwLock::new(inner.clone()), device };
        ExternalStream { inner, proxy: Arc::new(proxy), owner: OnceLock::new() }
    }

    /// Keeps `owner` alive as long as the stream; later owners are ignored.
    pub(crate) fn keep(&self, owner: &Bound<'_, PyAny>) {
        self.owner.get_or_init(|| OwnerObject::new(owner.clone().unbind()));
    }
}

impl Drop for ExternalStream {
    fn drop(&mut self) {
        if self.owner.get().is_some() && Arc::strong_count(&self.proxy) > 1 {
            self.proxy.redirect_to_default();
        }
    }
}

/// Stands for an external stream in the memory that was used on it. It holds no reference to the
/// stream's owner: an owner that has arrays of its own would never be freed.
///
/// When the stream is dropped, the default stream waits for its work, and the proxy forwards to the
/// default stream from then on.
struct StreamProxy {
    id: u64,
    /// Locked for reading while the stream is used, so that its owner is not dropped meanwhile.
    target: RwLock<Arc<dyn Stream>>,
    device: Arc<dyn Device>,
}

impl StreamProxy {
    fn target(&self) -> RwLockReadGuard<'_, Arc<dyn Stream>> {
        // The stream is valid whatever failed elsewhere.
        self.target.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the default stream wait for the stream's work, and forwards to the default stream.
    fn redirect_to_default(&self) {
        let mut target = self.target.write().unwrap_or_else(PoisonError::into_inner);
        let default = self.device.default_stream();
        let order = || {
            let event = self.device.create_event(EventOptions::ORDERING)?;
            target.record(event.as_ref())?;
            default.wait_event(event.as_ref())
        };
        if order().is_err() && target.synchronize().is_err() {
            log::warn!("an external stream is dropped, and waiting for its work failed");
        }
        *target = default;
    }
}

impl fmt::Debug for StreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamProxy({})", self.id)
    }
}

impl fmt::Debug for ExternalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalStream({:?})", self.inner)
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
// SAFETY: every call that is made is that of the stream inside, or an error.
unsafe impl Stream for ExternalStream {
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

    fn supports_queries(&self) -> bool {
        self.inner.supports_queries()
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

    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.owner.get().map(|owner| owner as _)
    }

    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        self.owner.get().map(|_| self.proxy.clone() as _)
    }
}

/// Implements what ordering uses of memory and freeing it need; the rest is the trait's default.
// SAFETY: every call that is made is that of the stream inside, or an error.
unsafe impl Stream for StreamProxy {
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        self.device.id()
    }

    fn handle(&self) -> u64 {
        self.target().handle()
    }

    fn has_handle(&self, handle: u64) -> bool {
        self.target().has_handle(handle)
    }

    fn query(&self) -> Result<bool> {
        self.target().query()
    }

    fn supports_queries(&self) -> bool {
        self.target().supports_queries()
    }

    fn synchronize(&self) -> Result<()> {
        self.target().synchronize()
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.target().record(event)
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.target().wait_event(event)
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.target().host_function(function)
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.target().allocate(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on, here and below.
        unsafe { self.target().free(address, bytes) }
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.target().transfer(transfer) }
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.target().fill(address, value, width, count) }
    }

    fn is_capturing(&self) -> Result<bool> {
        self.target().is_capturing()
    }

    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        self.target().keep_for_graph(uses)
    }

    fn check_epoch(&self) -> Result<()> {
        self.target().check_epoch()
    }

    fn check_before_capture(&self) -> Result<()> {
        self.target().check_before_capture()
    }

    fn options(&self) -> Result<StreamOptions> {
        self.target().options()
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.target().execute(operation) }
    }

    fn last_status(&self) -> Status {
        self.target().last_status()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
