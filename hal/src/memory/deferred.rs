//! Deferred work: it is queued later. Also the memory that such work will read.

use super::{Access, DeviceMemory, Use};
use crate::error::{Error, Result};
use crate::poison::Unpoisoned as _;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError, Weak};
use std::thread::{self, ThreadId};

/// The number of times that a forked child tries to lock the list of its parent.
const MOST_TRIES: u32 = 10_000;

/// Work that a program has asked for, and that is queued later. It reads its memory when it is
/// queued.
pub trait Deferred: Send + Sync {
    /// Queues the work. Called before `memory` is written or freed; the work may read `memory`.
    ///
    /// # Errors
    /// The error of work that reads the memory. The memory is then not written or freed.
    fn queue(&self, memory: &DeviceMemory) -> Result<()>;

    /// Returns true if some of the work may not have been queued.
    fn is_pending(&self) -> bool;
}

/// The deferred work that reads a memory; empty for nearly all memory.
#[derive(Default)]
pub(super) struct DeferredReaders {
    readers: OnceLock<Box<Readers>>,
    /// True once `readers` has been needed. Reading it takes part in the one order of all such accesses.
    exist: AtomicBool,
    /// True once the program has the address as a number: kernels may then write without telling.
    is_address_known: AtomicBool,
}

/// Deferred work, and the thread that deferred it.
#[derive(Clone)]
struct Reader {
    work: Weak<dyn Deferred>,
    thread: ThreadId,
}

#[derive(Default)]
struct Readers {
    list: Mutex<Vec<Reader>>,
    /// The number of [`AnnouncedWrites`].
    announced: AtomicU32,
}

impl DeferredReaders {
    /// Returns true if the memory has ever been read by deferred work.
    #[inline]
    fn exist(&self) -> bool {
        self.exist.load(Ordering::SeqCst)
    }
}

impl Readers {
    /// Locks the list. A forked child also writes after the work that was deferred before the fork.
    ///
    /// # Errors
    /// `InvalidHandle` in a forked child if a thread of the parent held the lock at the fork.
    fn lock(&self, is_inherited: bool) -> Result<MutexGuard<'_, Vec<Reader>>> {
        if !is_inherited {
            return Ok(self.list.lock().unpoisoned());
        }
        for _ in 0..MOST_TRIES {
            match self.list.try_lock() {
                Ok(list) => return Ok(list),
                Err(TryLockError::Poisoned(list)) => return Ok(list.into_inner()),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
        let detail = "another thread was using the memory in a fused block when this process was forked; \
                      copy the array in this process, and write to the copy";
        Err(Error::handle("memory", detail))
    }
}

/// Memory that an operation is going to write, after the deferred work that reads it. While this lives, no more work
/// that reads it is deferred.
#[derive(Default)]
pub(super) struct AnnouncedWrites<'a>(SmallVec<[&'a DeviceMemory; 2]>);

impl Drop for AnnouncedWrites<'_> {
    fn drop(&mut self) {
        for memory in &self.0 {
            if let Some(readers) = memory.deferred.readers.get() {
                readers.announced.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl<'a> AnnouncedWrites<'a> {
    /// Returns true if deferred work may read what the use writes, and the use is not announced.
    #[inline]
    pub(super) fn lack(&self, (memory, access): &Use<'_>) -> bool {
        let whole = memory.whole();
        *access == Access::Write
            && whole.deferred.exist()
            && !self.0.iter().any(|known| std::ptr::eq(*known, whole))
    }

    /// Announces the uses that are not announced yet, and queues the work that reads what these uses write.
    ///
    /// # Errors
    /// The work's own.
    #[cold]
    pub(super) fn add(&mut self, uses: &[Use<'a>]) -> Result<()> {
        for use_ in uses {
            if self.lack(use_) {
                let whole = use_.0.whole();
                whole
                    .deferred
                    .readers
                    .get_or_init(Box::default)
                    .announced
                    .fetch_add(1, Ordering::SeqCst);
                self.0.push(whole);
                whole.queue_deferred()?;
            }
        }
        Ok(())
    }
}

impl DeviceMemory {
    /// Returns true if work that reads the memory can be deferred: this library knows all writes, because no
    /// other code has the address.
    pub fn can_be_read_later(&self) -> bool {
        let whole = self.whole();
        whole.leases.load(Ordering::SeqCst) == 0
            && !whole.deferred.is_address_known.load(Ordering::SeqCst)
            && whole.external_owner().is_none()
            && !self.is_gone()
            && !self.is_inherited()
            && !whole.usage.is_retired()
    }

    /// Returns true if both are parts of one allocation.
    pub fn is_with(&self, other: &DeviceMemory) -> bool {
        std::ptr::eq(self.whole(), other.whole())
    }

    /// Records that the program gets the address as a number, and may use it to write later. From now on, work that
    /// reads the memory is not deferred.
    ///
    /// # Errors
    /// The errors of deferred work that reads the memory.
    pub fn show_address(&self) -> Result<()> {
        self.whole().deferred.is_address_known.store(true, Ordering::SeqCst);
        self.queue_deferred()
    }

    /// Notes deferred work that reads the memory. It is queued before the memory is written, freed or lent by its
    /// address. Returns false if the work has to be queued now: if [`DeviceMemory::can_be_read_later`] is false, or
    /// while the memory is being used.
    pub fn read_later(&self, reader: &Weak<dyn Deferred>) -> bool {
        if !self.can_be_read_later() {
            return false;
        }
        let whole = self.whole();
        whole.deferred.exist.store(true, Ordering::SeqCst);
        let readers = whole.deferred.readers.get_or_init(Box::default);
        let mut list = readers.list.lock().unpoisoned();
        if !list.iter().any(|known| known.work.ptr_eq(reader)) {
            list.retain(|known| known.work.strong_count() > 0);
            list.push(Reader { work: reader.clone(), thread: thread::current().id() });
        }
        drop(list);
        // Later writes find the work. A write that looked for it before is announced, or is being queued. An announced
        // one begins to be queued before its announcement ends.
        readers.announced.load(Ordering::SeqCst) == 0
            && whole.usage.is_idle()
            && self.can_be_read_later()
    }

    /// Queues the deferred work that reads the memory.
    ///
    /// # Errors
    /// The work's own. The work is then still deferred.
    #[cold]
    pub(super) fn queue_deferred(&self) -> Result<()> {
        let deferred = &self.whole().deferred;
        let Some(readers) = deferred.readers.get().filter(|_| deferred.exist()) else {
            return Ok(());
        };
        // They stay in the list until they are queued: another thread must not write before.
        let is_inherited = self.is_inherited();
        let mut known = readers.lock(is_inherited)?.clone();
        if is_inherited {
            // Other threads may have held locks of their work at the fork.
            known.retain(|reader| reader.thread == thread::current().id());
        }
        for reader in known.iter().filter_map(|it| it.work.upgrade()) {
            reader.queue(self)?;
        }
        if !is_inherited {
            let is_pending = |it: &Reader| it.work.upgrade().is_some_and(|work| work.is_pending());
            readers.list.lock().unpoisoned().retain(is_pending);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "deferred/tests.rs"]
mod tests;
