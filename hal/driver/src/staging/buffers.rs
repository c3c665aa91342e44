//! The staging buffers of one copying thread: a stream, and page-locked chunks. The device copies to or from one
//! chunk while the thread fills or empties another.

use crate::calls::{Handle, NO_TIMING, NON_BLOCKING};
use crate::vendor::Driver;
use hal::environment;
use hal::error::Result;
use hal::status::Status;
use hal::stream::{Direction, HostRange};
use std::ffi::{OsString, c_int, c_void};
use std::ptr::{copy_nonoverlapping, null_mut};
use std::thread::available_parallelism;

/// A chunk, and the part of a copy that is in progress in it.
#[derive(Debug)]
struct Slot {
    memory: *mut u8,
    /// Recorded after the device's copy; 0 before it is created.
    event: Handle,
    part: Option<Part>,
}

/// A stream and its chunks. The handles belong to the context that is current in every call.
#[derive(Debug)]
pub(super) struct StagingBuffers {
    stream: Handle,
    memory: *mut c_void,
    slots: [Slot; SLOTS],
}

fn done(code: c_int) -> Result<(), Failure> {
    if code == Status::SUCCESS { Ok(()) } else { Err(Failure::Code(code)) }
}

impl StagingBuffers {
    /// Allocates buffers with chunks of `chunk` bytes.
    pub(super) fn new(driver: &Driver, chunk: usize) -> Result<StagingBuffers, Failure> {
        let empty = || Slot { memory: null_mut(), event: 0, part: None };
        let mut buffers =
            StagingBuffers { stream: 0, memory: null_mut(), slots: [empty(), empty()] };
        match buffers.fill(driver, chunk) {
            Ok(()) => Ok(buffers),
            Err(failure) => {
                buffers.free(driver);
                Err(failure)
            }
        }
    }

    fn fill(&mut self, driver: &Driver, chunk: usize) -> Result<(), Failure> {
        let calls = &driver.calls;
        // SAFETY: here and below, results are written before a call returns.
        done(unsafe { (calls.stream_create)(&mut self.stream, NON_BLOCKING, 0) })?;
        for slot in &mut self.slots {
            // SAFETY: as above.
            done(unsafe { (calls.event_create)(&mut slot.event, NO_TIMING) })?;
        }
        // SAFETY: as above.
        done(unsafe { (calls.allocate_pinned)(&mut self.memory, SLOTS * chunk, 0) })?;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            slot.memory = self.memory.cast::<u8>().wrapping_add(number * chunk);
        }
        Ok(())
    }

    /// Frees everything. No copies are in progress.
    pub(super) fn free(self, driver: &Driver) {
        let calls = &driver.calls;
        let note = |what: &str, code: c_int| {
            if code != Status::SUCCESS {
                log::warn!("freeing {what} of the staging buffers failed: status {code}");
            }
        };
        for event in self.slots.iter().map(|slot| slot.event).filter(|event| *event != 0) {
            // SAFETY: here and below, these buffers created the object and own it exclusively.
            note("an event", unsafe { (calls.event_destroy)(event) });
        }
        if self.stream != 0 {
            // SAFETY: as above.
            note("a stream", unsafe { (calls.stream_destroy)(self.stream) });
        }
        if !self.memory.is_null() {
            // SAFETY: as above.
            note("memory", unsafe { (calls.free_pinned)(self.memory) });
        }
    }

    /// Returns true if no copies are in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.part.is_none())
    }

    /// Takes the part in progress from a slot, which then counts as free.
    pub(super) fn take(&mut self, slot: usize) -> Option<Part> {
        self.slots[slot].part.take()
    }

    /// Begins to copy a part through a free slot. After a failure, call [`StagingBuffers::wait`] next.
    ///
    /// # Safety
    /// The part's bytes are allocated and fit in a chunk, and nothing else accesses them until the part is finished
    /// or has failed.
    pub(super) unsafe fn start(
        &mut self,
        driver: &Driver,
        slot: usize,
        part: Part,
    ) -> Result<(), Failure> {
        let calls = &driver.calls;
        let Slot { memory, event, .. } = self.slots[slot];
        let code = match part.direction {
            Direction::HostToDevice => {
                // SAFETY: the caller's promise; the chunk belongs to these buffers and is free.
                unsafe {
                    part.host.blocks(part.bytes, |address, bytes, offset| {
                        copy_nonoverlapping(address as *const u8, memory.add(offset), bytes);
                    });
                }
                // SAFETY: as above; the chunk does not change until the event is reached.
                unsafe {
                    (calls.copy_to_device_async)(
                        part.device,
                        memory.cast(),
                        part.bytes,
                        self.stream,
                    )
                }
            }
            // SAFETY: as above.
            _ => unsafe {
                (calls.copy_to_host_async)(memory.cast(), part.device, part.bytes, self.stream)
            },
        };
        done(code)?;
        // SAFETY: both are live objects of these buffers.
        done(unsafe { (calls.event_record)(event, self.stream) })?;
        self.slots[slot].part = Some(part);
        Ok(())
    }

    /// Finishes the copy of a part that was begun in a slot and taken from it. After a failure, call
    /// [`StagingBuffers::wait`] next.
    ///
    /// # Safety
    /// As for [`StagingBuffers::start`], of the same part.
    pub(super) unsafe fn finish(
        &mut self,
        driver: &Driver,
        slot: usize,
        part: Part,
    ) -> Result<(), Failure> {
        let Slot { memory, event, .. } = self.slots[slot];
        // SAFETY: the event is live.
        done(unsafe { (driver.calls.event_synchronize)(event) })?;
        if part.direction == Direction::DeviceToHost {
            // SAFETY: the caller's promise; the device has written this many bytes of the chunk.
            unsafe {
                part.host.blocks(part.bytes, |address, bytes, offset| {
                    copy_nonoverlapping(memory.add(offset), address as *mut u8, bytes);
                });
            }
        }
        Ok(())
    }

    /// Makes sure after a failure that the device no longer uses a chunk or the caller's memory. The result of the
    /// wait is ignored, because it repeats the failure.
    pub(super) fn wait(&self, driver: &Driver) {
        // SAFETY: the stream is live.
        unsafe { (driver.calls.stream_synchronize)(self.stream) };
    }
}

