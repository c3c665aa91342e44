//! Anonymous in-memory files, mapped by this process or by another one.
//!
//! A segment is a sealed file of `memfd_create`. The pages of a segment are freed when the last process that
//! maps it ends, however it ends, and nothing is left in `/dev/shm`. Another process of the same user opens
//! it through `/proc/PID/fd`.

use super::handle::Handle;
use hal::{Error, IpcHandle, Result};
use std::fs::File;
use std::io;
use std::sync::OnceLock;

/// Returns the size of a page, the unit of blocks in a segment.
pub(crate) fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        #[cfg(unix)]
        // SAFETY: sysconf only reads; it returns -1 for unknown values.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        #[cfg(not(unix))]
        let size = 0;
        usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
    })
}

/// A mapped range of a file, unmapped when it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: usize,
    bytes: usize,
}

impl Mapping {
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Maps a part of a file for reading and writing.
    fn new(file: &File, offset: u64, bytes: usize) -> io::Result<Mapping> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd as _;
            let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: this maps a new range of addresses and does not affect other mappings.
            let start = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    protection,
                    libc::MAP_SHARED | libc::MAP_NORESERVE,
                    file.as_raw_fd(),
                    offset,
                )
            };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Mapping { address: start as usize, bytes })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (file, offset, bytes);
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        // SAFETY: mapped by `new`; the code that drops it ensures that nothing uses the range.
        unsafe {
            libc::munmap(self.address as *mut libc::c_void, self.bytes);
        }
    }
}

/// A file of this process, mapped as a whole.
#[derive(Debug)]
pub(crate) struct Segment {
    mapping: Mapping,
    file: File,
    nonce: [u8; 16],
}

impl Segment {
    pub(crate) fn base(&self) -> usize {
        self.mapping.address
    }

    pub(crate) fn bytes(&self) -> usize {
        self.mapping.bytes
    }

    pub(crate) fn nonce(&self) -> [u8; 16] {
        self.nonce
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use crate::sharing::process::ProcessIdentity;
    use hal::ErrorKind;
    use std::ffi::CString;
    use std::fs::OpenOptions;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt};
    use std::path::Path;

    /// Segments may use one in `SHARE` of the process's file descriptors; the others are left to the program.
    const SHARE: u64 = 2;

    /// The seals of a segment: its size can no longer change, so no access can fail because of a missing
    /// page.
    const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

    fn name_of(nonce: &[u8; 16]) -> String {
        let digits: String = nonce.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("pygpu-{digits}")
    }

    /// Returns the target of a `/proc/PID/fd` link to a segment.
    fn link_of(nonce: &[u8; 16]) -> String {
        format!("/memfd:{} (deleted)", name_of(nonce))
    }

