//! Which streams of a device capture, or may capture: read before calls that are refused during a
//! capture, or that would end it.

use super::calls::Handle;
use super::errors::Driver;
use crate::locks::{ASKING, BEGINNING, LEAF, Ranked, RankedGuard};
use crate::queueing::Announcement;
use crate::status::Status;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: the default stream waits for one that captures.
const IMPLICIT: c_int = 906;

/// The streams of one device that capture or may capture.
#[derive(Debug, Default)]
pub(super) struct CaptureState {
    /// The streams on which a capture was begun; true if the default stream waits for it.
    streams: Ranked<HashMap<u64, (bool, Announcement)>, LEAF>,
    /// The number of `streams`, and of those that the default stream waits for: 0 nearly
    /// always.
    stream_count: AtomicUsize,
    blocking_count: AtomicUsize,
    /// Held while a capture begins, and by what waits for the whole device, which would end it.
    pub(super) beginning: Ranked<(), BEGINNING>,
    asking: Ranked<(), ASKING>,
    /// Streams that others can reach, with handle and epoch: they may capture at any time.
    exposed: Ranked<HashMap<u64, (Handle, u64)>, LEAF>,
    /// The number of `exposed`.
    exposed_count: AtomicUsize,
}

/// Restores the thread's capture mode when dropped. In the relaxed mode no call is refused because
/// another stream captures.
struct Relaxed<'a> {
    driver: &'a Driver,
    mode: c_int,
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.driver.calls.capture_exchange_mode {
            // SAFETY: the mode is one that the driver returned.
            unsafe { exchange(&mut self.mode) };
        }
    }
}

/// The number of the capture that a stream, not the default one, is part of, whoever began it;
/// `None` if the driver cannot tell. The context is current, and the caller has [`CaptureState::ask`].
///
/// # Errors
/// The driver's number.
pub(super) fn capture_of(driver: &Driver, stream: Handle) -> Result<Option<u64>, c_int> {
    let Some(info) = driver.calls.capture_info else { return Ok(None) };
    let (mut state, mut number) = (0, 0);
    // SAFETY: the handle is a live stream; both results are written before the call returns.
    match unsafe { info(stream, &mut state, &mut number) } {
        Status::SUCCESS => Ok((state != 0).then_some(number)),
        code => Err(code),
    }
}

impl CaptureState {
    /// Returns the lock under which the driver is asked about captures, and begins and ends them: no driver
    /// says that one thread may ask while another one ends a capture. Nothing waits under it.
    pub(super) fn ask(&self) -> RankedGuard<'_, ()> {
        self.asking.lock()
    }

    /// Runs a call that a capture on this or another thread would make the driver refuse.
    #[inline]
    pub(super) fn outside<R>(&self, driver: &Driver, call: impl FnOnce() -> R) -> R {
        let exchange = driver.calls.capture_exchange_mode;
        let (Some(exchange), true) = (exchange, self.are_possible()) else {
            return call();
        };
        let mut mode = 2;
        // SAFETY: 2 is the relaxed mode; the former one is written in its place.
        if unsafe { exchange(&mut mode) } != Status::SUCCESS {
            return call();
        }
        let _relaxed = Relaxed { driver, mode };
        call()
    }

    /// True if the default stream must be left alone, since it waits for a stream that
    /// captures: a call on it would end that capture. The context is current.
    pub(super) fn bars_default(&self, driver: &Driver) -> bool {
        if self.blocking_count.load(Ordering::Acquire) > 0 {
            return true;
        }
        // A stream that the default stream waits for may have joined a capture by an event.
        let Some(info) = driver.calls.capture_info.filter(|_| self.are_possible()) else {
            return false;
        };
        let _asking = self.ask();
        let (mut state, mut number) = (0, 0);
        // SAFETY: 0 is the default stream; both results are written before the call returns. This
        // question is one that a capture does not mind.
        unsafe { info(0, &mut state, &mut number) == IMPLICIT }
    }

    /// True if a stream of this epoch that others can reach captures. The context is current.
    pub(super) fn any_exposed_captures(&self, driver: &Driver, epoch: u64) -> bool {
        let _asking = self.ask();
        // Locked meanwhile, so that no stream is destroyed.
        let exposed = self.exposed.lock();
        let mut live = exposed.values().filter(|(_, born)| *born == epoch);
        live.any(|(handle, _)| matches!(capture_of(driver, *handle), Ok(Some(_))))
    }

    /// Returns true during a capture that was begun here.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.stream_count.load(Ordering::Acquire) > 0
    }

    /// True if another library can reach a stream, and may capture on it.
    #[inline]
    pub(super) fn any_exposed(&self) -> bool {
        self.exposed_count.load(Ordering::Acquire) > 0
    }

    /// Returns true if some stream may be capturing.
    #[inline]
    pub(super) fn are_possible(&self) -> bool {
        self.any() || self.any_exposed()
    }

    /// Remembers that others can reach a stream.
    pub(super) fn expose(&self, stream: u64, handle: Handle, epoch: u64) {
        let mut exposed = self.exposed.lock();
        exposed.insert(stream, (handle, epoch));
        self.exposed_count.store(exposed.len(), Ordering::Release);
    }

    /// Forgets a stream before its handle goes.
    pub(super) fn conceal(&self, stream: u64) {
        let mut exposed = self.exposed.lock();
        exposed.remove(&stream);
        self.exposed_count.store(exposed.len(), Ordering::Release);
    }

    fn change_streams<R>(
        &self,
        change: impl FnOnce(&mut HashMap<u64, (bool, Announcement)>) -> R,
    ) -> R {
        let mut streams = self.streams.lock();
        let result = change(&mut streams);
        let blocking = streams.values().filter(|(blocking, _)| *blocking).count();
        self.blocking_count.store(blocking, Ordering::Release);
        self.stream_count.store(streams.len(), Ordering::Release);
        result
    }

    /// Records that a stream is about to capture. The caller does so before the capture begins, since
    /// a query by another thread in between would end it.
    /// Returns false if it was recorded already.
    pub(super) fn announce(&self, stream: u64, blocking: bool) -> bool {
        let announcement = Announcement::new();
        self.change_streams(|streams| streams.insert(stream, (blocking, announcement))).is_none()
    }

    /// Records that a stream no longer captures. Returns false if no capture of it was recorded: a
    /// reset ends all.
    pub(super) fn withdraw(&self, stream: u64) -> bool {
        self.any() && self.change_streams(|streams| streams.remove(&stream)).is_some()
    }

    /// True between [`CaptureState::announce`] and [`CaptureState::withdraw`].
    pub(super) fn is_announced(&self, stream: u64) -> bool {
        self.any() && self.streams.lock().contains_key(&stream)
    }

    /// Forgets the captures that were begun here, since the device is being reset.
    pub(super) fn forget(&self) {
        self.change_streams(HashMap::clear);
    }
}
