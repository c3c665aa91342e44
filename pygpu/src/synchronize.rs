//! Synchronization that releases Python's lock and can be interrupted by Ctrl-C.

use crate::errors::{OrRaise, raised_in_python};
use crate::profile::at_line;
use crate::stream_registry::live_streams;
use gpuarray::memory::{AccessGuard, Use};
use gpuarray::{Device, Event, Result, Stream};
use hal::interruption;
use hal::nonblocking::try_without_waiting;
use hal::recording::{Kind, timed};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Shorter waits poll without sleeping, because a thread that sleeps wakes up late.
const SPIN: Duration = Duration::from_millis(4);
/// The longest sleep between two polls.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// The time between two checks for signals.
const SIGNALS: Duration = Duration::from_millis(20);

/// A lower bound of the number of launches that a driver queues before a launch blocks.
const QUEUE: u32 = 512;

/// The launches since the device was last known to be idle. Threads may overwrite each other's count, which
/// makes it slightly too small.
static LAUNCHES: AtomicU32 = AtomicU32::new(0);

/// Returns true if a launch on `stream` may block until earlier ones have run. The caller then releases
/// Python's lock first.
#[inline]
pub(crate) fn launch_may_block(stream: &dyn Stream) -> Result<bool> {
    let launches = LAUNCHES.load(Ordering::Relaxed);
    LAUNCHES.store(launches.wrapping_add(1), Ordering::Relaxed);
    Ok(launches >= QUEUE && !has_caught_up(stream)?)
}

#[cold]
fn has_caught_up(stream: &dyn Stream) -> Result<bool> {
    // A query would end the capture of a stream.
    let caught_up = !stream.is_capturing()? && stream.has_run()?;
    if caught_up {
        LAUNCHES.store(0, Ordering::Relaxed);
    }
    Ok(caught_up)
}

/// Polls until the work is done, for at most [`SIGNALS`]; returns `None` if it is not done by then.
fn poll(since: Instant, waited: &dyn Pollable) -> Option<Result<()>> {
    let until = Instant::now() + SIGNALS;
    loop {
        match waited.is_done() {
            Ok(true) => return Some(Ok(())),
            Ok(false) => {}
            Err(error) => return Some(Err(error)),
        }
        let waited = since.elapsed();
        if waited < SPIN {
            std::thread::yield_now();
        } else {
            // The sleep adds at most a sixty-fourth to the time waited so far.
            std::thread::sleep((waited / 64).min(LONGEST_SLEEP));
        }
        if Instant::now() >= until {
            return None;
        }
    }
}

/// Work that can be polled and synchronized with.
trait Pollable: Sync {
    fn is_done(&self) -> Result<bool>;
    /// Returns false if `is_done` never becomes true.
    fn answers(&self) -> bool;
    fn synchronize(&self) -> Result<()>;
}

impl Pollable for &dyn Stream {
    fn is_done(&self) -> Result<bool> {
        // If another thread has begun a capture, the earlier work has finished, and the query is false until
        // the capture ends.
        Ok(self.query()? || self.is_capturing()?)
    }

    fn answers(&self) -> bool {
        self.supports_queries()
    }

    fn synchronize(&self) -> Result<()> {
        (**self).synchronize()
    }
}

impl Pollable for &dyn Event {
    fn is_done(&self) -> Result<bool> {
        self.query()
    }

    fn answers(&self) -> bool {
        self.supports_queries()
    }

    fn synchronize(&self) -> Result<()> {
        Event::synchronize(*self)
    }
}

/// A condition that another thread makes true.
struct Condition<'a>(&'a (dyn Fn() -> Result<bool> + Sync));

impl Pollable for Condition<'_> {
    fn is_done(&self) -> Result<bool> {
        self.0()
    }

    fn answers(&self) -> bool {
        true
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// Runs work without Python's lock that may run kernels on this thread. Signal handlers run meanwhile; an
/// exception in one ends the kernels.
pub(crate) fn interruptible<T>(work: impl FnOnce() -> T) -> T {
    let check = || {
        let checked = Python::attach(|py| py.check_signals());
        checked.map_err(|exception| raised_in_python("launch", exception))
    };
    interruption::interruptible(check, work)
}

/// Operations on more elements than this release Python's lock while they are queued, because the host
/// backend may execute them before it returns.
const RELEASE_FROM: usize = 1 << 15;

/// Runs work on arrays of `elements` elements. Releases Python's lock if there are many elements, or if the
/// work would wait for other work or for room in a queue.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    elements: usize,
    work: impl Fn() -> gpuarray::Result<T> + Send,
) -> PyResult<T> {
    let _line = at_line(py);
    if elements < RELEASE_FROM
        && !hal::backlog::exists()
        && let Some(result) = try_without_waiting(&work)
    {
        return result.or_raise();
    }
    // Exceptions of a Python allocator and of signal handlers are stored per thread, and `detach` stays on
    // this thread.
    py.detach(|| interruptible(work)).or_raise()
}

