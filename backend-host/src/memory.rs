//! Host memory as device memory, accounted against a capacity. Freed blocks are kept for reuse.
//!
//! A large block that comes fresh from the system costs a page fault every few kilobytes. These faults take
//! longer than most operations on the block. Even to allocate a small block takes longer than a short
//! operation. Freed blocks are therefore kept up to a limit, and released when memory runs short.

mod alone;
mod arena;
mod block;
mod exhausted;
mod quarantine;
mod segments;
#[cfg(test)]
mod tests;

use arena::{Arena, Shape};
use block::{HUGE, LARGE, SMALL_SIZES, block_layout, block_size, mark, small_index, small_size};
use exhausted::{exhausted, refused_by_system};
use hal::process::{OfProcess, ProcessMutex};
use hal::{Result, checking};
use quarantine::{Freed, Quarantine};
use segments::Segments;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number and total bytes of free small blocks kept per size.
const SMALL_COUNT: usize = 64;
const SMALL_BYTES: usize = 4 << 20;

/// The number of block sizes that are allocated in chunks.
const ARENAS: usize = match small_index(arena::LARGEST) {
    Some(last) => last + 1,
    None => 0,
};

/// Allocates a block from the system, with arbitrary contents.
///
/// Programs may read arrays before they write them, so the compiler must not treat the block as
/// uninitialised. Opaque code therefore receives the block's address. Zeroing the block instead would touch
/// every page.
///
/// # Safety
/// The size of the layout is not zero.
unsafe fn fresh(layout: Layout) -> *mut u8 {
    #[cfg(miri)]
    // SAFETY: the caller's promise.
    return unsafe { std::alloc::alloc_zeroed(layout) };
    #[cfg(not(miri))]
    {
        // SAFETY: the caller's promise.
        let memory = unsafe { alloc(layout) };
        // SAFETY: the assembly is empty; as far as the compiler knows, it may have initialised the block.
        unsafe { std::arch::asm!("/* {0} */", in(reg) memory, options(nostack, preserves_flags)) };
        memory
    }
}

/// The addresses of free large blocks, by size.
type Cache = BTreeMap<usize, Vec<usize>>;

/// A block that was allocated from the system and not yet released.
#[derive(Clone, Copy, Debug)]
enum Block {
    /// A small block, with its mark in the front margin.
    Small,
    /// A chunk of smaller blocks.
    Chunk(Shape),
    /// A large block, and the number of bytes that its allocation requested; zero while it is free.
    Large(usize),
}

/// Allocates memory and accounts for it. A forked child does not keep its parent's blocks. It does not know
/// the parent's allocations and leaves them alone.
#[derive(Debug)]
pub(crate) struct Memory {
    capacity: usize,
    /// If zero, each block has exactly the requested size.
    cache_limit: usize,
    used: AtomicUsize,
    cache: ProcessMutex<Cache>,
    /// The number of bytes in `cache`; changed under its lock.
    cached: OfProcess<AtomicUsize>,
    /// The addresses of free small blocks, with one list per size.
    small: [ProcessMutex<Vec<usize>>; SMALL_SIZES],
    /// The arenas for the smallest sizes. `wide` is the number of their wide chunks.
    arenas: [ProcessMutex<Arena>; ARENAS],
    wide: OfProcess<AtomicUsize>,
    /// All blocks by address, both used and free. It is accessed only when a block is allocated from the
    /// system or released to it, and for large blocks.
    blocks: ProcessMutex<BTreeMap<usize, Block>>,
    /// Plain memory, which other processes can open.
    segments: Segments,
    /// Blocks that were freed while kernels were checked.
    quarantine: Quarantine,
}

impl Memory {
    pub(crate) fn new(capacity: usize, cache_limit: usize) -> Memory {
        Memory {
            capacity,
            cache_limit,
            used: AtomicUsize::new(0),
            cache: ProcessMutex::default(),
            cached: OfProcess::new(),
            small: [const { ProcessMutex::new(Vec::new) }; SMALL_SIZES],
            arenas: [const { ProcessMutex::new(Arena::default) }; ARENAS],
            wide: OfProcess::new(),
            blocks: ProcessMutex::default(),
            segments: Segments::default(),
            quarantine: Quarantine::new(capacity / 4),
        }
    }

