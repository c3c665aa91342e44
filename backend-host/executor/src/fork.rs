//! What a forked child has of its parent: neither its threads nor what they held.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Functions that forks call, those in the child with nothing but the calling thread.
pub(crate) struct Handlers {
    are_known: AtomicBool,
    before: Option<unsafe extern "C" fn()>,
    in_parent: Option<unsafe extern "C" fn()>,
    in_child: Option<unsafe extern "C" fn()>,
}

impl Handlers {
    /// # Safety
    /// What `before` locks the others unlock on the same thread, each in its process; in the child they
    /// write atomic variables besides, and nothing else.
    pub(crate) const unsafe fn new(
        before: Option<unsafe extern "C" fn()>,
        in_parent: Option<unsafe extern "C" fn()>,
        in_child: unsafe extern "C" fn(),
    ) -> Handlers {
        Handlers { are_known: AtomicBool::new(false), before, in_parent, in_child: Some(in_child) }
    }

    /// Calls them in forks from now on.
    pub(crate) fn watch(&'static self) {
        if self.are_known.load(Ordering::Relaxed) || self.are_known.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: what `new` was promised.
        unsafe { libc::pthread_atfork(self.before, self.in_parent, self.in_child) };
    }
}

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: an atomic variable is written.
static COUNT: Handlers = unsafe { Handlers::new(None, None, count) };

/// How many forks lie between this process and the one that first ran kernels.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value of each process: a forked child makes its own, whatever threads of its parent were doing with
/// the parent's. It is never freed.
pub(crate) struct OfProcess<T: 'static> {
    current: AtomicPtr<(u32, T)>,
}

impl<T: Default> OfProcess<T> {
    pub(crate) const fn new() -> OfProcess<T> {
        OfProcess { current: AtomicPtr::new(ptr::null_mut()) }
    }

    pub(crate) fn get(&self) -> &'static T {
        COUNT.watch();
        loop {
            let known = self.current.load(Ordering::Acquire);
            // SAFETY: what is stored is never freed.
            if let Some((of, value)) = unsafe { known.as_ref() }
                && *of == generation()
            {
                return value;
            }
            let new = Box::into_raw(Box::new((generation(), T::default())));
            let stored =
                self.current.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
            if stored.is_err() {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }
}

/// Keeps other threads from forking the process until it is dropped: around what takes locks of the system
/// that a forked child would find taken, such as those of its loader.
///
/// A fork waits for that, though not for ever: systems before glibc 2.36 let no library be closed while they
/// call what forks call.
pub(crate) struct NoFork {
    generation: u64,
}

/// How many threads keep others from forking, below the generation of the process that they are in: a
/// handler of a signal may fork between any two instructions, and what the child then ends has begun in the
/// parent.
static KEEPING: AtomicU64 = AtomicU64::new(0);
const A_GENERATION: u64 = 1 << 32;
const COUNT_OF_THREADS: u64 = A_GENERATION - 1;
/// The threads that fork.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// Longer than libraries take to be opened.
const MOST_WAITED: Duration = Duration::from_secs(1);

impl NoFork {
    pub(crate) fn begin() -> NoFork {
        WAITING.watch();
        loop {
            // Of two threads, one of which forks, one sees the other.
            let keeping =
                NoFork { generation: KEEPING.fetch_add(1, Ordering::SeqCst) / A_GENERATION };
            if FORKING.load(Ordering::SeqCst) == 0 {
                return keeping;
            }
            drop(keeping);
            std::thread::yield_now();
        }
    }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        // In a child nobody keeps it from forking who began in its parent.
        let _ = KEEPING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |keeping| {
            (keeping / A_GENERATION == self.generation).then(|| keeping - 1)
        });
    }
}

extern "C" fn wait_for_those() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    while KEEPING.load(Ordering::SeqCst) & COUNT_OF_THREADS > 0 && start.elapsed() < MOST_WAITED {
        std::thread::yield_now();
    }
}

extern "C" fn has_forked() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn is_alone() {
    FORKING.store(0, Ordering::SeqCst);
    let generation = KEEPING.load(Ordering::SeqCst) / A_GENERATION;
    KEEPING.store((generation + 1) * A_GENERATION, Ordering::SeqCst);
}

// SAFETY: atomic variables are written.
static WAITING: Handlers =
    unsafe { Handlers::new(Some(wait_for_those), Some(has_forked), is_alone) };

#[cfg(test)]
mod tests {
    use super::*;

    /// What began in the parent and ends in the child takes nothing from what the child has begun. The fork
    /// waits for its own thread, for as long as it waits at most.
    #[test]
    fn a_child_is_kept_from_forking_by_nobody_of_its_parent() {
        let held = NoFork::begin();
        // SAFETY: the child writes atomic variables, forks and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let began = NoFork::begin();
            drop(held);
            let mine = KEEPING.load(Ordering::SeqCst) & COUNT_OF_THREADS;
            drop(began);
            let none = KEEPING.load(Ordering::SeqCst) & COUNT_OF_THREADS;
            // SAFETY: nothing of the test's runner is run.
            unsafe { libc::_exit(i32::from((mine, none) != (1, 0))) };
        }
        drop(held);
        let mut status = -1;
        // SAFETY: a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
