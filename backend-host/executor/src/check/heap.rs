//! Memory that checked kernels allocate with `malloc` and `new`.

use super::Allocation;
use super::memory::fill_uninitialised;
use crate::fork::Handlers;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    freed: std::collections::VecDeque<usize>,
    freed_bytes: usize,
}

static HEAP: Mutex<Heap> = Mutex::new(Heap {
    blocks: BTreeMap::new(),
    freed: std::collections::VecDeque::new(),
    freed_bytes: 0,
});

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
pub(super) fn allocate(bytes: usize, alignment: usize) -> *mut c_void {
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
pub(super) fn release(memory: *mut c_void) -> Result<(), String> {
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
pub(super) fn live(address: usize) -> Option<Range<usize>> {
    let heap = heap();
    let (&start, block) = heap.blocks.range(..=address).next_back()?;
    (block.is_live && address - start < block.bytes).then_some(start..start + block.bytes)
}

/// Returns the live or freed block that contains an address.
pub(super) fn containing(address: usize) -> Option<Allocation> {
    let heap = heap();
    let (&start, block) = heap.blocks.range(..=address).next_back()?;
    (address - start < block.bytes).then(|| Allocation {
        range: start..start + block.bytes,
        is_live: block.is_live,
        description: "memory that a kernel has allocated".to_owned(),
    })
}
