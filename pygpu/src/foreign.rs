//! Streams that other libraries made.

use crate::kept::KeptObject;
use gpuarray::operation::Operation;
use gpuarray::{
    CaptureMode, Device, DeviceId, Event, Graph, PrefetchTarget, Result, Stream, StreamOptions,
    Transfer,
};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A stream with the object of another library that it lives as long as. Memory remembers the
/// streams that use it, so the object stays until the last such memory is gone.
pub(crate) struct KeptStream {
    pub(crate) inner: Arc<dyn Stream>,
    pub(crate) owner: Option<KeptObject>,
}

impl fmt::Debug for KeptStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptStream({:?})", self.inner)
    }
}

impl Stream for KeptStream {
    fn id(&self) -> u64 {
        self.inner.id()
    }

    fn device_id(&self) -> DeviceId {
        self.inner.device_id()
    }

    fn handle(&self) -> u64 {
        self.inner.handle()
    }

    fn query(&self) -> Result<bool> {
        self.inner.query()
    }

    fn answers_queries(&self) -> bool {
        self.inner.answers_queries()
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

    fn options(&self) -> Result<StreamOptions> {
        self.inner.options()
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.execute(operation) }
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn foreign_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.owner.as_ref().map(|owner| owner as _)
    }
}
