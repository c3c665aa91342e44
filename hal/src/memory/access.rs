//! Guards that order the streams which use a memory.
//!
//! Most memory is only ever used by the stream that it was allocated on. That case costs two
//! atomic additions: a use enters, queues its work and leaves. As soon as another stream
//! comes, the memory is marked as shared, those inside are waited for (they are only
//! queueing), and from then on each use takes the memory's own lock, under which streams are made
//! to wait for each other with events, by the rule of [`super::order`], and the work is queued.
//!
//! An operation on several memories first waits for those inside, without a lock, and then takes the
//! locks in the order of the objects' addresses; so two operations wait for each other only if they
//! share a memory, and never in a circle. Whatever the host has to wait for is waited for without
//! any lock, and the operation is ordered anew: [`lock_order`] and [`AccessGuard::acquire_for`] are
//! the protocol, which the tests run through in every order of steps.
//!
//! While streams are made to wait for each other no capture begins or ends
//! ([`NoCaptureBegins`]); many threads do that at once.
//!
//! Nothing foreign runs under the locks: streams that are no longer needed are dropped after
//! them, because an owner's destructor may do anything.

use super::DeviceMemory;
use super::order::{Access, Streams, Uses};
use crate::attempt;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::EventOptions;
use crate::locks::{NoCaptureBegins, ORDERING, Ranked, RankedGuard};
use crate::process::ProcessCondition;
use crate::stream::{self, Direction, Stream, Transfer};
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

/// How often a copy waits for its stream before it is made although the stream has work again.
const MOST_WAITS: u32 = 4;

/// Signalled when the last use leaves the fast path of a memory that has become shared.
static LEFT: ProcessCondition = ProcessCondition::new();

type Forgotten = Streams<Arc<dyn Stream>>;
/// The uses of one memory since it became shared; none before, when all are the home stream's.
type Since = Option<Uses<Arc<dyn Stream>>>;

/// The streams that use one memory.
pub(super) struct Usage {
    /// The number of uses inside the fast path, [`SHARED`] and [`FREED`].
    state: AtomicU32,
    home: Arc<dyn Stream>,
    home_id: u64,
    /// Locked while a use of shared memory is ordered and queued.
    uses: Ranked<Since, ORDERING>,
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

