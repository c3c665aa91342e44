//! Streams of the host.
//!
//! A stream runs its work in order on its own thread. The default stream runs work immediately on the calling
//! thread, unless other work for which it must wait is queued. Small operations therefore do not need a thread
//! switch.

mod capture;
mod graph;
mod launch;
mod order;
mod outcome;

use crate::capture::CaptureSlot;
use crate::compiled_rows;
use crate::device::HostDevice;
use crate::event::HostEvent;
use crate::queue::{Queue, Task};
use crate::transfer;
use hal::interruption;
use hal::memory::{Access, DeviceMemory, GraphObject, Use};
use hal::operation::Operation;
use hal::poison::Unpoisoned as _;
use hal::status::AtomicStatus;
use hal::stream::{
    StreamCapture, StreamCore, StreamMemory, StreamState, call_function, transfer_overlapping,
};
use hal::texture::ArrayCopy;
use hal::{
    CaptureMode, DeviceId, Direction, Error, Event, EventOptions, Graph, HostRange, PrefetchTarget,
    Result, Status, Stream, StreamOptions, Transfer,
};
use std::any::Any;
use std::sync::{Arc, MutexGuard, TryLockError};

#[derive(Debug)]
enum Kind {
    /// The default stream; its queue belongs to the device.
    Default,
    Own {
        queue: Arc<Queue>,
        blocking: bool,
        capture: CaptureSlot,
    },
}

/// A queue of work on the host.
#[derive(Debug)]
pub(crate) struct HostStream {
    device: Arc<HostDevice>,
    id: u64,
    kind: Kind,
    status: AtomicStatus,
}

impl HostStream {
    pub(crate) fn default_of(device: Arc<HostDevice>) -> HostStream {
        let (id, status) = (device.default_stream_id(), AtomicStatus::new());
        HostStream { device, id, kind: Kind::Default, status }
    }

    pub(crate) fn new(device: Arc<HostDevice>, id: u64, queue: Arc<Queue>, blocking: bool) -> Self {
        let kind = Kind::Own { queue, blocking, capture: CaptureSlot::default() };
        HostStream { device, id, kind, status: AtomicStatus::new() }
    }

    /// Downcasts a stream to this backend's type.
    ///
    /// # Errors
    /// `InvalidArgument` for a stream of another device.
    pub(crate) fn of<'a>(
        call: &'static str,
        stream: &'a dyn Stream,
        device: DeviceId,
    ) -> Result<&'a HostStream> {
        device.check_same(call, "stream", stream.device_id())?;
        let own: Option<&HostStream> = stream.as_any().downcast_ref();
        // A stream inside a wrapper must itself belong to this device.
        let own = own.filter(|own| own.device.id() == device);
        own.ok_or_else(|| Error::invalid(call, "stream belongs to another backend"))
    }

    fn queue(&self) -> &Arc<Queue> {
        match &self.kind {
            Kind::Default => &self.device.engine().default_queue,
            Kind::Own { queue, .. } => queue,
        }
    }

    /// Returns true if this is the default stream, nothing that its work has to wait for is queued, and no
    /// kernel is interrupted on the calling thread.
    fn is_clear_default(&self) -> bool {
        matches!(self.kind, Kind::Default)
            && self.device.engine().default_is_clear()
            && !interruption::is_in_kernel()
    }

    /// Returns a guard. While it is held, the calling thread may run work immediately. Returns `None` while
    /// work of another thread runs; work is then queued after it.
    fn at_once(&self) -> Option<MutexGuard<'_, ()>> {
        if !self.is_clear_default() {
            return None;
        }
        match self.device.engine().turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Queues a task after all work that this stream's work has to wait for.
    fn submit(&self, task: Task) -> Result<()> {
        let engine = self.device.engine();
        if matches!(self.kind, Kind::Own { blocking: true, .. }) && interruption::is_in_kernel() {
            engine.behind_interrupted(Vec::new(), || {})?;
        }
        let (queue, waits_for) = match &self.kind {
            Kind::Default => (&engine.default_queue, engine.marks(true)),
            Kind::Own { queue, blocking: true, .. } if !engine.default_queue.is_idle() => {
                (queue, vec![engine.default_queue.mark()])
            }
            Kind::Own { queue, .. } => (queue, Vec::new()),
        };
        for mark in waits_for {
            queue.submit(Box::new(move || mark.wait()))?;
        }
        if matches!(self.kind, Kind::Own { .. }) {
            return queue.submit(task);
        }
        let turn = engine.turn.clone();
        queue.submit(Box::new(move || {
            let _turn = turn.lock().unpoisoned();
            task()
        }))
    }
}

