//! A record of a program's work: kernels, operations, copies, allocations and waits, with times of host and device.
//!
//! A [`Session`] records what the library does from [`Session::begin`] to [`Session::finish`], on every backend and
//! for objects that existed before. The array layer, memory and launches call the backends' traits inside [`queued`],
//! [`during`], [`allocated`] and [`freed`]. While nothing is recorded, each of them costs one load. A program that
//! calls a trait itself records the call in the same way.
//!
//! Device times are those of two events around the work. Captured work has none: it does not run. The host's time of
//! a call does not include the recording itself.
//!
//! The latest [`LIMIT`] calls are kept. A forked child records nothing until it begins a session of its own.

mod entry;
mod report;

pub use entry::{Kind, LIMIT, Work};
pub use report::{Recording, Row, Sort, copy_rate};

use crate::backend::watch_process;
use crate::error::Result;
use crate::event::EventOptions;
use crate::process::{self, ProcessMutex};
use crate::properties::DeviceId;
use crate::stream::Stream;
use crate::submission::some_may_capture;
use entry::{LINE, State, Timing};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The number of calls whose events may be unread before finished ones are read.
const UNREAD: u64 = 1 << 13;

static ON: AtomicBool = AtomicBool::new(false);
/// The process that records, by [`process::generation`].
static GENERATION: AtomicU32 = AtomicU32::new(0);
static STATE: ProcessMutex<State> = ProcessMutex::new(State::new);

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
        AtLine(LINE.replace(line))
    }

    /// Returns true if the calling thread's line is named already.
    pub fn is_known() -> bool {
        LINE.get() != 0
    }
}

impl Drop for AtLine {
    fn drop(&mut self) {
        LINE.set(self.0);
    }
}

/// Calls `call`, which queues work on `stream`, and records it if a session is open. A call that fails is not
/// recorded.
///
/// # Errors
/// The call's own.
#[inline]
pub fn queued<'a>(
    stream: &dyn Stream,
    work: impl FnOnce() -> Work<'a>,
    call: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_on() {
        return call();
    }
    let span = Span::begin(stream, work());
    let result = call();
    span.end(stream, result.is_ok());
    result
}

/// A wait or a compilation of the host, which is recorded when the value is dropped.
#[derive(Debug)]
pub struct Timed {
    kind: Kind,
    name: &'static str,
    begin: u64,
}

/// Begins to time a wait or a compilation of the host; returns `None` if no session is open.
#[inline]
pub fn timed(kind: Kind, name: &'static str) -> Option<Timed> {
    is_on().then(|| Timed { kind, name, begin: entry::now() })
}

impl Drop for Timed {
    #[cold]
    fn drop(&mut self) {
        record_host(Work::new(self.kind, self.name), None, self.begin, None);
        // The host has waited, so that some events can be read without delaying work.
        read_finished(0);
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
    let begin = entry::now();
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
    let begin = entry::now();
    let result = call();
    let work = Work::new(Kind::Free, "free").bytes(bytes as u64);
    record_host(work, Some(device), begin, Some(address));
    result
}

#[cold]
fn record_host(work: Work<'_>, device: Option<DeviceId>, begin: u64, address: Option<u64>) {
    if is_on_here() {
        let end = entry::now();
        STATE.lock().push(work, (begin, end), device, 0, address, None);
    }
}

/// Returns the line of the live allocation at an address; empty if it was not recorded, or if its line is unknown.
pub fn line_of_allocation(device: DeviceId, address: u64) -> String {
    let state = STATE.lock();
    let line = state.memory.get(&device).and_then(|it| it.live.get(&address));
    line.map_or_else(String::new, |it| state.text(it.1).to_string())
}

/// Returns the greatest change of the allocated bytes of a device since recording began; `None` if nothing records.
pub fn peak(device: DeviceId) -> Option<i64> {
    let memory = |state: &State| state.memory.get(&device).map_or(0, |it| it.peak);
    (is_on() && is_on_here()).then(|| memory(&STATE.lock()))
}

/// Work that is being queued.
struct Span<'a> {
    work: Work<'a>,
    /// The beginning on the host.
    begin: u64,
    /// The events around the work, of which the first is recorded.
    timing: Option<Timing>,
}

impl<'a> Span<'a> {
    #[cold]
    fn begin(stream: &dyn Stream, work: Work<'a>) -> Span<'a> {
        let may_record = is_on_here() && matches!(stream.is_capturing(), Ok(false));
        let timing = may_record.then(|| begun(stream)).flatten();
        Span { work, begin: entry::now(), timing }
    }

    #[cold]
    fn end(self, stream: &dyn Stream, is_queued: bool) {
        if !is_on_here() {
            return;
        }
        let end = entry::now();
        if !is_queued {
            return self.timing.map_or((), |timing| STATE.lock().keep(stream.id(), timing));
        }
        let timing = self.timing.filter(|timing| stream.record(timing.end.as_ref()).is_ok());
        let device = stream.device_id();
        let unread = {
            let mut state = STATE.lock();
            state.push(self.work, (self.begin, end), Some(device), stream.id(), None, timing);
            state.unread()
        };
        if unread > UNREAD {
            read_finished(UNREAD / 2);
        }
    }
}

/// Returns events for work on the stream, after recording the first one.
fn begun(stream: &dyn Stream) -> Option<Timing> {
    let device = stream.device_id();
    let spare = STATE.lock().spare(device, stream.id());
    if let Some(timing) = spare {
        if stream.record(timing.start.as_ref()).is_ok() {
            return Some(timing);
        }
        // The device was reset.
        STATE.lock().forget_device(device);
    }
    let recorded = || {
        let event = stream.create_event(EventOptions::default()).ok()?;
        stream.record(event.as_ref()).ok()?;
        Some(event)
    };
    let base = STATE.lock().base_of(device);
    let base = match base {
        Some(base) => base,
        None => {
            let event = recorded()?;
            STATE.lock().add_base(device, event)
        }
    };
    let end = stream.create_event(EventOptions::default()).ok()?;
    Some(Timing { base, start: recorded()?, end })
}

/// Reads the times of finished work, the oldest first, until at most `keep` calls are unread.
#[cold]
fn read_finished(keep: u64) {
    // Some captures do not allow queries of events.
    if !is_on_here() || some_may_capture() {
        return;
    }
    loop {
        let Some((number, timing)) = STATE.lock().take_unread(keep) else { return };
        let is_done = matches!(timing.end.has_run(), Ok(true) | Err(_));
        if !is_done {
            return STATE.lock().put_back(number, timing);
        }
        read(number, timing);
    }
}

fn read(number: u64, timing: Timing) {
    let times = timing.times();
    let spoiled = STATE.lock().set_times(number, timing, times);
    drop(spoiled);
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
        Session { first, begin: entry::now(), generation, is_open: true }
    }

    /// Ends the session, waits for the recorded work, and returns its calls.
    pub fn finish(mut self) -> Recording {
        self.is_open = false;
        let end = entry::now();
        if self.generation != process::generation() {
            return Recording::default();
        }
        let (mut next, last) = (self.first, STATE.lock().next());
        loop {
            let unread = STATE.lock().take_unread_before(&mut next, last);
            let Some((number, timing)) = unread else { break };
            // A failure of the work is left to the program's next call.
            let _ = timing.end.drain();
            read(number, timing);
        }
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
