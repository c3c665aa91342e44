//! Code for the builtin operations of gpuarray: [`source`] writes CUDA C for an operation and says what to launch,
//! [`compile`] makes code objects of text, keeps them on disk and reads those that are part of the program.
//!
//! Neither needs a driver, so that a build script uses both.

pub mod compile;
pub mod source;

#[doc(hidden)]
pub use hal::abi;
