//! CUDA C on the CPU: a compiler driver, the language's headers, and an executor of kernels.
//!
//! The crate knows no array and no device. A text becomes a shared library by the system's C++
//! compiler; the library is loaded and its kernels are launched.
//! `include/gpuarray_abi.h` is what a compiled unit and the executor know of each other.
