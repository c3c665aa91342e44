//! Copies between host and device memory, in the form that a stream queues, and the copies and allocations that only
//! some devices support.

use super::StreamCore;
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::texture::{ArrayCopy, CopySide};

/// The memory that a transfer copies from and to.
///
/// Bytes that are copied to the device and back:
///
/// ```
/// use gpuarray::{Direction, Transfer, memory::DeviceMemory};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let memory = DeviceMemory::for_stream(&device, &stream, 4)?;
/// let (sent, mut received) = ([1u8, 2, 3, 4], [0u8; 4]);
/// let (there, back) = (sent.as_ptr() as u64, received.as_mut_ptr() as u64);
/// let up = Transfer::linear(Direction::HostToDevice, memory.address(), there, 4, true);
/// let down = Transfer::linear(Direction::DeviceToHost, back, memory.address(), 4, true);
/// // SAFETY: all three memories have four bytes, which nothing else uses.
/// unsafe { stream.transfer(&up)? };
/// // SAFETY: as above.
/// unsafe { stream.transfer(&down)? };
/// assert_eq!(received, sent);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
    /// Inside one device.
    DeviceToDevice,
}

/// A range of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub bytes: usize,
}

/// A copy of `depth * height` rows of `width` bytes. A plain copy is one row.
///
/// The right half of a table of two rows:
///
/// ```
/// use gpuarray::{DeviceArray, Direction, Transfer};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let table = DeviceArray::from_shaped(&device, &[2, 4], &[1u8, 2, 3, 4, 5, 6, 7, 8])?;
/// let mut right = [0u8; 4];
/// let (to, from) = (right.as_mut_ptr() as u64, table.as_device_pointer() + 2);
/// let plain = Transfer::linear(Direction::DeviceToHost, to, from, 2, true);
/// let copy = Transfer { height: 2, destination_pitch: 2, source_pitch: 4, ..plain };
/// // SAFETY: both rows lie in the table and in `right`, which nothing else uses.
/// unsafe { table.stream().transfer(&copy)? };
/// assert_eq!(right, [3, 4, 7, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The memory that the transfer copies from and to.
    pub direction: Direction,
    /// The address of the first byte that is written.
    pub destination: u64,
    /// The address of the first byte that is read.
    pub source: u64,
    /// The number of bytes in a row.
    pub width: usize,
    /// The number of rows in a slice.
    pub height: usize,
    /// The number of slices.
    pub depth: usize,
    /// The row pitch of the destination, in bytes.
    pub destination_pitch: usize,
    /// The row pitch of the source, in bytes.
    pub source_pitch: usize,
    /// The bytes from one slice of the destination to the next.
    pub destination_slice: usize,
    /// The bytes from one slice of the source to the next.
    pub source_slice: usize,
    /// True if the call returns only after the bytes have arrived. After such a call, nothing accesses the host's bytes
    /// any longer, even if the call failed.
    pub wait: bool,
}

impl Transfer {
    /// Returns a plain copy of `bytes` bytes from `source` to `destination`.
    pub const fn linear(
        direction: Direction,
        destination: u64,
        source: u64,
        bytes: usize,
        wait: bool,
    ) -> Self {
        Transfer {
            direction,
            destination,
            source,
            width: bytes,
            height: 1,
            depth: 1,
            destination_pitch: bytes,
            source_pitch: bytes,
            destination_slice: bytes,
            source_slice: bytes,
            wait,
        }
    }

    /// Returns the number of rows from one slice to the next, of the destination and of the source, as drivers' copy
    /// descriptions need it. The slice distance must be a multiple of the row pitch.
    pub const fn slice_heights(&self) -> (usize, usize) {
        if self.depth == 1 {
            return (self.height, self.height);
        }
        (self.destination_slice / self.destination_pitch, self.source_slice / self.source_pitch)
    }

    /// Returns the reason why a graph could not repeat the copy; `None` if it could. `is_page_locked` returns true for
    /// a host address in page-locked memory.
    pub fn unrepeatable(&self, is_page_locked: impl FnOnce(u64) -> bool) -> Option<&'static str> {
        let host = match self.direction {
            Direction::HostToDevice => Some(self.source),
            Direction::DeviceToHost => Some(self.destination),
            Direction::DeviceToDevice => None,
        };
        unrepeatable(self.wait, host, is_page_locked)
    }
}

impl ArrayCopy {
    /// Returns the reason why a graph could not repeat the copy; `None` if it could. `is_page_locked` returns true for
    /// a host address in page-locked memory.
    pub fn unrepeatable(&self, is_page_locked: impl FnOnce(u64) -> bool) -> Option<&'static str> {
        let host = [&self.source, &self.destination].into_iter().find_map(CopySide::host);
        unrepeatable(self.wait, host, is_page_locked)
    }
}

/// Implements [`Transfer::unrepeatable`] for a copy whose host side, if any, is at `host`.
fn unrepeatable(
    wait: bool,
    host: Option<u64>,
    is_page_locked: impl FnOnce(u64) -> bool,
) -> Option<&'static str> {
    if wait {
        return Some(
            "a copy that its call waits for cannot be captured; use one that does not wait, between device and page-locked memory (get_async in Python)",
        );
    }
    host.is_some_and(|host| !is_page_locked(host))
        .then_some("the host's side of a copy must be page-locked memory, which stays where it is")
}

// Copies whose source and destination overlap.
//
// A driver copies such bytes in any order. This library promises the result of `memmove`, as if all bytes were read
// before the first is written. Each backend first checks [`Transfer::overlaps`] and [`ArrayCopy::overlaps`], and stages
// such copies in extra memory. That memory is allocated and freed in the stream's order, so the copies neither wait nor
// leave a capture.

