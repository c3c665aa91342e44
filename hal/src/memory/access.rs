//! Guards that order the streams which use a memory.
//!
//! Most memory is only ever used by the stream that it was allocated on. That case costs two
//! atomic additions: a use enters, queues its work and leaves. As soon as another stream
//! comes, the memory is marked as shared, those inside are waited for (they are only
//! queueing), and from then on uses take one lock, under which streams are made to wait for
//! each other with events, by the rule of [`super::order`].
//!
//! Locks are taken in the order of `crate::locks`.
//! Nothing foreign runs under them: streams that are no longer needed are dropped after the
//! locks, because an owner's destructor may do anything.

use super::DeviceMemory;
use super::order::{Access, Streams, Uses};
use crate::attempt;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::EventOptions;
use crate::locks::{Ordered, Ranked, USES};
use crate::process::ProcessLock;
use crate::stream::{self, Stream};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set once the memory is used by more than one stream, or freed.
const SHARED: u32 = 1 << 31;
/// Set once the memory is freed.
const FREED: u32 = 1 << 30;
/// Set while memory that was freed stays allocated because a graph uses it.
const DEFERRED: u32 = 1 << 29;
/// The number of uses inside the fast path.
const INSIDE: u32 = DEFERRED - 1;

/// Held while uses of shared memory are ordered and queued.
static ORDERING: ProcessLock = ProcessLock::new();

/// Keeps everybody from ordering work while a stream begins or ends a capture: what is asked of a
/// stream to order work behind it would end a capture that had begun in between.
pub(crate) fn without_ordering() -> Ordered {
    Ordered::lock(&ORDERING)
}

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
    uses: Ranked<Option<Uses<Arc<dyn Stream>>>, USES>,
    /// The number of [`GraphHold`](super::GraphHold)s.
    graphs: AtomicU32,
}

impl Usage {
    pub(super) fn new(home: Arc<dyn Stream>) -> Usage {
        Usage {
            state: AtomicU32::new(0),
            home_id: home.id(),
            home,
            uses: Ranked::new(None),
            graphs: AtomicU32::new(0),
        }
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
        by_graph: bool,
        forgotten: &mut Forgotten,
    ) -> Result<()> {
        let mut uses = self.uses.lock();
        let state = self.state.load(Ordering::Acquire);
        if state & FREED != 0 && !(by_graph && state & DEFERRED != 0) {
            return Err(freed(memory));
        }
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
        match stream.for_memory() {
            Some(remembered) => uses.add(&remembered, access, forgotten),
            None => uses.add(stream, access, forgotten),
        }
        Ok(())
    }

    /// The stream of the last write.
    pub(super) fn writer(&self) -> Arc<dyn Stream> {
        self.uses.lock().as_ref().map_or(&self.home, Uses::writer).clone()
    }

    /// How often the memory refers to a stream; `None` while it is being used.
    pub(super) fn references(&self, stream: u64) -> Option<usize> {
        // Somebody who has the lock uses the stream.
        let uses = self.uses.try_lock()?;
        let used = uses.as_ref().map_or(0, |uses| uses.references(stream));
        Some(used + usize::from(self.home_id == stream))
    }

