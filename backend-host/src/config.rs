//! The settings of the host backend, which are read from the environment once.

use hal::Result;
use hal::environment::{BYTES, bytes, parse};
use std::env;

/// The name and number of the host backend's only device, for messages.
pub(crate) const DEVICE: &str = "host:0";

/// The memory and threads that the host device may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The total memory in bytes.
    pub memory: usize,
    /// The maximum number of bytes of freed memory that are kept for reuse. If it is 0, each allocation comes
    /// directly from the process's allocator, with exactly the requested size, and other processes cannot
    /// open it. Tools such as valgrind then detect accesses beyond an allocation.
    pub cache: usize,
    /// The number of threads that large operations use.
    pub threads: usize,
}

impl HostConfig {
    /// Reads the settings from the environment:
    ///
    /// - `PYGPU_HOST_MEMORY`: bytes, optionally with a suffix K, M, G or T. The default is the memory of the
    ///   machine.
    /// - `PYGPU_HOST_CACHE`: likewise, or 0. The default is an eighth of the memory, but at most 1 GiB.
    /// - `PYGPU_HOST_THREADS`: the default is the number of cores that the process may use.
    ///
    /// # Errors
    /// `InvalidArgument` with the variable's name and value, if a setting cannot be parsed.
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

const BYTES_OR_NONE: &str = "0, and whole numbers with K, M, G or T as the unit";

fn bytes_or_none(text: &str) -> Option<usize> {
    if text == "0" { Some(0) } else { bytes(text) }
}

fn physical_memory() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: sysconf only reads; it returns -1 for unknown values.
        let (pages, page) =
            unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        if pages > 0 && page > 0 {
            return (pages as usize).saturating_mul(page as usize);
        }
    }
    8 << 30
}
