//! What objects must know of the process they live in: whether it exits, and whether it is a
//! forked child of the one that made them.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

static EXITING: AtomicBool = AtomicBool::new(false);
static GENERATION: AtomicU32 = AtomicU32::new(0);
static REGISTER: Once = Once::new();

/// Starts to watch for exit and fork. Backends call it when they are opened.
pub fn watch() {
    REGISTER.call_once(|| {
        #[cfg(unix)]
        // SAFETY: both handlers only store to an atomic, which is allowed in a forked child
        // and at exit, and they are never unloaded before the process ends.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

#[cfg(unix)]
extern "C" fn at_exit() {
    EXITING.store(true, Ordering::Relaxed);
}

#[cfg(unix)]
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// True once the process runs its exit handlers: nothing may be freed any longer.
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::Relaxed)
}

/// How many forks lie between this process and the one that first opened a backend. An
/// object of another generation belongs to a parent process.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A lock for all threads of a process. In a forked child it is open, whoever held it in the
/// parent: that thread does not exist there.
pub(crate) struct ProcessLock {
    current: AtomicPtr<Generation>,
}

/// Ends the lock when it is dropped.
pub(crate) type ProcessGuard = MutexGuard<'static, ()>;

struct Generation {
    number: u32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Generation {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessLock {
    pub(crate) const fn new() -> ProcessLock {
        ProcessLock { current: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Locks. What the lock protects must be valid after every step: a panic elsewhere spoils
    /// nothing.
    pub(crate) fn lock(&'static self) -> ProcessGuard {
        self.of_this_process().lock()
    }

    /// Waits while `goes_on`. Whoever ends that calls [`ProcessLock::notify`] afterwards.
    pub(crate) fn wait_while(&'static self, goes_on: impl Fn() -> bool) {
        let here = self.of_this_process();
        let mut guard = here.lock();
        while goes_on() {
            guard = here.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets everybody in [`ProcessLock::wait_while`] look again.
    pub(crate) fn notify(&'static self) {
        let here = self.of_this_process();
        // Under the lock, so that nobody looks, misses this, and then waits.
        let _guard = here.lock();
        here.changed.notify_all();
    }

    fn of_this_process(&self) -> &'static Generation {
        let number = generation();
        loop {
            let known = self.current.load(Ordering::Acquire);
            // SAFETY: what is stored here is leaked, never changed and never freed.
            if let Some(known) = unsafe { known.as_ref() }
                && known.number == number
            {
                return known;
            }
            // One for each generation, which lives as long as the process.
            let made = Box::into_raw(Box::new(Generation {
                number,
                lock: Mutex::new(()),
                changed: Condvar::new(),
            }));
            let stored =
                self.current.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire);
            if stored.is_err() {
                // SAFETY: made above, and known to nobody else.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}
