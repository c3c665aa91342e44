//! Builtin operations on a stream: matrix products by the vendor's library if it is available, all others by kernels.

use super::DriverStream;
use crate::blas::{Blas, Gemm};
use crate::calls::Handle;
use codegen::source::Plan;
use hal::error::{Error, ErrorKind, Result};
use hal::operation::{Description, MatrixProduct, Operation};
use hal::status::Status;
use hal::stream::StreamCore;
use std::ffi::c_int;

/// The number of multiplications below which the library's overhead on the host is too large.
const WORTHWHILE: usize = 1 << 20;

/// The workspace of a product, of the size that NVIDIA recommends for its largest devices ("cublasSetWorkspace()"
/// in the documentation of cuBLAS).
const WORKSPACE_BYTES: usize = 32 << 20;

/// Queues a builtin operation.
///
/// # Safety
/// As for [`Stream::execute`](hal::stream::StreamCore::execute).
pub(super) unsafe fn execute(stream: &DriverStream, operation: &Operation) -> Result<()> {
    if let Description::MatrixProduct(product) = operation.description() {
        // SAFETY: the caller's promise.
        if unsafe { multiply(stream, product) }? {
            return Ok(());
        }
    }
    let mut plan = Plan::new(operation)?;
    if plan.launches().is_empty() {
        return Ok(());
    }
    let kernels = stream.device().builtins.get(plan.spec())?;
    let workspace_bytes = plan.workspace_bytes();
    if workspace_bytes == 0 {
        // SAFETY: the caller's promise.
        return unsafe { launch_all(stream, &plan, &kernels) };
    }
    let workspace = stream.allocate(workspace_bytes)?;
    plan.set_workspace(workspace);
    // SAFETY: the caller's promise, and the workspace is large enough.
    let launched = unsafe { launch_all(stream, &plan, &kernels) };
    // SAFETY: the workspace was allocated above, and only the launches before this use it.
    launched.and(unsafe { stream.free(workspace, workspace_bytes) })
}

/// # Safety
/// The plan's arguments match its kernels, and its addresses stay allocated until the launches have
/// run.
unsafe fn launch_all(stream: &DriverStream, plan: &Plan, kernels: &[Handle]) -> Result<()> {
    let context = stream.context();
    let _scope = stream.enter()?;
    for each in plan.launches() {
        let arguments = plan.arguments(each);
        let function = kernels[each.kernel];
        // SAFETY: the caller's promise; the driver reads the arguments before it returns.
        let code = unsafe { stream.launch(function, &each.config, &arguments)? };
        context.check("execute", code)?;
    }
    Ok(())
}

/// Queues matrix products; returns false, with nothing queued, if the library does not support them.
///
/// # Safety
/// As for [`Stream::execute`](hal::stream::StreamCore::execute).
unsafe fn multiply(stream: &DriverStream, product: &MatrixProduct) -> Result<bool> {
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
    // SAFETY: the workspace was allocated above, and only the product before this uses it.
    let freed = unsafe { stream.free(workspace, WORKSPACE_BYTES) };
    let queued = queued?;
    freed.map(|()| queued)
}

/// # Safety
/// As for [`multiply`]; the workspace has [`WORKSPACE_BYTES`] bytes.
unsafe fn queue(
    stream: &DriverStream,
    blas: &dyn Blas,
    gemm: &Gemm,
    workspace: u64,
) -> Result<bool> {
    let (_scope, names) = (stream.enter()?, blas.names());
    let check = |call: &'static str, code: c_int| match code {
        Status::SUCCESS => Ok(()),
        code => {
            let status = Status::host(Status::UNKNOWN);
            Err(Error::new(ErrorKind::Driver, status, "matmul", format!("{call} returned {code}")))
        }
    };
    let queued = stream.device().blas.with(stream.context(), blas, |handle| {
        let calls = blas.calls();
        // SAFETY: the handle is live, and the stream belongs to the current context. Setting the stream resets the
        // workspace of the handle, so the workspace is set second.
        unsafe {
            check(names.set_stream, (calls.set_stream)(handle, stream.raw()))?;
            check(names.set_workspace, (calls.set_workspace)(handle, workspace, WORKSPACE_BYTES))?;
        }
        let _adding = stream.adding()?;
        // SAFETY: the caller's promise.
        Ok(unsafe { blas.multiply(handle, gemm) })
    })?;
    match queued {
        Some(code) if !blas.is_unsupported(code) => check(names.multiply, code).map(|()| true),
        _ => Ok(false),
    }
}