/// Waits until `is_done` returns true. The outer error is an exception that a signal handler raised.
pub(crate) fn wait_until(
    py: Python<'_>,
    is_done: &(dyn Fn() -> Result<bool> + Sync),
) -> PyResult<Result<()>> {
    wait(py, &Condition(is_done))
}

/// Waits until work is done. The outer error is an exception that a signal handler raised. The caller
/// synchronizes afterwards, which reports a failure of the work. If queries never become true, this function
/// synchronizes itself, and signals cannot interrupt that.
fn wait(py: Python<'_>, waited: &dyn Pollable) -> PyResult<Result<()>> {
    // Usually, the work is already done.
    match waited.is_done() {
        Ok(true) => return Ok(Ok(())),
        Ok(false) => {}
        Err(error) => return Ok(Err(error)),
    }
    if let Err(error) = interruption::before_waiting("synchronize") {
        return Ok(Err(error));
    }
    let since = Instant::now();
    loop {
        if let Some(result) = py.detach(|| poll(since, waited)) {
            return Ok(result);
        }
        py.check_signals()?;
        if !waited.answers() {
            return Ok(py.detach(|| waited.synchronize()));
        }
    }
}

/// Waits until all work queued on a stream so far has finished, and returns its failure.
pub(crate) fn synchronize_stream(py: Python<'_>, stream: &dyn Stream) -> PyResult<Result<()>> {
    let _line = at_line(py);
    let _wait = timed(Kind::Wait, "stream");
    if stream.is_capturing().unwrap_or(false) {
        // Captured work does not run, so a query never becomes true. The driver refuses the call.
        return Ok(py.detach(|| stream.synchronize()));
    }
    Ok(wait(py, &stream)?.and_then(|()| stream.synchronize()))
}

/// Waits until the work before an event has finished, and returns its failure.
pub(crate) fn synchronize_event(py: Python<'_>, event: &dyn Event) -> PyResult<Result<()>> {
    let _line = at_line(py);
    let _wait = timed(Kind::Wait, "event");
    Ok(wait(py, &event)?.and_then(|()| event.synchronize()))
}

/// Waits for the earlier work of a blocking copy on `stream`. The call that copies, which signals cannot
/// interrupt, then only waits for its own bytes.
pub(crate) fn wait_before_copy(
    py: Python<'_>,
    stream: &Arc<dyn Stream>,
    uses: &[Use<'_>],
) -> PyResult<()> {
    let is_own = uses.iter().all(|(memory, _)| memory.is_used_only_on(stream.as_ref()));
    let _line = at_line(py);
    // A capturing stream can be neither queried nor synchronized with, and refuses the copy.
    if stream.is_capturing().or_raise()? || (is_own && stream.has_run().or_raise()?) {
        return Ok(());
    }
    py.detach(|| {
        stream.wait_for_room();
        AccessGuard::acquire(stream, uses).map(drop)
    })
    .or_raise()?;
    let _wait = timed(Kind::Wait, "stream");
    wait(py, &stream.as_ref())?.or_raise()
}

/// Waits for all work of a device. Ctrl-C cannot interrupt the wait for streams of other libraries
/// that this library has never seen.
pub(crate) fn synchronize_device(py: Python<'_>, device: &Arc<dyn Device>) -> PyResult<()> {
    let _line = at_line(py);
    let _wait = timed(Kind::Wait, "device");
    let mut streams = live_streams(device.as_ref());
    streams.push(device.default_stream());
    // A capturing stream cannot be queried; the device's own call reports it.
    streams.retain(|stream| !stream.is_capturing().unwrap_or(true));
    for stream in &streams {
        wait(py, &stream.as_ref())?.or_raise()?;
    }
    py.detach(|| device.synchronize()).or_raise()?;
    LAUNCHES.store(0, Ordering::Relaxed);
    Ok(())
}