// Parts of copies, which the threads take in turn, and reasons for a failure.

/// The reason why a copy was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A driver call failed with this status.
    Code(c_int),
    /// A thread panicked.
    Panicked,
    /// No thread exists, or none could get the resources that it needs. Nothing was copied.
    NoThreads,
}

/// A range of host memory in a list of ranges, and its start when they are placed one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedRange {
    start: usize,
    range: HostRange,
}

impl PlacedRange {
    /// Returns the ranges that are not empty, placed one after the other.
    pub(super) fn all(ranges: &[HostRange]) -> Vec<PlacedRange> {
        let mut start = 0;
        ranges
            .iter()
            .filter(|range| range.bytes > 0)
            .map(|&range| {
                let placed = PlacedRange { start, range };
                start += range.bytes;
                placed
            })
            .collect()
    }
}

/// The host side of a part: the position of its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostSide {
    /// At an address.
    Row(u64),
    /// At an offset into ranges that are placed one after the other.
    Ranges(*const [PlacedRange], usize),
}

// SAFETY: the ranges are plain data, which the caller of a copy keeps until the copy is done.
unsafe impl Send for HostSide {}

impl HostSide {
    fn advance(&mut self, bytes: usize) {
        match self {
            HostSide::Row(address) => *address += bytes as u64,
            HostSide::Ranges(_, offset) => *offset += bytes,
        }
    }

    /// Calls `copy` with the address and the length of each block of `bytes` bytes, and its offset from the first
    /// block.
    ///
    /// # Safety
    /// The ranges are live, and contain this many bytes.
    pub(super) unsafe fn blocks(self, bytes: usize, mut copy: impl FnMut(u64, usize, usize)) {
        let (ranges, mut offset) = match self {
            HostSide::Row(address) => return copy(address, bytes, 0),
            // SAFETY: the caller's promise.
            HostSide::Ranges(ranges, offset) => (unsafe { &*ranges }, offset),
        };
        let end = offset + bytes;
        let first = ranges.partition_point(|placed| placed.start + placed.range.bytes <= offset);
        for placed in &ranges[first..] {
            if offset == end {
                break;
            }
            let inside = offset - placed.start;
            let length = (placed.range.bytes - inside).min(end - offset);
            copy(placed.range.address + inside as u64, length, bytes - (end - offset));
            offset += length;
        }
    }
}

