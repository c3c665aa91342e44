//! Matrix products by the vendor's linear algebra library, if it is available: cuBLAS, rocBLAS.
//!
//! The library is always optional. Kernels of [`codegen::source`] compute the products that it does not support,
//! and all products if it is missing.

mod gemm;

use crate::calls::Handle;
pub use gemm::Gemm;
use hal::dtype::DType;
use hal::environment;
use hal::error::Result;
use hal::library::{Library, Search};
use hal::status::Status;
use num_complex::Complex;
use std::ffi::{OsString, c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::ptr::from_ref;
use std::sync::{Arc, OnceLock};

/// The functions of a linear algebra library that have the same signature for both vendors.
#[derive(Clone, Copy, Debug)]
pub struct BlasCalls {
    /// Creates a handle for the current context: `cublasCreate_v2`, `rocblas_create_handle`.
    pub create: unsafe extern "C" fn(*mut Handle) -> c_int,
    /// Sets the stream of later products: `cublasSetStream_v2`, `rocblas_set_stream`. Arguments: handle,
    /// stream.
    pub set_stream: unsafe extern "C" fn(Handle, Handle) -> c_int,
    /// Sets the workspace of later products: `cublasSetWorkspace_v2`, `rocblas_set_workspace`. Arguments: handle,
    /// address, bytes.
    pub set_workspace: unsafe extern "C" fn(Handle, u64, usize) -> c_int,
}

/// The symbols of the functions of [`BlasCalls`], and of the vendor's function for products.
#[derive(Clone, Copy, Debug)]
pub struct BlasNames {
    /// The symbol of [`BlasCalls::create`].
    pub create: &'static str,
    /// The symbol of [`BlasCalls::set_stream`].
    pub set_stream: &'static str,
    /// The symbol of [`BlasCalls::set_workspace`].
    pub set_workspace: &'static str,
    /// The symbol of the function that multiplies matrices, whose type is vendor-specific.
    pub multiply: &'static str,
}

/// The names, symbols and numbers of a vendor's linear algebra library. `F` is the type of the function that
/// multiplies matrices.
#[derive(Debug)]
pub struct BlasAbi<F> {
    /// The library's name, for messages.
    pub name: &'static str,
    /// The environment variable that names its file; the value `off` disables it.
    pub variable: &'static str,
    /// The environment variable that names the driver's file. If it is set, the library is opened only if the
    /// user names its file, because linear algebra libraries open a driver themselves.
    pub driver_variable: &'static str,
    /// The symbols of its functions.
    pub names: BlasNames,
    /// The statuses of products that the library does not support on a device.
    pub unsupported: &'static [c_int],
    /// The library's numbers for an unchanged matrix and for its transpose.
    pub operations: [c_int; 2],
    /// The dtypes that the library multiplies, each with its number and the number of its computing type.
    pub types: &'static [(DType, c_int, c_int)],
    /// Calls the function that multiplies; [`blas_multiply!`](crate::blas_multiply) declares it and its type.
    ///
    /// # Safety
    /// The function comes from the library; the rest is as for [`Blas::multiply`].
    pub multiply: unsafe fn(F, &BlasProduct<'_>) -> c_int,
}

/// The address of the matrix at position `PLACE` of [`Gemm::addresses`].
pub type MatrixAddress<const PLACE: usize> = u64;

/// Declares the type of a vendor's function that multiplies matrices, and `multiply`, which calls it.
///
/// The arguments are: the handle, the operations on A and B, m, n, k, and alpha; the address, type, leading
/// dimension and stride of A and of B; beta; the same four values for each matrix of `place`; the count, and
/// the computing type. The remaining arguments are vendor-specific, each with its value.
#[macro_export]
macro_rules! blas_multiply {
    ($(#[$doc:meta])* $type:ident, [$($place:literal),+], $($value:expr => $own:ty),+) => {
        $(#[$doc])*
        type $type = unsafe extern "C" fn(
            $crate::calls::Handle, c_int, c_int, c_int, c_int, c_int, *const c_void,
            u64, c_int, c_int, i64, u64, c_int, c_int, i64, *const c_void,
            $($crate::blas::MatrixAddress<$place>, c_int, c_int, i64,)+ c_int, c_int, $($own),+
        ) -> c_int;

        /// # Safety
        /// As for `BlasAbi::multiply`.
        unsafe fn multiply(function: $type, product: &$crate::blas::BlasProduct<'_>) -> c_int {
            let p = product;
            let (g, [a, b]) = (p.gemm, p.operations);
            // SAFETY: the caller's promise.
            unsafe {
                function(
                    p.handle, a, b, g.m, g.n, g.k, p.one,
                    g.addresses[0], p.dtype, g.leading[0], g.strides[0],
                    g.addresses[1], p.dtype, g.leading[1], g.strides[1], p.zero,
                    $(g.addresses[$place], p.dtype, g.leading[$place], g.strides[$place],)+
                    g.batch, p.compute, $($value),+
                )
            }
        }
    };
}

/// Products, with operations and types as the library's own numbers.
#[derive(Debug)]
pub struct BlasProduct<'a> {
    /// The handle.
    pub handle: Handle,
    /// The operations on `A` and `B`.
    pub operations: [c_int; 2],
    /// The address of the number 1 in the type of the computation.
    pub one: *const c_void,
    /// The address of the number 0 in the type of the computation.
    pub zero: *const c_void,
    /// The type of the elements.
    pub dtype: c_int,
    /// The type of the computation.
    pub compute: c_int,
    /// The matrices.
    pub gemm: &'a Gemm,
}

/// An opened linear algebra library.
pub trait Blas: Send + Sync + fmt::Debug {
    /// Returns the functions that both vendors share.
    fn calls(&self) -> &BlasCalls;

    /// Returns the symbols of the functions.
    fn names(&self) -> &'static BlasNames;

    /// Returns true if the library can multiply matrices of a dtype.
    fn takes(&self, dtype: DType) -> bool;

    /// Queues products on the handle's stream; returns the library's status.
    ///
    /// # Safety
    /// The handle is live and belongs to the current context, and the matrices stay allocated until the stream
    /// has used them.
    unsafe fn multiply(&self, handle: Handle, gemm: &Gemm) -> c_int;

    /// Returns true for the status of a product that the library does not support on this device.
    fn is_unsupported(&self, code: c_int) -> bool;
}

struct Opened<F: 'static> {
    calls: BlasCalls,
    function: F,
    abi: &'static BlasAbi<F>,
}

impl<F> fmt::Debug for Opened<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blas").field("name", &self.abi.name).finish_non_exhaustive()
    }
}

