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
use super::order::Access;
use super::usage::{Forgotten, Since, Usage, lost};
use crate::attempt;
use crate::error::Result;
use crate::locks::{NoCaptureBegins, RankedGuard};
use crate::stream::{self, Direction, Stream, Transfer};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// How often a copy waits for its stream before it is made although the stream has work again.
const MOST_WAITS: u32 = 4;

/// False if work of a stream is still to run which can be waited for. What a capture cannot have is
/// refused where it is queued. A failure of the stream's work is the caller's to report: only the
/// first call that notices one says what it was.
fn is_settled(stream: &dyn Stream) -> Result<bool> {
    Ok(stream.is_capturing()? || stream.query()?)
}

/// Waits for the work of a stream before a copy of pageable memory is queued on it. CUDA's driver
/// makes such copies one at a time, whatever their streams: one that waited in the driver for its
/// stream would hold up all others, and the making of streams.
pub(crate) fn settle(stream: &dyn Stream) -> Result<()> {
    if stream.is_capturing()? { Ok(()) } else { stream.synchronize() }
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
                if waits < most && !is_settled(stream.as_ref())? {
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
