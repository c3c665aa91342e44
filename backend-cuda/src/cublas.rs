//! cuBLAS, found at run time when matrices are first multiplied.
//!
//! If `PYGPU_CUBLAS` is set, only that file is tried (`off`: none). Otherwise cuBLAS is searched for like
//! NVRTC: in the loader's folders, CUDA toolkits and NVIDIA's Python packages. If `PYGPU_CUDA_LIBRARY`
//! replaces the system's driver, only the file in `PYGPU_CUBLAS` is tried, because cuBLAS opens a driver
//! itself.
//!
//! Types and numbers come from `cublas_api.h` and `library_types.h` of CUDA 11 to 13.

use crate::LIBRARY_VARIABLE;
use codegen::compile::cuda_search::{BLAS_VARIABLE, SearchPaths};
use driver::blas::{Blas, BlasAbi, BlasLibrary, BlasNames};
use hal::{DType, Result};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// `CUBLAS_STATUS_ARCH_MISMATCH`, `CUBLAS_STATUS_NOT_SUPPORTED`.
const UNSUPPORTED: [c_int; 2] = [8, 15];

/// `CUBLAS_OP_N`, `CUBLAS_OP_T`.
const OPERATIONS: [c_int; 2] = [0, 1];

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: c_int = -1;

/// `CUBLAS_COMPUTE_32F`, which also computes half precision, and `CUBLAS_COMPUTE_64F`.
const SINGLE: c_int = 68;
const DOUBLE: c_int = 70;

/// Each dtype's `cudaDataType_t` and `cublasComputeType_t`.
const TYPES: [(DType, c_int, c_int); 6] = [
    (DType::Float32, 0, SINGLE),
    (DType::Float64, 1, DOUBLE),
    (DType::Float16, 2, SINGLE),
    (DType::Complex64, 4, SINGLE),
    (DType::Complex128, 5, DOUBLE),
    (DType::BFloat16, 14, SINGLE),
];

driver::blas_multiply! {
    /// `cublasGemmStridedBatchedEx`.
    Multiply, [2], DEFAULT_ALGORITHM => c_int
}

static ABI: BlasAbi<Multiply> = BlasAbi {
    name: "cuBLAS",
    variable: BLAS_VARIABLE,
    driver_variable: LIBRARY_VARIABLE,
    names: BlasNames {
        create: "cublasCreate_v2",
        set_stream: "cublasSetStream_v2",
        set_workspace: "cublasSetWorkspace_v2",
        multiply: "cublasGemmStridedBatchedEx",
    },
    unsupported: &UNSUPPORTED,
    operations: OPERATIONS,
    types: &TYPES,
    multiply,
};

/// Returns cuBLAS for a driver of this major version; `None` if it is not installed.
pub(crate) fn find(known: &BlasLibrary, driver_major: c_int) -> Result<Option<Arc<dyn Blas>>> {
    let files = || {
        let paths = SearchPaths::of_environment();
        (paths.blas.clone(), paths.blas_candidates(driver_major))
    };
    // SAFETY: the names are NVIDIA's, or the user chose the file; the types come from NVIDIA's headers.
    unsafe { known.get(&ABI, files) }
}
