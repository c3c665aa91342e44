//! Tests the search for NVRTC and the errors of a broken one, with fake libraries. Each case runs
//! in its own process, because a library stays loaded and the environment belongs to the process.

#![cfg(target_os = "linux")]

use codegen::compile::{Compilation, Compiler};
use gpuarray_backend_cuda::nvrtc::Nvrtc;
use hal::library::{Search, add_search_directory};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A temporary folder with libraries, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pygpu-nvrtc-{}-{number}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    /// Compiles a fake NVRTC with these macros.
    fn library(&self, path: &str, macros: &[&str]) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvrtc_library/nvrtc.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let status = Command::new(compiler)
            .args(["-shared", "-fPIC", "-o"])
            .arg(&path)
            .arg(source)
            .args(macros.iter().map(|it| format!("-D{it}")))
            .status()
            .expect("a C compiler");
        assert!(status.success());
        path
    }

    fn path(&self, path: &str) -> String {
        self.0.join(path).to_str().expect("text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the output of [`compiles_and_prints`] in a process with only this environment.
fn compile(variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "compiles_and_prints", "--ignored", "--nocapture"])
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .expect("a process");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let result = text.lines().find_map(|line| line.split_once("result: "));
    result.expect("a result").1.to_owned()
}

#[test]
#[ignore = "a process of the other tests"]
#[allow(clippy::print_stdout, reason = "the output is the result")]
fn compiles_and_prints() {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let packages = variable("TEST_PACKAGES");
    std::env::split_paths(&packages).for_each(add_search_directory);
    let nvrtc = Nvrtc::new(variable("TEST_DRIVER").parse().unwrap_or(0));
    let [target, name] = ["TEST_TARGET", "TEST_NAME"].map(variable);
    let compilation = Compilation {
        text: "text",
        name: "unit.cu",
        target: if target.is_empty() { "sm_90" } else { &target },
        options: &["-DX"],
        names: if name.is_empty() { &[] } else { &[&name] },
        headers: false,
    };
    let result = match nvrtc.compile(&compilation) {
        Ok(compiled) => {
            let code = String::from_utf8_lossy(&compiled.code);
            let identity = nvrtc.identity(compilation.target).expect("it was found");
            let file = nvrtc.file(compilation.target).expect("it was found");
            assert!(live_programs(&file) == 0, "a program is left");
            format!("{identity}: {}", code.trim_end_matches('\0'))
        }
        Err(error) => {
            if let Ok(file) = nvrtc.file(compilation.target) {
                assert!(live_programs(&file) == 0, "a program is left");
            }
            let (kind, status) = (error.kind(), error.status().code);
            format!("{kind:?} {status} {}: {}", error.call(), error.detail())
        }
    };
    println!("\nresult: {result}");
}

/// Returns true if NVRTC is in neither the loader's folders nor a toolkit, where the search would
/// find it before or after the fake ones.
#[allow(clippy::print_stderr, reason = "a skip has its reason printed")]
fn is_without_nvrtc() -> bool {
    let result = compile(&[]);
    let without = result.starts_with("Unsupported 801 dlopen: ");
    if !without {
        eprintln!("skipped in part: this system has an NVRTC: {result}");
    }
    without
}

fn live_programs(file: &Path) -> i32 {
    // SAFETY: the library is already loaded and has this function.
    unsafe {
        let library = Search::new("NVRTC").candidates([file]).open(Ok).expect("it was opened");
        let function: Option<unsafe extern "C" fn() -> i32> =
            library.symbols().optional("live_programs");
        function.expect("a function")()
    }
}

