//! Events: markers in a stream's work that can be queried, waited for and timed.

use crate::enumeration::setters;
use crate::error::Result;
use crate::properties::DeviceId;
use crate::status::Status;
use std::any::Any;
use std::fmt::Debug;

/// Options of a new event.
///
/// An event that only makes one stream wait for another costs less without a time:
///
/// ```
/// use gpuarray::{EventOptions, StreamOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let (first, second) =
///     (device.default_stream(), device.create_stream(StreamOptions::default().non_blocking(true))?);
/// let written = device.create_event(EventOptions::ORDERING)?;
/// first.record(written.as_ref())?;
/// second.wait_event(written.as_ref())?;
/// second.synchronize()?;
/// assert!(written.query()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventOptions {
    /// True if the event has a time for [`Event::elapsed_since`]. Recording the time costs a little.
    pub timing: bool,
    /// True if a thread that waits for the event sleeps instead of spinning.
    pub blocking: bool,
    /// True if other processes can open the event. Such an event has no timing.
    pub interprocess: bool,
}

setters! {
    EventOptions:
    timing: bool; blocking: bool; interprocess: bool;
}

impl EventOptions {
    /// Options of an event that only orders work: without timing, for this process only.
    pub const ORDERING: Self = EventOptions { timing: false, blocking: false, interprocess: false };
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions { timing: true, ..EventOptions::ORDERING }
    }
}

/// A marker that a stream records after the work queued so far. It can be queried, waited for and timed. An event that
/// was never recorded counts as complete.
///
/// Programs record events to time work, to order the work of other libraries, or to learn that part of a stream's work
/// has finished. Programs do not need events for arrays, because arrays record and wait for their own events. Each
/// backend implements the trait for the objects that [`Device::create_event`](crate::Device::create_event) and
/// [`Stream::create_event`](crate::stream::StreamCore::create_event) return.
///
/// The time that a stream takes for some work:
///
/// ```
/// use gpuarray::{DeviceArray, EventOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let start = device.create_event(EventOptions::default())?;
/// let end = device.create_event(EventOptions::default())?;
/// let x = DeviceArray::<f64>::ones(&device, &[1 << 16])?;
/// stream.record(start.as_ref())?;
/// let roots = x.sqrt()?;
/// stream.record(end.as_ref())?;
/// end.synchronize()?;
/// println!("{} square roots in {} ms", roots.size(), end.elapsed_since(start.as_ref())?);
/// assert!(end.query()?);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// Safe code of this crate relies on this: [`Event::query`] returns true, and [`Event::synchronize`] returns, only
/// after all work before the event has finished or failed.
pub unsafe trait Event: Send + Sync + Debug {
    /// Returns the identity of the event's device.
    fn device_id(&self) -> DeviceId;

    /// Returns the driver's handle.
    fn handle(&self) -> u64;

    /// Returns true if all work before the event has finished (`cuEventQuery`, `hipEventQuery`).
    ///
    /// # Errors
    /// A failure of that work, except a host function's failure (a waiting call reports that one); `InvalidHandle`
    /// after a reset of the device.
    fn query(&self) -> Result<bool>;

    /// Like [`Event::query`], but does not consume a pending error: a later call of the program reports it.
    ///
    /// # Errors
    /// As for [`Event::query`].
    fn has_run(&self) -> Result<bool> {
        self.query()
    }

    /// Returns false on runtimes where [`Event::query`] never returns true, no matter how much time passes. There, only
    /// [`Event::synchronize`] shows that work is done.
    fn supports_queries(&self) -> bool {
        true
    }

    /// Waits until all work before the event has finished (`cuEventSynchronize`, `hipEventSynchronize`).
    ///
    /// # Errors
    /// A failure of that work; `InvalidHandle` after a reset of the device; `InvalidArgument` inside a host function.
    fn synchronize(&self) -> Result<()>;

    /// Waits like [`Event::synchronize`], before the library frees something. A one-time failure of the work stays
    /// pending: a later call of the program reports it.
    ///
    /// # Errors
    /// The driver's error, if the driver cannot wait.
    fn drain(&self) -> Result<()> {
        self.synchronize()
    }

    /// Returns the milliseconds from `start` to this event (`cuEventElapsedTime`,
    /// `hipEventElapsedTime`).
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another device; `InvalidHandle` if either event was never recorded or has no
    /// timing; `NotReady` if either event has not been reached yet.
    fn elapsed_since(&self, start: &dyn Event) -> Result<f32>;

    /// Returns the status of the last call on this event; success if there was none.
    fn last_status(&self) -> Status;

    /// Returns the backend's own object, inside all layers.
    fn as_any(&self) -> &dyn Any;
}

/// Checks that an event and its user belong together. Every backend makes these checks first.
impl dyn Event + '_ {
    /// Checks that a stream of `device` may record the event: the event belongs to the same device.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_record(&self, device: DeviceId) -> Result<()> {
        device.check_same("record", "event", self.device_id())
    }

    /// Checks that a stream of `device` may wait for the event: both devices were opened together. If the event marks
    /// `captured` work, the stream joins the capture and must belong to the same device.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_wait(&self, device: DeviceId, captured: bool) -> Result<()> {
        let call = "wait_event";
        match captured {
            true => device.check_same(call, "event, which is captured,", self.device_id()),
            false => device.check_opening(call, "event", self.device_id()),
        }
    }
}