/// Contiguous bytes on the device, and their position on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) direction: Direction,
    pub(super) device: u64,
    pub(super) host: HostSide,
    pub(super) bytes: usize,
    /// The number of the copy that the part belongs to.
    pub(super) job: u64,
}

impl Part {
    /// Splits off the first bytes, up to the point where the host's address, or the offset into its ranges, is the
    /// next multiple of `unit`.
    pub(super) fn split(&mut self, unit: usize) -> Part {
        let place = match self.host {
            HostSide::Row(address) => address as usize,
            HostSide::Ranges(_, offset) => offset,
        };
        let bytes = self.bytes.min(unit - place % unit);
        let first = Part { bytes, ..*self };
        self.device += bytes as u64;
        self.host.advance(bytes);
        self.bytes -= bytes;
        first
    }
}

// The number of threads, and the division of a copy among them.

/// Chunks per thread: one for the device, one for the thread.
pub(super) const SLOTS: usize = 2;
/// The minimum and maximum size of a chunk. Each 2 MiB page of fresh memory is best touched by one thread only.
pub(super) const LEAST_CHUNK: usize = 64 << 10;
pub(super) const MOST_CHUNK: usize = 2 << 20;
/// The minimum size of a part, unless the chunks are smaller.
pub(super) const LEAST_PART: usize = 128 << 10;

pub(super) const THREADS: &str = "PYGPU_STAGING_THREADS";
pub(super) const BYTES: &str = "PYGPU_STAGING_BYTES";
const MOST_THREADS: usize = 256;

/// The number of threads, and the sizes that divide a copy among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The number of threads; if 0, nothing is staged.
    pub(super) threads: usize,
    /// The bytes per chunk; every thread has [`SLOTS`] chunks.
    pub(super) chunk: usize,
}

impl Sizes {
    /// Returns the sizes for at most `threads` threads and `bytes` bytes of page-locked memory.
    pub(super) fn new(threads: usize, bytes: usize) -> Sizes {
        let threads = threads.min(bytes / (SLOTS * LEAST_CHUNK));
        if threads == 0 {
            return Sizes { threads, chunk: LEAST_CHUNK };
        }
        let share = bytes / (SLOTS * threads);
        Sizes { threads, chunk: (1 << share.ilog2()).min(MOST_CHUNK) }
    }

    /// Returns the sizes from the environment. `PYGPU_STAGING_THREADS` is the number of threads (0: nothing is
    /// staged; default: the cores that the process may use, 2 to 16). `PYGPU_STAGING_BYTES` is the maximum
    /// page-locked memory per device (K, M, G or T may follow; default: 64 MiB).
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if a value cannot be parsed.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Sizes> {
        let allowed = "whole numbers from 0 to 256";
        let threads = environment::parse(THREADS, variable(THREADS), allowed, |text| {
            text.parse().ok().filter(|threads| *threads <= MOST_THREADS)
        })?;
        let allowed = "whole numbers from 128K, with K, M, G or T as the unit";
        let bytes = environment::parse(BYTES, variable(BYTES), allowed, |text| {
            environment::bytes(text).filter(|bytes| *bytes >= SLOTS * LEAST_CHUNK)
        })?;
        // In fresh memory, the system clears each page first, which takes more processor time than the copy.
        let usual = || available_parallelism().map_or(1, |cores| cores.get()).clamp(2, 16);
        Ok(Sizes::new(threads.unwrap_or_else(usual), bytes.unwrap_or(64 << 20)))
    }

    /// Returns the size of the parts that threads take, small enough for all threads to finish at about the same
    /// time.
    pub(super) fn part(&self, bytes: usize) -> usize {
        let share = bytes / (2 * self.threads.max(1));
        (1 << share.max(1).ilog2()).clamp(LEAST_PART.min(self.chunk), self.chunk)
    }
}
