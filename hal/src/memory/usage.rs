//! The uses of one memory by streams: those inside its fast path, and those after which later uses are ordered.
//! Operations use this through [`AccessGuard`](super::AccessGuard), the implementation of the lock protocol.

use super::DeviceMemory;
use super::order::{Access, ByteRanges, Streams};
use crate::error::{Error, Result};
use crate::event::EventOptions;
use crate::interruption;
use crate::locks::{NoCaptureBegins, ORDERING, Ranked, RankedGuard};
use crate::process::ProcessCondition;
use crate::recording;
use crate::stream::Stream;
use crate::submission::{SubmissionGuard, is_inside, outside_guards, some_may_capture};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Set when more than one stream uses the memory, or when it is freed.
const SHARED: u32 = 1 << 31;
/// Set when the memory is freed.
const FREED: u32 = 1 << 30;
/// Set while memory that was freed stays allocated because a graph uses it.
const DEFERRED: u32 = 1 << 29;
/// The bits of the number of uses inside the fast path.
const INSIDE: u32 = DEFERRED - 1;
/// A bit of that number which is set only if guards were leaked. No use then enters the fast path any longer, so the
/// number never reaches the flags.
const MANY: u32 = DEFERRED >> 1;

/// Signalled when the last use leaves the fast path of memory that has become shared.
static LEFT: ProcessCondition = ProcessCondition::new();

/// Streams that a memory no longer refers to; dropped after the locks are released.
pub(super) type ReleasedStreams = Streams<Arc<dyn Stream>>;
/// The uses of one memory since it became shared; `None` while only the allocating stream uses it. Boxed, because
/// most memory has none and each allocation moves its object.
pub(super) type SharedUses = Option<Box<ByteRanges<Arc<dyn Stream>>>>;

/// The stream of the last write of a memory, and the streams that have read it since.
type LastUses = (Arc<dyn Stream>, ReleasedStreams);

/// The waits of the host while one operation is being ordered. Each covers all uses of a memory on a stream so far.
/// Without this, other threads' new uses could make the host wait forever.
#[derive(Default)]
pub(super) struct WaitedUses(SmallVec<[WaitedUse; 2]>);

struct WaitedUse {
    usage: *const Usage,
    stream: u64,
    /// The memory's number of uses at that time, plus this operation's uses since then.
    count: u64,
}

impl WaitedUses {
    /// True if no use of the memory has been added since the host began to wait for the stream.
    fn cover(&self, usage: &Usage, stream: u64) -> bool {
        let count = usage.count.load(Ordering::Relaxed);
        self.0
            .iter()
            .any(|it| std::ptr::eq(it.usage, usage) && it.stream == stream && it.count == count)
    }

    /// Records that the host will wait for a stream. Called under the lock, before the wait.
    fn add(&mut self, usage: &Usage, stream: u64) {
        self.0.retain(|it| !(std::ptr::eq(it.usage, usage) && it.stream == stream));
        self.0.push(WaitedUse { usage, stream, count: usage.count.load(Ordering::Relaxed) });
    }

    /// Counts a use by the operation itself, whose work is not queued yet.
    fn count_own(&mut self, usage: &Usage) {
        let count = usage.count.fetch_add(1, Ordering::Relaxed);
        for it in &mut self.0 {
            if std::ptr::eq(it.usage, usage) && it.count == count {
                it.count += 1;
            }
        }
    }
}

/// The streams that use one memory.
pub(super) struct Usage {
    /// The number of uses inside the fast path, and the flags [`SHARED`], [`FREED`] and [`DEFERRED`].
    state: AtomicU32,
    allocation_stream: Arc<dyn Stream>,
    allocation_stream_id: u64,
    /// Locked while a use of shared memory is ordered and queued.
    uses: Ranked<SharedUses, ORDERING>,
    /// The number of uses ever added to `uses`; changed under its lock.
    count: AtomicU64,
    /// The number of [`GraphLease`](super::GraphLease)s.
    graphs: AtomicU32,
    /// The number of reading [`HostAccess`](super::HostAccess)es, or [`HOST_WRITES`]. It increases only under the
    /// lock of `uses`.
    host: AtomicU32,
}

/// The value while the host writes the memory.
const HOST_WRITES: u32 = u32::MAX;

impl Usage {
    pub(super) fn new(allocation_stream: Arc<dyn Stream>) -> Usage {
        Usage {
            state: AtomicU32::new(0),
            allocation_stream_id: allocation_stream.id(),
            allocation_stream,
            uses: Ranked::new(None),
            count: AtomicU64::new(0),
            graphs: AtomicU32::new(0),
            host: AtomicU32::new(0),
        }
    }

    pub(super) fn allocation_stream(&self) -> &Arc<dyn Stream> {
        &self.allocation_stream
    }

