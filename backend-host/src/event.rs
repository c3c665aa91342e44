//! Events of the host.

use crate::device::DEVICE;
use crate::queue::Mark;
use hal::poison::Unpoisoned as _;
use hal::status::AtomicStatus;
use hal::{DeviceId, Error, ErrorKind, Event, EventOptions, Result, Status, process};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

static NEXT_HANDLE: AtomicU64 = AtomicU64::new(1);

/// One recording: when the stream reached it, and how to wait for that.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Set when the stream gets there.
    pub(crate) time: Arc<OnceLock<Instant>>,
    /// The place in the stream's work.
    pub(crate) mark: Mark,
}

#[derive(Debug)]
enum Recorded {
    Never,
    /// The stream was idle, so the mark was reached when it was made.
    At(Instant),
    Queued(Record),
}

/// A mark in a stream's work.
#[derive(Debug)]
pub(crate) struct HostEvent {
    handle: u64,
    timing: bool,
    generation: u32,
    recorded: Mutex<Recorded>,
    status: AtomicStatus,
}

impl HostEvent {
    pub(crate) fn new(options: EventOptions) -> HostEvent {
        HostEvent {
            handle: NEXT_HANDLE.fetch_add(1, Ordering::Relaxed),
            timing: options.timing,
            generation: process::generation(),
            recorded: Mutex::new(Recorded::Never),
            status: AtomicStatus::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unpoisoned()
    }

    /// In a forked child a thread of the parent may have held an event's lock.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(Error::handle(
            "event",
            "the event was made by the parent process; make a new one after a fork",
        ))
    }

    /// Records that the mark is reached already.
    pub(crate) fn set_reached(&self) {
        *self.lock() = Recorded::At(Instant::now());
    }

    /// Records a mark in queued work.
    pub(crate) fn set_queued(&self, record: Record) {
        *self.lock() = Recorded::Queued(record);
    }

    /// The place in a stream's work that is still to be reached, if any.
    pub(crate) fn mark(&self) -> Option<Mark> {
        match &*self.lock() {
            Recorded::Queued(record) => Some(record.mark.clone()).filter(|mark| !mark.is_reached()),
            _ => None,
        }
    }

    fn time(&self) -> Result<Instant> {
        self.check_process()?;
        if !self.timing {
            return Err(Error::handle("event", "the event was made without timing"));
        }
        match &*self.lock() {
            Recorded::Never => Err(Error::handle("event", "the event was never recorded")),
            Recorded::At(time) => Ok(*time),
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

// SAFETY: the mark counts as reached once the stream's queue has come to it.
unsafe impl Event for HostEvent {
    fn device_id(&self) -> DeviceId {
        DEVICE
    }

    fn handle(&self) -> u64 {
        self.handle
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            self.check_process()?;
            Ok(self.mark().is_none())
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            self.check_process()?;
            match self.mark() {
                Some(mark) => mark.wait(),
                None => Ok(()),
            }
        })
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        self.status.during(|| {
            let Some(start) = start.as_any().downcast_ref::<HostEvent>() else {
                return Err(Error::handle("elapsed_since", "start is an event of another backend"));
            };
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
