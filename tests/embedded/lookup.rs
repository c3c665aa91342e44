//! The code that a device runs: embedded in the program, else from the cache, else from the
//! compiler. The tests use the fake CUDA driver. Each test is a separate process, because backends
//! and registered code belong to the process.

use crate::Folder;
use backend_cuda::nvrtc::Nvrtc;
use codegen::compile::embedded::{EmbeddedTarget, PackedObject, pack, register};
use codegen::compile::{Compilation, Compiler};
use codegen::source::catalogue::catalogue;
use codegen::source::{KernelSpec, NVRTC_OPTIONS, unit};
use gpuarray::array::functions::{Exp, Sum};
use gpuarray::{Choice, Device, DeviceArray, ErrorKind};
use std::collections::HashSet;
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};
use std::{env, fs};

/// Variables with the paths of the archive and of the driver's library.
const ARCHIVE_VARIABLE: &str = "GPUARRAY_TEST_ARCHIVE";
const LIBRARY_VARIABLE: &str = "PYGPU_CUDA_LIBRARY";

/// A path without a compiler.
const NOWHERE: &str = "/nowhere/libnvrtc.so";

/// Builds the fake driver if it is older than its source, once for all tests of this process.
pub(crate) fn double() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let folder = target.join("double");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver-double/build.sh");
        let output = Command::new("sh").arg(script).arg(&folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.join("cuda")
    });
    &BUILT
}

/// Runs one ignored test of this program in a separate process on the fake driver.
fn in_process(test: &str, variables: &[(&str, &str)]) {
    let double = double();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("lookup::{test}"), "--ignored", "--nocapture"])
        .env(LIBRARY_VARIABLE, double.join("libcuda.so.1"))
        .env("PYGPU_NVRTC", double.join("libnvrtc.so.12"))
        .env("PYGPU_CACHE", "off")
        .env_remove("PYGPU_CACHE_DIR")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

/// Makes an archive in one process, and runs a test with it in another.
fn with_archive(test: &str, variables: &[(&str, &str)]) {
    let folder = Folder::new();
    let archive = folder.path().join("archive");
    let archive = (ARCHIVE_VARIABLE, archive.to_str().unwrap());
    in_process("make_archive", &[archive]);
    in_process(test, &[&[archive], variables].concat());
}

/// Returns `a + b`, `a + 2` and `2 + a` for 32-bit floats.
fn additions() -> Vec<KernelSpec> {
    let named = |spec: &KernelSpec| {
        let name = &spec.kernel_names()[0];
        name.starts_with("gpuarray_add_f32_") && name.ends_with("_contiguous_32")
    };
    let specs: Vec<KernelSpec> = catalogue().iter().flat_map(|group| group.specs()).collect();
    let found: Vec<KernelSpec> = specs.into_iter().filter(named).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    found
}

fn device() -> Arc<dyn Device> {
    gpuarray::open(Choice::Cuda).unwrap().device(0).unwrap()
}

/// Registers the archive's code for the device.
fn embed(device: &Arc<dyn Device>, archive: Vec<u8>) {
    let name = device.properties().architecture.clone().leak();
    // SAFETY: the archive is packed from code that the fake driver compiled.
    register(&[unsafe { EmbeddedTarget::new(name, "the double", vec![&*archive.leak()].leak()) }]);
}

fn arrays(device: &Arc<dyn Device>) -> (DeviceArray<f32>, DeviceArray<f32>) {
    let a = DeviceArray::from_slice(device, &[1.0, 2.0, 3.0]).unwrap();
    let b = DeviceArray::from_slice(device, &[10.0, 20.0, 30.0]).unwrap();
    (a, b)
}

/// Opens the fake driver's library, which is already loaded.
fn library() -> libloading::Library {
    let path = env::var_os(LIBRARY_VARIABLE).unwrap();
    // SAFETY: opening the library again runs no initialiser.
    unsafe { libloading::Library::new(path).unwrap() }
}

/// Returns how often a function of the driver was called.
fn calls(name: &str) -> u64 {
    let (library, name) = (library(), CString::new(name).unwrap());
    // SAFETY: the fake driver exports the function with this type.
    unsafe {
        let count = library.get::<unsafe extern "C" fn(*const c_char) -> u64>(b"double_calls");
        count.unwrap()(name.as_ptr())
    }
}