    #[inline]
    pub(super) fn enter(&self, stream_id: u64) -> bool {
        if stream_id != self.allocation_stream_id {
            return false;
        }
        // Sequentially consistent for `is_idle`.
        if self.state.fetch_add(1, Ordering::SeqCst) & (SHARED | MANY) == 0 {
            return true;
        }
        self.leave();
        false
    }

    #[inline]
    pub(super) fn leave(&self) {
        let before = self.state.fetch_sub(1, Ordering::Release);
        if before & SHARED != 0 && before & INSIDE == 1 {
            LEFT.notify();
        }
    }

    /// Locks the uses. A thread that locks several memory objects does so in the order of their addresses.
    pub(super) fn lock(&self) -> RankedGuard<'_, SharedUses> {
        self.uses.lock_at(std::ptr::from_ref(self).addr())
    }

    /// Ends the fast path: from now on, every use takes the lock. Waits for uses on the fast path, so the caller must
    /// not hold a lock that one of them may need.
    pub(super) fn share(&self) {
        let before = self.state.fetch_or(SHARED, Ordering::SeqCst);
        if before & INSIDE != 0 {
            LEFT.wait_while(|| self.state.load(Ordering::Acquire) & INSIDE != 0);
        }
    }

    /// Returns false while a use is being queued. A use that begins later sees what the caller has stored before, if
    /// both accesses are sequentially consistent.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        state & INSIDE == 0 && (state & SHARED == 0 || self.uses.try_lock().is_some())
    }

    /// Orders a use on `stream` after the uses that it conflicts with. The caller holds their lock. If the host has
    /// to wait for a stream that is not in `waited`, returns that stream.
    pub(super) fn order(
        &self,
        shared_uses: &mut SharedUses,
        memory: &DeviceMemory,
        stream: &Arc<dyn Stream>,
        access: Access,
        by_graph: bool,
        (waited, released): (&mut WaitedUses, &mut ReleasedStreams),
    ) -> Result<Option<Arc<dyn Stream>>> {
        let state = self.state.load(Ordering::Acquire);
        if state & FREED != 0 && !(by_graph && state & DEFERRED != 0) {
            return Err(freed(memory));
        }
        self.check_host(memory, access)?;
        let uses = shared_uses
            .get_or_insert_with(|| Box::new(ByteRanges::of(self.allocation_stream.clone())));
        let bytes = &memory.bytes_of_whole();
        for earlier in uses.behind(bytes, stream, access) {
            if !waited.cover(self, earlier.id()) && !queue_wait(memory, access, stream, &earlier)? {
                waited.add(self, earlier.id());
                return Ok(Some(earlier));
            }
        }
        let captures = some_may_capture() && stream.is_capturing()?;
        let goes_on = |it: &Arc<dyn Stream>| it.is_capturing().unwrap_or(false);
        if captures {
            for earlier in uses.captured(bytes).iter().filter(|it| goes_on(it)) {
                queue_wait(memory, access, stream, earlier)?;
            }
        }
        let is_kept = |it: &_| goes_on(it) && !(captures && access == Access::Write);
        uses.forget_captured(bytes, is_kept, released);
        if access == Access::Read {
            // Without this, memory that is only read for a long time would keep every stream ever used. Streams that
            // only this list refers to, and that are done, need not be waited for.
            let is_done = |reader: &Arc<dyn Stream>, references| {
                Arc::strong_count(reader) == references && matches!(reader.has_run(), Ok(true))
            };
            uses.forget_readers(bytes, is_done, released);
        }
        waited.count_own(self);
        let remembered = stream.for_memory();
        let is_captured = |it: &_| some_may_capture() && !captures && goes_on(it);
        uses.add(bytes, remembered.as_ref().unwrap_or(stream), access, is_captured, released);
        Ok(None)
    }

    /// Checks that the host does not use the memory in a conflicting way.
    ///
    /// # Errors
    /// `InvalidArgument` if it does.
    fn check_host(&self, memory: &DeviceMemory, access: Access) -> Result<()> {
        let how = match self.host.load(Ordering::Acquire) {
            0 => return Ok(()),
            HOST_WRITES => "writes",
            _ if access == Access::Read => return Ok(()),
            _ => "reads",
        };
        Err(Error::invalid(
            "memory",
            format!("the host {how} the memory at {:#x}; drop its slice first", memory.address()),
        ))
    }

    /// Begins a use by the host. Later uses do not wait for it. Returns the streams that the host has to wait for.
    pub(super) fn enter_host(
        &self,
        memory: &DeviceMemory,
        access: Access,
    ) -> Result<ReleasedStreams> {
        self.share();
        let mut shared_uses = self.lock();
        if self.is_retired() {
            return Err(freed(memory));
        }
        self.check_host(memory, access)?;
        let more = |host: u32| match access {
            Access::Write => (host == 0).then_some(HOST_WRITES),
            // Even if many are leaked, the count never becomes `HOST_WRITES`.
            Access::Read => host.checked_add(1).filter(|&it| it < HOST_WRITES),
        };
        self.host
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .map_err(|_| Error::overflow("memory", "the host reads the memory too often"))?;
        let uses = shared_uses
            .get_or_insert_with(|| Box::new(ByteRanges::of(self.allocation_stream.clone())));
        Ok(uses.last(access))
    }

    pub(super) fn leave_host(&self, access: Access) {
        match access {
            Access::Write => self.host.store(0, Ordering::Release),
            Access::Read => drop(self.host.fetch_sub(1, Ordering::Release)),
        }
    }

    /// Returns the stream of the last write, or the stream of the allocation if the last write was on another
    /// device's stream.
    ///
    /// # Errors
    /// As for [`interruption::before_waiting`], if several streams use the memory.
    pub(super) fn writer(&self) -> Result<Arc<dyn Stream>> {
        if self.state.load(Ordering::Acquire) & SHARED == 0 {
            return Ok(self.allocation_stream.clone());
        }
        interruption::before_waiting("memory")?;
        let uses = self.lock();
        let writer =
            uses.as_deref().map(ByteRanges::writer).filter(|it| self.is_of_device(it.as_ref()));
        Ok(writer.unwrap_or(&self.allocation_stream).clone())
    }

    /// Returns the number of the memory's references to a stream; `None` while the memory is locked.
    pub(super) fn references(&self, stream: u64) -> Option<usize> {
        // If the lock is held, its holder uses the stream.
        let uses = self.uses.try_lock()?;
        let used = uses.as_ref().map_or(0, |uses| uses.references(stream));
        Some(used + usize::from(self.allocation_stream_id == stream))
    }

    /// Returns the total number of references to a stream that the memory refers to.
    pub(super) fn strong_count(&self, stream: u64) -> Option<usize> {
        if self.allocation_stream_id == stream {
            return Some(Arc::strong_count(&self.allocation_stream));
        }
        self.uses.try_lock()?.as_ref()?.find(stream).map(Arc::strong_count)
    }

    /// Returns the allocating stream if no other stream has used the memory. The memory must be unreachable from
    /// other threads.
    pub(super) fn sole_stream(&self) -> Option<&dyn Stream> {
        (self.state.load(Ordering::Acquire) & SHARED == 0)
            .then_some(self.allocation_stream.as_ref())
    }

    pub(super) fn is_retired(&self) -> bool {
        self.state.load(Ordering::Acquire) & FREED != 0
    }

    /// Ends all use without a lock; returns false if use has already ended. For memory that a driver can no longer
    /// reach.
    pub(super) fn abandon(&self) -> bool {
        self.state.fetch_or(SHARED | FREED, Ordering::AcqRel) & FREED == 0
    }

    /// Called before [`Usage::retire`]. An error leaves the memory unchanged.
    ///
    /// # Errors
    /// As for [`interruption::before_waiting`], if the memory is in use.
    pub(super) fn before_retiring(&self) -> Result<()> {
        let is_used =
            || self.state.load(Ordering::Acquire) & INSIDE != 0 || self.uses.try_lock().is_none();
        if !may_wait_for_uses() && is_used() {
            before_waiting_for_uses()?;
        }
        Ok(())
    }

    /// Ends all use, and returns the stream after whose work the memory may be freed; `None` if a graph uses the
    /// memory and will free it.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was already freed; the driver's error if neither events nor the host could wait
    /// for another stream's work.
    pub(super) fn retire(&self, memory: &DeviceMemory) -> Result<Option<Arc<dyn Stream>>> {
        let retired = if !may_wait_for_uses() {
            // A user of the memory may be waiting for the kernel, function or guard that this thread is in.
            let is_used = self.state.fetch_or(SHARED, Ordering::AcqRel) & INSIDE != 0;
            match self.uses.try_lock() {
                Some(mut shared_uses) if !is_used => self.retire_under(&mut shared_uses)?,
                _ => return before_waiting_for_uses().map(|()| None),
            }
        } else {
            self.share();
            self.retire_under(&mut self.lock())?
        };
        let Some((writer, readers)) = retired else { return Ok(None) };
        wait_for_all(memory, &writer, &readers)?;
        Ok(Some(writer))
    }

    fn retire_under(&self, shared_uses: &mut SharedUses) -> Result<Option<LastUses>> {
        if !self.abandon() {
            return Err(Error::handle("free", "the memory was freed already"));
        }
        if self.graphs.load(Ordering::Acquire) > 0 {
            // Launches are ordered after the uses so far, and the free after the launches.
            self.state.fetch_or(DEFERRED, Ordering::AcqRel);
            return Ok(None);
        }
        Ok(Some(self.take(shared_uses)))
    }

    /// Returns the stream after whose work memory may be freed that was released while a graph used it.
    pub(super) fn retire_deferred(&self, memory: &DeviceMemory) -> Result<Arc<dyn Stream>> {
        let (writer, readers) = self.take(&mut self.lock());
        wait_for_all(memory, &writer, &readers)?;
        Ok(writer)
    }

    fn take(&self, shared_uses: &mut SharedUses) -> LastUses {
        let own = || self.allocation_stream.clone();
        let Some(uses) = shared_uses.take() else { return (own(), ReleasedStreams::new()) };
        let (writer, mut earlier) = uses.into_parts();
        if self.is_of_device(writer.as_ref()) {
            return (writer, earlier);
        }
        earlier.push(writer);
        (own(), earlier)
    }

    /// Returns false for a stream of another device, to or from which the memory was copied. Memory freed on that
    /// stream would be reused for the wrong device.
    fn is_of_device(&self, stream: &dyn Stream) -> bool {
        stream.device_id() == self.allocation_stream.device_id()
    }

    /// Returns true while a graph uses the memory.
    pub(super) fn is_held_by_graph(&self) -> bool {
        self.graphs.load(Ordering::Acquire) > 0
    }

    /// Begins one graph's use.
    pub(super) fn enter_graph(&self) {
        self.graphs.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends one graph's use. Returns true if the free was deferred until now; the caller then retires the memory
    /// again.
    pub(super) fn leave_graph(&self) -> bool {
        if self.graphs.fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        let _shared_uses = self.lock();
        let last = self.graphs.load(Ordering::Acquire) == 0;
        last && self.state.fetch_and(!DEFERRED, Ordering::AcqRel) & DEFERRED != 0
    }
}

