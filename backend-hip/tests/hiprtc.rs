//! Tests with the real hipRTC of ROCm 5, 6 and 7, as Debian packages them, which works without a GPU:
//! every builtin operation, and the compiler features that users' kernels need. Each test runs in its
//! own process, so that the loader finds the downloaded runtime.
//!
//! By default a part of the builtin operations is compiled; with `PYGPU_EVERY_KERNEL=1` all of them are,
//! which takes minutes. The code is cached below the target folder and checked each time.
//!
//! Without the runtime the tests are skipped, unless `PYGPU_REQUIRE_HIP_RUNTIME=1`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a module of another crate's tests unwraps, and a skip has its reason printed"
)]
#![cfg(target_os = "linux")]

mod code_object;
mod fetched;
#[path = "../../hal/codegen/tests/source/operations.rs"]
mod operations;

use code_object::{
    CodeObject, GFX90A, GFX942, GFX1030, GFX1100, MACHINE, SRAMECC_ANY, SRAMECC_ON, XNACK_ANY,
    XNACK_OFF,
};
use codegen::compile::CodeCache;
use codegen::compile::{Compilation, Compiled, Compiler, compile_cached};
use codegen::source::{HIPRTC_OPTIONS, unit};
use gpuarray_backend_hip::hiprtc::Hiprtc;
use gpuarray_backend_hip::metadata;
use hal::{Api, Error, ErrorKind, Result, Status};
use std::path::Path;

/// Runs a test in a separate process with each downloaded runtime.
fn with_runtime(test: &str) {
    fetched::with_runtimes(test, &fetched::GENERATIONS, |_| Vec::new());
}

/// Defines, for each pair, a test that runs an ignored test in a process.
macro_rules! in_processes {
    ($($test:ident => $process:ident;)*) => {$(
        #[test]
        fn $test() {
            with_runtime(stringify!($process));
        }
    )*};
}

in_processes! {
    failures_and_warnings_are_kept => keep_logs;
    targets_have_features => compile_with_features;
    a_target_that_the_compiler_does_not_know_is_an_error => refuse_targets;
    an_architecture_among_the_options_wins => compile_for_option;
    options_of_nvidias_compilers_do_what_they_do_there => translate_options;
    templates_are_made_for_their_names => make_templates;
    headers_are_found_when_they_are_asked_for => include_headers;
    the_identity_names_version_and_file => tell_identity;
}

/// Returns the hipRTC of the downloaded runtime, which the loader finds.
fn hiprtc() -> Hiprtc {
    Hiprtc::new(Some(fetched::runtime().into()))
}

/// Returns hipRTC's file name: the runtime, which contains the functions in ROCm 5 and 6, or
/// `libhiprtc.so`.
fn library() -> String {
    let file = hiprtc().file().expect("hipRTC");
    file.file_name().expect("a name").to_str().expect("text").to_owned()
}

/// A kernel without options, names or headers.
const KERNEL: Compilation<'static> = Compilation {
    text: "extern \"C\" __global__ void double_all(float *a) { a[threadIdx.x] *= 2; }",
    name: "kernel.cu",
    target: "gfx90a",
    options: &[],
    names: &[],
    headers: false,
};

fn refused(result: Result<Compiled>) -> Error {
    result.map(|it| it.code.len()).expect_err("it does not compile")
}

#[test]
fn builtin_operations_compile_for_wavefronts_of_64() {
    fetched::with_runtimes("compile_all_for_wavefronts_of_64", &["5", "7"], |_| Vec::new());
}

#[test]
#[ignore = "a process of builtin_operations_compile_for_wavefronts_of_64"]
fn compile_all_for_wavefronts_of_64() {
    match fetched::generation().as_str() {
        "5" => compile_all("gfx90a", GFX90A, 64),
        _ => compile_all("gfx942", GFX942, 64),
    }
}

#[test]
fn builtin_operations_compile_for_wavefronts_of_32() {
    fetched::with_runtimes("compile_all_for_wavefronts_of_32", &["5", "6"], |_| Vec::new());
}

