//! Deferred drops of values whose destruction would block until the device is idle.
//!
//! A driver frees page-locked memory, ends a registration and unloads a module only after the device is idle, and
//! blocks the caller until then. So such a value is dropped immediately only if no work is queued. Otherwise, a
//! thread drops it after the work that was queued at the time of the call. The thread ends with the last such value.

use crate::stream_registry::live_streams;
use gpuarray::{Device, ErrorKind, Event, EventOptions, Result, Stream};
use hal::poison::Unpoisoned as _;
use hal::process;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The sleep of the thread between two polls of the device.
const SLEEP: Duration = Duration::from_micros(500);

/// The end of a stream's queued work.
enum Mark {
    Event(Arc<dyn Event>),
    /// If an event could not be recorded: a moment at which the stream is idle.
    Idle(Arc<dyn Stream>),
}

impl Mark {
    fn is_reached(&self) -> bool {
        // After a failure, there is nothing left to wait for.
        match self {
            Mark::Event(event) => {
                !matches!(event.has_run(), Ok(false)) || !event.supports_queries()
            }
            Mark::Idle(stream) => {
                !matches!(stream.has_run(), Ok(false)) || !stream.supports_queries()
            }
        }
    }
}

/// A value to be dropped.
struct Job {
    device: Arc<dyn Device>,
    /// `None` while some stream captures, when streams must not be queried.
    marks: Option<Vec<Mark>>,
    #[allow(dead_code, reason = "held until it is to be dropped")]
    value: Box<dyn Any + Send>,
}

impl Job {
    /// Returns true after the work that was queued at the time of `drop_later` has finished.
    fn is_ready(&mut self) -> bool {
        if self.marks.is_none() {
            let streams = busy_streams(&self.device);
            self.marks = streams.and_then(|all| all.iter().map(mark).collect());
        }
        let Some(marks) = &mut self.marks else {
            return false;
        };
        marks.retain(|mark| !mark.is_reached());
        marks.is_empty()
    }
}

/// Returns the streams of a device that have work; `None` while one captures.
fn busy_streams(device: &Arc<dyn Device>) -> Option<Vec<Arc<dyn Stream>>> {
    let mut streams = live_streams(device.as_ref());
    streams.push(device.default_stream());
    let captures = |stream: &Arc<dyn Stream>| match stream.is_capturing() {
        Ok(captures) => captures,
        // The default stream cannot be queried while another one captures.
        Err(error) => error.kind() != ErrorKind::DeviceLost,
    };
    if streams.iter().any(captures) {
        return None;
    }
    streams.retain(|stream| matches!(stream.has_run(), Ok(false)));
    Some(streams)
}

/// Returns the end of a stream's current work; `None` if a capture began meanwhile.
fn mark(stream: &Arc<dyn Stream>) -> Option<Mark> {
    let record = || -> Result<Arc<dyn Event>> {
        let event = stream.create_event(EventOptions::ORDERING)?;
        stream.record(event.as_ref())?;
        Ok(event)
    };
    let mark = record().map_or_else(|_| Mark::Idle(stream.clone()), Mark::Event);
    (!stream.is_capturing().unwrap_or(false)).then_some(mark)
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    /// The number of jobs that the thread is processing now.
    taken: usize,
    /// The number of those jobs that wait for the end of a capture, which may never come.
    behind_captures: usize,
    has_thread: bool,
}

/// The values that one process still has to drop.
struct Pending {
    generation: u32,
    queue: Mutex<Queue>,
}

impl Pending {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // The queue is valid after every step, so a panic elsewhere does not invalidate it.
        self.queue.lock().unpoisoned()
    }

    /// Drops values as the device finishes its work, until none is left.
    fn run(&self) {
        IS_DROPPING.set(true);
        let mut jobs: Vec<Job> = Vec::new();
        loop {
            {
                let mut queue = self.queue();
                queue.behind_captures = jobs.iter().filter(|job| job.marks.is_none()).count();
                jobs.append(&mut queue.jobs);
                queue.taken = jobs.len();
                if jobs.is_empty() || process::is_exiting() {
                    queue.has_thread = false;
                    return;
                }
            }
            let ready: Vec<Job> = jobs.extract_if(.., Job::is_ready).collect();
            if ready.is_empty() {
                std::thread::sleep(SLEEP);
            }
            drop(ready);
        }
    }
}

static PENDING: AtomicPtr<Pending> = AtomicPtr::new(null_mut());

