//! Products of matrices by the vendor's library of linear algebra, where there is one: cuBLAS, rocBLAS.
//!
//! The library is never required. What it does not take, and everything where it is missing, is
//! computed by kernels of [`crate::source`].

mod gemm;

use super::calls::Handle;
use super::context::Context;
use super::stream::DriverStream;
use crate::attempt;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Library, Search};
use crate::locks::{LOADING, Ranked};
use crate::operation::MatrixProduct;
use crate::status::Status;
use crate::stream::Stream;
use std::ffi::c_int;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

pub use gemm::Gemm;

/// Products of fewer multiplications are not worth the library's own work on the host.
const WORTHWHILE: usize = 1 << 20;

/// The workspace of a product, which NVIDIA recommends for its largest devices ("cublasSetWorkspace()"
/// in the documentation of cuBLAS).
const WORKSPACE_BYTES: usize = 32 << 20;

/// The functions of a library of linear algebra that have the same signature at both vendors.
#[derive(Clone, Copy, Debug)]
pub struct BlasCalls {
    /// Makes a handle for the current context: `cublasCreate_v2`, `rocblas_create_handle`.
    pub create: unsafe extern "C" fn(*mut Handle) -> c_int,
    /// Sets the stream of later products: `cublasSetStream_v2`, `rocblas_set_stream`. Arguments: handle,
    /// stream.
    pub set_stream: unsafe extern "C" fn(Handle, Handle) -> c_int,
    /// Sets the memory of later products: `cublasSetWorkspace_v2`, `rocblas_set_workspace`. Arguments:
    /// handle, address, bytes.
    pub set_workspace: unsafe extern "C" fn(Handle, u64, usize) -> c_int,
}

/// The symbols of the functions of [`BlasCalls`], and of the vendor's product.
#[derive(Clone, Copy, Debug)]
pub struct BlasNames {
    /// The symbol of [`BlasCalls::create`].
    pub create: &'static str,
    /// The symbol of [`BlasCalls::set_stream`].
    pub set_stream: &'static str,
    /// The symbol of [`BlasCalls::set_workspace`].
    pub set_workspace: &'static str,
    /// The symbol of the function that multiplies matrices, whose type is the vendor's own.
    pub multiply: &'static str,
}

impl BlasCalls {
    /// Finds the functions, and the vendor's product, of type `F`.
    ///
    /// # Errors
    /// `BackendUnavailable` that names the functions that are missing.
    ///
    /// # Safety
    /// The library's functions of these names have the types that the table declares, and `F`.
    pub unsafe fn find<F: Copy>(names: &BlasNames, library: Library) -> Result<(BlasCalls, F)> {
        let mut symbols = library.symbols();
        // SAFETY: the caller's promise.
        let (create, set_stream, set_workspace, multiply) = unsafe {
            (
                symbols.required(names.create),
                symbols.required(names.set_stream),
                symbols.required(names.set_workspace),
                symbols.required(names.multiply),
            )
        };
        let all = || {
            let calls = BlasCalls {
                create: create?,
                set_stream: set_stream?,
                set_workspace: set_workspace?,
            };
            Some((calls, multiply?))
        };
        symbols.complete(all())
    }
}

/// A vendor's library of linear algebra.
pub trait Blas: Send + Sync + Debug {
    /// Returns the functions that both vendors have.
    fn calls(&self) -> &BlasCalls;

    /// Returns the symbols of the functions.
    fn names(&self) -> &'static BlasNames;

    /// Returns true if the library multiplies matrices of a dtype.
    fn takes(&self, dtype: DType) -> bool;

    /// Queues products on the handle's stream; returns the library's status.
    ///
    /// # Safety
    /// The handle is live and of the current context, and the matrices stay allocated until the stream
    /// is done with them.
    unsafe fn multiply(&self, handle: Handle, gemm: &Gemm) -> c_int;

    /// Returns true for the status of a product that the library does not have for this device.
    fn is_unsupported(&self, code: c_int) -> bool;
}

/// A vendor's library, opened when matrices are first multiplied.
#[derive(Debug, Default)]
pub struct BlasLibrary {
    found: OnceLock<Result<Option<Arc<dyn Blas>>>>,
}

