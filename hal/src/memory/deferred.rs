//! Work that has not been queued yet, and reads memory when it is.

use super::DeviceMemory;
use crate::error::Result;
use crate::process::ProcessMutex;
use std::sync::atomic::Ordering;
use std::sync::{OnceLock, Weak};

/// Work that a program has asked for, and that is queued later. It reads memory then.
pub trait Deferred: Send + Sync {
    /// Queues the work. Called before memory that it reads is written or freed.
    ///
    /// # Errors
    /// The work's own. The memory is not written or freed then.
    fn queue(&self) -> Result<()>;
}

/// The deferred work that reads a memory; empty for nearly all memory.
#[derive(Default)]
pub(super) struct DeferredReaders(OnceLock<Box<ProcessMutex<Vec<Weak<dyn Deferred>>>>>);

impl DeferredReaders {
    /// Returns true if the memory has ever been read by deferred work.
    #[inline]
    pub(super) fn exist(&self) -> bool {
        self.0.get().is_some()
    }
}

impl DeviceMemory {
    /// Returns true if all writes of the memory are known here, so that work that reads it can be deferred: not
    /// if other code may write by the address.
    pub fn can_be_read_later(&self) -> bool {
        let whole = self.whole();
        whole.holds.load(Ordering::Acquire) == 0
            && whole.external_owner().is_none()
            && !self.is_gone()
            && !self.is_inherited()
            && !whole.usage.is_retired()
    }

    /// Notes deferred work that reads the memory. It is queued before the memory is written, freed or lent by its
    /// address.
    pub fn read_later(&self, reader: Weak<dyn Deferred>) {
        let readers = &self.whole().deferred.0;
        let mut readers = readers.get_or_init(Box::default).lock();
        readers.retain(|known| known.strong_count() > 0);
        readers.push(reader);
    }

    /// Queues the deferred work that reads the memory.
    ///
    /// # Errors
    /// The work's own. The work is then still deferred.
    #[cold]
    pub(super) fn queue_deferred(&self) -> Result<()> {
        let Some(readers) = self.whole().deferred.0.get() else { return Ok(()) };
        let pending = std::mem::take(&mut *readers.lock());
        for (position, reader) in pending.iter().enumerate() {
            let Some(reader) = reader.upgrade() else { continue };
            if let Err(error) = reader.queue() {
                readers.lock().extend_from_slice(&pending[position..]);
                return Err(error);
            }
        }
        Ok(())
    }
}
