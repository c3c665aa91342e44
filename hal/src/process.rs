//! What objects must know of the process they live in: whether it exits, and whether it is a
//! forked child of the one that made them.

pub(crate) use crate::per_process::ProcessCondition;
pub use crate::per_process::{OfProcess, ProcessMutex, generation};

#[cfg(target_os = "linux")]
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

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
    crate::per_process::begin_generation();
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
