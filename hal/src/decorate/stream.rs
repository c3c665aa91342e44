//! The decorated form of streams and graphs.

use super::{Call, Decorated};
use crate::device::{Device, DeviceId};
use crate::error::Result;
use crate::event::Event;
use crate::memory::Use;
use crate::operation::Operation;
use crate::status::Status;
use crate::stream::{CaptureMode, Graph, PrefetchTarget, Stream, StreamOptions, Transfer};
use std::any::Any;
use std::sync::Arc;

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
// SAFETY: every call that is made is that of the stream inside, and what it returns is passed on.
unsafe impl Stream for Decorated<dyn Stream> {
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
        self.call(Call::Query, |s| s.query())
    }

    fn supports_queries(&self) -> bool {
        self.inner.supports_queries()
    }

    fn wait_for_room(&self) {
        self.inner.wait_for_room();
    }

    fn synchronize(&self) -> Result<()> {
        self.call(Call::Synchronize, |s| s.synchronize())
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.call(Call::Record, |s| s.record(event))
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.call(Call::WaitEvent, |s| s.wait_event(event))
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.call(Call::HostFunction, |s| s.host_function(function))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.call(Call::Allocate, |s| s.allocate(bytes))
    }

    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        self.call(Call::Allocate, |s| s.allocate_zeroed(bytes))
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Free, |s| unsafe { s.free(address, bytes) })
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |s| unsafe { s.transfer(transfer) })
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Fill, |s| unsafe { s.fill(address, value, width, count) })
    }

    unsafe fn transfer_peer(
        &self,
        destination: u64,
        destination_device: &dyn Device,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |s| unsafe {
            s.transfer_peer(destination, destination_device, source, source_device, bytes)
        })
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |s| unsafe { s.prefetch(address, bytes, to) })
    }

    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        self.call(Call::Capture, |s| s.begin_capture(mode))
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        let inner = self.call(Call::Capture, |s| s.end_capture())?;
        Ok(Arc::new(self.wrap(inner)))
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
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Execute, |s| unsafe { s.execute(operation) })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        Some(Arc::new(self.wrap(self.inner.for_memory()?)))
    }

    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.external_owner()
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
impl Graph for Decorated<dyn Graph> {
    fn node_count(&self) -> usize {
        self.inner.node_count()
    }

    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Launch, |g| unsafe { g.launch(stream) })
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}
