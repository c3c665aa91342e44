//! A record of a program's work: kernels, operations, copies, allocations and waits, with times of host and device.
//!
//! A [`Session`] records what the library does from [`Session::begin`] to [`Session::finish`], on every backend and
//! for objects that existed before. The array layer, memory and launches call the backends' traits inside [`queued`],
//! [`during`], [`allocated`] and [`freed`]. While nothing is recorded, each call costs one load. A program that calls a
//! trait itself records the call in the same way.
//!
//! Device times come from an event after each call, and from a second event before some. Captured work does not run, so
//! it has no device times. The host's time of a call does not include the recording itself.
//!
//! The latest [`LIMIT`] calls are kept. A forked child records nothing until it begins a session of its own.

mod clock;
mod report;
mod state;
mod work;

pub use report::{Recording, Row, Sort, copy_rate};
pub use work::{Kind, Work};

use crate::backend::watch_process;
use crate::error::{ErrorKind, Result};
use crate::event::{Event, EventOptions};
use crate::process::{self, ProcessMutex};
use crate::properties::DeviceId;
use crate::stream::Stream;
use crate::submission::some_may_capture;
use clock::{Marker, Timing};
use state::State;
use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The number of calls that are kept; earlier ones are left out of the result, and the result says how many.
pub const LIMIT: usize = 1 << 18;

/// The number of calls that stay unread when finished ones are read: the device may not have reached them.
const KEPT: u64 = 1 << 8;

static ON: AtomicBool = AtomicBool::new(false);
/// The process that records, by [`process::generation`].
static GENERATION: AtomicU32 = AtomicU32::new(0);
static STATE: ProcessMutex<State> = ProcessMutex::new(State::new);
/// Held by the thread that reads events.
static READING: ProcessMutex<()> = ProcessMutex::new(|| ());

thread_local! {
    /// The line that causes the thread's calls, and the number of the thread, or 0 before its first call.
    static HERE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Returns true while a session records.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

#[cold]
fn is_on_here() -> bool {
    GENERATION.load(Ordering::Relaxed) == process::generation() && !process::is_exiting()
}

/// Returns a number above 0 for a line of the program, for [`AtLine`]. The same text has the same number.
pub fn line_number(text: &str) -> u32 {
    STATE.lock().text_number(text)
}

/// Returns the text of a number of [`line_number`]; empty for a number of another process.
pub fn line_text(line: u32) -> Arc<str> {
    STATE.lock().text(line)
}

/// Names the line of the program that causes the calling thread's calls, until it is dropped.
///
/// A line of a script that a program runs:
///
/// ```
/// use gpuarray::DeviceArray;
/// use gpuarray::recording::{AtLine, Session, line_number};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::<f32>::ones(&device, &[1000])?;
/// let session = Session::begin();
/// let at_line = AtLine::new(line_number("script.txt:12"));
/// let total = x.sum()?;
/// drop(at_line);
/// let recording = session.finish();
/// assert!(recording.rows.iter().any(|row| &*row.line == "script.txt:12"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AtLine(u32);

impl AtLine {
    /// Begins with a number of [`line_number`].
    pub fn new(line: u32) -> AtLine {
        let (outer, thread) = HERE.get();
        HERE.set((line, thread));
        AtLine(outer)
    }

    /// Returns true if the calling thread's line is named already.
    pub fn is_known() -> bool {
        HERE.get().0 != 0
    }
}

impl Drop for AtLine {
    fn drop(&mut self) {
        HERE.set((self.0, HERE.get().1));
    }
}

/// Calls `call`, which queues work on `stream`, and records it if a session is open. A call that fails is not
/// recorded.
///
/// # Errors
/// The call's own; while a session is open, also a failure of the stream's earlier work.
#[inline]
pub fn queued<'a>(
    stream: &dyn Stream,
    work: impl FnOnce() -> Work<'a>,
    call: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_on() {
        return call();
    }
    let span = Span::begin(stream, work())?;
    let result = call();
    span.end(stream, result.is_ok());
    result
}

