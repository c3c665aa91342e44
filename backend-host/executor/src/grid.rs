//! Launches: hands out the blocks of a grid to threads of the operating system.

mod barrier;
mod initialisation;
mod kernel;
mod others;

use crate::abi;
use crate::check;
use crate::error::{Error, Result};
use crate::fault;
use crate::interruption::this_thread;
use crate::launch::{Schedule, Shape};
use crate::library::Library;
use crate::worker;
use barrier::GridBarrier;
pub(crate) use initialisation::{Initialiser, destroy, initialise};
pub use kernel::Kernel;
use others::{Others, Spread};
use rayon_core::ThreadPool;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A launch that takes longer is spread over threads.
const ALONE: Duration = Duration::from_micros(12);

fn launch_of(shape: &Shape, arguments: &[*mut c_void]) -> abi::Launch {
    let index = |[x, y, z]: [u32; 3]| abi::Index { x, y, z };
    abi::Launch {
        grid: index(shape.grid),
        block: index(shape.block),
        arguments: arguments.as_ptr(),
    }
}

/// The code that a launch runs, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What<'a> {
    Kernel(&'a str),
    /// The initialisers of a unit's variables.
    Initialisers,
    Destructors,
}

/// A running launch.
pub(crate) struct Grid<'a> {
    pub(crate) run: abi::Run,
    pub(crate) regions: Option<abi::RunRegions>,
    pub(crate) launch: abi::Launch,
    pub(crate) check: Option<&'a check::Launch<'a>>,
    pub(crate) warp_size: u32,
    what: What<'a>,
    pub(crate) library: &'a Library,
    pub(crate) schedule: Schedule,
    total: u64,
    /// The first block that has not been taken.
    next: AtomicU64,
    /// The number of blocks to take in one step.
    chunk: AtomicU64,
    pub(crate) is_stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
    pub(crate) barrier: Option<GridBarrier>,
    /// Called only by the launching thread.
    is_interrupted: Option<&'a dyn Fn() -> bool>,
    launcher: libc::pthread_t,
    spread: Spread,
}

// SAFETY: the arguments that the launch points to are only read; only the launching thread calls the
// function.
unsafe impl Sync for Grid<'_> {}

impl<'a> Grid<'a> {
    fn new(
        what: What<'a>,
        run: abi::Run,
        library: &'a Library,
        shape: &Shape,
        arguments: &[*mut c_void],
    ) -> Grid<'a> {
        fault::watch();
        let total = shape.grid.into_iter().map(u64::from).product();
        Grid {
            run,
            regions: None,
            launch: launch_of(shape, arguments),
            check: None,
            warp_size: library.warp_size(),
            what,
            library,
            schedule: Schedule::default(),
            total,
            next: AtomicU64::new(total),
            chunk: AtomicU64::new(1),
            is_stopped: AtomicBool::new(false),
            failure: Mutex::default(),
            barrier: shape.cooperative.then(|| GridBarrier::new(total)),
            is_interrupted: None,
            launcher: this_thread(),
            spread: Spread::default(),
        }
    }

    fn result(self) -> Result<()> {
        if self.spread.is_lost() {
            return self.lost();
        }
        let failure = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}