    /// Returns the memory that processes share.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn cached(&self) -> &AtomicUsize {
        self.cached.get(AtomicUsize::default)
    }

    fn wide(&self) -> &AtomicUsize {
        self.wide.get(AtomicUsize::default)
    }

    /// Returns the arena for blocks of a size, if they are allocated in chunks.
    fn arena(&self, size: usize) -> Option<&ProcessMutex<Arena>> {
        small_index(size).and_then(|index| self.arenas.get(index))
    }

    /// Releases a chunk that its arena has returned.
    fn end_chunk(&self, chunk: usize) {
        self.blocks.lock().remove(&chunk);
        // SAFETY: neither the arena nor the map refers to the chunk any longer.
        unsafe { arena::end(chunk) };
    }

    /// Takes a block from a chunk.
    fn take_small(&self, index: usize, arena: &ProcessMutex<Arena>) -> Option<usize> {
        let mut arena = arena.lock();
        let (address, new) = arena.take(index, self.wide())?;
        if let Some((chunk, shape)) = new {
            self.blocks.lock().insert(chunk, Block::Chunk(shape));
        }
        Some(address)
    }

    fn cached_bytes(&self) -> usize {
        self.cached().load(Ordering::Relaxed)
    }

    /// Returns the number of bytes in free blocks that are kept.
    pub(crate) fn kept(&self) -> usize {
        let small = self.small.iter().enumerate();
        let small: usize = small.map(|(index, free)| small_size(index) * free.lock().len()).sum();
        let chunks: usize = self.arenas.iter().map(|it| it.lock().kept()).sum();
        small + chunks + self.cached_bytes() + self.segments.kept() + self.quarantine.bytes()
    }

    /// Releases kept blocks, largest first, until at most `keep` bytes are kept. Also makes the process's
    /// allocator return its unused pages to the system.
    pub(crate) fn trim(&self, keep: usize) {
        let mut excess = self.kept().saturating_sub(keep);
        if excess > 0 {
            self.end_quarantine();
        }
        excess = excess.saturating_sub(self.segments.release(excess));
        while excess > 0 {
            let freed = self.release_largest();
            if freed == 0 {
                break;
            }
            excess = excess.saturating_sub(freed);
        }
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: the call only returns unused pages.
        unsafe {
            libc::malloc_trim(0);
        }
    }

    /// Releases the largest kept block, or a chunk. Returns its size, or zero if nothing is kept.
    fn release_largest(&self) -> usize {
        let mut cache = self.cache.lock();
        while let Some(mut entry) = cache.last_entry() {
            let (size, address) = (*entry.key(), entry.get_mut().pop());
            if let Some(address) = address {
                self.cached().fetch_sub(size, Ordering::Relaxed);
                // SAFETY: the block is of this size, and only the cache knew it.
                unsafe { self.give_back(address, size, false) };
                return size;
            }
            entry.remove();
        }
        drop(cache);
        for arena in &self.arenas {
            let mut arena = arena.lock();
            if let Some(chunk) = arena.take_empty(self.wide()) {
                self.end_chunk(chunk);
                return arena::CHUNK;
            }
        }
        for (index, free) in self.small.iter().enumerate().rev() {
            if let Some(address) = free.lock().pop() {
                let size = small_size(index);
                // SAFETY: the block is of its list's size, and only the list knew it.
                unsafe { self.give_back(address, size, false) };
                return size;
            }
        }
        0
    }

    /// Releases all kept blocks to the system.
    fn release(&self) {
        self.end_quarantine();
        self.segments.release(usize::MAX);
        while self.release_largest() > 0 {}
    }

    /// Returns the start and size in bytes of the used allocation that contains an address.
    pub(crate) fn allocation(&self, address: u64) -> Option<(u64, usize)> {
        let address = usize::try_from(address).ok()?;
        let private = || {
            let blocks = self.blocks.lock();
            let (&start, &block) = blocks.range(..=address).next_back()?;
            let (start, bytes) = match block {
                Block::Large(bytes) => (start, bytes),
                // SAFETY: a block is removed from the map before it is released to the system.
                Block::Small => (start, unsafe { mark(start) }.load(Ordering::Relaxed)),
                Block::Chunk(shape) => {
                    let start = shape.block(start, address)?;
                    // SAFETY: as above.
                    (start, unsafe { arena::mark(start) }.load(Ordering::Relaxed) as usize)
                }
            };
            (address - start < bytes).then_some((start as u64, bytes))
        };
        let found = private().or_else(|| self.segments.allocation(address));
        found.filter(|(start, _)| !self.quarantine.has(*start))
    }

    /// Records how many bytes of a block are in use.
    ///
    /// # Safety
    /// The block has this size and is allocated.
    unsafe fn note(&self, address: usize, size: usize, bytes: usize) {
        if size <= arena::LARGEST {
            // SAFETY: the caller's promise; `bytes` is at most the size.
            unsafe { arena::mark(address) }.store(bytes as u32, Ordering::Relaxed);
        } else if size < LARGE {
            // SAFETY: the caller's promise.
            unsafe { mark(address) }.store(bytes, Ordering::Relaxed);
        } else {
            self.blocks.lock().insert(address, Block::Large(bytes));
        }
    }

    /// Releases a block to the system. If it was the last used block of a chunk, `keeps` allows the chunk to
    /// be kept.
    ///
    /// # Safety
    /// The block was allocated with the layout of `size`, and nothing uses the block.
    unsafe fn give_back(&self, address: usize, size: usize, keeps: bool) {
        if let Some(arena) = self.arena(size) {
            let mut arena = arena.lock();
            if let Some(chunk) = arena.put_back(address, keeps, self.wide()) {
                self.end_chunk(chunk);
            }
            return;
        }
        self.blocks.lock().remove(&address);
        if let Some((layout, front)) = block_layout(size) {
            // SAFETY: the caller's promise.
            unsafe { dealloc((address - front) as *mut u8, layout) };
        }
    }

    /// Allocates at least `bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory` if the capacity is exhausted or the system cannot provide more memory.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64> {
        self.account(bytes, || self.take(bytes))
    }

    /// Allocates at least `bytes` bytes that other processes can open. If the system does not support such
    /// memory, or cannot provide more of it, the block is private to this process.
    ///
    /// # Errors
    /// The same as [`Memory::allocate`].
    pub(crate) fn allocate_plain(&self, bytes: usize) -> Result<u64> {
        if self.is_exact() {
            return self.allocate(bytes);
        }
        self.account(bytes, || {
            let waiting = self.segments.take_waiting(bytes);
            let address = waiting.or_else(|| self.allocate_shared(bytes));
            address.map(|it| it as u64).or_else(|| self.take(bytes))
        })
    }

    /// Takes a block that other processes can open, without using kept private memory.
    fn allocate_shared(&self, bytes: usize) -> Option<usize> {
        let kept = self.cached_bytes() + self.segments.kept();
        if kept + self.used() > self.capacity {
            self.release();
        }
        self.segments.allocate(bytes)
    }

    /// Frees memory of [`Memory::allocate_plain`] or [`Memory::allocate`].
    ///
    /// # Safety
    /// The same as for [`Memory::free`].
    pub(crate) unsafe fn free_plain(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.end(Freed { address, bytes, put_back: Memory::put_back_plain }) };
    }

    /// # Safety
    /// The same as for [`Memory::free_plain`].
    unsafe fn put_back_plain(&self, address: u64, bytes: usize) {
        let limit = self.cache_limit.saturating_sub(self.cached_bytes());
        // SAFETY: the caller's promise.
        if !unsafe { self.segments.free(address as usize, limit) } {
            // SAFETY: the caller's promise; the block is not a shared one.
            unsafe { self.put_back(address, bytes) };
        }
    }

    /// Allocates at least `bytes` bytes of zeroed memory. Returns `None` for a small block: the caller can
    /// fill it just as fast.
    ///
    /// The system replaces the pages of the block with zero pages when they are first used.
    ///
    /// # Errors
    /// The same as [`Memory::allocate`].
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        let size = block_size(bytes);
        if size < HUGE || self.is_exact() || !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let address = self.allocate(bytes)?;
        let pointer = address as *mut u8;
        #[cfg(target_os = "linux")]
        // SAFETY: the block starts at a page boundary, consists of whole pages of the process's own memory,
        // and is not used yet.
        let is_zero = unsafe { libc::madvise(pointer.cast(), size, libc::MADV_DONTNEED) } == 0;
        #[cfg(not(target_os = "linux"))]
        let is_zero = false;
        if !is_zero {
            // Locked pages are not replaced.
            // SAFETY: the block has this many bytes and is not used yet.
            unsafe { pointer.write_bytes(0, bytes) };
        }
        Ok(Some(address))
    }

    /// Accounts for the bytes before they are taken, so that concurrent requests cannot exceed the capacity.
    /// A request that does not fit is not counted.
    fn account(&self, bytes: usize, take: impl Fn() -> Option<u64>) -> Result<u64> {
        let fits = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= self.capacity);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| exhausted(bytes, self.used(), self.capacity))?;
        let address = take().ok_or_else(|| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            refused_by_system(bytes)
        })?;
        if !checking::current().is_none() {
            checking::allocated(address, bytes);
            // SAFETY: the block was just allocated with this many bytes.
            unsafe { host_executor::fill_uninitialised(address as *mut u8, bytes) };
        }
        Ok(address)
    }

    fn take(&self, bytes: usize) -> Option<u64> {
        if self.is_exact() {
            return self.take_exact(bytes);
        }
        let size = block_size(bytes);
        let (layout, front) = block_layout(size)?;
        if let Some(index) = small_index(size) {
            if let Some(address) = self.small[index].lock().pop() {
                // SAFETY: the block is of its list's size.
                unsafe { self.note(address, size, bytes) };
                return Some(address as u64);
            }
            if let Some(arena) = self.arenas.get(index) {
                let address = self.take_small(index, arena).or_else(|| {
                    self.release();
                    self.take_small(index, arena)
                })?;
                // SAFETY: the block is of its list's size.
                unsafe { self.note(address, size, bytes) };
                return Some(address as u64);
            }
        } else {
            let mut cache = self.cache.lock();
            if let Some(address) = cache.get_mut(&size).and_then(Vec::pop) {
                self.cached().fetch_sub(size, Ordering::Relaxed);
                // SAFETY: the block is of this size.
                unsafe { self.note(address, size, bytes) };
                return Some(address as u64);
            }
            drop(cache);
            let is_full = self.cached_bytes() + self.segments.kept() + self.used() > self.capacity;
            if is_full {
                self.release();
            }
        }
        // SAFETY: the layout's size is not zero.
        let mut pointer = unsafe { fresh(layout) };
        if pointer.is_null() {
            self.release();
            // SAFETY: as above.
            pointer = unsafe { fresh(layout) };
        }
        if pointer.is_null() {
            return None;
        }
        // SAFETY: `front` is inside the layout.
        pointer = unsafe { pointer.add(front) };
        #[cfg(target_os = "linux")]
        if size >= HUGE {
            // SAFETY: the range was just allocated; the advice does not change its contents, and a failure
            // does not matter.
            unsafe { libc::madvise(pointer.cast(), size, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: the block was just allocated with this size.
        unsafe { self.note(pointer as usize, size, bytes) };
        if size < LARGE {
            self.blocks.lock().insert(pointer as usize, Block::Small);
        }
        Some(pointer as u64)
    }

    /// Frees memory of [`Memory::allocate`].
    ///
    /// # Safety
    /// Address and size belong to one allocation, and nothing uses it any longer.
    pub(crate) unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.end(Freed { address, bytes, put_back: Memory::put_back }) };
    }

    /// # Safety
    /// The same as for [`Memory::free`].
    unsafe fn put_back(&self, address: u64, bytes: usize) {
        if self.is_exact() {
            // SAFETY: the caller's promise.
            return unsafe { self.put_back_exact(address, bytes) };
        }
        let size = block_size(bytes);
        // SAFETY: the block belongs to the allocation that ends here.
        unsafe { self.note(address as usize, size, 0) };
        if let Some(index) = small_index(size) {
            let mut free = self.small[index].lock();
            if free.len() < SMALL_COUNT && size * free.len() < SMALL_BYTES {
                free.push(address as usize);
                return;
            }
        } else {
            let mut cache = self.cache.lock();
            if self.cached_bytes() + size + self.segments.kept() <= self.cache_limit {
                self.cached().fetch_add(size, Ordering::Relaxed);
                cache.entry(size).or_default().push(address as usize);
                return;
            }
        }
        // SAFETY: the caller's promise; nothing else refers to the block.
        unsafe { self.give_back(address as usize, size, true) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.release();
    }
}
