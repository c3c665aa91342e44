//! Copies between memories of host and device, as a stream queues them.

use crate::error::Result;
use crate::stream::Stream;
use crate::texture::{ArrayCopy, CopySide};

/// Names the memories between which a transfer copies.
///
/// Bytes travel to the device and back:
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

/// Describes a copy of `depth * height` rows of `width` bytes. A plain copy is one row.
///
/// The right half of a table of two rows, without the left one:
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
    /// The memories between which it copies.
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
    /// The row pitch of the destination: bytes from one row to the next.
    pub destination_pitch: usize,
    /// The row pitch of the source: bytes from one row to the next.
    pub source_pitch: usize,
    /// The bytes from one slice of the destination to the next.
    pub destination_slice: usize,
    /// The bytes from one slice of the source to the next.
    pub source_slice: usize,
    /// True if the call returns only when the bytes have arrived. Once such a call has returned,
    /// nothing reads or writes the host's bytes any longer, even if it failed.
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

    /// Returns the rows from one slice to the next, of the destination and of the source: the
    /// heights that a driver's description of a copy has. Rows and slices of one memory have whole
    /// rows between them.
    pub const fn slice_heights(&self) -> (usize, usize) {
        if self.depth == 1 {
            return (self.height, self.height);
        }
        (self.destination_slice / self.destination_pitch, self.source_slice / self.source_pitch)
    }

    /// Returns why a graph could not repeat the copy, if it could not. `is_page_locked` tells of an
    /// address of the host whether it lies in page-locked memory.
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
    /// Returns why a graph could not repeat the copy, if it could not. `is_page_locked` tells of an
    /// address of the host whether it lies in page-locked memory.
    pub fn unrepeatable(&self, is_page_locked: impl FnOnce(u64) -> bool) -> Option<&'static str> {
        let host = [&self.source, &self.destination].into_iter().find_map(CopySide::host);
        unrepeatable(self.wait, host, is_page_locked)
    }
}

/// As [`Transfer::unrepeatable`], for a copy whose side of the host, if it has one, is at `host`.
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

// Copies whose source and destination share bytes.
//
// A driver copies such bytes in any order. Here they arrive as if all had been read before the first
// was written, as with `memmove`: each backend asks [`Transfer::overlaps`] and
// [`ArrayCopy::overlaps`] first, and passes such copies through memory of their own. That memory is
// allocated and freed in the stream's order, so the copies neither wait nor leave a capture.

/// Bytes that a plain copy reads before it writes them. Rows and slices are all read first.
const PIECE: usize = 16 << 20;

impl Transfer {
    /// Returns true if the copy may write bytes that it reads.
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

    /// Returns true if both sides have the same rows, and other columns of them.
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
    /// Returns true if the copy writes texels that it reads.
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

/// Allocates memory in the stream's order for what `copy` queues.
fn staged<S: Stream + ?Sized>(
    stream: &S,
    bytes: usize,
    copy: impl FnOnce(u64) -> Result<()>,
) -> Result<()> {
    let memory = stream.allocate(bytes)?;
    let copied = copy(memory);
    // SAFETY: allocated on this stream, on which all that uses it is queued.
    let freed = unsafe { stream.free(memory, bytes) };
    copied.and(freed)
}

/// Queues a copy that [`Transfer::overlaps`].
///
/// # Errors
/// As for [`Stream::transfer`](crate::stream::StreamCore::transfer); `OutOfMemory` if the device lacks as much memory again as the rows
/// have bytes (16 MiB for a plain copy at most).
///
/// # Safety
/// As for [`Stream::transfer`](crate::stream::StreamCore::transfer), except that the call itself reads and writes the bytes.
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
            // What a later piece reads has not been written.
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
            // SAFETY: the caller's promise; the memory has room for the piece, and no byte of its own is
            // the caller's.
            unsafe {
                stream.transfer(&read)?;
                stream.transfer(&write)?;
            }
        }
        Ok(())
    })
}

/// Queues a copy that [`ArrayCopy::overlaps`].
///
/// # Errors
/// As for [`Stream::copy_array`](crate::stream::StreamMemory::copy_array); `OutOfMemory` if the device has not as much memory again as is
/// copied.
///
/// # Safety
/// As for [`Stream::copy_array`](crate::stream::StreamMemory::copy_array), except that the call itself reads and writes the texels.
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
