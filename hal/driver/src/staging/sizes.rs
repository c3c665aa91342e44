//! How many threads copy, and how they share a copy.

use hal::environment;
use hal::error::Result;
use std::ffi::OsString;
use std::thread::available_parallelism;

/// Chunks of a thread: one for the device, one for the thread.
pub(super) const SLOTS: usize = 2;
/// Bytes of a chunk, at least and at most. Every page of 2 MiB of fresh memory is best touched
/// by one thread alone.
pub(super) const LEAST_CHUNK: usize = 64 << 10;
pub(super) const MOST_CHUNK: usize = 2 << 20;
/// What a thread takes of a copy at least, if its chunks hold as much.
pub(super) const LEAST_PART: usize = 128 << 10;

pub(super) const THREADS: &str = "PYGPU_STAGING_THREADS";
pub(super) const BYTES: &str = "PYGPU_STAGING_BYTES";
const MOST_THREADS: usize = 256;

/// How many threads, and how they share a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// 0: nothing is staged.
    pub(super) threads: usize,
    /// Bytes of a chunk, of which every thread has [`SLOTS`].
    pub(super) chunk: usize,
}

impl Sizes {
    /// For at most `threads` threads and `bytes` bytes of page-locked memory.
    pub(super) fn new(threads: usize, bytes: usize) -> Sizes {
        let threads = threads.min(bytes / (SLOTS * LEAST_CHUNK));
        if threads == 0 {
            return Sizes { threads, chunk: LEAST_CHUNK };
        }
        let share = bytes / (SLOTS * threads);
        Sizes { threads, chunk: (1 << share.ilog2()).min(MOST_CHUNK) }
    }

    /// The sizes of the environment: `PYGPU_STAGING_THREADS` (0: nothing is staged; default:
    /// half of the cores that the process may use, 2 to 8) and `PYGPU_STAGING_BYTES` (of
    /// page-locked memory for each device at most; K, M, G or T may follow; default: 64 MiB).
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if one cannot be read.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Sizes> {
        let allowed = "whole numbers from 0 to 256";
        let threads = environment::parse(THREADS, variable(THREADS), allowed, |text| {
            text.parse().ok().filter(|threads| *threads <= MOST_THREADS)
        })?;
        let allowed = "whole numbers from 128K, with K, M, G or T behind";
        let bytes = environment::parse(BYTES, variable(BYTES), allowed, |text| {
            environment::bytes(text).filter(|bytes| *bytes >= SLOTS * LEAST_CHUNK)
        })?;
        let half = || (available_parallelism().map_or(1, |cores| cores.get()) / 2).clamp(2, 8);
        Ok(Sizes::new(threads.unwrap_or_else(half), bytes.unwrap_or(64 << 20)))
    }

    /// What a thread takes of a copy at once: there are enough parts for all to end together.
    pub(super) fn part(&self, bytes: usize) -> usize {
        let share = bytes / (2 * self.threads.max(1));
        (1 << share.max(1).ilog2()).clamp(LEAST_PART.min(self.chunk), self.chunk)
    }
}
