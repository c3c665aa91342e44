//! Benchmarks of `gpuarray`: `cargo bench -p gpuarray-benches`.
