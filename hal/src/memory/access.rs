//! Guards that order the streams which use a memory.
//!
//! Most memory is only ever used by the stream that it was allocated on. That case costs two
//! atomic additions: a use enters, queues its work and leaves. As soon as another stream
//! comes, the memory is marked as shared, those inside are waited for (they are only
//! queueing), and from then on uses take one lock, under which streams are made to wait for
//! each other with events, by the rule of [`super::order`].
//!
//! Locks are taken in this order: the process's ordering lock, that of one memory, that of
//! leaving.
//! Nothing foreign runs under them: streams that are no longer needed are dropped after the
//! locks, because an owner's destructor may do anything.

use super::DeviceMemory;
use super::order::{Access, Streams, Uses};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::EventOptions;
use crate::process::ProcessLock;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Set once the memory is used by more than one stream, or freed.
const SHARED: u32 = 1 << 31;
/// Set once the memory is freed.
const FREED: u32 = 1 << 30;
/// The number of uses inside the fast path.
const INSIDE: u32 = FREED - 1;

/// Held while uses of shared memory are ordered and queued.
static ORDERING: ProcessLock = ProcessLock::new();

/// Signalled when the last use leaves the fast path of a memory that has become shared.
static LEFT: ProcessLock = ProcessLock::new();

type Forgotten = Streams<Arc<dyn Stream>>;

/// The streams that use one memory.
pub(super) struct Usage {
    /// The number of uses inside the fast path, [`SHARED`] and [`FREED`].
    state: AtomicU32,
    home: Arc<dyn Stream>,
    home_id: u64,
    /// The uses since the memory became shared; none before, when all are the home stream's.
    uses: Mutex<Option<Uses<Arc<dyn Stream>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks protect is valid after every step, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Usage {
    pub(super) fn new(home: Arc<dyn Stream>) -> Usage {
        Usage { state: AtomicU32::new(0), home_id: home.id(), home, uses: Mutex::new(None) }
    }

    pub(super) fn home(&self) -> &Arc<dyn Stream> {
        &self.home
    }

    #[inline]
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

    #[inline]
    fn leave(&self) {
        let before = self.state.fetch_sub(1, Ordering::Release);
        if before & SHARED != 0 && before & INSIDE == 1 {
            LEFT.notify();
        }
    }

    /// Ends the fast path: after this every use takes the lock.
    fn share(&self) {
        let before = self.state.fetch_or(SHARED, Ordering::AcqRel);
        if before & INSIDE != 0 {
            LEFT.wait_while(|| self.state.load(Ordering::Acquire) & INSIDE != 0);
        }
    }

    /// Orders a use on `stream` behind the uses that it conflicts with.
    fn order(
        &self,
        memory: &DeviceMemory,
        stream: &Arc<dyn Stream>,
        access: Access,
        forgotten: &mut Forgotten,
    ) -> Result<()> {
        if self.is_retired() {
            return Err(freed(memory));
        }
        let mut uses = lock(&self.uses);
        let uses = uses.get_or_insert_with(|| Uses::of(self.home.clone()));
        for earlier in uses.behind(stream, access) {
            wait_for(memory.device.as_ref(), stream, &earlier)?;
        }
        if access == Access::Read {
            // Memory that is read for long would keep all the streams there ever were:
            // those that only this list holds, and that are done, need not be waited for.
            let is_done = |reader: &Arc<dyn Stream>| {
                Arc::strong_count(reader) == 1 && matches!(reader.query(), Ok(true))
            };
            uses.forget_readers(is_done, forgotten);
        }
        uses.add(stream, access, forgotten);
        Ok(())
    }

    /// The stream of memory that no other has used; nobody else can reach it.
    pub(super) fn sole_stream(&self) -> Option<&dyn Stream> {
        (self.state.load(Ordering::Acquire) & SHARED == 0).then_some(self.home.as_ref())
    }

    pub(super) fn is_retired(&self) -> bool {
        self.state.load(Ordering::Acquire) & FREED != 0
    }

    /// Ends all use without a lock; false if it was ended already. For memory that a driver
    /// cannot reach any longer.
    pub(super) fn abandon(&self) -> bool {
        self.state.fetch_or(SHARED | FREED, Ordering::AcqRel) & FREED == 0
    }

    /// Ends all use, and returns the stream behind whose work the memory may be freed.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was freed already; the driver's error if neither events
    /// nor the host could wait for another stream's work.
    pub(super) fn retire(&self, device: &dyn Device) -> Result<Arc<dyn Stream>> {
        // Dropped behind the locks.
        let readers;
        let _ordering = ORDERING.lock();
        self.share();
        if !self.abandon() {
            return Err(Error::handle("free", "the memory was freed already"));
        }
        let uses = lock(&self.uses).take();
        let Some(uses) = uses else { return Ok(self.home.clone()) };
        let writer;
        (writer, readers) = uses.into_parts();
        for reader in &readers {
            if let Err(error) = wait_for(device, &writer, reader) {
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
pub(super) fn lost(memory: &DeviceMemory) -> Error {
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
    /// Behind the lock, because fields are dropped in order.
    _forgotten: Forgotten,
}

impl fmt::Debug for AccessGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessGuard({} memories)", self.fast.len())
    }
}

impl<'a> AccessGuard<'a> {
    /// Orders an operation that is about to be queued on `stream` behind all earlier work
    /// that it conflicts with. Queue it while the guard lives, and do nothing else meanwhile:
    /// other threads may be waiting for the guard.
    ///
    /// # Errors
    /// `InvalidHandle` if a memory has been freed; the driver's error if streams cannot be
    /// made to wait. Nothing has been queued then.
    pub fn acquire(
        stream: &Arc<dyn Stream>,
        uses: &[(&'a DeviceMemory, Access)],
    ) -> Result<AccessGuard<'a>> {
        if let Some(guard) = Self::try_fast(stream, uses)? {
            return Ok(guard);
        }
        let mut forgotten = Forgotten::new();
        let ordering = ORDERING.lock();
        for &(memory, access) in uses {
            if memory.is_inherited() {
                // What the parent's threads left in the object says nothing here; without
                // any state of its own, each use waits for those before it.
                memory.device.synchronize()?;
                continue;
            }
            memory.usage.share();
            memory.usage.order(memory, stream, access, &mut forgotten)?;
        }
        let fast = SmallVec::new();
        Ok(AccessGuard { fast, _ordering: Some(ordering), _forgotten: forgotten })
    }

    /// A guard that needs no lock and no wait, if no other stream uses the memories.
    #[inline]
    fn try_fast(
        stream: &Arc<dyn Stream>,
        uses: &[(&'a DeviceMemory, Access)],
    ) -> Result<Option<AccessGuard<'a>>> {
        let id = stream.id();
        let mut guard =
            AccessGuard { fast: SmallVec::new(), _ordering: None, _forgotten: Forgotten::new() };
        for &(memory, _) in uses {
            if memory.is_gone() {
                return Err(lost(memory));
            }
            // What has been entered is left before anybody waits for the lock: its holder may
            // wait for that.
            if memory.is_inherited() || !memory.usage.enter(id) {
                return Ok(None);
            }
            guard.fast.push(memory);
        }
        Ok(Some(guard))
    }
}

impl Drop for AccessGuard<'_> {
    fn drop(&mut self) {
        for memory in &self.fast {
            memory.usage.leave();
        }
    }
}
