//! Opening a driver that is missing, lacks a symbol or refuses to start returns an ordinary error
//! from which the user can find the cause.

use gpuarray_backend_cuda::{open_file, symbols};
use hal::{Backend, ErrorKind, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A fake library whose functions only return a status.
struct MadeUp {
    folder: PathBuf,
}

impl MadeUp {
    /// Creates a library with the functions of `names`. Those in `answers` return the given status,
    /// all others success.
    fn new(test: &str, names: &[&str], answers: &[(&str, i32)]) -> MadeUp {
        let folder = std::env::temp_dir().join(format!("pygpu-cuda-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut source = String::new();
        for name in names {
            let code = answers.iter().find(|(other, _)| other == name).map_or(0, |(_, code)| *code);
            writeln!(source, "int {name}(int *result) {{ (void)result; return {code}; }}")
                .expect("text");
        }
        // With one device, opening continues to the later lookups.
        let source = source.replace(
            "int cuDeviceGetCount(int *result) { (void)result; return 0; }",
            "int cuDeviceGetCount(int *result) { *result = DEVICES; return 0; }",
        );
        std::fs::write(folder.join("cuda.c"), source).expect("the source");
        MadeUp { folder }
    }

    fn open(&self, devices: i32) -> Result<Arc<dyn Backend>> {
        let library = self.folder.join(format!("libcuda{devices}.so"));
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", &format!("-DDEVICES={devices}"), "-o"])
            .args([&library, &self.folder.join("cuda.c")])
            .status()
            .expect("a C compiler");
        assert!(status.success());
        // SAFETY: the functions have the arguments of the driver's, or ignore them.
        unsafe { open_file(&library) }
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn refusal(result: Result<Arc<dyn Backend>>) -> (i32, String) {
    let error = result.expect_err("it cannot be opened");
    assert_eq!(error.kind(), ErrorKind::BackendUnavailable, "{error}");
    (error.status().code, error.to_string())
}

#[test]
fn a_missing_library_is_named() {
    // SAFETY: the file does not exist.
    let (_, text) = refusal(unsafe { open_file(Path::new("/nowhere/libcuda.so.1")) });
    assert!(text.contains("/nowhere/libcuda.so.1"), "{text}");
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    // SAFETY: the loader refuses a text file.
    let (_, text) = refusal(unsafe { open_file(Path::new("/etc/passwd")) });
    assert!(text.contains("/etc/passwd"), "{text}");
}

#[test]
fn missing_symbols_are_all_named() {
    let (required, _) = symbols();
    let present: Vec<_> = required
        .iter()
        .copied()
        .filter(|name| !["cuLaunchKernel", "cuMemAlloc_v2", "cuCtxGetCurrent"].contains(name))
        .collect();
    let (_, text) = refusal(MadeUp::new("symbols", &present, &[]).open(1));
    // Opening looks through both tables before it fails.
    for name in ["cuLaunchKernel", "cuMemAlloc_v2"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(!text.contains("cuMemFree_v2"), "{text}");
}

#[test]
fn a_driver_without_devices_says_so() {
    let (required, _) = symbols();
    let library = MadeUp::new("devices", &required, &[]);
    let (code, text) = refusal(library.open(0));
    assert_eq!(code, 100, "{text}");
    assert!(text.contains("no device"), "{text}");
}

#[test]
fn a_driver_that_refuses_gives_its_status() {
    let (required, _) = symbols();
    // No device, mismatched versions, and numbers without a name.
    for code in [100, 803, 999, 123_456, -7] {
        let library = MadeUp::new(&format!("init{code}"), &required, &[("cuInit", code)]);
        let (found, text) = refusal(library.open(1));
        assert_eq!(found, code, "{text}");
        assert!(text.contains(&code.to_string()) || code == 100, "{text}");
        let library =
            MadeUp::new(&format!("count{code}"), &required, &[("cuDeviceGetCount", code)]);
        assert_eq!(refusal(library.open(1)).0, code);
    }
}

#[test]
fn an_old_driver_opens_without_its_younger_functions() {
    let (required, optional) = symbols();
    assert!(optional.contains(&"cuMemAllocFromPoolAsync"));
    assert!(optional.contains(&"cuFuncGetParamInfo"));
    let library = MadeUp::new("old", &required, &[]);
    let backend = library.open(1).expect("required functions are enough");
    assert_eq!(backend.device_count().expect("a count"), 1);
    let error = backend.profiler_start().expect_err("there is no such function");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("cuProfilerStart"), "{error}");
}

#[test]
fn a_status_that_nobody_has_named_is_an_ordinary_error() {
    let (required, _) = symbols();
    let library = MadeUp::new("unknown", &required, &[("cuDriverGetVersion", 4242)]);
    let error = library.open(1).expect("it opens").version().expect_err("the call fails");
    assert_eq!((error.kind(), error.status().code), (ErrorKind::Driver, 4242));
    assert!(error.to_string().contains("4242"), "{error}");
}
