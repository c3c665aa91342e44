//! Guards that order the streams which use a memory.
//!
//! **Fast path.** Most memory is only ever used by the stream that allocated it. Such a use costs
//! two atomic additions: it enters the fast path, queues its work and leaves; the operation costs a
//! fence. The first use by another stream marks the memory as shared and waits for the uses inside
//! the fast path, which only queue work. From then on each use takes the memory's own lock. Under the
//! lock, streams are made to wait for each other with events, by the rule of [`super::order`], and
//! the work is queued.
//!
//! **Locks.** An operation on several memories first waits, without a lock, for the uses inside
//! their fast paths. It then takes the locks in the order of the objects' addresses. So two
//! operations wait for each other only if they share a memory, and never in a circle. If the host
//! has to wait for something, it releases all locks, waits, and orders the operation anew.
//! [`lock_order`] and [`AccessGuard::acquire_for`] are the protocol; the tests run it in every order
//! of steps.
//!
//! **Captures.** No capture begins or ends while streams are made to wait for each other
//! ([`NoCaptureBegins`]). Many threads can hold that lock at once. No capture of the guard's stream
//! begins while the guard lives ([`SubmissionGuard`]): the work is queued as the guard found the stream, and
//! the memory of captured work is kept for the graph.
//!
//! **Destructors.** Code of other libraries never runs under the locks: streams that are no longer
//! needed are dropped after the locks are released, because an owner's destructor may do anything.

use super::DeviceMemory;
use super::order::Access;
use super::usage::{ReleasedStreams, SharedUses, Usage, WaitedUses, lost};
use crate::error::Result;
use crate::interruption;
use crate::locks::{NoCaptureBegins, RankedGuard};
use crate::nonblocking;
use crate::stream::{Direction, Stream, Transfer};
use crate::submission::{self, SubmissionGuard};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The number of times a copy waits for its stream; then it is made although the stream has new work.
const MOST_WAITS: u32 = 4;

/// Returns false if the stream has work that can be waited for. What a capture cannot contain is
/// refused where it is queued. A failure of the stream's work is the caller's to report: only the
/// first call that notices one says what it was.
fn is_drained(stream: &dyn Stream) -> Result<bool> {
    Ok(stream.is_capturing()? || stream.has_run()?)
}

/// Waits for the work of a stream before a copy of pageable memory is queued on it. CUDA's driver
/// makes such copies one at a time, whatever their streams: one that waited in the driver for its
/// stream would hold up all others, and the making of streams.
///
/// # Errors
/// A failure of the stream's work.
pub fn wait_before_copy(stream: &dyn Stream) -> Result<()> {
    if stream.is_capturing()? { Ok(()) } else { stream.synchronize() }
}

/// An allocation, and how an operation uses it.
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

/// The memories whose fast path an operation has entered; dropping this leaves it.
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
    /// Enters the fast path of the memories, without a lock and a wait. Returns false if another stream uses
    /// one of them.
    #[inline]
    fn enter(&mut self, stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<bool> {
        let id = stream.id();
        for &(memory, _) in uses {
            if memory.is_gone() {
                return Err(lost(memory));
            }
            if memory.is_inherited() || !memory.usage.enter(id) {
                return Ok(false);
            }
            self.0.push(memory);
        }
        Ok(true)
    }
}

/// Returns the order in which an operation takes the locks of what it uses: each once, by address.
fn lock_order<T>(
    items: impl Iterator<Item = T>,
    address: impl Fn(&T) -> usize,
) -> SmallVec<[T; 2]> {
    let mut order: SmallVec<[T; 2]> = items.collect();
    order.sort_unstable_by_key(&address);
    order.dedup_by_key(|item| address(item));
    order
}

/// The locks of shared memories under which one operation is ordered and queued. Fields are dropped
/// in this order.
struct LockedUses<'a> {
    no_capture_begins: Option<NoCaptureBegins>,
    locks: SmallVec<[(&'a Usage, RankedGuard<'a, SharedUses>); 2]>,
    released: ReleasedStreams,
}

impl<'a> LockedUses<'a> {
    /// Takes the locks of memories that are shared.
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

