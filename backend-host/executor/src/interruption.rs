//! Launches that the program may end while their kernels run.
//!
//! A kernel is left where it is: a thread of this module sends a signal to the thread that launched it, every
//! so often; the handler switches from the kernel to where the launch was begun, on the stack of that,
//! which asks the program; and the kernel goes on, or is given up. That happens in the unit's own code
//! only, which holds no lock of the system; elsewhere it waits for the next barrier or signal.

use crate::fault::{Interrupted, registered_worker};
use crate::fork::{self, OfProcess};
use crate::worker::{Worker, ask};
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// The time between two questions.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);
/// The time behind which a thread is asked again that ran code of others: a kernel that computes sines is in the
/// mathematics library most of the time.
pub(crate) const AGAIN: Duration = Duration::from_millis(1);
/// Without launches for so many periods, nobody looks every period.
const QUIET: u32 = 20;
/// A signal that others use little, and that nobody has to handle.
const SIGNAL: c_int = libc::SIGURG;

/// A launch that may be asked about, until this is dropped.
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
    /// Threads that launch, and the launches' numbers.
    launches: Vec<(libc::pthread_t, u64)>,
    /// Launches so far.
    count: u64,
    has_watcher: bool,
    sleeps: bool,
}

impl Watched {
    /// Has the calling thread asked about the launch that it begins.
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
        // In a forked child a thread of the parent may have had the lock.
        if self.generation == fork::generation() {
            self.watch.lock().launches.retain(|(_, number)| *number != self.number);
        }
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does that sends the signals.
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

/// True if a kernel ran code of others when it was to be asked.
static MISSED: AtomicBool = AtomicBool::new(false);

/// A forked child has no launches, and no thread that looks at them.
static WATCH: OfProcess<Watch> = OfProcess::new();

pub(crate) fn this_thread() -> libc::pthread_t {
    // SAFETY: the call has no preconditions.
    unsafe { libc::pthread_self() }
}

/// Has a thread of this process asked. The caller knows that it has not ended.
pub(crate) fn signal(thread: libc::pthread_t) {
    // SAFETY: the thread has not ended, says the caller.
    unsafe { libc::pthread_kill(thread, SIGNAL) };
}

/// The handler that was there before, which gets the signals of others.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// Makes sure that the signal's handler is there.
pub(crate) fn listen() {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: the structures are plain data. The handler may be interrupted by its own signal: it runs
    // on the stack that it has interrupted, and lasts as long as the program takes to answer.
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
    // SAFETY: the system passes valid structures; a worker lives as long as its thread, which is here.
    unsafe {
        if (*info).si_code != libc::SI_TKILL {
            return others(signal, info, context);
        }
        let Some(worker) = registered_worker() else { return };
        match Interrupted::of(worker, context.cast()) {
            Interrupted::Unit => {
                (*worker).in_kernel.store(false, Ordering::Relaxed);
                ask(worker);
                (*worker).in_kernel.store(true, Ordering::Relaxed);
            }
            Interrupted::Elsewhere => {
                Worker::ask_later(worker);
                if (*worker).in_kernel.load(Ordering::Relaxed) {
                    MISSED.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// A signal that was not sent by this module.
fn others(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = BEFORE.load(Ordering::Acquire);
    if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        // SAFETY: the address is that of a handler, which takes one argument or these three.
        unsafe {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                mem::transmute(handler);
            handler(signal, info, context);
        }
    }
}
