//! Which streams use a memory, and how their work is ordered.
//!
//! Most memory is only ever used by the stream that it was allocated on. That case costs two
//! atomic additions: a use enters, queues its work and leaves. As soon as another stream
//! comes, the memory is marked as shared, those inside are waited for (they are only
//! queueing), and from then on uses take one lock, under which streams are made to wait for
//! each other with events.

use super::DeviceMemory;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::EventOptions;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How an operation uses a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The bytes stay as they are.
    Read,
    /// Some of the bytes change.
    Write,
}

/// Set once the memory is used by more than one stream, or freed.
const SHARED: u32 = 1 << 31;

/// Held while uses of shared memory are ordered and queued.
static ORDERING: Mutex<()> = Mutex::new(());

enum Writer {
    /// The memory's own stream.
    Home,
    Other(Arc<dyn Stream>),
    /// Nobody may use the memory any longer.
    Freed,
}

struct Shared {
    /// The stream of the last write.
    writer: Writer,
    /// Streams that have read since, and waited for the writer.
    readers: SmallVec<[Arc<dyn Stream>; 2]>,
}

/// The streams that use one memory.
pub(super) struct Usage {
    /// The number of uses inside the fast path, and [`SHARED`].
    state: AtomicU32,
    home: Arc<dyn Stream>,
    home_id: u64,
    shared: Mutex<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks protect is valid after every step, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Usage {
    pub(super) fn new(home: Arc<dyn Stream>) -> Usage {
        Usage {
            state: AtomicU32::new(0),
            home_id: home.id(),
            home,
            shared: Mutex::new(Shared { writer: Writer::Home, readers: SmallVec::new() }),
        }
    }

    pub(super) fn home(&self) -> &Arc<dyn Stream> {
        &self.home
    }

    fn writer<'a>(&'a self, shared: &'a Shared) -> Option<&'a Arc<dyn Stream>> {
        match &shared.writer {
            Writer::Home => Some(&self.home),
            Writer::Other(stream) => Some(stream),
            Writer::Freed => None,
        }
    }

    fn enter(&self, stream_id: u64) -> bool {
        if stream_id != self.home_id {
            return false;
        }
        if self.state.fetch_add(1, Ordering::Acquire) & SHARED == 0 {
            return true;
        }
        self.leave();
        false
    }

    fn leave(&self) {
        self.state.fetch_sub(1, Ordering::Release);
    }

    /// Ends the fast path: after this every use takes the lock.
    fn share(&self) {
        self.state.fetch_or(SHARED, Ordering::AcqRel);
        while self.state.load(Ordering::Acquire) & !SHARED != 0 {
            std::thread::yield_now();
        }
    }

    /// Orders a use on `stream` behind the uses that it conflicts with.
    fn order(&self, memory: &DeviceMemory, stream: &Arc<dyn Stream>, access: Access) -> Result<()> {
        let mut shared = lock(&self.shared);
        let Some(writer) = self.writer(&shared).cloned() else {
            return Err(freed(memory));
        };
        let id = stream.id();
        if shared.readers.iter().any(|reader| reader.id() == id) {
            if access == Access::Read {
                return Ok(());
            }
        } else if writer.id() != id {
            wait_for(memory.device.as_ref(), stream, &writer)?;
        }
        match access {
            Access::Read if writer.id() == id => {}
            Access::Read => {
                // Streams that only this list still holds, and that are done, need not be
                // waited for: memory that is read for long would keep all there ever were.
                let is_needed = |reader: &mut Arc<dyn Stream>| {
                    Arc::strong_count(reader) > 1 || !matches!(reader.query(), Ok(true))
                };
                shared.readers.retain(is_needed);
                shared.readers.push(stream.clone());
            }
            Access::Write => {
                for reader in shared.readers.iter().filter(|reader| reader.id() != id) {
                    wait_for(memory.device.as_ref(), stream, reader)?;
                }
                shared.writer = Writer::Other(stream.clone());
                shared.readers.clear();
            }
        }
        Ok(())
    }

    /// The stream of memory that no other has used; nobody else can reach it.
    pub(super) fn sole_stream(&self) -> Option<&dyn Stream> {
        (self.state.load(Ordering::Acquire) & SHARED == 0).then_some(self.home.as_ref())
    }

    pub(super) fn is_retired(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHARED != 0
            && matches!(lock(&self.shared).writer, Writer::Freed)
    }

    /// Ends all use, and gives the stream behind whose work the memory may be freed.
    pub(super) fn retire(&self, device: &dyn Device) -> Result<Arc<dyn Stream>> {
        let _ordering = lock(&ORDERING);
        self.share();
        let mut shared = lock(&self.shared);
        let Some(writer) = self.writer(&shared).cloned() else {
            return Err(Error::handle("free", "the memory was freed already"));
        };
        shared.writer = Writer::Freed;
        for reader in shared.readers.drain(..) {
            if let Err(error) = wait_for(device, &writer, &reader) {
                // Without an event the host has to wait: freeing early would be worse.
                log::warn!("ordering a free behind a stream failed, waiting for it: {error}");
                reader.synchronize()?;
            }
        }
        Ok(writer)
    }
}

pub(super) fn freed(memory: &DeviceMemory) -> Error {
    Error::handle("memory", format!("the memory at {:#x} has been freed", memory.address()))
}

#[cold]
fn lost(memory: &DeviceMemory) -> Error {
    let (address, device) = (memory.address(), memory.device.id());
    let detail = format!("the memory at {address:#x} went when device {device} was reset");
    Error::handle("memory", detail)
}

/// Makes `later` wait for the work queued on `earlier` so far.
fn wait_for(device: &dyn Device, later: &Arc<dyn Stream>, earlier: &Arc<dyn Stream>) -> Result<()> {
    if later.id() == earlier.id() || earlier.query()? {
        return Ok(());
    }
    if later.is_capturing()? && !earlier.is_capturing()? {
        // Captured work cannot wait for work outside the capture.
        return earlier.synchronize();
    }
    let event = device.create_event(EventOptions::ORDERING)?;
    earlier.record(event.as_ref())?;
    later.wait_event(event.as_ref())
}

/// Uses of several memories by one operation, held while its work is queued.
pub struct AccessGuard<'a> {
    fast: SmallVec<[&'a DeviceMemory; 4]>,
    _ordering: Option<MutexGuard<'static, ()>>,
}

impl fmt::Debug for AccessGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessGuard({} memories)", self.fast.len())
    }
}

