//! Launches that the program may end while their kernels run.
//!
//! A thread of this module regularly sends a signal to the launching thread. The signal's handler switches
//! from the kernel to the stack on which the launch began, and there asks the program. The kernel then
//! continues, or is abandoned. This happens only in the unit's own code, which holds no lock of the system;
//! elsewhere it is postponed to the next barrier or signal.

use crate::context::switch;
use crate::fault::{Signals, is_in_unit, registered};
use crate::fork::{self, OfProcess};
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// The interval between two checks.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);
/// The interval after which a thread that was in library code is checked again. A kernel that computes sines
/// is in the math library most of the time.
pub(crate) const AGAIN: Duration = Duration::from_millis(1);
/// The number of intervals without launches after which the thread sleeps.
const QUIET: u32 = 20;
/// A signal that is rarely used, and is ignored by default.
const SIGNAL: c_int = libc::SIGURG;

/// A launch that may be interrupted, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: &'static Watch,
    number: u64,
    generation: u32,
}

/// The launches of the process.
#[derive(Debug, Default)]
struct Watch {
    state: Mutex<State>,
    wakes: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The launching threads, and the numbers of their launches.
    launches: Vec<(libc::pthread_t, u64)>,
    /// The number of launches so far.
    count: u64,
    has_watcher: bool,
    sleeps: bool,
}

impl Watched {
    /// Registers the launch that the calling thread begins.
    pub(crate) fn new() -> Watched {
        let (generation, watch) = (fork::generation(), WATCH.get());
        let mut state = watch.lock();
        state.count += 1;
        let number = state.count;
        state.launches.push((this_thread(), number));
        if !state.has_watcher {
            let started = Builder::new().name("pygpu watch".to_owned()).spawn(|| watch.run());
            match started {
                Ok(_) => state.has_watcher = true,
                Err(error) => log::warn!("kernels cannot be interrupted: no thread: {error}"),
            }
        }
        if state.sleeps {
            watch.wakes.notify_one();
        }
        Watched { watch, number, generation }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may have held the lock.
        if self.generation == fork::generation() {
            self.watch.lock().launches.retain(|(_, number)| *number != self.number);
        }
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the signals; this runs on the module's thread.
    fn run(&self) {
        let (mut seen, mut quiet) = (0, 0);
        loop {
            let pause = if MISSED.swap(false, Ordering::Relaxed) { AGAIN } else { PERIOD };
            std::thread::sleep(pause);
            let mut state = self.lock();
            for (thread, number) in &state.launches {
                if *number <= seen {
                    signal(*thread);
                }
            }
            quiet = if state.count == seen && state.launches.is_empty() { quiet + 1 } else { 0 };
            seen = state.count;
            if quiet > QUIET {
                state.sleeps = true;
                while state.count == seen {
                    state = self.wakes.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.sleeps = false;
                quiet = 0;
            }
        }
    }
}

/// True if a kernel was in library code when it was to be interrupted.
static MISSED: AtomicBool = AtomicBool::new(false);

/// A forked child starts without launches and without a watching thread.
static WATCH: OfProcess<Watch> = OfProcess::new();

pub(crate) fn this_thread() -> libc::pthread_t {
    // SAFETY: the call does not have any preconditions.
    unsafe { libc::pthread_self() }
}

/// Interrupts a thread of this process. The caller knows that the thread has not ended.
pub(crate) fn signal(thread: libc::pthread_t) {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_kill(thread, SIGNAL) };
}

/// The previously installed handler. It gets signals from other senders.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// Makes sure that the signal's handler is installed.
pub(crate) fn listen() {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: the structures are plain data. The handler may be interrupted by its own signal: it runs on the
    // interrupted stack, until the program has answered.
    unsafe {
        let mut new: libc::sigaction = mem::zeroed();
        let mut old: libc::sigaction = mem::zeroed();
        new.sa_sigaction = on_signal as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
        libc::sigemptyset(&mut new.sa_mask);
        libc::sigaction(SIGNAL, ptr::null(), &mut old);
        BEFORE.store(old.sa_sigaction, Ordering::Release);
        libc::sigaction(SIGNAL, &new, ptr::null_mut());
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes valid structures; a worker lives as long as its thread, which is the calling
    // one.
    unsafe {
        if (*info).si_code != libc::SI_TKILL {
            return others(signal, info, context);
        }
        let Some(signals) = registered() else { return };
        if is_in_unit(signals, context.cast()) {
            (*signals).in_kernel.store(false, Ordering::Relaxed);
            ask(signals);
            (*signals).in_kernel.store(true, Ordering::Relaxed);
            return;
        }
        // The thread asks at its next operation.
        (*signals).to_ask.store(true, Ordering::Relaxed);
        if (*signals).in_kernel.load(Ordering::Relaxed) {
            MISSED.store(true, Ordering::Relaxed);
        }
    }
}

/// Asks the program if the launch should continue. Returns if it should.
///
/// # Safety
/// Called on a fibre of the worker with this state, or by a signal handler that has interrupted one.
pub(crate) unsafe fn ask(signals: *mut Signals) {
    // SAFETY: the caller's promise; the worker continues at home, and comes back or abandons the fibre.
    unsafe {
        (*signals).to_ask.store(false, Ordering::Relaxed);
        (*signals).asks = true;
        let home = (*signals).home.load(Ordering::Relaxed);
        switch((*signals).asking.as_ptr(), home, 0);
    }
}

/// Passes on a signal that this module did not send.
fn others(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = BEFORE.load(Ordering::Acquire);
    if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        // SAFETY: the address is a handler, which takes one argument or these three.
        unsafe {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                mem::transmute(handler);
            handler(signal, info, context);
        }
    }
}
