//! Temporary folders, from which compilers read headers and to which they write code.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The prefix of folder names.
const NAME: &str = "gpuarray-";

/// A private folder for temporary files. Dropping the object removes the folder.
///
/// ```
/// use cuda_c::TemporaryFolder;
///
/// let folder = TemporaryFolder::new()?;
/// let path = folder.path.clone();
/// cuda_c::write_headers(&path, [("include/own.h", "#define N 3")])?;
/// assert_eq!(std::fs::read_to_string(path.join("include/own.h"))?, "#define N 3");
/// drop(folder);
/// assert!(!path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TemporaryFolder {
    /// The folder, which nobody else can read.
    pub path: PathBuf,
}

impl TemporaryFolder {
    /// Creates a folder in the system's folder of temporary files.
    ///
    /// # Errors
    /// The system's, if that folder cannot be written.
    pub fn new() -> io::Result<TemporaryFolder> {
        TemporaryFolder::within(&std::env::temp_dir())
    }

    /// Creates a folder inside another one.
    ///
    /// # Errors
    /// The system's, if the other folder cannot be written.
    pub fn within(base: &Path) -> io::Result<TemporaryFolder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |it| it.subsec_nanos());
            let path = base.join(format!("{}{now:x}-{count}", own_prefix()));
            match builder.create(&path) {
                Ok(()) => return Ok(TemporaryFolder { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let detail = format!(
                        "no temporary folder in {}: {error}; set TMPDIR to a folder that can be written",
                        base.display()
                    );
                    return Err(io::Error::new(error.kind(), detail));
                }
            }
        }
    }

    /// Removes the folders of this process from the system's folder of temporary files. A thread that the end of the
    /// process stops cannot remove its own.
    pub fn remove_all_of_this_process() {
        let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
        let own = own_prefix();
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&own) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Returns true for the names of temporary folders.
    pub fn is_one(name: &OsStr) -> bool {
        name.to_string_lossy().starts_with(NAME)
    }

    /// Keeps the folder, which has been renamed.
    pub fn keep(mut self) {
        drop(std::mem::take(&mut self.path));
        std::mem::forget(self);
    }
}

fn own_prefix() -> String {
    format!("{NAME}{}-", std::process::id())
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nobody can be told; the system removes its temporary files some day.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Writes headers to a folder under their names, which may contain subfolders.
///
/// # Errors
/// The system's.
pub fn write_headers<'a>(
    folder: &Path,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> io::Result<()> {
    for (name, text) in headers {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