#[test]
#[ignore = "a process of builtin_operations_compile_for_wavefronts_of_32"]
fn compile_all_for_wavefronts_of_32() {
    match fetched::generation().as_str() {
        "5" => compile_all("gfx1030", GFX1030, 32),
        _ => compile_all("gfx1100", GFX1100, 32),
    }
}

fn compile_all(target: &str, machine: u32, wavefront: u64) {
    let hiprtc = hiprtc();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hip-code").join(target);
    let cache = CodeCache::new(folder, 1 << 30);
    let plans = operations::plans();
    let mut kernels = 0;
    let mut faults = Vec::new();
    for part in plans.chunks(50) {
        let text = unit(part.iter().map(|(spec, _)| spec.clone()));
        let options = HIPRTC_OPTIONS;
        let unit = Compilation { text: &text, name: "unit.cu", target, options, ..KERNEL };
        let compiled = compile_cached(&hiprtc, &cache, &unit).expect(target);
        assert_eq!(compiled.log, "");
        let object = CodeObject::parse(&compiled.code);
        let told = metadata::parameters(&compiled.code, target).expect("parameters");
        assert_eq!(told.len(), object.kernels.len());
        for (name, kernel) in &object.kernels {
            let own = told[name].iter().map(|it| (it.offset as u64, it.size as u64));
            assert!(own.eq(kernel.arguments.iter().map(|it| (it.offset, it.size))), "{name}");
        }
        assert_eq!(object.flags & MACHINE, machine);
        assert_eq!(object.target, format!("amdgcn-amd-amdhsa--{target}"));
        for (_, plan) in part {
            kernels += object.check_kernels(plan, wavefront);
        }
        faults.extend(object.registers_that_do_not_suffice());
        let names: usize = part.iter().map(|(spec, _)| spec.kernel_names().len()).sum();
        assert_eq!(object.kernels.len(), names);
    }
    assert!(kernels >= plans.len(), "{kernels}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
#[ignore = "a process of failures_and_warnings_are_kept"]
fn keep_logs() {
    let hiprtc = hiprtc();
    let text = "__global__ void broken() {\n  undeclared = 1;\n}\n";
    let error = refused(hiprtc.compile(&Compilation { text, ..KERNEL }));
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert_eq!(error.status(), Status::new(Api::Hiprtc, 6));
    assert_eq!(error.call(), "hiprtcCompileProgram");
    assert!(error.detail().starts_with("kernel.cu:2:3: error: "), "{error}");
    assert!(error.detail().contains("undeclared identifier 'undeclared'"), "{error}");
    let error = refused(hiprtc.compile(&Compilation { options: &["--bogus"], ..KERNEL }));
    assert!(error.detail().contains("--bogus"), "{error}");
    let text = &format!("#warning mind the gap\n{}", KERNEL.text);
    let compiled = hiprtc.compile(&Compilation { text, ..KERNEL }).expect("it compiles");
    assert!(compiled.log.starts_with("kernel.cu:1:2: warning: mind the gap"), "{}", compiled.log);
    let error = refused(hiprtc.compile(&Compilation { text: "a\0b", ..KERNEL }));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
#[ignore = "a process of targets_have_features"]
fn compile_with_features() {
    let hiprtc = hiprtc();
    for (target, machine, features) in [
        ("gfx90a", GFX90A, XNACK_ANY | SRAMECC_ANY),
        ("gfx90a:sramecc+:xnack-", GFX90A, XNACK_OFF | SRAMECC_ON),
        ("gfx1030", GFX1030, 0),
    ] {
        let compiled = hiprtc.compile(&Compilation { target, ..KERNEL }).expect(target);
        let object = CodeObject::parse(&compiled.code);
        assert_eq!(object.flags, machine | features, "{target}: {:#x}", object.flags);
        let kernel = &object.kernels["double_all"];
        assert_eq!(kernel.arguments.len(), 1, "{kernel:?}");
        assert_eq!((kernel.arguments[0].offset, kernel.arguments[0].size), (0, 8));
    }
}

#[test]
#[ignore = "a process of a_target_that_the_compiler_does_not_know_is_an_error"]
fn refuse_targets() {
    let hiprtc = hiprtc();
    // hipRTC of ROCm 5 aborts the process for each of these targets. It does not support gfx1100.
    let of_later = (fetched::generation() == "5").then_some("gfx1100");
    for target in ["gfx9000", "gfx90a:foo+", "gfx1030:xnack+"].into_iter().chain(of_later) {
        let error = refused(hiprtc.compile(&Compilation { target, ..KERNEL }));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.detail().contains(&format!("no code for {target}")), "{error}");
        assert!(error.detail().contains(&library()), "{error}");
        let option = format!("--offload-arch={target}");
        let error = refused(hiprtc.compile(&Compilation { options: &[&option], ..KERNEL }));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    let error = refused(hiprtc.compile(&Compilation { target: "sm_90", ..KERNEL }));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
#[ignore = "a process of an_architecture_among_the_options_wins"]
fn compile_for_option() {
    let hiprtc = hiprtc();
    for options in [
        &["--offload-arch=gfx1030"][..],
        &["--gpu-architecture=gfx1030"],
        &["-arch=gfx1030"],
        &["-arch", "gfx1030"],
    ] {
        let compiled = hiprtc.compile(&Compilation { options, ..KERNEL });
        let object = CodeObject::parse(&compiled.expect(options[0]).code);
        assert_eq!(object.flags & MACHINE, GFX1030);
    }
    // NVIDIA architectures in a program's options do not change the target.
    let compiled = hiprtc.compile(&Compilation { options: &["-arch=sm_90"], ..KERNEL });
    let object = CodeObject::parse(&compiled.expect("the device's own").code);
    assert_eq!(object.flags & MACHINE, GFX90A);
    for (option, kind) in [
        ("-arch=gfx9000", ErrorKind::Unsupported),
        ("--offload-arch=compute_90", ErrorKind::InvalidArgument),
    ] {
        let error = refused(hiprtc.compile(&Compilation { options: &[option], ..KERNEL }));
        assert_eq!(error.kind(), kind, "{error}");
        let (_, target) = option.split_once('=').expect("a value");
        assert!(error.detail().contains(target), "{error}");
    }
}

/// Compiles a text, which must not cause warnings, and returns the code.
fn code(text: &str, options: &[&str]) -> Vec<u8> {
    let compiled = hiprtc().compile(&Compilation { text, options, ..KERNEL });
    let compiled = compiled.unwrap_or_else(|error| panic!("{options:?}: {error}"));
    assert_eq!(compiled.log, "", "{options:?}");
    assert!(!CodeObject::parse(&compiled.code).kernels.is_empty(), "{options:?}");
    compiled.code
}

#[test]
#[ignore = "a process of options_of_nvidias_compilers_do_what_they_do_there"]
fn translate_options() {
    let kernel = |body: &str| {
        format!("extern \"C\" __global__ void k(float *a, float b, float c) {{ {body} }}")
    };
    // Contraction; fast functions that respect NaN; flushing of subnormal numbers.
    let fused = kernel("*a = *a * b + c;");
    let [plain, fast, exact] =
        [&[][..], &["-fmad=true"], &["--fmad=false"]].map(|it| code(&fused, it));
    assert!(plain == fast && plain != exact);
    let divided = kernel("*a = b / c;");
    assert_ne!(code(&divided, &[]), code(&divided, &["-use_fast_math"]));
    let is_number = kernel("*a = b == b;");
    assert_eq!(code(&is_number, &[]), code(&is_number, &["--use_fast_math"]));
    assert_ne!(code(&is_number, &[]), code(&is_number, &["-ffast-math"]));
    let [kept, flushed] = ["-ftz=false", "--ftz=true"].map(|it| code(&fused, &[it]));
    assert!(plain == kept && plain != flushed);
    // Line tables, and debug information with variables.
    let [none, lines, debug] =
        [&[][..], &["-lineinfo"], &["-G"]].map(|it| code(KERNEL.text, it).len());
    assert!(none < lines && lines < debug, "{none} {lines} {debug}");
    assert_eq!(code(KERNEL.text, &["--generate-line-info"]).len(), lines);
    assert_eq!(code(KERNEL.text, &["--device-debug"]).len(), debug);
    // hipRTC cannot link, so both forms give the same code.
    for options in [&["-rdc=true"][..], &["-rdc=false"], &["--relocatable-device-code", "true"]] {
        code(KERNEL.text, options);
    }
    // Variables without a qualifier become device variables, whatever else the text declares; lines keep
    // their numbers.
    let text = "int of_device = 4; static const int fixed = 2; __constant__ int table[4] = {1};
        extern __shared__ int shared[];
        extern \"C\" __global__ void k(int *a) {
            static int kept = 3; shared[0] = table[1]; *a = of_device + fixed + kept + shared[0]; }";
    let object = code(text, &["-default-device"]);
    assert!(object.windows(10).any(|it| it == b"of_device\0"), "the variable has a symbol");
    let wrong = "int a;\nint b = missing;\n__global__ void k() { a = 1; }";
    let options = &["--device-as-default-execution-space"];
    let error = refused(hiprtc().compile(&Compilation { text: wrong, options, ..KERNEL }));
    assert!(error.detail().contains("kernel.cu:2:9: error"), "{error}");
    let error = refused(hiprtc().compile(&Compilation { text, ..KERNEL }));
    assert!(error.detail().contains("of_device"), "{error}");
    // The language standard, and options of the preprocessor.
    let folder = std::env::temp_dir().join(format!("pygpu-hip-options-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("own.h"), "struct own { float value; };").expect("a header");
    let text = "#if __cplusplus != 201703L || N != 4 || defined(M)
        #error not this
        #endif
        extern \"C\" __global__ void k(own *a) { a->value = N; }";
    let include = format!("--include-path={}", folder.display());
    let all = ["--std=c++17", "--define-macro=N=4", "-DM", "--undefine-macro=M", &include];
    let first = code(text, &[&all[..], &["--pre-include=own.h"]].concat());
    assert_eq!(first, code(text, &[&all[..], &["--pre-include", "own.h"]].concat()));
    std::fs::remove_dir_all(folder).expect("the folder");
    // Options for NVIDIA's own phases change nothing.
    for option in ["-maxrregcount=32", "--ptxas-options=-v"] {
        assert!(code(&fused, &[option]) == plain, "{option}");
    }
    // hipRTC names options that it does not support.
    for option in ["-fmad=maybe", "-rdc=maybe"] {
        let error = refused(hiprtc().compile(&Compilation { options: &[option], ..KERNEL }));
        assert!(error.detail().contains(option), "{error}");
    }
}

#[test]
#[ignore = "a process of templates_are_made_for_their_names"]
fn make_templates() {
    let hiprtc = hiprtc();
    let text = "namespace n { template <class T> __global__ void scale(T *a, T b) { *a *= b; } }
        __constant__ int table[4];
        extern \"C\" __global__ void read(int *a) { a[threadIdx.x] = table[threadIdx.x]; }";
    let names = ["n::scale<float>", "n::scale<unsigned char>", "&table"];
    let compilation = Compilation { text, names: &names, ..KERNEL };
    let Compiled { code, lowered, .. } = hiprtc.compile(&compilation).expect("it compiles");
    assert_eq!(lowered, ["_ZN1n5scaleIfEEvPT_S1_", "_ZN1n5scaleIhEEvPT_S1_", "table"]);
    let object = CodeObject::parse(&code);
    for name in &lowered[..2] {
        assert_eq!(object.kernels[name].arguments.len(), 2, "{name}");
    }
    assert!(object.symbols.contains("table"), "{:?}", object.symbols);
    let wrong = Compilation { names: &["n::shift<float>"], ..compilation };
    let error = refused(hiprtc.compile(&wrong));
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.detail().contains("shift"), "{error}");
}

#[test]
#[ignore = "a process of headers_are_found_when_they_are_asked_for"]
fn include_headers() {
    let root = std::env::temp_dir().join(format!("pygpu-hip-include-{}", std::process::id()));
    std::fs::create_dir_all(root.join("include/hip")).expect("folders");
    // The file that identifies a folder with HIP's headers, and another one.
    for name in ["hip/hip_fp16.h", "own.h"] {
        let text = "#pragma once\nstruct own { float value; };\n";
        std::fs::write(root.join("include").join(name), text).expect("a header");
    }
    // An installation with the runtime in it, from which nothing is loaded.
    let runtime = root.join("lib").join(fetched::runtime());
    std::fs::create_dir_all(root.join("lib")).expect("a folder");
    let real = fetched::folder(&fetched::generation()).join("lib");
    for name in [fetched::runtime(), format!("libhiprtc.so.{}", fetched::generation())] {
        if let Ok(file) = real.join(&name).canonicalize() {
            std::os::unix::fs::symlink(file, root.join("lib").join(name)).expect("a link");
        }
    }
    let hiprtc = Hiprtc::new(Some(runtime));
    let text = "#include <own.h>
        extern \"C\" __global__ void twice(own *a) { a[0].value *= 2; }";
    let compilation = Compilation { text, headers: true, ..KERNEL };
    let compiled = hiprtc.compile(&compilation);
    let without = hiprtc.compile(&Compilation { headers: false, ..compilation });
    std::fs::remove_dir_all(root).expect("the folder");
    let code = compiled.expect("the header is found").code;
    assert!(CodeObject::parse(&code).kernels.contains_key("twice"));
    assert!(refused(without).detail().contains("own.h"));
    // hipRTC has its own binary16 type.
    let text = "extern \"C\" __global__ void twice(__half *a) { a[0] = a[0] + a[0]; }";
    hiprtc.compile(&Compilation { text, headers: true, ..KERNEL }).expect("it is there");
}

#[test]
#[ignore = "a process of the_identity_names_version_and_file"]
fn tell_identity() {
    let hiprtc = hiprtc();
    let identity = hiprtc.identity("gfx90a").expect("hipRTC");
    let file = hiprtc.file().expect("hipRTC");
    let generation = fetched::generation();
    let names = [fetched::runtime(), format!("libhiprtc.so.{generation}")];
    assert!(file.is_absolute() && names.contains(&library()), "{file:?}");
    assert_eq!(library() == names[0], ["5", "6"].contains(&generation.as_str()), "{file:?}");
    let real = file.canonicalize().expect("a file");
    let name = real.file_name().unwrap().to_str().expect("text");
    let comgr = if fetched::generation() == "5" { "comgr 2." } else { "comgr 3." };
    assert!(identity.contains(name) && identity.contains(comgr), "{identity}");
    assert!(identity.starts_with("hipRTC "), "{identity}");
    let error = hiprtc.identity("compute_90").expect_err("another vendor's");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_compiler_that_is_not_there_is_unsupported() {
    let test = "find_no_compiler";
    let nowhere = [("PYGPU_HIPRTC", "/nowhere/libhiprtc.so.7")];
    fetched::in_process(test, Path::new("/nowhere"), &nowhere);
    fetched::in_process(test, Path::new("/nowhere"), &[("ROCM_PATH", "/nowhere")]);
}

#[test]
#[ignore = "a process of a_compiler_that_is_not_there_is_unsupported"]
fn find_no_compiler() {
    let hiprtc = Hiprtc::new(None);
    let Err(error) = hiprtc.file() else {
        assert!(std::env::var_os("PYGPU_HIPRTC").is_none());
        println!("this machine has ROCm");
        return;
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let expected: &[&str] = match std::env::var_os("PYGPU_HIPRTC") {
        Some(_) => &["PYGPU_HIPRTC is \"/nowhere/libhiprtc.so.7\""],
        None => &["libhiprtc.so, libhiprtc.so.7, libhiprtc.so.6", "/nowhere/lib", "/opt/rocm/lib"],
    };
    for part in expected {
        assert!(error.detail().contains(part), "{error}");
    }
    // hipRTC is searched for each time: a failure is not cached.
    assert!(hiprtc.compile(&KERNEL).is_err());
}