    /// Orders the uses behind those that they conflict with. Returns a stream that the host has to
    /// wait for, without the locks, before the uses are ordered anew.
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
            // Memory that a parent process allocated has no lock here.
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

/// How a guard excludes other uses. Locks lie in a box, for each operation moves its guard.
enum GuardState<'a> {
    Fast(FastPath<'a>),
    Locked(Box<LockedUses<'a>>),
}

/// Holds the uses of several allocations by one operation while its work is queued. Dropping it lets
/// other operations on them be ordered behind that work.
///
/// A library that is given an address and a stream works in order with arrays:
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
    /// No capture of the stream begins.
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
    /// Orders an operation that is about to be queued on `stream` behind all earlier work
    /// that it conflicts with. Queue it while the guard lives, and do nothing else meanwhile:
    /// other threads may be waiting for the guard, as for a lock. The thread itself may acquire another
    /// one of memory that a single stream uses; where it would wait for its own guard, an operation is an error.
    ///
    /// # Errors
    /// `InvalidHandle` if a memory has been freed; `InvalidArgument` for memory of another backend or opening
    /// than the stream's, and for memory of several streams while this thread has another guard; the driver's
    /// error if streams cannot be made to wait. Nothing has been queued then.
    #[inline]
    pub fn acquire(stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<AccessGuard<'a>> {
        Self::acquire_for(stream, uses, false, || false)
    }

    /// Orders a copy as [`AccessGuard::acquire`] does. A copy between host and device that returns
    /// only when the bytes have arrived first waits, without a lock, for the work that it is ordered
    /// behind. While the guard lives it then waits for its own bytes only.
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

    /// Does what [`AccessGuard::acquire`] documents, for work that the call that queues it waits for.
    ///
    /// # Errors
    /// As for [`AccessGuard::acquire`].
    pub fn acquire_waited(stream: &Arc<dyn Stream>, uses: &[Use<'a>]) -> Result<AccessGuard<'a>> {
        Self::acquire_for(stream, uses, false, || true)
    }

    /// Does what [`AccessGuard::acquire`] documents. With `by_graph` the uses may include memory that
    /// was freed after the capture, which stays allocated for the graph. `is_waited_for` is called
    /// for shared memory; it returns whether the call that queues the work blocks until it is done.
    pub(crate) fn acquire_for(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        is_waited_for: impl FnOnce() -> bool,
    ) -> Result<AccessGuard<'a>> {
        // Not a guard yet: dropping a guard reports that work was queued.
        let mut fast = FastPath::default();
        let guard = if fast.enter(stream, uses)? {
            AccessGuard {
                _queueing: SubmissionGuard::on(stream.id())?,
                state: GuardState::Fast(fast),
            }
        } else {
            // It is left before this waits for a lock: the holder of that lock may wait for it.
            drop(fast);
            Self::acquire_ordered(stream, uses, by_graph, is_waited_for)?
        };
        if submission::some_may_capture() {
            // A graph uses the memory of its captured work for as long as it lives.
            stream.keep_for_graph(uses)?;
        }
        Ok(guard)
    }

    /// Adds memory that nobody else knows yet, and that the work writes, to what a graph of the work
    /// uses. It needs no ordering now; launches of the graph will.
    ///
    /// # Errors
    /// The driver's, if it cannot tell whether the stream captures.
    #[inline]
    pub fn keep_new(&self, stream: &Arc<dyn Stream>, memory: &Arc<DeviceMemory>) -> Result<()> {
        if submission::some_may_capture() {
            stream.keep_for_graph(&[(memory, Access::Write)])?;
        }
        Ok(())
    }

    /// Returns a guard that holds the memories' locks.
    #[cold]
    fn acquire_ordered(
        stream: &Arc<dyn Stream>,
        uses: &[Use<'a>],
        by_graph: bool,
        is_waited_for: impl FnOnce() -> bool,
    ) -> Result<AccessGuard<'a>> {
        nonblocking::before_waiting()?;
        interruption::before_waiting("memory")?;
        submission::outside_guards("memory")?;
        // Before the memory refers to the stream: the next use of the memory would wait for it.
        stream.check_epoch()?;
        for &(memory, _) in uses {
            // Of two openings no stream can be made to wait for the other's.
            stream.device_id().check_opening("memory", "memory", memory.device.id())?;
            if memory.is_gone() {
                return Err(lost(memory));
            }
            if memory.is_inherited() {
                memory.check_inherited()?;
                // The state that the parent's threads left in the object means nothing in this
                // process. Without a state of its own, each use waits for those before it.
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
            // What orders the stream is part of its work, and its captures wait from here on.
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
            // Of the operation's own stream the call reports a failure.
            if first.id() == stream.id() { first.synchronize()? } else { first.drain()? }
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
