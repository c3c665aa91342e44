//! Modules of the host: compiled libraries loaded into the process.

use crate::code::LoadedCode;
use crate::compile::{self, ModuleText};
use crate::device::HostDevice;
use crate::kernel::HostKernel;
use crate::seal::unsealed;
use codegen::compile::format::{Format, examine};
use hal::error::common_kind;
use hal::module::file_bytes;
use hal::{
    Error, ErrorKind, Kernel, LoadOptions, Module, ModuleSource, Result, SourceText, Status,
    checking,
};
use host_executor::Library;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// A module. Its kernels keep the code loaded.
#[derive(Debug)]
pub(crate) struct HostModule {
    code: Arc<LoadedCode>,
    source: Option<SourceText>,
    log: String,
}

impl HostModule {
    /// Loads or compiles a module.
    ///
    /// # Safety
    /// The code is trusted: the initialisers of its variables run.
    pub(crate) unsafe fn load(
        device: Arc<HostDevice>,
        source: &ModuleSource<'_>,
        load_options: &LoadOptions,
    ) -> Result<HostModule> {
        let (image, log) = match *source {
            ModuleSource::Source { text, name, options } => {
                let mut options = options.to_vec();
                options.extend(load_options.debug.then_some("-G"));
                let compiled =
                    compile::compile(text, name, &options, checking::current().are_lasting())?;
                (Cow::Owned(compiled.code), compiled.log)
            }
            ModuleSource::Image(bytes) => (Cow::Borrowed(bytes), String::new()),
            ModuleSource::File(path) => (Cow::Owned(file_bytes(path)?), String::new()),
        };
        if examine(&image)? != Format::Elf {
            return Err(Error::new(
                ErrorKind::CompileFailed,
                Status::host(Status::INVALID_SOURCE),
                "load_module",
                "the image is code for a GPU; the host loads only code from its own compiler",
            ));
        }
        Library::check(&image).map_err(compile::error)?;
        let image = unsealed(&image).map_err(|what| Error::invalid("load_module", what))?;
        let text = ModuleText::of(image);
        // SAFETY: the caller's promise.
        let library = unsafe { Library::load(image) }.map_err(compile::error)?;
        let code = LoadedCode::new(device, library, text);
        Ok(HostModule { code, source: SourceText::of(source), log })
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.contains('\0') {
        return Err(Error::invalid("module", format!("name is {name:?}, with a zero in it")));
    }
    Ok(())
}

/// Formats the first names of a sorted list, and the number of remaining ones.
fn names(mut all: Vec<&str>) -> String {
    const SHOWN: usize = 16;
    all.sort_unstable();
    let first = all[..all.len().min(SHOWN)].join(", ");
    match all.len() {
        0 => "none".to_owned(),
        count if count <= SHOWN => first,
        count => format!("{first} and {} more", count - SHOWN),
    }
}

fn not_found(call: &'static str, detail: String) -> Error {
    let status = Status::host(Status::NOT_FOUND);
    Error::new(common_kind(status.code), status, call, detail)
}

impl Module for HostModule {
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>> {
        check_name(name)?;
        let found = host_executor::Kernel::find(&self.code.library, name);
        let kernel = found.ok_or_else(|| {
            let known = names(self.code.library.kernel_names().collect());
            let detail = format!("the module has no kernel named {name:?}; it has {known}");
            not_found("kernel", detail)
        })?;
        Ok(Arc::new(HostKernel::new(self.code.clone(), kernel)))
    }

    fn global(&self, name: &str) -> Result<(u64, usize)> {
        check_name(name)?;
        let found = self.code.library.variable(name);
        let (address, bytes) = found.ok_or_else(|| {
            not_found("global", format!("the module has no variable named {name:?}"))
        })?;
        Ok((address as u64, bytes))
    }

    fn source(&self) -> Option<&SourceText> {
        self.source.as_ref()
    }

    fn log(&self) -> &str {
        &self.log
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
