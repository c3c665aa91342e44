//! The compilers of programs. Defines the macros by which a CUDA program recognises its compiler, for compilers that lack
//! them. PyCUDA's programs
//! are compiled by nvcc, which defines `__NVCC__`; AMD's compiler defines none of CUDA's.

use super::amd::is_of_hip;
use super::code::{after, word_set, words};
use std::collections::HashSet;

/// The compiler that a text is adapted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// NVIDIA's run-time compiler.
    Nvrtc,
    /// AMD's run-time compiler.
    Hiprtc,
    /// The C++ compiler of the host.
    Host,
}

const NVCC: &str = "__NVCC__";

/// Macros of CUDA's compilers. The architecture is the first whose warp functions take masks, as the functions here do;
/// a newer one would make programs choose newer instructions.
const OF_CUDA: &[(&str, u32)] = &[
    ("__CUDACC__", 1),
    ("__CUDACC_RTC__", 1),
    ("__CUDACC_VER_MAJOR__", 12),
    ("__CUDACC_VER_MINOR__", 8),
    ("__CUDACC_VER_BUILD__", 0),
    ("CUDART_VERSION", 12080),
    ("__CUDA_ARCH__", 700),
];

/// Returns true for a macro by which programs recognise their compiler.
pub(super) fn is_asked_for(name: &str) -> bool {
    name == NVCC || name == "CUDA_VERSION" || OF_CUDA.iter().any(|it| it.0 == name)
}

/// Returns true for an option that allows other roundings.
pub(super) fn is_fast(option: &str) -> bool {
    let options = [
        "-use_fast_math",
        "--use_fast_math",
        "-ffast-math",
        "-Ofast",
        "-funsafe-math-optimizations",
    ];
    options.contains(&option)
}

/// Returns the lines that define the macros which a program's texts ask for. `raw` has all of their words; `codes` are
/// the texts without comments and literals.
pub(super) fn in_front(raw: &HashSet<&str>, codes: &[String], dialect: Dialect) -> String {
    if !raw.iter().any(|it| is_asked_for(it)) {
        return String::new();
    }
    let names = word_set(codes.iter().map(String::as_str));
    let is_amd = dialect == Dialect::Hiprtc && names.iter().any(|it| is_asked_for(it));
    if is_amd && (names.iter().any(|it| is_of_hip(it)) || codes.iter().any(|it| is_of_core(it))) {
        return String::new();
    }
    let nvcc = names.contains(NVCC).then_some(&(NVCC, 1));
    let of_cuda = if is_amd { OF_CUDA } else { &[] };
    let lines = nvcc
        .into_iter()
        .chain(of_cuda)
        .map(|(name, value)| format!("#ifndef {name}\n#define {name} {value}\n#endif\n"));
    lines.collect()
}

/// Returns true for code of builtin kernels, whose functions ask for the vendor's compiler.
fn is_of_core(code: &str) -> bool {
    words(code).any(|it| {
        let is_next = |rest: &str| {
            words(rest).next().is_some_and(|it| it.start == 0 && &rest[it] == "gpuarray")
        };
        &code[it.clone()] == "namespace" && is_next(after(code, it.end))
    })
}
