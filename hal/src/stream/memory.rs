//! Copies and allocations that only some devices support, or support in a faster way.

use super::{Direction, HostRange, StreamCore, Transfer};
use crate::error::{Error, Result};
use crate::texture::ArrayCopy;

/// Smaller ranges are collected in host memory first, because copying them takes less time than a driver call.
const SMALL: usize = 64 << 10;
/// The maximum number of bytes that are collected.
const COLLECTED: usize = 1 << 20;

/// Names the side that managed memory migrates to.
///
/// Managed memory moves to the device before work, and back before the host reads:
///
/// ```
/// use gpuarray::{PrefetchTarget, memory::Managed};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let memory = Managed::new(&device, 4096)?;
/// memory.prefetch(&stream, PrefetchTarget::Device)?;
/// // Work on the memory is queued here.
/// memory.prefetch(&stream, PrefetchTarget::Host)?;
/// stream.synchronize()?;
/// assert_eq!(memory.allocation().memory().bytes(), 4096);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchTarget {
    /// The device of the stream.
    Device,
    /// The host.
    Host,
}

/// Copies and allocations of a [`Stream`](super::Stream) that a device may lack, or may do faster than with the calls
/// of [`StreamCore`].
///
/// A backend implements the methods that its device supports. Arrays, textures and managed memory call them.
///
/// Stream-ordered zeroed memory, with a fill if the stream does not provide it:
///
/// ```
/// use gpuarray::StreamOptions;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default())?;
/// let (address, bytes) = match stream.allocate_zeroed(64)? {
///     Some(address) => (address, 64),
///     None => (stream.allocate(64)?, 64),
/// };
/// // SAFETY: the memory was allocated just now, and nothing uses it.
/// unsafe { stream.free(address, bytes)? };
/// # Ok(())
/// # }
/// ```
pub trait StreamMemory: StreamCore {
    /// Allocates zeroed memory, if that costs less than filling it; returns `None` otherwise. Free the memory like
    /// memory from [`StreamCore::allocate`].
    ///
    /// # Errors
    /// As for [`StreamCore::allocate`].
    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        let _ = bytes;
        Ok(None)
    }

    /// Copies ranges of host memory to the device, one after the other, starting at `destination`. They have arrived
    /// when the call returns.
    ///
    /// # Errors
    /// As for [`StreamCore::transfer`]; some ranges may have been copied then.
    ///
    /// # Safety
    /// The ranges can be read, the same number of bytes is allocated at `destination`, and nothing else accesses them
    /// until the call returns.
    unsafe fn gather(&self, destination: u64, ranges: &[HostRange]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { gather_by_transfers(self, destination, ranges) }
    }

    /// Queues a copy from or to an array for textures (`cuMemcpy3DAsync`). A copy from or to pageable host memory has
    /// finished when the call returns. Overlapping texels are read before they are written
    /// ([`copy_array_overlapping`](super::copy_array_overlapping)).
    ///
    /// # Errors
    /// `Unsupported` if the device does not support textures; else as for [`StreamCore::transfer`].
    ///
    /// # Safety
    /// As for [`StreamCore::transfer`]; the copy has passed [`ArrayCopy::check`] for each array, and each array
    /// belongs to this device.
    unsafe fn copy_array(&self, copy: &ArrayCopy) -> Result<()> {
        let _ = copy;
        Err(Error::unsupported("copy_array", "the backend has no textures"))
    }

    /// Queues the migration of managed memory to the stream's device or to the host
    /// (`cuMemPrefetchAsync`, `hipMemPrefetchAsync`).
    ///
    /// # Errors
    /// `Unsupported` if the backend cannot migrate managed memory.
    ///
    /// # Safety
    /// The range is managed memory and stays allocated until the migration is done.
    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        let _ = (address, bytes, to);
        Err(Error::unsupported("prefetch", "the backend has no managed memory to move"))
    }
}

/// Implements [`StreamMemory::gather`] with [`StreamCore::transfer`]: large ranges separately, small ones together.
///
/// # Errors
/// As for [`StreamMemory::gather`].
///
/// # Safety
/// As for [`StreamMemory::gather`].
pub unsafe fn gather_by_transfers<S: StreamCore + ?Sized>(
    stream: &S,
    destination: u64,
    ranges: &[HostRange],
) -> Result<()> {
    let copy = |to: u64, from: u64, bytes: usize| {
        if bytes == 0 {
            return Ok(());
        }
        let transfer = Transfer::linear(Direction::HostToDevice, to, from, bytes, true);
        // SAFETY: the caller's promise; collected bytes stay allocated until the call has waited for them.
        unsafe { stream.transfer(&transfer) }
    };
    let mut collected = Vec::new();
    let mut end = destination;
    for range in ranges {
        let begin = end - collected.len() as u64;
        let is_small = range.bytes < SMALL;
        if !is_small || collected.len() + range.bytes > COLLECTED {
            copy(begin, collected.as_ptr() as u64, collected.len())?;
            collected.clear();
        }
        if is_small && range.bytes > 0 {
            // SAFETY: the caller's promise.
            let bytes =
                unsafe { std::slice::from_raw_parts(range.address as *const u8, range.bytes) };
            collected.extend_from_slice(bytes);
        } else {
            copy(end, range.address, range.bytes)?;
        }
        end += range.bytes as u64;
    }
    copy(end - collected.len() as u64, collected.as_ptr() as u64, collected.len())
}
