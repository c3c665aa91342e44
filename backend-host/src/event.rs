//! Events of the host.

use crate::capture::{CapturedMark, Refusal};
use crate::device::HostDevice;
use crate::queue::Mark;
use crate::shared_event::SharedEvent;
use hal::poison::Unpoisoned as _;
use hal::status::AtomicStatus;
use hal::{
    DeviceId, Error, ErrorKind, Event, EventOptions, IpcHandle, Result, Status, interruption,
    process,
};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

static NEXT_HANDLE: AtomicU64 = AtomicU64::new(1);

/// One recording of an event: the time at which the stream reaches it, and the mark to wait for.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Set when the stream reaches the recording.
    pub(crate) time: Arc<OnceLock<Instant>>,
    /// The position in the stream's work.
    pub(crate) mark: Mark,
}

#[derive(Debug)]
enum Recorded {
    Never,
    /// The stream was idle, so the mark was reached immediately.
    At(Instant, Mark),
    Queued(Record),
    /// Recorded in captured work.
    Captured(CapturedMark),
}

/// A mark in a stream's work.
#[derive(Debug)]
pub(crate) struct HostEvent {
    device: DeviceId,
    handle: u64,
    timing: bool,
    generation: u32,
    recorded: Mutex<Recorded>,
    /// Replaces `recorded` in an event shared between processes.
    shared: Option<Arc<SharedEvent>>,
    status: AtomicStatus,
}

/// The part of an event that has not been reached yet.
pub(crate) enum Pending {
    /// A position in a stream's work.
    Here(Mark),
    /// A recording of an event shared between processes.
    Shared(Arc<SharedEvent>, u64),
    /// A position in captured work; it is never reached.
    Captured(CapturedMark),
}

impl Pending {
    /// Waits until the mark is reached.
    ///
    /// # Errors
    /// The errors of [`Mark::wait`] and [`SharedEvent::wait`]. For captured work, `InvalidArgument`; the call
    /// invalidates the capture.
    pub(crate) fn wait(&self) -> Result<()> {
        match self {
            Pending::Here(mark) => mark.wait(),
            Pending::Shared(shared, number) => shared.wait(*number),
            Pending::Captured(mark) => Err(mark.spoil("synchronize")),
        }
    }
}

impl HostEvent {
    /// Creates an event. With `interprocess`, the event is in shared memory.
    ///
    /// # Errors
    /// `InvalidArgument` for `interprocess` combined with `timing`; `Unsupported` without shared memory.
    pub(crate) fn new(options: EventOptions, device: &HostDevice) -> Result<HostEvent> {
        if options.interprocess && options.timing {
            return Err(Error::invalid(
                "create_event",
                "an interprocess event has no timing; make it without timing",
            ));
        }
        let shared =
            options.interprocess.then(|| SharedEvent::create(device.memory())).transpose()?;
        Ok(HostEvent::with(device.id(), options.timing, shared))
    }

    /// Opens an event of another process.
    ///
    /// # Errors
    /// The same as [`SharedEvent::open`].
    pub(crate) fn open(handle: &IpcHandle, device: &HostDevice) -> Result<HostEvent> {
        let shared = SharedEvent::open(device.memory(), handle)?;
        Ok(HostEvent::with(device.id(), false, Some(shared)))
    }

    fn with(device: DeviceId, timing: bool, shared: Option<SharedEvent>) -> HostEvent {
        HostEvent {
            device,
            handle: NEXT_HANDLE.fetch_add(1, Ordering::Relaxed),
            timing,
            generation: process::generation(),
            recorded: Mutex::new(Recorded::Never),
            shared: shared.map(Arc::new),
            status: AtomicStatus::new(),
        }
    }

    /// Downcasts an event to this backend's type, and checks that it was created in this process. The caller
    /// has already compared the device.
    ///
    /// # Errors
    /// `InvalidHandle` for any other event.
    pub(crate) fn of<'a>(call: &'static str, event: &'a dyn Event) -> Result<&'a HostEvent> {
        let event: &HostEvent = event
            .as_any()
            .downcast_ref()
            .ok_or_else(|| Error::handle(call, "the event belongs to another backend"))?;
        event.check_process()?;
        Ok(event)
    }

    /// Returns a handle for other processes.
    ///
    /// # Errors
    /// `InvalidArgument` for an event that was created without `interprocess`, or was opened from a handle.
    pub(crate) fn export(&self) -> Result<IpcHandle> {
        match &self.shared {
            Some(shared) => shared.export(),
            None => Err(Error::invalid(
                "export_event",
                "the event cannot be shared: make it for other processes (interprocess)",
            )),
        }
    }

