//! CUDA C on the CPU: the calls of a C\+\+ compiler, and an executor of kernels.
//!
//! The crate is independent of arrays and devices. A [`Compiler`] turns a text into a shared library, using
//! the system's C++ compiler. A [`Library`] is that library loaded into the process, and its [`Kernel`]s can
//! be launched. `include/gpuarray_abi.h` of the crate `cuda_c` defines the interface between a compiled unit
//! and the executor.
//!
//! The modules have an order: each names only modules before it, and a test checks this. First come the interface to
//! units and the language's settings, then the compiler; then the parts of a launch: fibres and blocks, signals,
//! checks, the loaded unit, the grid, and the worker that runs its blocks. The functions that units call, the launches
//! and the loading of units come last.

mod abi;
mod context;
mod error;
mod fork;
mod launch;
mod symbols;
mod temporary;

mod check;
mod compiler;
mod headers;
mod options;
mod redirections;
mod shared_memory;
mod shared_use;
mod toolchain;

mod block;
mod dispatch;
mod division;
mod executor;
mod fault;
mod grid;
mod initialisers;
mod interruption;
mod kernel;
mod library;
mod loading;
mod stack;
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
