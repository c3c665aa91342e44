//! The operations of a driver's stream: [`Stream`] over the driver's calls.

use super::{DriverStream, Ownership, operation, transfer};
use crate::calls::{Handle, NON_BLOCKING};
use crate::context::Context;
use crate::event::{self, DriverEvent};
use crate::vendor::optional;
use hal::error::{Error, Result};
use hal::event::{Event, EventOptions};
use hal::failures::{Cause, Failures};
use hal::memory::{Access, DeviceMemory, GraphObject, Use};
use hal::operation::Operation;
use hal::properties::DeviceId;
use hal::status::Status;
use hal::stream::{
    CaptureMode, Direction, Graph, HostRange, PrefetchTarget, Stream, StreamCapture, StreamCore,
    StreamMemory, StreamOptions, StreamState, Transfer, call_function, copy_array_overlapping,
    gather_by_transfers, transfer_overlapping,
};
use hal::submission::beside_captures;
use hal::texture::ArrayCopy;
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A host function, and where to report its failure.
struct HostCall {
    function: Box<dyn FnOnce() -> Result<()> + Send>,
    failures: Arc<Failures>,
    /// The number of the stream, and of the function among the stream's functions.
    numbers: (u64, u64),
}

unsafe extern "C" fn run_host_call(data: *mut c_void) {
    // SAFETY: the data is a boxed call that was passed on once, when it was queued.
    let call = unsafe { Box::from_raw(data.cast::<HostCall>()) };
    let HostCall { function, failures, numbers: (stream, number) } = *call;
    if let Err(error) = call_function(function) {
        failures.keep(stream, number, Cause::Stream, error);
    }
}

unsafe extern "C" fn run_callback(_stream: Handle, _status: c_int, data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { run_host_call(data) }
}