/// Executes an operation before it returns.
///
/// # Safety
/// See [`host_kernels::execute`].
unsafe fn execute(operation: &Operation, device: &HostDevice) -> Result<()> {
    let row = compiled_rows::find(operation);
    // SAFETY: the caller's promise.
    unsafe { host_kernels::execute_with(operation, row.as_deref(), &|| device.pool()) }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        self.abandon();
        if let Kind::Own { queue, .. } = &self.kind {
            queue.retire();
        }
    }
}

impl StreamCore for HostStream {
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        self.device.id()
    }

    fn handle(&self) -> u64 {
        match self.kind {
            Kind::Default => 0,
            Kind::Own { .. } => self.id,
        }
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            // A handler that queries repeatedly would otherwise never see the end of the kernel that it
            // interrupts.
            let has_run = match self.kind {
                Kind::Default => self.device.engine().default_has_run(),
                Kind::Own { .. } => self.has_run()?,
            };
            if has_run {
                self.queue().take_kernel_failure()?;
            }
            Ok(has_run)
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            interruption::outside_functions("synchronize")?;
            if matches!(self.kind, Kind::Default) {
                interruption::before_waiting("synchronize")?;
            }
            if self.is_clear_default() {
                return self.queue().take_failure();
            }
            self.check_wait("synchronize")?;
            self.wait()?;
            self.queue().take_failure()
        })
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        self.status
            .during(|| Ok(Arc::new(HostEvent::new(options, &self.device)?) as Arc<dyn Event>))
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            event.check_record(self.device_id())?;
            self.record_event(HostEvent::of("record", event)?)
        })
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            event.check_wait(self.device_id(), false)?;
            self.wait_for_event(HostEvent::of("wait_event", event)?)
        })
    }

    fn queue_function(&self, function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
        self.status.during(|| {
            self.refuse_in_capture("host_function", "a graph would run the function many times")?;
            // Never run it immediately: the function may wait for the thread that queues it.
            let counted = self.count_function();
            self.submit(Box::new(move || {
                let _counted = counted;
                call_function(function)
            }))
        })
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        let address = self.device.allocate_waiting(bytes)?;
        if let Some(capture) = self.capture() {
            // SAFETY: the block has just been allocated.
            capture.keep(|memory| unsafe { memory.keep_allocated(address, bytes) });
        }
        Ok(address)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        if self.is_clear_default() {
            // SAFETY: the caller's promise; no work is left that could use the memory.
            return unsafe { self.device.free_ordered(address, bytes) };
        }
        if let Some(capture) = self.capture() {
            // SAFETY: the caller's promise; the work that uses the memory is captured.
            return unsafe { self.free_captured(&capture, address, bytes) };
        }
        let device = self.device.clone();
        self.submit(Box::new(move || {
            // SAFETY: the caller's promise; this runs after all work that uses the memory.
            unsafe { device.free_ordered(address, bytes) }
        }))
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        self.status.during(|| {
            let transfer = *transfer;
            if transfer.overlaps() {
                self.check_captured_transfer(&transfer)?;
                // SAFETY: the caller's promise.
                return unsafe { transfer_overlapping(self, &transfer) };
            }
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                unsafe { transfer::copy(&transfer, &|| self.device.pool()) };
                // A call that waits for the copy reports earlier failures.
                let waits = || transfer.wait || transfer::touches_pageable(&transfer, &self.device);
                return match transfer.direction {
                    Direction::DeviceToHost if waits() => self.queue().take_failure(),
                    _ => Ok(()),
                };
            }
            self.check_captured_transfer(&transfer)?;
            let wait = transfer.wait || transfer::touches_pageable(&transfer, &self.device);
            if wait {
                // Check before queuing anything that would write to the caller's memory later.
                interruption::before_waiting("transfer")?;
            }
            let device = self.device.clone();
            self.queue_work("transfer", move || {
                // SAFETY: the caller's promise holds until the copy has run.
                unsafe { transfer::copy(&transfer, &|| device.pool()) };
                Ok(())
            })?;
            if wait {
                self.mark().wait()?;
                return self.queue().take_failure();
            }
            Ok(())
        })
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        self.status.during(|| {
            transfer::check_fill(address, width)?;
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                unsafe { transfer::fill(address, value, width, count) };
                return Ok(());
            }
            self.queue_work("fill", move || {
                // SAFETY: the caller's promise holds until the fill has run.
                unsafe { transfer::fill(address, value, width, count) };
                Ok(())
            })
        })
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // The caller then queues separate operations, so that this is no failure of the stream.
        host_kernels::check_worthwhile(operation)?;
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                return unsafe { execute(operation, &self.device) };
            }
            let (operation, device) = (operation.clone(), self.device.clone());
            self.queue_work("execute", move || {
                // SAFETY: the caller's promise holds until the operation has run.
                unsafe { execute(&operation, &device) }
            })
        })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl StreamMemory for HostStream {
    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        // A graph fills the memory at each launch.
        if self.capture().is_some() { Ok(None) } else { self.device.allocate_zeroed_waiting(bytes) }
    }

    unsafe fn gather(&self, destination: u64, ranges: &[HostRange]) -> Result<()> {
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                unsafe { transfer::gather(destination, ranges, &|| self.device.pool()) };
                return Ok(());
            }
            // SAFETY: as above.
            unsafe { hal::stream::gather_by_transfers(self, destination, ranges) }
        })
    }

    unsafe fn copy_array(&self, copy: &ArrayCopy) -> Result<()> {
        let transfer = self.status.during(|| self.device.textures().transfer(copy))?;
        // SAFETY: the caller's promise; the array's memory is the device's.
        unsafe { self.transfer(&transfer) }
    }

    unsafe fn prefetch(&self, _: u64, _: usize, _: PrefetchTarget) -> Result<()> {
        // Host and device share their memory.
        Ok(())
    }
}

