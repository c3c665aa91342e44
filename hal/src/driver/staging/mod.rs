//! Large copies between the device and pageable host memory, through page-locked chunks.
//!
//! The driver copies pageable memory on one thread, at a fraction of what the bus carries.
//! Here several threads fill or empty chunks while the device copies from or to others. A
//! device's threads and chunks are made when they are first needed, and shared by all callers.
//!
//! Before anything is copied the caller waits for the work that was queued on its stream, as
//! the drivers do for such copies, and it returns when the last byte has arrived. So no
//! thread or chunk ever waits for a caller's work, which may itself wait for another copy.

mod lane;
mod ring;
#[cfg(test)]
mod tests;

use crate::driver::context::{Context, lock};
use crate::driver::event::DriverEvent;
use crate::driver::stream::DriverStream;
use crate::driver::stream::capture;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventOptions};
use crate::setting;
use crate::status::Status;
use crate::stream::{Direction, Transfer};
use lane::SLOTS;
use ring::{Failure, Part, Ring};
use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::available_parallelism;

/// The least copies for which threads are worth waking; the driver is slower to write pages
/// than to read them.
const LEAST_UP: usize = 4 << 20;
const LEAST_DOWN: usize = 1 << 20;
/// So many bytes are copied by the driver first: by then the threads are worth making.
const WORTH: usize = 16 << 20;
/// Bytes of a chunk, at least and at most. Every page of 2 MiB of fresh memory is best touched
/// by one thread alone.
const LEAST_CHUNK: usize = 64 << 10;
const MOST_CHUNK: usize = 2 << 20;
/// What a thread takes of a copy at least, if its chunks hold as much.
const LEAST_PART: usize = 128 << 10;
const HUGE_PAGE: usize = 2 << 20;

const THREADS: &str = "PYGPU_STAGING_THREADS";
const BYTES: &str = "PYGPU_STAGING_BYTES";
const MOST_THREADS: usize = 256;

/// How many threads, and how they share a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    /// 0: nothing is staged.
    threads: usize,
    /// Bytes of a chunk, of which every thread has [`SLOTS`].
    chunk: usize,
}

impl Sizes {
    /// For at most `threads` threads and `bytes` bytes of page-locked memory.
    fn new(threads: usize, bytes: usize) -> Sizes {
        let threads = threads.min(bytes / (SLOTS * LEAST_CHUNK));
        if threads == 0 {
            return Sizes { threads, chunk: LEAST_CHUNK };
        }
        let share = bytes / (SLOTS * threads);
        Sizes { threads, chunk: (1 << share.ilog2()).min(MOST_CHUNK) }
    }

    /// The sizes of the environment: `PYGPU_STAGING_THREADS` (0: nothing is staged; default:
    /// half of the cores that the process may use, 2 to 8) and `PYGPU_STAGING_BYTES` (of
    /// page-locked memory for each device at most; K, M, G or T may follow; default: 64 MiB).
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if one cannot be read.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Sizes> {
        let allowed = "whole numbers from 0 to 256";
        let threads = setting::parse(THREADS, variable(THREADS), allowed, |text| {
            text.parse().ok().filter(|threads| *threads <= MOST_THREADS)
        })?;
        let allowed = "whole numbers from 128K, with K, M, G or T behind";
        let bytes = setting::parse(BYTES, variable(BYTES), allowed, |text| {
            setting::bytes(text).filter(|bytes| *bytes >= SLOTS * LEAST_CHUNK)
        })?;
        let half = || (available_parallelism().map_or(1, |cores| cores.get()) / 2).clamp(2, 8);
        Ok(Sizes::new(threads.unwrap_or_else(half), bytes.unwrap_or(64 << 20)))
    }

    /// What a thread takes of a copy at once: there are enough parts for all to end together.
    fn part(&self, bytes: usize) -> usize {
        let share = bytes / (2 * self.threads.max(1));
        (1 << share.max(1).ilog2()).clamp(LEAST_PART.min(self.chunk), self.chunk)
    }
}

/// A device's threads and chunks.
#[derive(Debug, Default)]
pub(in crate::driver) struct Staging {
    sizes: OnceLock<Result<Sizes>>,
    /// Bytes that the driver copied for want of threads.
    unstaged: AtomicUsize,
    ring: Mutex<Option<Arc<Ring>>>,
}

impl Staging {
    fn sizes(&self) -> Result<Sizes> {
        self.sizes.get_or_init(|| Sizes::from_variables(|name| std::env::var_os(name))).clone()
    }