impl StreamCore for DriverStream {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        self.context.device_id()
    }

    fn handle(&self) -> u64 {
        self.expose();
        self.handle as u64
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            if self.is_elsewhere() {
                return Ok(false);
            }
            let _queueing = beside_captures(self.id);
            if self.capture_number()?.is_some() {
                return Ok(false);
            }
            let context = &self.context;
            let _scope = self.enter()?;
            if self.is_barred()? {
                // A query would end the capture. Earlier work has finished, and nothing can be queued meanwhile.
                return Ok(true);
            }
            // SAFETY: the handle is a live stream.
            let query = || unsafe { (context.driver.calls.stream_query)(self.handle) };
            match context.outside_captures(query) {
                Status::NOT_READY => Ok(false),
                code => context.check("query", code).map(|()| true),
            }
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            self.wait(self.capture_number()?.is_some())?;
            self.take_failure()
        })
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        self.status
            .during(|| Ok(Arc::new(DriverEvent::new(&self.context, options)?) as Arc<dyn Event>))
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            event.check_record(self.device_id())?;
            if self.is_elsewhere() {
                // The event is recorded after all work that the other thread has queued until now.
                self.synchronize_device()?;
            }
            // Keeps the stream's capture state and the event's record consistent.
            let _queueing = beside_captures(self.id);
            let captured = self.capture_number()?.is_some();
            let _scope = self.enter_anywhere()?;
            let event = event::own(event)?;
            event.record_on(&self.context, self.handle, captured)?;
            event.set_behind(self.id, self.functions.load(Ordering::Acquire));
            Ok(())
        })
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            event.check_wait(self.device_id(), false)?;
            let any = event;
            let event = event::own(event)?;
            event.handle_for(&self.context)?;
            if !event.is_recorded() {
                return Ok(());
            }
            if self.is_elsewhere() {
                return event.drain();
            }
            let _scope = self.enter()?;
            let queueing = beside_captures(self.id);
            let how = (false, self.capture_number()?.is_some());
            let has_waited = event.wait_on(&self.context, self.handle, how)?.is_some();
            drop(queueing);
            if !has_waited {
                any.check_wait(self.device_id(), true)?;
                self.join(event)?;
            }
            self.expose_if_captured()
        })
    }

    fn queue_function(&self, function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
        self.status.during(|| {
            let _queueing = beside_captures(self.id);
            self.refuse_in_capture("host_function", "a graph would run the function many times")?;
            let _scope = self.enter()?;
            let calls = &self.context.driver.calls;
            let numbers = (self.id, self.functions.fetch_add(1, Ordering::AcqRel) + 1);
            let failures = self.context.failures.clone();
            let call = Box::new(HostCall { function, failures, numbers });
            let data = Box::into_raw(call).cast::<c_void>();
            // A runtime may have the newer symbol but not the function.
            let mut code = Status::NOT_SUPPORTED;
            if let Some(launch) = calls.host_function {
                // SAFETY: the function takes the box once, when it runs.
                code = unsafe { launch(self.handle, run_host_call, data) };
            }
            if let (Some(add), true) =
                (calls.stream_callback, self.context.driver.is_unsupported(code))
            {
                // SAFETY: as above.
                code = unsafe { add(self.handle, run_callback, data, 0) };
            }
            if code != Status::SUCCESS {
                // SAFETY: the driver did not take the function.
                drop(unsafe { Box::from_raw(data.cast::<HostCall>()) });
            }
            self.context.check("host_function", code)
        })
    }

    #[inline]
    fn allocate(&self, bytes: usize) -> Result<u64> {
        // Another thread may begin or end a capture meanwhile. Memory for a capture that has ended, or for work
        // outside a capture that has just begun, is valid in both cases.
        if self.may_capture()
            && let Some(capture) = self.capture_number()?
        {
            let captures = &self.device.open_captures;
            let captured = captures.allocate(self.handle, &self.unattached, capture, bytes)?;
            if let Some(address) = captured {
                return Ok(address);
            }
        }
        let is_stale = self.ownership != Ownership::Default && self.context.epoch() != self.epoch;
        if is_stale || self.is_elsewhere() {
            drop(self.enter()?);
        }
        self.device.memory.allocate(&self.blocks, bytes)
    }

    #[inline]
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        if let Some(done) = self.device.open_captures.release(address) {
            return done;
        }
        if self.may_capture()
            && let Some(capture) = self.capture_number()?
        {
            let captures = &self.device.open_captures;
            // SAFETY: the caller's promise.
            if unsafe { captures.keep(self.handle, &self.unattached, capture, address, bytes)? } {
                return Ok(());
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.blocks.free(&self.device.memory.pool, address, bytes) }
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        self.status.during(|| {
            if self.may_capture() {
                let is_known = |host| self.context.driver.vendor.knows(host);
                self.check_captured_copy("transfer", transfer.unrepeatable(is_known))?;
            }
            if transfer.overlaps() {
                // SAFETY: the caller's promise.
                return unsafe { transfer_overlapping(self, transfer) };
            }
            // SAFETY: as above.
            unsafe { transfer::copy(self, transfer) }
        })
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        self.status.during(|| {
            // SAFETY: the caller's promise.
            unsafe { transfer::fill(self, address, value, width, count) }
        })
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        self.status.during(|| {
            // SAFETY: the caller's promise.
            unsafe { operation::execute(self, operation) }
        })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl StreamMemory for DriverStream {
    unsafe fn gather(&self, destination: u64, ranges: &[HostRange]) -> Result<()> {
        // SAFETY: the caller's promise.
        let gather = || unsafe { transfer::gather(self, destination, ranges) };
        if self.status.during(gather)? {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { gather_by_transfers(self, destination, ranges) }
    }

    unsafe fn copy_array(&self, copy: &ArrayCopy) -> Result<()> {
        self.status.during(|| {
            if self.may_capture() {
                let is_known = |host| self.context.driver.vendor.knows(host);
                self.check_captured_copy("copy_array", copy.unrepeatable(is_known))?;
            }
            if copy.overlaps() {
                // SAFETY: the caller's promise.
                return unsafe { copy_array_overlapping(self, copy) };
            }
            // SAFETY: as above.
            unsafe { transfer::copy_array(self, copy) }
        })
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        self.status.during(|| {
            let prefetch = optional!(self.context.driver, prefetch, "prefetch")?;
            let device = match to {
                PrefetchTarget::Device => self.context.device,
                PrefetchTarget::Host => -1,
            };
            let _scope = self.enter()?;
            let _adding = self.adding()?;
            // SAFETY: the caller's promise.
            let code = unsafe { prefetch(address, bytes, device, self.handle) };
            self.context.check("prefetch", code)
        })
    }
}

impl DriverStream {
    /// Queues a copy between two devices, each given with its context, of which one is the stream's.
    ///
    /// # Safety
    /// As for [`hal::Device::transfer_peer`].
    pub(crate) unsafe fn transfer_between(
        &self,
        (destination, to): (u64, &Context),
        (source, from): (u64, &Context),
        bytes: usize,
    ) -> Result<()> {
        self.status.during(|| {
            let linear =
                Transfer::linear(Direction::DeviceToDevice, destination, source, bytes, false);
            if linear.overlaps() {
                // SAFETY: the caller's promise. Only one device has memory with shared bytes.
                return unsafe { transfer_overlapping(self, &linear) };
            }
            if bytes == 0 {
                return Ok(());
            }
            let destination = (destination, to.device, to.handle()?);
            let source = (source, from.device, from.handle()?);
            let _scope = self.enter()?;
            let vendor = &self.context.driver.vendor;
            let _adding = self.adding()?;
            // SAFETY: the caller's promise; contexts and stream are live.
            let code = unsafe { vendor.copy_peer(destination, source, bytes, self.handle) };
            self.context.check("transfer_peer", code)
        })
    }
}

impl StreamCapture for DriverStream {
    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        self.status.during(|| self.begin(mode))
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        self.status.during(|| Ok(Arc::new(self.end()?) as Arc<dyn Graph>))
    }

    fn is_capturing(&self) -> Result<bool> {
        Ok(self.capture_number()?.is_some())
    }

    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        self.captured_memory()?.inspect(|kept| kept.add_uses(uses));
        Ok(())
    }

    fn keep_object(&self, object: &GraphObject) -> Result<()> {
        self.captured_memory()?.inspect(|kept| kept.add_object(object));
        Ok(())
    }

    fn has_captured(&self, memory: &DeviceMemory, access: Access) -> Result<bool> {
        let Some(capture) = self.capture_number()? else { return Ok(false) };
        Ok(self.device.open_captures.may_conflict(capture, memory, access))
    }

    fn check_before_capture(&self) -> Result<()> {
        match self.capture_number()? {
            Some(capture) if !self.device.open_captures.is_own(capture) => Err(Error::invalid(
                "wait",
                "another library captures the stream: its earlier work cannot be waited for until \
                 the capture has ended",
            )),
            _ => Ok(()),
        }
    }
}

