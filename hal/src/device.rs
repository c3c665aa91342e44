//! Devices: memory, streams, events and modules of one GPU, or of the host.

use crate::error::{Error, Result};
use crate::event::{Event, EventOptions};
use crate::module::{Module, ModuleSource};
use crate::stream::{Stream, StreamOptions};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Which device: two objects with the same identity are the same device.
#[derive(Clone, Copy, Debug, Eq)]
pub struct DeviceId {
    /// The backend's name.
    pub backend: &'static str,
    /// The device's number there.
    pub ordinal: usize,
}

impl PartialEq for DeviceId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // Every operation compares devices, and their names are nearly always the same text.
        self.ordinal == other.ordinal
            && (std::ptr::eq(self.backend, other.backend) || self.backend == other.backend)
    }
}

impl Hash for DeviceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.backend.hash(state);
        self.ordinal.hash(state);
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.backend, self.ordinal)
    }
}

/// What a device is, read once when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// The device's name.
    pub name: String,
    /// Its place on the bus, as `domain:bus:device.function`.
    pub pci_bus_id: String,
    /// Its generation: compute capability on CUDA.
    pub compute_capability: (u32, u32),
    /// Bytes of device memory.
    pub total_memory: usize,
}

impl DeviceProperties {
    /// Properties of a device.
    pub fn new(
        name: impl Into<String>,
        pci_bus_id: impl Into<String>,
        compute_capability: (u32, u32),
        total_memory: usize,
    ) -> Self {
        DeviceProperties {
            name: name.into(),
            pci_bus_id: pci_bus_id.into(),
            compute_capability,
            total_memory,
        }
    }
}

/// A property of a device with a number of its own: those of `CUdevice_attribute`, open to
/// numbers nobody has named yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceAttribute(pub i32);

impl DeviceAttribute {
    /// Threads per block at most.
    pub const MAX_THREADS_PER_BLOCK: Self = Self(1);
    /// Block extent along x at most.
    pub const MAX_BLOCK_DIM_X: Self = Self(2);
    /// Block extent along y at most.
    pub const MAX_BLOCK_DIM_Y: Self = Self(3);
    /// Block extent along z at most.
    pub const MAX_BLOCK_DIM_Z: Self = Self(4);
    /// Grid extent along x at most.
    pub const MAX_GRID_DIM_X: Self = Self(5);
    /// Grid extent along y at most.
    pub const MAX_GRID_DIM_Y: Self = Self(6);
    /// Grid extent along z at most.
    pub const MAX_GRID_DIM_Z: Self = Self(7);
    /// Shared memory per block in bytes.
    pub const MAX_SHARED_MEMORY_PER_BLOCK: Self = Self(8);
    /// Constant memory in bytes.
    pub const TOTAL_CONSTANT_MEMORY: Self = Self(9);
    /// Threads of a warp or wavefront.
    pub const WARP_SIZE: Self = Self(10);
    /// Clock rate in kHz.
    pub const CLOCK_RATE: Self = Self(13);
    /// Multiprocessors, compute units or cores.
    pub const MULTIPROCESSOR_COUNT: Self = Self(16);
    /// 1 if the device shares the host's memory.
    pub const INTEGRATED: Self = Self(18);
    /// 1 if pinned host memory can be mapped into the device.
    pub const CAN_MAP_HOST_MEMORY: Self = Self(19);
    /// 1 if several kernels can run at once.
    pub const CONCURRENT_KERNELS: Self = Self(31);
    /// PCI bus number.
    pub const PCI_BUS_ID: Self = Self(33);
    /// PCI device number.
    pub const PCI_DEVICE_ID: Self = Self(34);
    /// Threads of one multiprocessor at most.
    pub const MAX_THREADS_PER_MULTIPROCESSOR: Self = Self(39);
    /// Engines that copy while kernels run.
    pub const ASYNC_ENGINE_COUNT: Self = Self(40);
    /// 1 if host and device share one address space.
    pub const UNIFIED_ADDRESSING: Self = Self(41);
    /// Major number of the compute capability.
    pub const COMPUTE_CAPABILITY_MAJOR: Self = Self(75);
    /// Minor number of the compute capability.
    pub const COMPUTE_CAPABILITY_MINOR: Self = Self(76);
    /// 1 if managed memory can be allocated.
    pub const MANAGED_MEMORY: Self = Self(83);
}

/// How much memory a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that can be allocated now.
    pub free: usize,
    /// Bytes in all.
    pub total: usize,
}

/// One GPU, or the host as one. Every method may be called from any thread.
///
/// Allocations made here are usable on every stream at once; those made through
/// [`Stream::allocate`] are ordered with the work of their stream. Prefer the owning types
/// of [`crate::memory`] to these calls.
pub trait Device: Send + Sync + Debug {
    /// Which device this is.
    fn id(&self) -> DeviceId;

    /// What it is.
    fn properties(&self) -> &DeviceProperties;

    /// One numbered property.
    ///
    /// # Errors
    /// `InvalidArgument` for a number that the device does not know.
    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32>;

    /// How much memory it has and how much of it is free.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// The stream that work goes to when none is named: the legacy default stream, which
    /// waits for all streams made without `non_blocking`, and they for it.
    fn default_stream(&self) -> Arc<dyn Stream>;

    /// A new stream.
    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>>;

    /// A new event.
    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>>;

    /// Allocates device memory; the address is aligned for every type.
    ///
    /// # Errors
    /// `OutOfMemory` that says how much was asked, is used and is available.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Frees what [`Device::allocate`] gave, once all work queued on the device has run; may
    /// wait for that.
    ///
    /// # Safety
    /// `address` and `bytes` are those of one call to `allocate`, not freed since, and no
    /// work that uses the memory is queued from now on.
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()>;

    /// True if the device could access the range, as far as the driver can tell without
    /// touching it: what checks a raw address that a program passes in.
    fn can_access(&self, address: u64, bytes: usize) -> bool;

    /// Allocates page-locked host memory, aligned to a page.
    fn allocate_pinned(&self, bytes: usize) -> Result<*mut u8>;

    /// Frees what [`Device::allocate_pinned`] gave.
    ///
    /// # Safety
    /// As for [`Device::free`].
    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()>;

    /// Page-locks host memory that the program has.
    ///
    /// # Safety
    /// The range is allocated and stays so until it is unregistered.
    unsafe fn register_host(&self, pointer: *mut u8, bytes: usize) -> Result<()>;

    /// Ends what [`Device::register_host`] began.
    ///
    /// # Safety
    /// No work that uses the range is still to run.
    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()>;

    /// Loads or compiles a module of kernels.
    fn load_module(&self, source: &ModuleSource<'_>) -> Result<Arc<dyn Module>> {
        let _ = source;
        Err(Error::unsupported(
            "load_module",
            format!("device {} takes no kernels from source or image", self.id()),
        ))
    }

    /// Waits for all work of the device.
    fn synchronize(&self) -> Result<()>;
}
