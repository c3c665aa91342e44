//! Opening a runtime that lacks a symbol, refuses to start, or is of another generation than the
//! bindings: the result is an ordinary error, the older functions are used, and no failure stays
//! pending in the runtime.

#![cfg(target_os = "linux")]

use gpuarray_backend_hip::{open_file, symbols};
use hal::{Backend, DeviceAttribute, ErrorKind, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A fake library whose functions return a status; a few do more.
struct MadeUp {
    folder: PathBuf,
    file: PathBuf,
}

impl MadeUp {
    /// Creates a library with the functions of `names`. Those that `source` does not define return
    /// success and do nothing.
    fn new(test: &str, names: &[&str], source: &str) -> MadeUp {
        let folder = std::env::temp_dir().join(format!("pygpu-hip-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut all = source.to_owned();
        for name in names {
            if !source.contains(&format!("{name}(")) {
                writeln!(all, "int {name}(void) {{ return 0; }}").expect("text");
            }
        }
        std::fs::write(folder.join("hip.c"), all).expect("the source");
        let file = folder.join("libamdhip64.so");
        let status = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
            .args(["-shared", "-fPIC", "-w", "-o"])
            .args([&file, &folder.join("hip.c")])
            .status()
            .expect("a C compiler");
        assert!(status.success());
        MadeUp { folder, file }
    }

    fn open(&self) -> Result<Arc<dyn Backend>> {
        // SAFETY: the functions have the arguments of the runtime's, or ignore them.
        unsafe { open_file(&self.file) }
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

/// One device, which counts unread failures. The value of attribute N is N + 1000; attributes above
/// 80 are unknown.
const DEVICE: &str = "
    #include <string.h>
    static __thread int last;
    static int fail(int code) { return last = code; }
    int hipGetLastError(void) { int code = last; last = 0; return code; }
    int hipGetDeviceCount(int *count) { *count = 1; return 0; }
    int hipRuntimeGetVersion(int *version) { *version = VERSION; return 0; }
    int hipGetDevice(int *device) { *device = 0; return 0; }
    const char *hipGetErrorName(int code) { return code == 1 ? \"hipErrorInvalidValue\" : \"hipErrorUnknown\"; }
    int hipDeviceGetAttribute(int *value, int attribute, int device) {
        *value = attribute + 1000;
        return attribute > 80 && attribute < 10000 ? fail(1) : 0;
    }
    int hipDeviceGetName(char *name, int size, int device) { strcpy(name, \"made up\"); return 0; }
    int hipDeviceGetUuid(char *uuid, int device) { return fail(801); }
    int hipMemGetAddressRange(void *start, void *size, void *address) { return fail(17); }
    int hipPointerGetAttributes(char *all, void *address) {
        memset(all, 0, 32);
        if (address == (void *)4096) { memcpy(all + 16, &address, 8); return 0; }
        return address == (void *)8192 ? 0 : fail(1);
    }
    int hipMalloc(void *address, long size) { return fail(9); }
";

const PROPERTIES: &str = "
    int hipGetDeviceProperties(char *all, int device) { strcpy(all + 396, \"gfx906:old\"); return 0; }
";
const PROPERTIES_R0600: &str = "
    int hipGetDevicePropertiesR0600(char *all, int device) { strcpy(all + 1160, \"gfx942:new\"); return 0; }
";

#[test]
fn missing_symbols_are_all_named() {
    let (required, _) = symbols();
    let lacks = ["hipModuleLaunchKernel", "hipMalloc"];
    let present: Vec<_> = required.into_iter().filter(|name| !lacks.contains(name)).collect();
    let (_, text) = refusal(MadeUp::new("symbols", &present, "").open());
    for name in lacks {
        assert!(text.contains(name), "{text}");
    }
    assert!(!text.contains("hipFree"), "{text}");
    // SAFETY: the file does not exist.
    let (_, text) = refusal(unsafe { open_file(Path::new("/nowhere/libamdhip64.so.6")) });
    assert!(text.contains("/nowhere/libamdhip64.so.6"), "{text}");
}

#[test]
fn a_runtime_that_refuses_gives_its_status() {
    let (required, _) = symbols();
    // Both numbers for a missing device, and one without a name.
    for code in [100, 101, 4242] {
        for function in ["hipInit", "hipGetDeviceCount"] {
            let source = format!("int {function}(void) {{ return {code}; }}");
            let name = format!("{function}{code}");
            let (found, text) = refusal(MadeUp::new(&name, &required, &source).open());
            assert_eq!(found, code, "{text}");
            assert_eq!(text.contains("no device"), code != 4242, "{text}");
        }
    }
}

#[test]
fn the_architecture_comes_from_the_struct_of_the_generation() {
    let (required, _) = symbols();
    for (test, version, properties, architecture, number) in [
        ("old", 50_221_153, PROPERTIES.to_owned(), "gfx906:old", 5020),
        ("new", 60_241_134, format!("{PROPERTIES}{PROPERTIES_R0600}"), "gfx942:new", 6020),
        ("later", 71_025_424, format!("{PROPERTIES}{PROPERTIES_R0600}"), "gfx942:new", 7100),
    ] {
        let source = format!("#define VERSION {version}\n{DEVICE}{properties}");
        let library = MadeUp::new(test, &required, &source);
        let backend = library.open().expect("required functions are enough");
        assert_eq!(backend.version().expect("a version"), number);
        let device = backend.device(0).expect("a device");
        let properties = device.properties();
        assert_eq!((properties.name.as_str(), properties.uuid), ("made up", None));
        assert_eq!(properties.architecture, architecture);
        let error = backend.profiler_start().expect_err("there is no such function");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("hipProfilerStart"), "{error}");
    }
    let source = format!("#define VERSION 60241134\n{DEVICE}");
    let library = MadeUp::new("neither", &required, &source);
    let error = library.open().expect("it opens").device(0).expect_err("no architecture");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn attributes_are_asked_for_by_hips_numbers() {
    let (required, _) = symbols();
    let source = format!("#define VERSION 60241134\n{DEVICE}{PROPERTIES}");
    let library = MadeUp::new("attributes", &required, &source);
    let device = library.open().expect("it opens").device(0).expect("a device");
    let attribute = |number| device.attribute(DeviceAttribute(number));
    // hipDeviceAttributeMaxThreadsPerBlock, and an attribute of AMD's own.
    assert_eq!(attribute(1).expect("a value"), 1056);
    assert_eq!(attribute(10_015).expect("a value"), 11_015);
    // HIP lacks 27, and this runtime lacks 10, which HIP numbers 87 (hipDeviceAttributeWarpSize).
    for number in [27, 10] {
        let error = attribute(number).expect_err("no such attribute");
        assert_eq!((error.kind(), error.status().code), (ErrorKind::InvalidArgument, 1));
        assert!(error.detail().contains(&format!("attribute is {number}")), "{error}");
    }
}

#[test]
fn addresses_are_known_by_what_the_runtime_says_of_them() {
    let (required, optional) = symbols();
    let names: Vec<_> = required.into_iter().chain(optional).collect();
    let source = format!("#define VERSION 60241134\n{DEVICE}{PROPERTIES}{PROPERTIES_R0600}");
    let library = MadeUp::new("addresses", &names, &source);
    let device = library.open().expect("it opens").device(0).expect("a device");
    // Success with an address; success without an address, as in 6 and 7; a failure, as in 5.
    assert!(device.can_access(4096, 1));
    assert!(!device.can_access(8192, 1));
    assert!(!device.can_access(12288, 1));
    let error = device.address_range(12288).expect_err("no allocation");
    assert_eq!((error.kind(), error.status().code), (ErrorKind::InvalidArgument, 17));
}

#[test]
fn no_failure_is_left_for_other_libraries() {
    let (required, optional) = symbols();
    let names: Vec<_> = required.into_iter().chain(optional).collect();
    let peek = "int peek(void) { return last; }";
    let source = format!("#define VERSION 71025424\n{DEVICE}{PROPERTIES}{PROPERTIES_R0600}{peek}");
    let library = MadeUp::new("failures", &names, &source);
    let device = library.open().expect("it opens").device(0).expect("a device");
    // SAFETY: the library is already open and is never closed.
    let peek = unsafe {
        hal::library::Search::new("it")
            .candidates([&library.file])
            .open(Ok)
            .expect("it opens")
            .symbols()
            .optional::<unsafe extern "C" fn() -> i32>("peek")
            .expect("a function")
    };
    let left = |what: &str| {
        // SAFETY: no argument.
        assert_eq!(unsafe { peek() }, 0, "{what}");
    };
    left("opening, with a UUID that was refused");
    assert!(device.attribute(DeviceAttribute(10)).is_err());
    left("an attribute");
    assert!(!device.can_access(12288, 1));
    left("an address");
    // Runtimes of 7 return 9 for too many threads.
    let error = device.allocate(64).expect_err("it is refused");
    assert_eq!((error.kind(), error.status().code), (ErrorKind::InvalidArgument, 9));
    left("an allocation");
}
