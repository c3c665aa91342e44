//! Random numbers on a device: generators whose states lie in device memory.
//!
//! The same seeds make the same numbers on every backend, bit for bit.

pub use random::distribution::Distribution;
pub use random::sobol::DIMENSIONS;
pub use random::{Generator, Jump, definitions, sobol};
