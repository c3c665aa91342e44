//! Parts of copies, which threads take in turns, and why one may fail.

use crate::stream::Direction;
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

/// Bytes in a row, between host and device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) direction: Direction,
    pub(super) device: u64,
    pub(super) host: u64,
    pub(super) bytes: usize,
    /// The number of the copy that it is of.
    pub(super) job: u64,
}

impl Part {
    /// Takes the first bytes, up to the next multiple of `unit` of the host's address.
    pub(super) fn split(&mut self, unit: usize) -> Part {
        let bytes = self.bytes.min(unit - self.host as usize % unit);
        let first = Part { bytes, ..*self };
        self.device += bytes as u64;
        self.host += bytes as u64;
        self.bytes -= bytes;
        first
    }
}
