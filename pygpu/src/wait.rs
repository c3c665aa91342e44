//! Waiting for the device without Python's lock, in a way that Ctrl-C can end.

use crate::errors::OrRaise;
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
pub(crate) fn launch_may_wait(stream: &dyn Stream) -> bool {
    let launches = LAUNCHES.load(Ordering::Relaxed);
    LAUNCHES.store(launches.wrapping_add(1), Ordering::Relaxed);
    launches >= QUEUE && !has_caught_up(stream)
}

#[cold]
fn has_caught_up(stream: &dyn Stream) -> bool {
    // A stream that captures must not be asked.
    let caught_up = !stream.is_capturing().unwrap_or(true) && stream.query().unwrap_or(false);
    if caught_up {
        LAUNCHES.store(0, Ordering::Relaxed);
    }
    caught_up
}

/// Asks until the answer is true, for as long as signals may be left alone; `None`: not yet.
fn ask(since: Instant, is_done: &(dyn Fn() -> Result<bool> + Sync)) -> Option<Result<()>> {
    let until = Instant::now() + SIGNALS;
    loop {
        match is_done() {
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

/// Waits until `is_done`; the outer error is an exception that a signal handler raised.
pub(crate) fn until(
    py: Python<'_>,
    is_done: &(dyn Fn() -> Result<bool> + Sync),
) -> PyResult<Result<()>> {
    // Most often there is nothing to wait for.
    match is_done() {
        Ok(true) => return Ok(Ok(())),
        Ok(false) => {}
        Err(error) => return Ok(Err(error)),
    }
    let since = Instant::now();
    loop {
        if let Some(result) = py.detach(|| ask(since, is_done)) {
            return Ok(result);
        }
        py.check_signals()?;
    }
}

/// Waits until all work queued on a stream so far has run, and gives its failure.
pub(crate) fn for_stream(py: Python<'_>, stream: &dyn Stream) -> PyResult<Result<()>> {
    Ok(until(py, &|| stream.query())?.and_then(|()| stream.synchronize()))
}

/// Waits until all work before an event's mark has run, and gives its failure.
pub(crate) fn for_event(py: Python<'_>, event: &dyn Event) -> PyResult<Result<()>> {
    Ok(until(py, &|| event.query())?.and_then(|()| event.synchronize()))
}

/// Waits for all work of a device. Only work on streams that other libraries made, and that
/// this one has never seen, is waited for in a way that Ctrl-C cannot end.
pub(crate) fn for_device(py: Python<'_>, device: &Arc<dyn Device>) -> PyResult<()> {
    let mut streams = crate::stream::known(device.id());
    streams.push(device.default_stream());
    // A stream that captures cannot be asked; the device says what it thinks of that.
    streams.retain(|stream| !stream.is_capturing().unwrap_or(true));
    for stream in &streams {
        if until(py, &|| stream.query())?.is_err() {
            // The device reports the failure, too.
            break;
        }
    }
    py.detach(|| device.synchronize()).or_raise()?;
    LAUNCHES.store(0, Ordering::Relaxed);
    Ok(())
}
