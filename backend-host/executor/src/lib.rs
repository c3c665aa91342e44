//! CUDA C on the CPU: the calls of a C\+\+ compiler, and an executor of kernels.
//!
//! The crate is independent of arrays and devices. A [`Compiler`] turns a text into a shared library, using
//! the system's C++ compiler. A [`Library`] is that library loaded into the process, and its [`Kernel`]s can
//! be launched. `include/gpuarray_abi.h` of the crate `cuda_c` defines the interface between a compiled unit
//! and the executor.
//!
//! The modules have an order: each names only modules before it, and a test checks this. For a compilation the order is
//! `options`, `headers`, `compiler`. For a launch it is `block` (which threads run), `fault` and `interruption`
//! (signals), `check`, `library`, `grid`, `worker` (fibres), `dispatch` (threads), `executor` (the functions that units
//! call), `kernel`, `loading`.

mod abi;
mod block;
mod check;
mod compiler;
mod context;
mod dispatch;
mod division;
mod error;
mod executor;
mod fault;
mod fork;
mod grid;
mod headers;
mod initialisers;
mod interruption;
mod kernel;
mod launch;
mod library;
mod loading;
mod options;
mod redirections;
mod shared_memory;
mod shared_use;
mod stack;
mod symbols;
mod temporary;
mod toolchain;
mod worker;

pub use abi::Texture;
pub use check::{Allocation, Checking, Checks, Memory, fill_uninitialised};
pub use compiler::{Compiled, Compiler, Language, Optimization, Preprocessed, Source};
pub use error::{Error, Failure, FailureKind, Result};
pub use fault::set_advice;
pub use kernel::Kernel;
pub use launch::{Schedule, Shape};
pub use library::{Library, Parameter};
pub use options::DEFAULT_ARCHITECTURE;
pub use shared_memory::MOST_SHARED_BYTES;
pub use temporary::remove_temporary_folders;
