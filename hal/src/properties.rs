//! The description of a device: identity, properties, attributes, memory sizes and optional features. Also the options
//! and handles of its memory.

use crate::enumeration::{enumeration, setters};
use crate::error::{Error, Result};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

/// Identifies a device in this process: two objects with the same identity are the same device.
///
/// Two objects for one device have the same identity:
///
/// ```
/// # fn main() -> gpuarray::Result<()> {
/// let backend = gpuarray::open(gpuarray::Choice::Host)?;
/// let (first, second) = (backend.device(0)?, backend.device(0)?);
/// assert_eq!(first.id(), second.id());
/// assert_eq!(first.id().to_string(), "host:0");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq)]
pub struct DeviceId {
    /// The name of its backend: `cuda`, `hip` or `host`.
    pub backend: &'static str,
    /// The number of the device in its backend, counted from 0.
    pub ordinal: usize,
    /// The number of the opening of the backend that the device belongs to. If a backend is opened twice, the two
    /// openings share no memory, streams or events, even for the same hardware. See [`DeviceId::next_instance`].
    pub instance: u32,
}

impl DeviceId {
    /// Returns a new number for an opening of a backend, unique in this process.
    #[must_use]
    pub fn next_instance() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the device's name for a sentence that also names `other`; the opening is included if the names are
    /// equal.
    #[must_use]
    pub fn beside(&self, other: &DeviceId) -> String {
        match self.backend == other.backend && self.ordinal == other.ordinal {
            true => format!("{self} of opening {} of its backend", self.instance),
            false => self.to_string(),
        }
    }

    /// Checks that `argument`, an object of the device `of`, belongs to this device.
    ///
    /// # Errors
    /// `InvalidArgument` that names both devices.
    #[inline]
    pub fn check_same(self, call: &'static str, argument: &str, of: DeviceId) -> Result<()> {
        if self == of { Ok(()) } else { Err(self.refused(call, argument, of)) }
    }

    /// Checks that `argument`, an object of the device `of`, belongs to this device or to another one of the same
    /// opening.
    ///
    /// # Errors
    /// `InvalidArgument` that names both devices.
    #[inline]
    pub fn check_opening(self, call: &'static str, argument: &str, of: DeviceId) -> Result<()> {
        if self.instance == of.instance && self.backend == of.backend {
            return Ok(());
        }
        Err(self.refused(call, argument, of))
    }

    #[cold]
    fn refused(self, call: &'static str, argument: &str, of: DeviceId) -> Error {
        let (there, here) = (of.beside(&self), self.beside(&of));
        let detail =
            format!("{argument} belongs to device {there}; one of device {here} is needed");
        Error::invalid(call, detail)
    }

    /// Returns the error of a call that the device does not support: `what` is the predicate of the sentence.
    pub(crate) fn lacks<T>(self, call: &'static str, what: impl fmt::Display) -> Result<T> {
        Err(Error::unsupported(call, format!("device {self} {what}")))
    }
}

impl PartialEq for DeviceId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // Every operation compares devices, and equal names are nearly always the same text.
        self.ordinal == other.ordinal
            && self.instance == other.instance
            && (std::ptr::eq(self.backend, other.backend) || self.backend == other.backend)
    }
}

impl Hash for DeviceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.backend.hash(state);
        self.ordinal.hash(state);
        self.instance.hash(state);
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.backend, self.ordinal)
    }
}

/// Describes a device. The values are read once, when the device is opened.
///
/// A line for a log:
///
/// ```
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let properties = device.properties();
/// println!("{}: {} MiB", properties.name, properties.total_memory >> 20);
/// assert!(properties.total_memory > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// The device's name.
    pub name: String,
    /// The address of the device on the PCI bus, as `domain:bus:device.function`.
    pub pci_bus_id: String,
    /// Major and minor number of the compute capability on CUDA, of the architecture elsewhere.
    pub compute_capability: (u32, u32),
    /// Bytes of device memory.
    pub total_memory: usize,
    /// The compilers' name of the device: `sm_90`, `gfx90a:sramecc+:xnack-`; empty for the host.
    pub architecture: String,
    /// The UUID, 16 bytes unique to this device; `None` if the driver does not provide one.
    pub uuid: Option<[u8; 16]>,
}

impl DeviceProperties {
    /// Returns properties with an empty architecture and no UUID. `compute_capability` is the major
    /// and the minor number, `total_memory` is in bytes.
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

