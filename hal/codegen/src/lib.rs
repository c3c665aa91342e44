//! Code for the builtin operations of gpuarray: [`source`] generates CUDA C and the launches for an operation,
//! [`compile`] compiles text to code objects, caches them on disk and reads embedded ones.
//!
//! Neither needs a driver, so a build script can use both.

pub mod compile;
pub mod source;

#[doc(hidden)]
pub use hal::abi;