/// Makes the next call of a driver function return this status.
fn fail_next(name: &str, status: c_int) {
    let (library, name) = (library(), CString::new(name).unwrap());
    type Fail = unsafe extern "C" fn(*const c_char, u64, c_int, c_int);
    // SAFETY: the fake driver exports the function with this type.
    unsafe { library.get::<Fail>(b"double_fail").unwrap()(name.as_ptr(), 0, status, 1) }
}

fn is_nvrtc_loaded() -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().contains("libnvrtc")
}

#[test]
#[ignore = "a process of other tests"]
fn make_archive() {
    let (device, specs) = (device(), additions());
    let (text, options) = (unit(specs.iter().cloned()), NVRTC_OPTIONS);
    let target = &device.properties().architecture;
    let (name, text) = ("add", &*text);
    let compilation = Compilation { text, name, target, options, ..Compilation::default() };
    let path = env::var(ARCHIVE_VARIABLE).unwrap();
    let virtual_options = [options, &["--gpu-architecture=compute_90"]].concat();
    for (options, path) in [(options, path.clone()), (&virtual_options, format!("{path}.ptx"))] {
        let compilation = Compilation { options, ..compilation };
        let code = Nvrtc::new(12040).compile(&compilation).unwrap().code;
        fs::write(path, pack(&[PackedObject::new(&specs, &code)], &[])).unwrap();
    }
}

#[test]
fn embedded_code_needs_no_compiler() {
    with_archive("add_without_compiler", &[("PYGPU_NVRTC", NOWHERE)]);
}