    /// The threads of the context's epoch, for a copy of `bytes` bytes; none if they are not
    /// worth making yet. The context is current.
    fn ring(&self, context: &Context, sizes: Sizes, bytes: usize) -> Result<Option<Arc<Ring>>> {
        // Before the lock: a reset has these in the other order.
        let (handle, epoch) = (context.handle()?, context.epoch());
        let mut ring = lock(&self.ring);
        if let Some(ring) = ring.as_ref().filter(|ring| ring.epoch == epoch) {
            return Ok(Some(ring.clone()));
        }
        if self.unstaged.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) < WORTH {
            return Ok(None);
        }
        Ok(Some(ring.insert(Ring::start(&context.driver, handle, epoch, sizes)).clone()))
    }

    /// Forgets threads that are of no use.
    fn discard(&self, useless: &Arc<Ring>) {
        lock(&self.ring).take_if(|ring| Arc::ptr_eq(ring, useless));
    }

    /// Ends the threads and frees the chunks, after the copies under way; a later copy makes
    /// new ones. While a stream captures, all stays as it is.
    pub(in crate::driver) fn release(&self, context: &Context) {
        if !context.captures.any() {
            self.close(context);
        }
    }

    /// As [`Staging::release`], at the end of the context: it is still there.
    pub(in crate::driver) fn close(&self, context: &Context) {
        if !context.is_alive(context.epoch()) {
            return;
        }
        let mut ring = lock(&self.ring);
        if let Some(ring) = ring.take() {
            ring.close(!context.is_lost());
        }
    }
}

/// True if a copy of one row may be one for [`copy`].
#[inline]
pub(in crate::driver) fn is_large(transfer: &Transfer) -> bool {
    match transfer.direction {
        Direction::HostToDevice => transfer.width >= LEAST_UP,
        Direction::DeviceToHost => transfer.width >= LEAST_DOWN,
        Direction::DeviceToDevice => false,
    }
}

/// Copies one row through the device's chunks if that is the better way. The bytes have
/// arrived then; else the result is false, and nothing was copied.
///
/// # Safety
/// As for [`crate::Stream::transfer`].
pub(in crate::driver) unsafe fn copy(stream: &DriverStream, transfer: &Transfer) -> Result<bool> {
    let context = stream.context();
    let (host, device) = match transfer.direction {
        Direction::HostToDevice => (transfer.source, transfer.destination),
        Direction::DeviceToHost => (transfer.destination, transfer.source),
        Direction::DeviceToDevice => return Ok(false),
    };
    let sizes = context.staging.sizes()?;
    if sizes.threads == 0 || context.captures.any() {
        return Ok(false);
    }
    let _scope = stream.enter()?;
    if context.driver.vendor.is_pinned(host) || is_captured(stream) {
        return Ok(false);
    }
    let (direction, bytes) = (transfer.direction, transfer.width);
    if direction == Direction::DeviceToHost {
        advise_huge_pages(host as usize, bytes);
    }
    let Some(ring) = context.staging.ring(context, sizes, bytes)? else { return Ok(false) };
    // An event is queued work, which waits for what the stream waits for; to wait for the
    // stream itself is not.
    let before = DriverEvent::new(context, EventOptions::ORDERING)?;
    before.record_on(context, stream.raw(), false)?;
    before.synchronize()?;
    // SAFETY: the caller's promise; the work before has run.
    match unsafe { ring.run(Part { direction, device, host, bytes, job: 0 }) } {
        Ok(()) => Ok(true),
        Err(Failure::Code(code)) => Err(context.failed("transfer", code)),
        Err(Failure::Panicked) => Err(Error::new(
            ErrorKind::Driver,
            Status::host(Status::UNKNOWN),
            "transfer",
            "a thread that copies panicked",
        )),
        Err(Failure::NoThreads) => {
            context.staging.discard(&ring);
            Ok(false)
        }
    }
}

/// True if a library that shares the stream captures it.
fn is_captured(stream: &DriverStream) -> bool {
    !stream.is_default() && !matches!(capture::capture_of(stream.context(), stream.raw()), Ok(None))
}

/// Asks for pages of 2 MiB inside the range, because most of the time of a copy to fresh
/// memory goes to its page faults. Advice changes no byte and no page that is there, only how
/// pages are made that are touched for the first time, and all of these will be; a system
/// that does not have such pages, or not for this memory, refuses it.
fn advise_huge_pages(address: usize, bytes: usize) {
    let start = address.next_multiple_of(HUGE_PAGE);
    let end = (address + bytes) / HUGE_PAGE * HUGE_PAGE;
    #[cfg(target_os = "linux")]
    if start < end {
        // SAFETY: the caller's range is allocated; the advice leaves what it holds alone.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, end);
}
