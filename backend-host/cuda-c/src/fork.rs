//! What a forked child has of its parent: neither its threads nor what they held.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

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
