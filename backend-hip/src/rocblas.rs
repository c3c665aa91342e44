//! rocBLAS, found at run time when matrices are first multiplied.
//!
//! It is taken from the file in `PYGPU_ROCBLAS` alone if that is set (`off`: no file), else from the
//! folder of the HIP runtime, the loader's own folders, ROCm's and Python packages. With another runtime
//! than the system's (`PYGPU_HIP_LIBRARY`) only a named file is taken, because rocBLAS is linked with one.
//!
//! Types and numbers are those of `rocblas-types.h` and `rocblas-functions.h` of ROCm 5 to 7.

use crate::search::{BLAS_VARIABLE, DRIVER_VARIABLE, SearchPaths};
use driver::blas::{Blas, BlasAbi, BlasLibrary, BlasNames, BlasProduct};
use driver::calls::Handle;
use hal::{DType, Result};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;

/// `rocblas_gemm_strided_batched_ex`: handle, operations of A and B, m, n, k, alpha, then address, type,
/// leading dimension and stride of A and of B, beta, the same of C and of the result, count, type of the
/// computation, algorithm, solution, flags.
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
    i64,
    u64,
    c_int,
    c_int,
    i64,
    *const c_void,
    u64,
    c_int,
    c_int,
    i64,
    u64,
    c_int,
    c_int,
    i64,
    c_int,
    c_int,
    c_int,
    i32,
    u32,
) -> c_int;

/// `rocblas_status_not_implemented`, `rocblas_status_excluded_from_build`,
/// `rocblas_status_arch_mismatch`.
const UNSUPPORTED: [c_int; 3] = [2, 14, 15];

/// `rocblas_operation_none`, `rocblas_operation_transpose`.
const OPERATIONS: [c_int; 2] = [111, 112];

/// `rocblas_gemm_algo_standard`.
const STANDARD_ALGORITHM: c_int = 0;

/// `rocblas_datatype_f32_r`, `rocblas_datatype_f32_c`, and the same of double precision.
const SINGLE: c_int = 151;
const COMPLEX_SINGLE: c_int = 154;
const DOUBLE: c_int = 152;
const COMPLEX_DOUBLE: c_int = 155;

/// A dtype's `rocblas_datatype`, and that of its computation.
fn types(dtype: DType) -> Option<(c_int, c_int)> {
    Some(match dtype {
        DType::Float32 => (SINGLE, SINGLE),
        DType::Float64 => (DOUBLE, DOUBLE),
        DType::Float16 => (150, SINGLE),
        DType::Complex64 => (COMPLEX_SINGLE, COMPLEX_SINGLE),
        DType::Complex128 => (COMPLEX_DOUBLE, COMPLEX_DOUBLE),
        DType::BFloat16 => (168, SINGLE),
        _ => return None,
    })
}

static ABI: BlasAbi<Multiply> = BlasAbi {
    name: "rocBLAS",
    variable: BLAS_VARIABLE,
    driver_variable: DRIVER_VARIABLE,
    names: BlasNames {
        create: "rocblas_create_handle",
        set_stream: "rocblas_set_stream",
        set_workspace: "rocblas_set_workspace",
        multiply: "rocblas_gemm_strided_batched_ex",
    },
    unsupported: &UNSUPPORTED,
    operations: OPERATIONS,
    types,
    multiply,
};

/// Returns rocBLAS for the runtime in the file `driver`; `None` where there is none.
pub(crate) fn find(known: &BlasLibrary, driver: Option<&Path>) -> Result<Option<Arc<dyn Blas>>> {
    let files = || {
        let paths = SearchPaths::of_environment();
        (paths.blas.clone(), paths.blas_libraries(driver))
    };
    // SAFETY: the names are those of AMD's library, or the user chose the file; the types are those of
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
            gemm.addresses[2],
            *dtype,
            gemm.leading[2],
            gemm.strides[2],
            gemm.batch,
            *compute,
            STANDARD_ALGORITHM,
            0,
            0,
        )
    }
}