    /// Locks the uses. A thread that locks those of several memories does so in the order of their
    /// addresses.
    fn lock(&self) -> RankedGuard<'_, Since> {
        self.uses.lock_at(std::ptr::from_ref(self).addr())
    }

    /// Ends the fast path: after this every use takes the lock. Waits for uses on the fast path, so
    /// the caller has no lock that one of them may need.
    fn share(&self) {
        let before = self.state.fetch_or(SHARED, Ordering::AcqRel);
        if before & INSIDE != 0 {
            LEFT.wait_while(|| self.state.load(Ordering::Acquire) & INSIDE != 0);
        }
    }

    /// Orders a use on `stream` behind the uses that it conflicts with, whose lock the caller has.
    /// Returns a stream that the host has to wait for first, if there is one.
    fn order(
        &self,
        since: &mut Since,
        memory: &DeviceMemory,
        stream: &Arc<dyn Stream>,
        access: Access,
        by_graph: bool,
        forgotten: &mut Forgotten,
    ) -> Result<Option<Arc<dyn Stream>>> {
        let state = self.state.load(Ordering::Acquire);
        if state & FREED != 0 && !(by_graph && state & DEFERRED != 0) {
            return Err(freed(memory));
        }
        let uses = since.get_or_insert_with(|| Uses::of(self.home.clone()));
        for earlier in uses.behind(stream, access) {
            if !queue_wait(memory.device.as_ref(), stream, &earlier)? {
                return Ok(Some(earlier));
            }
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
        Ok(None)
    }

    /// The stream of the last write.
    pub(super) fn writer(&self) -> Arc<dyn Stream> {
        self.lock().as_ref().map_or(&self.home, Uses::writer).clone()
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
        self.share();
        let mut since = self.lock();
        if !self.abandon() {
            return Err(Error::handle("free", "the memory was freed already"));
        }
        if self.graphs.load(Ordering::Acquire) > 0 {
            // Launches are ordered behind the uses so far, and the free behind the launches.
            self.state.fetch_or(DEFERRED, Ordering::AcqRel);
            return Ok(None);
        }
        let (writer, readers) = self.take(&mut since);
        drop(since);
        wait_for_all(device, &writer, &readers)?;
        Ok(Some(writer))
    }

    /// The stream behind whose work memory may be freed that was freed while a graph used it.
    pub(super) fn retire_deferred(&self, device: &dyn Device) -> Result<Arc<dyn Stream>> {
        let (writer, readers) = self.take(&mut self.lock());
        wait_for_all(device, &writer, &readers)?;
        Ok(writer)
    }

    /// The stream of the last write, and those that have read since.
    fn take(&self, since: &mut Since) -> (Arc<dyn Stream>, Forgotten) {
        match since.take() {
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
        let _since = self.lock();
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

/// Makes `later` wait for several streams before memory is freed on it. The caller has no lock.
fn wait_for_all(
    device: &dyn Device,
    later: &Arc<dyn Stream>,
    earlier: &[Arc<dyn Stream>],
) -> Result<()> {
    for stream in earlier {
        let no_capture_begins = NoCaptureBegins::lock();
        let queued = queue_wait(device, later, stream);
        drop(no_capture_begins);
        match queued {
            Ok(true) => {}
            Ok(false) => stream.synchronize()?,
            Err(error) => {
                // Without an event the host has to wait: freeing early would be worse.
                log::warn!("ordering a free behind a stream failed, waiting for it: {error}");
                stream.synchronize()?;
            }
        }
    }
    Ok(())
}

/// Makes `later` wait for the work queued on `earlier` so far. False if only the host can wait for
/// it. The caller has [`NoCaptureBegins`].
fn queue_wait(
    device: &dyn Device,
    later: &Arc<dyn Stream>,
    earlier: &Arc<dyn Stream>,
) -> Result<bool> {
    if later.id() == earlier.id() || earlier.query()? {
        return Ok(true);
    }
    match (later.is_capturing()?, earlier.is_capturing()?) {
        // Captured work cannot wait for work outside the capture.
        (true, false) => return Ok(false),
        // What is captured does not run, so there is nothing to wait for in it; an event would make
        // the later stream part of the capture.
        (false, true) => return earlier.check_before_capture().map(|()| true),
        _ => {}
    }
    let event = device.create_event(EventOptions::ORDERING)?;
    earlier.record(event.as_ref())?;
    later.wait_event(event.as_ref())?;
    Ok(true)
}

/// False if work of a stream is still to run which can be waited for. What a capture cannot have is
/// refused where it is queued, which also reports the failure of a stream that cannot tell.
fn is_settled(stream: &dyn Stream) -> bool {
    stream.is_capturing().unwrap_or(true) || stream.query().unwrap_or(true)
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

/// The order in which an operation takes the locks of what it uses: each once, by address.
fn lock_order<T>(
    items: impl Iterator<Item = T>,
    address: impl Fn(&T) -> usize,
) -> SmallVec<[T; 2]> {
    let mut order: SmallVec<[T; 2]> = items.collect();
    order.sort_unstable_by_key(&address);
    order.dedup_by_key(|item| address(item));
    order
}

/// The locks of shared memories, in which one operation is ordered and queued. Fields are dropped in
/// this order.
struct Ordered<'a> {
    no_capture_begins: Option<NoCaptureBegins>,
    locks: SmallVec<[(&'a Usage, RankedGuard<'a, Since>); 2]>,
    forgotten: Forgotten,
}

impl<'a> Ordered<'a> {
    /// Takes the locks of memories that are shared.
    fn lock(uses: &[Use<'a>]) -> Ordered<'a> {
        let usages = uses
            .iter()
            .filter(|(memory, _)| !memory.is_inherited())
            .map(|&(memory, _)| -> &'a Usage { &memory.usage });
        let order = lock_order(usages, |usage| std::ptr::from_ref(*usage).addr());
        let locks = order.into_iter().map(|usage| (usage, usage.lock())).collect();
        let no_capture_begins = Some(NoCaptureBegins::lock());
        Ordered { no_capture_begins, locks, forgotten: Forgotten::new() }
    }

    /// Orders the uses behind those that they conflict with. Returns a stream that the host has to
    /// wait for, without the locks, before the uses are ordered anew.
    fn order(
        &mut self,
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
    ) -> Result<Option<Arc<dyn Stream>>> {
        for &(memory, access) in uses {
            let usage = &memory.usage;
            let lock = self.locks.iter_mut().find(|(locked, _)| std::ptr::eq(*locked, usage));
            // Of memory that a parent process made nothing is known.
            let Some((_, since)) = lock else { continue };
            let waits =
                usage.order(since, memory, stream, access, by_graph, &mut self.forgotten)?;
            if waits.is_some() {
                return Ok(waits);
            }
        }
        Ok(None)
    }
}

/// How a guard keeps others away.
enum Kept<'a> {
    Fast(Entered<'a>),
    Ordered(Ordered<'a>),
}

/// Uses of several memories by one operation, held while its work is queued.
pub struct AccessGuard<'a>(Kept<'a>);

impl fmt::Debug for AccessGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match &self.0 {
            Kept::Fast(entered) => entered.0.len(),
            Kept::Ordered(ordered) => ordered.locks.len(),
        };
        write!(f, "AccessGuard({count} memories)")
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
        Self::acquire_for(stream, uses, false, || false)
    }

    /// As [`AccessGuard::acquire`], for a copy between host and device. One that returns only when
    /// the bytes have arrived first waits, without a lock, for what it comes behind: while the guard
    /// lives, it then waits for its own bytes only.
    ///
    /// # Errors
    /// As for [`AccessGuard::acquire`], and a failure of the work that was waited for.
    pub fn acquire_for_transfer(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        transfer: &Transfer,
    ) -> Result<AccessGuard<'a>> {
        let is_waited_for = || {
            let host = match transfer.direction {
                Direction::HostToDevice => transfer.source,
                Direction::DeviceToHost => transfer.destination,
                Direction::DeviceToDevice => return transfer.wait,
            };
            // The call waits for a copy of pageable memory, whatever it is told.
            let is_pinned = |memory: &DeviceMemory| memory.device.pinned_address(host as *mut u8);
            transfer.wait || !uses.iter().any(|(memory, _)| is_pinned(memory).is_ok())
        };
        Self::acquire_for(stream, uses, false, is_waited_for)
    }

    /// As [`AccessGuard::acquire`]; the launch of a graph may use memory that was freed after the
    /// capture, which stays allocated for it. `is_waited_for` tells of work on shared memory whether
    /// the call that queues it returns only when it is done.
    pub(crate) fn acquire_for(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        is_waited_for: impl FnOnce() -> bool,
    ) -> Result<AccessGuard<'a>> {
        let guard = match Self::try_fast(stream, uses)? {
            Some(guard) => guard,
            None => Self::acquire_ordered(stream, uses, by_graph, is_waited_for)?,
        };
        if stream::some_may_capture() {
            // What a graph repeats is used for as long as the graph lives.
            stream.keep_for_graph(uses)?;
        }
        Ok(guard)
    }

    /// A guard with the memories' locks.
    #[cold]
    fn acquire_ordered(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        is_waited_for: impl FnOnce() -> bool,
    ) -> Result<AccessGuard<'a>> {
        attempt::before_waiting()?;
        // Before it is known as a user of memory, for whoever uses that next to wait for.
        stream.check_epoch()?;
        for &(memory, _) in uses {
            if memory.is_gone() {
                return Err(lost(memory));
            }
            if memory.is_inherited() {
                // What the parent's threads left in the object says nothing here; without
                // any state of its own, each use waits for those before it.
                memory.device.synchronize()?;
            } else {
                memory.usage.share();
            }
        }
        let is_waited_for = is_waited_for();
        let mut waits = 0;
        loop {
            let mut ordered = Ordered::lock(uses);
            let mut first = ordered.order(stream, uses, by_graph)?;
            if first.is_none() && is_waited_for {
                let most = if stream.answers_queries() { MOST_WAITS } else { 1 };
                if waits < most && !is_settled(stream.as_ref()) {
                    waits += 1;
                    first = Some(stream.clone());
                }
            }
            let Some(first) = first else {
                if is_waited_for {
                    // A capture takes no such copy, so one may begin while it is waited for.
                    ordered.no_capture_begins = None;
                }
                return Ok(AccessGuard(Kept::Ordered(ordered)));
            };
            drop(ordered);
            first.synchronize()?;
        }
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
            // What has been entered is left before anybody waits for a lock: its holder may
            // wait for that.
            if memory.is_inherited() || !memory.usage.enter(id) {
                return Ok(None);
            }
            fast.0.push(memory);
        }
        Ok(Some(AccessGuard(Kept::Fast(fast))))
    }
}

impl Drop for AccessGuard<'_> {
    fn drop(&mut self) {
        attempt::queued();
    }
}

#[cfg(test)]
#[path = "access/tests.rs"]
mod tests;
