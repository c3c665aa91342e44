//! rocBLAS, found at run time when matrices are first multiplied.
//!
//! If `PYGPU_ROCBLAS` is set, only that file is tried (`off`: none). Otherwise rocBLAS comes from the HIP
//! runtime's folder, the loader's folders, ROCm or Python packages. If `PYGPU_HIP_LIBRARY` replaces the
//! system's runtime, only the file in `PYGPU_ROCBLAS` is tried, because rocBLAS is linked with a runtime.
//!
//! Types and numbers come from `rocblas-types.h` and `rocblas-functions.h` of ROCm 5 to 7.

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

/// `rocblas_datatype_f32_r`, `rocblas_datatype_f32_c`, and the same in double precision.
const SINGLE: c_int = 151;
const COMPLEX_SINGLE: c_int = 154;
const DOUBLE: c_int = 152;
const COMPLEX_DOUBLE: c_int = 155;

/// Each dtype's `rocblas_datatype`, and the datatype of its computation.
const TYPES: [(DType, c_int, c_int); 6] = [
    (DType::Float32, SINGLE, SINGLE),
    (DType::Float64, DOUBLE, DOUBLE),
    (DType::Float16, 150, SINGLE),
    (DType::Complex64, COMPLEX_SINGLE, COMPLEX_SINGLE),
    (DType::Complex128, COMPLEX_DOUBLE, COMPLEX_DOUBLE),
    (DType::BFloat16, 168, SINGLE),
];

driver::blas_multiply! {
    /// `rocblas_gemm_strided_batched_ex`. Its result is a separate matrix D, for which this passes C. Solution
    /// and flags are 0.
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

/// Returns rocBLAS for the runtime in the file `driver`; `None` if it is not installed.
pub(crate) fn find(known: &BlasLibrary, driver: Option<&Path>) -> Result<Option<Arc<dyn Blas>>> {
    let files = || {
        let paths = SearchPaths::of_environment();
        (paths.blas.clone(), paths.blas_libraries(driver))
    };
    // SAFETY: the names are AMD's, or the user chose the file; the types come from AMD's headers.
    unsafe { known.get(&ABI, files) }
}
