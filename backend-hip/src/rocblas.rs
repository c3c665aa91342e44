//! rocBLAS, found at run time when matrices are first multiplied.
//!
//! It is taken from the file in `PYGPU_ROCBLAS` alone if that is set (`off`: no file), else from the
//! folder of the HIP runtime, the loader's own folders, ROCm's and Python packages. With another runtime
//! than the system's (`PYGPU_HIP_LIBRARY`) only a named file is taken, because rocBLAS is linked with one.
//!
//! Types and numbers are those of `rocblas-types.h` and `rocblas-functions.h` of ROCm 5 to 7.

use crate::search::{BLAS_VARIABLE, DRIVER_VARIABLE, SearchPaths};
use driver::blas::{Blas, BlasAbi, BlasLibrary, BlasNames};
use hal::{DType, Result};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;

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

/// Each dtype's `rocblas_datatype`, and that of its computation.
const TYPES: [(DType, c_int, c_int); 6] = [
    (DType::Float32, SINGLE, SINGLE),
    (DType::Float64, DOUBLE, DOUBLE),
    (DType::Float16, 150, SINGLE),
    (DType::Complex64, COMPLEX_SINGLE, COMPLEX_SINGLE),
    (DType::Complex128, COMPLEX_DOUBLE, COMPLEX_DOUBLE),
    (DType::BFloat16, 168, SINGLE),
];

driver::blas_multiply! {
    /// `rocblas_gemm_strided_batched_ex`, whose result is a matrix of its own: here it is C. Solution and flags
    /// are 0.
    Multiply, [2, 2], STANDARD_ALGORITHM => c_int, 0 => i32, 0 => u32
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
    types: &TYPES,
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