#[test]
#[ignore = "a process of embedded_code_needs_no_compiler"]
fn add_without_compiler() {
    let device = device();
    embed(&device, fs::read(env::var_os(ARCHIVE_VARIABLE).unwrap()).unwrap());
    let (a, b) = arrays(&device);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    // This kernel is in the same code object, which is loaded once.
    assert_eq!((&a + 2.0).unwrap().to_vec().unwrap(), [3.0, 4.0, 5.0]);
    assert_eq!(calls("cuModuleLoadDataEx"), 1);
    // An operation that is not embedded.
    let error = (&a - &b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let architecture = &device.properties().architecture;
    let parts = [
        "gpuarray_subtract_f32_f32_f32_to_f32_contiguous_32",
        &format!("this build embeds some for {architecture} but not this"),
        &format!("PYBIND_GPU_TARGET={architecture}"),
        "the on-disk cache is off",
        "nothing can compile it",
        NOWHERE,
    ];
    for part in parts {
        assert!(error.detail().contains(part), "{part}: {error}");
    }
}

#[test]
fn embedded_code_comes_before_cache_and_compiler() {
    let folder = Folder::new();
    let cache = folder.path().join("cache");
    let variables = [("PYGPU_CACHE", "on"), ("PYGPU_CACHE_DIR", cache.to_str().unwrap())];
    with_archive("add_then_subtract", &variables);
}

#[test]
#[ignore = "a process of embedded_code_comes_before_cache_and_compiler"]
fn add_then_subtract() {
    let device = device();
    embed(&device, fs::read(env::var_os(ARCHIVE_VARIABLE).unwrap()).unwrap());
    let (a, b) = arrays(&device);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    let cache = PathBuf::from(env::var_os("PYGPU_CACHE_DIR").unwrap());
    assert!(!is_nvrtc_loaded() && !cache.exists());
    assert_eq!((&b - &a).unwrap().to_vec().unwrap(), [9.0, 18.0, 27.0]);
    assert!(is_nvrtc_loaded() && cache.exists());
    // A reset unloads the module, and the next operation loads it again.
    drop((a, b));
    // SAFETY: nothing of the device is in use.
    unsafe { device.reset() }.unwrap();
    let (a, b) = arrays(&device);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert_eq!(calls("cuModuleLoadDataEx"), 3);
}

#[test]
fn code_in_the_cache_needs_no_compiler() {
    let folder = Folder::new();
    let cache = folder.path().join("cache");
    let variables = [("PYGPU_CACHE", "on"), ("PYGPU_CACHE_DIR", cache.to_str().unwrap())];
    in_process("add_and_keep", &variables);
    in_process("add_what_was_kept", &[&variables[..], &[("PYGPU_NVRTC", NOWHERE)]].concat());
    in_process("add_what_does_not_load_any_more", &variables);
    in_process("add_what_was_kept", &[&variables[..], &[("PYGPU_NVRTC", NOWHERE)]].concat());
}

#[test]
#[ignore = "a process of code_in_the_cache_needs_no_compiler"]
fn add_what_does_not_load_any_more() {
    let device = device();
    let (a, b) = arrays(&device);
    // Code for which memory is short may load later, so nothing is compiled instead.
    fail_next("cuModuleLoadDataEx", 2);
    assert_eq!((&a + &b).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert!(!is_nvrtc_loaded());
    fail_next("cuModuleLoadDataEx", 209);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert!(is_nvrtc_loaded());
}

#[test]
#[ignore = "a process of code_in_the_cache_needs_no_compiler"]
fn add_and_keep() {
    let (a, b) = arrays(&device());
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert!(is_nvrtc_loaded());
}

#[test]
#[ignore = "a process of code_in_the_cache_needs_no_compiler"]
fn add_what_was_kept() {
    let (a, b) = arrays(&device());
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert!(!is_nvrtc_loaded());
    let error = (&a - &b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let cache = env::var("PYGPU_CACHE_DIR").unwrap();
    assert!(error.detail().contains(&format!("{cache} has none")), "{error}");
}

#[test]
fn code_that_the_driver_refuses_is_compiled() {
    in_process("add_with_bad_code", &[]);
}

#[test]
#[ignore = "a process of code_that_the_driver_refuses_is_compiled"]
fn add_with_bad_code() {
    let device = device();
    embed(&device, pack(&[PackedObject::new(&additions(), b"\x7fELF of somebody else")], &[]));
    let (a, b) = arrays(&device);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert_eq!((&a + 2.0).unwrap().to_vec().unwrap(), [3.0, 4.0, 5.0]);
    // The invalid code is detected without the driver; then each kernel's compiled code is loaded.
    assert_eq!(calls("cuModuleLoadDataEx"), 2);
}

#[test]
fn code_that_does_not_load_is_compiled_whatever_the_driver_says_of_it() {
    with_archive("add_after_failures", &[]);
}

#[test]
#[ignore = "a process of code_that_does_not_load_is_compiled_whatever_the_driver_says_of_it"]
fn add_after_failures() {
    let archive = fs::read(env::var_os(ARCHIVE_VARIABLE).unwrap()).unwrap();
    embed(&device(), archive);
    // Invalid value or image, no code for this GPU, a failed initialiser, not supported, unknown.
    for status in [1, 200, 209, 218, 300, 303, 801, 999] {
        let device = device();
        let (a, b) = arrays(&device);
        let before = calls("cuModuleLoadDataEx");
        fail_next("cuModuleLoadDataEx", status);
        assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0], "{status}");
        assert!(is_nvrtc_loaded());
        assert_eq!((&a + 2.0).unwrap().to_vec().unwrap(), [3.0, 4.0, 5.0], "{status}");
        // Code that has failed once is not loaded again.
        assert_eq!(calls("cuModuleLoadDataEx") - before, 3, "{status}");
        drop((a, b));
        // SAFETY: nothing of the device is in use.
        unsafe { device.reset() }.unwrap();
    }
    // Out of memory is not a failure of the code.
    let device = device();
    let (a, b) = arrays(&device);
    fail_next("cuModuleLoadDataEx", 2);
    let error = (&a + &b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    let before = calls("cuModuleLoadDataEx");
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert_eq!((&a + 2.0).unwrap().to_vec().unwrap(), [3.0, 4.0, 5.0]);
    assert_eq!(calls("cuModuleLoadDataEx") - before, 1);
}

#[test]
fn exact_code_that_the_driver_refuses_gives_way_to_ptx() {
    with_archive("add_by_ptx", &[("PYGPU_NVRTC", NOWHERE)]);
}

#[test]
#[ignore = "a process of exact_code_that_the_driver_refuses_gives_way_to_ptx"]
fn add_by_ptx() {
    let device = device();
    let path = env::var(ARCHIVE_VARIABLE).unwrap();
    let ptx = fs::read(format!("{path}.ptx")).unwrap().leak();
    // SAFETY: packed from what the double compiled.
    register(&[unsafe { EmbeddedTarget::new("compute_75", "the double", vec![&*ptx].leak()) }]);
    embed(&device, fs::read(path).unwrap());
    let (a, b) = arrays(&device);
    // No code for this GPU.
    fail_next("cuModuleLoadDataEx", 209);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    assert_eq!(calls("cuModuleLoadDataEx"), 2);
    drop((a, b));
    // SAFETY: nothing of the device is in use.
    unsafe { device.reset() }.unwrap();
    let (a, b) = arrays(&device);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    // A driver that is older than the PTX says so, and then nothing is left.
    assert_eq!(calls("cuModuleLoadDataEx"), 3);
    drop((a, b));
    // SAFETY: as above.
    unsafe { device.reset() }.unwrap();
    let (a, b) = arrays(&device);
    fail_next("cuModuleLoadDataEx", 209);
    assert_eq!((&a + &b).unwrap().to_vec().unwrap(), [11.0, 22.0, 33.0]);
    fail_next("cuModuleLoadDataEx", 222);
    let error = (&b - &a).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    for part in ["compute_75", "sm_90", "nothing can compile it"] {
        assert!(error.detail().contains(part), "{part}: {error}");
    }
}

/// Keeps the names of kernels that are compiled at run time.
struct Names(Mutex<Vec<String>>);

static COMPILED: Names = Names(Mutex::new(Vec::new()));

impl log::Log for Names {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        if let Some((name, _)) = text.split_once(" is compiled: ") {
            self.0.lock().unwrap().push(name.to_owned());
        }
    }

    fn flush(&self) {}
}

#[test]
fn the_first_operations_of_each_family_are_compiled_ahead_of_time() {
    in_process("first_operations", &[]);
}

#[test]
#[ignore = "a process of the_first_operations_of_each_family_are_compiled_ahead_of_time"]
fn first_operations() {
    log::set_logger(&COMPILED).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    let device = device();
    let (a, b) = arrays(&device);
    let criterion = DeviceArray::from_slice(&device, &[true, false, true]).unwrap();
    let indices = DeviceArray::from_slice(&device, &[2_i64, 0]).unwrap();
    let _ = ((&a * 2.0).unwrap(), (&a / &b).unwrap(), DeviceArray::full(&device, &[3], 1.0_f32));
    let _ = (a.reduce(Sum, None).unwrap(), a.scan(Sum, 0).unwrap(), a.dot(&b).unwrap());
    let _ = (a.sort(0).unwrap(), a.argsort(0).unwrap(), a.cast::<f64>().unwrap());
    let _ = (a.take(&indices, 0).unwrap(), criterion.nonzero().unwrap());
    let _ = (DeviceArray::select(&criterion, &a, &b).unwrap(), a.map(Exp).unwrap());
    let square = DeviceArray::from_shaped(&device, &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let _ = (square.matmul(&square).unwrap(), square.transpose(None).unwrap().to_vec().unwrap());
    let compiled = COMPILED.0.lock().unwrap().clone();
    assert!(compiled.len() > 12, "{compiled:?}");
    let specs = catalogue().into_iter().flat_map(|group| group.specs());
    let ahead: HashSet<String> = specs.flat_map(|spec| spec.kernel_names()).collect();
    let missing: Vec<_> = compiled.iter().filter(|name| !ahead.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn without_code_and_compiler_the_error_names_all_ways_to_it() {
    let folder = Folder::new();
    let cache = folder.path().join("cache");
    let cache = ("PYGPU_CACHE_DIR", cache.to_str().unwrap());
    in_process("add_without_code", &[("PYGPU_NVRTC", NOWHERE), ("PYGPU_CACHE", "on"), cache]);
}

#[test]
#[ignore = "a process of without_code_and_compiler_the_error_names_all_ways_to_it"]
fn add_without_code() {
    let device = device();
    let (a, b) = arrays(&device);
    let error = (&a + &b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let cache = env::var("PYGPU_CACHE_DIR").unwrap();
    let architecture = &device.properties().architecture;
    for part in ["this build embeds none", architecture, &cache, "nothing can compile it", NOWHERE]
    {
        assert!(error.detail().contains(part), "{part}: {error}");
    }
}
