//! Settings of the host backend, read from the environment once.

use hal::Result;
use hal::setting::{BYTES, bytes, parse};
use std::env;

/// Memory and threads that the host device may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Bytes of memory in all.
    pub memory: usize,
    /// Bytes of freed memory kept for reuse at most.
    pub cache: usize,
    /// Threads that large operations use.
    pub threads: usize,
}

impl HostConfig {
    /// Returns the settings of the environment: `PYGPU_HOST_MEMORY` (bytes, or with a suffix K, M,
    /// G or T; default: the memory of the machine), `PYGPU_HOST_CACHE` (likewise; default: an
    /// eighth of the memory, 1 GiB at most), `PYGPU_HOST_THREADS` (default: the cores that the
    /// process may use).
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if one cannot be read.
    pub fn from_environment() -> Result<HostConfig> {
        let size = |name| parse(name, env::var_os(name), BYTES, bytes);
        let memory = size("PYGPU_HOST_MEMORY")?.unwrap_or_else(physical_memory);
        let cache = size("PYGPU_HOST_CACHE")?.unwrap_or_else(|| (memory / 8).min(1 << 30));
        let name = "PYGPU_HOST_THREADS";
        let threads = parse(name, env::var_os(name), "whole numbers from 1 to 4096", |text| {
            text.parse().ok().filter(|&threads| (1..=4096).contains(&threads))
        })?
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        Ok(HostConfig { memory, cache, threads })
    }
}

fn physical_memory() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: sysconf only reads; it answers -1 for what it does not know.
        let (pages, page) =
            unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        if pages > 0 && page > 0 {
            return (pages as usize).saturating_mul(page as usize);
        }
    }
    8 << 30
}
