//! What objects must know of the process they live in: whether it exits, and whether it is a
//! forked child of the one that made them.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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
