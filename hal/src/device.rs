//! Devices: memory, streams, events and modules of one GPU, or of the host.

use crate::compile::Compiled;
use crate::error::{Error, Result};
use crate::event::{Event, EventOptions};
use crate::features::Features;
use crate::module::{LinkInput, LoadOptions, Module, ModuleSource};
use crate::stream::{Stream, StreamOptions};
use std::any::Any;
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
    /// What compilers call the device: `sm_90`, `gfx90a:sramecc+:xnack-`; empty for the host.
    pub architecture: String,
    /// The device's number that no other device has; `None` where there is none.
    pub uuid: Option<[u8; 16]>,
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
            architecture: String::new(),
            uuid: None,
        }
    }

    /// The UUID as `GPU-` and hexadecimal digits in groups of 8, 4, 4, 4 and 12.
    pub fn uuid_text(&self) -> Option<String> {
        let digits: String = self.uuid?.iter().map(|byte| format!("{byte:02x}")).collect();
        let groups =
            [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        Some(format!("GPU-{}", groups.join("-")))
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
    /// Registers of one block at most, of 32 bits each.
    pub const MAX_REGISTERS_PER_BLOCK: Self = Self(12);
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

/// How page-locked memory is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinnedOptions {
    /// Page-locked for every device's context.
    pub portable: bool,
    /// Visible to kernels under [`Device::pinned_address`].
    pub mapped: bool,
    /// Faster for the device to read, slow for the host to read.
    pub write_combined: bool,
}

/// What other processes open memory and events with: 64 bytes that only the driver reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct IpcHandle(pub [u8; 64]);

impl Debug for IpcHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IpcHandle({:02x?}...)", &self.0[..8])
    }
}

/// One GPU, or the host as one. Every method may be called from any thread.
///
/// Allocations made here are usable on every stream at once; those made through
/// [`Stream::allocate`] are ordered with the work of their stream. Prefer the owning types
/// of [`crate::memory`] to these calls.
///
/// # Safety
/// Safe code of this crate relies on what an implementation returns:
/// - an allocation, on the device or page-locked on the host, has as many bytes as were asked for,
///   shares none with another one, and stays until it is freed or [`Device::epoch`] changes;
///   page-locked memory can be read and written by the host;
/// - streams and events are those of this device and keep their own promises;
/// - [`Device::id`] names one device only, and [`Device::synchronize`] returns after all its work.
pub unsafe trait Device: Send + Sync + Debug {
    /// Which device this is.
    fn id(&self) -> DeviceId;

    /// What it is.
    fn properties(&self) -> &DeviceProperties;

    /// One numbered property.
    ///
    /// # Errors
    /// `InvalidArgument` for a number that the device does not know.
    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32>;

    /// Returns what the device supports of what not every device does: by the functions that the
    /// driver has and the attributes that it tells, without making a context. A driver may have a
    /// function that refuses all work; the call says so then.
    fn features(&self) -> Features;

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

    /// True if the device could access the whole range, as far as the driver can tell without
    /// touching it: what checks a raw address that a program passes in. A backend that knows its
    /// allocations takes only ranges inside one of them, or inside page-locked host memory.
    fn can_access(&self, address: u64, bytes: usize) -> bool;

    /// Allocates page-locked host memory, aligned to a page.
    fn allocate_pinned(&self, bytes: usize, options: PinnedOptions) -> Result<*mut u8>;

    /// Frees what [`Device::allocate_pinned`] gave.
    ///
    /// # Safety
    /// As for [`Device::free`].
    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()>;

    /// The address under which the device sees page-locked host memory.
    ///
    /// # Errors
    /// `InvalidArgument` for memory that is not page-locked, or not mapped.
    fn pinned_address(&self, pointer: *mut u8) -> Result<u64>;

    /// Page-locks host memory that the program has.
    ///
    /// # Safety
    /// The range is allocated and stays so until it is unregistered.
    unsafe fn register_host(
        &self,
        pointer: *mut u8,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<()>;

    /// Ends what [`Device::register_host`] began.
    ///
    /// # Safety
    /// No work that uses the range is still to run.
    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()>;

    /// Loads or compiles a module of kernels.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log; `InvalidArgument` for a file that cannot be
    /// read or bytes that are no code for a device.
    fn load_module(
        &self,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        let _ = (source, options);
        Err(Error::unsupported(
            "load_module",
            format!("device {} takes no kernels from source or image", self.id()),
        ))
    }

    /// Compiles CUDA C to code that [`Device::load_module`] takes as an image.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log; `Unsupported` where there is no compiler.
    fn compile(&self, text: &str, name: &str, options: &[&str]) -> Result<Compiled> {
        let _ = (text, name, options);
        Err(Error::unsupported("compile", format!("device {} compiles no kernels", self.id())))
    }

    /// Links code from several inputs to one image.
    ///
    /// # Errors
    /// `CompileFailed` with the linker's log.
    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> {
        let _ = (inputs, options);
        Err(Error::unsupported("link", format!("device {} links no code", self.id())))
    }

    /// Waits for all work of the device.
    fn synchronize(&self) -> Result<()>;

    /// True if a stream's handle means something to other libraries in the process.
    fn shares_streams(&self) -> bool {
        false
    }

    /// A stream that another library made, or one of the driver's special handles: 1 is the
    /// legacy default stream, 2 the default stream of each thread. The stream is not
    /// destroyed with the object.
    ///
    /// # Safety
    /// `handle` is a stream of this device and lives as long as the object.
    unsafe fn stream_from_handle(&self, handle: u64) -> Result<Arc<dyn Stream>> {
        Err(Error::unsupported(
            "stream_from_handle",
            format!("device {} cannot take the stream {handle:#x}", self.id()),
        ))
    }

    /// The least and the greatest priority that streams can have; smaller numbers run first.
    fn priority_range(&self) -> Result<(i32, i32)> {
        Ok((0, 0))
    }

    /// Allocates `height` rows of `width` bytes, each aligned for elements of `element` bytes
    /// (4, 8 or 16); returns the address and the bytes from row to row. Freed like memory of
    /// [`Device::allocate`].
    fn allocate_pitched(
        &self,
        width: usize,
        height: usize,
        element: usize,
    ) -> Result<(u64, usize)> {
        if ![4, 8, 16].contains(&element) {
            return Err(Error::invalid(
                "allocate_pitched",
                format!("element is {element} bytes; allowed are 4, 8 and 16"),
            ));
        }
        let pitch = width.checked_next_multiple_of(512);
        let Some((pitch, bytes)) = pitch.and_then(|p| Some((p, p.checked_mul(height)?))) else {
            return Err(Error::overflow(
                "allocate_pitched",
                format!("width {width} times height {height} does not fit"),
            ));
        };
        Ok((self.allocate(bytes)?, pitch))
    }

    /// Allocates memory that host and device share, which moves to whoever touches it. Freed
    /// like memory of [`Device::allocate`].
    fn allocate_managed(&self, bytes: usize) -> Result<u64> {
        let _ = bytes;
        Err(Error::unsupported("allocate_managed", format!("device {} has none", self.id())))
    }

    /// Start and bytes of the allocation that an address lies in.
    fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        let _ = address;
        Err(Error::unsupported("address_range", format!("device {} cannot tell", self.id())))
    }

