//! The streams of a device that capture or may capture. Checked before calls that are refused during a capture, or
//! that would end it.

use super::calls::Handle;
use super::vendor::Driver;
use hal::locks::{ADDING, ASKING, BEGINNING, LEAF, Ranked, RankedGuard};
use hal::status::Status;
use hal::submission::Announcement;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: the default stream waits for a stream that captures.
const IMPLICIT: c_int = 906;

/// The streams of one device that capture or may capture.
#[derive(Debug, Default)]
pub(super) struct CaptureState {
    /// The streams on which a capture was begun. This map and the driver's own state change together, while
    /// `beginning` is locked, except for a stream without other references.
    streams: Ranked<HashMap<u64, Announced>, LEAF>,
    counts: Arc<Counts>,
    /// Held while a capture begins, and by calls that wait for the whole device, which would end a capture.
    pub(super) beginning: Ranked<(), BEGINNING>,
    adding: Ranked<(), ADDING>,
    asking: Ranked<(), ASKING>,
    /// Streams that other libraries can reach, and may capture at any time, with handle and epoch.
    exposed: Ranked<HashMap<u64, (Handle, u64)>, LEAF>,
    /// The number of `exposed`.
    exposed_count: AtomicUsize,
}

/// Counts of captures, usually 0.
#[derive(Debug, Default)]
struct Counts {
    /// Captures that are announced or in progress.
    announced: AtomicUsize,
    /// Captures on streams that the default stream waits for.
    barring: AtomicUsize,
}

/// Announces, until it is dropped, that a stream captures or is about to. Each thread that tries to begin a
/// capture has its own announcement, so that a failed attempt does not affect another thread's capture of the
/// same stream.
#[derive(Debug)]
pub(super) struct Announced {
    counts: Arc<Counts>,
    bars_default: bool,
    _announcement: Announcement,
}

impl Announced {
    /// Bars the default stream, because it waits for the stream that is about to capture. The default stream has
    /// no work, and the caller holds the lock that keeps others from queueing on it. From now on, its queries
    /// report that all work has finished.
    pub(super) fn bar_default(&mut self) {
        self.counts.barring.fetch_add(1, Ordering::AcqRel);
        self.bars_default = true;
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if self.bars_default {
            self.counts.barring.fetch_sub(1, Ordering::AcqRel);
        }
        self.counts.announced.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Restores the thread's capture mode when dropped. In the relaxed mode, calls are not refused because another
/// stream captures.
struct Relaxed<'a> {
    driver: &'a Driver,
    mode: c_int,
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.driver.calls.capture_exchange_mode {
            // SAFETY: the driver returned this mode.
            unsafe { exchange(&mut self.mode) };
        }
    }
}

