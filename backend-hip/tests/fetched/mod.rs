//! Real headers, a real runtime and a real compiler, fetched into the target folder when a test first needs
//! them, by the script that `make bindings` uses.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of a thing that `bindings/fetch.py` knows; `None`, with the reason printed, where
/// it cannot be had and `required` is not set to 1, or nothing is to be fetched: `PYGPU_FETCH=0`.
pub(crate) fn fetched(what: &[&str], folder: &str, required: &str) -> Option<PathBuf> {
    if std::env::var("PYGPU_FETCH").is_ok_and(|it| it == "0") {
        let _ = writeln!(std::io::stderr(), "skipped: {what:?} is left to `make test-more`");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    // The tests of two packages use this.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scripts = ["bindings/fetch.py", "backend-hip/bindings/fetch.py"].map(|it| package.join(it));
    let script = scripts.iter().find(|it| it.is_file()).expect("the script");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).arg(script).args(what).arg(&folder).output();
    let reason = match output {
        Ok(output) if output.status.success() => return Some(folder),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("{python}: {error}"),
    };
    let is_required = std::env::var(required).is_ok_and(|it| it == "1");
    assert!(!is_required, "{required} is 1, but {what:?} cannot be had: {reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {what:?} cannot be had: {reason}");
    None
}

/// Runs one ignored test of this program in a process of its own, with a runtime of `folder`,
/// no other one, and returns its output.
#[allow(dead_code, reason = "not every test has processes")]
pub(crate) fn in_process(test: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder.join("lib"))
        .env_remove("ROCM_PATH")
        .env_remove("HIP_PATH")
        .env_remove("PYGPU_HIP_LIBRARY")
        .env_remove("PYGPU_HIPRTC")
        .envs(variables.iter().copied())
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
    text
}
