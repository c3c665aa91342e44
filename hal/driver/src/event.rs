//! Events of a driver.

use super::calls::{Handle, NO_TIMING};
use super::context::Context;
use hal::error::{Error, Result};
use hal::event::{Event, EventOptions};
use hal::locks::{MARKING, Ranked, RankedGuard};
use hal::memory::is_left;
use hal::properties::DeviceId;
use hal::status::{AtomicStatus, Status};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `CU_EVENT_BLOCKING_SYNC` and `CU_EVENT_INTERPROCESS`; HIP's are the same.
const BLOCKING: u32 = 1;
const INTERPROCESS: u32 = 4;

/// A mark in a stream's work.
#[derive(Debug)]
pub(super) struct DriverEvent {
    context: Arc<Context>,
    epoch: u64,
    handle: Handle,
    /// False if another library destroys the event.
    owned: bool,
    timing: bool,
    recorded: AtomicBool,
    /// True if it was last recorded on a capturing stream.
    captured: AtomicBool,
    /// Held while the driver records the event or makes a stream wait for it, and while the fields that describe it
    /// change.
    marking: Ranked<(), MARKING>,
    /// The stream that recorded it, by number, and the number of host functions that had been queued there.
    behind: (AtomicU64, AtomicU64),
    status: AtomicStatus,
}

impl DriverEvent {
    pub(super) fn new(context: &Arc<Context>, options: EventOptions) -> Result<DriverEvent> {
        if options.interprocess && options.timing {
            return Err(Error::invalid(
                "create_event",
                "an interprocess event has no timing; make it without timing",
            ));
        }
        let _scope = context.enter()?;
        let epoch = context.epoch();
        let mut flags = 0;
        for (wanted, flag) in [
            (options.blocking, BLOCKING),
            (!options.timing, NO_TIMING),
            (options.interprocess, INTERPROCESS),
        ] {
            if wanted {
                flags |= flag;
            }
        }
        let mut handle = 0;
        // SAFETY: the handle is written before the call returns.
        let code = unsafe { (context.driver.calls.event_create)(&mut handle, flags) };
        context.check("create_event", code)?;
        Ok(Self::over(context, epoch, handle, options.timing, false))
    }

    /// Returns the event of a handle, and takes ownership of the handle.
    pub(super) fn over(
        context: &Arc<Context>,
        epoch: u64,
        handle: Handle,
        timing: bool,
        recorded: bool,
    ) -> DriverEvent {
        let (recorded, captured) = (AtomicBool::new(recorded), AtomicBool::new(false));
        let (context, status) = (context.clone(), AtomicStatus::new());
        let (marking, behind) = (Ranked::new(()), Default::default());
        DriverEvent {
            context,
            epoch,
            handle,
            owned: true,
            timing,
            recorded,
            captured,
            marking,
            behind,
            status,
        }
    }

    /// Returns the event of a handle that another library owns and has recorded.
    pub(super) fn external(context: &Arc<Context>, handle: Handle) -> DriverEvent {
        let mut event = Self::over(context, context.epoch(), handle, false, true);
        event.owned = false;
        event
    }

    /// Returns the handle, for a call on `context`'s driver.
    ///
    /// # Errors
    /// `InvalidHandle` if the event was made before a reset.
    pub(super) fn handle_for(&self, context: &Context) -> Result<Handle> {
        // The callers have compared the devices.
        debug_assert!(Arc::ptr_eq(&self.context.driver, &context.driver));
        self.context.check_epoch(self.epoch)?;
        Ok(self.handle)
    }