/// A wait or a compilation of the host. It is recorded when the value is dropped.
#[derive(Debug)]
pub struct Timed {
    kind: Kind,
    name: &'static str,
    begin: u64,
}

/// Begins to time a wait or a compilation of the host; returns `None` if no session is open.
#[inline]
pub fn timed(kind: Kind, name: &'static str) -> Option<Timed> {
    is_on().then(|| Timed { kind, name, begin: now() })
}

impl Drop for Timed {
    #[cold]
    fn drop(&mut self) {
        record_host(Work::new(self.kind, self.name), None, self.begin, None);
        // The host has waited, so that some events can be read without delaying work.
        if STATE.lock().has_many_unread() {
            read_finished(0);
        }
    }
}

/// Calls `call`, which waits or compiles on the host, and records it if a session is open.
///
/// # Errors
/// The call's own.
#[inline]
pub fn during<R>(kind: Kind, name: &'static str, call: impl FnOnce() -> Result<R>) -> Result<R> {
    let _timed = timed(kind, name);
    call()
}

/// Calls `call`, which allocates `bytes` bytes and returns the address, and records it if a session is open.
///
/// # Errors
/// The call's own.
#[inline]
pub fn allocated(
    device: DeviceId,
    bytes: usize,
    call: impl FnOnce() -> Result<u64>,
) -> Result<u64> {
    if !is_on() {
        return call();
    }
    let begin = now();
    let address = call()?;
    let work = Work::new(Kind::Allocate, "allocate").bytes(bytes as u64);
    record_host(work, Some(device), begin, Some(address));
    Ok(address)
}

/// Calls `call`, which frees memory, and records it if a session is open.
///
/// # Errors
/// The call's own.
#[inline]
pub fn freed(
    device: DeviceId,
    (address, bytes): (u64, usize),
    call: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_on() {
        return call();
    }
    let begin = now();
    let result = call();
    let work = Work::new(Kind::Free, "free").bytes(bytes as u64);
    record_host(work, Some(device), begin, Some(address));
    result
}

#[cold]
fn record_host(work: Work<'_>, device: Option<DeviceId>, begin: u64, address: Option<u64>) {
    if is_on_here() {
        let end = now();
        STATE.lock().push(work, (begin, end), (device, 0), address, None);
    }
}

/// Makes later work of `stream` wait for an event ([`wait_event`](crate::stream::StreamCore::wait_event)). If a session
/// is open, the time that the stream waits does not count as time of its next call.
///
/// A stream that waits for another one:
///
/// ```
/// use gpuarray::recording::wait_event;
/// use gpuarray::{EventOptions, StreamOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let (first, second) =
///     (device.default_stream(), device.create_stream(StreamOptions::default().non_blocking(true))?);
/// let written = device.create_event(EventOptions::ORDERING)?;
/// first.record(written.as_ref())?;
/// wait_event(second.as_ref(), written.as_ref())?;
/// # second.synchronize()
/// # }
/// ```
///
/// # Errors
/// The call's own.
#[inline]
pub fn wait_event(stream: &dyn Stream, event: &dyn Event) -> Result<()> {
    if is_on() && is_on_here() {
        STATE.lock().device(stream.device_id()).clocks.wait(stream.id());
    }
    stream.wait_event(event)
}

/// Returns the nanoseconds since the process first recorded something.
fn now() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Returns the line that causes the calling thread's calls, and the thread's number.
fn here() -> (u32, u32) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let (line, mut thread) = HERE.get();
    if thread == 0 {
        thread = NEXT.fetch_add(1, Ordering::Relaxed);
        HERE.set((line, thread));
    }
    (line, thread)
}

