//! CUDA C: programs compiled for the current device, and what the front end reads in their texts.

use crate::current_device::current_device;
use crate::entries::Entries;
use crate::errors::{OrRaise, to_python};
use crate::profile::at_line;
use codegen::compile::CodeCache;
use cuda_c::dialects::{self, Dialect};
use gpuarray::{Error, Program};
use hal::recording::{Kind, during};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A program in CUDA C from Python: its text, the file that messages name, options, folders of its headers, folders of
/// Python packages with NVIDIA's headers, and whether it is inside `extern "C"`.
#[derive(FromPyObject)]
pub(crate) struct ProgramArguments(
    String,
    String,
    Entries<String>,
    Entries<PathBuf>,
    Entries<PathBuf>,
    bool,
);

impl From<ProgramArguments> for Program {
    fn from(given: ProgramArguments) -> Program {
        let ProgramArguments(text, file, options, include_dirs, packages, extern_c) = given;
        let program = Program::new(text).file(file).packages(packages.0).extern_c(extern_c);
        let program = options.0.into_iter().fold(program, Program::option);
        include_dirs.0.into_iter().fold(program, Program::include_dir)
    }
}

/// Compiles a program in CUDA C for the current device; returns the code and the compiler's warnings.
#[pyfunction]
pub(crate) fn compile_program(
    py: Python<'_>,
    program: ProgramArguments,
) -> PyResult<(Bound<'_, PyBytes>, String)> {
    let device = current_device()?.device;
    let program = Program::from(program);
    let _line = at_line(py);
    let compile = || program.compile(device.as_ref());
    let compiled = py.detach(|| during(Kind::Compile, "compile", compile));
    if compiled.is_err() {
        // Ctrl-C in a terminal also interrupts the compiler.
        py.check_signals()?;
    }
    let compiled = compiled.or_raise()?;
    Ok((PyBytes::new(py, &compiled.code), compiled.log))
}

/// Returns the text, the options and the folders of NVIDIA's headers that the run-time compiler of a backend (`cuda`,
/// `hip` or `host`) gets for a program.
#[pyfunction]
pub(crate) fn adapted_program(
    backend: &str,
    has_textures: bool,
    program: ProgramArguments,
) -> PyResult<(String, Vec<String>, Vec<String>)> {
    let dialect = match backend {
        "cuda" => Dialect::Nvrtc,
        "hip" => Dialect::Hiprtc,
        "host" => Dialect::Host,
        _ => {
            let detail =
                format!("backend is {backend:?}; allowed are \"cuda\", \"hip\" and \"host\"");
            return Err(to_python(Error::invalid("adapted_program", detail)));
        }
    };
    let ProgramArguments(text, file, options, include_dirs, packages, extern_c) = program;
    let options: Vec<&str> = options.0.iter().map(String::as_str).collect();
    let program = dialects::Program {
        text: &text,
        file: &file,
        options: &options,
        folders: &include_dirs.0,
        packages: &packages.0,
        extern_c,
        has_textures,
    };
    let it = dialects::adapted(&program, dialect);
    let vendors = it.vendors.iter().map(|it| it.to_string_lossy().into_owned());
    Ok((it.before + &it.text, it.options, vendors.collect()))
}

/// Returns the errors in a compiler's log as messages about the lines of a program, which `file` names.
#[pyfunction]
pub(crate) fn diagnostics(log: &str, text: &str, file: &str) -> String {
    cuda_c::diagnostics(log, text, file)
}

/// Returns the names of a program's kernels.
#[pyfunction]
pub(crate) fn kernel_names(text: &str) -> Vec<String> {
    gpuarray::signature::Signatures::of(text, &[]).names().map(str::to_owned).collect()
}

/// Returns the text of a header that kernels can include; None if there is none of that name.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn header_text(name: &str) -> Option<String> {
    cuda_c::header_text(name)
}

/// Returns a text with spaces in place of comments and, unless they are kept, literals.
#[pyfunction]
#[pyo3(signature = (text, keep_literals=false))]
pub(crate) fn code_of(text: &str, keep_literals: bool) -> String {
    cuda_c::dialects::code_of(text, keep_literals)
}

/// Returns true if each use of an array's name in a text reads an element of it, or a member of one.
#[pyfunction]
pub(crate) fn is_only_read(text: &str, name: &str) -> bool {
    cuda_c::is_only_read(text, name)
}

/// Returns [`cuda_c::element_uses`].
#[pyfunction]
pub(crate) fn element_uses(
    arrays: Entries<(String, bool)>,
    operation: &str,
    preamble: &str,
    others: Entries<String>,
) -> (bool, bool, Vec<cuda_c::ArrayUses>, String) {
    cuda_c::element_uses(&arrays.0, operation, preamble, &others.0)
}

/// Returns true if a text may declare texture or surface references.
#[pyfunction]
pub(crate) fn declares_references(text: &str) -> bool {
    cuda_c::dialects::declares_references(text)
}

/// Returns the folders in which CUDA toolkits may be installed.
#[pyfunction]
pub(crate) fn toolkits() -> Vec<String> {
    let folders = cuda_c::dialects::toolkits();
    folders.iter().map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Returns the name and the version of the compiler that [`compile_program`] uses.
#[pyfunction]
pub(crate) fn compiler(py: Python<'_>) -> PyResult<String> {
    let device = current_device()?.device;
    py.detach(|| device.compiler()).or_raise()
}

/// Returns the folder of the cache of compiled code, and its limit in bytes; None if nothing is kept.
#[pyfunction]
pub(crate) fn code_cache() -> PyResult<Option<(PathBuf, u64)>> {
    let cache = CodeCache::from_environment().or_raise()?;
    Ok(cache.folder().map(|folder| (folder.to_owned(), cache.limit())))
}

/// Returns [`codegen::source::scan_plan`].
#[pyfunction]
pub(crate) fn scan_plan(size: u64, length: u64) -> (u64, u64, u32, u64) {
    codegen::source::scan_plan(size, length)
}

/// Returns the CUDA C functions that scans are made of, in the namespace `gpuarray`.
#[pyfunction]
pub(crate) fn scan_functions() -> String {
    codegen::source::scan_functions()
}