    fn check(result: libc::c_int) -> io::Result<libc::c_int> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    /// Returns the soft limit that `read` writes.
    fn limit(read: impl FnOnce(&mut libc::rlimit) -> libc::c_int) -> io::Result<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        check(read(&mut limit))?;
        Ok(limit.rlim_cur)
    }

    impl Segment {
        /// Creates and maps a file of whole pages. No page is used yet.
        ///
        /// # Errors
        /// The system's error: not enough address space, no such files, or too few descriptors left for the
        /// program.
        pub(crate) fn create(bytes: usize) -> io::Result<Segment> {
            let mut nonce = [0; 16];
            // SAFETY: the buffer has this many bytes.
            let random = unsafe { libc::getrandom(nonce.as_mut_ptr().cast(), nonce.len(), 0) };
            if random != nonce.len() as isize {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the call only writes the structure.
            let largest = limit(|it| unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, it) })?;
            // SAFETY: as above.
            let most = limit(|it| unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, it) })?;
            if bytes as u64 > largest {
                // A file that grows beyond the limit would end the process with a signal.
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let name = CString::new(name_of(&nonce))?;
            // SAFETY: the name ends with a zero; the descriptor is new and owned by the file.
            let file = unsafe {
                let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
                File::from_raw_fd(check(libc::memfd_create(name.as_ptr(), flags))?)
            };
            // The system returns the lowest free descriptor.
            if file.as_raw_fd() as u64 >= most / SHARE {
                return Err(io::Error::from_raw_os_error(libc::EMFILE));
            }
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
            file.set_len(bytes as u64)?;
            // SAFETY: the descriptor is open, and the call takes a number.
            check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
            let mapping = Mapping::new(&file, 0, bytes)?;
            Ok(Segment { mapping, file, nonce })
        }

        /// Returns the file descriptor in this process.
        pub(crate) fn descriptor(&self) -> u32 {
            self.file.as_raw_fd() as u32
        }

        /// Frees the pages of a part. It then reads as zeros in every process that maps it.
        pub(crate) fn punch(&self, offset: usize, bytes: usize) {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: the descriptor is open, and the call takes numbers.
            let punched = unsafe {
                libc::fallocate(
                    self.file.as_raw_fd(),
                    mode,
                    offset as libc::off_t,
                    bytes as libc::off_t,
                )
            };
            if punched != 0 {
                log::warn!("freeing shared pages failed: {}", io::Error::last_os_error());
            }
        }

        /// Writes bytes into the file.
        ///
        /// # Errors
        /// The system's error.
        pub(crate) fn write(&self, offset: usize, octets: &[u8]) -> io::Result<()> {
            self.file.write_all_at(octets, offset as u64)
        }
    }

    /// Maps the object that a handle of another process refers to.
    ///
    /// Before anything is mapped, this checks the process, the file's name, owner, seals and size, and the
    /// copy of the handle in the file.
    ///
    /// # Errors
    /// - `InvalidHandle` if the process has ended or has freed the object.
    /// - `InvalidArgument` if the object belongs to this process, or the handle is forged.
    /// - `OutOfMemory` if the system cannot map more memory.
    pub(crate) fn open(call: &'static str, octets: &IpcHandle, handle: &Handle) -> Result<Mapping> {
        let forged = |what: &str| Error::invalid(call, format!("the handle is forged: {what}"));
        if Some(handle.process) == ProcessIdentity::own() {
            return Err(Error::invalid(
                call,
                "the handle is of this process; use the object that was exported",
            ));
        }
        let page = page_size() as u64;
        let length = usize::try_from(handle.length).ok().filter(|&length| length > 0);
        let mapped = length.and_then(|length| length.checked_next_multiple_of(page as usize));
        let end = mapped.and_then(|mapped| handle.offset.checked_add(mapped as u64));
        let (Some(mapped), Some(end)) = (mapped, end) else {
            return Err(forged("its length does not fit"));
        };
        if handle.offset < page || !handle.offset.is_multiple_of(page) {
            return Err(forged("no block begins at its offset"));
        }
        if !handle.process.is_alive() {
            let text = format!("process {}, which exported it, has ended", handle.process.id);
            return Err(Error::handle(call, text));
        }
        let link = link_of(&handle.nonce);
        let path = format!("/proc/{}/fd/{}", handle.process.id, handle.file);
        let stale = |error: Option<io::Error>| match error {
            Some(error) if error.kind() == io::ErrorKind::PermissionDenied => Error::new(
                ErrorKind::InvalidHandle,
                hal::Status::host(hal::Status::INVALID_HANDLE),
                call,
                format!("process {} is not this user's, or is protected", handle.process.id),
            ),
            _ => Error::handle(call, "the object of the handle has been freed"),
        };
        // Check the link before opening the file, because opening some files has side effects.
        match std::fs::read_link(&path) {
            Ok(target) if target == Path::new(&link) => {}
            Ok(_) => return Err(stale(None)),
            Err(error) => return Err(stale(Some(error))),
        }
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
        let file = opened.map_err(|error| stale(Some(error)))?;
        // The descriptor may refer to another file by now.
        let own = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if own.ok().as_deref() != Some(Path::new(&link)) {
            return Err(stale(None));
        }
        let about = file.metadata().map_err(|error| stale(Some(error)))?;
        // SAFETY: the call returns a number.
        if about.uid() != unsafe { libc::geteuid() } {
            return Err(forged("the file is another user's"));
        }
        // SAFETY: the descriptor is open.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & SEALS != SEALS {
            return Err(forged("the file is not sealed"));
        }
        if end > about.size() {
            return Err(forged("it reaches beyond the file"));
        }
        let mut head = [0; 64];
        let read = file.read_exact_at(&mut head, handle.offset - page);
        if read.is_err() || head == [0; 64] {
            return Err(stale(None));
        }
        if head != octets.0 {
            return Err(forged("it differs from the exporter's"));
        }
        Mapping::new(&file, handle.offset, mapped).map_err(|error| {
            Error::new(
                ErrorKind::OutOfMemory,
                hal::Status::host(hal::Status::OUT_OF_MEMORY),
                call,
                format!("the system does not map shared memory of size {mapped}: {error}"),
            )
        })
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::open;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::*;

    impl Segment {
        pub(crate) fn create(_: usize) -> io::Result<Segment> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn descriptor(&self) -> u32 {
            0
        }

        pub(crate) fn punch(&self, _: usize, _: usize) {}

        pub(crate) fn write(&self, _: usize, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(crate) fn open(call: &'static str, _: &IpcHandle, _: &Handle) -> Result<Mapping> {
        Err(Error::unsupported(call, "the host backend shares memory on Linux only"))
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::open;
