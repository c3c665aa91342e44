//! What captured work uses, kept until every graph that is made of it is gone.
//!
//! A graph replays with the addresses of its capture. So what captured work uses, and what is
//! allocated or freed on a capturing stream, stays until the graph is gone. A backend keeps a
//! [`CapturedMemory`] for each capture under way, and a [`GraphUses`] in each graph.

use crate::error::Result;
use crate::locks::{KEPT, LAUNCHING, LEAF, Ranked};
use crate::memory::{Access, AccessGuard, DeviceMemory, Use};
use crate::process::ProcessMutex;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What frees the blocks of captures and graphs: the allocator of a device.
pub trait BlockOwner: Send + Sync + Debug {
    /// Returns a number that changes when all blocks are lost at once: by a reset or a fork.
    fn epoch(&self) -> u64;

    /// Returns true if blocks of the epoch are still there to be freed.
    fn is_alive(&self, epoch: u64) -> bool;

    /// Frees a block behind all work that may use it.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// Address and bytes are those of one allocation, which nobody holds any longer.
    unsafe fn free_block(&self, address: u64, bytes: usize) -> Result<()>;
}

/// A block, and how many hold it: graphs, and the object that stands for it.
#[derive(Debug)]
struct HeldBlock {
    bytes: usize,
    holders: u32,
}

/// The blocks of one device that belong to captures and graphs.
#[derive(Debug)]
pub struct GraphBlocks {
    owner: Arc<dyn BlockOwner>,
    held: ProcessMutex<HashMap<u64, HeldBlock>>,
    /// The number of blocks in `held`: 0 nearly always.
    count: AtomicUsize,
}

impl GraphBlocks {
    /// Returns the list of a device that has no captures.
    pub fn new(owner: Arc<dyn BlockOwner>) -> GraphBlocks {
        GraphBlocks { owner, held: ProcessMutex::default(), count: AtomicUsize::new(0) }
    }

    /// Ends one holder of a block, and frees it with the last one; `None` if the block belongs to no
    /// capture or graph.
    #[inline]
    pub fn release(&self, address: u64) -> Option<Result<()>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.release_one(address)
    }

    fn release_one(&self, address: u64) -> Option<Result<()>> {
        let mut all = self.held.lock();
        let block = all.get_mut(&address)?;
        block.holders -= 1;
        if block.holders > 0 {
            return Some(Ok(()));
        }
        let bytes = block.bytes;
        all.remove(&address);
        self.count.store(all.len(), Ordering::Release);
        drop(all);
        // SAFETY: nobody holds the block, and whoever gave it said that it is an allocation.
        Some(unsafe { self.owner.free_block(address, bytes) })
    }

    fn hold(&self, address: u64, block: HeldBlock) {
        let mut all = self.held.lock();
        all.insert(address, block);
        self.count.store(all.len(), Ordering::Release);
    }

    /// Forgets every block, since the device is being reset.
    pub fn forget(&self) {
        self.held.lock().clear();
        self.count.store(0, Ordering::Release);
    }
}

/// Something that captured work needs besides memory of the device: code, or memory of the host.
///
/// A table that captured work reads lives as long as the graph:
///
/// ```
/// use gpuarray::{CaptureMode, StreamOptions, memory::{AccessGuard, GraphObject}};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
/// let table: GraphObject = Arc::new(vec![1.0f32, 2.0]);
/// stream.begin_capture(CaptureMode::default())?;
/// let guard = AccessGuard::acquire(&stream, &[])?;
/// stream.keep_object(&table)?;
/// drop(guard);
/// let graph = stream.end_capture()?;
/// assert_eq!(Arc::strong_count(&table), 2);
/// # Ok(())
/// # }
/// ```
pub type GraphObject = Arc<dyn Any + Send + Sync>;

/// Objects, each once.
#[derive(Default)]
struct Objects(HashMap<usize, GraphObject>);

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects", self.0.len())
    }
}

/// The uses of one memory: of all of it, or of parts.
type Leases = SmallVec<[GraphLease; 1]>;

/// What one capture uses.
#[derive(Debug)]
pub struct CapturedMemory {
    device: Arc<GraphBlocks>,
    epoch: u64,
    /// Blocks that were allocated or freed while it went on.
    blocks: Ranked<Vec<u64>, LEAF>,
    /// What its operations use, by the address of the whole memory's object; `None` once the capture is over. A thread that has
    /// looked before then adds nothing: it has locks, under which nothing may be dropped again.
    uses: Ranked<Option<HashMap<usize, Leases>>, KEPT>,
    objects: Ranked<Option<Objects>, LEAF>,
}

impl CapturedMemory {
    /// Returns that of a capture that begins on a device.
    pub fn new(device: &Arc<GraphBlocks>) -> CapturedMemory {
        CapturedMemory {
            device: device.clone(),
            epoch: device.owner.epoch(),
            blocks: Ranked::default(),
            uses: Ranked::new(Some(HashMap::new())),
            objects: Ranked::new(Some(Objects::default())),
        }
    }

