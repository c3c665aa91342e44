//! Launches: the blocks of a grid, handed out to threads of the operating system.

use crate::abi;
use crate::block::MOST_THREADS;
use crate::error::{Error, Result};
use crate::fault;
use crate::library::{Code, Library, Parameter};
use crate::worker;
use rayon::ThreadPool;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of shared memory of a block at most, static and dynamic: those of the largest GPUs.
pub const MOST_SHARED_BYTES: u32 = 227 << 10;

/// A launch that takes longer is spread over threads.
const ALONE: Duration = Duration::from_micros(12);

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// True if the blocks may wait for each other: each has a thread of the operating system.
    pub cooperative: bool,
}

/// What a device leaves open, and tests may want at its worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The byte that shared memory is filled with before each block; `None` leaves it as it is.
    pub fill: Option<u8>,
    /// Bytes of dynamic shared memory that the launch asks for: where there is a `fill`, a block that
    /// writes behind them fails with an address. `None` is all that a block can have.
    pub dynamic_shared: Option<u32>,
    /// True to run the last blocks first.
    pub reversed: bool,
}

/// A kernel of a library.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    library: Arc<Library>,
    code: Code,
}

impl Kernel {
    /// Returns the kernel with a name: a plain one if it is `extern "C"`, else the mangled one.
    pub fn find(library: &Arc<Library>, name: &str) -> Option<Kernel> {
        let code = library.code(name)?.clone();
        Some(Kernel { name: name.to_owned(), library: library.clone(), code })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the parameters in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.code.parameters
    }

    /// Returns the threads of a block at most: those of `__launch_bounds__`, else 1024.
    pub fn most_threads(&self) -> u32 {
        match self.code.most_threads {
            0 => MOST_THREADS as u32,
            bound => bound.min(MOST_THREADS as u32),
        }
    }

    /// Returns the second of the launch bounds; 0 without.
    pub fn least_blocks(&self) -> u32 {
        self.code.least_blocks
    }

    /// Returns the bytes of static shared memory.
    pub fn static_shared_bytes(&self) -> u64 {
        self.code.static_shared
    }

    /// Runs the kernel, and returns when it has run. The calling thread takes part; `pool` is asked for
    /// threads if the launch takes longer than some microseconds.
    ///
    /// # Errors
    /// `Kernel` if it fails; `System` if there is no memory for stacks. Blocks that have begun
    /// then may have written what they would.
    ///
    /// # Safety
    /// `arguments` point to values of the types of the kernel's parameters, which stay; no thread of a
    /// block is beyond [`Kernel::most_threads`]; no extent is 0; and the kernel accesses what it may.
    pub unsafe fn launch(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
    ) -> Result<()> {
        fault::watch();
        let [x, y, z] = shape.grid.map(u64::from);
        let total = x * y * z;
        let index = |[x, y, z]: [u32; 3]| abi::Index { x, y, z };
        let grid = Grid {
            run: self.code.run,
            launch: abi::Launch {
                grid: index(shape.grid),
                block: index(shape.block),
                arguments: arguments.as_ptr(),
            },
            warp_size: self.library.warp_size(),
            name: &self.name,
            library: &self.library,
            schedule: *schedule,
            total,
            next: AtomicU64::new(total),
            chunk: AtomicU64::new(1),
            is_stopped: AtomicBool::new(false),
            failure: Mutex::default(),
            barrier: shape.cooperative.then(|| GridBarrier::new(total)),
        };
        if shape.cooperative {
            grid.run_together(total);
        } else {
            grid.run_all(pool);
        }
        let failure = grid.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}

/// A launch that runs.
pub(crate) struct Grid<'a> {
    pub(crate) run: abi::Run,
    pub(crate) launch: abi::Launch,
    pub(crate) warp_size: u32,
    pub(crate) name: &'a str,
    pub(crate) library: &'a Library,
    pub(crate) schedule: Schedule,
    total: u64,
    /// The first block that nobody has taken.
    next: AtomicU64,
    /// Blocks to take at once.
    chunk: AtomicU64,
    is_stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
    pub(crate) barrier: Option<GridBarrier>,
}

// SAFETY: the arguments that the launch points to are only read.
unsafe impl Sync for Grid<'_> {}

impl Grid<'_> {
    /// Threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        let abi::Index { x, y, z } = self.launch.block;
        x * y * z
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
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

    /// The index of a block.
    pub(crate) fn index(&self, linear: u64) -> abi::Index {
        let linear = if self.schedule.reversed { self.total - 1 - linear } else { linear };
        let abi::Index { x, y, .. } = self.launch.grid;
        let (x, y) = (u64::from(x), u64::from(y));
        let index = [linear % x, linear / x % y, linear / x / y].map(|it| it as u32);
        abi::Index { x: index[0], y: index[1], z: index[2] }
    }

    fn stop(&self, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(barrier) = &self.barrier {
            barrier.wake();
        }
    }

    /// Runs blocks on the calling thread: some, and then what it can take.
    fn work(&self, blocks: Range<u64>) {
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
        match pool {
            None => self.work(0..0),
            Some(pool) => pool.in_place_scope(|scope| {
                for _ in 1..threads.min(left) {
                    scope.spawn(|_| self.work(0..0));
                }
                self.work(0..0);
            }),
        }
    }

    /// Runs each block on a thread of its own.
    fn run_together(&self, total: u64) {
        std::thread::scope(|scope| {
            for block in 1..total {
                let started = std::thread::Builder::new()
                    .name("pygpu block".to_owned())
                    .spawn_scoped(scope, move || self.work(block..block + 1));
                if let Err(error) = started {
                    self.stop(Error::System(format!(
                        "no thread for block {block} of {total} of a cooperative launch: {error}"
                    )));
                    return;
                }
            }
            self.work(0..1);
        });
    }
}

/// Where the blocks of a cooperative launch wait for each other.
#[derive(Debug)]
pub(crate) struct GridBarrier {
    state: Mutex<GridState>,
    changed: Condvar,
}

#[derive(Debug)]
struct GridState {
    /// Blocks that have not ended.
    blocks: u64,
    arrived: u64,
    /// Counts the times that all have come.
    round: u64,
}

impl GridBarrier {
    fn new(blocks: u64) -> GridBarrier {
        let state = Mutex::new(GridState { blocks, arrived: 0, round: 0 });
        GridBarrier { state, changed: Condvar::new() }
    }

    /// Waits for the other blocks; false if the launch has failed meanwhile.
    pub(crate) fn wait(&self, grid: &Grid<'_>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.arrived += 1;
        let round = state.round;
        self.release_if_complete(&mut state);
        while state.round == round && !grid.is_stopped() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.round != round
    }

    /// A block has ended: nobody waits for it any longer.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.blocks -= 1;
        self.release_if_complete(&mut state);
    }

    fn release_if_complete(&self, state: &mut GridState) {
        if state.arrived > 0 && state.arrived >= state.blocks {
            state.arrived = 0;
            state.round += 1;
            self.changed.notify_all();
        }
    }

    fn wake(&self) {
        // Under the lock, so that nobody looks, misses this, and then waits.
        let _state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }
}
