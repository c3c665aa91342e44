//! Launches on a fake runtime that counts the launches it receives.

use crate::notes::code_object;
use crate::{Scratch, compiled, declared, with_runtime};
use gpuarray_backend_hip::{open_file, symbols};
use hal::launch::ArgumentList;
use hal::{Device, ErrorKind, LaunchConfig, LoadOptions, Module, ModuleSource, Result, Stream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

#[test]
fn launches_with_wrong_arguments_are_refused() {
    with_runtime("launches::refuse_launches");
}

#[test]
#[ignore = "a process of launches_with_wrong_arguments_are_refused"]
fn refuse_launches() {
    let folder = Scratch::new("launches");
    let file = folder.0.join("kernels.co");
    std::fs::write(&file, compiled("gfx90a")).expect("the code");
    let (device, launches) = made_up(&folder.0);
    let stream = device.default_stream();
    let options = LoadOptions::default();
    let source = ModuleSource::File(&file);
    // SAFETY: a fake driver does not run the code.
    let module = unsafe { device.load_module(&source, &options) }.expect("it loads");
    let launch = |name: &str, sizes: &[usize]| launch(&module, &stream, name, sizes);
    for (name, sizes, message) in [
        ("nothing", &[4][..], "kernel nothing takes 0 arguments; 1 was given (4 bytes)"),
        (
            "axpy",
            &[4, 8, 8],
            "kernel axpy takes 4 arguments (4 bytes, a pointer, a pointer, 4 bytes); 3 were given \
             (4 bytes, 8 bytes, 8 bytes)",
        ),
        (
            "axpy",
            &[8, 8, 8, 4],
            "argument 0 (0-based) of kernel axpy has 8 bytes; its parameter has 4",
        ),
        (
            "by_value",
            &[8, 16, 4],
            "argument 1 (0-based) of kernel by_value has 16 bytes; its parameter has 24",
        ),
        (
            "implicit",
            &[8, 4, 8],
            "kernel implicit takes 2 arguments (a pointer, 4 bytes); 3 were given (8 bytes, 4 bytes, \
             8 bytes)",
        ),
    ] {
        let error = launch(name, sizes).expect_err(message);
        assert_eq!((error.kind(), error.detail()), (ErrorKind::InvalidArgument, message));
        assert_eq!(launches(), 0, "{message}");
    }
    for (done, (name, all)) in declared().iter().enumerate() {
        let sizes: Vec<_> = all.iter().map(|(_, size)| *size).collect();
        launch(name, &sizes).expect(name);
        assert_eq!(launches(), done as i32 + 1, "{name}");
    }
    // All parameters in one structure.
    launch("by_value", &[36]).expect("it fits");
    assert_eq!(launches(), declared().len() as i32 + 1);
    // Code without metadata: the arguments are passed as given.
    let code = code_object(b"");
    // SAFETY: a fake driver does not run the code.
    let module =
        unsafe { device.load_module(&ModuleSource::Image(&code), &options) }.expect("it loads");
    let kernel = module.kernel("axpy").expect("a kernel");
    assert_eq!(kernel.parameters().expect("no failure"), None);
}

fn launch(
    module: &Arc<dyn Module>,
    stream: &Arc<dyn Stream>,
    name: &str,
    sizes: &[usize],
) -> Result<()> {
    let kernel = module.kernel(name)?;
    let mut list = ArgumentList::new();
    sizes.iter().try_for_each(|size| match size {
        1 | 2 | 4 | 8 => list.number(&vec![0; *size], *size),
        _ => list.bytes(&vec![0; *size]),
    })?;
    // SAFETY: the runtime is fake and does not run the kernel.
    unsafe { list.launch(kernel.as_ref(), &LaunchConfig::linear(1, 1), stream, false) }
}

/// Returns a device of a runtime whose calls succeed without doing anything, and a function that
/// returns its number of launches.
fn made_up(folder: &Path) -> (Arc<dyn Device>, impl Fn() -> i32) {
    let mut source = "
        #include <string.h>
        static int done;
        int launches(void) { return done; }
        int hipModuleLaunchKernel(void) { ++done; return 0; }
        int hipGetDeviceCount(int *count) { *count = 1; return 0; }
        int hipGetDevice(int *device) { *device = 0; return 0; }
        int hipRuntimeGetVersion(int *version) { *version = 60241134; return 0; }
        int hipGetDevicePropertiesR0600(char *all, int device) {
            strcpy(all + 1160, \"gfx90a:sramecc+:xnack-\");
            return 0;
        }"
    .to_owned();
    for name in symbols().0 {
        if !source.contains(&format!("{name}(")) {
            source += &format!("\nint {name}(void) {{ return 0; }}");
        }
    }
    let (text, file) = (folder.join("hip.c"), folder.join("libamdhip64.so"));
    std::fs::write(&text, source).expect("the source");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let arguments = [Path::new("-shared"), Path::new("-fPIC"), Path::new("-o"), &file, &text];
    let status = Command::new(compiler).args(arguments).status().expect("a C compiler");
    assert!(status.success());
    // SAFETY: the functions have the arguments of the runtime's, or ignore them.
    let backend = unsafe { open_file(&file) }.expect("it opens");
    // SAFETY: the library is already open and is never closed; the type matches the definition.
    let launches = unsafe {
        let search = hal::library::Search::new("it").candidates([&file]);
        let library = search.open(Ok).expect("it opens");
        library.symbols().optional::<unsafe extern "C" fn() -> i32>("launches").expect("it")
    };
    // SAFETY: no argument.
    (backend.device(0).expect("a device"), move || unsafe { launches() })
}
