//! Memory in checked launches: memory that kernels allocate with `malloc` and `new`, and memory that has never been
//! written, which still contains the pattern that it was filled with.
//!
//! The pattern works without tracking the host's writes, whether they are copies, fills or operations.

use super::launch::Allocation;
use crate::fork::Handlers;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Eight bytes that programs are unlikely to write in a row, even four of them.
const PATTERN: [u8; 8] = [0xe5, 0xc3, 0x9b, 0x6d, 0xb7, 0xd9, 0xa3, 0xf1];

/// The number of pattern bytes around an access that rule out a coincidence.
const EVIDENCE: usize = 4;

/// Fills memory with a pattern, so that checks detect a kernel that reads it.
///
/// # Safety
/// The range can be written, and nothing else uses it.
pub unsafe fn fill_uninitialised(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    let memory = unsafe { std::slice::from_raw_parts_mut(memory.cast::<MaybeUninit<u8>>(), bytes) };
    let first = memory.as_ptr() as usize % 8;
    let mut pattern = PATTERN;
    pattern.rotate_left(first);
    for chunk in memory.chunks_mut(8) {
        for (byte, value) in chunk.iter_mut().zip(pattern) {
            byte.write(value);
        }
    }
}

/// Returns true if all bytes of an access are as [`fill_uninitialised`] left them. `memory` is the
/// surrounding range that may be read.
///
/// # Safety
/// The memory can be read.
pub(crate) unsafe fn is_uninitialised(access: Range<usize>, memory: &Range<usize>) -> bool {
    // SAFETY: the caller's promise.
    let is_left = |address: usize| unsafe { *(address as *const u8) == PATTERN[address % 8] };
    if !access.clone().all(is_left) {
        return false;
    }
    let around = (access.start & !7).max(memory.start)..((access.end + 7) & !7).min(memory.end);
    around.filter(|&address| is_left(address)).take(EVIDENCE).count() == EVIDENCE
}

/// The number of bytes of freed memory that are kept to detect accesses to them.
const MOST_FREED: usize = 64 << 20;

struct Block {
    layout: Layout,
    bytes: usize,
    is_live: bool,
}

/// Blocks by address. Freed blocks are released in the order of `freed`.
struct Heap {
    blocks: BTreeMap<usize, Block>,
    freed: VecDeque<usize>,
    freed_bytes: usize,
}

static HEAP: Mutex<Heap> =
    Mutex::new(Heap { blocks: BTreeMap::new(), freed: VecDeque::new(), freed_bytes: 0 });

fn heap() -> MutexGuard<'static, Heap> {
    FORKS.watch();
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Holds the heap's lock while the thread forks, so that the child finds the heap in a consistent state.
    static HELD: Cell<Option<MutexGuard<'static, Heap>>> = const { Cell::new(None) };
}

/// Locks the heap while the calling thread forks the process.
extern "C" fn hold() {
    let _ =
        HELD.try_with(|held| held.set(Some(HEAP.lock().unwrap_or_else(PoisonError::into_inner))));
}

/// Unlocks the heap, in the parent and in the child.
extern "C" fn let_go() {
    let _ = HELD.try_with(|held| drop(held.take()));
}

// SAFETY: in both processes, the thread that took the lock releases it.
static FORKS: Handlers = unsafe { Handlers::new(Some(hold), Some(let_go), let_go) };

/// Allocates memory. Returns null if there is not enough.
pub(crate) fn allocate(bytes: usize, alignment: usize) -> *mut c_void {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), alignment.max(16)) else {
        return ptr::null_mut();
    };
    // SAFETY: the layout's size is not zero.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the block has this many bytes, and is not used yet.
    unsafe { fill_uninitialised(memory, bytes) };
    heap().blocks.insert(memory as usize, Block { layout, bytes, is_live: true });
    memory.cast()
}

/// Frees memory of [`allocate`].
///
/// # Errors
/// A message for any other address, or one that was already freed.
pub(crate) fn release(memory: *mut c_void) -> Result<(), String> {
    if memory.is_null() {
        return Ok(());
    }
    let mut heap = heap();
    let address = memory as usize;
    let bytes = match heap.blocks.get_mut(&address) {
        None => return Err(format!("frees address {address:#x}, where no kernel has allocated")),
        Some(block) if !block.is_live => {
            return Err(format!("frees the block of size {} at {address:#x} again", block.bytes));
        }
        Some(block) => {
            block.is_live = false;
            block.bytes
        }
    };
    heap.freed.push_back(address);
    heap.freed_bytes += bytes;
    while heap.freed_bytes > MOST_FREED {
        let Some(oldest) = heap.freed.pop_front() else { break };
        if let Some(block) = heap.blocks.remove(&oldest) {
            heap.freed_bytes -= block.bytes;
            // SAFETY: the block was allocated with this layout, and a kernel has freed it.
            unsafe { dealloc(oldest as *mut u8, block.layout) };
        }
    }
    Ok(())
}

/// Returns the live block that contains an address.
pub(crate) fn live(address: usize) -> Option<Range<usize>> {
    let heap = heap();
    let (&start, block) = heap.blocks.range(..=address).next_back()?;
    (block.is_live && address - start < block.bytes).then_some(start..start + block.bytes)
}

/// Returns the live or freed block that contains an address.
pub(crate) fn containing(address: usize) -> Option<Allocation> {
    let heap = heap();
    let (&start, block) = heap.blocks.range(..=address).next_back()?;
    (address - start < block.bytes).then(|| Allocation {
        range: start..start + block.bytes,
        is_live: block.is_live,
        description: "memory that a kernel has allocated".to_owned(),
    })
}
