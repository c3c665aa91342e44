//! The shared library of the Python extension module `pygpu._core`.
//!
//! What is in it is in the crate `pygpu`: cargo compiles a library beside the crates that it uses, and a
//! shared library only after them.

use pygpu as _;
