//! Events shared between processes: two counters in a block of shared memory.
//!
//! Each recording has a number. The event is reached once the stream of the latest recording has reached it,
//! in whichever process that stream is.

use crate::memory::Memory;
use crate::sharing::handle::Kind;
use crate::sharing::process::ProcessIdentity;
use hal::{Error, ErrorKind, IpcHandle, Result, Status, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The contents of the shared block. A new block is all zeros: that stands for an event that was never
/// recorded.
#[repr(C)]
struct Counters {
    /// The number of the latest recording.
    recorded: AtomicU64,
    /// The highest number that a stream has reached.
    reached: AtomicU64,
    /// The process that recorded last: its process ID, and the low half of its start time.
    recorder: AtomicU64,
    /// Changes together with `reached`; the system's wait function watches it.
    changes: AtomicU32,
}

/// The interval at which a waiting thread checks that the recording process is alive.
const PATIENCE_MILLISECONDS: i64 = 50;

fn recorder_number(identity: ProcessIdentity) -> u64 {
    u64::from(identity.id) << 32 | (identity.start & 0xffff_ffff)
}

/// Returns true while the process identified by a recorder's number is running.
fn is_recorder_alive(number: u64) -> bool {
    ProcessIdentity::of((number >> 32) as u32)
        .is_some_and(|identity| recorder_number(identity) == number)
}

/// An event that other processes can open, or that belongs to another process.
pub(crate) struct SharedEvent {
    memory: Arc<Memory>,
    address: usize,
    is_opened: bool,
    generation: u32,
}

impl std::fmt::Debug for SharedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedEvent({:#x})", self.address)
    }
}

impl SharedEvent {
    /// Creates an event.
    ///
    /// # Errors
    /// `Unsupported` if the system does not support memory shared between processes.
    pub(crate) fn create(memory: &Arc<Memory>) -> Result<SharedEvent> {
        let address = memory.segments().allocate(size_of::<Counters>()).ok_or_else(|| {
            Error::unsupported(
                "create_event",
                "the event is for other processes, and this process cannot make shared memory: \
                 the system has \
                 none, or the process has no more file descriptors",
            )
        })?;
        // SAFETY: the block has a page, and nothing else uses it yet.
        unsafe { (address as *mut u8).write_bytes(0, size_of::<Counters>()) };
        let memory = memory.clone();
        Ok(SharedEvent { memory, address, is_opened: false, generation: process::generation() })
    }

    /// Opens an event of another process.
    ///
    /// # Errors
    /// An invalid handle, or one whose event or process no longer exists.
    pub(crate) fn open(memory: &Arc<Memory>, handle: &IpcHandle) -> Result<SharedEvent> {
        let address = memory.segments().open("import_event", handle, Kind::Event)?;
        let memory = memory.clone();
        Ok(SharedEvent { memory, address, is_opened: true, generation: process::generation() })
    }

    /// Returns a handle for other processes.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another process, or the system's error.
    pub(crate) fn export(&self) -> Result<IpcHandle> {
        if self.is_opened {
            return Err(Error::invalid(
                "export_event",
                "the event was made by another process; only that process can export it",
            ));
        }
        self.memory.segments().export("export_event", self.address, Kind::Event)
    }

    fn counters(&self) -> &Counters {
        // SAFETY: the block has a page, lives as long as this object, and is only accessed by atomic
        // operations, in every process.
        unsafe { &*(self.address as *const Counters) }
    }

    /// Begins a recording, and returns its number.
    pub(crate) fn begin(&self) -> u64 {
        let own = ProcessIdentity::own().map_or(0, recorder_number);
        let counters = self.counters();
        counters.recorder.store(own, Ordering::Relaxed);
        counters.recorded.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Records that the stream has reached a recording, and wakes the waiting threads.
    pub(crate) fn reach(&self, number: u64) {
        let counters = self.counters();
        counters.reached.fetch_max(number, Ordering::AcqRel);
        counters.changes.fetch_add(1, Ordering::AcqRel);
        #[cfg(target_os = "linux")]
        // SAFETY: the address points to four bytes that stay valid during the call.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                counters.changes.as_ptr(),
                libc::FUTEX_WAKE,
                libc::c_int::MAX,
            );
        }
    }

    /// Returns the number of the latest recording if it has not been reached.
    pub(crate) fn pending(&self) -> Option<u64> {
        let recorded = self.counters().recorded.load(Ordering::Acquire);
        (!self.is_reached(recorded)).then_some(recorded)
    }

    fn is_reached(&self, number: u64) -> bool {
        self.counters().reached.load(Ordering::Acquire) >= number
    }

    /// Returns true once a recording is reached.
    ///
    /// # Errors
    /// `LaunchFailed` if the process that recorded the event ended before its work was done.
    pub(crate) fn query(&self, number: u64) -> Result<bool> {
        if self.is_reached(number) {
            return Ok(true);
        }
        let recorder = self.counters().recorder.load(Ordering::Relaxed);
        // Check again: reaching the recording may have been the last action of the process.
        if is_recorder_alive(recorder) || self.is_reached(number) {
            return Ok(self.is_reached(number));
        }
        Err(Error::new(
            ErrorKind::LaunchFailed,
            Status::host(Status::LAUNCH_FAILED),
            "event",
            format!(
                "process {}, which recorded the event, has ended before its work was done",
                recorder >> 32
            ),
        ))
    }

    /// Waits for a recording.
    ///
    /// # Errors
    /// The same as [`SharedEvent::query`].
    pub(crate) fn wait(&self, number: u64) -> Result<()> {
        loop {
            let changes = self.counters().changes.load(Ordering::Acquire);
            if self.query(number)? {
                return Ok(());
            }
            self.sleep(changes);
        }
    }

    /// Sleeps until the counter of changes differs, or for a limited time.
    fn sleep(&self, changes: u32) {
        #[cfg(target_os = "linux")]
        {
            let patience = libc::timespec { tv_sec: 0, tv_nsec: PATIENCE_MILLISECONDS * 1_000_000 };
            // SAFETY: the address points to four bytes, and the time is only read; both stay valid.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.counters().changes.as_ptr(),
                    libc::FUTEX_WAIT,
                    changes,
                    &raw const patience,
                );
            }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = changes;
            std::thread::sleep(std::time::Duration::from_millis(PATIENCE_MILLISECONDS as u64));
        }
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        if process::is_exiting() || self.generation != process::generation() {
            return;
        }
        let segments = self.memory.segments();
        // SAFETY: only this object refers to the block or the range, and it is being dropped.
        unsafe {
            match self.is_opened {
                true => segments.close(self.address),
                false => segments.free(self.address, 0),
            };
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    fn memory() -> Arc<Memory> {
        hal::backend::watch_process();
        Arc::new(Memory::new(1 << 30, 1 << 20))
    }

    #[test]
    fn the_latest_recording_counts() -> Result<()> {
        let event = SharedEvent::create(&memory())?;
        assert_eq!(event.pending(), None, "never recorded");
        let (first, second) = (event.begin(), event.begin());
        assert_eq!(event.pending(), Some(second));
        event.reach(second);
        assert_eq!(event.pending(), None);
        event.reach(first);
        assert!(event.query(second)? && event.pending().is_none());
        let third = event.begin();
        assert!(!event.query(third)?);
        std::thread::scope(|scope| {
            scope.spawn(|| event.reach(third));
            event.wait(third)
        })
    }

    #[test]
    fn a_recording_whose_process_was_killed_is_an_error() {
        let memory = memory();
        let (mut here, mut there) = std::os::unix::net::UnixStream::pair().expect("two ends");
        // SAFETY: the child uses only locks that are new in it, and exits without returning.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let export = || {
                let event = SharedEvent::create(&memory)?;
                event.begin();
                let handle = event.export()?;
                // The exported event stays until the child is killed.
                std::mem::forget(event);
                Ok::<_, Error>(handle)
            };
            let _ = there.write_all(&export().map_or([0; 64], |handle| handle.0));
            // SAFETY: the calls return, or end the process.
            unsafe {
                libc::alarm(60);
                libc::pause();
                libc::_exit(1)
            }
        }
        let mut handle = IpcHandle([0; 64]);
        here.read_exact(&mut handle.0).expect("the child's handle");
        let event = SharedEvent::open(&memory, &handle).expect("the child lives");
        let refused = event.export().expect_err("it is the child's");
        assert!(refused.detail().contains("another process"), "{refused}");
        let number = event.pending().expect("the child has recorded it");
        assert!(!event.query(number).expect("the child lives"));
        // SAFETY: the number is the child's, which is waited for below.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        let error = event.wait(number).expect_err("the child is gone");
        assert_eq!(error.kind(), ErrorKind::LaunchFailed);
        assert!(error.detail().contains(&child.to_string()), "{error}");
        let error = SharedEvent::open(&memory, &handle).expect_err("the child is gone");
        assert_eq!(error.kind(), ErrorKind::InvalidHandle);
        assert!(error.detail().contains("ended"), "{error}");
    }
}
