//! Loads the bytes of a library with the system's loader.

use crate::error::{Error, Result};
use crate::fork::NoFork;
use crate::temporary::Folder;
use std::fs;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::path::Path;

/// A library that the system has loaded, until it is dropped.
pub(super) struct Opened(ManuallyDrop<libloading::Library>);

impl Deref for Opened {
    type Target = libloading::Library;

    fn deref(&self) -> &libloading::Library {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _no_fork = NoFork::begin();
        // SAFETY: it is dropped only here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// Loads a library from bytes, under a unique path, because the system's loader identifies libraries by their
/// paths.
///
/// # Safety
/// The code is trusted.
pub(super) unsafe fn open(bytes: &[u8]) -> Result<Opened> {
    let folder = Folder::new()?;
    let path = folder.path.join("unit.so");
    fs::write(&path, bytes).map_err(|error| folder.failed(&error))?;
    // SAFETY: the caller's promise.
    unsafe { load(&path) }.or_else(|error| {
        // A folder for temporary files may be mounted without execute permission.
        // SAFETY: the caller's promise.
        unsafe { open_in_memory(bytes, &folder) }.unwrap_or(Err(error))
    })
}

/// # Safety
/// The code is trusted.
unsafe fn load(path: &Path) -> Result<Opened> {
    let _no_fork = NoFork::begin();
    // SAFETY: the caller's promise.
    unsafe { libloading::Library::new(path) }
        .map(|library| Opened(ManuallyDrop::new(library)))
        .map_err(|error| Error::NotAUnit(format!("the unit does not load: {error}")))
}

/// Loads the library from a file in memory. Returns `None` if the system does not support this.
///
/// # Safety
/// The code is trusted.
#[cfg(target_os = "linux")]
unsafe fn open_in_memory(bytes: &[u8], folder: &Folder) -> Option<Result<Opened>> {
    use std::io::Write as _;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    // SAFETY: the name is a C string.
    let descriptor = unsafe { libc::memfd_create(c"unit".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor is new and owned by this object.
    let mut file = unsafe { fs::File::from_raw_fd(descriptor) };
    file.write_all(bytes).ok()?;
    // A link in the folder makes the path unique.
    let link = folder.path.join("memory.so");
    std::os::unix::fs::symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).ok()?;
    // SAFETY: the caller's promise.
    Some(unsafe { load(&link) })
}

#[cfg(not(target_os = "linux"))]
unsafe fn open_in_memory(_: &[u8], _: &Folder) -> Option<Result<Opened>> {
    None
}