    /// True if kernels on this device could use the other one's memory.
    fn can_access_peer(&self, other: &dyn Device) -> Result<bool> {
        let _ = other;
        Ok(false)
    }

    /// Lets kernels on this device use the other one's memory. Doing so twice is no error.
    fn enable_peer_access(&self, other: &dyn Device) -> Result<()> {
        Err(Error::unsupported(
            "enable_peer_access",
            format!("device {} cannot access device {}", self.id(), other.id()),
        ))
    }

    /// Ends what [`Device::enable_peer_access`] began.
    fn disable_peer_access(&self, other: &dyn Device) -> Result<()> {
        Err(Error::unsupported(
            "disable_peer_access",
            format!("device {} cannot access device {}", self.id(), other.id()),
        ))
    }

    /// Bytes of freed memory that are kept for later allocations: what
    /// [`Device::trim_memory`] gives back.
    fn kept_memory(&self) -> Result<usize> {
        Ok(0)
    }

    /// Gives unused memory of the pool back until it holds at most `keep` bytes.
    fn trim_memory(&self, keep: usize) -> Result<()> {
        let _ = keep;
        Ok(())
    }

    /// Bytes of freed memory that the pool keeps when work is waited for; all by default.
    fn set_release_threshold(&self, bytes: usize) -> Result<()> {
        let _ = bytes;
        Err(Error::unsupported(
            "set_release_threshold",
            format!("device {} has no pool", self.id()),
        ))
    }

    /// A handle with which another process can open plain memory of [`Device::allocate`].
    fn export_memory(&self, address: u64) -> Result<IpcHandle> {
        let _ = address;
        Err(Error::unsupported("export_memory", format!("device {} shares none", self.id())))
    }

    /// The address of memory that another process exported.
    fn import_memory(&self, handle: &IpcHandle) -> Result<u64> {
        let _ = handle;
        Err(Error::unsupported("import_memory", format!("device {} shares none", self.id())))
    }

    /// Closes what [`Device::import_memory`] opened.
    ///
    /// # Safety
    /// No work that uses the memory is still to run.
    unsafe fn close_imported(&self, address: u64) -> Result<()> {
        let _ = address;
        Err(Error::unsupported("close_imported", format!("device {} shares none", self.id())))
    }

    /// A handle with which another process can open an event made with `interprocess`.
    fn export_event(&self, event: &dyn Event) -> Result<IpcHandle> {
        let _ = event;
        Err(Error::unsupported("export_event", format!("device {} shares none", self.id())))
    }

    /// The event that another process exported.
    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        let _ = handle;
        Err(Error::unsupported("import_event", format!("device {} shares none", self.id())))
    }

    /// A numbered limit of the device's context: those of `CUlimit`.
    fn limit(&self, limit: i32) -> Result<usize> {
        Err(Error::unsupported("limit", format!("device {} has no limit {limit}", self.id())))
    }

    /// Sets a numbered limit; the driver may round it.
    fn set_limit(&self, limit: i32, value: usize) -> Result<()> {
        let _ = value;
        Err(Error::unsupported("set_limit", format!("device {} has no limit {limit}", self.id())))
    }

    /// Makes the device's context the calling thread's, for other libraries' calls on this
    /// thread. This library's own calls do not need it.
    fn make_current(&self) -> Result<()> {
        Ok(())
    }

    /// How often the device has been reset: what was made before is gone.
    fn epoch(&self) -> u64 {
        0
    }

    /// Destroys everything on the device: memory, streams, events and modules of this and
    /// all other libraries in the process, page-locked memory too. Objects of this library
    /// made before give `InvalidHandle`. The way to recover from a kernel's failure without
    /// ending the process.
    ///
    /// # Errors
    /// `Unsupported` where the device has nothing to reset.
    ///
    /// # Safety
    /// Nobody reads or writes page-locked memory of the device from now on, and no other
    /// library of the process uses the device meanwhile, or later what it made before.
    unsafe fn reset(&self) -> Result<()> {
        Err(Error::unsupported("reset", format!("device {} cannot be reset", self.id())))
    }

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}
