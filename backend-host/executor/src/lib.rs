//! CUDA C on the CPU: the calls of a C\+\+ compiler, and an executor of kernels.
//!
//! The crate is independent of arrays and devices. A [`Compiler`] turns a text into a shared library, using
//! the system's C++ compiler. A [`Library`] is that library loaded into the process, and its [`Kernel`]s can
//! be launched. `include/gpuarray_abi.h` of the crate `cuda_c` defines the interface between a compiled unit
//! and the executor.

mod abi;
mod block;
mod check;
mod compiler;
mod context;
mod copying;
mod division;
mod endings;
mod error;
mod executor;
mod fault;
mod fork;
mod grid;
mod headers;
mod initialisers;
mod interruption;
mod launch;
mod library;
mod options;
mod precompiled;
mod shared_memory;
mod shared_use;
mod stack;
mod symbols;
mod temporary;
mod texture;
mod toolchain;
mod worker;

pub use check::{Allocation, Checking, Checks, Memory, fill_uninitialised};
pub use compiler::{Compiled, Compiler, Language, Optimization, Preprocessed, Source};
pub use error::{Error, Failure, FailureKind, Result};
pub use fault::set_advice;
pub use grid::Kernel;
pub use launch::{Schedule, Shape};
pub use library::{Library, Parameter};
pub use options::DEFAULT_ARCHITECTURE;
pub use shared_memory::MOST_SHARED_BYTES;
pub use texture::Texture;
