//! Launches: the blocks of a grid, handed out to threads of the operating system.

mod barrier;
mod others;

use crate::abi;
use crate::block::MOST_THREADS;
use crate::check::{self, Checking};
use crate::error::{Error, Result};
use crate::fault;
use crate::interruption::{self, Watched, this_thread};
use crate::library::{Code, Library, Parameter};
use crate::worker;
use barrier::GridBarrier;
use others::Others;
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
    /// True to run each thread as a whole, on a fibre if it waits, also where a kernel has a form as loops
    /// between barriers.
    pub fibers: bool,
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

    /// True if the kernel has a second form: loops over the threads of a block between its barriers.
    pub fn has_regions(&self) -> bool {
        self.code.regions.is_some()
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
        // SAFETY: the caller's promise.
        unsafe { self.launch_unless(shape, schedule, arguments, None, pool, None) }
    }

    /// Runs the kernel, as [`Kernel::launch`] does, and ends it if the program wants that.
    ///
    /// Every so often `is_interrupted` is called, on the calling thread, while the kernel runs there or on others,
    /// be it in a loop without an end. It may take as long as it wants; launches in it fail. When it
    /// returns true the blocks that run are given up, those that have not begun do not run, and the launch
    /// fails.
    ///
    /// # Errors
    /// As [`Kernel::launch`]; `Kernel` of the kind `Interrupted` if it was interrupted.
    ///
    /// # Safety
    /// As [`Kernel::launch`]. The kernel may end anywhere: it shares no invariants with the program.
    pub unsafe fn launch_interruptibly(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        interruption::listen();
        let _watched = Watched::new();
        // SAFETY: the caller's promise.
        unsafe { self.launch_unless(shape, schedule, arguments, None, pool, Some(is_interrupted)) }
    }

    /// As [`Kernel::launch_interruptibly`], on the calling thread alone, and looks for faults meanwhile: for a
    /// kernel of a library that was compiled with [`Language::checked`](crate::Language::checked).
    ///
    /// # Errors
    /// Those of [`Kernel::launch`]; `Kernel` for the first fault that is found, which ends the launch; `NotAUnit` for
    /// a library without checks.
    ///
    /// # Safety
    /// As for [`Kernel::launch_interruptibly`], save that the kernel may try accesses that are looked for.
    pub unsafe fn launch_checked(
        &self,
        shape: &Shape,
        checking: &Checking<'_>,
        arguments: &[*mut c_void],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(unit) = self.library.checked() else {
            let what = format!("kernel {} is compiled without checks", self.name);
            return Err(Error::NotAUnit(what));
        };
        let values = arguments.iter().zip(&self.code.parameters);
        let mut ranges: Vec<Range<usize>> =
            values.map(|(&at, it)| at as usize..at as usize + it.bytes).collect();
        let pointers = arguments.as_ptr_range();
        ranges.push(pointers.start as usize..pointers.end as usize);
        let check = check::Launch::new(*checking, unit, &self.library, ranges);
        interruption::listen();
        let _watched = Watched::new();
        let (schedule, check) = (Schedule::default(), Some(&check));
        // SAFETY: the caller's promise.
        unsafe {
            self.launch_unless(shape, &schedule, arguments, check, &|| None, Some(is_interrupted))
        }
    }

    /// # Safety
    /// As [`Kernel::launch`].
    unsafe fn launch_unless(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        check: Option<&check::Launch<'_>>,
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
        is_interrupted: Option<&dyn Fn() -> bool>,
    ) -> Result<()> {
        fault::watch();
        let [x, y, z] = shape.grid.map(u64::from);
        let total = x * y * z;
        let grid = Grid {
            run: self.code.run,
            regions: self.code.regions.filter(|_| !schedule.fibers),
            launch: launch_of(shape, arguments),
            check,
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
            is_interrupted,
            launcher: this_thread(),
            others: Mutex::default(),
            left: Condvar::new(),
        };
        match (shape.cooperative, check) {
            (true, _) => grid.run_together(total),
            (false, None) => grid.run_all(pool),
            (false, Some(_)) => grid.work(0..total),
        }
        let failure = grid.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}

fn launch_of(shape: &Shape, arguments: &[*mut c_void]) -> abi::Launch {
    let index = |[x, y, z]: [u32; 3]| abi::Index { x, y, z };
    abi::Launch {
        grid: index(shape.grid),
        block: index(shape.block),
        arguments: arguments.as_ptr(),
    }
}

/// A launch that runs.
pub(crate) struct Grid<'a> {
    pub(crate) run: abi::Run,
    pub(crate) regions: Option<abi::RunRegions>,
    pub(crate) launch: abi::Launch,
    pub(crate) check: Option<&'a check::Launch<'a>>,
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
    /// For the thread that launches only.
    is_interrupted: Option<&'a dyn Fn() -> bool>,
    launcher: libc::pthread_t,
    others: Mutex<Others>,
    /// Told when another thread has run all its blocks.
    left: Condvar,
}

// SAFETY: the arguments that the launch points to are only read; the function is called by the thread
// that launches only.
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

    /// True if the calling thread is to give up its block: the program may say so here.
    pub(crate) fn is_to_end(&self) -> bool {
        self.is_stopped()
            || (this_thread() == self.launcher && self.is_interrupted.is_some_and(|it| it()))
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
        match pool {
            None => self.work(0..0),
            Some(pool) => pool.in_place_scope(|scope| {
                for _ in 1..threads.min(left) {
                    self.others().count += 1;
                    scope.spawn(|_| self.work_beside(0..0));
                }
                self.work(0..0);
                self.wait_for_others();
            }),
        }
    }

    /// Runs each block on a thread of its own.
    fn run_together(&self, total: u64) {
        std::thread::scope(|scope| {
            for block in 1..total {
                self.others().count += 1;
                let started = std::thread::Builder::new()
                    .name("pygpu block".to_owned())
                    .spawn_scoped(scope, move || self.work_beside(block..block + 1));
                if let Err(error) = started {
                    self.leave();
                    self.stop(Error::System(format!(
                        "no thread for block {block} of {total} of a cooperative launch: {error}"
                    )));
                    break;
                }
            }
            if !self.is_stopped() {
                self.work(0..1);
            }
            self.wait_for_others();
        });
    }
}
