//! Host memory as device memory: accounted against a capacity, large blocks kept for reuse.
//!
//! A large block that comes fresh from the system costs a page fault every few kilobytes,
//! more than most operations on it; so freed large blocks are kept up to a limit, and given
//! back when memory runs short.

use hal::{Error, ErrorKind, Result, Status};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of every allocation: a cache line, and the widest vector register.
const ALIGNMENT: usize = 64;
/// From this size on blocks are rounded up and kept for reuse.
const LARGE: usize = 1 << 20;
/// From this size on blocks are aligned for, and advised to use, huge pages.
const HUGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

#[derive(Debug, Default)]
struct Cache {
    /// Addresses of free blocks by size.
    blocks: BTreeMap<usize, Vec<usize>>,
    bytes: usize,
}

/// Allocates and accounts memory.
#[derive(Debug)]
pub(crate) struct Memory {
    capacity: usize,
    cache_limit: usize,
    used: AtomicUsize,
    cache: Mutex<Cache>,
}

/// The size that a request is rounded up to: large ones to an eighth of their magnitude, so
/// that blocks fit later requests.
fn block_size(bytes: usize) -> usize {
    if bytes < LARGE {
        return bytes;
    }
    let step = bytes.next_power_of_two() / 16;
    bytes.next_multiple_of(step)
}

fn block_layout(size: usize) -> Option<Layout> {
    let alignment = if size >= HUGE { HUGE_PAGE } else { ALIGNMENT };
    Layout::from_size_align(size, alignment).ok()
}

/// A number of bytes as people write it.
pub(crate) fn bytes_text(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    match unit {
        None => format!("{bytes} bytes"),
        Some(name) => format!("{bytes} bytes ({value:.1} {name})"),
    }
}

impl Memory {
    pub(crate) fn new(capacity: usize, cache_limit: usize) -> Memory {
        Memory { capacity, cache_limit, used: AtomicUsize::new(0), cache: Mutex::default() }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exhausted(&self, bytes: usize) -> Error {
        let used = self.used();
        Error::new(
            ErrorKind::OutOfMemory,
            Status::host(Status::OUT_OF_MEMORY),
            "allocate",
            format!(
                "out of memory: {} were asked for, {} are used and {} are available of {}",
                bytes_text(bytes),
                bytes_text(used),
                bytes_text(self.capacity.saturating_sub(used)),
                bytes_text(self.capacity)
            ),
        )
    }

    /// Allocates at least `bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory` if the capacity is used up or the system has no more.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|sum| sum <= self.capacity);
        let address = if fits { self.take(bytes) } else { None };
        address.ok_or_else(|| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            self.exhausted(bytes)
        })
    }

    fn take(&self, bytes: usize) -> Option<u64> {
        let size = block_size(bytes);
        let layout = block_layout(size).filter(|layout| layout.size() > 0)?;
        if size >= LARGE {
            let mut cache = self.cache();
            if let Some(address) = cache.blocks.get_mut(&size).and_then(Vec::pop) {
                cache.bytes -= size;
                return Some(address as u64);
            }
            if cache.bytes + self.used() > self.capacity {
                release(&mut cache);
            }
        }
        // SAFETY: the layout's size is not zero.
        let mut pointer = unsafe { alloc(layout) };
        if pointer.is_null() {
            release(&mut self.cache());
            // SAFETY: as above.
            pointer = unsafe { alloc(layout) };
        }
        if pointer.is_null() {
            return None;
        }
        #[cfg(target_os = "linux")]
        if size >= HUGE {
            // SAFETY: the range was just allocated; the advice changes no contents, and its
            // failure is of no consequence.
            unsafe { libc::madvise(pointer.cast(), size, libc::MADV_HUGEPAGE) };
        }
        Some(pointer as u64)
    }

    /// Frees what [`Memory::allocate`] gave.
    ///
    /// # Safety
    /// Address and size are those of one allocation, which nothing uses any longer.
    pub(crate) unsafe fn free(&self, address: u64, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        let size = block_size(bytes);
        if size >= LARGE {
            let mut cache = self.cache();
            if cache.bytes + size <= self.cache_limit {
                cache.bytes += size;
                cache.blocks.entry(size).or_default().push(address as usize);
                return;
            }
        }
        // SAFETY: the caller's promise; nothing else knows the block.
        unsafe { give_back(address as usize, size) };
    }
}

/// Gives all kept blocks back to the system.
fn release(cache: &mut Cache) {
    for (size, addresses) in std::mem::take(&mut cache.blocks) {
        for address in addresses {
            // SAFETY: the block came from `alloc` with the layout of this size, and only the
            // cache knew it.
            unsafe { give_back(address, size) };
        }
    }
    cache.bytes = 0;
}

/// # Safety
/// The block was allocated with the layout of `size` and is used by nobody.
unsafe fn give_back(address: usize, size: usize) {
    if let Some(layout) = block_layout(size) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(address as *mut u8, layout) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        release(&mut self.cache());
    }
}
