//! Parts of copies, which threads take in turns, and why one may fail.

use hal::stream::{Direction, HostRange};
use std::ffi::c_int;

/// Why a copy was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// What a call of the driver returned.
    Code(c_int),
    /// A thread panicked.
    Panicked,
    /// There is no thread, or none could get what it needs. Nothing was copied.
    NoThreads,
}

/// A range of host memory among others, and where it begins if they lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedRange {
    start: usize,
    range: HostRange,
}

impl PlacedRange {
    /// The ranges that have bytes, one behind the other.
    pub(super) fn all(ranges: &[HostRange]) -> Vec<PlacedRange> {
        let mut start = 0;
        ranges
            .iter()
            .filter(|range| range.bytes > 0)
            .map(|&range| {
                let placed = PlacedRange { start, range };
                start += range.bytes;
                placed
            })
            .collect()
    }
}

/// The side of the host: where the bytes of a part begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostSide {
    /// At an address.
    Row(u64),
    /// At an offset into ranges that lie one behind the other.
    Ranges(*const [PlacedRange], usize),
}

// SAFETY: the ranges are plain data, which whoever makes a copy of them keeps until it is done.
unsafe impl Send for HostSide {}

impl HostSide {
    fn advance(&mut self, bytes: usize) {
        match self {
            HostSide::Row(address) => *address += bytes as u64,
            HostSide::Ranges(_, offset) => *offset += bytes,
        }
    }

    /// Calls `copy` with the address and the length of each block of `bytes` bytes, and with its offset among them.
    ///
    /// # Safety
    /// The ranges are there, and have so many bytes.
    pub(super) unsafe fn blocks(self, bytes: usize, mut copy: impl FnMut(u64, usize, usize)) {
        let (ranges, mut offset) = match self {
            HostSide::Row(address) => return copy(address, bytes, 0),
            // SAFETY: the caller's promise.
            HostSide::Ranges(ranges, offset) => (unsafe { &*ranges }, offset),
        };
        let end = offset + bytes;
        let first = ranges.partition_point(|placed| placed.start + placed.range.bytes <= offset);
        for placed in &ranges[first..] {
            if offset == end {
                break;
            }
            let inside = offset - placed.start;
            let length = (placed.range.bytes - inside).min(end - offset);
            copy(placed.range.address + inside as u64, length, bytes - (end - offset));
            offset += length;
        }
    }
}

/// Bytes in a row on the device, and where they are on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) direction: Direction,
    pub(super) device: u64,
    pub(super) host: HostSide,
    pub(super) bytes: usize,
    /// The number of the copy that it is of.
    pub(super) job: u64,
}

impl Part {
    /// Takes the first bytes, up to the next multiple of `unit` of the host's address, or of the offset into
    /// its ranges.
    pub(super) fn split(&mut self, unit: usize) -> Part {
        let place = match self.host {
            HostSide::Row(address) => address as usize,
            HostSide::Ranges(_, offset) => offset,
        };
        let bytes = self.bytes.min(unit - place % unit);
        let first = Part { bytes, ..*self };
        self.device += bytes as u64;
        self.host.advance(bytes);
        self.bytes -= bytes;
        first
    }
}
