//! The threads that run blocks besides the one that launches, which waits for them.

use super::Grid;
use crate::error::{Error, Failure, FailureKind, Result};
use crate::fork;
use crate::interruption::{self, AGAIN, PERIOD, this_thread};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Whether other threads run blocks of a launch, and in which process they do.
#[derive(Debug, Default)]
pub(super) struct Spread {
    is_spread: AtomicBool,
    process: AtomicU32,
}

impl Spread {
    fn begin(&self) {
        self.process.store(fork::generation(), Ordering::Relaxed);
        self.is_spread.store(true, Ordering::Relaxed);
    }

    /// True in a forked child of the process whose threads they are: a handler of a signal has forked. They run
    /// for the parent, and locks that they had stay locked.
    pub(super) fn is_lost(&self) -> bool {
        self.is_spread.load(Ordering::Relaxed)
            && self.process.load(Ordering::Relaxed) != fork::generation()
    }
}

#[derive(Debug, Default)]
struct State {
    /// Tasks that have not been dropped.
    count: usize,
    /// The threads that run blocks.
    running: Vec<libc::pthread_t>,
}

/// What the threads and the one that waits for them share, which each of them keeps.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Told when a task has been dropped.
    left: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The other threads of a launch, which have ended when this has been dropped. In a forked child it
/// waits for nobody.
pub(super) struct Others<'g, 'a> {
    grid: &'g Grid<'a>,
    shared: Arc<Shared>,
}

/// Blocks that another thread is to run.
pub(super) struct Task {
    grid: *const Grid<'static>,
    shared: Arc<Shared>,
    blocks: Range<u64>,
}

// SAFETY: the launch is shared by threads, and there as long as the task: `Others` waits for that.
unsafe impl Send for Task {}

impl Task {
    /// Runs the blocks, and then what is left to take.
    pub(super) fn run(self) {
        self.shared.lock().running.push(this_thread());
        // SAFETY: the launch ends after the task.
        let grid = unsafe { &*self.grid };
        let blocks = self.blocks.clone();
        if catch_unwind(AssertUnwindSafe(|| grid.work(blocks))).is_err() {
            grid.stop(Error::System(format!("{}: a thread of the executor panicked", grid.what())));
        }
        self.shared.lock().running.retain(|it| *it != this_thread());
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.shared.lock().count -= 1;
        self.shared.left.notify_all();
    }
}

impl<'g, 'a> Others<'g, 'a> {
    pub(super) fn of(grid: &'g Grid<'a>) -> Others<'g, 'a> {
        grid.spread.begin();
        Others { grid, shared: Arc::default() }
    }

    /// Returns blocks for another thread, which is to run them or to drop them.
    pub(super) fn task(&self, blocks: Range<u64>) -> Task {
        self.shared.lock().count += 1;
        Task { grid: ptr::from_ref(self.grid).cast(), shared: self.shared.clone(), blocks }
    }
}

impl Drop for Others<'_, '_> {
    /// Waits until the other threads have ended. The program may end the launch meanwhile.
    fn drop(&mut self) {
        if self.grid.spread.is_lost() {
            return;
        }
        let mut state = self.shared.lock();
        while state.count > 0 {
            if self.grid.is_interrupted.is_none() {
                state = self.shared.left.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let pause = if self.grid.is_stopped() { AGAIN } else { PERIOD };
            let waited = self.shared.left.wait_timeout(state, pause);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if !waited.timed_out() {
                continue;
            }
            drop(state);
            if self.grid.is_to_end() {
                self.grid.stop(interrupted(format!("{} was interrupted", self.grid.what())));
            }
            if self.grid.spread.is_lost() {
                return;
            }
            state = self.shared.lock();
            if self.grid.is_stopped() {
                // They are in the list, and so have not ended.
                state.running.iter().for_each(|&it| interruption::signal(it));
            }
        }
    }
}

fn interrupted(message: String) -> Error {
    Error::Kernel(Failure { kind: FailureKind::Interrupted, message })
}

impl Grid<'_> {
    /// The failure of a launch that is lost in a forked child.
    pub(super) fn lost(&self) -> Result<()> {
        Err(interrupted(format!(
            "{} was ended: a handler of a signal has forked, and threads of the parent process run its blocks there",
            self.what()
        )))
    }
}