#[test]
fn the_first_place_that_has_one_is_taken() {
    let folder = Folder::new();
    let path = |it| folder.path(it);
    let minor = |number: u32| format!("VERSION_MINOR={number}");
    let explicit = folder.library("explicit", &[&minor(1)]);
    folder.library("named/libnvrtc.so.12", &[&minor(2)]);
    folder.library("loader/libnvrtc.so.12", &[&minor(3)]);
    folder.library("home/lib64/libnvrtc.so.12", &[&minor(4)]);
    folder.library("path/lib/libnvrtc.so", &[&minor(5)]);
    let target = if cfg!(target_arch = "aarch64") { "sbsa-linux" } else { "x86_64-linux" };
    folder.library(&format!("targets/targets/{target}/lib/libnvrtc.so.12"), &[&minor(6)]);
    folder.library("old/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", &[&minor(7)]);
    folder.library("new/nvidia/cu13/lib/libnvrtc.so.13", &["VERSION_MAJOR=13"]);
    let variables = [
        ("PYGPU_NVRTC", explicit.to_str().expect("text").to_owned(), "12.1"),
        ("PYGPU_NVRTC_PATH", format!("{}:{}", path("none"), path("named")), "12.2"),
        ("LD_LIBRARY_PATH", path("loader"), "12.3"),
        ("CUDA_HOME", path("home"), "12.4"),
        ("CUDA_PATH", path("path"), "12.5"),
        ("TEST_PACKAGES", format!("{}:{}", path("old"), path("new")), "12.7"),
    ];
    let without = is_without_nvrtc();
    // The first two variables take precedence over the system's libraries.
    for first in 0..if without { variables.len() } else { 2 } {
        let environment: Vec<_> =
            variables[first..].iter().map(|(name, value, _)| (*name, value.as_str())).collect();
        let result = compile(&environment);
        let expected = format!("NVRTC {}: ", variables[first].2);
        assert!(result.starts_with(&expected), "{environment:?}: {result}");
    }
    for (name, place, expected) in [
        ("CUDA_HOME", "targets", "12.6"),
        ("TEST_PACKAGES", "new", "13.0"),
        ("PYGPU_NVRTC_PATH", "new", "13.0"),
        ("PYGPU_NVRTC_PATH", "old", "12.7"),
    ] {
        if !without && name != "PYGPU_NVRTC_PATH" {
            continue;
        }
        let result = compile(&[(name, &path(place))]);
        assert!(result.starts_with(&format!("NVRTC {expected}: ")), "{name}: {result}");
    }
}

#[test]
fn one_newer_than_the_driver_is_the_last_resort() {
    let folder = Folder::new();
    folder.library("newer/libnvrtc.so", &["VERSION_MAJOR=99"]);
    folder.library("fitting/libnvrtc.so.12", &[]);
    folder.library("both/libnvrtc.so.12", &[]);
    folder.library("both/libnvrtc.so.13", &["VERSION_MAJOR=13"]);
    let [newer, fitting, both] = ["newer", "fitting", "both"].map(|it| folder.path(it));
    let joined = format!("{newer}:{fitting}");
    for (places, driver, expected) in [
        (&joined, "12040", "NVRTC 12.0: "),
        (&joined, "0", "NVRTC 99.0: "),
        (&both, "12080", "NVRTC 12.0: "),
        (&both, "13000", "NVRTC 13.0: "),
        (&newer, "12040", "NVRTC 99.0: "),
    ] {
        if *places == newer && !is_without_nvrtc() {
            continue;
        }
        let result = compile(&[("PYGPU_NVRTC_PATH", places), ("TEST_DRIVER", driver)]);
        assert!(result.starts_with(expected), "{places} for {driver}: {result}");
    }
}

#[test]
fn ptx_newer_than_the_driver_is_the_last_resort() {
    let folder = Folder::new();
    folder.library("newer/libnvrtc.so.12", &["VERSION_MINOR=9"]);
    folder.library("fitting/libnvrtc.so.12", &["VERSION_MINOR=4"]);
    let places = format!("{}:{}", folder.path("newer"), folder.path("fitting"));
    for (target, driver, expected) in [
        ("sm_90", "12040", "NVRTC 12.9: cubin "),
        ("sm_91", "12090", "NVRTC 12.9: PTX "),
        ("sm_91", "12040", "NVRTC 12.4: PTX "),
    ] {
        let result = compile(&[
            ("PYGPU_NVRTC_PATH", &places),
            ("TEST_TARGET", target),
            ("TEST_DRIVER", driver),
        ]);
        assert!(result.starts_with(expected), "{target} for {driver}: {result}");
    }
}

#[test]
fn one_without_the_architecture_is_passed_over() {
    let folder = Folder::new();
    folder.library("new/libnvrtc.so.13", &["VERSION_MAJOR=13"]);
    folder.library("old/libnvrtc.so.12", &["ARCHITECTURES=60,70"]);
    let places = format!("{}:{}", folder.path("new"), folder.path("old"));
    let compile = |target| compile(&[("PYGPU_NVRTC_PATH", &places), ("TEST_TARGET", target)]);
    assert_eq!(compile("sm_75"), "NVRTC 13.0: cubin of unit.cu with --gpu-architecture=sm_75 -DX");
    assert_eq!(compile("sm_70"), "NVRTC 12.0: cubin of unit.cu with --gpu-architecture=sm_70 -DX");
    assert_eq!(
        compile("sm_61"),
        "NVRTC 12.0: PTX of unit.cu with --gpu-architecture=compute_60 -DX"
    );
    if !is_without_nvrtc() {
        return;
    }
    let result = compile("sm_50");
    assert!(result.starts_with("Unsupported "), "{result}");
    for expected in ["NVRTC 13.0 in ", " has sm_75 and later, not sm_50", " has sm_60 and later"] {
        assert!(result.contains(expected), "{result}");
    }
}

