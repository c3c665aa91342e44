//! Builtin operations on a driver's streams.

use super::DriverStream;
use crate::blas;
use crate::calls::Handle;
use crate::kernel::launch;
use codegen::source::Plan;
use hal::error::Result;
use hal::operation::{Description, Operation};
use hal::stream::StreamCore;

/// Queues a builtin operation.
///
/// # Safety
/// As for [`Stream::execute`](hal::stream::StreamCore::execute).
pub(super) unsafe fn execute(stream: &DriverStream, operation: &Operation) -> Result<()> {
    if let Description::MatrixProduct(product) = operation.description() {
        // SAFETY: the caller's promise.
        if unsafe { blas::multiply(stream, product) }? {
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
        let mut arguments = plan.arguments(each);
        let adding = stream.adding()?;
        // SAFETY: the caller's promise; the driver reads the arguments before it returns.
        let code = unsafe {
            let function = kernels[each.kernel];
            launch(
                &context.driver.calls,
                function,
                stream.raw(),
                &each.config,
                arguments.as_mut_ptr(),
            )
        };
        drop(adding);
        context.check("execute", code)?;
    }
    Ok(())
}
