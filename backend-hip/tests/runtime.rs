//! Debian's real HIP runtime on a machine without an AMD GPU: an ordinary error, that says
//! what was tried and what the runtime answered. Each test is a process of its own.
//!
//! Without the runtime the tests are skipped, unless `PYGPU_REQUIRE_HIP_RUNTIME=1`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a skip has its reason printed")]
#![cfg(target_os = "linux")]

mod fetched;

use gpuarray_backend_hip::{open, symbols};
use hal::library::Search;
use hal::{Api, ErrorKind, Status};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const REQUIRED: &str = "PYGPU_REQUIRE_HIP_RUNTIME";

fn runtime() -> Option<PathBuf> {
    fetched::fetched(&["runtime"], "hip-runtime", REQUIRED)
}

/// True with an AMD GPU, where the runtime has no reason to refuse.
fn has_gpu() -> bool {
    Path::new("/dev/kfd").exists()
}

#[test]
fn without_a_device_the_status_and_the_paths_are_told() {
    let Some(folder) = runtime() else { return };
    if has_gpu() {
        let _ = writeln!(std::io::stderr(), "skipped: there is an AMD GPU");
        return;
    }
    fetched::in_process("open_by_search", &folder, &[]);
    let file = folder.join("lib/libamdhip64.so.5");
    let file = file.to_str().expect("text");
    fetched::in_process("open_by_variable", &folder, &[("PYGPU_HIP_LIBRARY", file)]);
}

#[test]
#[ignore = "a process of without_a_device_the_status_and_the_paths_are_told"]
fn open_by_search() {
    let error = open().expect_err("there is no GPU");
    assert_eq!(error.kind(), ErrorKind::BackendUnavailable);
    // hipInit says 101 without a device, hipGetDeviceCount 100.
    assert_eq!(error.status().api, Api::Hip);
    assert!([Status::NO_DEVICE, Status::INVALID_DEVICE].contains(&error.status().code), "{error}");
    for part in [
        "libamdhip64.so.7",
        "libamdhip64.so.5 (",
        "there is no device that it can use (hipErrorInvalidDevice)",
        "/opt/rocm/lib",
        "ROCM_PATH",
    ] {
        assert!(error.detail().contains(part), "{part}: {error}");
    }
}

#[test]
#[ignore = "a process of without_a_device_the_status_and_the_paths_are_told"]
fn open_by_variable() {
    let error = open().expect_err("there is no GPU");
    assert_eq!(error.status().api, Api::Hip);
    let text = error.detail();
    assert!(text.contains("PYGPU_HIP_LIBRARY is"), "{text}");
    assert!(text.contains("lib/libamdhip64.so.5\""), "{text}");
}

#[test]
fn a_runtime_of_5_2_has_what_is_required_and_lacks_what_came_later() {
    let Some(folder) = runtime() else { return };
    fetched::in_process("look_for_symbols", &folder, &[]);
}

#[test]
#[ignore = "a process of a_runtime_of_5_2_has_what_is_required_and_lacks_what_came_later"]
fn look_for_symbols() {
    let search = Search::new("HIP").candidates(["libamdhip64.so.5"]);
    // SAFETY: AMD's runtime has no conditions.
    let library = unsafe { search.open(Ok) }.expect("Debian's runtime");
    let (required, optional) = symbols();
    assert!(required.len() > 40 && optional.len() > 30, "{required:?} {optional:?}");
    for name in required {
        assert!(library.address(name).is_some(), "{name}");
    }
    let absent: Vec<_> =
        optional.into_iter().filter(|name| library.address(name).is_none()).collect();
    let expected = [
        "hipDeviceSetLimit",
        "hipLaunchHostFunc",
        "hipUserObjectCreate",
        "hipGraphRetainUserObject",
        "hipModuleLaunchCooperativeKernel",
        "hipCreateSurfaceObject",
        "hipDestroySurfaceObject",
        "hipGetDevicePropertiesR0600",
    ];
    assert_eq!(absent, expected);
}
