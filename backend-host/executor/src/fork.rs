//! Support for forked children, which do not have their parent's threads or the locks that those held.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Functions that are called at a fork. In the child, only the calling thread exists.
pub(crate) struct Handlers {
    are_known: AtomicBool,
    before: Option<unsafe extern "C" fn()>,
    in_parent: Option<unsafe extern "C" fn()>,
    in_child: Option<unsafe extern "C" fn()>,
}

impl Handlers {
    /// # Safety
    /// Locks that `before` takes are released by the other two functions on the same thread, each in its
    /// process. In the child, the function otherwise only writes atomic variables.
    pub(crate) const unsafe fn new(
        before: Option<unsafe extern "C" fn()>,
        in_parent: Option<unsafe extern "C" fn()>,
        in_child: unsafe extern "C" fn(),
    ) -> Handlers {
        Handlers { are_known: AtomicBool::new(false), before, in_parent, in_child: Some(in_child) }
    }

    /// Registers the functions for all following forks.
    pub(crate) fn watch(&'static self) {
        if self.are_known.load(Ordering::Relaxed) || self.are_known.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: the promise made to `new`.
        unsafe { libc::pthread_atfork(self.before, self.in_parent, self.in_child) };
    }
}

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: it only writes an atomic variable.
static COUNT: Handlers = unsafe { Handlers::new(None, None, count) };

/// Returns the number of forks between this process and the one that first ran kernels.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value per process. A forked child creates its own, regardless of how its parent's threads were using the
/// parent's value. It is never freed.
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
            // SAFETY: stored values are never freed.
            if let Some((of, value)) = unsafe { known.as_ref() }
                && *of == generation()
            {
                return value;
            }
            let new = Box::into_raw(Box::new((generation(), T::default())));
            let stored =
                self.current.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
            if stored.is_err() {
                // SAFETY: no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }
}

/// Prevents other threads from forking the process until it is dropped. It protects code that takes locks of
/// the system, such as the loader's, which a forked child would find locked.
///
/// A fork waits for it, but not forever: before glibc 2.36, libraries cannot be closed while the fork
/// handlers run.
pub(crate) struct NoFork {
    generation: u64,
}

/// The number of threads that prevent others from forking, with the generation of the process in the upper
/// half. A signal handler may fork between any two instructions, so a guard that is dropped in the child may
/// have been created in the parent.
static KEEPING: AtomicU64 = AtomicU64::new(0);
const A_GENERATION: u64 = 1 << 32;
const COUNT_OF_THREADS: u64 = A_GENERATION - 1;
/// The number of threads that are forking.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// Longer than it takes to open libraries.
const MOST_WAITED: Duration = Duration::from_secs(1);

impl NoFork {
    pub(crate) fn begin() -> NoFork {
        WAITING.watch();
        loop {
            // If one of two threads forks, at least one of them sees the other.
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
        // In a child, guards from the parent do not count.
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

// SAFETY: they only write atomic variables.
static WAITING: Handlers =
    unsafe { Handlers::new(Some(wait_for_those), Some(has_forked), is_alone) };

#[cfg(test)]
mod tests {
    use super::*;

    /// A guard that was created in the parent and dropped in the child does not release a guard of the child.
    /// The fork waits for the guard of its own thread until the time limit.
    #[test]
    fn a_child_is_kept_from_forking_by_nobody_of_its_parent() {
        let held = NoFork::begin();
        // SAFETY: the child writes atomic variables, forks and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let began = NoFork::begin();
            drop(held);
            let mine = KEEPING.load(Ordering::SeqCst) & COUNT_OF_THREADS;
            drop(began);
            let none = KEEPING.load(Ordering::SeqCst) & COUNT_OF_THREADS;
            // SAFETY: it exits without running code of the test runner.
            unsafe { libc::_exit(i32::from((mine, none) != (1, 0))) };
        }
        drop(held);
        let mut status = -1;
        // SAFETY: a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
