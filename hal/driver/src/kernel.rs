//! Loaded code: modules and their kernels.

use crate::calls::Handle;
use crate::context::Context;
use crate::stream::DriverStream;
use crate::vendor::{KernelParameters, Lasting, optional};
use codegen::compile::format::{Format, examine};
use codegen::compile::{Compilation, JitOptions, compile_cached};
use hal::error::{Error, ErrorKind, Result};
use hal::memory::{GraphObject, is_left};
use hal::module::{
    Kernel, KernelAttribute, LaunchConfig, LaunchLimits, LoadOptions, Module, ModuleSource,
    Parameter, SourceText, file_bytes,
};
use hal::poison::Unpoisoned as _;
use hal::properties::DeviceAttribute;
use hal::status::Status;
use hal::stream::{Stream, StreamCapture};
use hal::submission::some_may_capture;
use std::any::Any;
use std::borrow::Cow;
use std::ffi::{CString, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// `CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH`; the backends translate the number.
pub(super) const COOPERATIVE_LAUNCH: DeviceAttribute = DeviceAttribute(95);

/// The attributes of a kernel that can be set: shared memory, its share of the on-chip memory, and
/// the extents of clusters.
const SETTABLE: std::ops::RangeInclusive<i32> = 8..=15;

/// The dynamic shared memory that a kernel may use by default.
const DEFAULT_SHARED: u32 = 48 << 10;

/// Loaded code.
#[derive(Debug)]
pub(super) struct LoadedCode {
    pub(super) context: Arc<Context>,
    pub(super) epoch: u64,
    /// The parameters of its kernels, if the code describes them and the driver does not.
    pub(super) parameters: Option<KernelParameters>,
    pub(super) handle: Handle,
    pub(super) log: String,
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        let context = &self.context;
        if !context.is_alive(self.epoch) || context.is_lost() {
            return;
        }
        // The driver refuses to unload code inside a host function.
        let same = || LoadedCode {
            context: context.clone(),
            parameters: None,
            log: String::new(),
            ..*self
        };
        if is_left(context.device_id(), same) {
            return;
        }
        let unload = || {
            let _scope = context.enter()?;
            // SAFETY: the handle is live and has no other references.
            let code = context
                .outside_captures(|| unsafe { (context.driver.calls.module_unload)(self.handle) });
            context.check("unload_module", code)
        };
        if let Err(error) = unload() {
            log::warn!("unloading a module failed: {error}");
        }
    }
}

/// A function that the device runs.
#[derive(Debug)]
pub(super) struct DriverKernel {
    module: Arc<LoadedCode>,
    handle: Handle,
    name: String,
    parameters: OnceLock<Option<Vec<Parameter>>>,
    /// The current limit of the kernel's dynamic shared memory.
    shared_limit: AtomicU32,
    raising: Mutex<()>,
}

impl DriverKernel {
    /// Returns the kernel of a function in loaded code.
    pub(super) fn new(module: Arc<LoadedCode>, handle: Handle, name: &str) -> DriverKernel {
        DriverKernel {
            module,
            handle,
            name: name.to_owned(),
            parameters: OnceLock::new(),
            shared_limit: AtomicU32::new(DEFAULT_SHARED),
            raising: Mutex::new(()),
        }
    }

    fn context(&self) -> &Arc<Context> {
        &self.module.context
    }

    /// Raises the kernel's limit of dynamic shared memory.
    #[cold]
    fn raise_shared_limit(&self, bytes: u32) -> Result<()> {
        let context = self.context();
        let _raising = self.raising.lock().unpoisoned();
        if bytes <= self.shared_limit.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(set) = context.driver.calls.function_set_attribute else { return Ok(()) };
        let attribute = KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES.0;
        // SAFETY: the function is live.
        let code = unsafe { set(self.handle, attribute, bytes as c_int) };
        if code != Status::SUCCESS {
            return Err(self.refused(code, bytes));
        }
        self.shared_limit.store(bytes, Ordering::Release);
        Ok(())
    }

    fn refused(&self, code: c_int, bytes: u32) -> Error {
        // `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
        let most = self.context().attribute(DeviceAttribute(97)).unwrap_or(0);
        let fixed = self.attribute(KernelAttribute::SHARED_SIZE_BYTES).unwrap_or(0);
        self.context().driver.error_with(
            "launch",
            code,
            &format!(
                "shared_bytes is {bytes} for kernel {}, which itself needs {fixed}; a block can have \
                 {most} in all",
                self.name
            ),
        )
    }