impl StreamState for DriverStream {
    fn has_handle(&self, handle: u64) -> bool {
        self.handle as u64 == handle
    }

    fn supports_queries(&self) -> bool {
        self.context.query_support().streams && !self.is_elsewhere()
    }

    fn drain(&self) -> Result<()> {
        self.status.during(|| {
            // While another capture bars it, the default stream has no work.
            if self.capture_number()?.is_some() || self.is_barred()? {
                return Ok(());
            }
            self.wait(false)
        })
    }

    fn check_epoch(&self) -> Result<()> {
        match self.ownership {
            Ownership::Default => Ok(()),
            _ => self.context.check_epoch(self.epoch),
        }
    }

    fn options(&self) -> Result<StreamOptions> {
        if let Ownership::Own(options) = self.ownership {
            return Ok(options);
        }
        let calls = &self.context.driver.calls;
        let (mut flags, mut priority) = (0, 0);
        let _scope = self.enter()?;
        if let Some(read) = calls.stream_flags {
            // SAFETY: the driver looks the handle up; the result is written before it returns.
            let code = unsafe { read(self.handle, &mut flags) };
            self.context.check("stream_flags", code)?;
        }
        if let Some(read) = calls.stream_priority {
            // SAFETY: as above.
            let code = unsafe { read(self.handle, &mut priority) };
            self.context.check("stream_priority", code)?;
        }
        Ok(StreamOptions::default().non_blocking(flags & NON_BLOCKING != 0).priority(priority))
    }
}

// SAFETY: the driver keeps the order of a stream; its allocations are freed once, and kept blocks are reused
// after the previous work.
unsafe impl Stream for DriverStream {}
