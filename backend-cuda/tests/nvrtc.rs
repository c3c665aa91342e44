//! Tests with the real NVRTC, which works without a GPU: a part of the builtin operations (all of them,
//! which takes minutes, with `PYGPU_EVERY_KERNEL=1`), and the compiler features that users' kernels need.
//!
//! Without NVRTC the tests are skipped, unless `PYGPU_REQUIRE_NVRTC=1`. Point
//! `PYGPU_NVRTC_PATH` at the site-packages of a Python that has `nvidia-cuda-nvrtc-cu12`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a module of another crate's tests unwraps, and a skip has its reason printed"
)]

#[path = "../../hal/codegen/tests/source/operations.rs"]
mod operations;

use codegen::compile::CodeCache;
use codegen::compile::format::{Format, examine};
use codegen::compile::{Compilation, Compiled, Compiler, compile_cached};
use codegen::source::{NVRTC_OPTIONS, unit};
use gpuarray_backend_cuda::nvrtc::Nvrtc;
use hal::{Api, ErrorKind, Status};
use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns this machine's NVRTC; `None`, with the reason printed, if there is none.
fn nvrtc() -> Option<Nvrtc> {
    let nvrtc = Nvrtc::new(0);
    match nvrtc.identity("sm_90") {
        Ok(_) => Some(nvrtc),
        Err(error) => {
            let required = std::env::var("PYGPU_REQUIRE_NVRTC").is_ok_and(|it| it == "1");
            assert!(!required, "PYGPU_REQUIRE_NVRTC is 1, but {error}");
            let _ = writeln!(std::io::stderr(), "skipped: {error}");
            None
        }
    }
}

/// A kernel without options, names or headers.
const KERNEL: Compilation<'static> = Compilation {
    text: "extern \"C\" __global__ void double_all(float *a) { a[threadIdx.x] *= 2; }",
    name: "kernel.cu",
    target: "sm_80",
    options: &[],
    names: &[],
    headers: false,
};

/// Returns true for an ELF file whose machine is EM_CUDA.
fn is_cubin(code: &[u8]) -> bool {
    code.starts_with(b"\x7fELF") && code.get(18..20) == Some(&190_u16.to_le_bytes())
}

/// Returns true if `bytes` contains `part`.
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns PTX as text; it ends with a zero byte, as the driver requires.
fn ptx(compiled: &Compiled) -> &str {
    let text = compiled.code.strip_suffix(&[0]).expect("a zero at the end");
    std::str::from_utf8(text).expect("text")
}

#[test]
fn builtin_operations_compile() {
    let Some(nvrtc) = nvrtc() else { return };
    // Compiled code is cached below the target folder, by source and compiler.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-code");
    let cache = CodeCache::new(folder, 1 << 30);
    let plans = operations::plans();
    let parts: Vec<_> = ["sm_75", "sm_90"]
        .into_iter()
        .flat_map(|target| plans.chunks(50).map(move |part| (target, part)))
        .collect();
    let next = AtomicUsize::new(0);
    let compile = || {
        while let Some((target, part)) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = unit(part.iter().map(|(spec, _)| spec.clone()));
            let options = NVRTC_OPTIONS;
            let compilation =
                Compilation { text: &text, name: "unit.cu", target, options, ..KERNEL };
            let code = compile_cached(&nvrtc, &cache, &compilation).expect(target).code;
            assert!(is_cubin(&code), "{target}: {:?}", &code[..20]);
            assert_eq!(examine(&code).expect(target), Format::Elf);
            let sections: HashSet<&[u8]> = code.split(|byte| *byte == 0).collect();
            for name in part.iter().flat_map(|(spec, _)| spec.kernel_names()) {
                assert!(sections.contains(format!(".text.{name}").as_bytes()), "{name}");
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(compile);
        }
    });
}

/// Compares the CUDA C headers for the CPU with NVRTC: NVRTC accepts the same functions with the same
/// types, and the kernels that the Python tests run on every backend. Kernels that include the vendor's
/// own headers are left out, because NVRTC does not have them here.
#[test]
fn what_runs_on_the_cpu_compiles() {
    let Some(nvrtc) = nvrtc() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let kernels = std::fs::read_dir(root.join("tests/python/kernels/classic")).expect("a folder");
    let mut paths: Vec<_> = kernels.map(|entry| entry.expect("a file").path()).collect();
    paths.push(root.join("backend-host/executor/tests/kernels/headers/signatures.cu"));
    let include = root.join("cuda-c/include");
    let headers = [include.join("gpu"), include].map(|it| format!("-I{}", it.display()));
    let mut compiled = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a text");
        if text.contains("#include <cu") || text.contains("#include <cooperative_groups") {
            continue;
        }
        let is_program = text.contains("extern \"C\"") || !text.contains("__global__");
        let text = match is_program {
            true => text,
            false => format!("extern \"C\" {{\n{text}\n}}"),
        };
        let options = &headers.each_ref().map(String::as_str);
        let compilation = Compilation { text: &text, target: "sm_90", options, ..KERNEL };
        if let Err(error) = nvrtc.compile(&compilation) {
            panic!("{}: {error}", path.display());
        }
        compiled += 1;
    }
    assert!(compiled >= 45, "{compiled}");
}

#[test]
fn the_log_of_a_failure_is_the_detail() {
    let Some(nvrtc) = nvrtc() else { return };
    let text = "__global__ void broken() {\n  undeclared = 1;\n}\n";
    let error = nvrtc.compile(&Compilation { text, ..KERNEL }).expect_err("it is broken");
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert_eq!(error.status(), Status::new(Api::Nvrtc, 6));
    assert_eq!(error.call(), "nvrtcCompileProgram");
    assert!(error.detail().starts_with("kernel.cu(2): error: "), "{error}");
    assert!(error.detail().contains("\"undeclared\" is undefined"), "{error}");
    assert_eq!(error.detail(), error.detail().trim());
    let error = nvrtc.compile(&Compilation { options: &["--bogus"], ..KERNEL });
    let error = error.expect_err("there is no such option");
    assert_eq!(error.status(), Status::new(Api::Nvrtc, 5));
    assert!(error.detail().contains("--bogus"), "{error}");
}

