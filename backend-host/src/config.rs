//! Settings of the host backend, read from the environment once.

use hal::Result;
use hal::environment::{BYTES, bytes, parse};
use std::env;

/// Memory and threads that the host device may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Bytes of memory in all.
    pub memory: usize,
    /// Bytes of freed memory kept for reuse at most. With 0, each allocation is one of the process's allocator, of
    /// exactly the bytes that were asked for, which other processes cannot open: so tools such as valgrind see
    /// accesses behind it.
    pub cache: usize,
    /// Threads that large operations use.
    pub threads: usize,
}

impl HostConfig {
    /// Returns the settings of the environment: `PYGPU_HOST_MEMORY` (bytes, or with a suffix K, M,
    /// G or T; default: the memory of the machine), `PYGPU_HOST_CACHE` (likewise, or 0; default: an
    /// eighth of the memory, 1 GiB at most), `PYGPU_HOST_THREADS` (default: the cores that the
    /// process may use).
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if one cannot be read.
    pub fn from_environment() -> Result<HostConfig> {
        let size = |name| parse(name, env::var_os(name), BYTES, bytes);
        let memory = size("PYGPU_HOST_MEMORY")?.unwrap_or_else(physical_memory);
        let name = "PYGPU_HOST_CACHE";
        let cache = parse(name, env::var_os(name), BYTES_OR_NONE, bytes_or_none)?;
        let cache = cache.unwrap_or_else(|| (memory / 8).min(1 << 30));
        let name = "PYGPU_HOST_THREADS";
        let threads = parse(name, env::var_os(name), "whole numbers from 1 to 4096", |text| {
            text.parse().ok().filter(|&threads| (1..=4096).contains(&threads))
        })?
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        Ok(HostConfig { memory, cache, threads })
    }
}

const BYTES_OR_NONE: &str = "0 and whole numbers with K, M, G or T behind";

fn bytes_or_none(text: &str) -> Option<usize> {
    if text == "0" { Some(0) } else { bytes(text) }
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
