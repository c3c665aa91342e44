//! A thread of the operating system that runs blocks: its fibres, and the current block.
//!
//! A kernel calls the executor on the stack of a fibre, and the executor may switch to another fibre of the
//! same worker before the call returns. The state of a worker is therefore accessed through a raw pointer,
//! and no reference to it is held across a switch.

pub(crate) mod turns;

use crate::abi;
use crate::block::Block;
use crate::check;
use crate::context::{StackPointer, leave};
use crate::error::{Failure, FailureKind};
use crate::fault::{Registration, Signals};
use crate::grid::Grid;
use crate::stack::{self, Stacks};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Fiber {
    top: StackPointer,
    stack: StackPointer,
    /// The thread of the block in which the fibre's loop was suspended.
    owner: u32,
}

pub(crate) struct Worker {
    signals: Signals,
    failure: Option<Failure>,
    stacks: Stacks,
    fibers: Vec<Fiber>,
    free: Vec<u32>,
    current: u32,
    block: Block,
    /// The first thread of the loop that begins, or that runs and has not been suspended.
    first: u32,
    grid: *const Grid<'static>,
    /// The running block, and the blocks to run in the same call.
    run: abi::Blocks,
    /// The x index of the first of these blocks, if the call has begun.
    begun: Option<u32>,
    /// The linear indices of the remaining blocks that were taken from the grid, including the ones in the call.
    blocks: std::ops::Range<u64>,
    _registration: Registration,
}

thread_local! {
    static CURRENT: Cell<*mut Worker> = const { Cell::new(ptr::null_mut()) };
    static OWNER: OwnWorker = const { OwnWorker };
}

/// Frees the thread's worker with the thread.
struct OwnWorker;

impl Drop for OwnWorker {
    fn drop(&mut self) {
        let worker = CURRENT.try_with(|it| it.replace(ptr::null_mut())).unwrap_or(ptr::null_mut());
        if !worker.is_null() {
            // SAFETY: `current` created it from a box, and only this thread refers to it.
            drop(unsafe { Box::from_raw(worker) });
        }
    }
}

/// Returns the worker of the calling thread, in a kernel.
pub(crate) fn running() -> *mut Worker {
    CURRENT.with(Cell::get)
}

/// Returns true if a launch runs on the calling thread. `worker` is the thread's worker, or null.
pub(crate) fn is_running(worker: *mut Worker) -> bool {
    // SAFETY: the worker lives as long as its thread.
    unsafe { worker.as_ref() }.is_some_and(|worker| !worker.grid.is_null())
}

/// Returns the worker of the calling thread.
fn current() -> *mut Worker {
    CURRENT.with(|current| {
        if current.get().is_null() {
            let worker = Box::into_raw(Box::new(Worker {
                signals: Signals::default(),
                failure: None,
                stacks: Stacks::default(),
                fibers: Vec::new(),
                free: Vec::new(),
                current: 0,
                block: Block::new(),
                first: 0,
                grid: ptr::null(),
                run: abi::Blocks {
                    index: abi::Index { x: 0, y: 0, z: 0 },
                    count: 1,
                    is_stopped: ptr::null(),
                },
                begun: None,
                blocks: 0..0,
                _registration: Registration::none(),
            }));
            // SAFETY: the worker lives until the thread ends.
            unsafe {
                let signals = &raw mut (*worker).signals;
                (*worker)._registration = Registration::new(signals);
            }
            current.set(worker);
            // A destructor of the thread that runs after the owner's destructor cannot set an owner; `run`
            // then frees the worker.
            let _ = OWNER.try_with(|_| ());
        }
        current.get()
    })
}

impl Worker {
    /// Moves to the next block. Returns false if there is none left.
    fn next_block(&mut self) -> bool {
        // SAFETY: the grid outlives `run`.
        let grid = unsafe { &*self.grid };
        if grid.check.is_some()
            && let Some((kind, message)) = check::end_block()
        {
            self.failure = Some(Failure { kind, message });
            return false;
        }
        if grid.is_stopped() {
            return false;
        }
        if let Some(first) = self.begun.take() {
            self.blocks.start += u64::from(self.run.index.x.abs_diff(first)) + 1;
        }
        if self.blocks.is_empty() {
            self.blocks = grid.take();
            if self.blocks.is_empty() {
                return false;
            }
        }
        let linear = self.blocks.start;
        self.run.index = grid.index(linear);
        self.run.count = grid.run_from(&self.blocks);
        self.begun = Some(self.run.index.x);
        self.first = 0;
        grid.library.fill_shared(&grid.schedule);
        if grid.check.is_some() {
            check::begin_block(linear);
        }
        true
    }