impl Grid<'_> {
    /// Names the code that runs, for error messages.
    pub(crate) fn what(&self) -> String {
        match self.what {
            What::Kernel(name) => format!("kernel {name}"),
            What::Initialisers => "the initialisation of variables".to_owned(),
            What::Destructors => "the destruction of variables".to_owned(),
        }
    }

    /// Describes a failure in the block with this index.
    pub(crate) fn describe(&self, abi::Index { x, y, z }: abi::Index, what: &str) -> String {
        match self.what {
            What::Kernel(_) => format!("{} failed in block ({x}, {y}, {z}): {what}", self.what()),
            _ => format!("{} failed: {what}", self.what()),
        }
    }

    /// Returns the number of threads in a block.
    pub(crate) fn threads(&self) -> u32 {
        let abi::Index { x, y, z } = self.launch.block;
        x * y * z
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns true if the calling thread has to abandon its block. Asks the program by calling back
    /// into it.
    pub(crate) fn is_to_end(&self) -> bool {
        self.is_stopped()
            || (this_thread() == self.launcher && self.is_interrupted.is_some_and(|it| it()))
            || self.spread.is_lost()
    }

    /// Takes blocks that have not been taken. The range is empty if there are none left.
    pub(crate) fn take(&self) -> Range<u64> {
        let chunk = self.chunk.load(Ordering::Relaxed);
        if self.next.load(Ordering::Relaxed) >= self.total {
            return 0..0;
        }
        let first = self.next.fetch_add(chunk, Ordering::Relaxed);
        first.min(self.total)..first.saturating_add(chunk).min(self.total)
    }

    /// Returns how many of these blocks a kernel may run in one call: those in the same row of the grid.
    /// The number is 1 if something has to be done before or after each block.
    pub(crate) fn run_from(&self, blocks: &Range<u64>) -> u32 {
        let Schedule { fill, reversed, .. } = self.schedule;
        if fill.is_some() || reversed || self.check.is_some() || self.barrier.is_some() {
            return 1;
        }
        let row = u64::from(self.launch.grid.x);
        (row - blocks.start % row).min(blocks.end - blocks.start) as u32
    }

    /// Returns the index of a block.
    pub(crate) fn index(&self, linear: u64) -> abi::Index {
        let linear = if self.schedule.reversed { self.total - 1 - linear } else { linear };
        let abi::Index { x, y, .. } = self.launch.grid;
        let (x, y) = (u64::from(x), u64::from(y));
        let index = [linear % x, linear / x % y, linear / x / y].map(|it| it as u32);
        abi::Index { x: index[0], y: index[1], z: index[2] }
    }

    fn stop(&self, error: Error) {
        if self.spread.is_lost() {
            // Other threads may have held the locks.
            self.is_stopped.store(true, Ordering::Relaxed);
            return;
        }
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(barrier) = &self.barrier {
            barrier.wake();
        }
    }

    /// Runs blocks on the calling thread: first the given ones, then further ones that it takes.
    fn work(&self, blocks: Range<u64>) {
        let _checked = self.check.map(|check| check.begin(self));
        // SAFETY: the launch's caller has promised it.
        if let Err(error) = unsafe { worker::run(self, blocks) } {
            self.stop(error);
        }
    }

    /// Runs blocks on the calling thread for a short time, and the remaining ones on all threads.
    fn run_all(&self, pool: &dyn Fn() -> Option<Arc<ThreadPool>>) {
        let start = Instant::now();
        let (mut done, mut step) = (0, 1);
        while done < self.total && !self.is_stopped() {
            let end = self.total.min(done + step);
            self.work(done..end);
            (done, step) = (end, step * 2);
            if start.elapsed() > ALONE {
                break;
            }
        }
        let left = self.total - done;
        if left == 0 || self.is_stopped() {
            return;
        }
        let pool = if left > 1 { pool() } else { None };
        let threads = pool.as_ref().map_or(1, |pool| pool.current_num_threads() as u64);
        self.chunk.store((left / (threads * 16)).max(1), Ordering::Relaxed);
        self.next.store(done, Ordering::Relaxed);
        let Some(pool) = pool else { return self.work(0..0) };
        let others = Others::of(self);
        for _ in 1..threads.min(left) {
            let task = others.task(0..0);
            pool.spawn(move || task.run());
        }
        self.work(0..0);
    }

    /// Runs each block on its own thread.
    fn run_together(&self, total: u64) {
        let others = Others::of(self);
        for block in 1..total {
            let task = others.task(block..block + 1);
            let name = "pygpu block".to_owned();
            if let Err(error) = thread::Builder::new().name(name).spawn(move || task.run()) {
                self.stop(Error::System(format!(
                    "no thread for block {block} of {total} of a cooperative launch: {error}"
                )));
                break;
            }
        }
        if !self.is_stopped() {
            self.work(0..1);
        }
    }
}
