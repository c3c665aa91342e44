//! A running launch: the blocks that threads take from it, and the barrier of all blocks.

use crate::abi;
use crate::check;
use crate::error::{Error, Failure, FailureKind, Result};
use crate::fault;
use crate::fork;
use crate::interruption::{PERIOD, this_thread};
use crate::launch::{Schedule, Shape};
use crate::library::Library;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
pub(crate) enum What<'a> {
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
    pub(crate) total: u64,
    /// The first block that has not been taken.
    pub(crate) next: AtomicU64,
    /// The number of blocks to take in one step.
    pub(crate) chunk: AtomicU64,
    pub(crate) is_stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
    pub(crate) barrier: Option<GridBarrier>,
    /// Called only by the launching thread.
    pub(crate) is_interrupted: Option<&'a dyn Fn() -> bool>,
    launcher: libc::pthread_t,
    pub(crate) spread: Spread,
}

// SAFETY: the arguments that the launch points to are only read; only the launching thread calls the
// function.
unsafe impl Sync for Grid<'_> {}

impl<'a> Grid<'a> {
    pub(crate) fn new(
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

    pub(crate) fn result(self) -> Result<()> {
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
        self.launch.block.count()
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

    pub(crate) fn stop(&self, error: Error) {
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

    /// Returns the failure of a launch that is lost in a forked child.
    fn lost(&self) -> Result<()> {
        Err(interrupted(format!(
            "{} was ended: a handler of a signal has forked, and threads of the parent process run its blocks there",
            self.what()
        )))
    }
}

/// The barrier of a grid.
#[derive(Debug)]
pub(crate) struct GridBarrier {
    state: Mutex<GridState>,
    changed: Condvar,
}

#[derive(Debug)]
struct GridState {
    /// The number of blocks that have not ended.
    blocks: u64,
    arrived: u64,
    /// The number of times that all blocks have arrived.
    round: u64,
}

impl GridBarrier {
    fn new(blocks: u64) -> GridBarrier {
        let state = Mutex::new(GridState { blocks, arrived: 0, round: 0 });
        GridBarrier { state, changed: Condvar::new() }
    }

    /// Records that a block has arrived. Returns the round whose end it waits for.
    pub(crate) fn arrive(&self) -> u64 {
        let mut state = self.lock();
        state.arrived += 1;
        let round = state.round;
        self.release_if_complete(&mut state);
        round
    }

    /// Waits for the other blocks. Returns false if the launch has failed meanwhile, and `None` after a
    /// while, so that the program can end the launch.
    pub(crate) fn wait(&self, grid: &Grid<'_>, round: u64) -> Option<bool> {
        let mut state = self.lock();
        while state.round == round && !grid.is_stopped() {
            let waited = self.changed.wait_timeout(state, PERIOD);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if waited.timed_out() && grid.is_interrupted.is_some() {
                return None;
            }
        }
        Some(state.round != round)
    }

    fn lock(&self) -> MutexGuard<'_, GridState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a block has ended, so that no other block waits for it.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
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
        // Notify under the lock. Otherwise a thread could check, miss the notification, and then wait.
        let _state = self.lock();
        self.changed.notify_all();
    }
}

/// Records if other threads run blocks of a launch, and in which process.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    is_spread: AtomicBool,
    process: AtomicU32,
}

impl Spread {
    pub(crate) fn begin(&self) {
        self.process.store(fork::generation(), Ordering::Relaxed);
        self.is_spread.store(true, Ordering::Relaxed);
    }

    /// Returns true in a child that a signal handler has forked from the process with these threads. They run
    /// only in the parent, and the locks that they held stay locked.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_spread.load(Ordering::Relaxed)
            && self.process.load(Ordering::Relaxed) != fork::generation()
    }
}

/// Creates the failure of a launch that the program has ended.
pub(crate) fn interrupted(message: String) -> Error {
    Error::Kernel(Failure { kind: FailureKind::Interrupted, message })
}
