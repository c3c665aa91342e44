//! The embedded default backend: streams, events, memory and kernels on the CPU.

pub mod kernels;