impl<'a> AccessGuard<'a> {
    /// Orders an operation that is about to be queued on `stream` behind all earlier work
    /// that it conflicts with. Queue it while the guard lives.
    ///
    /// # Errors
    /// `InvalidHandle` if a memory has been freed; the driver's error if streams cannot be
    /// made to wait. Nothing has been queued then.
    pub fn acquire(
        stream: &Arc<dyn Stream>,
        uses: &[(&'a DeviceMemory, Access)],
    ) -> Result<AccessGuard<'a>> {
        if let Some((memory, _)) = uses.iter().find(|(memory, _)| memory.is_gone()) {
            return Err(lost(memory));
        }
        let id = stream.id();
        let mut guard = AccessGuard { fast: SmallVec::new(), _ordering: None };
        if uses.iter().all(|&(memory, _)| {
            let entered = memory.usage.enter(id);
            if entered {
                guard.fast.push(memory);
            }
            entered
        }) {
            return Ok(guard);
        }
        // Leave everything before waiting for the lock: its holder may wait for us to leave.
        drop(guard);
        let ordering = lock(&ORDERING);
        for &(memory, access) in uses {
            memory.usage.share();
            memory.usage.order(memory, stream, access)?;
        }
        Ok(AccessGuard { fast: SmallVec::new(), _ordering: Some(ordering) })
    }
}

impl Drop for AccessGuard<'_> {
    fn drop(&mut self) {
        for memory in &self.fast {
            memory.usage.leave();
        }
    }
}
