//! What objects must know of the process they live in: whether it exits, and whether it is a
//! forked child of the one that made them.

use crate::poison::Unpoisoned as _;
use std::marker::PhantomData;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{
    Condvar, Mutex, MutexGuard, Once, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::{fmt, ptr};

static EXITING: AtomicBool = AtomicBool::new(false);
static REGISTER: Once = Once::new();

/// Starts to watch for exit and fork. Backends call it when they are opened.
pub fn watch() {
    REGISTER.call_once(|| {
        #[cfg(unix)]
        // SAFETY: both handlers only store to atomics, which is allowed in a forked child
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
    crate::process::begin_generation();
    crate::submission::forget_threads_of_parent();
}

/// Returns true once the process runs its exit handlers: nothing may be freed any longer.
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::Relaxed)
}

/// Returns false if nothing can be read at an address, so that a handle which a driver would follow there is
/// none. The system reads a word, and tells of a fault as an error; where it may not be asked, true.
pub fn may_be_read(address: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        let Ok(start) = usize::try_from(address) else { return false };
        let mut word = [0_u8; 8];
        let local = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
        let remote =
            libc::iovec { iov_base: ptr::without_provenance_mut(start), iov_len: word.len() };
        // SAFETY: the local range is the array's; the remote one is checked by the system.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        match usize::try_from(read) {
            Ok(read) => read == word.len(),
            Err(_) => std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        address != 0
    }
}

// Values and locks that a forked child has anew.

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Begins another generation: in a forked child, before anything else runs.
#[cfg(unix)]
pub(crate) fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Returns how many forks lie between this process and the one that first opened a backend. An
/// object of another generation belongs to a parent process.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value for each process: in a forked child it is made anew, whatever a thread of the parent
/// was doing with the parent's at the fork. That one is left as it is, neither used nor dropped.
///
/// A value that has to be dropped by the thread that made it cannot be shared so:
///
/// ```compile_fail
/// use gpuarray_hal::process::OfProcess;
/// use std::sync::MutexGuard;
///
/// static SHARED: OfProcess<MutexGuard<'static, u32>> = OfProcess::new();
/// ```
///
/// One that every thread may drop can:
///
/// ```
/// use gpuarray_hal::process::OfProcess;
///
/// static SHARED: OfProcess<Vec<u32>> = OfProcess::new();
/// assert_eq!(SHARED.get(|| vec![1, 2]), &[1, 2]);
/// ```
#[derive(Debug)]
pub struct OfProcess<T> {
    current: AtomicPtr<Generation<T>>,
    /// The last thread that has it drops what another one may have made: it can be shared where a mutex of
    /// such a value can.
    owned: PhantomData<(Box<Generation<T>>, Mutex<T>)>,
}

#[derive(Debug)]
struct Generation<T> {
    number: u32,
    value: T,
}

impl<T> OfProcess<T> {
    /// Returns a value that is made when a process first asks for it.
    pub const fn new() -> OfProcess<T> {
        OfProcess { current: AtomicPtr::new(ptr::null_mut()), owned: PhantomData }
    }

    /// Returns this process's value, which `make` makes if there is none yet: several threads may each make
    /// one, of which one is kept.
    #[inline]
    pub fn get(&self, make: impl Fn() -> T) -> &T {
        let number = generation();
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: what is stored here is never changed, and freed only with this object.
        match unsafe { known.as_ref() } {
            Some(known) if known.number == number => &known.value,
            _ => self.make_anew(known, number, make),
        }
    }

    /// Leaves `known`, that of a parent's process, behind.
    #[cold]
    #[inline(never)]
    fn make_anew(&self, mut known: *mut Generation<T>, number: u32, make: impl Fn() -> T) -> &T {
        loop {
            let made = Box::into_raw(Box::new(Generation { number, value: make() }));
            match self.current.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: as in `get`.
                Ok(_) => return unsafe { &(*made).value },
                Err(other) => known = other,
            }
            // SAFETY: made above, and known to nobody else.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: as in `get`.
            if let Some(known) = unsafe { known.as_ref() }
                && known.number == number
            {
                return &known.value;
            }
        }
    }
}

impl<T> Default for OfProcess<T> {
    fn default() -> Self {
        OfProcess::new()
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        let known = *self.current.get_mut();
        // SAFETY: stored by `get`, and nobody refers to it any longer.
        if unsafe { known.as_ref() }.is_some_and(|known| known.number == generation()) {
            // SAFETY: as above; made by `Box::into_raw`.
            drop(unsafe { Box::from_raw(known) });
        }
    }
}

