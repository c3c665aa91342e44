//! A thread of the operating system that runs blocks: its fibres, and the current block.
//!
//! A kernel calls the executor on the stack of a fibre, and the executor may switch to another fibre of the
//! same worker before the call returns. The state of a worker is therefore accessed through a raw pointer,
//! and no reference to it is held across a switch.

mod turns;

use crate::abi;
use crate::block::Block;
use crate::check;
use crate::context::{StackPointer, leave, prepare, switch};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::fault;
use crate::grid::Grid;
use crate::stack::{self, Stacks};
use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use turns::fiber_main;
pub(crate) use turns::{ask, step, wait};

const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Fiber {
    top: StackPointer,
    stack: StackPointer,
    /// The thread of the block in which the fibre's loop was suspended.
    owner: u32,
}

/// A fault that a signal handler has recorded.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    pub(crate) signal: AtomicU32,
    pub(crate) code: AtomicU32,
    pub(crate) address: AtomicUsize,
    pub(crate) instruction: AtomicUsize,
}

pub(crate) struct Worker {
    /// True while code of a kernel runs, and not the executor.
    pub(crate) in_kernel: AtomicBool,
    /// The context of the thread that runs the fibres.
    pub(crate) home: AtomicPtr<u8>,
    pub(crate) fault: Fault,
    failure: Option<Failure>,
    /// True if the program has to be asked to confirm that the launch continues.
    to_ask: AtomicBool,
    /// True if the last switch home was to ask. `asking` is the context in which the kernel then continues.
    asks: bool,
    asking: StackPointer,
    stacks: Stacks,
    fibers: Vec<Fiber>,
    free: Vec<u32>,
    current: u32,
    pub(crate) block: Block,
    /// The first thread of the loop that begins, or that runs and has not been suspended.
    first: u32,
    grid: *const Grid<'static>,
    /// The running block, and the blocks to run in the same call.
    run: abi::Blocks,
    /// The x index of the first of these blocks, if the call has begun.
    begun: Option<u32>,
    /// The linear indices of the remaining blocks that were taken from the grid, including the ones in the call.
    blocks: std::ops::Range<u64>,
    _registration: fault::Registration,
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
                in_kernel: AtomicBool::new(false),
                home: AtomicPtr::default(),
                fault: Fault::default(),
                failure: None,
                to_ask: AtomicBool::new(false),
                asks: false,
                asking: ptr::null_mut(),
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
                _registration: fault::Registration::none(),
            }));
            // SAFETY: the worker lives until the thread ends.
            unsafe { (*worker)._registration = fault::Registration::new(worker) };
            current.set(worker);
            // A destructor of the thread that runs after the owner's destructor cannot set an owner; `run`
            // then frees the worker.
            let _ = OWNER.try_with(|_| ());
        }
        current.get()
    })
}

/// Runs blocks of a grid on the calling thread: the blocks in `blocks`, then others that it takes from the
/// grid.
///
/// # Safety
/// The grid's kernel is loaded, and its arguments match its parameters.
pub(crate) unsafe fn run(grid: &Grid<'_>, blocks: std::ops::Range<u64>) -> Result<()> {
    let worker = current();
    // SAFETY: the worker belongs to this thread, and no kernel runs on it, because kernels cannot launch
    // kernels.
    unsafe {
        if (*worker).in_kernel.load(Ordering::Relaxed) || !(*worker).grid.is_null() {
            return Err(Error::Kernel(Failure {
                kind: FailureKind::Unsupported,
                message: format!("{} was launched by a kernel", grid.what()),
            }));
        }
        let _late = OWNER.try_with(|_| ()).is_err().then(|| OwnWorker);
        let first = (*worker).take_fiber()?;
        (*worker).grid = ptr::from_ref(grid).cast();
        (*worker).run.is_stopped = &raw const grid.is_stopped;
        (*worker).begun = None;
        (*worker).blocks = blocks;
        (*worker).block.set_shape(grid.threads(), grid.warp_size);
        (*worker).failure = None;
        (*worker).fault.signal.store(0, Ordering::Relaxed);
        (*worker).to_ask.store(false, Ordering::Relaxed);
        grid.library.skip_constructors_of_shared();
        if (*worker).next_block() {
            (*worker).current = first;
            let mut stack = (&(*worker).fibers)[first as usize].stack;
            loop {
                switch((*worker).home.as_ptr(), stack, 0);
                if !mem::take(&mut (*worker).asks) {
                    break;
                }
                if grid.is_to_end() {
                    (*worker).failure = Some(Failure {
                        kind: FailureKind::Interrupted,
                        message: "it was interrupted".to_owned(),
                    });
                    break;
                }
                stack = (*worker).asking;
            }
        } else {
            (*worker).free.push(first);
        }
        (*worker).grid = ptr::null();
        (*worker).finish(grid)
    }
}