    /// Returns the UUID as `GPU-` and lower-case hexadecimal digits in groups of 8, 4, 4, 4 and 12; `None` if the
    /// device lacks a UUID.
    pub fn uuid_text(&self) -> Option<String> {
        let digits: String = self.uuid?.iter().map(|byte| format!("{byte:02x}")).collect();
        let groups =
            [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        Some(format!("GPU-{}", groups.join("-")))
    }
}

/// A numbered attribute of a device for [`Device::attribute`](crate::Device::attribute). Every backend uses the
/// numbers of `CUdevice_attribute`, including those without a constant here.
///
/// The largest block that a device runs, by name and by number:
///
/// ```
/// use gpuarray::DeviceAttribute;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let most = device.attribute(DeviceAttribute::MAX_THREADS_PER_BLOCK)?;
/// assert_eq!(most, device.attribute(DeviceAttribute(1))?);
/// assert!(most >= 256);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceAttribute(pub i32);

impl DeviceAttribute {
    /// The maximum number of threads per block.
    pub const MAX_THREADS_PER_BLOCK: Self = Self(1);
    /// The maximum block extent along x.
    pub const MAX_BLOCK_DIM_X: Self = Self(2);
    /// The maximum block extent along y.
    pub const MAX_BLOCK_DIM_Y: Self = Self(3);
    /// The maximum block extent along z.
    pub const MAX_BLOCK_DIM_Z: Self = Self(4);
    /// The maximum grid extent along x.
    pub const MAX_GRID_DIM_X: Self = Self(5);
    /// The maximum grid extent along y.
    pub const MAX_GRID_DIM_Y: Self = Self(6);
    /// The maximum grid extent along z.
    pub const MAX_GRID_DIM_Z: Self = Self(7);
    /// Shared memory per block in bytes.
    pub const MAX_SHARED_MEMORY_PER_BLOCK: Self = Self(8);
    /// Constant memory in bytes.
    pub const TOTAL_CONSTANT_MEMORY: Self = Self(9);
    /// Threads per warp or wavefront.
    pub const WARP_SIZE: Self = Self(10);
    /// The maximum number of 32-bit registers per block.
    pub const MAX_REGISTERS_PER_BLOCK: Self = Self(12);
    /// Clock rate in kHz.
    pub const CLOCK_RATE: Self = Self(13);
    /// Multiprocessors, compute units or cores.
    pub const MULTIPROCESSOR_COUNT: Self = Self(16);
    /// 1 if the device shares the host's memory.
    pub const INTEGRATED: Self = Self(18);
    /// 1 if pinned host memory can be mapped into the device.
    pub const CAN_MAP_HOST_MEMORY: Self = Self(19);
    /// 1 if several kernels can run concurrently.
    pub const CONCURRENT_KERNELS: Self = Self(31);
    /// PCI bus number.
    pub const PCI_BUS_ID: Self = Self(33);
    /// PCI device number.
    pub const PCI_DEVICE_ID: Self = Self(34);
    /// The maximum number of threads per multiprocessor.
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
    /// 1 if the host may use managed memory while the device works.
    pub const CONCURRENT_MANAGED_ACCESS: Self = Self(89);
}

/// The sizes of a device's memory, as [`Device::memory_info`](crate::Device::memory_info) returns
/// them.
///
/// A chunk size that fills half of the free memory:
///
/// ```
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let memory = device.memory_info()?;
/// let rows = memory.free / 2 / (1024 * size_of::<f32>());
/// assert!(rows > 0 && memory.free <= memory.total);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// The bytes that can be allocated now.
    pub free: usize,
    /// The total number of bytes.
    pub total: usize,
}

/// Options of page-locked host memory.
///
/// Host memory that kernels access through a device address:
///
/// ```
/// use gpuarray::{PinnedOptions, memory::PinnedMemory};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let mut memory = PinnedMemory::with_options(&device, 64, PinnedOptions::default().mapped(true))?;
/// memory.fill(7);
/// assert_ne!(device.pinned_address(memory.pointer())?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinnedOptions {
    /// True if the memory is page-locked for the contexts of all devices
    /// (`CU_MEMHOSTALLOC_PORTABLE`).
    pub portable: bool,
    /// True if kernels can use the memory, at the address that
    /// [`Device::pinned_address`](crate::Device::pinned_address) returns
    /// (`CU_MEMHOSTALLOC_DEVICEMAP`).
    pub mapped: bool,
    /// Accepted for compatibility with `CU_MEMHOSTALLOC_WRITECOMBINED`, and ignored: the memory belongs to the
    /// process and survives a reset, so no backend makes it write-combined.
    pub write_combined: bool,
}

setters! {
    PinnedOptions:
    portable: bool; mapped: bool; write_combined: bool;
}

