//! Temporary files.

use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of temporary files that nobody else can read, which is gone afterwards.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Result<Folder> {
        Folder::within(&std::env::temp_dir())
    }

    /// A folder in another one.
    pub(crate) fn within(base: &Path) -> Result<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |it| it.subsec_nanos());
            let path = base.join(format!("gpuarray-{}-{now:x}-{count}", std::process::id()));
            match builder.create(&path) {
                Ok(()) => return Ok(Folder { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(Error::System(format!(
                        "no temporary folder in {}: {error}; set TMPDIR to a folder that can be written",
                        base.display()
                    )));
                }
            }
        }
    }

    /// Leaves the folder alone from now on: it has another name.
    pub(crate) fn keep(mut self) {
        drop(std::mem::take(&mut self.path));
        std::mem::forget(self);
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.path.join(name).to_string_lossy().into_owned()
    }

    /// What file names in messages begin with and programs need not know.
    pub(crate) fn prefix(&self) -> String {
        format!("{}/", self.path.to_string_lossy())
    }

    pub(crate) fn log(&self, output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).replace(&self.prefix(), "")
    }

    pub(crate) fn failed(&self, error: &std::io::Error) -> Error {
        Error::System(format!("temporary files in {}: {error}", self.path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            log::debug!("temporary files stay in {}: {error}", self.path.display());
        }
    }
}
