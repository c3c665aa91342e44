//! Programs in CUDA C, compiled for any device.

use cuda_c::dialects::{Adapted, Dialect, FOR_DEVICE, HEADER_FOLDERS, advice, gpu_headers};
use cuda_c::{TemporaryFolder, diagnostics, write_headers};
use hal::module::Compiled;
use hal::{
    Device, Error, ErrorKind, Feature, Kernel, LoadOptions, Module, ModuleSource, Result,
    SourceText, Status,
};
use std::any::Any;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

/// A program in the CUDA C of nvcc, for a device of any backend.
///
/// [`Device::compile`] passes a text to the device's own compiler. A `Program` adds what this compiler lacks of
/// nvcc's language: headers of C and C++, nvcc's options and macros and, on AMD GPUs, functions and types of CUDA C.
///
/// ```
/// use gpuarray::{DeviceArray, LaunchConfig, LoadOptions, Program};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let program = Program::new(
///     "#include <stdint.h>
///      __global__ void limit(int32_t *x) { x[threadIdx.x] = min(x[threadIdx.x], INT32_MAX / N); }",
/// );
/// // SAFETY: the text does not declare variables with initialisers.
/// let module = unsafe {
///     program.extern_c(true).option("-DN=1000000").load(device.as_ref(), &LoadOptions::default())?
/// };
/// let mut x = DeviceArray::from_slice(&device, &[7, i32::MAX])?;
/// let stream = device.default_stream();
/// // SAFETY: two threads, two elements.
/// unsafe { module.kernel("limit")?.launch(LaunchConfig::linear(2, 2), &stream, (&mut x,))? };
/// assert_eq!(x.to_vec()?, [7, 2147]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    text: String,
    file: String,
    options: Vec<String>,
    include_dirs: Vec<PathBuf>,
    packages: Option<Vec<PathBuf>>,
    extern_c: bool,
}

impl Program {
    /// Returns a program without options. Messages call the program `kernel.cu`.
    pub fn new(text: impl Into<String>) -> Self {
        Program {
            text: text.into(),
            file: "kernel.cu".into(),
            options: Vec::new(),
            include_dirs: Vec::new(),
            packages: None,
            extern_c: false,
        }
    }

    /// Sets the file name that messages show.
    #[must_use]
    pub fn file(self, file: impl Into<String>) -> Self {
        Program { file: file.into(), ..self }
    }

