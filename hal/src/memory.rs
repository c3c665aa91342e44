//! Memory as objects: allocations that are freed automatically, in the order of the work that uses them.

mod access;
mod address_lease;
mod allocation;
mod captured;
mod deferred;
mod later;
mod order;
mod pinned;
pub mod pool;
mod texture;
mod usage;

pub use access::{AccessGuard, Use, wait_before_copy};
pub use address_lease::{AddressLease, HostAccess};
use allocation::drain_for_end;
pub use allocation::{Allocation, Imported, Managed, Pitched};
pub use captured::{BlockOwner, CapturedMemory, GraphBlocks, GraphLease, GraphObject, GraphUses};
pub use deferred::Deferred;
use deferred::DeferredReaders;
pub(crate) use later::leave;
pub use later::{drain_dropped, is_left};
pub use order::Access;
use order::{ALL, Bytes};
pub use pinned::{PinnedMemory, RegisteredMemory};
pub use pool::{DevicePool, PinnedPool, PooledPinned};
pub use texture::{SurfaceObject, TextureArray, TextureObject};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::process;
use crate::recording;
use crate::status::{AtomicStatus, Status};
use crate::stream::Stream;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::{fmt, mem};
use usage::Usage;

static LAST_FAILED_FREE: AtomicStatus = AtomicStatus::new();

/// Returns the status of the last free that failed while an object was dropped; success if none failed. Such failures
/// are also logged.
pub fn last_failed_free() -> Status {
    LAST_FAILED_FREE.load()
}

fn note_failed_free(what: &str, result: Result<()>) {
    if let Err(error) = result {
        LAST_FAILED_FREE.store(error.status());
        log::warn!("freeing {what} failed: {error}");
    }
}

/// The owner of the bytes.
enum Owner {
    /// This object; it allocated them with [`Stream::allocate`](crate::stream::StreamCore::allocate).
    Stream,
    /// This object; it allocated them with [`Device::allocate`].
    Device,
    /// Another library or object; it keeps them allocated while this value lives.
    External(Box<dyn Any + Send + Sync>),
    /// The memory that this object is a part of. It orders the uses of all its parts.
    Whole(Arc<DeviceMemory>),
}