/// Returns the line of the live allocation at an address; empty if it was not recorded, or if its line is unknown.
pub fn line_of_allocation(device: DeviceId, address: u64) -> String {
    let mut state = STATE.lock();
    let line = state.device(device).memory.live.get(&address).map(|it| it.1);
    line.map_or_else(String::new, |line| state.text(line).to_string())
}

/// Returns the greatest change of the allocated bytes of a device since recording began; `None` if nothing records.
pub fn peak(device: DeviceId) -> Option<i64> {
    (is_on() && is_on_here()).then(|| STATE.lock().device(device).memory.peak)
}

/// Work that is being queued.
struct Span<'a> {
    work: Work<'a>,
    /// The beginning on the host.
    begin: u64,
    /// The events of the work, of which the last one is still to be recorded.
    timing: Option<Timing>,
}

impl<'a> Span<'a> {
    fn begin(stream: &dyn Stream, work: Work<'a>) -> Result<Span<'a>> {
        let may_capture = some_may_capture();
        let may_record =
            is_on_here() && (!may_capture || matches!(stream.is_capturing(), Ok(false)));
        let begin = now();
        let timing = if may_record { begun(stream, begin, !may_capture)? } else { None };
        let has_marker = timing.as_ref().is_some_and(|timing| timing.is_own);
        Ok(Span { work, begin: if has_marker { now() } else { begin }, timing })
    }

    fn end(self, stream: &dyn Stream, is_queued: bool) {
        if !is_on_here() {
            return;
        }
        let host = (self.begin, now());
        let is_timed = self.timing.is_some();
        let timing = self.timing.filter(|it| !is_queued || stream.record(it.end.as_ref()).is_ok());
        let mut state = STATE.lock();
        if state.sessions == 0 {
            return;
        }
        if is_timed && timing.is_none() {
            // The device was reset.
            state.forget_device(stream.device_id());
        }
        if !is_queued {
            return timing.map_or((), |timing| state.keep(timing));
        }
        let of = (Some(stream.device_id()), stream.id());
        let is_due = state.push(self.work, host, of, None, timing);
        drop(state);
        if is_due {
            read_finished(KEPT);
        }
    }
}

/// Returns the events of work on the stream, after recording the one before it if the work needs it.
///
/// # Errors
/// A failure of the stream's earlier work.
fn begun(stream: &dyn Stream, now: u64, may_ask: bool) -> Result<Option<Timing>> {
    let (device, number) = (stream.device_id(), stream.id());
    let (plan, end) = {
        let mut state = STATE.lock();
        let of = state.device(device);
        (of.clocks.plan(now, number, may_ask), of.spare.pop())
    };
    let is_idle = plan.compares && stream.has_run()?;
    if plan.compares && !is_idle {
        STATE.lock().device(device).clocks.postpone(now);
    }
    let marker = plan.marker.filter(|_| !is_idle);
    let is_own = marker.is_none();
    let marker = marker.or_else(|| add_marker(stream, is_idle));
    let end = end.or_else(|| stream.create_event(EventOptions::default()).ok());
    Ok(marker.zip(end).map(|(marker, end)| Timing { marker, is_own, end }))
}

/// Records a marker on the stream.
#[cold]
fn add_marker(stream: &dyn Stream, is_idle: bool) -> Option<Arc<Marker>> {
    let device = stream.device_id();
    let spare = STATE.lock().device(device).spare.pop();
    let mut host = now();
    let known = spare.filter(|event| {
        let is_recorded = stream.record(event.as_ref()).is_ok();
        if !is_recorded {
            // The device was reset.
            STATE.lock().forget_device(device);
        }
        is_recorded
    });
    let event = match known {
        Some(event) => event,
        None => {
            let event = stream.create_event(EventOptions::default()).ok()?;
            host = now();
            stream.record(event.as_ref()).ok()?;
            event
        }
    };
    Some(STATE.lock().device(device).clocks.add(event, host, is_idle))
}

/// Reads the times of finished work, the oldest first, until at most `keep` calls are unread.
#[cold]
fn read_finished(keep: u64) {
    // Some captures do not allow queries of events.
    if !is_on_here() || some_may_capture() {
        return;
    }
    let Some(_reading) = READING.try_lock() else { return };
    loop {
        let batch = STATE.lock().take_oldest(keep);
        if batch.is_empty() || !read(batch) {
            return;
        }
    }
}

/// Reads the times of calls; returns false if some have not finished. The caller holds [`READING`].
fn read(calls: Vec<(u64, Timing)>) -> bool {
    let mut read = Vec::with_capacity(calls.len());
    let mut left = calls.into_iter().peekable();
    while let Some((_, timing)) = left.peek() {
        let times = read_marker(&timing.marker).and_then(|()| timing.times());
        if times.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotReady) {
            break;
        }
        read.extend(left.next().map(|(number, timing)| (number, timing, times.ok())));
    }
    let is_finished = left.peek().is_none();
    let mut state = STATE.lock();
    let spoiled = state.set_times(read);
    state.put_back(left);
    drop(state);
    drop(spoiled);
    is_finished
}

