//! Guards that order the streams that use a memory object.
//!
//! **Fast path.** Most memory is only ever used by the stream that allocated it. Such a use costs two atomic
//! additions, to enter and to leave the fast path, and one fence per operation. The first use by another stream marks
//! the memory as shared between streams, and waits for uses that are still inside the fast path; these only queue work,
//! so the wait is short. From then on, each use takes the memory's own lock. Under the lock, streams are made to wait
//! for each other with events, by the rule of [`super::order`], and the work is queued.
//!
//! **Locks.** An operation on several memory objects first waits, without a lock, for uses inside their fast
//! paths. It then takes the locks in the order of the objects' addresses. Two operations therefore wait for each
//! other only if they share memory, and never deadlock. If the host has to wait for something, it releases all
//! locks, waits, and orders the operation again. [`lock_order`] and [`AccessGuard::acquire_for`] implement the
//! protocol; the tests run it in every order of steps.
//!
//! **Captures.** No capture begins or ends while streams are made to wait for each other ([`NoCaptureBegins`], a
//! lock that many threads can share). No capture of the guard's stream begins while the guard lives
//! ([`SubmissionGuard`]). So the stream's capture state does not change before the work is queued, and memory of
//! captured work is kept for the graph.
//!
//! **Destructors.** Code of other libraries never runs under the locks. Streams that are no longer needed are
//! dropped after the locks are released, because an owner's destructor may do anything.

use super::DeviceMemory;
use super::deferred::AnnouncedWrites;
use super::order::Access;
use super::usage::{ReleasedStreams, SharedUses, Usage, WaitedUses, lost};
use crate::error::Result;
use crate::interruption;
use crate::locks::{NoCaptureBegins, RankedGuard};
use crate::nonblocking;
use crate::recording::{self, Kind};
use crate::stream::{Direction, Stream, Transfer};
use crate::submission::{self, SubmissionGuard};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The maximum number of times that a copy waits for its stream. After that, it proceeds although the stream has
/// new work.
const MOST_WAITS: u32 = 4;

/// Returns false if the stream has unfinished work that can be waited for. A capturing stream counts as drained:
/// calls that a capture cannot contain are refused. A failure of the stream's work is returned, because only the
/// first call that notices a failure can report it.
fn is_drained(stream: &dyn Stream) -> Result<bool> {
    Ok(stream.is_capturing()? || stream.has_run()?)
}

/// Waits for the work of a stream before a copy of pageable memory is queued on it. CUDA's driver makes such
/// copies one at a time across all streams. A copy that waited in the driver for its stream would block all
/// other copies and the creation of streams.
///
/// # Errors
/// A failure of the stream's work.
pub fn wait_before_copy(stream: &dyn Stream) -> Result<()> {
    if stream.is_capturing()? {
        return Ok(());
    }
    recording::during(Kind::Wait, "stream", || stream.synchronize())
}

/// An allocation, and how an operation uses the allocation.
///
/// An operation that reads one array and writes another has two uses:
///
/// ```
/// use gpuarray::{DeviceArray, memory::{Access, AccessGuard, Use}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::<f32>::ones(&device, &[4])?;
/// let y = DeviceArray::<f32>::zeros(&device, &[4])?;
/// let uses: [Use; 2] =
///     [(x.untyped().memory(), Access::Read), (y.untyped().memory(), Access::Write)];
/// let guard = AccessGuard::acquire(&device.default_stream(), &uses)?;
/// drop(guard);
/// assert_eq!(y.to_vec()?, [0.0; 4]);
/// # Ok(())
/// # }
/// ```
pub type Use<'a> = (&'a Arc<DeviceMemory>, Access);

/// The memory objects whose fast path an operation has entered. Dropping this leaves the fast paths.
#[derive(Default)]
struct FastPath<'a>(SmallVec<[&'a DeviceMemory; 4]>);

impl Drop for FastPath<'_> {
    #[inline]
    fn drop(&mut self) {
        for memory in &self.0 {
            memory.usage.leave();
        }
    }
}

