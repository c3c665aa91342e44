//! Builtin operations: code from the program itself, from the on-disk cache or compiled from
//! generated source, loaded once per device and kept.

use super::calls::Handle;
use super::context::Context;
use super::stream::DriverStream;
use crate::attempt;
use crate::compile::Compilation;
use crate::compile::embedded::{EmbeddedObject, ObjectId};
use crate::compile::format::examine;
use crate::compile::lookup::{self, would_fail_again};
use crate::error::{Error, Result};
use crate::locks::{LOADING, Ranked};
use crate::operation::Operation;
use crate::source::{Launch, Plan, Spec};
use crate::stream::Stream;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The kernels of a specification, in the order of their names.
type Kernels = SmallVec<[Handle; 3]>;

/// The loaded builtin kernels of one device.
#[derive(Debug, Default)]
pub(super) struct Builtins {
    loaded: RwLock<Loaded>,
    /// Held while one is compiled or loaded, so that no two threads do the same.
    loading: Ranked<(), LOADING>,
}

#[derive(Debug, Default)]
struct Loaded {
    kernels: FxHashMap<Spec, Kernels>,
    /// The modules of embedded objects, each with kernels of many specifications; `None` for
    /// those that the driver refused.
    embedded: FxHashMap<ObjectId, Option<Handle>>,
}

impl Builtins {
    /// The kernels of a specification, compiled if need be.
    #[inline]
    fn get(&self, context: &Context, spec: Spec) -> Result<Kernels> {
        let loaded = self.read();
        if let Some(kernels) = loaded.kernels.get(&spec) {
            return Ok(kernels.clone());
        }
        drop(loaded);
        self.load(context, spec)
    }

    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn load(&self, context: &Context, spec: Spec) -> Result<Kernels> {
        attempt::before_waiting()?;
        let _loading = self.loading.lock();
        let known = self.read().kernels.get(&spec).cloned();
        if let Some(kernels) = known {
            return Ok(kernels);
        }
        let epoch = context.epoch();
        let (source, names) = (spec.source(), spec.kernel_names());
        let module = match self.embedded_module(context, &source)? {
            Some(module) => module,
            None => compiled_module(context, &source, &names)?,
        };
        let kernels = find_kernels(context, module, &names)?;
        self.keep(context, epoch, |loaded| loaded.kernels.insert(spec, kernels.clone()))?;
        Ok(kernels)
    }

    /// The module with the kernels of a source that is part of the program, if there is one
    /// that the driver takes.
    fn embedded_module(&self, context: &Context, source: &str) -> Result<Option<Handle>> {
        let Some(found) = EmbeddedObject::best(context.target()?, source) else {
            return Ok(None);
        };
        let known = self.read().embedded.get(&found.id).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let (epoch, name) = (context.epoch(), found.target.name());
        let module = match found.code().map(|code| load_module(context, &code)) {
            Some(Ok(module)) => Some(module),
            Some(Err(error)) if would_fail_again(&error) => return Err(error),
            // Made by a compiler that is too new for this driver, for example. Drivers have
            // many statuses for it.
            Some(Err(error)) => {
                log::warn!("embedded code for {name} is not used: {error}");
                None
            }
            None => {
                log::warn!("embedded code for {name} is not used: it is damaged");
                None
            }
        };
        self.keep(context, epoch, |loaded| loaded.embedded.insert(found.id, module))?;
        Ok(module)
    }

    /// Enters what was loaded, unless a reset has taken it since `epoch`.
    fn keep<T>(
        &self,
        context: &Context,
        epoch: u64,
        enter: impl FnOnce(&mut Loaded) -> T,
    ) -> Result<()> {
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        context.check_epoch(epoch)?;
        enter(&mut loaded);
        Ok(())
    }

    /// Forgets everything: the device is being reset. Waits for nobody who could wait for a
    /// reset.
    pub(super) fn forget(&self) {
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Loaded::default();
    }
}

/// The module with the kernels of a source from the on-disk cache, else compiled.
fn compiled_module(context: &Context, source: &str, names: &[String]) -> Result<Handle> {
    let driver = &context.driver;
    let compilation = Compilation {
        text: source,
        name: names.first().map_or("gpuarray", String::as_str),
        target: context.target()?,
        options: driver.vendor.builtin_options(),
        ..Compilation::default()
    };
    let load = |code: &[u8]| load_module(context, code);
    lookup::find(&compilation, driver.cache()?, driver.vendor.compiler(), load)
}

/// Loads code. Builtin kernels stay loaded.
fn load_module(context: &Context, code: &[u8]) -> Result<Handle> {
    examine(code)?;
    let _scope = context.enter()?;
    let mut module = 0;
    // SAFETY: the code was examined, and a compiler ends its text with a zero; the handle is
    // written before the call returns.
    let status = context.outside_captures(|| unsafe {
        let load = context.driver.calls.module_load;
        load(&mut module, code.as_ptr().cast(), 0, null_mut(), null_mut())
    });
    context.check("load_module", status)?;
    Ok(module)
}

fn find_kernels(context: &Context, module: Handle, names: &[String]) -> Result<Kernels> {
    let _scope = context.enter()?;
    let find = context.driver.calls.module_function;
    let kernel = |name: &String| {
        let text = CString::new(name.as_str())
            .map_err(|_| Error::invalid("execute", "a kernel's name has a zero in it"))?;
        let mut function = 0;
        // SAFETY: module and name are valid; the handle is written before the call returns.
        let status = unsafe { find(&mut function, module, text.as_ptr()) };
        context.check("kernel", status)?;
        Ok(function)
    };
    names.iter().map(kernel).collect()
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
