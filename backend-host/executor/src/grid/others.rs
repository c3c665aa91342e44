//! The threads that run blocks in addition to the launching thread, which waits for them.

use super::Grid;
use crate::error::{Error, Failure, FailureKind, Result};
use crate::fork;
use crate::interruption::{self, AGAIN, PERIOD, this_thread};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Records if other threads run blocks of a launch, and in which process.
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

    /// Returns true in a child that a signal handler has forked from the process with these threads. They run
    /// only in the parent, and the locks that they held stay locked.
    pub(super) fn is_lost(&self) -> bool {
        self.is_spread.load(Ordering::Relaxed)
            && self.process.load(Ordering::Relaxed) != fork::generation()
    }
}

#[derive(Debug, Default)]
struct State {
    /// The number of tasks that have not been dropped.
    count: usize,
    /// The threads that run blocks.
    running: Vec<libc::pthread_t>,
}

/// State that the threads share with the one that waits for them.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a task has been dropped.
    left: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The other threads of a launch. Dropping this waits until they have ended; in a forked child, it does not
/// wait.
pub(super) struct Others<'g, 'a> {
    grid: &'g Grid<'a>,
    shared: Arc<Shared>,
}

/// Blocks for another thread to run.
pub(super) struct Task {
    grid: *const Grid<'static>,
    shared: Arc<Shared>,
    blocks: Range<u64>,
}

// SAFETY: threads share the launch, which outlives the task, because `Others` waits for the task.
unsafe impl Send for Task {}

impl Task {
    /// Runs the given blocks, and then takes further ones.
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

    /// Creates a task with blocks for another thread. That thread has to run or drop the task.
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
                // The threads in the list have not ended.
                state.running.iter().for_each(|&it| interruption::signal(it));
            }
        }
    }
}

fn interrupted(message: String) -> Error {
    Error::Kernel(Failure { kind: FailureKind::Interrupted, message })
}

impl Grid<'_> {
    /// Returns the failure of a launch that is lost in a forked child.
    pub(super) fn lost(&self) -> Result<()> {
        Err(interrupted(format!(
            "{} was ended: a handler of a signal has forked, and threads of the parent process run its blocks there",
            self.what()
        )))
    }
}