/// Returns false if uses of the memory may be waiting for this thread: for a kernel that it interrupts, for the
/// stream that runs its function, or for its own guard.
pub(super) fn may_wait_for_uses() -> bool {
    interruption::may_wait() && !is_inside()
}

fn before_waiting_for_uses() -> Result<()> {
    interruption::before_waiting("free")?;
    outside_guards("free")
}

pub(super) fn freed(memory: &DeviceMemory) -> Error {
    Error::handle("memory", format!("the memory at {:#x} has been freed", memory.address()))
}

#[cold]
pub(super) fn lost(memory: &DeviceMemory) -> Error {
    let (address, device) = (memory.address(), memory.device.id());
    let detail = format!(
        "the memory at {address:#x} is from before device {device} was reset, which freed it; \
         allocate it again"
    );
    Error::handle("memory", detail)
}

/// Makes `later` wait for several streams before memory is freed on it. The caller holds no lock.
fn wait_for_all(
    memory: &DeviceMemory,
    later: &Arc<dyn Stream>,
    earlier: &[Arc<dyn Stream>],
) -> Result<()> {
    for stream in earlier {
        let no_capture_begins = NoCaptureBegins::lock();
        let queueing = SubmissionGuard::under_lock(later.id());
        let queued = queue_wait(memory, Access::Write, later, stream);
        drop((queueing, no_capture_begins));
        match queued {
            Ok(true) => {}
            Ok(false) => stream.drain()?,
            Err(error) => {
                // Without an event, the host has to wait, because freeing too early is worse.
                log::warn!("ordering a free behind a stream failed, waiting for it: {error}");
                stream.drain()?;
            }
        }
    }
    Ok(())
}

/// Makes `later`, a stream that uses the memory, wait for the work queued on `earlier` so far. Returns false if only
/// the host can wait for that work. The caller holds [`NoCaptureBegins`] and the [`SubmissionGuard`] of `later`.
fn queue_wait(
    memory: &DeviceMemory,
    access: Access,
    later: &Arc<dyn Stream>,
    earlier: &Arc<dyn Stream>,
) -> Result<bool> {
    if later.id() == earlier.id() || earlier.has_run()? {
        return Ok(true);
    }
    match (later.is_capturing()?, earlier.is_capturing()?) {
        // Captured work cannot wait for work outside the capture.
        (true, false) => return Ok(false),
        // Captured work does not run, so nothing has to be waited for. An event would make the later stream part of
        // the capture.
        (false, true) => return earlier.check_before_capture().map(|()| true),
        // All work before a capture has run. An event would join two captures, which ends both.
        (true, true) if !earlier.has_captured(memory, access)? => return Ok(true),
        _ => {}
    }
    // The earlier stream may belong to another device than the memory.
    let event = earlier.create_event(EventOptions::ORDERING)?;
    earlier.record(event.as_ref())?;
    recording::wait_event(later.as_ref(), event.as_ref())?;
    Ok(true)
}
