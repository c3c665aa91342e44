//! Code compiled ahead of time: the logic of the build script, the output of real compilers, and
//! the choice of code at run time.
//!
//! Debian's clang and AMD's device library are downloaded into the target folder. Tests whose
//! compiler is missing are skipped with the reason printed, unless `PYGPU_REQUIRE_CLANG=1` or
//! `PYGPU_REQUIRE_NVRTC=1`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a panic is how a test fails, and a skip has its reason printed"
)]
#![cfg(target_os = "linux")]

#[path = "../../build/mod.rs"]
mod embed;

mod built;
// A module of another crate's tests.
#[path = "../../backend-hip/tests/code_object/mod.rs"]
mod code_object;
mod code_objects;
mod cubins;
#[path = "../../backend-hip/tests/fetched/mod.rs"]
mod fetched;
mod lookup;
mod request;
mod search;

use embed::environment::Environment;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gpuarray-embedded-{}-{number}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a program.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns an environment with these variables, on a system with nothing installed.
fn environment(folder: &Folder, variables: &[(&str, &str)]) -> Environment {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), OsString::from(value));
    let variables: Vec<_> = variables.iter().map(owned).collect();
    let read = move |name: &str| {
        let mut named = variables.iter().filter(|(known, _)| known == name);
        named.next().map(|(_, value)| value.clone())
    };
    Environment::new(read, folder.path().join("root"))
}

/// Prints why a test is skipped, or fails if the variable `required` is 1.
fn skip(required: &str, reason: &str) {
    let is_required = env::var(required).is_ok_and(|it| it == "1");
    assert!(!is_required, "{required} is 1, but {reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
