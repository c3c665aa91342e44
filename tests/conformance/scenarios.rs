//! The scenarios that the `isolated` tests run in separate processes.

mod faults;
mod mixture;
mod odd;
mod processes;

use crate::harness::Outcome;
use gpuarray::{Backend, Choice, Device, DeviceArray, Error, ErrorKind, Result};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// The variable with the scenario to run, followed by its arguments, separated by blanks.
pub(crate) const SCENARIO_VARIABLE: &str = "GPUARRAY_SCENARIO";
/// The variable with the backend's name.
pub(crate) const BACKEND_VARIABLE: &str = "GPUARRAY_SCENARIO_BACKEND";
/// The variable with an exported handle in hexadecimal.
pub(crate) const HANDLE_VARIABLE: &str = "GPUARRAY_SCENARIO_HANDLE";
/// The variable with the name of a file that contains compiled code.
pub(crate) const FILE_VARIABLE: &str = "GPUARRAY_SCENARIO_FILE";

/// Runs the scenario that the environment names, if any, on the main thread.
pub(crate) fn run() -> Option<ExitCode> {
    let scenario = std::env::var(SCENARIO_VARIABLE).ok()?;
    let words: Vec<&str> = scenario.split(' ').collect();
    let outcome = match words[..] {
        ["fault", "exit"] => faults::exit(),
        ["fault", "beside"] => faults::beside(),
        ["fault", kernel] => faults::fault(kernel),
        ["noticed", by] => faults::noticed(by),
        ["odd", "architecture"] => odd::architecture(),
        ["odd", "queries"] => odd::queries(),
        ["odd", "unrecorded"] => odd::unrecorded(),
        ["odd", "cooperative"] => odd::cooperative(),
        ["reset"] => faults::reset(),
        ["reset", "beside"] => faults::reset_beside(),
        ["reset", "capture"] => faults::reset_in_a_capture(),
        ["reset", "memory"] => faults::reset_gives_back(),
        ["exit", how] => processes::exit(how),
        ["fork"] => processes::fork_after_use(false),
        ["fork", "exit"] => processes::fork_after_use(true),
        ["fork", "early"] => processes::fork_before_use(),
        ["mixture"] => mixture::mixture(),
        ["share", "memory"] => processes::share_memory(),
        ["share", "event"] => processes::share_event(),
        ["no", "library"] => processes::no_library(),
        ["no", "compiler"] => processes::no_compiler(),
        _ => Err(format!("there is no scenario {scenario:?}").into()),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{scenario}: {error}");
            ExitCode::FAILURE
        }
    })
}

fn backend() -> Result<Arc<dyn Backend>> {
    let name = std::env::var(BACKEND_VARIABLE).unwrap_or_default();
    gpuarray::open(name.parse::<Choice>()?)
}

fn device() -> Result<Arc<dyn Device>> {
    backend()?.device(0)
}

/// Checks that the device computes a sum correctly.
fn check_works(device: &Arc<dyn Device>) -> Outcome {
    let array = DeviceArray::from_slice(device, &(0..1000).collect::<Vec<i32>>())?;
    assert_eq!((&array + &array)?.sum()?, 999_000);
    Ok(())
}

/// Checks an error's kind, and that its text contains every string in `named`.
#[track_caller]
fn check_error<T>(what: &str, result: Result<T>, kind: ErrorKind, named: &[&str]) -> Error {
    let Err(error) = result else { panic!("{what} succeeded; an error was expected") };
    assert_eq!(error.kind(), kind, "{what}: {error}");
    assert!(!error.status().is_success(), "{what}: {error}");
    for word in named {
        assert!(error.detail().contains(word), "{what} does not name {word}: {error}");
    }
    error
}
