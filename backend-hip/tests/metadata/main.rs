//! Reads kernels' parameters from code objects: from the real hipRTC and clang, damaged ones, and
//! made-up ones. Launches that contradict the parameters are refused.
//!
//! Tests that need hipRTC or clang are skipped without it, with the reason printed, unless
//! `PYGPU_REQUIRE_HIP_RUNTIME=1` or `PYGPU_REQUIRE_CLANG=1`.

#![allow(clippy::print_stderr, reason = "a skip has its reason printed")]
#![cfg(target_os = "linux")]

#[path = "../fetched/mod.rs"]
mod fetched;
mod launches;
mod notes;

use codegen::compile::{Compilation, Compiler};
use gpuarray_backend_hip::hiprtc::Hiprtc;
use gpuarray_backend_hip::metadata::parameters;
use notes::bundle;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text includes no header, so that each compiler accepts it.
const KERNELS: &str = "
    #define KERNEL __attribute__((global)) void
    struct record { double a; int b; float c; char d; };
    struct odd { char a[3]; };
    extern \"C\" KERNEL nothing() {}
    extern \"C\" KERNEL axpy(float a, const float *x, float *y, int n) { *y = a * *x + n; }
    extern \"C\" KERNEL by_value(double *out, record r, int n) { *out = r.a + r.d + n; }
    extern \"C\" KERNEL mixed(bool a, short b, double c, signed char d, odd e, long long *out) {
        *out = a + b + (long long)c + d + e.a[2];
    }
    extern \"C\" KERNEL implicit(char *out, int n) {
        out[n] = ((__attribute__((address_space(4))) char *)__builtin_amdgcn_implicitarg_ptr())[n];
    }
    namespace n { template <class T> KERNEL scale(T *a, T b) { *a *= b; } }
    template KERNEL n::scale<double>(double *, double);
    template KERNEL n::scale<signed char>(signed char *, signed char);";

type Places = BTreeMap<String, Vec<(usize, usize)>>;

/// Returns each parameter's offset and size, by C's rules for a struct of the parameters.
fn declared() -> Places {
    let all: [(&str, &[(usize, usize)]); 7] = [
        ("nothing", &[]),
        ("axpy", &[(0, 4), (8, 8), (16, 8), (24, 4)]),
        ("by_value", &[(0, 8), (8, 24), (32, 4)]),
        ("mixed", &[(0, 1), (2, 2), (8, 8), (16, 1), (17, 3), (24, 8)]),
        ("implicit", &[(0, 8), (8, 4)]),
        ("_ZN1n5scaleIdEEvPT_S1_", &[(0, 8), (8, 8)]),
        ("_ZN1n5scaleIaEEvPT_S1_", &[(0, 8), (8, 1)]),
    ];
    all.into_iter().map(|(name, places)| (name.to_owned(), places.to_vec())).collect()
}

fn places(image: &[u8], target: &str) -> Option<Places> {
    let all = parameters(image, target)?;
    let pairs = |(name, all): (String, Vec<hal::Parameter>)| {
        (name, all.iter().map(|it| (it.offset, it.size)).collect())
    };
    Some(all.into_iter().map(pairs).collect())
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|it| it == text.as_bytes())
}

/// Returns the code of `KERNELS` from the downloaded hipRTC.
fn compiled(target: &str) -> Vec<u8> {
    let name = "kernels.cu";
    let compilation = Compilation { text: KERNELS, name, target, ..Compilation::default() };
    let hiprtc = Hiprtc::new(Some(fetched::runtime().into()));
    hiprtc.compile(&compilation).expect(target).code
}

fn with_runtime(test: &str) {
    fetched::with_runtimes(test, &fetched::GENERATIONS, |_| Vec::new());
}

#[test]
fn code_objects_of_hiprtc_tell_what_was_declared() {
    with_runtime("read_code_objects");
}

