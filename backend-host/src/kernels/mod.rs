//! Builtin operations in native Rust.