    /// Suspends the calling thread of the block, if this is its first operation.
    fn suspend(&mut self, thread: u32) {
        let fiber = &mut self.fibers[self.current as usize];
        if fiber.owner == NOBODY {
            fiber.owner = thread;
            self.block.split(self.first, thread, self.current);
        }
    }
}

/// Ends the launch with a failure.
///
/// # Safety
/// Called on a fibre of the worker; nothing on its stack needs to be dropped.
pub(crate) unsafe fn fail(worker: *mut Worker, kind: FailureKind, message: String) -> ! {
    // SAFETY: the worker is the calling thread's.
    unsafe {
        (*worker).failure = Some(Failure { kind, message });
        leave((*worker).signals.home.load(Ordering::Relaxed))
    }
}

/// Returns true in a cooperative launch.
///
/// # Safety
/// The worker belongs to the calling thread, and runs a kernel.
pub(crate) unsafe fn is_cooperative(worker: *mut Worker) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*(*worker).grid).barrier.is_some() }
}

/// Returns the kind of memory, as in `gpuarray_abi.h`, at an address outside of shared memory.
///
/// # Safety
/// The worker belongs to the calling thread, and runs a kernel.
pub(crate) unsafe fn space(worker: *mut Worker, address: usize) -> u32 {
    // SAFETY: the caller's promise.
    let (stacks, library) = unsafe { (&(*worker).stacks, (*(*worker).grid).library) };
    match stacks.range_of(address) {
        Some(_) => abi::LOCAL,
        None if library.is_constant(address) => abi::CONSTANT,
        None => abi::GLOBAL,
    }
}

/// Sets the flag that code of a kernel is running, and returns its previous value.
///
/// # Safety
/// The worker belongs to the calling thread.
pub(crate) unsafe fn set_in_kernel(worker: *mut Worker, in_kernel: bool) -> bool {
    // SAFETY: the caller's promise.
    if !in_kernel && unsafe { (*worker).signals.in_kernel.load(Ordering::Relaxed) } {
        // SAFETY: as above.
        unsafe { require_room(worker) };
    }
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise.
    let was = unsafe { (*worker).signals.in_kernel.swap(in_kernel, Ordering::Relaxed) };
    compiler_fence(Ordering::SeqCst);
    was
}

/// Returns the range of the worker's memory that contains an address, if a unit may access it: the stacks,
/// and the current block.
pub(crate) fn memory_of(worker: *mut Worker, address: usize) -> Option<std::ops::Range<usize>> {
    // SAFETY: the worker belongs to the calling thread, and no other thread changes its stacks.
    unsafe {
        let start = &raw const (*worker).run as usize;
        let run = start..start + size_of::<abi::Blocks>();
        if run.contains(&address) { Some(run) } else { (*worker).stacks.range_of(address) }
    }
}

/// Begins the executor's part of a call from a kernel.
///
/// # Safety
/// The worker belongs to the calling thread.
#[inline]
pub(crate) unsafe fn enter(worker: *mut Worker) {
    // SAFETY: the caller's promise.
    unsafe { require_room(worker) };
    compiler_fence(Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { (*worker).signals.in_kernel.store(false, Ordering::Relaxed) };
    compiler_fence(Ordering::SeqCst);
}

/// Ends the launch, like any fault of the kernel, if the stack of the running fibre is about to overflow. An
/// overflow in the executor would end the process.
///
/// # Safety
/// The worker belongs to the calling thread, and code of a kernel is running.
#[inline]
unsafe fn require_room(worker: *mut Worker) {
    // SAFETY: the caller's promise; the running fibre belongs to the worker.
    unsafe {
        let fiber = (*worker).fibers.as_ptr().add((*worker).current as usize);
        stack::require_room((*fiber).top);
    }
}

/// Ends the executor's part of a call.
///
/// # Safety
/// The same as for [`enter`].
#[inline]
pub(crate) unsafe fn exit(worker: *mut Worker) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise.
    unsafe { (*worker).signals.in_kernel.store(true, Ordering::Relaxed) };
}