impl<F: Copy> Opened<F> {
    /// Returns the numbers of a dtype and of its computing type.
    fn types(&self, dtype: DType) -> Option<(c_int, c_int)> {
        let row = self.abi.types.iter().find(|(own, ..)| *own == dtype);
        row.map(|&(_, number, compute)| (number, compute))
    }

    /// Looks up the functions.
    ///
    /// # Errors
    /// `BackendUnavailable` that names the missing functions.
    ///
    /// # Safety
    /// The library's functions of these names have the types that the tables declare.
    unsafe fn find(abi: &'static BlasAbi<F>, library: Library) -> Result<Self> {
        let mut symbols = library.symbols();
        // SAFETY: the caller's promise.
        let (create, set_stream, set_workspace, multiply) = unsafe {
            (
                symbols.required(abi.names.create),
                symbols.required(abi.names.set_stream),
                symbols.required(abi.names.set_workspace),
                symbols.required(abi.names.multiply),
            )
        };
        let all = || {
            let calls = BlasCalls {
                create: create?,
                set_stream: set_stream?,
                set_workspace: set_workspace?,
            };
            Some(Opened { calls, function: multiply?, abi })
        };
        symbols.complete(all())
    }
}

impl<F: Copy + Send + Sync> Blas for Opened<F> {
    fn calls(&self) -> &BlasCalls {
        &self.calls
    }

    fn names(&self) -> &'static BlasNames {
        &self.abi.names
    }

    fn takes(&self, dtype: DType) -> bool {
        self.types(dtype).is_some()
    }

    unsafe fn multiply(&self, handle: Handle, gemm: &Gemm) -> c_int {
        let Some((dtype, compute)) = self.types(gemm.dtype) else {
            return self.abi.unsupported.first().copied().unwrap_or(Status::UNKNOWN);
        };
        // A real factor is the first part of a complex one. Half precision is computed in single precision.
        let factors = [0.0, 1.0].map(|it| (Complex::new(it as f32, 0.0), Complex::new(it, 0.0)));
        let is_double = matches!(gemm.dtype, DType::Float64 | DType::Complex128);
        let [zero, one]: [*const c_void; 2] = factors.each_ref().map(|(single, double)| {
            if is_double { from_ref(double).cast() } else { from_ref(single).cast() }
        });
        let operations = gemm.transposed.map(|it| self.abi.operations[usize::from(it)]);
        let product = BlasProduct { handle, operations, one, zero, dtype, compute, gemm };
        // SAFETY: the caller's promise; the factors are read before the call returns.
        unsafe { (self.abi.multiply)(self.function, &product) }
    }

    fn is_unsupported(&self, code: c_int) -> bool {
        self.abi.unsupported.contains(&code)
    }
}

/// A vendor's library, opened at the first matrix product.
#[derive(Debug, Default)]
pub struct BlasLibrary {
    found: OnceLock<Result<Option<Arc<dyn Blas>>>>,
}

impl BlasLibrary {
    /// Returns the library; `None` if it is not available. `files` is called once. It returns the file that the
    /// user has named, if any, and the files to try otherwise.
    ///
    /// # Errors
    /// The search's, if the user named a file.
    ///
    /// # Safety
    /// The files are the vendor's library, or behave like it, and their functions have the types that the tables
    /// declare.
    pub unsafe fn get<F: Copy + Send + Sync>(
        &self,
        abi: &'static BlasAbi<F>,
        files: impl FnOnce() -> (Option<OsString>, Vec<PathBuf>),
    ) -> Result<Option<Arc<dyn Blas>>> {
        let open = || {
            let (named, candidates) = files();
            let is_off = named.as_ref().is_some_and(|it| it == "off");
            let is_other_drivers =
                named.is_none() && environment::trusted(abi.driver_variable).is_some();
            if is_off || is_other_drivers {
                return Ok(None);
            }
            let search = Search::new(abi.name).explicit(abi.variable, named).candidates(candidates);
            // SAFETY: the caller's promise.
            match unsafe { search.open(|library| Opened::find(abi, library)) } {
                Ok(found) => Ok(Some(Arc::new(found) as Arc<dyn Blas>)),
                Err(error) if search.is_explicit() => Err(error),
                Err(error) => {
                    log::debug!("matrices are multiplied by own kernels: {error}");
                    Ok(None)
                }
            }
        };
        self.found.get_or_init(open).clone()
    }
}
