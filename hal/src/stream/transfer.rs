//! Copies between memories of host and device, as a stream queues them.

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
