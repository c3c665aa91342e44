//! The source of builtin operations, as hipRTC sees it: valid for wavefronts of 32 and of 64
//! threads, without what only CUDA has, and with the mathematics of AMD's device library.

#![allow(clippy::unwrap_used, reason = "a module of another crate's tests unwraps")]

#[path = "../../hal/codegen/tests/source/operations.rs"]
mod operations;

use codegen::source::unit;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// What the language has for kernels; hipRTC has it without a header.
const LANGUAGE: [&str; 11] = [
    // Words that the blocks of a scan share, whichever of them runs first.
    "__ATOMIC_RELAXED",
    "__atomic_fetch_add",
    "__atomic_load_n",
    "__atomic_store_n",
    // The true ones of 32 elements, whose bits a thread counts alone.
    "__builtin_popcount",
    "__device__",
    "__forceinline__",
    "__global__",
    "__launch_bounds__",
    "__shared__",
    // All threads of a block wait for each other, in whatever wavefronts they are.
    "__syncthreads",
];

/// What the lanes of scans exchange their sums with, 32 at a time: one wavefront, or half of one.
const LANES: [&str; 5] = [
    "__ATOMIC_ACQUIRE",
    "__ATOMIC_RELEASE",
    "__builtin_amdgcn_ds_bpermute",
    "__builtin_amdgcn_fence",
    "__builtin_amdgcn_wave_barrier",
];

/// Our names of these 32 neighbours, and the scope of their fence.
const NEIGHBOURS: [&str; 3] = ["warp", "warps", "wavefront"];

/// All builtin operations after preprocessing with the macros that hipRTC has.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(preprocessed)
}

fn preprocessed() -> String {
    let mut seen = HashSet::new();
    let operations = operations::all();
    let specs = operations.iter().map(|operation| operations::plan(operation).spec());
    let text = unit(specs.filter(|spec| seen.insert(*spec)));
    assert!(seen.len() > 1500 && text.contains("__CUDA_ARCH__"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hip-source.cpp");
    std::fs::write(&file, text).expect("a file");
    let keep = |name: &&str| format!("-D{name}={name}");
    let output = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".into()))
        .args([
            "-E",
            "-P",
            "-w",
            "-undef",
            "-D__HIP__=1",
            "-D__AMDGCN__=1",
            "-D__cplusplus=201402L",
        ])
        .args(LANGUAGE.iter().map(keep))
        .arg(&file)
        .output()
        .expect("a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn is_word(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

#[test]
fn nothing_depends_on_the_vendor_or_the_width_of_a_wavefront() {
    // An empty statement, by which AMD's compiler knows less of a value.
    let whole = text();
    let parts: Vec<_> = whole.split(r#"asm("" : "+v"(word));"#).collect();
    assert_eq!(parts.len(), 2);
    let text = parts.concat();
    let words: BTreeSet<&str> = text.split(|it| !is_word(it)).collect();
    // Names with two underscores in front are the compilers': the language's alone are used, and those
    // for exchanges of lanes.
    let reserved: BTreeSet<_> = words.iter().filter(|it| it.starts_with("__")).copied().collect();
    assert_eq!(reserved, LANGUAGE.into_iter().chain(LANES).collect());
    for word in words.difference(&reserved).filter(|it| !NEIGHBOURS.contains(it)) {
        let lower = word.to_ascii_lowercase();
        for part in ["warp", "wave", "shfl", "ballot", "cuda", "nvvm", "ptx", "atomic"] {
            assert!(!lower.contains(part), "{word}");
        }
        // Without a barrier, threads would rely on running in step.
        assert!(!["asm", "volatile"].contains(word), "{word}");
    }
    // What a kernel may ask of its place, in one dimension.
    for name in ["threadIdx", "blockIdx", "blockDim", "gridDim"] {
        for (at, _) in text.match_indices(name) {
            assert!(text[at + name.len()..].starts_with(".x"), "{}", &text[at..at + 40]);
        }
    }
}

#[test]
fn mathematics_is_the_device_librarys() {
    let text = text();
    // A function of no namespace: `::` that follows neither a name nor a template's end.
    let free = text.match_indices("::").filter_map(|(at, _)| {
        let before = text[..at].trim_end().chars().next_back();
        let name: String = text[at + 2..].chars().take_while(|it| is_word(*it)).collect();
        before.is_none_or(|it| !is_word(it) && it != '>').then_some(name)
    });
    // `return ::name` is one too.
    let returned = text.split("return ::").skip(1);
    let returned = returned.map(|it| it.chars().take_while(|it| is_word(*it)).collect());
    let used: BTreeSet<String> = free.chain(returned).collect();
    // Those of double precision that AMD's library has as `__ocml_NAME_f64`, which HIP's own
    // headers give these names; with an f behind, those of single precision.
    let library = [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "fabs",
        "floor",
        "fma",
        "fmod",
        "hypot",
        "ldexp",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "nextafter",
        "pow",
        "rint",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "tgamma",
        "trunc",
    ];
    let expected: BTreeSet<String> =
        library.iter().flat_map(|name| [(*name).to_owned(), format!("{name}f")]).collect();
    assert_eq!(used, expected);
}
