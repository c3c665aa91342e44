//! Objects that captured work uses, kept until every graph made of the capture is gone.
//!
//! Each launch of a graph uses the addresses of its capture. So memory that captured work uses, or that is allocated or
//! freed on a capturing stream, must stay allocated until the graph is destroyed. A backend keeps a [`CapturedMemory`]
//! for each capture in progress, and a [`GraphUses`] in each graph.

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

/// A device's allocator. It frees the blocks of captures and graphs.
pub trait BlockOwner: Send + Sync + Debug {
    /// Returns a number that changes when a reset or a fork invalidates all blocks.
    fn epoch(&self) -> u64;

    /// Returns true if blocks of the epoch still exist and can be freed.
    fn is_alive(&self, epoch: u64) -> bool;

    /// Frees a block after all work that may use it.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// Address and bytes belong to one allocation without other holders.
    unsafe fn free_block(&self, address: u64, bytes: usize) -> Result<()>;
}

/// A block, and the number of holders of the block: graphs, and the object for the block.
#[derive(Debug)]
struct GraphBlock {
    bytes: usize,
    holders: u32,
}

/// The blocks of one device that belong to captures and graphs.
#[derive(Debug)]
pub struct GraphBlocks {
    owner: Arc<dyn BlockOwner>,
    blocks: ProcessMutex<HashMap<u64, GraphBlock>>,
    /// The number of blocks in `blocks`: usually 0.
    count: AtomicUsize,
}

impl GraphBlocks {
    /// Returns the empty list of a device.
    pub fn new(owner: Arc<dyn BlockOwner>) -> GraphBlocks {
        GraphBlocks { owner, blocks: ProcessMutex::default(), count: AtomicUsize::new(0) }
    }

    /// Removes one holder of a block, and frees the block with its last holder. Returns `None` if the block belongs to
    /// neither a capture nor a graph.
    #[inline]
    pub fn release(&self, address: u64) -> Option<Result<()>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.release_one(address)
    }

    fn release_one(&self, address: u64) -> Option<Result<()>> {
        let mut all = self.blocks.lock();
        let block = all.get_mut(&address)?;
        block.holders -= 1;
        if block.holders > 0 {
            return Some(Ok(()));
        }
        let bytes = block.bytes;
        all.remove(&address);
        self.count.store(all.len(), Ordering::Release);
        drop(all);
        // SAFETY: the block has no holders left, and the caller that added it promised that it is an allocation.
        Some(unsafe { self.owner.free_block(address, bytes) })
    }

    fn add(&self, address: u64, block: GraphBlock) {
        let mut all = self.blocks.lock();
        all.insert(address, block);
        self.count.store(all.len(), Ordering::Release);
    }

    /// Forgets every block, because the device is being reset.
    pub fn forget(&self) {
        self.blocks.lock().clear();
        self.count.store(0, Ordering::Release);
    }
}

/// An object that captured work needs in addition to device memory: code, or host memory.
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

/// A set of objects, without duplicates.
#[derive(Default)]
struct Objects(HashMap<usize, GraphObject>);

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects", self.0.len())
    }
}

/// The uses of one memory, as a whole or by parts.
type Leases = SmallVec<[GraphLease; 1]>;

/// The memory and other objects that one capture uses.
#[derive(Debug)]
pub struct CapturedMemory {
    device: Arc<GraphBlocks>,
    epoch: u64,
    /// Blocks that were allocated or freed during the capture.
    blocks: Ranked<Vec<u64>, LEAF>,
    /// The uses of its operations, by the address of the whole memory's object; `None` after the capture has ended. A
    /// thread that looked up the capture earlier then adds nothing: it holds locks, so it must not drop anything.
    uses: Ranked<Option<HashMap<usize, Leases>>, KEPT>,
    objects: Ranked<Option<Objects>, LEAF>,
}

impl CapturedMemory {
    /// Returns the empty list for a capture that begins on a device.
    pub fn new(device: &Arc<GraphBlocks>) -> CapturedMemory {
        CapturedMemory {
            device: device.clone(),
            epoch: device.owner.epoch(),
            blocks: Ranked::default(),
            uses: Ranked::new(Some(HashMap::new())),
            objects: Ranked::new(Some(Objects::default())),
        }
    }

    /// Keeps a block that the stream has just allocated and that an object represents. The block is freed when both the
    /// object and the graph are gone.
    ///
    /// # Safety
    /// The block is an allocation of the device that is freed only through this list.
    pub unsafe fn keep_allocated(&self, address: u64, bytes: usize) {
        self.keep(address, GraphBlock { bytes, holders: 2 });
    }

    /// Keeps a block whose object is freed during the capture.
    ///
    /// # Safety
    /// As for [`CapturedMemory::keep_allocated`], and the object no longer uses the block.
    pub unsafe fn keep_freed(&self, address: u64, bytes: usize) {
        self.keep(address, GraphBlock { bytes, holders: 1 });
    }

    fn keep(&self, address: u64, block: GraphBlock) {
        self.blocks.lock().push(address);
        self.device.add(address, block);
    }

    /// Keeps the memory of an operation whose [`AccessGuard`] the caller holds, unless the capture has ended.
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

