//! Faults of kernels: a signal handler ends the launch instead of the process.
//!
//! The handler is restricted to async-signal-safe operations. It looks up the thread in a lock-free table, records
//! the fault, and lets the thread resume at [`leave`], on the stack from which it had started the block.
//! Signals in other code are passed on to the previously installed handlers.

use crate::context::leave;
use crate::division;
use crate::error::FailureKind;
use crate::fork::{Handlers, OfProcess};
use crate::stack::{self, Stacks};
use std::ffi::{c_int, c_void};
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

const SIGNALS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

/// The maximum number of protected threads that run kernels. Further threads are not protected.
const MOST_WORKERS: usize = 4096;

/// The part of a worker that signal handlers use.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// True while code of a kernel runs, and not the executor.
    pub(crate) in_kernel: AtomicBool,
    /// The context of the thread that runs the fibres.
    pub(crate) home: AtomicPtr<u8>,
    /// The addresses of the code of the running kernel's unit.
    pub(crate) code: Range<usize>,
    pub(crate) fault: Fault,
    /// True if the program has to be asked to confirm that the launch continues.
    pub(crate) to_ask: AtomicBool,
    /// True if the last switch home was to ask. `asking` is the context in which the kernel then continues.
    pub(crate) asks: bool,
    pub(crate) asking: AtomicPtr<u8>,
}

/// A fault that a signal handler has recorded.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    pub(crate) signal: AtomicU32,
    pub(crate) code: AtomicU32,
    pub(crate) address: AtomicUsize,
    pub(crate) instruction: AtomicUsize,
}

struct Slot {
    /// The `pthread_self` of the thread; 0 for a free slot.
    thread: AtomicUsize,
    signals: AtomicPtr<Signals>,
}

static SLOTS: [Slot; MOST_WORKERS] =
    [const { Slot { thread: AtomicUsize::new(0), signals: AtomicPtr::new(ptr::null_mut()) } };
        MOST_WORKERS];
/// The number of slots that have ever been used. The handler searches only these.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The size of the handler's stack in bytes. The fibre's own stack may have overflowed.
const STACK: usize = 64 << 10;

