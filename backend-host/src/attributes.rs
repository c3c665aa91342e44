//! The properties that the host reports as a device: attributes, numbered as in `CUdevice_attribute`, and
//! limits, numbered as in `CUlimit`.

use crate::texture;
use hal::{DeviceAttribute, Error, Result};
use host_executor::MOST_SHARED_BYTES;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The capacity of a multiprocessor: threads, bytes of shared memory, and blocks.
pub(crate) const MULTIPROCESSOR_THREADS: u32 = 2048;
pub(crate) const MULTIPROCESSOR_SHARED: u32 = MOST_SHARED_BYTES + 1024;
pub(crate) const MULTIPROCESSOR_BLOCKS: u32 = 32;
/// The dynamic shared memory, in bytes, that a kernel may use without opting in.
pub(crate) const DEFAULT_SHARED: u32 = 48 << 10;

/// Returns an attribute of a host with this number of multiprocessors.
///
/// # Errors
/// `InvalidArgument` for an unknown attribute.
pub(crate) fn attribute(attribute: DeviceAttribute, multiprocessors: u32) -> Result<i32> {
    use DeviceAttribute as A;
    Ok(match attribute {
        A::MAX_THREADS_PER_BLOCK | A::MAX_BLOCK_DIM_X | A::MAX_BLOCK_DIM_Y => 1024,
        A::MAX_BLOCK_DIM_Z => 64,
        A::MAX_GRID_DIM_X => i32::MAX,
        A::MAX_GRID_DIM_Y | A::MAX_GRID_DIM_Z => 65535,
        A::MAX_SHARED_MEMORY_PER_BLOCK => DEFAULT_SHARED as i32,
        A::MAX_REGISTERS_PER_BLOCK => 64 << 10,
        A::TOTAL_CONSTANT_MEMORY => 64 << 10,
        A::WARP_SIZE => 32,
        A::MULTIPROCESSOR_COUNT => multiprocessors as i32,
        A::MAX_THREADS_PER_MULTIPROCESSOR => MULTIPROCESSOR_THREADS as i32,
        A::COMPUTE_CAPABILITY_MAJOR => (host_executor::DEFAULT_ARCHITECTURE / 100) as i32,
        A::COMPUTE_CAPABILITY_MINOR => (host_executor::DEFAULT_ARCHITECTURE / 10 % 10) as i32,
        A::INTEGRATED | A::CAN_MAP_HOST_MEMORY | A::UNIFIED_ADDRESSING => 1,
        A::CONCURRENT_KERNELS | A::ASYNC_ENGINE_COUNT | A::MANAGED_MEMORY => 1,
        A::CLOCK_RATE | A::PCI_BUS_ID | A::PCI_DEVICE_ID => 0,
        // The largest pitch of a copy, and the alignment of memory that textures read.
        DeviceAttribute(11) => i32::MAX,
        DeviceAttribute(14) => texture::ALIGNMENT as i32,
        // The shared memory and registers of a multiprocessor, and its number of blocks.
        DeviceAttribute(81) => MULTIPROCESSOR_SHARED as i32,
        DeviceAttribute(82) => 64 << 10,
        DeviceAttribute(106) => MULTIPROCESSOR_BLOCKS as i32,
        // The shared memory of a block by opt-in.
        DeviceAttribute(97) => MOST_SHARED_BYTES as i32,
        // Supported: copies concurrent with kernels, system-wide atomic operations, concurrent access to
        // managed memory by kernels and the program, and cooperative launches.
        DeviceAttribute(15 | 86 | 89 | 95 | 101) => 1,
        // Also supported: caches for global memory, compute preemption, and memory that the program has
        // registered or allocated itself, under the same addresses.
        DeviceAttribute(79 | 80 | 88 | 90 | 91 | 99 | 100) => 1,
        DeviceAttribute(38) => second_level_cache(),
        // The ratio of single-precision to double-precision performance.
        DeviceAttribute(87) => 2,
        // The shared memory that a multiprocessor reserves for each block.
        DeviceAttribute(111) => (MULTIPROCESSOR_SHARED - MOST_SHARED_BYTES) as i32,
        DeviceAttribute(21..=30 | 42..=49 | 51..=74 | 77) => of_textures(attribute.0),
        // Not available or unknown: a time limit for kernels, exclusive mode, error correction, the TCC
        // driver, a PCI domain, stream priorities, multi-GPU boards, and the clock and bus width of the
        // memory.
        DeviceAttribute(17 | 20 | 32 | 35..=37 | 50 | 78 | 84 | 85) => 0,
        // Newer features that are not supported: multi-device launches, stream memory operations, handles of
        // virtual memory, compression, persisting cache lines, the driver's memory pools, and clusters.
        DeviceAttribute(92..=94 | 96 | 98 | 102..=105 | 107..=110 | 112..=121) => 0,
        DeviceAttribute(number) => {
            return Err(Error::invalid(
                "attribute",
                format!("the host device has no attribute with number {number}"),
            ));
        }
    })
}