/// An allocator for the results of an array's operations, instead of the stream.
///
/// [`DevicePool`] implements it; programs implement it for their own pools. `Array::with_allocator` sets it. Every
/// operation on that array calls the allocator for the result, and the result inherits the allocator.
///
/// The results of two steps reuse one block of a pool:
///
/// ```
/// use gpuarray::{DeviceArray, memory::{Allocator, DevicePool}};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let pool = Arc::new(DevicePool::new());
/// let allocator: Arc<dyn Allocator> = pool.clone();
/// let x = DeviceArray::<f32>::ones(&device, &[1000])?.into_untyped();
/// let x = DeviceArray::<f32>::from_untyped(x.with_allocator(Some(allocator)))?;
/// for _ in 0..2 {
///     assert_eq!((&x * 2.0)?.sum()?, 2000.0);
/// }
/// assert!(pool.counts().managed_bytes < 2 * 4000 + 4096);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// Each [`DeviceMemory`] that [`Allocator::allocate`] returns
/// - is memory of the requested device, with at least the requested number of bytes;
/// - stays allocated until the object has been dropped or released, and the work that used the object before that has
///   run;
/// - shares no byte with another live `DeviceMemory`, nor with anything that is accessed in another way than through
///   this object.
///
/// The same object may be returned again: uses of the object are ordered, and an operation refuses a result that
/// overlaps one of the operands.
pub unsafe trait Allocator: Send + Sync + fmt::Debug {
    /// Returns memory of at least `bytes` bytes for work on `stream`, a stream of `device`.
    ///
    /// # Errors
    /// The allocator's own; the operation fails with the same error.
    fn allocate(
        &self,
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Arc<DeviceMemory>>;
}

/// An allocation of device memory that tracks which streams use it.
///
/// Uses on several streams are ordered with events. A stream that reads waits for the last stream that wrote. A stream
/// that writes waits for all streams that have used the memory since. The memory is freed after the last use, on a
/// stream of its own device. The host does not wait for any of this.
///
/// Bytes that become an array, and are freed with its last view:
///
/// ```
/// use gpuarray::{Array, DType, DeviceArray, Layout, Order, memory::DeviceMemory};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let memory = Arc::new(DeviceMemory::for_stream(&device, &stream, 64)?);
/// let layout = Layout::contiguous(&[2, 4], 8, Order::C)?;
/// let table = Array::from_memory(memory, layout, DType::Float64, stream)?;
/// let mut table = DeviceArray::<f64>::from_untyped(table)?;
/// table.fill(0.5)?;
/// assert_eq!(table.sum()?, 4.0);
/// # Ok(())
/// # }
/// ```
pub struct DeviceMemory {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
    owner: Owner,
    generation: u32,
    /// The number of [`AddressLease`]s, or [`RELEASED`].
    leases: AtomicU32,
    /// [`Device::epoch`] when the memory was allocated.
    epoch: u64,
    usage: Usage,
    /// Work that reads the memory later.
    deferred: DeferredReaders,
}

impl fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceMemory({:#x}, {} bytes on {})", self.address, self.bytes, self.device.id())
    }
}

impl DeviceMemory {
    /// Allocates `bytes` bytes in the order of `stream`, and frees them in the order of their uses. Zero bytes allocate
    /// nothing and have the address 0.
    ///
    /// # Errors
    /// `OutOfMemory` with the bytes that were requested, are in use and are available; `InvalidArgument` if the stream
    /// belongs to another device.
    pub fn for_stream(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<DeviceMemory> {
        same_device(device, stream.as_ref())?;
        // SAFETY: checked on the line above.
        unsafe { Self::on_own_stream(device, stream, bytes) }
    }

    /// Like [`DeviceMemory::for_stream`], for a stream known to belong to the device.
    ///
    /// # Errors
    /// As for [`DeviceMemory::for_stream`].
    ///
    /// # Safety
    /// `stream` belongs to `device`.
    #[inline]
    pub unsafe fn on_own_stream(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<DeviceMemory> {
        let allocate = || recording::allocated(device.id(), bytes, || stream.allocate(bytes));
        let address = if bytes == 0 { 0 } else { allocate()? };
        Ok(Self::new(device, stream, address, bytes, Owner::Stream))
    }

    /// Like [`DeviceMemory::on_own_stream`], with all bytes zero; `None` if the stream would have to fill the memory.
    ///
    /// # Errors
    /// As for [`DeviceMemory::for_stream`].
    ///
    /// # Safety
    /// As for [`DeviceMemory::on_own_stream`].
    pub unsafe fn zeroed(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Option<DeviceMemory>> {
        let Some(address) = stream.allocate_zeroed(bytes)? else { return Ok(None) };
        recording::allocated(device.id(), bytes, || Ok(address))?;
        Ok(Some(Self::new(device, stream, address, bytes, Owner::Stream)))
    }

    /// Allocates memory that every stream can use immediately, and that other processes can open if the device can
    /// share memory ([`Device::allocate`]). Freeing it waits for the device's work.
    ///
    /// # Errors
    /// As for [`DeviceMemory::for_stream`].
    pub fn plain(device: &Arc<dyn Device>, bytes: usize) -> Result<DeviceMemory> {
        let stream = device.default_stream();
        let allocate = || recording::allocated(device.id(), bytes, || device.allocate(bytes));
        let address = if bytes == 0 { 0 } else { allocate()? };
        Ok(Self::new(device, &stream, address, bytes, Owner::Device))
    }

    /// Returns an object for `bytes` bytes at `address` that another library or object allocated. `owner` is dropped
    /// only after the work that uses the memory through this object is queued.
    ///
    /// # Safety
    /// The range is device memory of `device`. It stays allocated until `owner` is dropped and the work queued until
    /// then has run.
    pub unsafe fn from_raw_parts(
        device: &Arc<dyn Device>,
        address: u64,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> DeviceMemory {
        let stream = device.default_stream();
        Self::new(device, &stream, address, bytes, Owner::External(owner))
    }

    fn new(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        address: u64,
        bytes: usize,
        owner: Owner,
    ) -> DeviceMemory {
        DeviceMemory {
            device: device.clone(),
            address,
            bytes,
            owner,
            generation: process::generation(),
            leases: AtomicU32::new(0),
            epoch: device.epoch(),
            usage: Usage::new(stream.clone()),
            deferred: DeferredReaders::default(),
        }
    }

    /// Returns a range of the bytes as a separate object. Uses of the part are ordered with uses of this memory, and
    /// with uses of other parts that share a byte with it. Parts that do not overlap are used concurrently. The memory
    /// is freed after the uses of all parts. Calling [`DeviceMemory::release`] or [`DeviceMemory::reissue`] on the
    /// memory also ends the uses of its parts.
    ///
    /// # Errors
    /// `IndexOutOfRange` unless the range is inside the memory.
    pub fn part(self: &Arc<Self>, bytes: Range<usize>) -> Result<DeviceMemory> {
        if bytes.start > bytes.end || bytes.end > self.bytes {
            let detail =
                format!("the bytes {bytes:?} are not inside a memory of size {}", self.bytes);
            return Err(Error::index("part", detail));
        }
        let whole = Self::whole_of(self);
        let usage = Usage::new(self.usage.allocation_stream().clone());
        // A part does not use the fast path, and frees nothing.
        usage.abandon();
        Ok(DeviceMemory {
            device: self.device.clone(),
            address: self.address + bytes.start as u64,
            bytes: bytes.len(),
            owner: Owner::Whole(whole.clone()),
            generation: self.generation,
            leases: AtomicU32::new(0),
            epoch: self.epoch,
            usage,
            deferred: DeferredReaders::default(),
        })
    }

    fn whole_of(memory: &Arc<Self>) -> &Arc<Self> {
        match &memory.owner {
            Owner::Whole(whole) => whole,
            _ => memory,
        }
    }

    /// Returns the memory that tracks the uses of this one.
    #[inline]
    fn whole(&self) -> &DeviceMemory {
        match &self.owner {
            Owner::Whole(whole) => whole,
            _ => self,
        }
    }

    /// Returns the range of the whole memory that a use concerns.
    fn bytes_of_whole(&self) -> Bytes {
        match &self.owner {
            Owner::Whole(whole) => {
                let start = (self.address - whole.address) as usize;
                start..start + self.bytes
            }
            _ => ALL,
        }
    }

    /// Returns true if uses of the two objects may share a byte.
    fn shares_bytes(&self, other: &DeviceMemory) -> bool {
        let (a, b) = (self.bytes_of_whole(), other.bytes_of_whole());
        std::ptr::eq(self.whole(), other.whole()) && a.start.max(b.start) < a.end.min(b.end)
    }

    /// Refuses a part of a memory.
    ///
    /// # Errors
    /// `Unsupported` for a part.
    fn check_whole(&self, call: &'static str) -> Result<()> {
        match &self.owner {
            Owner::Whole(whole) => Err(Error::unsupported(
                call,
                format!(
                    "this is a part of the memory at {:#x}; use the whole memory instead",
                    whole.address
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the device that the memory is on.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the stream that the memory was allocated for. Work is queued on this stream unless another stream is
    /// named.
    pub fn stream(&self) -> &Arc<dyn Stream> {
        self.usage.allocation_stream()
    }

    /// Returns the base address; 0 if the allocation is empty.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the owner that keeps the memory alive, if another library allocated it.
    pub fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.whole().owner {
            Owner::External(owner) => Some(owner.as_ref()),
            _ => None,
        }
    }

    /// Frees the memory now, in the order of the work that uses it, although the object still exists. Later uses return
    /// `InvalidHandle`. If a graph uses the memory, it stays allocated and is freed with the graph.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was already freed, or while an [`AddressLease`] lives; the driver's error if the
    /// free failed; `Unsupported` for a part of a memory.
    pub fn release(&self) -> Result<()> {
        self.check_whole("release")?;
        self.queue_deferred()?;
        self.usage.before_retiring()?;
        self.end_leases()?;
        if self.is_out_of_reach() {
            // Before any lock: a thread of the parent may have held it at a fork.
            self.usage.abandon();
            return Ok(());
        }
        match self.usage.retire(self)? {
            Some(stream) => self.free(stream.as_ref()),
            None => Ok(()),
        }
    }

    /// Frees memory that was released while a graph used it.
    fn free_deferred(&self) {
        if self.is_out_of_reach() {
            return;
        }
        let stream = self.usage.retire_deferred(self);
        note_failed_free("device memory", stream.and_then(|stream| self.free(stream.as_ref())));
    }

    /// Returns true while a graph that was captured with this memory lives. The memory then stays allocated, even after
    /// a release.
    pub fn is_held_by_graph(&self) -> bool {
        self.whole().usage.is_held_by_graph()
    }

    /// Returns the same memory as a new object. Uses of the new object are ordered after all work queued so far. The
    /// old object is then released, as if by [`DeviceMemory::release`]. A pool uses this to hand out memory again
    /// although the old object is still referenced. Returns `None` if a graph uses the memory; the memory is then freed
    /// with the graph.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was already freed, or while an [`AddressLease`] lives; `Unsupported` for memory
    /// that another library allocated, and for a part of a memory.
    pub fn reissue(&self) -> Result<Option<DeviceMemory>> {
        let owner = match self.owner {
            Owner::Stream => Owner::Stream,
            Owner::Device => Owner::Device,
            Owner::Whole(_) => return self.check_whole("reissue").map(|()| None),
            Owner::External(_) => {
                return Err(Error::unsupported(
                    "reissue",
                    "the memory was allocated by another library",
                ));
            }
        };
        if self.is_out_of_reach() {
            return Err(usage::lost(self));
        }
        self.queue_deferred()?;
        self.usage.before_retiring()?;
        self.end_leases()?;
        let Some(stream) = self.usage.retire(self)? else { return Ok(None) };
        let usage = Usage::new(stream);
        Ok(Some(DeviceMemory {
            device: self.device.clone(),
            address: self.address,
            bytes: self.bytes,
            owner,
            generation: self.generation,
            leases: AtomicU32::new(0),
            epoch: self.epoch,
            usage,
            deferred: DeferredReaders::default(),
        }))
    }

    /// Returns true if freeing the memory waits for the device's work. This is so for memory from
    /// [`DeviceMemory::plain`].
    pub fn waits_when_freed(&self) -> bool {
        matches!(self.whole().owner, Owner::Device)
    }

    /// Returns a stream on which work queued from now on may read and write the memory: the stream of the last write,
    /// which first waits for the reads since.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was freed; the driver's error if streams cannot be made to wait.
    pub fn stream_in_order(self: &Arc<Self>) -> Result<Arc<dyn Stream>> {
        let writer = self.whole().usage.writer()?;
        AccessGuard::acquire(&writer, &[(self, Access::Write)])?;
        Ok(writer)
    }

    /// Returns true if no stream except `stream` has used the memory. A use on `stream` then does not wait.
    #[inline]
    pub fn is_used_only_on(&self, stream: &dyn Stream) -> bool {
        self.whole().usage.sole_stream().is_some_and(|only| only.id() == stream.id())
    }

    /// Returns false once [`DeviceMemory::release`] has been called.
    pub fn is_allocated(&self) -> bool {
        !self.whole().usage.is_retired()
    }

    /// Checks that the memory can still be used.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was freed, or destroyed by a reset of the device.
    pub fn check(&self) -> Result<()> {
        if self.is_gone() {
            return Err(usage::lost(self));
        }
        if self.whole().usage.is_retired() { Err(usage::freed(self)) } else { Ok(()) }
    }

    /// Returns true if a reset of the device destroyed the memory.
    #[inline]
    fn is_gone(&self) -> bool {
        self.device.epoch() != self.epoch
    }

    /// Returns true if a parent process allocated the memory.
    #[inline]
    fn is_inherited(&self) -> bool {
        self.generation != process::generation()
    }

    /// Refuses plain memory of a parent process. If processes can share it, both see the same bytes, and the parent may
    /// have reused them for something else.
    ///
    /// # Errors
    /// `InvalidHandle`.
    fn check_inherited(&self) -> Result<()> {
        let is_plain = match &self.whole().owner {
            Owner::Stream | Owner::Whole(_) => false,
            Owner::Device => true,
            Owner::External(owner) => allocation::is_plain(owner.as_ref()),
        };
        if !is_plain {
            return Ok(());
        }
        Err(Error::handle(
            "memory",
            format!(
                "the memory at {:#x} was allocated by a parent process, which may have freed it \
                 since; allocate \
                 in this process, or open the parent's by an IPC handle",
                self.address
            ),
        ))
    }

    /// Returns true if nothing may be freed any longer.
    fn is_out_of_reach(&self) -> bool {
        process::is_exiting() || self.is_inherited() || self.is_gone()
    }

    /// Moves the memory to another object, and leaves this one as after [`DeviceMemory::release`].
    fn take(&mut self) -> DeviceMemory {
        let empty = Usage::new(self.usage.allocation_stream().clone());
        empty.abandon();
        DeviceMemory {
            device: self.device.clone(),
            address: self.address,
            bytes: self.bytes,
            owner: mem::replace(&mut self.owner, Owner::Stream),
            generation: self.generation,
            leases: mem::take(&mut self.leases),
            epoch: self.epoch,
            usage: mem::replace(&mut self.usage, empty),
            deferred: DeferredReaders::default(),
        }
    }

    fn free(&self, stream: &dyn Stream) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        if matches!(self.owner, Owner::External(_) | Owner::Whole(_)) {
            return Ok(());
        }
        recording::freed(self.device.id(), (self.address, self.bytes), || match self.owner {
            // SAFETY: address and size belong to one allocation. `retire` succeeds only once, and returns the stream of
            // the last write, ordered after all other uses.
            Owner::Stream => unsafe { stream.free(self.address, self.bytes) },
            // SAFETY: as above; the device waits for the work that uses the memory.
            Owner::Device => unsafe { self.device.free(self.address, self.bytes) },
            Owner::External(_) | Owner::Whole(_) => Ok(()),
        })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.is_out_of_reach()
            || self.usage.is_retired()
            || is_left(self.device.id(), || self.take())
        {
            return;
        }
        let result = match self.usage.sole_stream() {
            Some(stream) => self.free(stream),
            // Other threads may use the memory and wait for the guard that this thread holds.
            None if !usage::may_wait_for_uses() => return leave(self.device.id(), self.take()),
            None => self.release(),
        };
        note_failed_free("device memory", result);
    }
}

/// Checks that a stream belongs to the device.
///
/// # Errors
/// `InvalidArgument` that names both devices.
pub fn same_device(device: &Arc<dyn Device>, stream: &dyn Stream) -> Result<()> {
    device.id().check_same("stream", "stream", stream.device_id())
}
