//! Tests the real runtimes of ROCm 5, 6 and 7, as Debian packages them, on a machine without an AMD GPU. Opening one
//! returns an ordinary error with the files that were tried and the runtime's status. Each test runs in its own
//! process.
//!
//! Without the runtime the tests are skipped, unless `PYGPU_REQUIRE_HIP_RUNTIME=1`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a skip has its reason printed")]
#![cfg(target_os = "linux")]

mod fetched;

use gpuarray_backend_hip::{open, symbols};
use hal::library::Search;
use hal::{Api, ErrorKind, Status};
use std::io::Write as _;
use std::path::Path;

/// Returns true if the machine has an AMD GPU, so that opening the runtime may succeed.
fn has_gpu() -> bool {
    Path::new("/dev/kfd").exists()
}

#[test]
fn without_a_device_the_status_and_the_paths_are_told() {
    if has_gpu() {
        let _ = writeln!(std::io::stderr(), "skipped: there is an AMD GPU");
        return;
    }
    for generation in fetched::GENERATIONS {
        fetched::with_runtimes("open_by_search", &[generation], |_| Vec::new());
        let name = format!("lib/libamdhip64.so.{generation}");
        fetched::with_runtimes("open_by_variable", &[generation], |folder| {
            vec![("PYGPU_HIP_LIBRARY", folder.join(&name).display().to_string())]
        });
    }
}

#[test]
#[ignore = "a process of without_a_device_the_status_and_the_paths_are_told"]
fn open_by_search() {
    let error = open().expect_err("there is no GPU");
    assert_eq!(error.kind(), ErrorKind::BackendUnavailable);
    // Without a device, hipInit returns 101 in ROCm 5 and 100 since; hipGetDeviceCount returns 100.
    assert_eq!(error.status().api, Api::Hip);
    assert!([Status::NO_DEVICE, Status::INVALID_DEVICE].contains(&error.status().code), "{error}");
    let found = format!("{} (", fetched::runtime());
    let refusal = "the driver has no device that it can use";
    for part in ["libamdhip64.so.7", &found, refusal, "/opt/rocm/lib", "ROCM_PATH"] {
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
    assert!(text.contains(&format!("lib/{}\"", fetched::runtime())), "{text}");
}

#[test]
fn runtimes_have_what_is_required_and_lack_what_came_later() {
    fetched::with_runtimes("look_for_symbols", &fetched::GENERATIONS, |_| Vec::new());
}

#[test]
#[ignore = "a process of runtimes_have_what_is_required_and_lack_what_came_later"]
fn look_for_symbols() {
    let search = Search::new("HIP").candidates([fetched::runtime()]);
    // SAFETY: AMD's runtime can be loaded without preconditions.
    let library = unsafe { search.open(Ok) }.expect("Debian's runtime");
    let (required, optional) = symbols();
    assert!(required.len() > 40 && optional.len() > 30, "{required:?} {optional:?}");
    for name in required {
        assert!(library.address(name).is_some(), "{name}");
    }
    let absent: Vec<_> =
        optional.into_iter().filter(|name| library.address(name).is_none()).collect();
    let of_5_2 = [
        "hipDeviceSetLimit",
        "hipLaunchHostFunc",
        "hipUserObjectCreate",
        "hipGraphRetainUserObject",
        "hipModuleLaunchCooperativeKernel",
        "hipCreateSurfaceObject",
        "hipDestroySurfaceObject",
        "hipGetDevicePropertiesR0600",
    ];
    let expected = if fetched::generation() == "5" { &of_5_2[..] } else { &[] };
    assert_eq!(absent, expected);
}