    /// Prepares stream, context and kernel for a launch, and calls `launch`, which returns the driver's status. If the
    /// launch failed, `fail` returns the error, while the context is current.
    #[inline]
    fn queue(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        fail: fn(&Self, c_int, &LaunchConfig) -> Error,
        launch: impl FnOnce(&DriverStream) -> Result<c_int>,
    ) -> Result<()> {
        let context = self.context();
        let stream = DriverStream::own(stream, context)?;
        let _scope = context.enter_for(self.module.epoch)?;
        if config.shared_bytes > self.shared_limit.load(Ordering::Acquire) {
            self.raise_shared_limit(config.shared_bytes)?;
        }
        self.keep_code(stream)?;
        match launch(stream)? {
            Status::SUCCESS => Ok(()),
            code => Err(fail(self, code, config)),
        }
    }

    /// Makes the graph of the stream's capture, if any, keep the code.
    #[inline]
    fn keep_code(&self, stream: &DriverStream) -> Result<()> {
        if !some_may_capture() {
            return Ok(());
        }
        let code: GraphObject = self.module.clone();
        stream.keep_object(&code)
    }

    /// Returns the error of a failed launch, and names the value that is too large if that is the
    /// reason.
    #[cold]
    fn launch_error(&self, code: c_int, config: &LaunchConfig) -> Error {
        let context = self.context();
        let lasting = context.driver.vendor.lasting(code);
        if lasting == Lasting::Yes {
            return context.failed("launch", code);
        }
        match self.excess(config) {
            Some(detail) => {
                // Drivers have several numbers for a launch that no device supports.
                let kind = match context.driver.kind(code) {
                    ErrorKind::Driver => ErrorKind::InvalidArgument,
                    _ if lasting == Lasting::Unclear => ErrorKind::InvalidArgument,
                    kind => kind,
                };
                Error::new(kind, Status::new(context.driver.vendor.api(), code), "launch", detail)
            }
            None => {
                let error = context.failed("launch", code);
                if context.is_lost() {
                    return error;
                }
                let detail = format!(
                    "kernel {} with grid {:?}, block {:?} and shared_bytes {} cannot be launched: {}",
                    self.name,
                    config.grid,
                    config.block,
                    config.shared_bytes,
                    context.driver.vendor.reason(code)
                );
                Error::new(error.kind(), error.status(), "launch", detail)
            }
        }
    }

    /// Returns the error of a failed cooperative launch, which some devices do not support at all.
    #[cold]
    fn cooperative_launch_error(&self, code: c_int, config: &LaunchConfig) -> Error {
        let context = self.context();
        if context.attribute(COOPERATIVE_LAUNCH).is_ok_and(|it| it == 0) {
            let (vendor, ordinal) = (context.driver.vendor.name(), context.ordinal);
            let detail = format!("device {vendor}:{ordinal} has no cooperative launches");
            let error = context.driver.error_with("launch_cooperative", code, &detail);
            let detail = error.detail().to_owned();
            return Error::new(
                ErrorKind::Unsupported,
                error.status(),
                "launch_cooperative",
                detail,
            );
        }
        self.launch_error(code, config)
    }

    /// Returns a sentence about the first value of a launch that exceeds the limits of the device or
    /// the kernel.
    fn excess(&self, config: &LaunchConfig) -> Option<String> {
        let limit = |attribute| self.context().attribute(attribute).ok().map(|it| it.max(0) as u64);
        let axes = |DeviceAttribute(first)| {
            let [x, y, z] = [first, first + 1, first + 2].map(|it| limit(DeviceAttribute(it)));
            Some([x?, y?, z?])
        };
        let own = |attribute| self.attribute(attribute).ok().map(|it| it.max(0) as u64);
        let limits = LaunchLimits {
            grid: axes(DeviceAttribute::MAX_GRID_DIM_X)?,
            block: axes(DeviceAttribute::MAX_BLOCK_DIM_X)?,
            threads: limit(DeviceAttribute::MAX_THREADS_PER_BLOCK)?,
            kernel_threads: own(KernelAttribute::MAX_THREADS_PER_BLOCK)?,
            static_shared: own(KernelAttribute::SHARED_SIZE_BYTES)?,
            shared: limit(DeviceAttribute(97)).filter(|most| *most > 0),
        };
        limits.excess(&self.name, config)
    }