fn this_thread() -> usize {
    // SAFETY: the call does not have any preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// The slot of a worker in the handler's table, and the signal stack of its thread.
#[derive(Debug)]
pub(crate) struct Registration {
    slot: Option<usize>,
    stack: *mut c_void,
}

impl Registration {
    pub(crate) fn none() -> Registration {
        Registration { slot: None, stack: ptr::null_mut() }
    }

    /// Registers the calling thread.
    pub(crate) fn new(signals: *mut Signals) -> Registration {
        FORKS.watch();
        let thread = this_thread();
        let slot = SLOTS.iter().position(|slot| {
            slot.thread.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        if let Some(slot) = slot {
            SLOTS[slot].signals.store(signals, Ordering::Release);
            USED.fetch_max(slot + 1, Ordering::AcqRel);
        }
        Registration { slot, stack: alternate_stack() }
    }
}

/// Sets up an alternate signal stack for the thread, unless it has one. Returns the stack's address if the stack
/// is new.
fn alternate_stack() -> *mut c_void {
    // SAFETY: the structures are plain data; the mapping is new.
    unsafe {
        let mut old: libc::stack_t = mem::zeroed();
        libc::sigaltstack(ptr::null(), &mut old);
        if old.ss_flags & libc::SS_DISABLE == 0 && old.ss_size >= STACK / 4 {
            return ptr::null_mut();
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let stack =
            libc::mmap(ptr::null_mut(), STACK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if stack == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let new = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: STACK };
        libc::sigaltstack(&new, ptr::null_mut());
        stack
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            SLOTS[slot].signals.store(ptr::null_mut(), Ordering::Release);
            SLOTS[slot].thread.store(0, Ordering::Release);
        }
        if self.stack.is_null() {
            return;
        }
        // SAFETY: the stack belongs to this object, and is unmapped only if no handler can run on it.
        unsafe {
            let mut old: libc::stack_t = mem::zeroed();
            libc::sigaltstack(ptr::null(), &mut old);
            if old.ss_sp == self.stack {
                let mut none: libc::stack_t = mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                none.ss_size = STACK;
                libc::sigaltstack(&none, ptr::null_mut());
            }
            libc::munmap(self.stack, STACK);
        }
    }
}

/// The previously installed handlers, in the order of [`SIGNALS`]. They are written before this module's
/// handler is installed, so that it can read them.
static BEFORE: [Before; SIGNALS.len()] = [const { Before::new() }; SIGNALS.len()];

struct Before {
    handler: AtomicUsize,
    flags: AtomicUsize,
}

impl Before {
    const fn new() -> Before {
        Before { handler: AtomicUsize::new(libc::SIG_DFL), flags: AtomicUsize::new(0) }
    }
}

static ADVICE: OnceLock<fn() -> &'static str> = OnceLock::new();

/// Sets the text that the process writes to standard error when a fault outside of kernels ends it, after it
/// has run some kernels. An empty text writes nothing. A signal handler calls `advice`, which must therefore be
/// async-signal-safe. Only the first call of `set_advice` has an effect.
pub fn set_advice(advice: fn() -> &'static str) {
    let _ = ADVICE.set(advice);
}

/// Writes the text of [`set_advice`], before the default action of a fatal signal.
fn advise() {
    let text = ADVICE.get().map_or("", |advice| advice());
    // SAFETY: the text has this length; signal handlers may call write.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Makes sure that faults reach this handler first, since other parts of the process also install handlers.
pub(crate) fn watch() {
    static INSTALLING: OfProcess<Mutex<()>> = OfProcess::new();
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    let is_ours = |signal: c_int| {
        // SAFETY: the structure is plain data, which the call fills.
        unsafe {
            let mut now: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut now) == 0
                && now.sa_sigaction == on_signal as *const () as usize
        }
    };
    // One signal represents all: code that installs fault handlers always installs this one.
    if INSTALLED.load(Ordering::Acquire) && is_ours(libc::SIGSEGV) {
        return;
    }
    let _installing = INSTALLING.get().lock().unwrap_or_else(PoisonError::into_inner);
    for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
        if is_ours(signal) {
            continue;
        }
        // SAFETY: the structures are plain data; the handler does only what handlers may do.
        unsafe {
            let mut old: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut old);
            before.handler.store(old.sa_sigaction, Ordering::Release);
            before.flags.store(old.sa_flags as usize, Ordering::Release);
            let mut new: libc::sigaction = mem::zeroed();
            new.sa_sigaction = on_signal as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (old.sa_flags & libc::SA_RESTART);
            libc::sigemptyset(&mut new.sa_mask);
            libc::sigaction(signal, &new, ptr::null_mut());
        }
    }
    INSTALLED.store(true, Ordering::Release);
}

/// Keeps only the calling thread in the table. A forked child does not have other threads, and its new
/// threads may get the same numbers as the parent's.
extern "C" fn forget_other_threads() {
    let thread = this_thread();
    for slot in &SLOTS[..USED.load(Ordering::Acquire).min(MOST_WORKERS)] {
        if slot.thread.load(Ordering::Acquire) != thread {
            slot.signals.store(ptr::null_mut(), Ordering::Release);
            slot.thread.store(0, Ordering::Release);
        }
    }
}

// SAFETY: it only writes atomic variables.
static FORKS: Handlers = unsafe { Handlers::new(None, None, forget_other_threads) };

/// Returns the state of the calling thread's worker, if it has one.
pub(crate) fn registered() -> Option<*mut Signals> {
    let thread = this_thread();
    let slots = &SLOTS[..USED.load(Ordering::Acquire).min(MOST_WORKERS)];
    let slot = slots.iter().find(|slot| slot.thread.load(Ordering::Acquire) == thread)?;
    let signals = slot.signals.load(Ordering::Acquire);
    (!signals.is_null()).then_some(signals)
}

/// Returns true if a signal has interrupted the code of a kernel's unit, and not the executor, or a library called by
/// a kernel or by another part of the program.
///
/// # Safety
/// The state belongs to the calling thread, and the context to a signal handler.
pub(crate) unsafe fn is_in_unit(signals: *mut Signals, context: *const libc::ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*signals).in_kernel.load(Ordering::Relaxed)
            && (*signals).code.contains(&instruction(context))
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes valid structures.
    let code = unsafe { (*info).si_code };
    // A signal sent by a process is not a fault, except if `abort` or `raise` sent it to their own thread.
    // SAFETY: a signal that was sent to a thread records its sender.
    let is_raised = || unsafe { code == libc::SI_TKILL && (*info).si_pid() == libc::getpid() };
    // SAFETY: a registered worker lives as long as its thread, which is the calling one.
    let is_in_kernel = |it: &*mut Signals| unsafe { (**it).in_kernel.load(Ordering::Relaxed) };
    if (code > 0 || is_raised())
        && let Some(signals) = registered().filter(is_in_kernel)
    {
        // SAFETY: the context belongs to this handler.
        if signal == libc::SIGFPE && code > 0 && unsafe { division::divide(context.cast()) } {
            return;
        }
        // SAFETY: the state belongs to this thread, and code of a kernel was interrupted.
        unsafe {
            (*signals).in_kernel.store(false, Ordering::Relaxed);
            let fault = &(*signals).fault;
            fault.address.store((*info).si_addr() as usize, Ordering::Relaxed);
            fault.code.store(code as u32, Ordering::Relaxed);
            fault.instruction.store(instruction(context.cast()), Ordering::Relaxed);
            fault.signal.store(signal as u32, Ordering::Relaxed);
            go_home(context.cast(), (*signals).home.load(Ordering::Relaxed));
        }
        return;
    }
    let Some(index) = SIGNALS.iter().position(|it| *it == signal) else { return };
    // A damaged heap leads to an invalid address, or to an abort of the allocator.
    let is_fault =
        (code > 0 || is_raised()) && matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT);
    let before = &BEFORE[index];
    let handler = before.handler.load(Ordering::Acquire);
    let flags = before.flags.load(Ordering::Acquire) as c_int;
    match handler {
        libc::SIG_IGN if code <= 0 => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // Act as if this handler were not installed: the fault recurs, or the signal is sent again.
            // SAFETY: the structure is plain data, and signal handlers may make these calls.
            unsafe {
                let mut default: libc::sigaction = mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, ptr::null_mut());
                if is_fault {
                    advise();
                }
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        _ if flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the address is a handler with this signature.
            unsafe {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    mem::transmute(handler);
                handler(signal, info, context);
            }
        }
        _ => {
            // SAFETY: the address is a handler with this signature.
            unsafe {
                let handler: extern "C" fn(c_int) = mem::transmute(handler);
                handler(signal);
            }
            // Python's `faulthandler` prints the state of the program, and restores the default action.
            // SAFETY: the structure is plain data, which the call fills.
            let is_left = unsafe {
                let mut now: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, ptr::null(), &mut now) == 0
                    && now.sa_sigaction == libc::SIG_DFL
            };
            if is_fault && is_left {
                advise();
            }
        }
    }
}

