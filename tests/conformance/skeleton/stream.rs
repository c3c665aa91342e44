//! Streams and events of the skeleton.

use super::Shared;
use super::queue::{Mark, Queue, Task};
use gpuarray::{DeviceId, Error, ErrorKind, Event, EventOptions, Result, Status, Stream, Transfer};
use hal::interruption;
use hal::operation::Operation;
use hal::poison::Unpoisoned as _;
use hal::status::AtomicStatus;
use hal::stream::transfer_overlapping;
use hal::stream::{StreamCapture, StreamCore, StreamMemory, StreamState, call_function};
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// A queue of work.
#[derive(Debug)]
pub(super) struct SkeletonStream {
    device: Arc<Shared>,
    id: u64,
    queue: Arc<Queue>,
    /// True if the stream waits for the default stream.
    blocking: bool,
    status: AtomicStatus,
}

impl SkeletonStream {
    pub(super) fn new(device: &Arc<Shared>, id: u64, queue: Arc<Queue>, blocking: bool) -> Self {
        SkeletonStream { device: device.clone(), id, queue, blocking, status: AtomicStatus::new() }
    }

    fn is_default(&self) -> bool {
        self.id == self.device.default_id
    }

    /// Returns marks for the work of other streams that must run before the next task.
    fn earlier(&self) -> Vec<Mark> {
        if self.is_default() {
            return self.device.marks(false);
        }
        self.blocking.then(|| self.device.default_queue.mark()).into_iter().collect()
    }

    fn wait(&self) -> Result<()> {
        if self.is_default() {
            self.earlier().iter().try_for_each(Mark::wait)?;
        }
        self.queue.mark().wait()
    }

    /// Queues a task, to run after the work that it must wait for.
    fn submit(&self, task: Task) {
        let earlier = self.earlier();
        self.queue.submit(Box::new(move || {
            earlier.iter().for_each(Mark::wait_as_work);
            task()
        }));
    }
}

