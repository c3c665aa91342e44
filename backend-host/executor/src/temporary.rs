//! Temporary files.

use crate::error::{Error, Result};
use cuda_c::TemporaryFolder;
use std::ops::Deref;
use std::path::Path;
use std::process::Output;

/// A private folder for a compiler's files. Dropping the object removes the folder.
pub(crate) struct Folder(TemporaryFolder);

/// Removes the temporary folders of compilations that the end of the process stops.
pub fn remove_temporary_folders() {
    TemporaryFolder::remove_all_of_this_process();
}

impl Deref for Folder {
    type Target = TemporaryFolder;

    fn deref(&self) -> &TemporaryFolder {
        &self.0
    }
}

impl Folder {
    pub(crate) fn new() -> Result<Folder> {
        TemporaryFolder::new().map(Folder).map_err(|error| Error::System(error.to_string()))
    }

    /// Creates a folder inside another one.
    pub(crate) fn within(base: &Path) -> Result<Folder> {
        TemporaryFolder::within(base).map(Folder).map_err(|error| Error::System(error.to_string()))
    }

    /// Keeps the folder, because it has been renamed.
    pub(crate) fn keep(self) {
        self.0.keep();
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.path.join(name).to_string_lossy().into_owned()
    }

    /// The prefix of file names in messages; programs need not see it.
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