#[test]
fn an_older_one_makes_ptx() {
    let folder = Folder::new();
    let compile = |file: PathBuf| compile(&[("PYGPU_NVRTC", file.to_str().expect("text"))]);
    assert_eq!(
        compile(folder.library("a.so", &["WITHOUT_CUBIN"])),
        "NVRTC 12.0: PTX of unit.cu with --gpu-architecture=compute_90 -DX"
    );
    assert_eq!(
        compile(folder.library("b.so", &["WITHOUT_CUBIN", "WITHOUT_ARCHITECTURES"])),
        "NVRTC 12.0: PTX of unit.cu with --gpu-architecture=compute_75 -DX"
    );
}

#[test]
fn a_broken_one_is_an_error() {
    let folder = Folder::new();
    let largest = "CUBIN_SIZE=((size_t)-1)";
    for (macros, name, expected) in [
        (
            &["WITHOUT_PROGRAM"][..],
            "",
            "Unsupported 801 dlopen: NVRTC cannot be opened: PYGPU_NVRTC is \"FILE\": lacks \
             nvrtcCreateProgram, nvrtcDestroyProgram; ",
        ),
        (
            &["COMPILE_STATUS=4242"],
            "",
            "CompileFailed 4242 nvrtcCompileProgram: nvrtcCompileProgram failed: status 4242 ",
        ),
        (
            &["COMPILE_STATUS=-7", "WITHOUT_ERROR_STRING"],
            "",
            "CompileFailed -7 nvrtcCompileProgram: nvrtcCompileProgram failed: status -7 ",
        ),
        (
            &["COMPILE_STATUS=1"],
            "",
            "OutOfMemory 1 nvrtcCompileProgram: nvrtcCompileProgram failed: status 1 ",
        ),
        (
            &["CREATE_STATUS=2"],
            "",
            "CompileFailed 2 nvrtcCreateProgram: nvrtcCreateProgram failed: MADE_UP_CREATION_FAILURE ",
        ),
        (
            &["NAME_STATUS=10"],
            "k<int>",
            "CompileFailed 10 nvrtcGetLoweredName: nvrtcGetLoweredName failed: status 10 ",
        ),
        (&[], "k<int>", "CompileFailed 0 nvrtcGetLoweredName: \"k<int>\" has no name "),
        (
            &[largest],
            "",
            "OutOfMemory 2 compile: the host has no memory of size 18446744073709551615 for the CUBIN ",
        ),
    ] {
        let file = folder.library("broken.so", macros);
        let file = file.to_str().expect("text");
        let result = compile(&[("PYGPU_NVRTC", file), ("TEST_NAME", name)]);
        let expected = expected.replace("FILE", file);
        assert!(result.starts_with(expected.trim_end()), "{macros:?}: {result}\n{expected}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_variable() {
    let result = compile(&[("PYGPU_NVRTC", "/none/libnvrtc.so"), ("CUDA_HOME", "/none")]);
    let expected = "Unsupported 801 dlopen: NVRTC cannot be opened: PYGPU_NVRTC is \
                    \"/none/libnvrtc.so\": cannot open shared object file: ";
    assert!(result.starts_with(expected), "{result}");
}

#[test]
fn without_any_the_error_says_what_to_install() {
    if !is_without_nvrtc() {
        return;
    }
    for (driver, package) in [("13000", "nvidia-cuda-nvrtc`"), ("12080", "nvidia-cuda-nvrtc-cu12`")]
    {
        let result = compile(&[("CUDA_HOME", "/none/home"), ("TEST_DRIVER", driver)]);
        assert!(result.starts_with("Unsupported 801 dlopen: NVRTC cannot be "), "{result}");
        for part in ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "/none/home", package]
        {
            assert!(result.contains(part), "{part}: {result}");
        }
    }
}
