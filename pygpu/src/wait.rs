//! Waiting for the device without Python's lock, in a way that Ctrl-C can end.

use crate::errors::OrRaise;
use gpuarray::memory::{AccessGuard, Use};
use gpuarray::{Device, Event, Result, Stream};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Shorter waits are spent asking again and again: a thread that sleeps wakes up late.
const SPIN: Duration = Duration::from_millis(4);
/// The longest sleep between two questions.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// How often Python is asked whether a signal has come.
const SIGNALS: Duration = Duration::from_millis(20);

/// As many launches as a driver takes before it makes a thread wait, at least.
const QUEUE: u32 = 512;

/// Launches since the device was last known to have caught up. Threads may overwrite each
/// other's count, which makes it a little too small.
static LAUNCHES: AtomicU32 = AtomicU32::new(0);

/// True if a launch on `stream` may have to wait until earlier ones have run: then it should not
/// hold Python's lock.
#[inline]
pub(crate) fn launch_may_wait(stream: &dyn Stream) -> Result<bool> {
    let launches = LAUNCHES.load(Ordering::Relaxed);
    LAUNCHES.store(launches.wrapping_add(1), Ordering::Relaxed);
    Ok(launches >= QUEUE && !has_caught_up(stream)?)
}

#[cold]
fn has_caught_up(stream: &dyn Stream) -> Result<bool> {
    // A stream that captures must not be asked.
    let caught_up = !stream.is_capturing()? && stream.query()?;
    if caught_up {
        LAUNCHES.store(0, Ordering::Relaxed);
    }
    Ok(caught_up)
}

/// Asks until the answer is true, for as long as signals may be left alone; `None`: not yet.
fn ask(since: Instant, waited: &dyn Waited) -> Option<Result<()>> {
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
            // A sixty-fourth of what was waited already: the answer comes that much later.
            std::thread::sleep((waited / 64).min(LONGEST_SLEEP));
        }
        if Instant::now() >= until {
            return None;
        }
    }
}

/// Something that can be asked whether it is done, and waited for.
trait Waited: Sync {
    fn is_done(&self) -> Result<bool>;
    /// False where `is_done` never becomes true.
    fn answers(&self) -> bool;
    fn synchronize(&self) -> Result<()>;
}

impl Waited for &dyn Stream {
    fn is_done(&self) -> Result<bool> {
        self.query()
    }

    fn answers(&self) -> bool {
        self.answers_queries()
    }

    fn synchronize(&self) -> Result<()> {
        Stream::synchronize(*self)
    }
}

impl Waited for &dyn Event {
    fn is_done(&self) -> Result<bool> {
        self.query()
    }

    fn answers(&self) -> bool {
        self.answers_queries()
    }

    fn synchronize(&self) -> Result<()> {
        Event::synchronize(*self)
    }
}

/// What another thread brings about.
struct Condition<'a>(&'a (dyn Fn() -> Result<bool> + Sync));

impl Waited for Condition<'_> {
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

/// Waits until `is_done`; the outer error is an exception that a signal handler raised.
pub(crate) fn until(
    py: Python<'_>,
    is_done: &(dyn Fn() -> Result<bool> + Sync),
) -> PyResult<Result<()>> {
    wait(py, &Condition(is_done))
}

/// Waits until something is done; the outer error is an exception that a signal handler raised.
/// A failure of the work is left for a synchronisation to report, if questions are answered.
/// Where questions get no answer, only a synchronisation ends, and no signal ends that.
fn wait(py: Python<'_>, waited: &dyn Waited) -> PyResult<Result<()>> {
    // Most often there is nothing to wait for.
    match waited.is_done() {
        Ok(true) => return Ok(Ok(())),
        Ok(false) => {}
        Err(error) => return Ok(Err(error)),
    }
    let since = Instant::now();
    loop {
        if let Some(result) = py.detach(|| ask(since, waited)) {
            return Ok(result);
        }
        py.check_signals()?;
        if !waited.answers() {
            return Ok(py.detach(|| waited.synchronize()));
        }
    }
}

/// Waits until all work queued on a stream so far has run, and returns its failure.
pub(crate) fn for_stream(py: Python<'_>, stream: &dyn Stream) -> PyResult<Result<()>> {
    if stream.is_capturing().unwrap_or(false) {
        // What is captured does not run, so no question would ever be answered with yes. The
        // driver says what it thinks of waiting.
        return Ok(py.detach(|| stream.synchronize()));
    }
    Ok(wait(py, &stream)?.and_then(|()| stream.synchronize()))
}

/// Waits until all work before an event's mark has run, and returns its failure.
pub(crate) fn for_event(py: Python<'_>, event: &dyn Event) -> PyResult<Result<()>> {
    Ok(wait(py, &event)?.and_then(|()| event.synchronize()))
}

/// Waits for what a copy on `stream` comes behind, before the copy is made by a call that returns
/// when it is done: that call, which no signal ends, then has only its own bytes to wait for.
pub(crate) fn before_copy(
    py: Python<'_>,
    stream: &Arc<dyn Stream>,
    uses: &[Use<'_>],
) -> PyResult<()> {
    let is_own = uses.iter().all(|(memory, _)| memory.is_used_only_on(stream.as_ref()));
    // What captures can neither be asked nor waited for, and refuses the copy.
    if stream.is_capturing().or_raise()? || (is_own && stream.query().or_raise()?) {
        return Ok(());
    }
    py.detach(|| {
        stream.wait_for_room();
        AccessGuard::acquire(stream, uses).map(drop)
    })
    .or_raise()?;
    wait(py, &stream.as_ref())?.or_raise()
}

/// Waits for all work of a device. Only work on streams that other libraries made, and that
/// this one has never seen, is waited for in a way that Ctrl-C cannot end.
pub(crate) fn for_device(py: Python<'_>, device: &Arc<dyn Device>) -> PyResult<()> {
    let mut streams = crate::stream::known(device.id());
    streams.push(device.default_stream());
    // A stream that captures cannot be asked; the device says what it thinks of that.
    streams.retain(|stream| !stream.is_capturing().unwrap_or(true));
    for stream in &streams {
        wait(py, &stream.as_ref())?.or_raise()?;
    }
    py.detach(|| device.synchronize()).or_raise()?;
    LAUNCHES.store(0, Ordering::Relaxed);
    Ok(())
}
