//! Host memory as device memory: accounted against a capacity, large blocks kept for reuse.
//!
//! A large block that comes fresh from the system costs a page fault every few kilobytes,
//! more than most operations on it, and even a small one costs more than a short operation;
//! so freed blocks are kept up to a limit, and given back when memory runs short.

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

/// Free small blocks kept per size: at most this many, and at most so many bytes.
const SMALL_COUNT: usize = 64;
const SMALL_BYTES: usize = 4 << 20;

/// How many sizes of blocks are those of chunks.
const ARENAS: usize = match small_index(arena::LARGEST) {
    Some(last) => last + 1,
    None => 0,
};

/// A block of the system's with any bytes. Arrays are read before they are written, too, in which the compiler may
/// see no memory that was never written: code that it cannot see into has had the address. Zeroing would touch
/// each page.
///
/// # Safety
/// The layout's size is not zero.
unsafe fn fresh(layout: Layout) -> *mut u8 {
    #[cfg(miri)]
    // SAFETY: the caller's promise.
    return unsafe { std::alloc::alloc_zeroed(layout) };
    #[cfg(not(miri))]
    {
        // SAFETY: the caller's promise.
        let memory = unsafe { alloc(layout) };
        // SAFETY: no instruction; what might have written the block has left the bytes that were there.
        unsafe { std::arch::asm!("/* {0} */", in(reg) memory, options(nostack, preserves_flags)) };
        memory
    }
}

/// Addresses of free large blocks by size.
type Cache = BTreeMap<usize, Vec<usize>>;

/// A block that came from the system and has not gone back.
#[derive(Clone, Copy, Debug)]
enum Block {
    /// One with its mark in front of it.
    Small,
    /// A chunk of smaller ones.
    Chunk(Shape),
    /// A larger one, and the bytes that its allocation asked for, zero while it is free.
    Large(usize),
}

/// Allocates and accounts memory. A forked child keeps no blocks of its parent's and knows none of
/// its allocations, which it leaves alone.
#[derive(Debug)]
pub(crate) struct Memory {
    capacity: usize,
    /// Zero for blocks of exactly the bytes that were asked for.
    cache_limit: usize,
    used: AtomicUsize,
    cache: ProcessMutex<Cache>,
    /// Bytes in `cache`; changed under its lock.
    cached: OfProcess<AtomicUsize>,
    /// Addresses of free small blocks, one list per size.
    small: [ProcessMutex<Vec<usize>>; SMALL_SIZES],
    /// Where those of the smallest sizes come from, and how many chunks of them are wide.
    arenas: [ProcessMutex<Arena>; ARENAS],
    wide: OfProcess<AtomicUsize>,
    /// All blocks by address, those in use and the free ones that are kept. Only what takes a
    /// block from the system or gives it back comes here, and what is large anyway.
    blocks: ProcessMutex<BTreeMap<usize, Block>>,
    /// Plain memory, which other processes can open.
    segments: Segments,
    /// What was freed while kernels were checked.
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

    /// The memory that processes share.
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

    /// Where blocks of a size come from, if they lie in chunks.
    fn arena(&self, size: usize) -> Option<&ProcessMutex<Arena>> {
        small_index(size).and_then(|index| self.arenas.get(index))
    }

    /// Gives a chunk back that its arena has returned.
    fn end_chunk(&self, chunk: usize) {
        self.blocks.lock().remove(&chunk);
        // SAFETY: the arena has forgotten it, and the map, too.
        unsafe { arena::end(chunk) };
    }

    /// A block of a chunk.
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

    /// Bytes of free blocks that are kept.
    pub(crate) fn kept(&self) -> usize {
        let small = self.small.iter().enumerate();
        let small: usize = small.map(|(index, free)| small_size(index) * free.lock().len()).sum();
        let chunks: usize = self.arenas.iter().map(|it| it.lock().kept()).sum();
        small + chunks + self.cached_bytes() + self.segments.kept() + self.quarantine.bytes()
    }

    /// Gives kept blocks back, the largest first, until at most `keep` bytes are kept; and the
    /// pages that the process's allocator keeps in turn to the system.
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

    /// Gives the largest kept block back, or a chunk; its size, zero if there is none.
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

    /// Gives all kept blocks back to the system.
    fn release(&self) {
        self.end_quarantine();
        self.segments.release(usize::MAX);
        while self.release_largest() > 0 {}
    }