impl<'a> FastPath<'a> {
    /// Enters the fast path of the memory objects, without a lock and without waiting. Returns false if another stream
    /// uses one of the allocations, or if deferred work may have to be queued first. Some may have been entered then.
    #[inline]
    fn enter(
        &mut self,
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        announced: &AnnouncedWrites<'_>,
    ) -> Result<bool> {
        let id = stream.id();
        for use_ in uses {
            let memory = use_.0;
            if memory.is_gone() {
                return Err(lost(memory));
            }
            if memory.is_inherited() || !memory.usage.enter(id) {
                return Ok(false);
            }
            self.0.push(memory);
            // After entering, for `DeviceMemory::read_later`.
            if announced.lack(use_) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the items in the order in which an operation takes their locks: by address, without duplicates.
fn lock_order<T>(
    items: impl Iterator<Item = T>,
    address: impl Fn(&T) -> usize,
) -> SmallVec<[T; 2]> {
    let mut order: SmallVec<[T; 2]> = items.collect();
    order.sort_unstable_by_key(&address);
    order.dedup_by_key(|item| address(item));
    order
}

/// The locks of shared memory under which one operation is ordered and queued. Fields are dropped in this order.
struct LockedUses<'a> {
    no_capture_begins: Option<NoCaptureBegins>,
    locks: SmallVec<[(&'a Usage, RankedGuard<'a, SharedUses>); 2]>,
    released: ReleasedStreams,
}

impl<'a> LockedUses<'a> {
    /// Takes the locks of the memory objects that are shared.
    fn lock(uses: &[Use<'a>]) -> LockedUses<'a> {
        let usages = uses
            .iter()
            .filter(|(memory, _)| !memory.is_inherited())
            .map(|&(memory, _)| -> &'a Usage { &memory.whole().usage });
        let order = lock_order(usages, |usage| std::ptr::from_ref(*usage).addr());
        let locks = order.into_iter().map(|usage| (usage, usage.lock())).collect();
        let no_capture_begins = Some(NoCaptureBegins::lock());
        LockedUses { no_capture_begins, locks, released: ReleasedStreams::new() }
    }

    /// Orders the uses after those that they conflict with. If the host has to wait for a stream first, returns
    /// that stream; the caller waits without the locks and orders the uses again.
    fn order(
        &mut self,
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        waited: &mut WaitedUses,
    ) -> Result<Option<Arc<dyn Stream>>> {
        for &(memory, access) in uses {
            let usage = &memory.whole().usage;
            let lock = self.locks.iter_mut().find(|(locked, _)| std::ptr::eq(*locked, usage));
            // Memory that a parent process allocated does not have a lock here.
            let Some((_, shared_uses)) = lock else { continue };
            let notes = (&mut *waited, &mut self.released);
            let waits = usage.order(shared_uses, memory, stream, access, by_graph, notes)?;
            if waits.is_some() {
                return Ok(waits);
            }
        }
        Ok(None)
    }
}

/// The means by which a guard excludes other uses. Locks are boxed, because each operation moves its guard.
enum GuardState<'a> {
    Fast(FastPath<'a>),
    Locked(Box<LockedUses<'a>>),
}

/// Holds the uses of several allocations by one operation while its work is queued. When the guard is dropped, later
/// operations on the allocations are ordered after that work.
///
/// Work of another library on an array's address, ordered with the array's other uses:
///
/// ```
/// use gpuarray::{DeviceArray, memory::{Access, AccessGuard}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// fn library_call(address: u64, stream: u64) { /* queues its work */ }
///
/// let x = DeviceArray::<f32>::ones(&device, &[4])?;
/// let guard = AccessGuard::acquire(x.stream(), &[(x.untyped().memory(), Access::Write)])?;
/// library_call(x.as_device_pointer(), x.stream().handle());
/// drop(guard);
/// // Queued after the library's work.
/// assert_eq!((&x + 1.0)?.to_vec()?, [2.0; 4]);
/// # Ok(())
/// # }
/// ```
pub struct AccessGuard<'a> {
    /// Prevents a capture of the stream from beginning.
    _queueing: SubmissionGuard,
    state: GuardState<'a>,
}

impl fmt::Debug for AccessGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match &self.state {
            GuardState::Fast(memories) => memories.0.len(),
            GuardState::Locked(uses) => uses.locks.len(),
        };
        write!(f, "AccessGuard({count} memories)")
    }
}

impl<'a> AccessGuard<'a> {
    /// Orders an operation on `stream` after all earlier work that it conflicts with. Queue the operation while
    /// the guard lives, and do nothing else meanwhile: other threads may be waiting for the guard, as for a
    /// lock. The same thread may acquire another guard for memory that a single stream uses. If an operation
    /// would have to wait for the thread's own guard, it fails.
    ///
    /// # Errors
    /// `InvalidHandle` if a memory object has been freed; `InvalidArgument` for memory of another backend or
    /// opening than the stream's, and for memory of several streams while this thread has another guard; the
    /// driver's error if streams cannot be made to wait. Nothing has been queued then.
    #[inline]
    pub fn acquire(stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<AccessGuard<'a>> {
        Self::acquire_for(stream, uses, false, || false)
    }

    /// Like [`AccessGuard::acquire`], for a copy. A copy between host and device that returns only after its
    /// bytes have arrived first waits, without a lock, for the earlier work. While the guard lives, it then
    /// waits only for its own bytes.
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
            // The driver waits for every copy of pageable memory, regardless of `wait`.
            let is_pinned = |memory: &DeviceMemory| memory.device.pinned_address(host as *mut u8);
            transfer.wait || !uses.iter().any(|(memory, _)| is_pinned(memory).is_ok())
        };
        Self::acquire_for(stream, uses, false, is_waited_for)
    }

    /// Like [`AccessGuard::acquire`], if the call that queues the work also waits for it.
    ///
    /// # Errors
    /// As for [`AccessGuard::acquire`].
    pub fn acquire_waited(stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<AccessGuard<'a>> {
        Self::acquire_for(stream, uses, false, || true)
    }

    /// Like [`AccessGuard::acquire`]. With `by_graph`, the uses may include memory that was freed after the
    /// capture and stays allocated for the graph. `is_waited_for` is called for shared memory. It returns true
    /// if the call that queues the work blocks until the work is done.
    pub(crate) fn acquire_for(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        is_waited_for: impl FnOnce() -> bool,
    ) -> Result<AccessGuard<'a>> {
        // Not a guard yet, because dropping a guard reports that work was queued.
        let mut fast = FastPath::default();
        let guard = if fast.enter(stream, uses, &AnnouncedWrites::default())? {
            AccessGuard {
                _queueing: SubmissionGuard::on(stream.id())?,
                state: GuardState::Fast(fast),
            }
        } else {
            // Leave the fast path before waiting for a lock, because the lock's holder may be waiting for this use.
            drop(fast);
            Self::acquire_slowly(stream, uses, by_graph, is_waited_for)?
        };
        if submission::some_may_capture() {
            // A graph uses the memory of its captured work while it lives.
            stream.keep_for_graph(uses)?;
        }
        Ok(guard)
    }

