//! The state of the process: whether it is exiting, and whether it is a forked child of the process that
//! created an object.

use crate::poison::Unpoisoned as _;
use std::marker::PhantomData;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::{fmt, ptr};

static EXITING: AtomicBool = AtomicBool::new(false);

/// Notes that the process runs its exit handlers.
#[cfg(unix)]
pub(crate) extern "C" fn begin_exit() {
    EXITING.store(true, Ordering::Relaxed);
}

/// Returns true while the process runs its exit handlers. Nothing may be freed from then on.
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::Relaxed)
}

/// Returns false if the address is not readable, so that a driver must not be passed it as a handle. The
/// system reads a word and reports a fault as an error. Returns true if that system call is not permitted.
pub fn may_be_read(address: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        let Ok(start) = usize::try_from(address) else { return false };
        let mut word = [0_u8; 8];
        let local = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
        let remote =
            libc::iovec { iov_base: ptr::without_provenance_mut(start), iov_len: word.len() };
        // SAFETY: the local range is the array's; the system checks the remote range.
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

// Values and locks that are created again in a forked child.

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Begins a new generation. Called in a forked child before anything else runs.
#[cfg(unix)]
pub(crate) fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of forks between this process and the one that first opened a backend. An object of
/// another generation belongs to a parent process.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value for each process. A forked child creates its own, even if the parent's threads were using
/// theirs at the fork. The parent's value is neither used nor dropped in the child.
///
/// A value that must be dropped by the thread that created it cannot be shared:
///
/// ```compile_fail
/// use gpuarray_hal::process::OfProcess;
/// use std::sync::MutexGuard;
///
/// static SHARED: OfProcess<MutexGuard<'static, u32>> = OfProcess::new();
/// ```
///
/// A value that every thread may drop can be shared:
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
    /// The last thread with a reference drops a value that another thread may have made, so sharing requires
    /// the same bounds as a mutex of the value.
    owned: PhantomData<(Box<Generation<T>>, Mutex<T>)>,
}

#[derive(Debug)]
struct Generation<T> {
    number: u32,
    value: T,
}

impl<T> OfProcess<T> {
    /// Returns an object whose value is created when a process first uses it.
    pub const fn new() -> OfProcess<T> {
        OfProcess { current: AtomicPtr::new(ptr::null_mut()), owned: PhantomData }
    }

    /// Returns this process's value, and creates it with `make` on the first call. If several threads call
    /// `make` concurrently, one value is kept.
    #[inline]
    pub fn get(&self, make: impl Fn() -> T) -> &T {
        let number = generation();
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: a stored value is never changed, and is freed only with this object.
        match unsafe { known.as_ref() } {
            Some(known) if known.number == number => &known.value,
            _ => self.make_anew(known, number, make),
        }
    }

    /// Replaces `known` without dropping it, because it belongs to a parent process.
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
            // SAFETY: the value was boxed above, and no other thread has seen it.
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
        // SAFETY: `get` stored the pointer, and nothing refers to the value any longer.
        if unsafe { known.as_ref() }.is_some_and(|known| known.number == generation()) {
            // SAFETY: as above; made by `Box::into_raw`.
            drop(unsafe { Box::from_raw(known) });
        }
    }
}

/// A mutex that is unlocked in a forked child, with contents made by `fresh`. A thread that held it in the
/// parent does not exist in the child, and may have left an invalid value.
pub struct ProcessMutex<T> {
    state: OfProcess<Mutex<T>>,
    fresh: fn() -> T,
}

impl<T> ProcessMutex<T> {
    /// Returns a mutex whose contents are created when a process first locks it.
    pub const fn new(fresh: fn() -> T) -> ProcessMutex<T> {
        ProcessMutex { state: OfProcess::new(), fresh }
    }

    /// Locks the mutex. The protected value must be valid after every step, so that a panic elsewhere leaves
    /// it usable.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.mutex().lock().unpoisoned()
    }

    /// Locks the mutex if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.mutex().try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn mutex(&self) -> &Mutex<T> {
        self.state.get(|| Mutex::new((self.fresh)()))
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

/// A readers-writer lock that is unlocked in a forked child, because the parent's threads do not exist
/// there.
pub(crate) struct ProcessRwLock(OfProcess<RwLock<()>>);

impl ProcessRwLock {
    pub(crate) const fn new() -> ProcessRwLock {
        ProcessRwLock(OfProcess::new())
    }

    /// Takes the lock for reading. The protected value must be valid after every step, so that a panic
    /// elsewhere leaves it usable.
    pub(crate) fn read(&'static self) -> RwLockReadGuard<'static, ()> {
        self.0.get(RwLock::default).read().unpoisoned()
    }

    /// Takes the lock for reading if it is not write-locked and no writer is waiting.
    pub(crate) fn try_read(&'static self) -> Option<RwLockReadGuard<'static, ()>> {
        match self.0.get(RwLock::default).try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the lock for writing.
    pub(crate) fn write(&'static self) -> RwLockWriteGuard<'static, ()> {
        self.0.get(RwLock::default).write().unpoisoned()
    }
}

/// A condition that threads of a process wait for. In a forked child, no thread waits for it and its lock is
/// free, because the parent's threads do not exist there.
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

    /// Waits while `goes_on` returns true. A thread that changes its result calls
    /// [`ProcessCondition::notify`] afterwards.
    pub(crate) fn wait_while(&'static self, goes_on: impl Fn() -> bool) {
        let here = self.of_this_process();
        let mut guard = here.lock();
        while goes_on() {
            guard = here.changed.wait(guard).unpoisoned();
        }
    }

    /// Wakes all threads in [`ProcessCondition::wait_while`]; they then check the condition again.
    pub(crate) fn notify(&'static self) {
        let here = self.of_this_process();
        // Under the lock, so that no thread checks the condition, misses this call, and then waits.
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
            // SAFETY: the system chooses the address.
            unsafe { libc::mmap(ptr::null_mut(), pages, protection, flags, -1, 0) }
        };
        let (open, closed) = (map(libc::PROT_READ), map(libc::PROT_NONE));
        assert!(may_be_read(ptr::from_ref(&word).addr() as u64));
        assert!(may_be_read(open.addr() as u64));
        for address in [0, 2, 64, closed.addr() as u64, 1 << 47, u64::MAX] {
            assert!(!may_be_read(address), "{address:#x}");
        }
        for range in [open, closed] {
            // SAFETY: nothing refers to the pages.
            unsafe { libc::munmap(range, pages) };
        }
    }

    #[test]
    fn a_forked_child_finds_a_mutex_open_and_its_contents_fresh() {
        crate::backend::watch_process();
        let mutex = ProcessMutex::new(|| 7);
        *mutex.lock() = 8;
        let held = mutex.lock();
        // SAFETY: the child only takes the mutex, which is free there, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: an alarm ends a child that hangs; `_exit` does not run the parent's exit handlers.
            unsafe {
                libc::alarm(60);
                libc::_exit(i32::from(*mutex.lock() != 7));
            }
        }
        let mut status = -1;
        // SAFETY: waits for the child forked above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((status, *held), (0, 8));
    }
}