    /// Returns true if a captured use conflicts with a use of `memory` with this access.
    pub fn conflicts(&self, memory: &DeviceMemory, access: Access) -> bool {
        let all = self.uses.lock();
        let whole = std::ptr::from_ref(memory.whole()).addr();
        all.iter().flat_map(|all| all.get(&whole)).flatten().any(|lease| {
            let (captured, how) = lease.as_use();
            (Access::Write == access || Access::Write == how) && captured.shares_bytes(memory)
        })
    }

    /// Keeps an object, unless the capture has ended.
    pub fn add_object(&self, object: &GraphObject) {
        let address = Arc::as_ptr(object).addr();
        if let Some(all) = &mut *self.objects.lock() {
            all.0.entry(address).or_insert_with(|| object.clone());
        }
    }

    /// Returns true if the program has dropped the stream on which the capture began, so that only this list keeps it.
    pub fn is_abandoned(&self, stream: u64) -> bool {
        let all = self.uses.lock();
        let Some(all) = &*all else { return false };
        let leases = || all.values().flatten();
        let references = leases().find_map(|lease| lease.strong_count(stream));
        references
            .is_some_and(|references| references == GraphLease::sole_references(leases(), stream))
    }
}

impl Drop for CapturedMemory {
    fn drop(&mut self) {
        if !self.device.owner.is_alive(self.epoch) {
            return;
        }
        for address in std::mem::take(self.blocks.get_mut()) {
            // If one block cannot be freed, the others still are.
            if let Some(Err(error)) = self.device.release_one(address) {
                log::warn!("freeing the memory of a capture failed: {error}");
            }
        }
    }
}

/// The memory and objects that a graph uses, and the order of its launches. When it is dropped, memory kept only for
/// the graph is freed after the graph's launches.
#[derive(Debug)]
pub struct GraphUses {
    /// Held while the graph is launched, because drivers do not allow concurrent launches of one graph.
    launching: Ranked<(), LAUNCHING>,
    leases: Vec<GraphLease>,
    #[allow(dead_code, reason = "held for the captured work")]
    objects: Objects,
}

impl GraphUses {
    /// Takes everything that captured work uses, except blocks, after the capture has ended. The blocks remain with
    /// `memory`.
    pub fn take(memory: Option<&CapturedMemory>) -> GraphUses {
        let leases = memory.and_then(|it| it.uses.lock().take()).unwrap_or_default();
        let leases = leases.into_values().flatten().collect();
        let objects = memory.and_then(|it| it.objects.lock().take());
        GraphUses { launching: Ranked::new(()), leases, objects: objects.unwrap_or_default() }
    }

    /// Orders a launch on `stream` after all work that it conflicts with, and calls `queue` to queue the launch.
    ///
    /// # Errors
    /// As for [`AccessGuard::acquire`], and the errors of `queue`.
    pub fn launch(
        &self,
        stream: &Arc<dyn Stream>,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let _launching = self.launching.lock();
        let uses: Vec<_> = self.leases.iter().map(GraphLease::as_use).collect();
        let _guard = AccessGuard::acquire_for(stream, &uses, true, || false)?;
        queue()
    }
}

// The leases by which graphs keep the memory of their captured work.

/// A use of memory by captured work. While it lives, the memory stays allocated at its address, even if all arrays over
/// it are dropped.
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
    /// Leases memory whose [`AccessGuard`] the caller holds, so that it cannot be freed meanwhile.
    pub(crate) fn new(memory: &Arc<DeviceMemory>, access: Access) -> GraphLease {
        memory.whole().usage.enter_graph();
        GraphLease { memory: memory.clone(), access }
    }

    /// Records a further use.
    pub(crate) fn add(&mut self, access: Access) {
        if access == Access::Write {
            self.access = access;
        }
    }

    /// Returns the total number of references to a stream that the memory refers to.
    pub(crate) fn strong_count(&self, stream: u64) -> Option<usize> {
        self.memory.whole().usage.strong_count(stream)
    }

    /// Returns the number of references to a stream that exist only because of these leases.
    pub(crate) fn sole_references<'a>(
        leases: impl Iterator<Item = &'a GraphLease>,
        stream: u64,
    ) -> usize {
        let mut wholes: HashMap<*const DeviceMemory, (&Arc<DeviceMemory>, usize)> = HashMap::new();
        let mut of_parts = 0;
        for GraphLease { memory, .. } in leases {
            let whole = DeviceMemory::whole_of(memory);
            let (_, held) = wholes.entry(Arc::as_ptr(whole)).or_insert((whole, 0));
            if Arc::ptr_eq(memory, whole) {
                *held += 1;
            } else if Arc::strong_count(memory) == 1 {
                // Only its lease keeps the part, which in turn keeps the whole and its stream.
                *held += 1;
                of_parts += usize::from(memory.stream().id() == stream);
            }
        }
        let sole = wholes.values().filter(|(whole, held)| Arc::strong_count(whole) == *held);
        let references = sole.filter_map(|(whole, _)| whole.usage.references(stream));
        of_parts + references.sum::<usize>()
    }

    /// Returns the memory, and the captured work's access to it.
    pub(crate) fn as_use(&self) -> (&Arc<DeviceMemory>, Access) {
        (&self.memory, self.access)
    }
}

impl Drop for GraphLease {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may have held the lock.
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