    /// Returns the part of the event that processes share.
    pub(crate) fn shared(&self) -> Option<&Arc<SharedEvent>> {
        self.shared.as_ref()
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unpoisoned()
    }

    /// In a forked child, a thread of the parent may have held the event's lock.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(Error::handle(
            "event",
            "the event was made by the parent process; make a new one after a fork",
        ))
    }

    /// Records a mark that is already reached.
    pub(crate) fn set_reached(&self, mark: Mark) {
        if let Some(shared) = &self.shared {
            return shared.reach(shared.begin());
        }
        *self.lock() = Recorded::At(Instant::now(), mark);
    }

    /// Records a mark in queued work.
    pub(crate) fn set_queued(&self, record: Record) {
        *self.lock() = Recorded::Queued(record);
    }

    /// Records a mark in captured work.
    ///
    /// # Errors
    /// `InvalidArgument` for an event shared between processes.
    pub(crate) fn set_captured(&self, mark: CapturedMark) -> Result<()> {
        if self.shared.is_some() {
            return Err(Error::invalid(
                "record",
                "the stream captures: an event that processes share cannot be recorded in a capture",
            ));
        }
        *self.lock() = Recorded::Captured(mark);
        Ok(())
    }

    /// Returns false for an event that was never recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.shared.is_some() || !matches!(&*self.lock(), Recorded::Never)
    }

    /// Returns the part of the event that has not been reached yet, if any.
    pub(crate) fn pending(&self) -> Option<Pending> {
        if let Some(shared) = &self.shared {
            return shared.pending().map(|number| Pending::Shared(shared.clone(), number));
        }
        match &*self.lock() {
            Recorded::Queued(record) if !record.mark.is_reached() => {
                Some(Pending::Here(record.mark.clone()))
            }
            Recorded::Captured(mark) => Some(Pending::Captured(mark.clone())),
            _ => None,
        }
    }

    /// Returns the position in a stream's work at which the event was recorded.
    fn mark(&self) -> Option<Mark> {
        match &*self.lock() {
            Recorded::Queued(Record { mark, .. }) | Recorded::At(_, mark) => Some(mark.clone()),
            _ => None,
        }
    }

    fn wait(&self) -> Result<()> {
        self.check_process()?;
        interruption::outside_functions("synchronize")?;
        self.pending().map_or(Ok(()), |pending| pending.wait())
    }

    fn time(&self) -> Result<Instant> {
        self.check_process()?;
        if !self.timing {
            return Err(Error::handle("event", "the event was made without timing"));
        }
        match &*self.lock() {
            Recorded::Never => Err(Error::handle("event", "the event was never recorded")),
            Recorded::At(time, _) => Ok(*time),
            Recorded::Captured(_) => Err(Refusal::CapturedEvent.of("event")),
            Recorded::Queued(record) => record.time.get().copied().ok_or_else(|| {
                Error::new(
                    ErrorKind::NotReady,
                    Status::host(Status::NOT_READY),
                    "event",
                    "work before the event is still to run",
                )
            }),
        }
    }
}

// SAFETY: the mark counts as reached only after the stream's queue has reached it.
unsafe impl Event for HostEvent {
    fn device_id(&self) -> DeviceId {
        self.device
    }

    fn handle(&self) -> u64 {
        self.handle
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            let has_run = self.has_run()?;
            if has_run {
                self.mark().map_or(Ok(()), |mark| mark.take_kernel_failure())?;
            }
            Ok(has_run)
        })
    }

    fn has_run(&self) -> Result<bool> {
        self.check_process()?;
        match self.pending() {
            None => Ok(true),
            Some(Pending::Here(_)) => Ok(false),
            Some(Pending::Shared(shared, number)) => shared.query(number),
            Some(Pending::Captured(mark)) => Err(mark.spoil("query")),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            self.wait()?;
            self.mark().map_or(Ok(()), |mark| mark.take_failure())
        })
    }

    fn drain(&self) -> Result<()> {
        self.status.during(|| self.wait())
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        self.status.during(|| {
            self.device.check_same("elapsed_since", "start", start.device_id())?;
            let start = HostEvent::of("elapsed_since", start)?;
            let (from, to) = (start.time()?, self.time()?);
            Ok(match to.checked_duration_since(from) {
                Some(later) => later.as_secs_f32() * 1e3,
                None => -(from.duration_since(to).as_secs_f32() * 1e3),
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