    /// Adds an option of nvcc. Options for nvcc's host compiler are ignored.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Adds a folder of headers.
    #[must_use]
    pub fn include_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(folder.into());
        self
    }

    /// Sets the folders of Python packages below which NVIDIA's headers may be installed. The default is
    /// `hal::library::search_directories`.
    #[must_use]
    pub fn packages(self, folders: Vec<PathBuf>) -> Self {
        Program { packages: Some(folders), ..self }
    }

    /// Sets whether the text is compiled inside `extern "C" { ... }`, so that kernels' names are not mangled.
    #[must_use]
    pub fn extern_c(self, extern_c: bool) -> Self {
        Program { extern_c, ..self }
    }

    /// Returns the program in the form that the compiler of a dialect accepts.
    fn adapted(&self, dialect: Dialect, has_textures: bool) -> Adapted {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let installed = hal::library::search_directories;
        let packages = self.packages.clone().unwrap_or_else(installed);
        let program = cuda_c::dialects::Program {
            text: &self.text,
            file: &self.file,
            options: &options,
            folders: &self.include_dirs,
            packages: &packages,
            extern_c: self.extern_c,
            has_textures,
        };
        cuda_c::dialects::adapted(&program, dialect)
    }

    /// Compiles the program for a device.
    ///
    /// # Errors
    /// `CompileFailed`: each message shows a line of the program's own text and a caret; [`Error::log`] is the
    /// compiler's whole log. `Unsupported` if no compiler for the device is available.
    ///
    /// ```
    /// use gpuarray::Program;
    ///
    /// # fn main() -> gpuarray::Result<()> {
    /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
    /// let program = Program::new("__global__ void k(int *x)\n{\n    x[0] = y;\n}");
    /// let error = program.compile(device.as_ref()).unwrap_err();
    /// let lines: Vec<&str> = error.detail().lines().collect();
    /// assert!(lines[0].starts_with("kernel.cu:3:12: error: "));
    /// assert_eq!(lines[1..], ["    3 |     x[0] = y;", "      |            ^"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile(&self, device: &dyn Device) -> Result<Compiled> {
        let dialect = dialect(device);
        let adapted = self.adapted(dialect, device.features().contains(Feature::Textures));
        let needs_headers = dialect != Dialect::Host && adapted.reads_files;
        let headers = needs_headers.then(headers_as_files).transpose()?;
        let mut folders = adapted.folders.clone();
        if let Some(headers) = &headers {
            let (first, last) = HEADER_FOLDERS;
            folders.extend((dialect == Dialect::Hiprtc).then(|| headers.path.join(first)));
            folders.extend_from_slice(&adapted.vendors);
            folders.extend(last.map(|it| headers.path.join(it)));
        }
        let mut options = adapted.options.clone();
        options.extend(folders.iter().map(|it| format!("-I{}", it.display())));
        let compile = |text: &str| self.for_device(device, text, &options);
        let Adapted { before, text, vectors, .. } = &adapted;
        let mut result = compile(&format!("{before}{text}"));
        let is_refused = |it: &Error| it.kind() == ErrorKind::CompileFailed;
        if result.as_ref().is_err_and(is_refused) && !vectors.is_empty() {
            result = compile(&format!("{before}{vectors}{text}")).or(result);
        }
        result.map_err(|error| match error.kind() {
            ErrorKind::CompileFailed => self.described(&error, device, dialect),
            _ => error,
        })
    }

    /// Returns the compiler's error with messages about the program's own lines, and with advice.
    fn described(&self, error: &Error, device: &dyn Device, dialect: Dialect) -> Error {
        let compiler = device.compiler().unwrap_or_default();
        let advice = advice(error.detail(), dialect, &compiler);
        let with_advice = |text: &str| format!("{text}\n{advice}").trim_end().to_owned();
        let detail = with_advice(&diagnostics(error.detail(), &self.text, &self.file));
        Error::new(error.kind(), error.status(), error.call().to_owned(), detail)
            .with_log(&with_advice(error.detail()))
    }

    /// Compiles a text. If NVRTC refuses functions and variables for the host, which nvcc leaves out, they
    /// are compiled for the device.
    fn for_device(&self, device: &dyn Device, text: &str, options: &[String]) -> Result<Compiled> {
        let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
        let result = device.compile(text, &self.file, &options);
        match &result {
            Err(error) if error.detail().contains(FOR_DEVICE) && !options.contains(&FOR_DEVICE) => {
                options.push(FOR_DEVICE);
                device.compile(text, &self.file, &options).or(result)
            }
            _ => result,
        }
    }

    /// Compiles and loads the program. The module's kernels have [signatures](crate::signature).
    ///
    /// # Errors
    /// As [`Program::compile`] and [`Device::load_module`].
    ///
    /// # Safety
    /// As [`Device::load_module`]: on the host, initialisers of the program's variables run.
    pub unsafe fn load(
        &self,
        device: &dyn Device,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        let compiled = self.compile(device)?;
        // SAFETY: the caller's promise.
        let module = unsafe { device.load_module(&ModuleSource::Image(&compiled.code), options)? };
        let log = [compiled.log.trim(), module.log().trim()].join("\n").trim().to_owned();
        let source = SourceText { text: self.text.clone(), options: self.options.clone() };
        Ok(Arc::new(ProgramModule { module, source, log }))
    }
}

/// Returns the dialect of a device's compiler.
fn dialect(device: &dyn Device) -> Dialect {
    match device.id().backend {
        _ if device.features().contains(Feature::HostKernels) => Dialect::Host,
        "hip" => Dialect::Hiprtc,
        _ => Dialect::Nvrtc,
    }
}

/// Writes the headers for GPUs to a temporary folder.
fn headers_as_files() -> Result<TemporaryFolder> {
    let written =
        TemporaryFolder::new().and_then(|it| write_headers(&it.path, gpu_headers()).map(|()| it));
    written.map_err(|error| {
        let status = Status::host(Status::FILE_NOT_FOUND);
        Error::new(
            ErrorKind::Driver,
            status,
            "compile",
            format!("the headers for the compiler cannot be written: {error}"),
        )
    })
}

/// A module together with the program that it was made from.
#[derive(Debug)]
struct ProgramModule {
    module: Arc<dyn Module>,
    source: SourceText,
    log: String,
}

impl Module for ProgramModule {
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>> {
        self.module.kernel(name)
    }

    fn global(&self, name: &str) -> Result<(u64, usize)> {
        self.module.global(name)
    }

    fn source(&self) -> Option<&SourceText> {
        Some(&self.source)
    }

    fn log(&self) -> &str {
        &self.log
    }

    fn as_any(&self) -> &dyn Any {
        self.module.as_any()
    }
}