/// Returns the size of a core's second-level cache in bytes, or zero if the system does not report it.
fn second_level_cache() -> i32 {
    // SAFETY: sysconf only reads; it returns -1 or 0 for unknown values.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let bytes = 0;
    i32::try_from(bytes).unwrap_or(0).max(0)
}

/// The maximum sizes of arrays, textures and surfaces. They match the reported compute capability, and are
/// smaller than the host could handle. Cube maps and mipmaps are not supported.
fn of_textures(number: i32) -> i32 {
    match number {
        // The alignment of surfaces, and of rows of pitched memory read as a texture.
        30 => texture::ALIGNMENT as i32,
        51 => 32,
        // One and two dimensions: arrays, then linear memory and its pitch.
        21 | 22 | 56 | 70 => 128 << 10,
        23 | 57 => 64 << 10,
        69 => 256 << 20,
        71 => 65000,
        72 => 2_097_120,
        // Three dimensions, in the usual shape and in the alternate one.
        24..=26 | 58..=60 => 16 << 10,
        47 | 48 => 8 << 10,
        49 => 32 << 10,
        // Layered arrays and gathers: widths and heights, and the number of layers.
        27 | 28 | 42 | 45 | 46 | 55 | 61 | 63 | 64 => 32 << 10,
        29 | 43 | 62 | 65 => 2048,
        // Support for gathers.
        44 => 1,
        _ => 0,
    }
}

/// The original CUDA limits, with the values that drivers start with: the bytes of a thread's stack, of the
/// `printf` buffer and of the `malloc` heap of kernels, the depth of launches by kernels, and the number of
/// pending ones. The host does not need these limits; they are stored for programs that set and read them.
const START: [usize; 5] = [1 << 10, 1 << 20, 8 << 20, 2, 2048];

/// The limits of a device.
#[derive(Debug)]
pub(crate) struct Limits([AtomicUsize; START.len()]);

impl Default for Limits {
    fn default() -> Self {
        Limits(START.map(AtomicUsize::new))
    }
}

impl Limits {
    fn find(&self, call: &'static str, limit: i32) -> Result<&AtomicUsize> {
        usize::try_from(limit).ok().and_then(|index| self.0.get(index)).ok_or_else(|| {
            let last = START.len() - 1;
            Error::invalid(call, format!("limit is {limit}; the host has limits 0 to {last}"))
        })
    }

    /// Returns a limit.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown limit.
    pub(crate) fn get(&self, limit: i32) -> Result<usize> {
        Ok(self.find("limit", limit)?.load(Ordering::Relaxed))
    }

    /// Sets a limit.
    ///
    /// # Errors
    /// The same as [`Limits::get`].
    pub(crate) fn set(&self, limit: i32, value: usize) -> Result<()> {
        self.find("set_limit", limit)?.store(value, Ordering::Relaxed);
        Ok(())
    }
}