/// A mutex that a forked child finds open, its contents as `fresh` makes them: the thread that
/// held it in the parent does not exist there, and what it left may be half done.
pub struct ProcessMutex<T> {
    state: OfProcess<Mutex<T>>,
    fresh: fn() -> T,
}

impl<T> ProcessMutex<T> {
    /// Returns a mutex whose contents are made when a process first locks it.
    pub const fn new(fresh: fn() -> T) -> ProcessMutex<T> {
        ProcessMutex { state: OfProcess::new(), fresh }
    }

    /// Locks. What the mutex protects must be valid after every step: a panic elsewhere spoils
    /// nothing.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let mutex = self.state.get(|| Mutex::new((self.fresh)()));
        mutex.lock().unpoisoned()
    }
}

impl<T: Default> Default for ProcessMutex<T> {
    fn default() -> Self {
        ProcessMutex::new(T::default)
    }
}

impl<T: fmt::Debug> fmt::Debug for ProcessMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}

/// Something that several threads do beside each other, and a few only alone. In a forked child
/// nobody does, whoever did in the parent: that thread does not exist there.
pub(crate) struct ProcessRwLock(OfProcess<RwLock<()>>);

impl ProcessRwLock {
    pub(crate) const fn new() -> ProcessRwLock {
        ProcessRwLock(OfProcess::new())
    }

    /// Locks beside others. What the lock protects must be valid after every step: a panic
    /// elsewhere spoils nothing.
    pub(crate) fn read(&'static self) -> RwLockReadGuard<'static, ()> {
        self.0.get(RwLock::default).read().unpoisoned()
    }

    /// Locks beside others if nobody has it alone or waits for that.
    pub(crate) fn try_read(&'static self) -> Option<RwLockReadGuard<'static, ()>> {
        match self.0.get(RwLock::default).try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Locks alone.
    pub(crate) fn write(&'static self) -> RwLockWriteGuard<'static, ()> {
        self.0.get(RwLock::default).write().unpoisoned()
    }
}

/// A condition that threads of a process wait for. In a forked child nobody waits for it, and it is
/// not locked, whoever had it in the parent: that thread does not exist there.
pub(crate) struct ProcessCondition(OfProcess<Shared>);

#[derive(Default)]
struct Shared {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unpoisoned()
    }
}

impl ProcessCondition {
    pub(crate) const fn new() -> ProcessCondition {
        ProcessCondition(OfProcess::new())
    }

    /// Waits while `goes_on`. Whoever ends that calls [`ProcessCondition::notify`] afterwards.
    pub(crate) fn wait_while(&'static self, goes_on: impl Fn() -> bool) {
        let here = self.of_this_process();
        let mut guard = here.lock();
        while goes_on() {
            guard = here.changed.wait(guard).unpoisoned();
        }
    }

    /// Lets everybody in [`ProcessCondition::wait_while`] look again.
    pub(crate) fn notify(&'static self) {
        let here = self.of_this_process();
        // Under the lock, so that nobody looks, misses this, and then waits.
        let _guard = here.lock();
        here.changed.notify_all();
    }

    fn of_this_process(&'static self) -> &'static Shared {
        self.0.get(Shared::default)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "asks the system")]
    fn addresses_that_cannot_be_read_are_known_without_a_fault() {
        let word = 7_u64;
        let pages = 1 << 16;
        let map = |protection| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: the system chooses where.
            unsafe { libc::mmap(ptr::null_mut(), pages, protection, flags, -1, 0) }
        };
        let (open, closed) = (map(libc::PROT_READ), map(libc::PROT_NONE));
        assert!(may_be_read(ptr::from_ref(&word).addr() as u64));
        assert!(may_be_read(open.addr() as u64));
        for address in [0, 2, 64, closed.addr() as u64, 1 << 47, u64::MAX] {
            assert!(!may_be_read(address), "{address:#x}");
        }
        for range in [open, closed] {
            // SAFETY: nothing refers to it.
            unsafe { libc::munmap(range, pages) };
        }
    }

    #[test]
    fn a_forked_child_finds_a_mutex_open_and_its_contents_fresh() {
        watch();
        let mutex = ProcessMutex::new(|| 7);
        *mutex.lock() = 8;
        let held = mutex.lock();
        // SAFETY: the child only takes the mutex, which nobody holds there, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: an alarm ends a child that waits; leaving runs nothing of the parent's.
            unsafe {
                libc::alarm(60);
                libc::_exit(i32::from(*mutex.lock() != 7));
            }
        }
        let mut status = -1;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((status, *held), (0, 8));
    }
}
