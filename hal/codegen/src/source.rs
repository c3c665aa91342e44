//! Builtin operations as CUDA C source, for NVRTC, hipRTC and `clang -x hip`.
//!
//! A [`KernelSpec`] contains those properties of an operation that affect the compiled code, and is the key of a kernel
//! cache. [`KernelSpec::source`] returns its translation unit, and [`unit()`] one for several specifications, for
//! ahead-of-time compilation. A [`Plan`] contains the launches for one operation: kernels, grid extents and packed
//! arguments.
//!
//! Each family of operations (element-wise, reductions, scans, true elements, gather and scatter, sequences, random
//! numbers, sorts, matrix products) has a key, a plan that adds launches, and a source. `kernel_spec`
//! dispatches to the families. The shared modules below them are `launches`, `iteration_space`, `machine_word` and
//! `ctype`, the prelude and the names in C.
//!
//! Aligned neighbouring elements are read and written 16 bytes at a time. Otherwise, a thread has several accesses in
//! flight at the same time. Kernels for contiguous arrays check the alignment themselves. The order in which values are
//! combined depends neither on the device nor, for contiguous arrays, on the address.
//!
//! The source needs no headers, fast-math options or wavefront size: blocks have 256 threads that synchronize only
//! through shared memory. The blocks of a launch are independent of each other, except in a scan, a search for true
//! elements and a sort of long rows, where blocks wait for blocks that began earlier. Products and sums must not be
//! contracted into fused multiply-adds, because [`Function::LinearCombination`](hal::function::Function) and complex
//! products would then be rounded once instead of twice. Compile with [`NVRTC_OPTIONS`], [`HIPRTC_OPTIONS`] or
//! [`CLANG_OPTIONS`].

pub mod catalogue;
mod ctype;
mod elementwise;
mod indexed;
mod iteration_space;
mod kernel_key;
mod kernel_spec;
mod launches;
mod machine_word;
mod product;
mod random;
mod reduce;
mod scan;
mod sequence;
mod sort;

pub use elementwise::{ROW, ROW_OPTIONS, row_source};
pub use kernel_spec::{KernelSpec, Plan, unit};
pub use launches::Launch;
pub use scan::{scan_functions, scan_plan};

/// Options that NVRTC needs for this source, in addition to the architecture.
pub const NVRTC_OPTIONS: &[&str] = &["--std=c++14", "-fmad=false"];

/// Options that hipRTC needs for this source, in addition to the architecture.
pub const HIPRTC_OPTIONS: &[&str] = &["-std=c++14", "-O3", "-ffp-contract=off"];

/// Options that `clang -x hip` needs for this source, in addition to the architecture. Without ROCm's headers, add
/// `-nogpuinc`, and `-nogpulib` if the bitcode of the device library is not needed.
pub const CLANG_OPTIONS: &[&str] =
    &["-x", "hip", "--cuda-device-only", "-std=c++14", "-O3", "-ffp-contract=off"];