impl Worker {
    /// Makes the thread ask the program at its next operation.
    ///
    /// # Safety
    /// The worker belongs to the calling thread; called by a signal handler.
    pub(crate) unsafe fn ask_later(worker: *mut Worker) {
        // SAFETY: the caller's promise.
        unsafe { (*worker).to_ask.store(true, Ordering::Relaxed) };
    }

    /// Returns true for an address in the code of the running kernel's unit.
    ///
    /// # Safety
    /// The worker belongs to the calling thread, and runs a kernel.
    pub(crate) unsafe fn is_code(worker: *mut Worker, address: usize) -> bool {
        // SAFETY: the grid outlives `run`.
        unsafe { (*(*worker).grid).library.code.contains(&address) }
    }

    /// Collects the result after the last switch home.
    fn finish(&mut self, grid: &Grid<'_>) -> Result<()> {
        self.in_kernel.store(false, Ordering::Relaxed);
        let signal = self.fault.signal.load(Ordering::Relaxed);
        if signal != 0 {
            let (kind, mut message) = fault::describe(&self.fault, &self.stacks);
            if grid.check.is_some() && kind == FailureKind::Address {
                let [address, instruction] = [&self.fault.address, &self.fault.instruction];
                let [address, instruction] =
                    [address, instruction].map(|it| it.load(Ordering::Relaxed));
                message = check::describe_fault(address, instruction).unwrap_or(message);
            }
            self.failure = Some(Failure { kind, message });
        }
        let Some(mut failure) = self.failure.take() else { return Ok(()) };
        // Fibres may have been abandoned anywhere.
        self.free.clear();
        for index in 0..self.fibers.len() {
            self.reset(index);
            self.free.push(index as u32);
        }
        failure.message = grid.describe(self.run.index, &failure.message);
        Err(Error::Kernel(failure))
    }

    fn reset(&mut self, index: usize) {
        let fiber = &mut self.fibers[index];
        fiber.owner = NOBODY;
        // SAFETY: nothing uses the stack.
        fiber.stack = unsafe { prepare(fiber.top, fiber_main) };
    }

    fn take_fiber(&mut self) -> Result<u32> {
        if let Some(fiber) = self.free.pop() {
            return Ok(fiber);
        }
        let top = self.stacks.take()?;
        self.fibers.push(Fiber { top, stack: ptr::null_mut(), owner: NOBODY });
        self.reset(self.fibers.len() - 1);
        Ok(self.fibers.len() as u32 - 1)
    }

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
        leave((*worker).home.load(Ordering::Relaxed))
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
    if !in_kernel && unsafe { (*worker).in_kernel.load(Ordering::Relaxed) } {
        // SAFETY: as above.
        unsafe { require_room(worker) };
    }
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise.
    let was = unsafe { (*worker).in_kernel.swap(in_kernel, Ordering::Relaxed) };
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
    unsafe { (*worker).in_kernel.store(false, Ordering::Relaxed) };
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
pub(crate) unsafe fn exit(worker: *mut Worker) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise.
    unsafe { (*worker).in_kernel.store(true, Ordering::Relaxed) };
}