    /// Start and bytes of the allocation in use that an address lies in.
    pub(crate) fn allocation(&self, address: u64) -> Option<(u64, usize)> {
        let address = usize::try_from(address).ok()?;
        let private = || {
            let blocks = self.blocks.lock();
            let (&start, &block) = blocks.range(..=address).next_back()?;
            let (start, bytes) = match block {
                Block::Large(bytes) => (start, bytes),
                // SAFETY: a block goes back to the system only after it has left the map.
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

    /// Notes how many bytes of a block are in use.
    ///
    /// # Safety
    /// The block is of this size and allocated.
    unsafe fn note(&self, address: usize, size: usize, bytes: usize) {
        if size <= arena::LARGEST {
            // SAFETY: the caller's promise; the bytes are no more than the size.
            unsafe { arena::mark(address) }.store(bytes as u32, Ordering::Relaxed);
        } else if size < LARGE {
            // SAFETY: the caller's promise.
            unsafe { mark(address) }.store(bytes, Ordering::Relaxed);
        } else {
            self.blocks.lock().insert(address, Block::Large(bytes));
        }
    }

    /// A chunk whose last block it is may be kept where `keeps` is true.
    ///
    /// # Safety
    /// The block was allocated with the layout of `size` and is used by nobody.
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
    /// `OutOfMemory` if the capacity is used up or the system has no more.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64> {
        self.account(bytes, || self.take(bytes))
    }

    /// Allocates at least `bytes` bytes that other processes can open. Where the system has no
    /// such memory, or no more, the block is this process's alone.
    ///
    /// # Errors
    /// As [`Memory::allocate`].
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

    /// A block that other processes can open, of memory that is not kept.
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
    /// As for [`Memory::free`].
    pub(crate) unsafe fn free_plain(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.end(Freed { address, bytes, put_back: Memory::put_back_plain }) };
    }

    /// # Safety
    /// As for [`Memory::free_plain`].
    unsafe fn put_back_plain(&self, address: u64, bytes: usize) {
        let limit = self.cache_limit.saturating_sub(self.cached_bytes());
        // SAFETY: the caller's promise.
        if !unsafe { self.segments.free(address as usize, limit) } {
            // SAFETY: the caller's promise; the block is no shared one.
            unsafe { self.put_back(address, bytes) };
        }
    }

    /// Allocates at least `bytes` bytes that are zero; `None` for a small block, which is filled
    /// as fast.
    ///
    /// The system replaces the pages of the block by pages of zeros once they are used.
    ///
    /// # Errors
    /// As [`Memory::allocate`].
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        let size = block_size(bytes);
        if size < HUGE || self.is_exact() || !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let address = self.allocate(bytes)?;
        let pointer = address as *mut u8;
        #[cfg(target_os = "linux")]
        // SAFETY: the block starts at a page, consists of whole pages of the process's own
        // memory, and nobody uses it yet.
        let is_zero = unsafe { libc::madvise(pointer.cast(), size, libc::MADV_DONTNEED) } == 0;
        #[cfg(not(target_os = "linux"))]
        let is_zero = false;
        if !is_zero {
            // Pages that are locked stay.
            // SAFETY: the block has so many bytes, which nobody uses yet.
            unsafe { pointer.write_bytes(0, bytes) };
        }
        Ok(Some(address))
    }

    /// Counts the bytes before they are taken, so that requests side by side cannot exceed the
    /// capacity; a request that does not fit counts for nothing.
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
            // SAFETY: the block was just allocated with so many bytes.
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
        // SAFETY: the block lies in the layout.
        pointer = unsafe { pointer.add(front) };
        #[cfg(target_os = "linux")]
        if size >= HUGE {
            // SAFETY: the range was just allocated; the advice changes no contents, and its
            // failure is of no consequence.
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
    /// Address and size are those of one allocation, which nothing uses any longer.
    pub(crate) unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.end(Freed { address, bytes, put_back: Memory::put_back }) };
    }

    /// # Safety
    /// As for [`Memory::free`].
    unsafe fn put_back(&self, address: u64, bytes: usize) {
        if self.is_exact() {
            // SAFETY: the caller's promise.
            return unsafe { self.put_back_exact(address, bytes) };
        }
        let size = block_size(bytes);
        // SAFETY: the block is that of the allocation, which ends here.
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
        // SAFETY: the caller's promise; nothing else knows the block.
        unsafe { self.give_back(address as usize, size, true) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.release();
    }
}