    /// How many references there are to a stream that the memory refers to, in all.
    pub(super) fn strong_count(&self, stream: u64) -> Option<usize> {
        if self.home_id == stream {
            return Some(Arc::strong_count(&self.home));
        }
        self.uses.try_lock()?.as_ref()?.find(stream).map(Arc::strong_count)
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

    /// Ends all use, and returns the stream behind whose work the memory may be freed; `None` if
    /// a graph uses it, whose end frees it.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was freed already; the driver's error if neither events
    /// nor the host could wait for another stream's work.
    pub(super) fn retire(&self, device: &dyn Device) -> Result<Option<Arc<dyn Stream>>> {
        // Dropped behind the locks.
        let readers;
        let _ordering = Ordered::lock(&ORDERING);
        self.share();
        if !self.abandon() {
            return Err(Error::handle("free", "the memory was freed already"));
        }
        let writer;
        (writer, readers) = self.take_uses();
        wait_for_all(device, &writer, &readers)?;
        let mut uses = self.uses.lock();
        if self.graphs.load(Ordering::Acquire) == 0 {
            return Ok(Some(writer));
        }
        *uses = Some(Uses::of(writer));
        self.state.fetch_or(DEFERRED, Ordering::AcqRel);
        Ok(None)
    }

    /// The stream behind whose work memory may be freed that was freed while a graph used it.
    pub(super) fn retire_deferred(&self, device: &dyn Device) -> Result<Arc<dyn Stream>> {
        // Dropped behind the lock.
        let readers;
        let _ordering = Ordered::lock(&ORDERING);
        let writer;
        (writer, readers) = self.take_uses();
        wait_for_all(device, &writer, &readers)?;
        Ok(writer)
    }

    /// The stream of the last write, and those that have read since.
    fn take_uses(&self) -> (Arc<dyn Stream>, Forgotten) {
        match self.uses.lock().take() {
            Some(uses) => uses.into_parts(),
            None => (self.home.clone(), Forgotten::new()),
        }
    }

    /// True while a graph uses the memory.
    pub(super) fn is_held_by_graph(&self) -> bool {
        self.graphs.load(Ordering::Acquire) > 0
    }

    /// Begins one graph's use.
    pub(super) fn enter_graph(&self) {
        self.graphs.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends one graph's use. True if this leaves a deferred free to the caller, who retires the
    /// memory again.
    pub(super) fn leave_graph(&self) -> bool {
        if self.graphs.fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        let _uses = self.uses.lock();
        let last = self.graphs.load(Ordering::Acquire) == 0;
        last && self.state.fetch_and(!DEFERRED, Ordering::AcqRel) & DEFERRED != 0
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

/// Makes `later` wait for several streams before memory is freed on it.
fn wait_for_all(
    device: &dyn Device,
    later: &Arc<dyn Stream>,
    earlier: &[Arc<dyn Stream>],
) -> Result<()> {
    for stream in earlier {
        if let Err(error) = wait_for(device, later, stream) {
            // Without an event the host has to wait: freeing early would be worse.
            log::warn!("ordering a free behind a stream failed, waiting for it: {error}");
            stream.synchronize()?;
        }
    }
    Ok(())
}

/// Makes `later` wait for the work queued on `earlier` so far.
fn wait_for(device: &dyn Device, later: &Arc<dyn Stream>, earlier: &Arc<dyn Stream>) -> Result<()> {
    if later.id() == earlier.id() || earlier.query()? {
        return Ok(());
    }
    match (later.is_capturing()?, earlier.is_capturing()?) {
        // Captured work cannot wait for work outside the capture.
        (true, false) => return earlier.synchronize(),
        // What is captured does not run, so there is nothing to wait for in it; an event would make
        // the later stream part of the capture.
        (false, true) => return earlier.check_before_capture(),
        _ => {}
    }
    let event = device.create_event(EventOptions::ORDERING)?;
    earlier.record(event.as_ref())?;
    later.wait_event(event.as_ref())
}

/// A memory, and how an operation uses it.
pub type Use<'a> = (&'a Arc<DeviceMemory>, Access);

/// Memories inside the fast path, which are left when this is dropped.
#[derive(Default)]
struct Entered<'a>(SmallVec<[&'a DeviceMemory; 4]>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        for memory in &self.0 {
            memory.usage.leave();
        }
    }
}

/// Uses of several memories by one operation, held while its work is queued.
pub struct AccessGuard<'a> {
    fast: Entered<'a>,
    _ordering: Option<Ordered>,
    /// Behind the lock, because fields are dropped in order.
    _forgotten: Forgotten,
}

impl fmt::Debug for AccessGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessGuard({} memories)", self.fast.0.len())
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
    pub fn acquire(stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<AccessGuard<'a>> {
        Self::acquire_for(stream, uses, false)
    }

    /// As [`AccessGuard::acquire`]; the launch of a graph may use memory that was freed after the
    /// capture, which stays allocated for it.
    pub(crate) fn acquire_for(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
    ) -> Result<AccessGuard<'a>> {
        let guard = match Self::try_fast(stream, uses)? {
            Some(guard) => guard,
            None => Self::acquire_ordered(stream, uses, by_graph)?,
        };
        if stream::some_may_capture() {
            // What a graph repeats is used for as long as the graph lives.
            stream.keep_for_graph(uses)?;
        }
        Ok(guard)
    }

    /// A guard with the lock.
    #[cold]
    fn acquire_ordered(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
    ) -> Result<AccessGuard<'a>> {
        attempt::before_waiting()?;
        // Before it is known as a user of memory, for whoever uses that next to wait for.
        stream.check_epoch()?;
        let mut forgotten = Forgotten::new();
        let ordering = Ordered::lock(&ORDERING);
        for &(memory, access) in uses {
            if memory.is_inherited() {
                // What the parent's threads left in the object says nothing here; without
                // any state of its own, each use waits for those before it.
                memory.device.synchronize()?;
                continue;
            }
            memory.usage.share();
            memory.usage.order(memory, stream, access, by_graph, &mut forgotten)?;
        }
        let fast = Entered::default();
        Ok(AccessGuard { fast, _ordering: Some(ordering), _forgotten: forgotten })
    }

    /// A guard that needs no lock and no wait, if no other stream uses the memories.
    #[inline]
    fn try_fast(stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<Option<AccessGuard<'a>>> {
        let id = stream.id();
        // No guard yet, whose end tells that work was queued.
        let mut fast = Entered::default();
        for &(memory, _) in uses {
            if memory.is_gone() {
                return Err(lost(memory));
            }
            // What has been entered is left before anybody waits for the lock: its holder may
            // wait for that.
            if memory.is_inherited() || !memory.usage.enter(id) {
                return Ok(None);
            }
            fast.0.push(memory);
        }
        Ok(Some(AccessGuard { fast, _ordering: None, _forgotten: Forgotten::new() }))
    }
}

impl Drop for AccessGuard<'_> {
    fn drop(&mut self) {
        attempt::queued();
    }
}