    /// Adds new memory to the uses of the work's graph. The work writes the memory, and nothing else refers to it yet.
    /// It needs no ordering now; launches of the graph will order it.
    ///
    /// # Errors
    /// The driver's error, if the driver cannot report whether the stream captures.
    #[inline]
    pub fn keep_new(&self, stream: &Arc<dyn Stream>, memory: &Arc<DeviceMemory>) -> Result<()> {
        if submission::some_may_capture() {
            stream.keep_for_graph(&[(memory, Access::Write)])?;
        }
        Ok(())
    }

    /// Returns a guard after deferred work has been queued, or one that holds the locks of the memory objects.
    #[cold]
    fn acquire_slowly(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        is_waited_for: impl FnOnce() -> bool,
    ) -> Result<AccessGuard<'a>> {
        // Kept until the guard excludes deferred work.
        let mut announced = AnnouncedWrites::default();
        if uses.iter().any(|it| announced.lack(it)) {
            announced.add(uses)?;
            let mut fast = FastPath::default();
            if fast.enter(stream, uses, &announced)? {
                let _queueing = SubmissionGuard::on(stream.id())?;
                return Ok(AccessGuard { _queueing, state: GuardState::Fast(fast) });
            }
        }
        nonblocking::before_waiting()?;
        interruption::before_waiting("memory")?;
        submission::outside_guards("memory")?;
        // Checked before the memory refers to the stream, because the next use would wait for it.
        stream.check_epoch()?;
        for &(memory, _) in uses {
            // Streams of different openings cannot wait for each other.
            stream.device_id().check_opening("memory", "memory", memory.device.id())?;
            if memory.is_gone() {
                return Err(lost(memory));
            }
            if memory.is_inherited() {
                memory.check_inherited()?;
                // The state that the parent's threads left in the object is meaningless in this process. Each
                // use waits for all earlier work instead.
                memory.device.synchronize()?;
            } else {
                memory.whole().usage.share();
            }
        }
        let is_waited_for = is_waited_for();
        let mut waits = 0;
        let mut waited = WaitedUses::default();
        loop {
            let mut locked = LockedUses::lock(uses);
            if uses.iter().any(|it| announced.lack(it)) {
                // Work has been deferred since.
                drop(locked);
                announced.add(uses)?;
                continue;
            }
            // Waits for other streams are part of the stream's work, so its captures must wait from here on.
            let queueing = SubmissionGuard::under_lock(stream.id());
            let mut first = locked.order(stream, uses, by_graph, &mut waited)?;
            if first.is_none() && is_waited_for {
                let most = if stream.supports_queries() { MOST_WAITS } else { 1 };
                if waits < most && !is_drained(stream.as_ref())? {
                    waits += 1;
                    first = Some(stream.clone());
                }
            }
            let Some(first) = first else {
                if is_waited_for {
                    // Captures of other streams may begin during the wait.
                    locked.no_capture_begins = None;
                }
                return Ok(AccessGuard {
                    _queueing: queueing,
                    state: GuardState::Locked(Box::new(locked)),
                });
            };
            drop((queueing, locked));
            // The call reports a failure of the operation's own stream.
            let is_own = first.id() == stream.id();
            let wait = || if is_own { first.synchronize() } else { first.drain() };
            recording::during(Kind::Wait, "stream", wait)?;
        }
    }
}

impl Drop for AccessGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        nonblocking::queued();
    }
}

#[cfg(test)]
#[path = "access/tests.rs"]
mod tests;
