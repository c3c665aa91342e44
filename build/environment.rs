//! Environment variables and programs, as the process has them or as a test makes them up.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

/// Returns the value of a variable.
type Reader = Box<dyn Fn(&str) -> Option<OsString>>;

/// Variables, and which of them were asked for; where the system's folders are.
pub(crate) struct Environment {
    read: Reader,
    names: RefCell<BTreeSet<String>>,
    root: PathBuf,
}

impl Environment {
    /// Variables that a function returns, and the system's folders below `root`.
    pub(crate) fn new(
        read: impl Fn(&str) -> Option<OsString> + 'static,
        root: impl Into<PathBuf>,
    ) -> Environment {
        Environment { read: Box::new(read), names: RefCell::default(), root: root.into() }
    }

    /// A folder of the system, given without the leading slash.
    pub(crate) fn system(&self, folder: impl AsRef<Path>) -> PathBuf {
        self.root.join(folder)
    }

    /// The value of a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.names.borrow_mut().insert(name.to_owned());
        (self.read)(name).filter(|value| !value.is_empty())
    }

    /// Returns the variables that the result depends on: all that were read, except cargo's own.
    pub(crate) fn names(&self) -> Vec<String> {
        let own = ["OUT_DIR", "NUM_JOBS"];
        let names = self.names.borrow();
        names.iter().filter(|name| !own.contains(&name.as_str())).cloned().collect()
    }

    /// Folders that variables name.
    pub(crate) fn folders(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().filter_map(|name| self.variable(name)).map(PathBuf::from).collect()
    }

    /// Programs of these names in `PATH`.
    pub(crate) fn in_path(&self, names: &[impl AsRef<str>]) -> Vec<PathBuf> {
        let path = self.variable("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let named = |name| folders.iter().map(move |folder| folder.join(name));
        let all = names.iter().flat_map(|name| named(name.as_ref()));
        all.filter(|path| is_program(path.as_path())).collect()
    }

    /// Returns the number of compilers that may run at a time.
    pub(crate) fn jobs(&self) -> usize {
        let given = self.variable("NUM_JOBS").and_then(|it| it.to_str()?.parse().ok());
        let here = || thread::available_parallelism().map_or(1, usize::from);
        given.filter(|jobs| *jobs > 0).unwrap_or_else(here)
    }
}

pub(crate) fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run = |it: &fs::Metadata| {
        use std::os::unix::fs::PermissionsExt;
        it.permissions().mode() & 0o111 != 0
    };
    #[cfg(not(unix))]
    let may_run = |_: &fs::Metadata| true;
    fs::metadata(path).is_ok_and(|it| it.is_file() && may_run(&it))
}
