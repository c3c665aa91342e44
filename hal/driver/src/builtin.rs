//! The code of builtin operations: embedded in the program, from the on-disk cache or compiled from generated source.
//! It is loaded once per device and kept, as is the handle of the vendor's linear algebra library.

use super::blas::Blas;
use super::calls::Handle;
use super::context::Context;
use codegen::compile::embedded::{EmbeddedModule, ModuleId};
use codegen::compile::format::examine;
use codegen::compile::{Compilation, find_code, would_fail_again};
use codegen::source::KernelSpec;
use hal::error::{Error, Result};
use hal::locks::{LOADING, Ranked};
use hal::nonblocking;
use hal::poison::Unpoisoned as _;
use hal::status::Status;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::{Arc, RwLock};

/// The kernels of a specification, in the order of their names.
pub(super) type Kernels = SmallVec<[Handle; 3]>;

/// The loaded builtin kernels of one device.
#[derive(Debug)]
pub(super) struct Builtins {
    context: Arc<Context>,
    loaded: RwLock<LoadedKernels>,
    /// Held while a kernel is compiled or loaded, so that no two threads do the same.
    loading: Ranked<(), LOADING>,
}

#[derive(Debug, Default)]
struct LoadedKernels {
    /// The context's epoch when the kernels were loaded. They do not exist in another epoch.
    epoch: u64,
    kernels: FxHashMap<KernelSpec, Kernels>,
    /// Embedded modules, some with kernels of many specifications; `None` for modules that the driver
    /// refused.
    embedded: FxHashMap<ModuleId, Option<Handle>>,
}

impl Builtins {
    /// Returns an empty collection of kernels.
    pub(super) fn new(context: &Arc<Context>) -> Builtins {
        let (loaded, loading) = (RwLock::default(), Ranked::new(()));
        Builtins { context: context.clone(), loaded, loading }
    }

    /// Returns the kernels of a specification, and compiles them if necessary.
    #[inline]
    pub(super) fn get(&self, spec: &KernelSpec) -> Result<Kernels> {
        match self.known(|loaded| loaded.kernels.get(spec).cloned()) {
            Some(kernels) => Ok(kernels),
            None => self.load(spec),
        }
    }

    /// Returns the result of `find` among the kernels of this epoch.
    #[inline]
    fn known<T>(&self, find: impl FnOnce(&LoadedKernels) -> Option<T>) -> Option<T> {
        let loaded = self.loaded.read().unpoisoned();
        if loaded.epoch == self.context.epoch() { find(&loaded) } else { None }
    }

    #[cold]
    fn load(&self, spec: &KernelSpec) -> Result<Kernels> {
        nonblocking::before_waiting()?;
        let _loading = self.loading.lock();
        if let Some(kernels) = self.known(|loaded| loaded.kernels.get(spec).cloned()) {
            return Ok(kernels);
        }
        let context = &self.context;
        let epoch = context.epoch();
        let (source, names) = (spec.source(), spec.kernel_names());
        let module = match self.embedded_module(&source)? {
            Some(module) => module,
            None => compiled_module(context, &source, &names)?,
        };
        let kernels = find_kernels(context, module, &names)?;
        self.keep(epoch, |loaded| loaded.kernels.insert(spec.clone(), kernels.clone()))?;
        Ok(kernels)
    }

    /// Returns the best embedded module that has the kernels of a source and that the driver accepts, if any.
    fn embedded_module(&self, source: &str) -> Result<Option<Handle>> {
        for found in EmbeddedModule::all(self.context.target()?, source) {
            if let Some(module) = self.load_embedded(&found)? {
                return Ok(Some(module));
            }
        }
        Ok(None)
    }

    /// Loads an embedded module; `None` if the driver refuses it.
    fn load_embedded(&self, found: &EmbeddedModule) -> Result<Option<Handle>> {
        let context = &self.context;
        if let Some(known) = self.known(|loaded| loaded.embedded.get(&found.id).copied()) {
            return Ok(known);
        }
        let (epoch, name) = (context.epoch(), found.target().name());
        let module = match found.code().map(|code| load_module(context, &code)) {
            Some(Ok(module)) => Some(module),
            Some(Err(error)) if would_fail_again(&error) => return Err(error),
            // For example, code from a compiler that is too new for this driver. Drivers have many
            // statuses for it.
            Some(Err(error)) => {
                log::warn!("embedded code for {name} is not used: {error}");
                None
            }
            None => {
                log::warn!("embedded code for {name} is not used: it is damaged");
                None
            }
        };
        self.keep(epoch, |loaded| loaded.embedded.insert(found.id, module))?;
        Ok(module)
    }

    /// Stores loaded code with `enter`, unless a reset has destroyed it since `epoch`.
    fn keep<T>(&self, epoch: u64, enter: impl FnOnce(&mut LoadedKernels) -> T) -> Result<()> {
        let mut loaded = self.loaded.write().unpoisoned();
        self.context.check_epoch(epoch)?;
        if loaded.epoch != epoch {
            *loaded = LoadedKernels { epoch, ..LoadedKernels::default() };
        }
        enter(&mut loaded);
        Ok(())
    }
}

/// Returns the module with the kernels of a source from the on-disk cache, or compiles it.
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
    find_code(&compilation, driver.cache()?, driver.vendor.compiler(), load)
}

/// Loads code. Builtin kernels stay loaded.
fn load_module(context: &Context, code: &[u8]) -> Result<Handle> {
    examine(code)?;
    let _scope = context.enter()?;
    let mut module = 0;
    // SAFETY: the code was examined, and a compiler ends text with a zero byte; the handle is
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
        let text = CString::new(name.as_str()).map_err(|_| {
            Error::invalid("execute", format!("name is {name:?}, with a zero in it"))
        })?;
        let mut function = 0;
        // SAFETY: module and name are valid; the handle is written before the call returns.
        let status = unsafe { find(&mut function, module, text.as_ptr()) };
        context.check("kernel", status)?;
        Ok(function)
    };
    names.iter().map(kernel).collect()
}

/// The linear algebra library's handle of a device's context. Products are queued while its lock is held, because a
/// handle has one stream and one workspace at a time. It is never destroyed: its resources end with the context, and a
/// handle of an earlier epoch is not used.
#[derive(Debug, Default)]
pub(super) struct BlasHandle {
    /// The epoch, and the handle; `None` if its creation failed, which is not tried again.
    made: Ranked<Option<(u64, Option<Handle>)>, LOADING>,
}

impl BlasHandle {
    /// Calls `queue` with the handle of the current context, which is created on first use. Returns `None` if the
    /// library could not create it.
    pub(super) fn with<R>(
        &self,
        context: &Context,
        blas: &dyn Blas,
        queue: impl FnOnce(Handle) -> Result<R>,
    ) -> Result<Option<R>> {
        let (mut made, epoch) = (self.made.lock(), context.epoch());
        let known = made.filter(|(of, _)| *of == epoch).map(|it| it.1);
        let handle = match known {
            Some(known) => known,
            None => {
                nonblocking::before_waiting()?;
                let new = create(context, blas);
                *made = Some((epoch, new));
                new
            }
        };
        handle.map(queue).transpose()
    }
}

fn create(context: &Context, blas: &dyn Blas) -> Option<Handle> {
    let mut handle = 0;
    // SAFETY: the handle is written before the call returns; the context is current.
    let code = context.outside_captures(|| unsafe { (blas.calls().create)(&mut handle) });
    if code != Status::SUCCESS {
        log::warn!("{} returned {code}; own kernels multiply matrices", blas.names().create);
    }
    (code == Status::SUCCESS).then_some(handle)
}
