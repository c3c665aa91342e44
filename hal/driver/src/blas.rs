//! Products of matrices by the vendor's library of linear algebra, where there is one: cuBLAS, rocBLAS.
//!
//! The library is never required. What it does not take, and everything where it is missing, is
//! computed by kernels of [`codegen::source`].

mod gemm;
mod library;

use super::calls::Handle;
use super::context::Context;
use super::stream::DriverStream;
use hal::error::{Error, ErrorKind, Result};
use hal::locks::{LOADING, Ranked};
use hal::nonblocking;
use hal::operation::MatrixProduct;
use hal::status::Status;
use hal::stream::StreamCore;
use std::ffi::c_int;

pub use gemm::Gemm;
pub use library::{Blas, BlasAbi, BlasCalls, BlasLibrary, BlasNames, BlasProduct, MatrixAddress};

/// Products of fewer multiplications are not worth the library's own work on the host.
const WORTHWHILE: usize = 1 << 20;

/// The workspace of a product, which NVIDIA recommends for its largest devices ("cublasSetWorkspace()"
/// in the documentation of cuBLAS).
const WORKSPACE_BYTES: usize = 32 << 20;

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
        nonblocking::before_waiting()?;
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
/// As for [`Stream::execute`](hal::stream::StreamCore::execute).
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
    let adding = stream.adding()?;
    // SAFETY: the caller's promise.
    let code = unsafe { blas.multiply(handle, gemm) };
    drop(adding);
    if blas.is_unsupported(code) {
        return Ok(false);
    }
    check(names.multiply, code)?;
    Ok(true)
}