/// Returns the address of the interrupted instruction.
///
/// # Safety
/// The context belongs to a signal handler.
unsafe fn instruction(context: *const libc::ucontext_t) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        return (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
        #[cfg(target_arch = "aarch64")]
        return (*context).uc_mcontext.pc as usize;
    }
}

/// Makes the interrupted thread resume at `home`.
///
/// # Safety
/// The context belongs to a signal handler that interrupted a fibre started from `home`.
unsafe fn go_home(context: *mut libc::ucontext_t, home: *mut u8) {
    // SAFETY: the caller's promise. `leave` takes its argument in a register, and does not need a stack.
    unsafe {
        let registers = &mut (*context).uc_mcontext;
        #[cfg(target_arch = "x86_64")]
        {
            registers.gregs[libc::REG_RIP as usize] = leave as *const () as i64;
            registers.gregs[libc::REG_RDI as usize] = home as i64;
        }
        #[cfg(target_arch = "aarch64")]
        {
            registers.pc = leave as *const () as u64;
            registers.regs[0] = home as u64;
        }
    }
}

/// Describes a fault of a thread whose stack is one of `stacks`.
pub(crate) fn describe(fault: &Fault, stacks: &Stacks) -> (FailureKind, String) {
    let address = fault.address.load(Ordering::Relaxed);
    let is_raised = (fault.code.load(Ordering::Relaxed) as c_int) <= 0;
    match fault.signal.load(Ordering::Relaxed) as c_int {
        signal if is_raised && signal != libc::SIGABRT => {
            (FailureKind::Trap, format!("signal {signal}, which the kernel has raised"))
        }
        libc::SIGSEGV if stacks.range_of(address).is_some() => {
            let kib = stack::USABLE >> 10;
            let what =
                format!("local variables and calls that need more than a stack of {kib} KiB");
            (FailureKind::Address, what)
        }
        libc::SIGSEGV => {
            let what =
                format!("an access to address {address:#x}, where there is no memory for it");
            (FailureKind::Address, what)
        }
        libc::SIGBUS => {
            (FailureKind::Address, format!("a misaligned or missing address {address:#x}"))
        }
        libc::SIGFPE => (FailureKind::Trap, "an arithmetic exception".to_owned()),
        libc::SIGILL | libc::SIGTRAP => (FailureKind::Trap, "a trap".to_owned()),
        libc::SIGABRT => {
            let what = "the end of the process, by abort, std::terminate or an exception";
            (FailureKind::Trap, what.to_owned())
        }
        signal => (FailureKind::Trap, format!("signal {signal}")),
    }
}
