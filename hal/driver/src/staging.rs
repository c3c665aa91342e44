//! Large copies between the device and pageable host memory, through page-locked chunks.
//!
//! The driver copies pageable memory on one thread, at a fraction of the bus bandwidth. Here,
//! several threads fill or empty chunks while the device copies to or from others. A device's
//! threads and chunks are created at first use, and shared by all callers.
//!
//! Before anything is copied, the caller waits for the work queued on its stream, as the drivers do
//! for such copies. It returns after the last byte has arrived. So no thread or chunk ever waits
//! for a caller's work, which may itself wait for another copy.

mod buffers;
#[cfg(test)]
mod tests;
mod workers;

use crate::calls::Handle;
use crate::context::Context;
use crate::event::DriverEvent;
use buffers::{Failure, HostSide, Part, PlacedRange, Sizes};
use hal::error::{Error, ErrorKind, Result};
use hal::event::{Event, EventOptions};
use hal::poison::Unpoisoned as _;
use hal::status::Status;
use hal::stream::{Direction, HostRange, Transfer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use workers::Workers;

/// The minimum sizes for which waking the threads is worthwhile. The driver is slower to write
/// pages than to read them.
const LEAST_UP: usize = 4 << 20;
const LEAST_DOWN: usize = 1 << 20;
/// The driver copies this many bytes before threads are created.
const WORTH: usize = 16 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// A device's threads and chunks.
#[derive(Debug)]
pub(crate) struct Staging {
    context: Arc<Context>,
    sizes: OnceLock<Result<Sizes>>,
    /// The number of bytes that the driver copied while there were no threads.
    unstaged: AtomicUsize,
    workers: Mutex<Option<Arc<Workers>>>,
}

impl Staging {
    /// Returns the staging of a device, without threads.
    pub(crate) fn new(context: &Arc<Context>) -> Staging {
        Staging {
            context: context.clone(),
            sizes: OnceLock::new(),
            unstaged: AtomicUsize::new(0),
            workers: Mutex::default(),
        }
    }

    fn sizes(&self) -> Result<Sizes> {
        self.sizes.get_or_init(|| Sizes::from_variables(|name| std::env::var_os(name))).clone()
    }

    /// Returns the threads of the context's epoch, for a copy of `bytes` bytes; `None` if creating
    /// them is not worthwhile yet. The context is current.
    fn workers(&self, sizes: Sizes, bytes: usize) -> Result<Option<Arc<Workers>>> {
        let context = &self.context;
        // Before taking the lock, because a reset takes these locks in the other order.
        let (handle, epoch) = (context.handle()?, context.epoch());
        let mut workers = self.workers.lock().unpoisoned();
        if let Some(workers) = workers.as_ref().filter(|workers| workers.epoch == epoch) {
            return Ok(Some(workers.clone()));
        }
        if self.unstaged.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) < WORTH {
            return Ok(None);
        }
        if let Some(former) = workers.take() {
            // Another library has reset the device, which destroyed the threads' objects.
            former.close(false);
        }
        Ok(Some(workers.insert(Workers::start(&context.driver, handle, epoch, sizes)).clone()))
    }

    /// Forgets threads that cannot work.
    fn discard(&self, useless: &Arc<Workers>) {
        self.workers.lock().unpoisoned().take_if(|workers| Arc::ptr_eq(workers, useless));
    }

    /// Ends the threads and frees the chunks, after the copies in progress; a later copy creates
    /// new ones. Does nothing while a stream captures.
    pub(crate) fn release(&self) {
        if !self.context.capture_state.any() {
            self.close();
        }
    }

    /// Like [`Staging::release`], before the context is destroyed.
    pub(crate) fn close(&self) {
        let context = &self.context;
        if !context.is_alive(context.epoch()) {
            return;
        }
        let mut workers = self.workers.lock().unpoisoned();
        if let Some(workers) = workers.take() {
            // During a reset by this process, their objects still exist, although the epoch was
            // already incremented once.
            let is_there = context.epoch() - workers.epoch < 2;
            workers.close(is_there && !context.is_lost());
        }
    }

    /// Copies one row through the device's chunks, after the work of the stream, if that is faster.
    /// Returns true after the bytes have arrived; false if nothing was copied. The context is
    /// current.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamCore::transfer`].
    pub(crate) unsafe fn copy(&self, stream: Handle, transfer: &Transfer) -> Result<bool> {
        let context = &self.context;
        let (host, device) = match transfer.direction {
            Direction::HostToDevice => (transfer.source, transfer.destination),
            Direction::DeviceToHost => (transfer.destination, transfer.source),
            Direction::DeviceToDevice => return Ok(false),
        };
        if context.driver.vendor.knows(host) {
            return Ok(false);
        }
        let (direction, bytes) = (transfer.direction, transfer.width);
        if direction == Direction::DeviceToHost {
            advise_huge_pages(host as usize, bytes);
        }
        let part = Part { direction, device, host: HostSide::Row(host), bytes, job: 0 };
        // SAFETY: the caller's promise.
        unsafe { self.run(stream, part) }
    }

    /// Like [`Staging::copy`], for ranges of host memory to the device.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamMemory::gather`].
    pub(crate) unsafe fn gather(
        &self,
        stream: Handle,
        destination: u64,
        ranges: &[HostRange],
    ) -> Result<bool> {
        let placed = PlacedRange::all(ranges);
        let part = Part {
            direction: Direction::HostToDevice,
            device: destination,
            host: HostSide::Ranges(&raw const *placed, 0),
            bytes: ranges.iter().map(|range| range.bytes).sum(),
            job: 0,
        };
        // SAFETY: the caller's promise; the placed ranges live until the call returns.
        unsafe { self.run(stream, part) }
    }

    /// # Safety
    /// As for [`Staging::copy`].
    unsafe fn run(&self, stream: Handle, part: Part) -> Result<bool> {
        let context = &self.context;
        let sizes = self.sizes()?;
        if sizes.threads == 0 || context.capture_state.any() {
            return Ok(false);
        }
        // Another library that shares the stream may be capturing it.
        if stream != 0 && !matches!(context.capture_of(stream), Ok(None)) {
            return Ok(false);
        }
        let Some(workers) = self.workers(sizes, part.bytes)? else { return Ok(false) };
        // Waits for an event, not for the stream. Recording an event is queued work, so on the
        // default stream the event comes after the work of the streams that this stream waits for.
        // Synchronizing the stream would not include them.
        let before = DriverEvent::new(context, EventOptions::ORDERING)?;
        before.record_on(context, stream, false)?;
        before.synchronize()?;
        // SAFETY: the caller's promise; the work before has finished.
        match unsafe { workers.run(part) } {
            Ok(()) => Ok(true),
            Err(Failure::Code(code)) => Err(context.failed("transfer", code)),
            Err(Failure::Panicked) => Err(Error::new(
                ErrorKind::Driver,
                Status::host(Status::UNKNOWN),
                "transfer",
                "a copying thread panicked",
            )),
            Err(Failure::NoThreads) => {
                self.discard(&workers);
                Ok(false)
            }
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns true if this many bytes may be worth [`Staging::gather`].
pub(crate) fn is_large_gather(bytes: usize) -> bool {
    bytes >= LEAST_UP
}

/// Returns true if a copy of one row may be worth [`Staging::copy`].
#[inline]
pub(crate) fn is_large(transfer: &Transfer) -> bool {
    match transfer.direction {
        Direction::HostToDevice => transfer.width >= LEAST_UP,
        Direction::DeviceToHost => transfer.width >= LEAST_DOWN,
        Direction::DeviceToDevice => false,
    }
}

/// Requests 2 MiB pages inside the range, because most of the time of a copy to fresh memory is
/// spent on page faults. The advice does not change bytes or existing pages. It only affects pages
/// that nothing has touched; this copy touches them first. Systems without such pages, or without
/// them for this memory, refuse the advice.
fn advise_huge_pages(address: usize, bytes: usize) {
    let start = address.next_multiple_of(HUGE_PAGE);
    let end = (address + bytes) / HUGE_PAGE * HUGE_PAGE;
    #[cfg(target_os = "linux")]
    if start < end {
        // SAFETY: the caller's range is allocated; the advice does not change its contents.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, end);
}