#[test]
#[ignore = "a process of code_objects_of_hiprtc_tell_what_was_declared"]
fn read_code_objects() {
    let (large, small) = (compiled("gfx90a"), compiled("gfx1030"));
    assert!(has(&large, "hidden_global_offset_x"));
    for code in [&large, &small] {
        assert_eq!(places(code, "gfx90a"), Some(declared()));
        // The code may start at any address.
        let shifted = [&[0; 3], &code[..]].concat();
        assert_eq!(places(&shifted[3..], "gfx90a"), Some(declared()));
    }
    let bundle = bundle(&[
        ("host-x86_64-unknown-linux--", b""),
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", &small),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", &large),
    ]);
    for device in ["gfx1030", "gfx90a:sramecc+:xnack-"] {
        assert_eq!(places(&bundle, device), Some(declared()), "{device}");
    }
    assert_eq!(places(&bundle, "gfx90a:sramecc+:xnack+"), None);
}

#[test]
fn code_objects_of_clang_tell_what_was_declared() {
    let folder = Scratch::new("clang");
    let source = folder.0.join("kernels.hip");
    std::fs::write(&source, KERNELS).expect("the source");
    let found = fetched::fetched(&["clang"], "clang", "PYGPU_REQUIRE_CLANG");
    let Some(compiler) = found.map(|it| it.join("llvm/bin/clang")) else { return };
    for version in [4, 5, 6] {
        let code = clang(&compiler, &source, version);
        assert!(has(&code, "hidden_"));
        assert_eq!(places(&code, "gfx90a"), Some(declared()), "version {version}");
    }
}

fn clang(compiler: &Path, source: &Path, version: u32) -> Vec<u8> {
    let output = source.with_file_name("kernels.co");
    let made = Command::new(compiler)
        .args(["-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-O1", "-w"])
        .args(["--no-gpu-bundle-output", "-nogpulib", "-nogpuinc"])
        .arg(format!("-mcode-object-version={version}"))
        .args([source, Path::new("-o"), &output])
        .output()
        .expect("a process");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::read(&output).expect("the code")
}

#[test]
fn damaged_code_objects_are_harmless() {
    with_runtime("read_damaged");
}

#[test]
#[ignore = "a process of damaged_code_objects_are_harmless"]
fn read_damaged() {
    let code = compiled("gfx90a");
    let bundle = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx90a", &code)]);
    let (mut told, mut refused) = (0, 0);
    let mut read = |bytes: &[u8]| {
        let before = LARGEST.replace(0);
        match parameters(bytes, "gfx90a") {
            Some(_) => told += 1,
            None => refused += 1,
        }
        let largest = LARGEST.replace(before);
        assert!(largest <= 4 * bytes.len(), "{largest} bytes for {}", bytes.len());
    };
    // `make test-all` damages every byte, other runs one byte in five.
    let step = if std::env::var_os("PYGPU_TEST_ALL").is_some() { 1 } else { 5 };
    for whole in [&code, &bundle] {
        for end in (0..whole.len()).step_by(step) {
            read(&whole[..end]);
        }
        let mut damaged = whole.clone();
        for place in (0..whole.len()).step_by(step) {
            for byte in [0x00, 0x01, 0x7f, 0x80, 0xc1, 0xdb, 0xdd, 0xdf, 0xff] {
                damaged[place] = byte;
                read(&damaged);
            }
            damaged[place] = whole[place];
        }
        // Several damaged bytes, most of them in the metadata.
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..20_000 / step {
            let mut damaged = whole.clone();
            for _ in 0..1 + random(8) {
                let place = random(if round % 4 == 0 { whole.len() } else { 4096 });
                damaged[place] = random(256) as u8;
            }
            read(&damaged);
        }
    }
    assert!(told > 1000 && refused > 1000, "{told} {refused}");
}

/// A temporary folder, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let name = format!("pygpu-hip-metadata-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    /// The largest allocation that this thread has requested.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
