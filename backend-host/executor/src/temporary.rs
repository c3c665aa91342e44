//! Temporary files.

use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

/// The prefix of folder names.
const NAME: &str = "gpuarray-";

/// A private folder for temporary files, which is removed when it is dropped.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Result<Folder> {
        Folder::within(&std::env::temp_dir())
    }

    /// Creates a folder inside another one.
    pub(crate) fn within(base: &Path) -> Result<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |it| it.subsec_nanos());
            let path = base.join(format!("{NAME}{}-{now:x}-{count}", std::process::id()));
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

    /// Returns true for the names of such folders.
    pub(crate) fn is_one(name: &OsStr) -> bool {
        name.to_string_lossy().starts_with(NAME)
    }

    /// Keeps the folder, which has been renamed.
    pub(crate) fn keep(mut self) {
        drop(std::mem::take(&mut self.path));
        std::mem::forget(self);
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.path.join(name).to_string_lossy().into_owned()
    }

    /// The prefix of file names in messages, which programs need not see.
    pub(crate) fn prefix(&self) -> String {
        format!("{}/", self.path.to_string_lossy())
    }

    pub(crate) fn log(&self, output: &Output) -> String {
        without_dereferences(&String::from_utf8_lossy(&output.stderr).replace(&self.prefix(), ""))
    }

    pub(crate) fn failed(&self, error: &std::io::Error) -> Error {
        Error::System(format!("temporary files in {}: {error}", self.path.display()))
    }
}

/// Removes one warning of GCC from a compiler's log. No option turns it off, and no other compiler gives it.
/// It appears for each assignment to a `volatile` structure whose operator returns a reference, as in
/// reductions in shared memory.
fn without_dereferences(log: &str) -> String {
    const WARNING: &str = "warning: implicit dereference will not access object of type";
    // The function is named in a separate line, before its first warning.
    let is_heading = |line: &str| line.trim_end().ends_with(':') && line.contains(": In ");
    if !log.contains(WARNING) {
        return log.to_owned();
    }
    let mut lines = log.split_inclusive('\n').filter(|line| !line.contains(WARNING)).peekable();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        let is_empty = lines.peek().is_none_or(|next| is_heading(next));
        if !is_heading(line) || !is_empty {
            kept.push_str(line);
        }
    }
    kept
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            log::debug!("temporary files stay in {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_dereferences;

    #[test]
    fn one_warning_is_left_out_with_its_heading() {
        let heading = "k.cu: In function 'void k(S*)':\n";
        let dereference = "k.cu:3: warning: implicit dereference will not access object of type \
                           'volatile S' in statement\n";
        let other = "k.cu:4: warning: unused variable 'a'\n";
        assert_eq!(without_dereferences(&format!("{heading}{dereference}{dereference}")), "");
        let second = heading.replace("k(", "l(");
        let log = [heading, dereference, &second, dereference, other].concat();
        assert_eq!(without_dereferences(&log), format!("{second}{other}"));
        assert_eq!(without_dereferences(&format!("{heading}{other}")), format!("{heading}{other}"));
    }
}
