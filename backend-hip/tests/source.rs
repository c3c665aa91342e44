//! The source of builtin operations is valid for hipRTC with wavefronts of 32 and 64 threads. It uses
//! no CUDA-only features, and its mathematical functions are in AMD's device library.

#![allow(clippy::unwrap_used, reason = "a module of another crate's tests unwraps")]

#[path = "../../hal/codegen/tests/source/operations.rs"]
mod operations;

use codegen::source::unit;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The names that hipRTC defines for kernels without a header.
const LANGUAGE: [&str; 12] = [
    // The blocks of a scan exchange values through these, in whichever order the blocks run.
    "__ATOMIC_RELAXED",
    "__atomic_fetch_add",
    "__atomic_load_n",
    "__atomic_store_n",
    // A thread counts the true elements among 32 by itself.
    "__builtin_popcount",
    "__device__",
    "__forceinline__",
    "__global__",
    "__launch_bounds__",
    // A formula of long functions that a reduction combines is not repeated.
    "__noinline__",
    "__shared__",
    // All threads of a block wait for each other, in whichever wavefronts they are.
    "__syncthreads",
];

/// The lanes of scans exchange their sums with these, 32 lanes at a time: a whole wavefront, or half
/// of one.
const LANES: [&str; 5] = [
    "__ATOMIC_ACQUIRE",
    "__ATOMIC_RELEASE",
    "__builtin_amdgcn_ds_bpermute",
    "__builtin_amdgcn_fence",
    "__builtin_amdgcn_wave_barrier",
];

/// The source's own names for these 32 lanes, and the scope of their fence.
const NEIGHBOURS: [&str; 3] = ["warp", "warps", "wavefront"];

/// Returns all builtin operations after preprocessing with hipRTC's macros.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(preprocessed)
}

fn preprocessed() -> String {
    let mut seen = HashSet::new();
    let operations = operations::all();
    let specs = operations.iter().map(|operation| operations::plan(operation).spec().clone());
    let text = unit(specs.filter(|spec| seen.insert(spec.clone())));
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
    // AMD's compiler optimises less around this empty statement.
    let whole = text();
    let parts: Vec<_> = whole.split(r#"asm("" : "+v"(word));"#).collect();
    assert_eq!(parts.len(), 2);
    let text = parts.concat();
    let words: BTreeSet<&str> = text.split(|it| !is_word(it)).collect();
    // Names with two leading underscores belong to the compilers. The source uses only the language's,
    // and those that exchange values between lanes.
    let reserved: BTreeSet<_> = words.iter().filter(|it| it.starts_with("__")).copied().collect();
    assert_eq!(reserved, LANGUAGE.into_iter().chain(LANES).collect());
    for word in words.difference(&reserved).filter(|it| !NEIGHBOURS.contains(it)) {
        let lower = word.to_ascii_lowercase();
        for part in ["warp", "wave", "shfl", "ballot", "cuda", "nvvm", "ptx", "atomic"] {
            assert!(!lower.contains(part), "{word}");
        }
        // Without a barrier, threads would rely on running in lockstep.
        assert!(!["asm", "volatile"].contains(word), "{word}");
    }
    // Kernels read only the x components of these.
    for name in ["threadIdx", "blockIdx", "blockDim", "gridDim"] {
        for (at, _) in text.match_indices(name) {
            assert!(text[at + name.len()..].starts_with(".x"), "{}", &text[at..at + 40]);
        }
    }
}

#[test]
fn mathematics_is_the_device_librarys() {
    let text = text();
    // A function in the global namespace: `::` that follows neither a name nor the end of template
    // arguments.
    let free = text.match_indices("::").filter_map(|(at, _)| {
        let before = text[..at].trim_end().chars().next_back();
        let name: String = text[at + 2..].chars().take_while(|it| is_word(*it)).collect();
        before.is_none_or(|it| !is_word(it) && it != '>').then_some(name)
    });
    // `return ::name` is one as well.
    let returned = text.split("return ::").skip(1);
    let returned = returned.map(|it| it.chars().take_while(|it| is_word(*it)).collect());
    let used: BTreeSet<String> = free.chain(returned).collect();
    // Names in double precision. AMD's library has them as `__ocml_NAME_f64`, and HIP's own headers
    // give them these names. The suffix f selects single precision.
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
