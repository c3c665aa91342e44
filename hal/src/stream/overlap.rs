//! Copies whose source and destination share bytes.
//!
//! A driver copies such bytes in any order. Here they arrive as if all had been read before the first
//! was written, as with `memmove`: each backend asks [`Transfer::overlaps`] and
//! [`ArrayCopy::overlaps`] first, and passes such copies through memory of their own. That memory is
//! allocated and freed in the stream's order, so the copies neither wait nor leave a capture.

use super::{Direction, Stream, Transfer};
use crate::error::Result;
use crate::texture::{ArrayCopy, CopySide};

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
