//! Compiles a program to the bytes of a unit.

use crate::status::status;
use crate::{Sink, cache, text};
use host_executor::{Compiled, Compiler, Language, Optimization, Result, Source};
use std::borrow::Cow;
use std::ffi::{c_char, c_int};
use std::path::PathBuf;

/// `CudaCProgram`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Program {
    text: *const c_char,
    name: *const c_char,
    options: *const *const c_char,
    option_count: usize,
    expressions: *const *const c_char,
    expression_count: usize,
    header_names: *const *const c_char,
    header_texts: *const *const c_char,
    header_count: usize,
    warp_size: u32,
    hip: c_int,
    cache: *const c_char,
}

/// The strings of a program.
struct Texts<'a> {
    text: Cow<'a, str>,
    name: Cow<'a, str>,
    options: Vec<Cow<'a, str>>,
    names: Vec<Cow<'a, str>>,
    headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    cache: Option<PathBuf>,
}

/// # Safety
/// The pointers are valid as `cuda_c.h` documents, and outlive the result.
unsafe fn texts(program: &Program) -> Texts<'_> {
    // SAFETY: the caller's promise.
    unsafe {
        let all = |first: *const *const c_char, count: usize| -> Vec<Cow<'_, str>> {
            (0..count).map(|index| text(*first.add(index))).collect()
        };
        let header_names = all(program.header_names, program.header_count);
        let header_texts = all(program.header_texts, program.header_count);
        Texts {
            text: text(program.text),
            name: text(program.name),
            options: all(program.options, program.option_count),
            names: all(program.expressions, program.expression_count),
            headers: header_names.into_iter().zip(header_texts).collect(),
            cache: (!program.cache.is_null())
                .then(|| PathBuf::from(text(program.cache).into_owned())),
        }
    }
}

/// `cuda_c_compile`.
///
/// # Safety
/// The pointers are valid as `cuda_c.h` documents.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuda_c_compile(program: *const Program, library: Sink, log: Sink) -> c_int {
    status(log, || {
        // SAFETY: the caller's promise.
        let program = unsafe { &*program };
        // SAFETY: the caller's promise.
        let compiled = compile(program, &unsafe { texts(program) })?;
        library.put(&compiled.library);
        log.put(compiled.log.as_bytes());
        Ok(())
    })
}

fn compile(program: &Program, texts: &Texts<'_>) -> Result<Compiled> {
    // Makes builtin kernels exchange values between lanes as on a GPU.
    let options = texts.options.iter().map(AsRef::as_ref).chain(["-D__GPUARRAY_DOUBLE__"]);
    let options: Vec<&str> = options.collect();
    let names: Vec<&str> = texts.names.iter().map(AsRef::as_ref).collect();
    let headers: Vec<(&str, &str)> = texts.headers.iter().map(|it| (&*it.0, &*it.1)).collect();
    let source = Source {
        text: &texts.text,
        name: &texts.name,
        options: &options,
        names: &names,
        headers: &headers,
    };
    // Like GPUs' run-time compilers, this one finds only the program's own headers.
    let language = Language {
        warp_size: program.warp_size,
        hip: program.hip != 0,
        system_headers: false,
        ..Language::default()
    };
    let compiler = Compiler::find(language)?.optimizing_for(Optimization::Compilation);
    match &texts.cache {
        None => compiler.compile(&source),
        Some(folder) => cache::compile(folder, &compiler.keeping_headers_in(folder), &source),
    }
}
