//! Hands out the blocks of a grid to threads of the operating system: the launching thread, and others for which it
//! waits.

use crate::error::Error;
use crate::grid::{Grid, interrupted};
use crate::interruption::{self, AGAIN, PERIOD, this_thread};
use crate::worker::turns::run;
use rayon_core::ThreadPool;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A launch that takes longer is spread over threads.
const ALONE: Duration = Duration::from_micros(12);

/// Runs blocks on the calling thread: first the given ones, then further ones that it takes.
pub(crate) fn work(grid: &Grid<'_>, blocks: Range<u64>) {
    let _checked = grid.check.map(|check| {
        let (local, is_cooperative) = (grid.library.local_base() as usize, grid.barrier.is_some());
        check.begin(&grid.launch, grid.warp_size, local, is_cooperative)
    });
    // SAFETY: the launch's caller has promised it.
    if let Err(error) = unsafe { run(grid, blocks) } {
        grid.stop(error);
    }
}

/// Runs blocks on the calling thread for a short time, and the remaining ones on all threads.
pub(crate) fn run_all(grid: &Grid<'_>, pool: &dyn Fn() -> Option<Arc<ThreadPool>>) {
    let start = Instant::now();
    let (mut done, mut step) = (0, 1);
    while done < grid.total && !grid.is_stopped() {
        let end = grid.total.min(done + step);
        work(grid, done..end);
        (done, step) = (end, step * 2);
        if start.elapsed() > ALONE {
            break;
        }
    }
    let left = grid.total - done;
    if left == 0 || grid.is_stopped() {
        return;
    }
    let pool = if left > 1 { pool() } else { None };
    let threads = pool.as_ref().map_or(1, |pool| pool.current_num_threads() as u64);
    grid.chunk.store((left / (threads * 16)).max(1), Ordering::Relaxed);
    grid.next.store(done, Ordering::Relaxed);
    let Some(pool) = pool else { return work(grid, 0..0) };
    let others = Others::of(grid);
    for _ in 1..threads.min(left) {
        let task = others.task(0..0);
        pool.spawn(move || task.run());
    }
    work(grid, 0..0);
}

/// Runs each block on its own thread.
pub(crate) fn run_together(grid: &Grid<'_>) {
    let (total, others) = (grid.total, Others::of(grid));
    for block in 1..total {
        let task = others.task(block..block + 1);
        let name = "pygpu block".to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(move || task.run()) {
            grid.stop(Error::System(format!(
                "no thread for block {block} of {total} of a cooperative launch: {error}"
            )));
            break;
        }
    }
    if !grid.is_stopped() {
        work(grid, 0..1);
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
struct Others<'g, 'a> {
    grid: &'g Grid<'a>,
    shared: Arc<Shared>,
}

/// Blocks for another thread to run.
struct Task {
    grid: *const Grid<'static>,
    shared: Arc<Shared>,
    blocks: Range<u64>,
}

// SAFETY: threads share the launch, which outlives the task, because `Others` waits for the task.
unsafe impl Send for Task {}

impl Task {
    /// Runs the given blocks, and then takes further ones.
    fn run(self) {
        self.shared.lock().running.push(this_thread());
        // SAFETY: the launch ends after the task.
        let grid = unsafe { &*self.grid };
        let blocks = self.blocks.clone();
        if catch_unwind(AssertUnwindSafe(|| work(grid, blocks))).is_err() {
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
    fn of(grid: &'g Grid<'a>) -> Others<'g, 'a> {
        grid.spread.begin();
        Others { grid, shared: Arc::default() }
    }

    /// Creates a task with blocks for another thread. That thread has to run or drop the task.
    fn task(&self, blocks: Range<u64>) -> Task {
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
