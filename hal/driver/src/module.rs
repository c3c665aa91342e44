//! Modules of a driver.

use super::calls::Handle;
use super::context::Context;
use super::kernel::{DriverKernel, LoadedCode};
use codegen::compile::JitOptions;
use codegen::compile::format::{Format, examine};
use codegen::compile::{Compilation, compile_cached};
use hal::error::{Error, Result};
use hal::module::{Kernel, LoadOptions, Module, ModuleSource, SourceText, file_bytes};
use hal::status::Status;
use std::any::Any;
use std::borrow::Cow;
use std::ffi::CString;
use std::sync::Arc;

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