/// Reads a marker, after all earlier ones of its device.
fn read_marker(marker: &Marker) -> Result<()> {
    while !marker.is_read() {
        let device = marker.device_id();
        let Some((previous, next)) = STATE.lock().device(device).clocks.unread() else { break };
        next.read(previous.as_deref())?;
        STATE.lock().pass(device, &next);
    }
    Ok(())
}

/// A recording in progress. Sessions may overlap; each has the calls made while it was open.
///
/// The work of a program, as a table:
///
/// ```
/// use gpuarray::DeviceArray;
/// use gpuarray::recording::{Kind, Session, Sort};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let session = Session::begin();
/// let x = DeviceArray::<f32>::ones(&device, &[1000])?;
/// let y = (&x + &x)?;
/// assert_eq!(y.to_vec()?[0], 2.0);
/// let recording = session.finish();
/// assert!(recording.rows.iter().any(|row| row.kind == Kind::Operation && row.name == "add float32"));
/// println!("{}", recording.table(Sort::Time));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Session {
    first: u64,
    begin: u64,
    generation: u32,
    is_open: bool,
}

impl Session {
    /// Begins to record the calls of all threads.
    pub fn begin() -> Session {
        watch_process();
        let generation = process::generation();
        let mut state = STATE.lock();
        let first = state.begin();
        GENERATION.store(generation, Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
        Session { first, begin: now(), generation, is_open: true }
    }

    /// Ends the session, waits for the recorded work, and returns its calls.
    pub fn finish(mut self) -> Recording {
        self.is_open = false;
        let end = now();
        if self.generation != process::generation() {
            return Recording::default();
        }
        let reading = READING.lock();
        let (mut next, last) = (self.first, STATE.lock().next());
        loop {
            let batch = STATE.lock().take_unread(&mut next, last);
            if batch.is_empty() {
                break;
            }
            for (_, timing) in &batch {
                // A failure of the work is left to the program's next call.
                let _ = timing.end.drain();
            }
            read(batch);
        }
        drop(reading);
        let recording = Recording::of(&STATE.lock(), self.first..last, (self.begin, end));
        Self::close();
        recording
    }

    fn close() {
        let mut state = STATE.lock();
        let left = state.end();
        if state.sessions == 0 {
            ON.store(false, Ordering::Relaxed);
        }
        drop(state);
        // Events are destroyed without the lock, because that calls the driver.
        drop(left);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if mem::take(&mut self.is_open) && self.generation == process::generation() {
            Self::close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_calls_are_kept() {
        let session = Session::begin();
        for _ in 0..LIMIT + 10 {
            drop(timed(Kind::Wait, "test"));
        }
        let recording = session.finish();
        assert_eq!(recording.rows.len(), LIMIT);
        assert!(recording.dropped >= 10);
        assert!(recording.table(Sort::Count).contains("earlier calls were not kept"));
    }
}