/// The number of bytes that an overlapping plain copy stages at a time. Copies with rows or slices are staged as a
/// whole.
const PIECE: usize = 16 << 20;

impl Transfer {
    /// Returns true if the copy may write bytes that it also reads.
    pub fn overlaps(&self) -> bool {
        if self.width == 0 || self.height == 0 || self.depth == 0 {
            return false;
        }
        let reach = |pitch: usize, slice: usize| {
            let slices = slice.saturating_mul(self.depth.saturating_sub(1));
            let rows = pitch.saturating_mul(self.height.saturating_sub(1));
            slices.saturating_add(rows).saturating_add(self.width) as u64
        };
        let from = reach(self.source_pitch, self.source_slice);
        let to = reach(self.destination_pitch, self.destination_slice);
        self.source < self.destination.saturating_add(to)
            && self.destination < self.source.saturating_add(from)
            && !self.are_columns_apart()
    }

    /// Returns true if both sides are in the same rows, in disjoint columns.
    fn are_columns_apart(&self) -> bool {
        let pitch = self.source_pitch;
        let has_same_rows = pitch == self.destination_pitch
            && (self.depth < 2
                || (self.source_slice == self.destination_slice
                    && pitch > 0
                    && self.source_slice.is_multiple_of(pitch)));
        if !has_same_rows || pitch == 0 {
            return false;
        }
        let behind = (self.destination.abs_diff(self.source) % pitch as u64) as usize;
        behind >= self.width && pitch - behind >= self.width
    }
}

impl ArrayCopy {
    /// Returns true if the copy writes texels that it also reads.
    pub fn overlaps(&self) -> bool {
        let (
            CopySide::Array { array: from, origin: source, .. },
            CopySide::Array { array: to, origin: destination, .. },
        ) = (self.source, self.destination)
        else {
            return false;
        };
        let extents = [self.width, self.height, self.depth];
        from == to && (0..3).all(|axis| source[axis].abs_diff(destination[axis]) < extents[axis])
    }
}

/// Allocates stream-ordered memory for the work that `copy` queues, and frees it afterwards.
fn staged<S: Stream + ?Sized>(
    stream: &S,
    bytes: usize,
    copy: impl FnOnce(u64) -> Result<()>,
) -> Result<()> {
    let memory = stream.allocate(bytes)?;
    let copied = copy(memory);
    // SAFETY: allocated on this stream, on which all its uses are queued.
    let freed = unsafe { stream.free(memory, bytes) };
    copied.and(freed)
}

/// Queues a copy for which [`Transfer::overlaps`] is true.
///
/// # Errors
/// As for [`Stream::transfer`](crate::stream::StreamCore::transfer); `OutOfMemory` if the device cannot allocate
/// staging memory of the size of the rows (at most 16 MiB for a plain copy).
///
/// # Safety
/// As for [`Stream::transfer`](crate::stream::StreamCore::transfer), except that source and destination may overlap.
pub unsafe fn transfer_overlapping<S: Stream + ?Sized>(
    stream: &S,
    transfer: &Transfer,
) -> Result<()> {
    let is_plain = transfer.height == 1 && transfer.depth == 1;
    let rows = transfer.width * transfer.height * transfer.depth;
    let bytes = if is_plain { rows.min(PIECE) } else { rows };
    let is_upwards = transfer.destination > transfer.source;
    staged(stream, bytes, |memory| {
        let pieces = rows.div_ceil(bytes);
        for count in 0..pieces {
            // Later pieces only read bytes that have not been written yet.
            let piece = if is_upwards { pieces - 1 - count } else { count };
            let start = piece * bytes;
            let width = if is_plain { bytes.min(rows - start) } else { transfer.width };
            let part = Transfer {
                source: transfer.source + start as u64,
                destination: transfer.destination + start as u64,
                width,
                ..*transfer
            };
            let read = Transfer {
                direction: match transfer.direction {
                    Direction::HostToDevice => Direction::HostToDevice,
                    _ => Direction::DeviceToDevice,
                },
                destination: memory,
                destination_pitch: width,
                destination_slice: width * transfer.height,
                wait: false,
                ..part
            };
            let write = Transfer {
                direction: match transfer.direction {
                    Direction::DeviceToHost => Direction::DeviceToHost,
                    _ => Direction::DeviceToDevice,
                },
                source: memory,
                source_pitch: width,
                source_slice: width * transfer.height,
                wait: transfer.wait && count + 1 == pieces,
                ..part
            };
            // SAFETY: the caller's promise; the memory has room for the piece, and does not overlap the caller's bytes.
            unsafe {
                stream.transfer(&read)?;
                stream.transfer(&write)?;
            }
        }
        Ok(())
    })
}

/// Queues a copy for which [`ArrayCopy::overlaps`] is true.
///
/// # Errors
/// As for [`Stream::copy_array`](crate::stream::StreamMemory::copy_array); `OutOfMemory` if the device cannot allocate
/// staging memory of the size of the copy.
///
/// # Safety
/// As for [`Stream::copy_array`](crate::stream::StreamMemory::copy_array), except that source and destination may
/// overlap.
pub unsafe fn copy_array_overlapping<S: Stream + ?Sized>(
    stream: &S,
    copy: &ArrayCopy,
) -> Result<()> {
    let slice = copy.width * copy.height;
    staged(stream, slice * copy.depth, |address| {
        let memory = CopySide::Memory { address, pitch: copy.width, slice, is_host: false };
        // SAFETY: the caller's promise; the memory has room for all rows.
        unsafe {
            stream.copy_array(&ArrayCopy { destination: memory, wait: false, ..*copy })?;
            stream.copy_array(&ArrayCopy { source: memory, ..*copy })
        }
    })
}

// Copies and allocations that only some devices support, or support in a faster way.

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
