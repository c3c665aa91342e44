//! Builtin operations: generated source, compiled once per device and kept.

use super::calls::Handle;
use super::compiler::Compilation;
use super::context::{Context, lock};
use super::stream::DriverStream;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::source::{Launch, Plan, Spec};
use crate::stream::Stream;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The kernels of a specification, in the order of their names.
type Kernels = SmallVec<[Handle; 3]>;

/// The loaded builtin kernels of one device.
#[derive(Debug, Default)]
pub(super) struct Builtins {
    loaded: RwLock<FxHashMap<Spec, Kernels>>,
    /// Held while one is compiled, so that no two threads compile the same.
    compiling: Mutex<()>,
}

impl Builtins {
    /// The kernels of a specification, compiled if need be.
    #[inline]
    fn get(&self, context: &Context, spec: Spec) -> Result<Kernels> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = loaded.get(&spec) {
            return Ok(kernels.clone());
        }
        drop(loaded);
        self.load(context, spec)
    }

    #[cold]
    fn load(&self, context: &Context, spec: Spec) -> Result<Kernels> {
        let _compiling = lock(&self.compiling);
        let known = self.loaded.read().unwrap_or_else(PoisonError::into_inner).get(&spec).cloned();
        if let Some(kernels) = known {
            return Ok(kernels);
        }
        let code = code(context, spec)?;
        let kernels = load_kernels(context, &code, &spec.kernel_names())?;
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        loaded.insert(spec, kernels.clone());
        Ok(kernels)
    }

    /// Forgets everything: the device is being reset.
    pub(super) fn forget(&self) {
        self.loaded.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The code of a specification's kernels for the device: from the on-disk cache, else
/// compiled.
fn code(context: &Context, spec: Spec) -> Result<Arc<[u8]>> {
    let driver = &context.driver;
    let source = spec.source();
    let target = context.architecture()?;
    let compiler = driver.vendor.compiler().map_err(|error| {
        Error::new(
            error.kind(),
            error.status(),
            "execute",
            format!(
                "array operations on {target} are compiled when they are first used: {}",
                error.detail()
            ),
        )
    })?;
    let names = spec.kernel_names();
    let compilation = Compilation {
        text: &source,
        name: names.first().map_or("gpuarray", String::as_str),
        target,
        options: driver.vendor.builtin_options(),
        ..Compilation::default()
    };
    super::compiler::compile_cached(compiler.as_ref(), driver.cache()?, &compilation)
        .map(|compiled| compiled.code.into())
}

/// Loads code and finds its kernels. Builtin kernels stay loaded.
fn load_kernels(context: &Context, code: &[u8], names: &[String]) -> Result<Kernels> {
    let _scope = context.enter()?;
    let calls = &context.driver.calls;
    let mut module = 0;
    // SAFETY: the code was made by the compiler and is whole; the handle is written before
    // the call returns.
    let status = context.outside_captures(|| unsafe {
        (calls.module_load)(&mut module, code.as_ptr().cast(), 0, null_mut(), null_mut())
    });
    context.check("load_module", status)?;
    names
        .iter()
        .map(|name| {
            let text = CString::new(name.as_str())
                .map_err(|_| Error::invalid("execute", "a kernel's name has a zero in it"))?;
            let mut function = 0;
            // SAFETY: module and name are valid; the handle is written before the call returns.
            let status = unsafe { (calls.module_function)(&mut function, module, text.as_ptr()) };
            context.check("kernel", status)?;
            Ok(function)
        })
        .collect()
}

/// Queues a builtin operation.
///
/// # Safety
/// As for [`Stream::execute`].
pub(super) unsafe fn execute(stream: &DriverStream, operation: &Operation) -> Result<()> {
    let mut plan = Plan::new(operation)?;
    if plan.launches().is_empty() {
        return Ok(());
    }
    let context = stream.context();
    let kernels = context.builtins.get(context, plan.spec())?;
    let workspace_bytes = plan.workspace_bytes();
    if workspace_bytes == 0 {
        // SAFETY: the caller's promise.
        return unsafe { launch_all(stream, &plan, &kernels) };
    }
    let workspace = stream.allocate(workspace_bytes)?;
    plan.set_workspace(workspace);
    // SAFETY: the caller's promise, and the workspace is large enough.
    let launched = unsafe { launch_all(stream, &plan, &kernels) };
    // SAFETY: it was allocated above, and only the launches before this use it.
    launched.and(unsafe { stream.free(workspace, workspace_bytes) })
}

/// # Safety
/// The plan's arguments are those of its kernels, and its addresses stay allocated until the
/// launches have run.
unsafe fn launch_all(stream: &DriverStream, plan: &Plan, kernels: &[Handle]) -> Result<()> {
    let context = stream.context();
    let _scope = stream.enter()?;
    for launch in plan.launches() {
        let Launch { kernel, config, .. } = launch;
        let mut arguments = plan.arguments(launch);
        let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
        // SAFETY: the caller's promise; the driver reads the arguments before it returns.
        let code = unsafe {
            (context.driver.calls.launch)(
                kernels[*kernel],
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                config.shared_bytes,
                stream.raw(),
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        context.check("execute", code)?;
    }
    Ok(())
}
