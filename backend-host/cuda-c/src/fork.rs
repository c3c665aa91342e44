//! What a forked child has of its parent: neither its threads nor what they held.

use crate::{check, fault};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Starts to watch for forks.
pub(crate) fn watch() {
    static WATCHES: AtomicBool = AtomicBool::new(false);
    if WATCHES.load(Ordering::Relaxed) || WATCHES.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: what the handlers lock in the parent they unlock on the same thread of both processes; in
    // the child they only write atomic variables besides.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

extern "C" fn before() {
    check::hold_heap();
}

extern "C" fn in_parent() {
    check::let_heap_go();
}

extern "C" fn in_child() {
    check::let_heap_go();
    GENERATION.fetch_add(1, Ordering::Relaxed);
    fault::forget_other_threads();
}

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
        watch();
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
