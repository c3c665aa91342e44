//! Work that has not been queued yet, and reads memory when it is.

use super::DeviceMemory;
use crate::error::Result;
use crate::process::ProcessMutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, Weak};

/// Work that a program has asked for, and that is queued later. It reads memory then.
pub trait Deferred: Send + Sync {
    /// Queues the work. Called before `memory`, which it may read, is written or freed.
    ///
    /// # Errors
    /// The error of work that reads the memory, which is not written or freed then.
    fn queue(&self, memory: &DeviceMemory) -> Result<()>;

    /// Returns true if some of the work may not have been queued.
    fn is_pending(&self) -> bool;
}

type Readers = Vec<Weak<dyn Deferred>>;

/// The deferred work that reads a memory; empty for nearly all memory.
#[derive(Default)]
pub(super) struct DeferredReaders {
    list: OnceLock<Box<ProcessMutex<Readers>>>,
    /// True once the program has the address as a number, by which kernels may write without telling.
    is_address_known: AtomicBool,
}

impl DeferredReaders {
    /// Returns true if the memory has ever been read by deferred work.
    #[inline]
    pub(super) fn exist(&self) -> bool {
        self.list.get().is_some()
    }
}

impl DeviceMemory {
    /// Returns true if all writes of the memory are known here, so that work that reads it can be deferred: not
    /// if other code may write by the address.
    pub fn can_be_read_later(&self) -> bool {
        let whole = self.whole();
        whole.holds.load(Ordering::Acquire) == 0
            && !whole.deferred.is_address_known.load(Ordering::Relaxed)
            && whole.external_owner().is_none()
            && !self.is_gone()
            && !self.is_inherited()
            && !whole.usage.is_retired()
    }

    /// Returns true if both are parts of one allocation.
    pub fn is_with(&self, other: &DeviceMemory) -> bool {
        std::ptr::eq(self.whole(), other.whole())
    }

    /// Notes that the program gets the address as a number, by which it may write later. Work that reads the memory is
    /// not deferred from now on.
    ///
    /// # Errors
    /// Those of deferred work that reads the memory.
    pub fn show_address(&self) -> Result<()> {
        self.whole().deferred.is_address_known.store(true, Ordering::Relaxed);
        self.queue_deferred()
    }

    /// Notes deferred work that reads the memory. It is queued before the memory is written, freed or lent by its
    /// address.
    pub fn read_later(&self, reader: &Weak<dyn Deferred>) {
        let readers = &self.whole().deferred.list;
        let mut readers = readers.get_or_init(Box::default).lock();
        if !readers.iter().any(|known| known.ptr_eq(reader)) {
            readers.retain(|known| known.strong_count() > 0);
            readers.push(reader.clone());
        }
    }

    /// Queues the deferred work that reads the memory.
    ///
    /// # Errors
    /// The work's own. The work is then still deferred.
    #[cold]
    pub(super) fn queue_deferred(&self) -> Result<()> {
        let Some(readers) = self.whole().deferred.list.get() else { return Ok(()) };
        // They stay in the list until they are queued: another thread must not write before.
        let known = readers.lock().clone();
        for reader in known.iter().filter_map(Weak::upgrade) {
            reader.queue(self)?;
        }
        readers.lock().retain(|reader| reader.upgrade().is_some_and(|it| it.is_pending()));
        Ok(())
    }
}