impl StreamCapture for HostStream {
    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        self.status.during(|| self.begin(mode))
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        self.status.during(|| Ok(Arc::new(self.end()?) as Arc<dyn Graph>))
    }

    fn abandon_capture(&self) -> Result<()> {
        self.abandon();
        Ok(())
    }

    fn is_capturing(&self) -> Result<bool> {
        Ok(self.capture().is_some())
    }

    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        if let Some(capture) = self.capture() {
            capture.keep_uses(uses);
        }
        Ok(())
    }

    fn keep_object(&self, object: &GraphObject) -> Result<()> {
        if let Some(capture) = self.capture() {
            capture.keep(|memory| memory.add_object(object));
        }
        Ok(())
    }

    fn has_captured(&self, memory: &DeviceMemory, access: Access) -> Result<bool> {
        Ok(self.capture().is_some_and(|capture| capture.conflicts(memory, access)))
    }
}

impl StreamState for HostStream {
    fn has_run(&self) -> Result<bool> {
        Ok(match &self.kind {
            Kind::Default => {
                self.device.engine().default_has_run() && !interruption::is_in_kernel()
            }
            // Work on a parent's stream never runs in a forked child.
            Kind::Own { queue, .. } => {
                queue.check_process()?;
                self.capture().is_none() && queue.is_idle()
            }
        })
    }

    fn drain(&self) -> Result<()> {
        self.status.during(|| self.wait())
    }

    fn wait_for_room(&self) {
        if interruption::is_in_kernel() {
            return;
        }
        self.queue().wait_for_room(&self.device.engine().room);
    }

    fn options(&self) -> Result<StreamOptions> {
        let non_blocking = matches!(self.kind, Kind::Own { blocking: false, .. });
        Ok(StreamOptions::default().non_blocking(non_blocking))
    }
}

// SAFETY: one queue holds the work in order, and the device makes the allocations.
unsafe impl Stream for HostStream {}
