//! Runs blocks of a grid on a worker, and switches between its fibres.

use super::{Fiber, NOBODY, OWNER, OwnWorker, Worker, current, enter, exit, fail, running};
use crate::block::{Block, GRID_BARRIER, Next};
use crate::check;
use crate::context::{StackPointer, Target, leave, prepare, switch};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::fault::{self, Signals};
use crate::grid::Grid;
use crate::interruption::ask;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering;

/// Runs blocks of a grid on the calling thread: the blocks in `blocks`, then others that it takes from the
/// grid.
///
/// # Safety
/// The grid's kernel is loaded, and its arguments match its parameters.
pub(crate) unsafe fn run(grid: &Grid<'_>, blocks: Range<u64>) -> Result<()> {
    let worker = current();
    // SAFETY: the worker belongs to this thread, and no kernel runs on it, because kernels cannot launch
    // kernels.
    unsafe {
        if (*worker).signals.in_kernel.load(Ordering::Relaxed) || !(*worker).grid.is_null() {
            return Err(Error::Kernel(Failure {
                kind: FailureKind::Unsupported,
                message: format!("{} was launched by a kernel", grid.what()),
            }));
        }
        let _late = OWNER.try_with(|_| ()).is_err().then(|| OwnWorker);
        let first = (*worker).take_fiber()?;
        (*worker).grid = ptr::from_ref(grid).cast();
        (*worker).signals.code = grid.library.code.clone();
        (*worker).run.is_stopped = &raw const grid.is_stopped;
        (*worker).begun = None;
        (*worker).blocks = blocks;
        (*worker).block.set_shape(grid.threads(), grid.warp_size);
        (*worker).failure = None;
        (*worker).signals.fault.signal.store(0, Ordering::Relaxed);
        (*worker).signals.to_ask.store(false, Ordering::Relaxed);
        grid.library.skip_constructors_of_shared();
        if (*worker).next_block() {
            (*worker).current = first;
            let mut stack = (&(*worker).fibers)[first as usize].stack;
            loop {
                switch((*worker).signals.home.as_ptr(), stack, 0);
                if !mem::take(&mut (*worker).signals.asks) {
                    break;
                }
                if grid.is_to_end() {
                    (*worker).failure = Some(Failure {
                        kind: FailureKind::Interrupted,
                        message: "it was interrupted".to_owned(),
                    });
                    break;
                }
                stack = (*worker).signals.asking.load(Ordering::Relaxed);
            }
        } else {
            (*worker).free.push(first);
        }
        (*worker).grid = ptr::null();
        (*worker).finish(grid)
    }
}

