//! What graphs hold of the memory that their captured work uses.

use super::{Access, DeviceMemory};
use std::fmt;
use std::sync::Arc;

/// A use of memory by captured work: as long as it lives, the memory stays allocated at its
/// address, whatever becomes of the arrays over it.
pub struct GraphLease {
    memory: Arc<DeviceMemory>,
    access: Access,
}

impl fmt::Debug for GraphLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphLease({:?})", self.memory)
    }
}

impl GraphLease {
    /// Holds memory whose [`AccessGuard`] the caller has, so that nobody frees it meanwhile.
    pub(crate) fn new(memory: &Arc<DeviceMemory>, access: Access) -> GraphLease {
        memory.usage.enter_graph();
        GraphLease { memory: memory.clone(), access }
    }

    /// Remembers a further use.
    pub(crate) fn add(&mut self, access: Access) {
        if access == Access::Write {
            self.access = access;
        }
    }

    /// How many references there are to a stream that the memory refers to, in all.
    pub(crate) fn strong_count(&self, stream: u64) -> Option<usize> {
        self.memory.usage.strong_count(stream)
    }

    /// How many references to a stream there are through this hold alone.
    pub(crate) fn sole_references(&self, stream: u64) -> usize {
        let sole = Arc::strong_count(&self.memory) == 1;
        self.memory.usage.references(stream).filter(|_| sole).unwrap_or(0)
    }

    /// The memory, and how the captured work uses it.
    pub(crate) fn as_use(&self) -> (&Arc<DeviceMemory>, Access) {
        (&self.memory, self.access)
    }
}

impl Drop for GraphLease {
    fn drop(&mut self) {
        // In a forked child a thread of the parent may have had the lock.
        if self.memory.is_out_of_reach() {
            return;
        }
        let same = || GraphLease { memory: self.memory.clone(), access: self.access };
        if !super::is_left(self.memory.device.id(), same) && self.memory.usage.leave_graph() {
            self.memory.free_deferred();
        }
    }
}