    fn read_parameters(&self) -> Option<Vec<Parameter>> {
        let Some(read) = self.context().driver.calls.function_parameter else {
            return self.module.parameters.as_ref()?.get(&self.name).cloned();
        };
        let mut all = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is live; past the last parameter the call fails.
            match unsafe { read(self.handle, all.len(), &mut offset, &mut size) } {
                Status::SUCCESS => all.push(Parameter { offset, size, is_pointer: None }),
                Status::INVALID_VALUE => return Some(all),
                // Old code does not describe its parameters.
                _ => return None,
            }
        }
    }
}

impl Kernel for DriverKernel {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    unsafe fn launch_raw(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.queue(stream, config, DriverKernel::launch_error, |stream| {
            // SAFETY: function and stream are live; the caller's promise covers the arguments.
            unsafe { stream.launch(self.handle, config, arguments) }
        })
    }

    unsafe fn launch_cooperative(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        let launch = optional!(self.context().driver, launch_cooperative, "launch_cooperative")?;
        let ([gx, gy, gz], [bx, by, bz], shared) = (config.grid, config.block, config.shared_bytes);
        self.queue(stream, config, DriverKernel::cooperative_launch_error, |stream| {
            let (arguments, _adding) = (arguments.as_ptr().cast_mut(), stream.adding()?);
            // SAFETY: as for `launch_raw`.
            Ok(unsafe {
                launch(self.handle, gx, gy, gz, bx, by, bz, shared, stream.raw(), arguments)
            })
        })
    }

    fn parameters(&self) -> Result<Option<&[Parameter]>> {
        if let Some(known) = self.parameters.get() {
            return Ok(known.as_deref());
        }
        let _scope = self.context().enter_for(self.module.epoch)?;
        Ok(self.parameters.get_or_init(|| self.read_parameters()).as_deref())
    }

    fn attribute(&self, attribute: KernelAttribute) -> Result<i32> {
        let context = self.context();
        let _scope = context.enter_for(self.module.epoch)?;
        let mut value = 0;
        // SAFETY: the function is live; the result is written before the call returns.
        let code = unsafe {
            (context.driver.calls.function_attribute)(&mut value, attribute.0, self.handle)
        };
        context.check("attribute", code)?;
        Ok(value)
    }

    fn set_attribute(&self, attribute: KernelAttribute, value: i32) -> Result<()> {
        let context = self.context();
        // A driver was seen to read past its table for an unknown number.
        if !SETTABLE.contains(&attribute.0) {
            return Err(Error::invalid(
                "set_attribute",
                format!(
                    "attribute is {}; those that can be set are {} to {}",
                    attribute.0,
                    SETTABLE.start(),
                    SETTABLE.end()
                ),
            ));
        }
        let _scope = context.enter_for(self.module.epoch)?;
        let is_permission = attribute == KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES;
        if is_permission && context.driver.calls.function_set_attribute.is_none() {
            // If the driver lacks a call that sets the limit, the limit does not have to be set.
            let granted = self.attribute(attribute)?;
            return match (0..=granted).contains(&value) {
                true => Ok(()),
                false => Err(Error::invalid(
                    "set_attribute",
                    format!(
                        "value is {value} for kernel {}; allowed are 0 to {granted}",
                        self.name
                    ),
                )),
            };
        }
        let set = optional!(context.driver, function_set_attribute, "set_attribute")?;
        // SAFETY: the function is live, and the driver knows the attribute.
        context.check("set_attribute", unsafe { set(self.handle, attribute.0, value) })?;
        if is_permission {
            self.shared_limit.store(value.max(0) as u32, Ordering::Release);
        }
        Ok(())
    }