impl StreamCore for SkeletonStream {
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        self.device.id
    }

    fn handle(&self) -> u64 {
        if self.is_default() { 0 } else { self.id }
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            let waits = self.is_default() && !self.earlier().iter().all(Mark::is_reached);
            Ok(!waits && self.queue.mark().is_reached())
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            self.wait()?;
            self.queue.take_failure()
        })
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(SkeletonEvent::new(&self.device, options)))
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            event.check_record(self.device_id())?;
            let event = own(event)?;
            let time = Arc::new(OnceLock::new());
            let reached = time.clone();
            self.submit(Box::new(move || {
                reached.get_or_init(Instant::now);
                Ok(())
            }));
            *event.recorded.lock().unpoisoned() = Some((self.queue.mark(), time));
            Ok(())
        })
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            event.check_wait(self.device_id(), false)?;
            if let Some(mark) = own(event)?.mark() {
                self.submit(Box::new(move || {
                    mark.wait_as_work();
                    Ok(())
                }));
            }
            Ok(())
        })
    }

    fn queue_function(&self, function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
        self.status.during(|| {
            self.submit(Box::new(|| call_function(function)));
            Ok(())
        })
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.device.allocate(bytes)
    }

    unsafe fn free(&self, address: u64, _: usize) -> Result<()> {
        let device = self.device.clone();
        self.submit(Box::new(move || {
            // SAFETY: the caller's promise; all work that uses the memory is queued before this
            // task.
            unsafe { device.free(address) };
            Ok(())
        }));
        Ok(())
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        self.status.during(|| {
            if transfer.overlaps() {
                // SAFETY: the caller's promise.
                return unsafe { transfer_overlapping(self, transfer) };
            }
            let copied = *transfer;
            let ends = [transfer.source, transfer.destination];
            let is_known = ends.iter().all(|&end| self.device.can_access(end, transfer.width));
            let wait = transfer.wait || !is_known;
            if wait {
                interruption::before_waiting("transfer")?;
            }
            self.submit(Box::new(move || {
                // SAFETY: the caller's promise holds until the copy has run.
                unsafe { copy(&copied) };
                Ok(())
            }));
            if wait {
                // Pageable memory of the program must not be used after the call returns.
                self.queue.mark().wait()?;
                return self.queue.take_failure();
            }
            Ok(())
        })
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        self.status.during(|| {
            if !matches!(width, 1 | 2 | 4) || !address.is_multiple_of(width as u64) {
                let detail = format!(
                    "width is {width}, address {address:#x}; widths are 1, 2 and 4, and the address \
                     is a multiple of the width"
                );
                return Err(Error::invalid("fill", detail));
            }
            self.submit(Box::new(move || {
                let pattern = value.to_ne_bytes();
                for index in 0..count * width {
                    // SAFETY: the caller's promise holds until the fill has run.
                    unsafe { (address as *mut u8).add(index).write(pattern[index % width]) };
                }
                Ok(())
            }));
            Ok(())
        })
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        self.status.during(|| {
            let operation = operation.clone();
            self.submit(Box::new(move || {
                // SAFETY: the caller's promise holds until the operation has run.
                unsafe { host_kernels::execute(&operation, &|| None) }
            }));
            Ok(())
        })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl StreamMemory for SkeletonStream {}

impl StreamCapture for SkeletonStream {}

impl StreamState for SkeletonStream {}

// SAFETY: the thread of a queue runs its work in order.
unsafe impl Stream for SkeletonStream {}

/// # Safety
/// As for [`Stream::transfer`](hal::stream::StreamCore::transfer).
unsafe fn copy(transfer: &Transfer) {
    for slice in 0..transfer.depth {
        for row in 0..transfer.height {
            let to = slice * transfer.destination_slice + row * transfer.destination_pitch;
            let from = slice * transfer.source_slice + row * transfer.source_pitch;
            let to = (transfer.destination + to as u64) as *mut u8;
            let from = (transfer.source + from as u64) as *const u8;
            // SAFETY: the caller's promise for every row.
            unsafe { std::ptr::copy(from, to, transfer.width) };
        }
    }
}

/// An event: a mark in a stream's work.
#[derive(Debug)]
pub(super) struct SkeletonEvent {
    device: DeviceId,
    id: u64,
    timing: bool,
    recorded: Mutex<Option<(Mark, Arc<OnceLock<Instant>>)>>,
    status: AtomicStatus,
}

impl SkeletonEvent {
    pub(super) fn new(device: &Shared, options: EventOptions) -> SkeletonEvent {
        let (id, timing) = (hal::stream::unique_id(), options.timing);
        let (recorded, status) = (Mutex::default(), AtomicStatus::new());
        SkeletonEvent { device: device.id, id, timing, recorded, status }
    }

    fn mark(&self) -> Option<Mark> {
        self.recorded.lock().unpoisoned().as_ref().map(|(mark, _)| mark.clone())
    }

    fn time(&self) -> Result<Instant> {
        let recorded = self.recorded.lock().unpoisoned();
        let (true, Some((_, time))) = (self.timing, recorded.as_ref()) else {
            let detail = "the event was never recorded, or was made without timing";
            return Err(Error::handle("elapsed_since", detail));
        };
        time.get().copied().ok_or_else(|| {
            let status = Status::host(Status::NOT_READY);
            Error::new(ErrorKind::NotReady, status, "elapsed_since", "work is still to run")
        })
    }
}

/// Returns the skeleton's own event from a trait object.
fn own(event: &dyn Event) -> Result<&SkeletonEvent> {
    let own = event.as_any().downcast_ref();
    own.ok_or_else(|| Error::handle("event", "the event belongs to another backend"))
}

// SAFETY: the mark counts as reached once its queue has run all tasks before it.
unsafe impl Event for SkeletonEvent {
    fn device_id(&self) -> DeviceId {
        self.device
    }

    fn handle(&self) -> u64 {
        self.id
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| Ok(self.mark().is_none_or(|mark| mark.is_reached())))
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            interruption::outside_functions("synchronize")?;
            let Some(mark) = self.mark() else { return Ok(()) };
            mark.wait()?;
            mark.take_failure()
        })
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        self.status.during(|| {
            self.device.check_same("elapsed_since", "start", start.device_id())?;
            let (from, to) = (own(start)?.time()?, self.time()?);
            let later = to.saturating_duration_since(from).as_secs_f32();
            let earlier = from.saturating_duration_since(to).as_secs_f32();
            Ok((later - earlier) * 1e3)
        })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
