//! Events: marks in a stream's work that can be asked for, waited for and timed.

use crate::device::DeviceId;
use crate::error::Result;
use crate::status::Status;
use std::any::Any;
use std::fmt::Debug;

/// How an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOptions {
    /// True if the time of the event can be read; costs a little.
    pub timing: bool,
    /// True if a thread that waits sleeps instead of spinning.
    pub blocking: bool,
    /// True if other processes can open the event; excludes `timing`.
    pub interprocess: bool,
}

impl EventOptions {
    /// An event that only orders work: no timing, no sleeping, this process alone.
    pub const ORDERING: Self = EventOptions { timing: false, blocking: false, interprocess: false };
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions { timing: true, ..EventOptions::ORDERING }
    }
}

/// A mark in a stream's work. One that was never recorded counts as complete.
///
/// # Safety
/// Safe code of this crate relies on it that [`Event::query`] returns true, and that
/// [`Event::synchronize`] returns, only when all work before the mark has run or failed.
pub unsafe trait Event: Send + Sync + Debug {
    /// The device it belongs to.
    fn device_id(&self) -> DeviceId;

    /// The driver's handle.
    fn handle(&self) -> u64;

    /// True once all work before the mark has run.
    fn query(&self) -> Result<bool>;

    /// False if [`Event::query`] never returns true, however much time passes: there are
    /// runtimes like that, where [`Event::synchronize`] alone tells.
    fn supports_queries(&self) -> bool {
        true
    }

    /// Waits until all work before the mark has run.
    fn synchronize(&self) -> Result<()>;

    /// Milliseconds from `start` to this event.
    ///
    /// # Errors
    /// `InvalidHandle` if either was never recorded or has no timing, `NotReady` while work
    /// before either is still to run.
    fn elapsed_since(&self, start: &dyn Event) -> Result<f32>;

    /// The status of the last call that was made on this event: success until one fails.
    fn last_status(&self) -> Status;

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}