/// Returns the number of the capture that a stream other than the default stream is part of, including captures
/// of other libraries; `None` if the driver cannot report it. The context is current, and the caller holds
/// [`CaptureState::ask`].
///
/// # Errors
/// The driver's status.
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
    /// Returns the lock under which captures are queried, begun and ended in the driver. Drivers do not promise
    /// that one thread may query a capture while another ends it. Nothing waits while this lock is held.
    pub(super) fn ask(&self) -> RankedGuard<'_, ()> {
        self.asking.lock()
    }

    /// Returns the lock under which the driver adds to the graph of a capture. Drivers do not allow two threads
    /// to use one graph concurrently, and all streams of a capture share a graph.
    pub(super) fn adding(&self) -> RankedGuard<'_, ()> {
        self.adding.lock()
    }

    /// Runs a call that the driver would refuse during a capture on this or another thread.
    #[inline]
    pub(super) fn outside<R>(&self, driver: &Driver, call: impl FnOnce() -> R) -> R {
        let exchange = driver.calls.capture_exchange_mode;
        let (Some(exchange), true) = (exchange, self.are_possible()) else {
            return call();
        };
        let mut mode = 2;
        // SAFETY: 2 is the relaxed mode; the previous mode is written to the same place.
        if unsafe { exchange(&mut mode) } != Status::SUCCESS {
            return call();
        }
        let _relaxed = Relaxed { driver, mode };
        call()
    }

    /// Returns true if the default stream must not be used, because it waits for a stream that captures: a call
    /// on it would end that capture. The context is current.
    pub(super) fn bars_default(&self, driver: &Driver) -> bool {
        if self.counts.barring.load(Ordering::Acquire) > 0 {
            return true;
        }
        // A stream that the default stream waits for may have joined a capture through an event.
        let Some(info) = driver.calls.capture_info.filter(|_| self.are_possible()) else {
            return false;
        };
        let _asking = self.ask();
        let (mut state, mut number) = (0, 0);
        // SAFETY: 0 is the default stream; both results are written before the call returns. This query does not
        // affect a capture.
        unsafe { info(0, &mut state, &mut number) == IMPLICIT }
    }

    /// Returns true if an exposed stream of this epoch captures. The context is current.
    pub(super) fn any_exposed_captures(&self, driver: &Driver, epoch: u64) -> bool {
        let _asking = self.ask();
        // Locked meanwhile, so that no stream is destroyed.
        let exposed = self.exposed.lock();
        let mut live = exposed.values().filter(|(_, born)| *born == epoch);
        live.any(|(handle, _)| matches!(capture_of(driver, *handle), Ok(Some(_))))
    }

    /// Returns true while a capture begun here is announced or in progress.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.counts.announced.load(Ordering::Acquire) > 0
    }

    /// Returns true if another library can reach a stream, and may capture on it.
    #[inline]
    pub(super) fn any_exposed(&self) -> bool {
        self.exposed_count.load(Ordering::Acquire) > 0
    }

    /// Returns true if some stream may be capturing.
    #[inline]
    pub(super) fn are_possible(&self) -> bool {
        self.any() || self.any_exposed()
    }

    /// Records that other libraries can reach a stream.
    pub(super) fn expose(&self, stream: u64, handle: Handle, epoch: u64) {
        let mut exposed = self.exposed.lock();
        exposed.insert(stream, (handle, epoch));
        self.exposed_count.store(exposed.len(), Ordering::Release);
    }

    /// Removes a stream before its handle is destroyed.
    pub(super) fn conceal(&self, stream: u64) {
        let mut exposed = self.exposed.lock();
        exposed.remove(&stream);
        self.exposed_count.store(exposed.len(), Ordering::Release);
    }

    /// Announces that a stream is about to capture. The caller does so before the capture begins, because a query
    /// by another thread in between would end it.
    pub(super) fn announce(&self) -> Announced {
        self.counts.announced.fetch_add(1, Ordering::AcqRel);
        let announcement = Announcement::new();
        Announced { counts: self.counts.clone(), bars_default: false, _announcement: announcement }
    }

    /// Records that a stream captures.
    pub(super) fn add(&self, stream: u64, announced: Announced) {
        self.streams.lock().insert(stream, announced);
    }

    /// Records that a stream no longer captures. Does nothing if no capture of the stream was recorded, because a
    /// reset ends all captures.
    pub(super) fn withdraw(&self, stream: u64) {
        if self.any() {
            self.streams.lock().remove(&stream);
        }
    }

    /// Returns true between [`CaptureState::add`] and [`CaptureState::withdraw`].
    pub(super) fn has_begun(&self, stream: u64) -> bool {
        self.any() && self.streams.lock().contains_key(&stream)
    }

    /// Forgets the captures that were begun here, because the device is being reset.
    pub(super) fn forget(&self) {
        self.streams.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::CaptureState;

    #[test]
    fn an_attempt_that_fails_leaves_the_capture_of_another_thread_announced() {
        let state = CaptureState::default();
        let (first, mut second) = (state.announce(), state.announce());
        second.bar_default();
        state.add(7, second);
        drop(first);
        assert!(state.any() && state.has_begun(7) && !state.has_begun(8));
        assert_eq!(state.counts.barring.load(super::Ordering::Relaxed), 1);
        state.withdraw(8);
        assert!(state.any());
        state.withdraw(7);
        assert!(!state.any() && !state.has_begun(7));
        assert_eq!(state.counts.barring.load(super::Ordering::Relaxed), 0);
    }
}