impl BlasLibrary {
    /// Returns the library; `None` where there is none. `search` lists the files when matrices are
    /// first multiplied, or is `None` if none is wanted; `accept` finds the functions in one.
    ///
    /// # Errors
    /// The search's, if the user named a file.
    ///
    /// # Safety
    /// The files of the search are the vendor's library, or behave like it.
    pub unsafe fn get<B: Blas + 'static>(
        &self,
        search: impl FnOnce() -> Option<Search>,
        accept: impl FnMut(Library) -> Result<B>,
    ) -> Result<Option<Arc<dyn Blas>>> {
        let open = || {
            let Some(search) = search() else { return Ok(None) };
            // SAFETY: the caller's promise.
            match unsafe { search.open(accept) } {
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

/// What the library has made for a context.
#[derive(Clone, Copy, Debug)]
enum Made {
    Handle(Handle),
    /// It failed, and is not asked again.
    Nothing,
}

/// The handle of a device's context. Products are queued under its lock, because a handle has one stream
/// and one workspace at a time. It is not destroyed: what it holds ends with the context, and one of
/// an earlier epoch is not used.
#[derive(Debug, Default)]
pub(super) struct BlasHandle {
    made: Ranked<Option<(u64, Made)>, LOADING>,
}

/// Returns the handle of a context, which is entered; made if need be.
fn handle(
    context: &Context,
    blas: &dyn Blas,
    made: &mut Option<(u64, Made)>,
) -> Result<Option<Handle>> {
    let epoch = context.epoch();
    if made.is_none_or(|(of, _)| of != epoch) {
        attempt::before_waiting()?;
        let mut handle = 0;
        // SAFETY: the handle is written before the call returns; the context is current.
        let code = context.outside_captures(|| unsafe { (blas.calls().create)(&mut handle) });
        let new = if code == Status::SUCCESS {
            Made::Handle(handle)
        } else {
            log::warn!("{} returned {code}; own kernels multiply matrices", blas.names().create);
            Made::Nothing
        };
        *made = Some((epoch, new));
    }
    Ok(match *made {
        Some((_, Made::Handle(handle))) => Some(handle),
        _ => None,
    })
}

/// Queues products of matrices; false if the library does not take them, and nothing is queued.
///
/// # Safety
/// As for [`Stream::execute`].
pub(super) unsafe fn multiply(stream: &DriverStream, product: &MatrixProduct) -> Result<bool> {
    let extents = [product.rows, product.columns, product.terms];
    let work =
        product.batch.iter().chain(&extents).fold(1, |all: usize, &it| all.saturating_mul(it));
    if work < WORTHWHILE {
        return Ok(false);
    }
    let context = stream.context();
    let Some(blas) = context.driver.vendor.blas()? else { return Ok(false) };
    if !blas.takes(product.compute) {
        return Ok(false);
    }
    let Some(gemm) = Gemm::of(product) else { return Ok(false) };
    let workspace = match stream.allocate(WORKSPACE_BYTES) {
        Ok(workspace) => workspace,
        Err(error) if error.kind() == ErrorKind::OutOfMemory => return Ok(false),
        Err(error) => return Err(error),
    };
    // SAFETY: the caller's promise, and the workspace lives until it is freed in the stream's order.
    let queued = unsafe { queue(stream, &*blas, &gemm, workspace) };
    // SAFETY: it was allocated above, and only the product before this uses it.
    let freed = unsafe { stream.free(workspace, WORKSPACE_BYTES) };
    let queued = queued?;
    freed.map(|()| queued)
}

/// # Safety
/// As for [`multiply`]; the workspace has [`WORKSPACE_BYTES`].
unsafe fn queue(
    stream: &DriverStream,
    blas: &dyn Blas,
    gemm: &Gemm,
    workspace: u64,
) -> Result<bool> {
    let context = stream.context();
    let _scope = stream.enter()?;
    let mut made = stream.device().blas.made.lock();
    let Some(handle) = handle(context, blas, &mut made)? else { return Ok(false) };
    let (calls, names) = (blas.calls(), blas.names());
    let check = |call: &'static str, code: c_int| match code {
        Status::SUCCESS => Ok(()),
        code => {
            let status = Status::host(Status::UNKNOWN);
            Err(Error::new(ErrorKind::Driver, status, "matmul", format!("{call} returned {code}")))
        }
    };
    // SAFETY: the handle is live; the stream is of the current context. A new stream takes the
    // workspace from the handle, so that comes second.
    unsafe {
        check(names.set_stream, (calls.set_stream)(handle, stream.raw()))?;
        check(names.set_workspace, (calls.set_workspace)(handle, workspace, WORKSPACE_BYTES))?;
    }
    // SAFETY: the caller's promise.
    let code = unsafe { blas.multiply(handle, gemm) };
    if blas.is_unsupported(code) {
        return Ok(false);
    }
    check(names.multiply, code)?;
    Ok(true)
}
