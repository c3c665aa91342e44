//! cuBLAS, found at run time when matrices are first multiplied.
//!
//! It is taken from the file in `PYGPU_CUBLAS` alone if that is set (`off`: no file), else from the
//! loader's own folders, CUDA toolkits and NVIDIA's Python packages, as NVRTC is. With another driver than
//! the system's (`PYGPU_CUDA_LIBRARY`) only a named file is taken, because cuBLAS opens a driver itself.
//!
//! Types and numbers are those of `cublas_api.h` and `library_types.h` of CUDA 11 to 13.

use crate::LIBRARY_VARIABLE;
use crate::search::{BLAS_VARIABLE, SearchPaths};
use driver::blas::{Blas, BlasAbi, BlasLibrary, BlasNames, BlasProduct};
use driver::calls::Handle;
use hal::{DType, Result};
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::Arc;

/// `cublasGemmStridedBatchedEx`: handle, operations of A and B, m, n, k, alpha, then address, type,
/// leading dimension and stride of A and of B, beta, the same of C, count, type of the computation,
/// algorithm.
type Multiply = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_int,
    c_longlong,
    u64,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    u64,
    c_int,
    c_int,
    c_longlong,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// `CUBLAS_STATUS_ARCH_MISMATCH`, `CUBLAS_STATUS_NOT_SUPPORTED`.
const UNSUPPORTED: [c_int; 2] = [8, 15];

/// `CUBLAS_OP_N`, `CUBLAS_OP_T`.
const OPERATIONS: [c_int; 2] = [0, 1];

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: c_int = -1;

/// `CUBLAS_COMPUTE_32F`, which also is the computation of half precision, and `CUBLAS_COMPUTE_64F`.
const SINGLE: c_int = 68;
const DOUBLE: c_int = 70;

/// A dtype's `cudaDataType_t` and `cublasComputeType_t`.
fn types(dtype: DType) -> Option<(c_int, c_int)> {
    Some(match dtype {
        DType::Float32 => (0, SINGLE),
        DType::Float64 => (1, DOUBLE),
        DType::Float16 => (2, SINGLE),
        DType::Complex64 => (4, SINGLE),
        DType::Complex128 => (5, DOUBLE),
        DType::BFloat16 => (14, SINGLE),
        _ => return None,
    })
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
    types,
    multiply,
};

/// Returns cuBLAS for a driver of this major version; `None` where there is none.
pub(crate) fn find(known: &BlasLibrary, driver_major: c_int) -> Result<Option<Arc<dyn Blas>>> {
    let files = || {
        let paths = SearchPaths::of_environment();
        (paths.blas.clone(), paths.blas_candidates(driver_major))
    };
    // SAFETY: the names are those of NVIDIA's library, or the user chose the file; the types are those of
    // its headers.
    unsafe { known.get(&ABI, files) }
}

/// # Safety
/// As for [`BlasAbi::multiply`].
unsafe fn multiply(function: Multiply, product: &BlasProduct<'_>) -> c_int {
    let BlasProduct { handle, operations, one, zero, dtype, compute, gemm } = product;
    // SAFETY: the caller's promise.
    unsafe {
        function(
            *handle,
            operations[0],
            operations[1],
            gemm.m,
            gemm.n,
            gemm.k,
            *one,
            gemm.addresses[0],
            *dtype,
            gemm.leading[0],
            gemm.strides[0],
            gemm.addresses[1],
            *dtype,
            gemm.leading[1],
            gemm.strides[1],
            *zero,
            gemm.addresses[2],
            *dtype,
            gemm.leading[2],
            gemm.strides[2],
            gemm.batch,
            *compute,
            DEFAULT_ALGORITHM,
        )
    }
}
