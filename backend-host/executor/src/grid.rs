//! Launches: the blocks of a grid, handed out to threads of the operating system.

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

/// What a launch runs, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What<'a> {
    Kernel(&'a str),
    /// Of the variables of a unit.
    Initialisers,
    Destructors,
}

/// A launch that runs.
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
    /// The first block that nobody has taken.
    next: AtomicU64,
    /// Blocks to take at once.
    chunk: AtomicU64,
    pub(crate) is_stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
    pub(crate) barrier: Option<GridBarrier>,
    /// For the thread that launches only.
    is_interrupted: Option<&'a dyn Fn() -> bool>,
    launcher: libc::pthread_t,
    spread: Spread,
}

// SAFETY: the arguments that the launch points to are only read; the function is called by the thread
// that launches only.
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
    /// What runs, as errors name it.
    pub(crate) fn what(&self) -> String {
        match self.what {
            What::Kernel(name) => format!("kernel {name}"),
            What::Initialisers => "the initialisation of variables".to_owned(),
            What::Destructors => "the destruction of variables".to_owned(),
        }
    }

    /// What a failure in the block of an index is reported as.
    pub(crate) fn describe(&self, abi::Index { x, y, z }: abi::Index, what: &str) -> String {
        match self.what {
            What::Kernel(_) => format!("{} failed in block ({x}, {y}, {z}): {what}", self.what()),
            _ => format!("{} failed: {what}", self.what()),
        }
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        let abi::Index { x, y, z } = self.launch.block;
        x * y * z
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// True if the calling thread is to give up its block: the program may say so here.
    pub(crate) fn is_to_end(&self) -> bool {
        self.is_stopped()
            || (this_thread() == self.launcher && self.is_interrupted.is_some_and(|it| it()))
            || self.spread.is_lost()
    }

    /// Takes blocks that nobody has taken; none if there are none.
    pub(crate) fn take(&self) -> Range<u64> {
        let chunk = self.chunk.load(Ordering::Relaxed);
        if self.next.load(Ordering::Relaxed) >= self.total {
            return 0..0;
        }
        let first = self.next.fetch_add(chunk, Ordering::Relaxed);
        first.min(self.total)..first.saturating_add(chunk).min(self.total)
    }

    /// Blocks from one on that a kernel may run in one call: those of a row of the grid. Only one where something
    /// is to be done around each.
    pub(crate) fn run_from(&self, blocks: &Range<u64>) -> u32 {
        let Schedule { fill, reversed, .. } = self.schedule;
        if fill.is_some() || reversed || self.check.is_some() || self.barrier.is_some() {
            return 1;
        }
        let row = u64::from(self.launch.grid.x);
        (row - blocks.start % row).min(blocks.end - blocks.start) as u32
    }

    /// The index of a block.
    pub(crate) fn index(&self, linear: u64) -> abi::Index {
        let linear = if self.schedule.reversed { self.total - 1 - linear } else { linear };
        let abi::Index { x, y, .. } = self.launch.grid;
        let (x, y) = (u64::from(x), u64::from(y));
        let index = [linear % x, linear / x % y, linear / x / y].map(|it| it as u32);
        abi::Index { x: index[0], y: index[1], z: index[2] }
    }

    fn stop(&self, error: Error) {
        if self.spread.is_lost() {
            // Other threads may have had the locks.
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

    /// Runs blocks on the calling thread: some, and then what it can take.
    fn work(&self, blocks: Range<u64>) {
        let _checked = self.check.map(|check| check.begin(self));
        // SAFETY: the launch's caller has promised it.
        if let Err(error) = unsafe { worker::run(self, blocks) } {
            self.stop(error);
        }
    }

    /// Runs blocks on the calling thread while that does not take long, and the others on all.
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

    /// Runs each block on a thread of its own.
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
