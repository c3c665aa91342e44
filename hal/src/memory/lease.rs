//! What graphs hold of the memory that their captured work uses.

use super::{Access, DeviceMemory};
use std::collections::HashMap;
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
        memory.whole().usage.enter_graph();
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
        self.memory.whole().usage.strong_count(stream)
    }

    /// How many references to a stream there are through these holds alone.
    pub(crate) fn sole_references<'a>(
        holds: impl Iterator<Item = &'a GraphLease>,
        stream: u64,
    ) -> usize {
        let mut wholes: HashMap<*const DeviceMemory, (&Arc<DeviceMemory>, usize)> = HashMap::new();
        let mut of_parts = 0;
        for GraphLease { memory, .. } in holds {
            let whole = DeviceMemory::whole_of(memory);
            let (_, held) = wholes.entry(Arc::as_ptr(whole)).or_insert((whole, 0));
            if Arc::ptr_eq(memory, whole) {
                *held += 1;
            } else if Arc::strong_count(memory) == 1 {
                // Only its hold keeps the part, which keeps the whole and its stream.
                *held += 1;
                of_parts += usize::from(memory.stream().id() == stream);
            }
        }
        let sole = wholes.values().filter(|(whole, held)| Arc::strong_count(whole) == *held);
        let references = sole.filter_map(|(whole, _)| whole.usage.references(stream));
        of_parts + references.sum::<usize>()
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
        if !super::is_left(self.memory.device.id(), same) && self.memory.whole().usage.leave_graph()
        {
            self.memory.whole().free_deferred();
        }
    }
}
