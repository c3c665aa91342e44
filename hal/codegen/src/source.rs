//! Builtin operations as CUDA C source, for NVRTC, hipRTC and `clang -x hip`.
//!
//! [`KernelSpec`] is what of an operation changes the compiled code, and so the key of a kernel
//! cache. [`KernelSpec::source`] is the translation unit of one, [`unit()`] that of several, for code
//! compiled ahead of time. [`Plan`] is what to launch for one operation: kernels, extents of
//! the grid, packed arguments.
//!
//! Each family of operations (element-wise, reductions, scans, true elements, gather and scatter,
//! sequences, random numbers, sorts, products of matrices) has a key, a plan that adds launches, and a source. `plan` and `kernel_spec` dispatch to the
//! families; what these share lies below them: launches, iteration spaces, machine words, types
//! and names in C, the prelude.
//!
//! Memory is read and written 16 bytes at a time where elements are neighbours and aligned,
//! else several elements of a thread are on their way at once. Kernels for one run in each
//! array see for themselves whether it is aligned. What is combined is combined in an order
//! that neither the device nor, in a run, the address has a part in.
//!
//! The source needs no header, no fast-math option and no wavefront size: blocks have 256
//! threads that meet in shared memory only. Blocks of one launch are independent of each other
//! but for those of a scan, of a search for true elements and of a sort of long rows, which wait for blocks that have begun before
//! them. Products and sums must not be contracted into
//! fused multiply-adds, or [`Function::LinearCombination`](hal::function::Function) and
//! complex products would round once instead of twice: compile with [`NVRTC_OPTIONS`],
//! [`HIPRTC_OPTIONS`] or [`CLANG_OPTIONS`].

pub mod catalogue;
mod ctype;
mod elementwise;
mod indexed;
mod iteration_space;
mod kernel_spec;
mod launches;
mod machine_word;
mod nonzero;
mod prelude;
mod product;
mod random;
mod reduce;
mod scan;
mod sequence;
mod sort;

pub use kernel_spec::{KernelSpec, Plan, unit};
pub use launches::Launch;
pub use scan::scan_functions;

/// Options that NVRTC needs for this source, besides the architecture.
pub const NVRTC_OPTIONS: &[&str] = &["--std=c++14", "-fmad=false"];

/// Options that hipRTC needs for this source, besides the architecture.
pub const HIPRTC_OPTIONS: &[&str] = &["-std=c++14", "-O3", "-ffp-contract=off"];

/// Options that `clang -x hip` needs for this source, besides the architecture; without
/// ROCm's headers also `-nogpuinc`, and `-nogpulib` where no bitcode of the device library
/// is needed.
pub const CLANG_OPTIONS: &[&str] =
    &["-x", "hip", "--cuda-device-only", "-std=c++14", "-O3", "-ffp-contract=off"];
