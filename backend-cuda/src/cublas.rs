//! cuBLAS, found at run time when matrices are first multiplied.
//!
//! It is taken from the file in `PYGPU_CUBLAS` alone if that is set (`off`: no file), else from the
//! loader's own folders, CUDA toolkits and NVIDIA's Python packages, as NVRTC is. With another driver than
//! the system's (`PYGPU_CUDA_LIBRARY`) only a named file is taken, because cuBLAS opens a driver itself.
//!
//! Types and numbers are those of `cublas_api.h` and `library_types.h` of CUDA 11 to 13.

use crate::LIBRARY_VARIABLE;
use crate::search::{BLAS_VARIABLE, SearchPaths};
use hal::driver::blas::{Blas, BlasCalls, BlasLibrary, BlasNames, Gemm};
use hal::driver::calls::Handle;
use hal::library::{Library, Search};
use hal::{Complex, DType, Result, setting};
use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::from_ref;
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

static NAMES: BlasNames = BlasNames {
    create: "cublasCreate_v2",
    set_stream: "cublasSetStream_v2",
    set_workspace: "cublasSetWorkspace_v2",
    multiply: "cublasGemmStridedBatchedEx",
};

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

/// cuBLAS as a library that has been opened.
#[derive(Debug)]
struct Cublas {
    calls: BlasCalls,
    multiply: Multiply,
}

/// Returns cuBLAS for a driver of this major version; `None` where there is none.
pub(crate) fn find(known: &BlasLibrary, driver_major: c_int) -> Result<Option<Arc<dyn Blas>>> {
    let search = || {
        let paths = SearchPaths::of_environment();
        let is_off = paths.blas.as_ref().is_some_and(|it| it == "off");
        let has_own_driver = paths.blas.is_none() && setting::trusted(LIBRARY_VARIABLE).is_some();
        (!is_off && !has_own_driver).then(|| {
            Search::new("cuBLAS")
                .explicit(BLAS_VARIABLE, paths.blas.clone())
                .candidates(paths.blas_candidates(driver_major))
        })
    };
    let accept = |library: Library| {
        // SAFETY: the types are those of cuBLAS's headers.
        let (calls, multiply) = unsafe { BlasCalls::find(&NAMES, library)? };
        Ok(Cublas { calls, multiply })
    };
    // SAFETY: the names are those of NVIDIA's library, or the user chose the file.
    unsafe { known.get(search, accept) }
}

impl Blas for Cublas {
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
        let Some((dtype, compute)) = types(gemm.dtype) else { return UNSUPPORTED[1] };
        let Gemm { m, n, k, transposed, addresses, leading, strides, batch, .. } = *gemm;
        let [first, second] = transposed.map(|it| OPERATIONS[usize::from(it)]);
        // A real factor is the beginning of a complex one.
        let factors = [0.0, 1.0].map(|it| (Complex::new(it as f32, 0.0), Complex::new(it, 0.0)));
        let [zero, one]: [*const c_void; 2] =
            factors.each_ref().map(|(single, double)| match compute {
                DOUBLE => from_ref(double).cast(),
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
                batch,
                compute,
                DEFAULT_ALGORITHM,
            )
        }
    }

    fn is_unsupported(&self, code: c_int) -> bool {
        UNSUPPORTED.contains(&code)
    }
}
