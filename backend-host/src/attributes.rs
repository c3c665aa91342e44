//! What the host says of itself as a device: attributes, with the numbers of `CUdevice_attribute`, and
//! limits, with those of `CUlimit`.

use crate::texture;
use hal::{DeviceAttribute, Error, Result};
use host_executor::MOST_SHARED_BYTES;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a multiprocessor has room for: threads, bytes of shared memory, blocks.
pub(crate) const MULTIPROCESSOR_THREADS: u32 = 2048;
pub(crate) const MULTIPROCESSOR_SHARED: u32 = MOST_SHARED_BYTES + 1024;
pub(crate) const MULTIPROCESSOR_BLOCKS: u32 = 32;
/// Bytes of dynamic shared memory that a kernel has without being asked.
pub(crate) const DEFAULT_SHARED: u32 = 48 << 10;

/// Returns an attribute of the host with so many multiprocessors.
///
/// # Errors
/// `InvalidArgument` for an attribute that it does not have.
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
        // The greatest pitch of a copy, and the alignment of memory that textures read.
        DeviceAttribute(11) => i32::MAX,
        DeviceAttribute(14) => texture::ALIGNMENT as i32,
        // Shared memory and registers of a multiprocessor; its blocks.
        DeviceAttribute(81) => MULTIPROCESSOR_SHARED as i32,
        DeviceAttribute(82) => 64 << 10,
        DeviceAttribute(106) => MULTIPROCESSOR_BLOCKS as i32,
        // Shared memory of a block by opt-in.
        DeviceAttribute(97) => MOST_SHARED_BYTES as i32,
        // Copies beside kernels; atomic operations and accesses to managed memory by kernels and the
        // program at once; cooperative launches.
        DeviceAttribute(15 | 86 | 89 | 95 | 101) => 1,
        // Caches for what kernels read; kernels that can be interrupted; memory that the program has
        // registered, or allocated by itself, under its own addresses.
        DeviceAttribute(79 | 80 | 88 | 90 | 91 | 99 | 100) => 1,
        DeviceAttribute(38) => second_level_cache(),
        // How many times as fast single precision is as double precision.
        DeviceAttribute(87) => 2,
        // What a block takes of a multiprocessor's shared memory beside its own.
        DeviceAttribute(111) => (MULTIPROCESSOR_SHARED - MOST_SHARED_BYTES) as i32,
        DeviceAttribute(21..=30 | 42..=49 | 51..=74 | 77) => of_textures(attribute.0),
        // No limit of a kernel's time, no exclusive mode, no error correction that is known of, no driver
        // without displays, no PCI domain, no priorities, no board of several devices. Clock and width of
        // the memory are not known.
        DeviceAttribute(17 | 20 | 32 | 35..=37 | 50 | 78 | 84 | 85) => 0,
        // None of what came later: launches over devices, operations of streams on memory, handles of
        // virtual memory, compression, persistent parts of a cache, pools of the driver, clusters.
        DeviceAttribute(92..=94 | 96 | 98 | 102..=105 | 107..=110 | 112..=121) => 0,
        DeviceAttribute(number) => {
            return Err(Error::invalid(
                "attribute",
                format!("the host device has no attribute with number {number}"),
            ));
        }
    })
}

/// Bytes of a core's second cache; zero where the system does not say.
fn second_level_cache() -> i32 {
    // SAFETY: sysconf only reads; it answers -1 or 0 for what it does not know.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let bytes = 0;
    i32::try_from(bytes).unwrap_or(0).max(0)
}

/// The sizes that arrays, textures and surfaces may have: those of the compute capability that the host
/// has, which are smaller than what fits here. Cube maps and mipmaps there are none.
fn of_textures(number: i32) -> i32 {
    match number {
        // The alignment of surfaces, and of rows of memory that is read as a texture.
        30 => texture::ALIGNMENT as i32,
        51 => 32,
        // One axis and two: arrays, then memory and its pitch.
        21 | 22 | 56 | 70 => 128 << 10,
        23 | 57 => 64 << 10,
        69 => 256 << 20,
        71 => 65000,
        72 => 2_097_120,
        // Three axes, in the usual form and in the other one.
        24..=26 | 58..=60 => 16 << 10,
        47 | 48 => 8 << 10,
        49 => 32 << 10,
        // Layers and gathers: widths and heights, and how many layers.
        27 | 28 | 42 | 45 | 46 | 55 | 61 | 63 | 64 => 32 << 10,
        29 | 43 | 62 | 65 => 2048,
        // Whether there are gathers.
        44 => 1,
        _ => 0,
    }
}

/// The limits that there have been from the first on, with the values that drivers start with: bytes of
/// a thread's stack, of the buffer of `printf` and of the heap of `malloc` in kernels, the depth of launches
/// by kernels, and how many of them may wait. Nothing here needs these limits; they are kept for
/// programs that set and read them.
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
    /// `InvalidArgument` for a limit that there is not.
    pub(crate) fn get(&self, limit: i32) -> Result<usize> {
        Ok(self.find("limit", limit)?.load(Ordering::Relaxed))
    }

    /// Sets a limit.
    ///
    /// # Errors
    /// As [`Limits::get`].
    pub(crate) fn set(&self, limit: i32, value: usize) -> Result<()> {
        self.find("set_limit", limit)?.store(value, Ordering::Relaxed);
        Ok(())
    }
}