#[test]
fn warnings_are_kept() {
    let Some(nvrtc) = nvrtc() else { return };
    let text = &format!("#warning mind the gap\n{}", KERNEL.text);
    let compiled = nvrtc.compile(&Compilation { text, ..KERNEL }).expect("it compiles");
    assert!(compiled.log.starts_with("kernel.cu(1): warning"), "{}", compiled.log);
    assert!(compiled.log.contains("mind the gap"), "{}", compiled.log);
}

#[test]
fn an_architecture_too_new_is_ptx_and_one_too_old_an_error() {
    let Some(nvrtc) = nvrtc() else { return };
    let compile = |target| nvrtc.compile(&Compilation { target, ..KERNEL });
    let compiled = compile("sm_999").expect("PTX");
    let text = ptx(&compiled);
    let target = text.lines().find_map(|line| line.strip_prefix(".target sm_")).expect("a target");
    let target: u32 = target.parse().expect("a number");
    assert!((75..999).contains(&target), "{target}");
    assert!(text.contains(".entry double_all("), "{text}");
    let error = compile("sm_10").expect_err("older than any");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.detail().contains("not sm_10"), "{error}");
    let error = compile("gfx90a").expect_err("another vendor's");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn an_architecture_among_the_options_wins() {
    let Some(nvrtc) = nvrtc() else { return };
    let compile = |target, options: &[&str]| {
        nvrtc.compile(&Compilation { target, options, ..KERNEL }).expect("it compiles")
    };
    assert!(ptx(&compile("sm_90", &["-arch=compute_80"])).contains(".target sm_80"));
    let expected = compile("sm_80", &[]);
    assert!(is_cubin(&expected.code));
    for options in [&["--gpu-architecture=sm_80"][..], &["-arch", "sm_80"]] {
        assert_eq!(compile("sm_90", options), expected, "{options:?}");
    }
    assert_ne!(compile("sm_90", &[]), expected);
}

#[test]
fn templates_are_made_for_their_names() {
    let Some(nvrtc) = nvrtc() else { return };
    let text = "namespace n { template <class T> __global__ void scale(T *a, T b) { *a *= b; } }
        __constant__ int table[4];";
    let names = ["n::scale<float>", "n::scale<unsigned char>", "&table"];
    let compilation = Compilation { text, names: &names, ..KERNEL };
    let Compiled { code, lowered, .. } = nvrtc.compile(&compilation).expect("it compiles");
    assert_eq!(lowered, ["_ZN1n5scaleIfEEvPT_S1_", "_ZN1n5scaleIhEEvPT_S1_", "table"]);
    for name in &lowered {
        assert!(contains(&code, name.as_bytes()), "{name}");
    }
    let wrong = Compilation { names: &["n::shift<float>"], ..compilation };
    let error = nvrtc.compile(&wrong).expect_err("there is no such template");
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.detail().contains("shift"), "{error}");
}

#[test]
fn strings_with_zeros_are_refused() {
    let Some(nvrtc) = nvrtc() else { return };
    for (what, compilation) in [
        ("the text", Compilation { text: "a\0b", ..KERNEL }),
        ("the name", Compilation { name: "a\0b", ..KERNEL }),
        ("an option", Compilation { options: &["-DX", "a\0b"], ..KERNEL }),
        ("a name expression", Compilation { names: &["a\0b"], ..KERNEL }),
    ] {
        let error = nvrtc.compile(&compilation).expect_err("a zero");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let expected = format!("{what} has a zero byte at 1; allowed are none");
        assert_eq!(error.detail(), expected);
    }
}

#[test]
fn without_code_for_the_driver_it_is_unsupported() {
    let Some(nvrtc) = nvrtc() else { return };
    let error = nvrtc.compile(&Compilation { options: &["-dlto"], ..KERNEL });
    let error = error.expect_err("code for a linker only");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.detail().contains("-dlto"), "{error}");
}

#[test]
fn headers_are_found_when_they_are_asked_for() {
    if nvrtc().is_none() {
        return;
    }
    let root = std::env::temp_dir().join(format!("pygpu-headers-{}", std::process::id()));
    std::fs::create_dir_all(root.join("include/cccl")).expect("folders");
    // If NVRTC's own headers were installed next to it, they would come first and declare this type also.
    let text = "#pragma once\nstruct __half { unsigned short bits; };\n";
    std::fs::write(root.join("include/cuda_fp16.h"), text).expect("a header");
    std::fs::write(root.join("include/cccl/own.h"), "struct own {};\n").expect("a header");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "includes_a_header", "--ignored"])
        .env("CUDA_HOME", &root)
        .output()
        .expect("a process");
    std::fs::remove_dir_all(root).expect("the folder");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "a process of headers_are_found_when_they_are_asked_for"]
fn includes_a_header() {
    let nvrtc = nvrtc().expect("it was found before");
    let text = "#include <cuda_fp16.h>\n__global__ void k(__half *a) { a[1] = a[0]; }";
    let compilation = Compilation { text, headers: true, ..KERNEL };
    nvrtc.compile(&compilation).expect("the header is found");
    let error = nvrtc.compile(&Compilation { headers: false, ..compilation });
    let error = error.expect_err("the header is not found");
    assert!(error.detail().contains("cuda_fp16.h"), "{error}");
}