/// Returns the values of this process. A forked child has a separate list, because its parent's thread does not
/// exist there and may have held the lock.
fn pending() -> &'static Pending {
    let generation = process::generation();
    loop {
        let found = PENDING.load(Ordering::Acquire);
        // SAFETY: the pointer is null, or points to a value that was leaked below.
        if let Some(pending) = unsafe { found.as_ref() }
            && pending.generation == generation
        {
            return pending;
        }
        let made = Box::into_raw(Box::new(Pending { generation, queue: Mutex::default() }));
        let exchanged = PENDING.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire);
        if exchanged.is_err() {
            // SAFETY: no other thread has seen the value.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// Drops a value after the work that is currently queued on the device, without blocking.
pub(crate) fn drop_later<T: Send + 'static>(device: &Arc<dyn Device>, value: T) {
    if process::is_exiting() || busy_streams(device).is_some_and(|busy| busy.is_empty()) {
        return drop_unlocked(value);
    }
    let pending = pending();
    let mut queue = pending.queue();
    queue.jobs.push(Job { device: device.clone(), marks: None, value: Box::new(value) });
    if queue.has_thread {
        return;
    }
    queue.has_thread = true;
    drop(queue);
    let thread = std::thread::Builder::new().name("pygpu free".into());
    if let Err(error) = thread.spawn(|| pending.run()) {
        log::warn!("no thread to free memory behind queued work, waiting for it: {error}");
        let jobs = std::mem::take(&mut *pending.queue()).jobs;
        drop_unlocked(jobs);
    }
}

thread_local! {
    /// True on the thread that performs deferred drops, which never holds Python's lock.
    static IS_DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// True after Python has begun to destroy the program's objects.
static IS_FINISHING: AtomicBool = AtomicBool::new(false);

/// Registers a callback for the moment when Python begins to destroy objects.
pub(crate) fn watch_exit(py: Python<'_>) -> PyResult<()> {
    #[pyfunction]
    fn finish() {
        IS_FINISHING.store(true, Ordering::Release);
    }
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(finish, py)?,)).map(drop)
}

/// Drops a value that may wait for the device, without Python's lock. At the end of the program, the value is leaked
/// instead: a kernel may never end, and Ctrl-C no longer interrupts a wait then.
pub(crate) fn drop_unlocked<T: Send>(value: T) {
    if IS_DROPPING.get() {
        return drop(value);
    }
    if IS_FINISHING.load(Ordering::Acquire) {
        return std::mem::forget(value);
    }
    let mut value = Some(value);
    Python::try_attach(|py| py.detach(|| drop(value.take())));
}

/// Returns true while there are values that will be dropped soon, because no capture blocks them.
fn has_pending() -> bool {
    let queue = pending().queue();
    queue.taken > queue.behind_captures || !queue.jobs.is_empty()
}

/// Calls a function that may fail because of pending drops; if it fails, calls it once more after the drops.
pub(crate) fn retry<T: Send>(
    py: Python<'_>,
    call: impl Fn() -> Result<T> + Send + Sync,
) -> PyResult<Result<T>> {
    let first = py.detach(&call);
    if first.is_ok() || !has_pending() {
        return Ok(first);
    }
    crate::synchronize::wait_until(py, &|| Ok(!has_pending()))?.ok();
    Ok(py.detach(&call))
}

/// A value whose drop is deferred until the device has finished the work queued before it.
pub(crate) struct DeferredDrop<T: Send + 'static> {
    device: Arc<dyn Device>,
    value: ManuallyDrop<T>,
}

impl<T: Send + 'static> DeferredDrop<T> {
    pub(crate) fn new(device: &Arc<dyn Device>, value: T) -> DeferredDrop<T> {
        DeferredDrop { device: device.clone(), value: ManuallyDrop::new(value) }
    }

    /// Returns the value, which is then dropped normally.
    pub(crate) fn into_inner(self) -> T {
        let mut whole = ManuallyDrop::new(self);
        // SAFETY: neither field is used after this, and the whole is not dropped.
        unsafe {
            std::ptr::drop_in_place(&mut whole.device);
            ManuallyDrop::take(&mut whole.value)
        }
    }
}

impl<T: Send + 'static> Deref for DeferredDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Send + 'static> Drop for DeferredDrop<T> {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        drop_later(&self.device, unsafe { ManuallyDrop::take(&mut self.value) });
    }
}
