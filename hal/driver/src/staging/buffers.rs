//! The staging buffers of one copying thread: a stream, and page-locked chunks. The device copies
//! from or to one chunk while the thread fills or empties another.

use super::part::{Failure, Part};
use super::sizes::SLOTS;
use crate::calls::{Handle, NO_TIMING, NON_BLOCKING};
use crate::errors::Driver;
use hal::status::Status;
use hal::stream::Direction;
use std::ffi::{c_int, c_void};
use std::ptr::{copy_nonoverlapping, null_mut};

/// A chunk, and the part of a copy that is under way in it.
#[derive(Debug)]
struct Slot {
    memory: *mut u8,
    /// Recorded behind the device's copy; 0 until it is made.
    event: Handle,
    part: Option<Part>,
}

/// A stream and its chunks. Handles are those of the context that is current in every call.
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

    /// Gives back what it has. Nothing is under way.
    pub(super) fn free(self, driver: &Driver) {
        let calls = &driver.calls;
        let note = |what: &str, code: c_int| {
            if code != Status::SUCCESS {
                log::warn!("freeing {what} of the staging buffers failed: status {code}");
            }
        };
        for event in self.slots.iter().map(|slot| slot.event).filter(|event| *event != 0) {
            // SAFETY: here and below, the buffers made the object and nobody else has it.
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

    /// True if nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.part.is_none())
    }

    /// What is under way in a slot, which counts as free from now on.
    pub(super) fn take(&mut self, slot: usize) -> Option<Part> {
        self.slots[slot].part.take()
    }

    /// Begins to copy a part through a free slot. After a failure, [`StagingBuffers::wait`] comes next.
    ///
    /// # Safety
    /// The part's bytes are allocated, and nothing else accesses them until it is finished or
    /// has failed; they are no more than a chunk.
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
                // SAFETY: the caller's promise; the chunk is the buffers's, and free.
                unsafe {
                    part.host.blocks(part.bytes, |address, bytes, offset| {
                        copy_nonoverlapping(address as *const u8, memory.add(offset), bytes);
                    });
                }
                // SAFETY: as above; the chunk stays as it is until the event is reached.
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
        // SAFETY: both are live objects of the buffers.
        done(unsafe { (calls.event_record)(event, self.stream) })?;
        self.slots[slot].part = Some(part);
        Ok(())
    }

    /// Ends the copying of a part that was begun in a slot and taken from it. After a failure,
    /// [`StagingBuffers::wait`] comes next.
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
            // SAFETY: the caller's promise; the device has written so many bytes of the chunk.
            unsafe {
                part.host.blocks(part.bytes, |address, bytes, offset| {
                    copy_nonoverlapping(memory.add(offset), address as *mut u8, bytes);
                });
            }
        }
        Ok(())
    }

    /// Keeps the device from using a chunk, or the caller's memory, after a failure. What the
    /// wait itself returns says nothing new.
    pub(super) fn wait(&self, driver: &Driver) {
        // SAFETY: the stream is live.
        unsafe { (driver.calls.stream_synchronize)(self.stream) };
    }
}
