//! Real headers, runtimes and compilers, which the script of `make bindings` downloads into the target
//! folder when a test first needs them.

#![allow(dead_code, reason = "each test that includes this module uses a part of it")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn below(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the folder of a generation's runtime, after the download.
pub(crate) fn folder(generation: &str) -> PathBuf {
    below(&runtime_name(generation))
}

fn runtime_name(generation: &str) -> String {
    format!("hip-runtime-{generation}")
}

/// Returns the folder of something that `bindings/fetch.py` can download. Returns `None`, with the reason
/// printed, if the download fails and the variable `required` is not 1, or if `PYGPU_FETCH=0` forbids
/// downloads.
pub(crate) fn fetched(what: &[&str], folder: &str, required: &str) -> Option<PathBuf> {
    if std::env::var("PYGPU_FETCH").is_ok_and(|it| it == "0") {
        let _ = writeln!(std::io::stderr(), "skipped: {what:?} is left to `make test-more`");
        return None;
    }
    let folder = below(folder);
    // The tests of two packages use this module.
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

/// The generations of ROCm whose runtimes Debian packages: 5.2, 6.4 and 7.2 at the time of writing.
pub(crate) const GENERATIONS: [&str; 3] = ["5", "6", "7"];

/// The variable that passes the generation to a child process.
const GENERATION: &str = "GPUARRAY_TEST_ROCM";

/// Returns the generation that this process was started for.
pub(crate) fn generation() -> String {
    std::env::var(GENERATION).expect("a process of `with_runtimes`")
}

/// Returns the file name of that generation's runtime, which the loader finds.
pub(crate) fn runtime() -> String {
    format!("libamdhip64.so.{}", generation())
}

/// Runs one ignored test of this program with the real runtime of each of these generations, in a separate
/// process each. Unavailable generations are skipped, unless `PYGPU_REQUIRE_HIP_RUNTIME=1`.
pub(crate) fn with_runtimes(
    test: &str,
    generations: &[&str],
    variables: impl Fn(&Path) -> Vec<(&'static str, String)>,
) {
    for generation in generations {
        let name = runtime_name(generation);
        let what = ["runtime", generation];
        let Some(folder) = fetched(&what, &name, "PYGPU_REQUIRE_HIP_RUNTIME") else { continue };
        let given = variables(&folder);
        let mut given: Vec<_> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
        given.push((GENERATION, generation));
        in_process(test, &folder, &given);
    }
}

/// Runs one ignored test of this program in a separate process with the libraries in `folder` and no other
/// runtime, and returns its output. If the folder contains a loader, that loader starts the program.
pub(crate) fn in_process(test: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().expect("this program");
    let libraries = folder.join("lib");
    let files = std::fs::read_dir(&libraries).into_iter().flatten().flatten();
    let is_loader = |it: &PathBuf| {
        it.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux-"))
    };
    let mut command = match files.map(|it| it.path()).find(is_loader) {
        Some(loader) => {
            let mut command = Command::new(loader);
            command.arg("--library-path").arg(&libraries).arg(program);
            command
        }
        None => {
            let mut command = Command::new(program);
            command.env("LD_LIBRARY_PATH", &libraries);
            command
        }
    };
    let output = command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env_remove("ROCM_PATH")
        .env_remove("HIP_PATH")
        .env_remove("PYGPU_HIP_LIBRARY")
        .env_remove("PYGPU_HIPRTC")
        .envs(variables.iter().copied())
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{variables:?}: {text}\n{errors}"
    );
    text
}