impl Worker {
    /// Collects the result after the last switch home.
    fn finish(&mut self, grid: &Grid<'_>) -> Result<()> {
        let Signals { in_kernel, fault, .. } = &self.signals;
        in_kernel.store(false, Ordering::Relaxed);
        if fault.signal.load(Ordering::Relaxed) != 0 {
            let (kind, mut message) = fault::describe(fault, &self.stacks);
            if grid.check.is_some() && kind == FailureKind::Address {
                let address = fault.address.load(Ordering::Relaxed);
                let instruction = fault.instruction.load(Ordering::Relaxed);
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
}

/// Suspends the running thread `thread` in an operation; other threads run until it can continue. If the
/// threads are in lockstep, `step` returns the next step; otherwise `arrive` returns true if the thread can
/// continue. Returns the result of the operation.
///
/// # Safety
/// Called on the fibre of that thread.
#[inline]
pub(crate) unsafe fn wait(
    worker: *mut Worker,
    thread: u32,
    step: impl FnOnce(&mut Block) -> Option<Next>,
    arrive: impl FnOnce(&mut Block) -> Result<bool, String>,
) -> u64 {
    // SAFETY: the worker belongs to the calling thread; no reference is held across a switch.
    unsafe {
        if !(*worker).block.has(thread) {
            let message = format!("threadIdx was overwritten: it belongs to thread {thread}");
            fail(worker, FailureKind::Address, message);
        }
        if (*worker).signals.to_ask.load(Ordering::Relaxed) {
            ask(&raw mut (*worker).signals);
        }
        (*worker).suspend(thread);
        match step(&mut (*worker).block) {
            Some(next) => run_next(worker, next, false),
            None => match arrive(&mut (*worker).block) {
                Ok(true) => (*worker).block.result(thread),
                Ok(false) => go_on(worker, false),
                Err(message) => fail(worker, FailureKind::Deadlock, message),
            },
        }
    }
}

/// Like [`wait`], but only if the threads are in lockstep and the next one is suspended. Otherwise it does
/// nothing, and the returned target is null. The thread continues at `stack`.
///
/// # Safety
/// Called on the fibre of that thread, by a function of [`stepping`](crate::context::stepping).
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the short way is assembler"))]
#[inline]
pub(crate) unsafe fn step(
    stack: StackPointer,
    advance: impl FnOnce(&mut Block) -> Option<Next>,
) -> Target {
    let worker = running();
    let nowhere = Target { stack: ptr::null_mut(), value: 0 };
    // SAFETY: the worker belongs to the calling thread.
    unsafe {
        enter(worker);
        if !(*worker).block.can_step() || (*worker).signals.to_ask.load(Ordering::Relaxed) {
            return nowhere;
        }
        let Some(Next::Resume(target)) = advance(&mut (*worker).block) else { return nowhere };
        let fibers = (*worker).fibers.as_mut_ptr();
        (*fibers.add((*worker).current as usize)).stack = stack;
        (*worker).current = target;
        let Fiber { stack, owner, .. } = *fibers.add(target as usize);
        let value = (*worker).block.result(owner);
        exit(worker);
        Target { stack, value }
    }
}

/// Switches to the next thread. Returns when the calling fibre continues, with the result of the operation in
/// which it was suspended. Returns immediately if a loop is to begin on this fibre, which is only possible if
/// it `is_free`.
///
/// # Safety
/// Called on a fibre of the worker.
unsafe fn go_on(worker: *mut Worker, is_free: bool) -> u64 {
    // SAFETY: as for `wait`.
    unsafe {
        let mut next = (*worker).block.next();
        if next == Next::Nobody && wait_for_grid(worker) {
            next = (*worker).block.next();
        }
        run_next(worker, next, is_free)
    }
}

/// Switches to `next`, like [`go_on`].
///
/// # Safety
/// The same as for [`go_on`].
#[inline]
unsafe fn run_next(worker: *mut Worker, next: Next, is_free: bool) -> u64 {
    // SAFETY: as for `wait`.
    unsafe {
        let target = match next {
            Next::Resume(fiber) => fiber,
            Next::Begin(first) => {
                (*worker).first = first;
                if is_free {
                    return 0;
                }
                match (*worker).take_fiber().map_err(|error| error.to_string()) {
                    Ok(fiber) => fiber,
                    Err(message) => fail(worker, FailureKind::Unsupported, message),
                }
            }
            Next::Nobody => {
                let mut message = (*worker).block.describe_waits();
                message.insert_str(0, "its threads wait for each other: ");
                fail(worker, FailureKind::Deadlock, message)
            }
        };
        let own = (*worker).current;
        let fibers = (*worker).fibers.as_mut_ptr();
        let value = match (*fibers.add(target as usize)).owner {
            NOBODY => 0,
            thread => (*worker).block.result(thread),
        };
        if target == own {
            return value;
        }
        if is_free {
            (*worker).free.push(own);
        }
        (*worker).current = target;
        let save = &raw mut (*fibers.add(own as usize)).stack;
        // A thread that was suspended by `step` continues directly in the kernel.
        exit(worker);
        switch(save, (*fibers.add(target as usize)).stack, value)
    }
}

/// If the rest of the block waits at the barrier of the grid, waits for the other blocks and returns true.
///
/// # Safety
/// The same as for [`go_on`].
unsafe fn wait_for_grid(worker: *mut Worker) -> bool {
    // SAFETY: as for `wait`.
    unsafe {
        if !(*worker).block.is_complete(GRID_BARRIER) {
            return false;
        }
        let grid = &*(*worker).grid;
        let Some(barrier) = &grid.barrier else { return false };
        // The other blocks take their turns meanwhile.
        grid.check.inspect(|check| check.turn.leave());
        let round = barrier.arrive();
        loop {
            match barrier.wait(grid, round) {
                Some(true) => break,
                // Another block has failed.
                Some(false) => {
                    grid.check.inspect(|check| check.turn.take());
                    leave((*worker).signals.home.load(Ordering::Relaxed))
                }
                None => ask(&raw mut (*worker).signals),
            }
        }
        grid.check.inspect(|check| check.turn.take());
        (*worker).block.release_if_complete(GRID_BARRIER)
    }
}

/// The main function of every fibre: runs a loop over threads, then determines the next step.
extern "C" fn fiber_main() -> ! {
    let worker = running();
    loop {
        // SAFETY: the worker belongs to this thread; the grid outlives `run`, and the caller of `run` has
        // promised that the kernel's arguments are valid.
        unsafe {
            let grid = &*(*worker).grid;
            let (run, first) = (&raw mut (*worker).run, (*worker).first);
            if (*worker).block.is_split() {
                // The following blocks wait until this one is finished.
                (*run).count = 1;
            }
            exit(worker);
            let mut has_run = false;
            if let Some(regions) = grid.regions
                && first == 0
                && !(*worker).block.is_split()
            {
                has_run = regions(&raw const grid.launch, run);
            }
            if !has_run {
                (grid.run)(&raw const grid.launch, run, first);
            }
            enter(worker);
            if returned(worker) {
                go_on(worker, true);
                continue;
            }
            if let Some(what) = grid.library.overrun(&grid.schedule) {
                fail(worker, FailureKind::Address, what);
            }
            if !(*worker).next_block() {
                let own = (*worker).current as usize;
                (*worker).free.push(own as u32);
                let fibers = (*worker).fibers.as_mut_ptr();
                let home = (*worker).signals.home.load(Ordering::Relaxed);
                switch(&raw mut (*fibers.add(own)).stack, home, 0);
            }
        }
    }
}

/// Records that the current fibre's loop has returned: its thread has, or all threads from the loop's first
/// one on. Returns true if the block has more threads to run.
///
/// # Safety
/// The same as for [`go_on`].
unsafe fn returned(worker: *mut Worker) -> bool {
    // SAFETY: as for `wait`.
    unsafe {
        let current = (*worker).current as usize;
        let owner = mem::replace(&mut (&mut (*worker).fibers)[current].owner, NOBODY);
        let first = (*worker).first;
        let block = &mut (*worker).block;
        if block.is_split() {
            match owner {
                NOBODY => block.finish_rest(first),
                thread => block.finish_one(thread),
            }
            if !block.is_finished() {
                return true;
            }
            let (threads, warp_size) = ((*(*worker).grid).threads(), (*(*worker).grid).warp_size);
            (*worker).block.set_shape(threads, warp_size);
        }
        if let Some(barrier) = &(*(*worker).grid).barrier {
            barrier.leave();
        }
        false
    }
}
