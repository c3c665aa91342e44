//! CUDA C on the CPU: a compiler driver, the language's headers, and an executor of kernels.
//!
//! The crate knows no array and no device. A [`Compiler`] makes a shared library of a text by the
//! system's C++ compiler; a [`Library`] is that library in the process; a [`Kernel`] of it is launched.
//! `include/gpuarray_abi.h` is what a compiled unit and the executor know of each other.

mod abi;
mod alloca;
mod block;
mod check;
mod compiler;
mod constant_functions;
mod context;
mod copying;
mod declarations;
mod division;
mod endings;
mod error;
mod executor;
mod fault;
mod fork;
mod grid;
mod headers;
mod indices;
mod initialisers;
mod interruption;
mod known_names;
mod launch;
mod library;
mod messages;
mod options;
mod placement;
mod precompiled;
mod ptx;
mod qualifiers;
mod regions;
mod shared_memory;
mod shared_pointers;
mod shared_use;
mod stack;
mod symbols;
mod temporary;
mod texture;
mod tokens;
mod toolchain;
mod unnamed_classes;
mod volatile_writes;
mod worker;

pub use check::{Allocation, Checking, Checks, Memory, fill_uninitialised};
pub use compiler::{Compiled, Compiler, Language, Optimization, Preprocessed, Source};
pub use error::{Error, Failure, FailureKind, Result};
pub use fault::set_advice;
pub use grid::Kernel;
pub use headers::header_text;
pub use launch::{Schedule, Shape};
pub use library::{Library, Parameter};
pub use options::DEFAULT_ARCHITECTURE;
pub use shared_memory::MOST_SHARED_BYTES;
pub use texture::Texture;