/// A handle with which another process opens memory or an event: 64 bytes that only the driver
/// interprets (`CUipcMemHandle`, `CUipcEventHandle`).
///
/// A handle is sent to the other process as bytes:
///
/// ```
/// use gpuarray::{IpcHandle, memory::DeviceMemory};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let memory = Arc::new(DeviceMemory::plain(&device, 1 << 16)?);
/// let handle = device.export_memory(memory.address())?;
/// let message: [u8; 64] = handle.0;
/// assert_eq!(IpcHandle(message), handle);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct IpcHandle(pub [u8; 64]);

impl Debug for IpcHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IpcHandle({:02x?}...)", &self.0[..8])
    }
}

// The optional features of a device.

enumeration! {
/// A feature that only some devices support. If a device lacks it, the calls that need it return
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// A program that uses a graph if graphs are supported, and else queues each step:
///
/// ```
/// use gpuarray::Feature;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let steps = if device.features().contains(Feature::Graphs) { "a graph" } else { "single steps" };
/// assert_eq!(steps, "a graph");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Feature {
    /// Kernels written in CUDA C: [`Device::load_module`](crate::Device::load_module).
    Kernels,
    /// Kernels are compiled by the system's C++ compiler; it needs the headers of the system and of C++. Kernels run on
    /// the processor's cores, and are fastest with many elements per thread.
    HostKernels,
    /// PTX text as the image of a module; the driver compiles the text.
    Ptx,
    /// Linking of code from several inputs: [`Device::link`](crate::Device::link).
    Linker,
    /// Attributes of kernels can be set: [`Kernel::set_attribute`](crate::Kernel::set_attribute).
    KernelAttributes,
    /// The driver reports the parameters of a kernel: [`Kernel::parameters`](crate::Kernel::parameters). Without this,
    /// they may be read from the code.
    ParameterInfo,
    /// Launches of kernels whose blocks may wait for each other:
    /// [`Kernel::launch_cooperative`](crate::Kernel::launch_cooperative).
    CooperativeLaunch,
    /// Work can be captured and launched repeatedly:
    /// [`Stream::begin_capture`](crate::stream::StreamCapture::begin_capture).
    Graphs,
    /// The driver's graphs can own objects of a program: memory used in another library's capture lives as long as its
    /// graphs.
    GraphObjects,
    /// Memory that host and device share: [`Managed`](crate::memory::Managed).
    ManagedMemory,
    /// Freed memory serves later work of its stream until it is trimmed.
    StreamOrderedReuse,
    /// The driver has pools of memory with a release threshold:
    /// [`Device::set_release_threshold`](crate::Device::set_release_threshold).
    DriverPool,
    /// Limits of the context can be read and set: [`Device::set_limit`](crate::Device::set_limit).
    Limits,
    /// Memory and events can be shared with other processes:
    /// [`Device::export_memory`](crate::Device::export_memory).
    Sharing,
    /// Streams of other libraries: [`Device::stream_from_handle`](crate::Device::stream_from_handle).
    ExternalStreams,
    /// Contexts of other libraries: a call restores the calling thread's context.
    ExternalContexts,
    /// [`Device::reset`](crate::Device::reset).
    Reset,
    /// Arrays, and texture objects over them and over memory:
    /// [`Device::create_texture`](crate::Device::create_texture).
    Textures,
    /// Surface objects over arrays: [`Device::create_surface`](crate::Device::create_surface).
    Surfaces,
}
}

/// A set of features: what [`Device::features`](crate::Device::features) returns.
///
/// The needed features that the host lacks:
///
/// ```
/// use gpuarray::{Feature, Features};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let needed: Features = [Feature::Kernels, Feature::Linker].into_iter().collect();
/// let missing: Vec<_> = needed.iter().filter(|it| !device.features().contains(*it)).collect();
/// assert_eq!(missing, [Feature::Linker]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Features(u64);

impl Features {
    /// The empty set.
    pub const NONE: Features = Features(0);

    /// Returns true if the feature is in the set.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }

    /// Returns the set with this feature if `present`, else without it.
    #[must_use]
    pub const fn with(self, feature: Feature, present: bool) -> Features {
        let bit = 1 << feature as u32;
        Features(if present { self.0 | bit } else { self.0 & !bit })
    }

    /// Returns the features of the set, in the order of [`Feature::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.contains(*feature))
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<T: IntoIterator<Item = Feature>>(features: T) -> Features {
        features.into_iter().fold(Features::NONE, |all, feature| all.with(feature, true))
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Feature, Features};

    #[test]
    fn a_set_has_what_was_put_in() {
        let set: Features = [Feature::Graphs, Feature::Reset].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Feature::Graphs, Feature::Reset]);
        assert!(!set.with(Feature::Reset, false).contains(Feature::Reset));
        assert_eq!(format!("{set:?}"), "{Graphs, Reset}");
        assert_eq!(
            Feature::ALL.into_iter().collect::<Features>().iter().count(),
            Feature::ALL.len()
        );
    }
}