    fn active_blocks(&self, threads: u32, shared_bytes: usize) -> Result<u32> {
        let context = self.context();
        let read = optional!(context.driver, active_blocks, "active_blocks")?;
        let _scope = context.enter_for(self.module.epoch)?;
        let mut blocks = 0;
        // SAFETY: the function is live; the result is written before the call returns.
        let code = unsafe { read(&mut blocks, self.handle, threads as c_int, shared_bytes, 0) };
        context.check("active_blocks", code)?;
        Ok(blocks.max(0) as u32)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

// Modules of a driver.

/// A module; its kernels keep the code.
#[derive(Debug)]
pub(super) struct DriverModule {
    code: Arc<LoadedCode>,
    source: Option<SourceText>,
}

impl DriverModule {
    /// Loads or compiles a module.
    pub(super) fn load(
        context: &Arc<Context>,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<DriverModule> {
        let (image, compiled_log) = match *source {
            ModuleSource::Source { text, name, options } => {
                let compilation = Compilation {
                    text,
                    name,
                    target: context.target()?,
                    options,
                    headers: true,
                    ..Compilation::default()
                };
                let compiler = context.driver.vendor.compiler()?;
                let compiled =
                    compile_cached(compiler.as_ref(), context.driver.cache()?, &compilation)?;
                (Cow::Owned(compiled.code), compiled.log)
            }
            ModuleSource::Image(bytes) => (Cow::Borrowed(bytes), String::new()),
            ModuleSource::File(path) => (Cow::Owned(file_bytes(path)?), String::new()),
        };
        let mut image = image;
        if examine(&image)? == Format::Ptx && image.last() != Some(&0) {
            image.to_mut().push(0);
        }
        let parameters = match context.driver.calls.function_parameter {
            Some(_) => None,
            None => context.driver.vendor.parameters(&image, &context.architecture),
        };
        let (handle, loader_log) = load_image(context, &image, options)?;
        let log = [compiled_log.trim(), loader_log.trim()].join("\n").trim().to_owned();
        let epoch = context.epoch();
        let context = context.clone();
        let code = Arc::new(LoadedCode { context, epoch, parameters, handle, log });
        Ok(DriverModule { code, source: SourceText::of(source) })
    }
}

fn load_image(context: &Context, image: &[u8], options: &LoadOptions) -> Result<(Handle, String)> {
    let mut jit = JitOptions::new(options);
    let (count, keys, values) = jit.as_arguments();
    let _scope = context.enter()?;
    let mut handle = 0;
    // SAFETY: the image was examined and ends with a zero if it is text; options and logs
    // outlive the call.
    let code = context.outside_captures(|| unsafe {
        (context.driver.calls.module_load)(&mut handle, image.as_ptr().cast(), count, keys, values)
    });
    context.check("load_module", code).map_err(|error| {
        let log = jit.errors();
        let detail = if log.is_empty() {
            error.detail().to_owned()
        } else {
            format!("{}: {log}", error.detail())
        };
        Error::new(error.kind(), error.status(), "load_module", detail)
    })?;
    Ok((handle, jit.info()))
}

/// Converts a symbol's name to a C string.
fn symbol(name: &str) -> Result<CString> {
    CString::new(name)
        .map_err(|_| Error::invalid("module", format!("name is {name:?}, with a zero in it")))
}

impl Module for DriverModule {
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>> {
        let LoadedCode { context, epoch, handle, .. } = &*self.code;
        let text = symbol(name)?;
        let _scope = context.enter_for(*epoch)?;
        let mut function = 0;
        // SAFETY: module and name are valid; the handle is written before the call returns.
        let code = unsafe {
            (context.driver.calls.module_function)(&mut function, *handle, text.as_ptr())
        };
        if code == Status::NOT_FOUND || (code == Status::INVALID_VALUE && name.is_empty()) {
            let detail = format!("the module has no kernel named {name:?}");
            return Err(context.driver.error_with("kernel", Status::NOT_FOUND, &detail));
        }
        context.check("kernel", code)?;
        Ok(Arc::new(DriverKernel::new(self.code.clone(), function, name)))
    }

    fn global(&self, name: &str) -> Result<(u64, usize)> {
        let LoadedCode { context, epoch, handle, .. } = &*self.code;
        let text = symbol(name)?;
        let _scope = context.enter_for(*epoch)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: module and name are valid; the results are written before the call returns.
        let code = unsafe {
            (context.driver.calls.module_global)(&mut address, &mut bytes, *handle, text.as_ptr())
        };
        if code == Status::NOT_FOUND || (code == Status::INVALID_VALUE && name.is_empty()) {
            let detail = format!("the module has no variable named {name:?}");
            return Err(context.driver.error_with("global", Status::NOT_FOUND, &detail));
        }
        context.check("global", code)?;
        Ok((address, bytes))
    }

    fn source(&self) -> Option<&SourceText> {
        self.source.as_ref()
    }

    fn log(&self) -> &str {
        &self.code.log
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