    /// Keeps a block that the stream has just allocated, and that an object stands for besides: the
    /// later one of its free and the graph's end frees it.
    ///
    /// # Safety
    /// The block is an allocation of the device, which nothing else frees.
    pub unsafe fn keep_allocated(&self, address: u64, bytes: usize) {
        self.keep(address, HeldBlock { bytes, holders: 2 });
    }

    /// Keeps a block that its object frees while the capture goes on.
    ///
    /// # Safety
    /// As for [`CapturedMemory::keep_allocated`], and its object no longer uses it.
    pub unsafe fn keep_freed(&self, address: u64, bytes: usize) {
        self.keep(address, HeldBlock { bytes, holders: 1 });
    }

    fn keep(&self, address: u64, block: HeldBlock) {
        self.blocks.lock().push(address);
        self.device.hold(address, block);
    }

    /// Keeps what an operation uses, whose [`AccessGuard`] the caller has, unless the capture is over.
    pub fn add_uses(&self, uses: &[Use<'_>]) {
        let mut all = self.uses.lock();
        let Some(all) = &mut *all else { return };
        for &(memory, access) in uses {
            let leases = all.entry(std::ptr::from_ref(memory.whole()).addr()).or_default();
            match leases.iter_mut().find(|it| Arc::ptr_eq(it.as_use().0, memory)) {
                Some(known) => known.add(access),
                None => leases.push(GraphLease::new(memory, access)),
            }
        }
    }

    /// Returns true if a use that was captured so far has to come before, or after, one of this access.
    pub fn conflicts(&self, memory: &DeviceMemory, access: Access) -> bool {
        let all = self.uses.lock();
        let whole = std::ptr::from_ref(memory.whole()).addr();
        all.iter().flat_map(|all| all.get(&whole)).flatten().any(|hold| {
            let (captured, how) = hold.as_use();
            (Access::Write == access || Access::Write == how) && captured.shares_bytes(memory)
        })
    }

    /// Keeps an object, unless the capture is over.
    pub fn add_object(&self, object: &GraphObject) {
        let address = Arc::as_ptr(object).addr();
        if let Some(all) = &mut *self.objects.lock() {
            all.0.entry(address).or_insert_with(|| object.clone());
        }
    }

    /// Returns true if nothing but this keeps the stream of this number, on which the capture
    /// began: its program has dropped it.
    pub fn is_abandoned(&self, stream: u64) -> bool {
        let all = self.uses.lock();
        let Some(all) = &*all else { return false };
        let holds = || all.values().flatten();
        let references = holds().find_map(|hold| hold.strong_count(stream));
        references
            .is_some_and(|references| references == GraphLease::sole_references(holds(), stream))
    }
}

impl Drop for CapturedMemory {
    fn drop(&mut self) {
        if !self.device.owner.is_alive(self.epoch) {
            return;
        }
        for address in std::mem::take(self.blocks.get_mut()) {
            // One that cannot be freed keeps none of the others.
            if let Some(Err(error)) = self.device.release_one(address) {
                log::warn!("freeing the memory of a capture failed: {error}");
            }
        }
    }
}

/// What a graph uses, and the order of its launches. Dropping it frees memory that was only kept for
/// the graph, behind its launches.
#[derive(Debug)]
pub struct GraphUses {
    /// Held while the graph is launched, which drivers do not allow on two threads at once.
    launching: Ranked<(), LAUNCHING>,
    holds: Vec<GraphLease>,
    #[allow(dead_code, reason = "held for the captured work")]
    objects: Objects,
}

impl GraphUses {
    /// Returns everything else that captured work uses, once the capture has ended. The blocks stay those
    /// of `memory`.
    pub fn take(memory: Option<&CapturedMemory>) -> GraphUses {
        let holds = memory.and_then(|it| it.uses.lock().take()).unwrap_or_default();
        let holds = holds.into_values().flatten().collect();
        let objects = memory.and_then(|it| it.objects.lock().take());
        GraphUses { launching: Ranked::new(()), holds, objects: objects.unwrap_or_default() }
    }

    /// Orders a launch on `stream` behind all work that it conflicts with, and calls `queue`, which
    /// queues it.
    ///
    /// # Errors
    /// Those of [`AccessGuard::acquire`] and of `queue`.
    pub fn launch(
        &self,
        stream: &Arc<dyn Stream>,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let _launching = self.launching.lock();
        let uses: Vec<_> = self.holds.iter().map(GraphLease::as_use).collect();
        let _guard = AccessGuard::acquire_for(stream, &uses, true, || false)?;
        queue()
    }
}

// What graphs hold of the memory that their captured work uses.

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