    /// Returns the lock under which captures change, if the call's stream captures, or if the event marks captured
    /// work. NVIDIA's driver keeps a list of the events that mark captured work. It changes when an event is recorded
    /// or destroyed, and when the capture ends. The driver crashes if two threads change the list concurrently.
    fn listed(&self, captured: bool) -> Option<RankedGuard<'_, ()>> {
        let listed = captured || self.captured.load(Ordering::Acquire);
        listed.then(|| self.context.capture_state.adding())
    }

    /// Records the event on a stream.
    pub(super) fn record_on(
        &self,
        context: &Context,
        stream: Handle,
        captured: bool,
    ) -> Result<()> {
        let handle = self.handle_for(context)?;
        let code = {
            let _marking = self.marking.lock();
            let _listed = self.listed(captured);
            // SAFETY: both handles are live objects of the driver.
            let code = unsafe { (context.driver.calls.event_record)(handle, stream) };
            if code == Status::SUCCESS {
                self.captured.store(captured, Ordering::Release);
                self.recorded.store(true, Ordering::Release);
            }
            code
        };
        context.check("record", code)
    }

    /// Makes a stream wait for the event. Does nothing and returns `None` if the event marks captured work and the
    /// stream may not join the capture.
    pub(super) fn wait_on(
        &self,
        context: &Context,
        stream: Handle,
        (may_join, captures): (bool, bool),
    ) -> Result<Option<()>> {
        let handle = self.handle_for(context)?;
        let code = {
            let _marking = self.marking.lock();
            if self.captured.load(Ordering::Acquire) && !may_join {
                return Ok(None);
            }
            let _listed = self.listed(captures);
            // SAFETY: both handles are live objects of the driver.
            unsafe { (context.driver.calls.stream_wait_event)(stream, handle, 0) }
        };
        context.check("wait_event", code).map(Some)
    }

    /// Stores the stream that has recorded the event, and its number of host functions.
    pub(super) fn set_behind(&self, stream: u64, functions: u64) {
        self.behind.0.store(stream, Ordering::Release);
        self.behind.1.store(functions, Ordering::Release);
    }

    fn wait(&self) -> Result<()> {
        let _scope = self.context.enter_for(self.epoch)?;
        // SAFETY: the handle is a live event.
        let wait = || unsafe { (self.context.driver.calls.event_synchronize)(self.handle) };
        self.context.check("synchronize", self.context.outside_captures(wait))
    }

    /// Returns true after the event was first recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Acquire)
    }
}

/// Returns the event of this layer inside a trait object.
pub(super) fn own(event: &dyn Event) -> Result<&DriverEvent> {
    event
        .as_any()
        .downcast_ref()
        .ok_or_else(|| Error::handle("event", "the event belongs to another backend"))
}

impl Drop for DriverEvent {
    fn drop(&mut self) {
        if !self.owned || !self.context.is_alive(self.epoch) {
            return;
        }
        // The driver refuses to destroy an event inside a host function.
        let same = || DriverEvent {
            context: self.context.clone(),
            recorded: AtomicBool::new(false),
            captured: AtomicBool::new(self.captured.load(Ordering::Acquire)),
            marking: Ranked::new(()),
            behind: (AtomicU64::new(0), AtomicU64::new(0)),
            status: AtomicStatus::new(),
            ..*self
        };
        if is_left(self.context.device_id(), same) {
            return;
        }
        let destroy = || {
            let _scope = self.context.enter()?;
            let _listed = self.listed(false);
            // SAFETY: the handle is a live event without other references; the driver keeps the parts of it that
            // queued work needs.
            let code = unsafe { (self.context.driver.calls.event_destroy)(self.handle) };
            self.context.check("destroy_event", code)
        };
        if let Err(error) = destroy() {
            log::warn!("destroying an event failed: {error}");
        }
    }
}

// SAFETY: the driver reports completion only after the work before the event is done.
unsafe impl Event for DriverEvent {
    fn device_id(&self) -> DeviceId {
        self.context.device_id()
    }

    fn handle(&self) -> u64 {
        self.handle as u64
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            let _scope = self.context.enter_for(self.epoch)?;
            // SAFETY: the handle is a live event.
            let query = || unsafe { (self.context.driver.calls.event_query)(self.handle) };
            match self.context.outside_captures(query) {
                Status::NOT_READY => {
                    Ok(!self.is_recorded() && !self.context.query_support().unrecorded)
                }
                code => self.context.check("query", code).map(|()| true),
            }
        })
    }

    fn supports_queries(&self) -> bool {
        self.context.query_support().events
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            self.wait()?;
            let (stream, functions) = &self.behind;
            let place = (stream.load(Ordering::Acquire), functions.load(Ordering::Acquire));
            self.context.failures.take_up_to(place.0, place.1)
        })
    }

    fn drain(&self) -> Result<()> {
        self.status.during(|| self.wait())
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        self.status.during(|| {
            self.device_id().check_same("elapsed_since", "start", start.device_id())?;
            let start = own(start)?;
            for (event, name) in [(start, "start"), (self, "end")] {
                let problem = match (event.is_recorded(), event.timing) {
                    (false, _) => "was never recorded",
                    (_, false) => "was made without timing",
                    _ => continue,
                };
                return Err(Error::handle("elapsed_since", format!("the {name} event {problem}")));
            }
            let from = start.handle_for(&self.context)?;
            let _scope = self.context.enter_for(self.epoch)?;
            let mut milliseconds = 0.0;
            // SAFETY: both are live events; the result is written before the call returns.
            let code = unsafe {
                (self.context.driver.calls.event_elapsed)(&mut milliseconds, from, self.handle)
            };
            self.context.check("elapsed_since", code)?;
            Ok(milliseconds)
        })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
