//! rocBLAS, found at run time when matrices are first multiplied.
//!
//! It is taken from the file in `PYGPU_ROCBLAS` alone if that is set (`off`: no file), else from the
//! folder of the HIP runtime, the loader's own folders, ROCm's and Python packages. With another runtime
//! than the system's (`PYGPU_HIP_LIBRARY`) only a named file is taken, because rocBLAS is linked with one.
//!
//! Types and numbers are those of `rocblas-types.h` and `rocblas-functions.h` of ROCm 5 to 7.

use crate::search::{BLAS_VARIABLE, DRIVER_VARIABLE, SearchPaths};
use hal::driver::blas::{Blas, BlasCalls, BlasLibrary, BlasNames, Gemm};
use hal::driver::calls::Handle;
use hal::library::{Library, Search};
use hal::{Complex, DType, Result, setting};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::from_ref;
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

static NAMES: BlasNames = BlasNames {
    create: "rocblas_create_handle",
    set_stream: "rocblas_set_stream",
    set_workspace: "rocblas_set_workspace",
    multiply: "rocblas_gemm_strided_batched_ex",
};

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

/// rocBLAS as a library that has been opened.
#[derive(Debug)]
struct Rocblas {
    calls: BlasCalls,
    multiply: Multiply,
}

/// Returns rocBLAS for the runtime in the file `driver`; `None` where there is none.
pub(crate) fn find(known: &BlasLibrary, driver: Option<&Path>) -> Result<Option<Arc<dyn Blas>>> {
    let search = || {
        let paths = SearchPaths::of_environment();
        let is_off = paths.blas.as_ref().is_some_and(|it| it == "off");
        let has_own_runtime = paths.blas.is_none() && setting::trusted(DRIVER_VARIABLE).is_some();
        (!is_off && !has_own_runtime).then(|| {
            Search::new("rocBLAS")
                .explicit(BLAS_VARIABLE, paths.blas.clone())
                .candidates(paths.blas_libraries(driver))
        })
    };
    let accept = |library: Library| {
        // SAFETY: the types are those of rocBLAS's headers.
        let (calls, multiply) = unsafe { BlasCalls::find(&NAMES, library)? };
        Ok(Rocblas { calls, multiply })
    };
    // SAFETY: the names are those of AMD's library, or the user chose the file.
    unsafe { known.get(search, accept) }
}

impl Blas for Rocblas {
    fn calls(&self) -> &BlasCalls {
        &self.calls
    }

    fn names(&self) -> &'static BlasNames {
        &NAMES
    }

    fn takes(&self, dtype: DType) -> bool {
        types(dtype).is_some()
    }

    unsafe fn multiply(&self, handle: Handle, gemm: &Gemm) -> c_int {
        let Some((dtype, compute)) = types(gemm.dtype) else { return UNSUPPORTED[0] };
        let Gemm { m, n, k, transposed, addresses, leading, strides, batch, .. } = *gemm;
        let [first, second] = transposed.map(|it| OPERATIONS[usize::from(it)]);
        // A real factor is the beginning of a complex one.
        let factors = [0.0, 1.0].map(|it| (Complex::new(it as f32, 0.0), Complex::new(it, 0.0)));
        let [zero, one]: [*const c_void; 2] =
            factors.each_ref().map(|(single, double)| match compute {
                DOUBLE | COMPLEX_DOUBLE => from_ref(double).cast(),
                _ => from_ref(single).cast(),
            });
        // SAFETY: the caller's promise; the factors are read before the call returns.
        unsafe {
            (self.multiply)(
                handle,
                first,
                second,
                m,
                n,
                k,
                one,
                addresses[0],
                dtype,
                leading[0],
                strides[0],
                addresses[1],
                dtype,
                leading[1],
                strides[1],
                zero,
                addresses[2],
                dtype,
                leading[2],
                strides[2],
                addresses[2],
                dtype,
                leading[2],
                strides[2],
                batch,
                compute,
                STANDARD_ALGORITHM,
                0,
                0,
            )
        }
    }

    fn is_unsupported(&self, code: c_int) -> bool {
        UNSUPPORTED.contains(&code)
    }
}
