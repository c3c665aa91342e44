//! The language's headers on disk for all processes, precompiled by compilers that can.
//!
//! GCC takes `name.gch` in place of a header `name` beside it, if its options and macros fit; else the
//! header. What it preprocesses then has a line with the file's path in place of the header's text.

use crate::compiler::Compiler;
use crate::error::{Error, Result};
use crate::headers;
use crate::options::Options;
use crate::temporary::Folder;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// Returns the folder with the headers for texts of these options, below `kept`.
///
/// # Errors
/// `System` if it cannot be written; `Refused` if the compiler refuses the headers.
pub(crate) fn folder(compiler: &Compiler, kept: &Path, options: &Options) -> Result<PathBuf> {
    // Without what a program's own options add, most programs share one folder.
    let options = Options { code: Vec::new(), preprocessor: Vec::new(), ..options.clone() };
    let mut arguments = compiler.preprocessor_options(&options);
    arguments.extend(compiler.code_options(&options));
    let mut hasher = DefaultHasher::new();
    (compiler.identity(), &arguments).hash(&mut hasher);
    let path = kept.join(format!("headers-{:016x}", hasher.finish()));
    if path.is_dir() {
        return Ok(path);
    }
    let failed =
        |error| Error::System(format!("the headers of CUDA C in {}: {error}", kept.display()));
    fs::create_dir_all(kept).map_err(failed)?;
    let fresh = Folder::within(kept)?;
    headers::write(&fresh.path).map_err(failed)?;
    if !compiler.toolchain.is_clang {
        precompile(compiler, &fresh, arguments)?;
    }
    match fs::rename(&fresh.path, &path) {
        Ok(()) => fresh.keep(),
        // Another process was faster.
        Err(_) if path.is_dir() => {}
        Err(error) => return Err(failed(error)),
    }
    Ok(path)
}

fn precompile(compiler: &Compiler, folder: &Folder, mut arguments: Vec<String>) -> Result<()> {
    let target = format!("{}.gch", headers::PRELUDE);
    // Names without a folder stay right when this one gets another name.
    let last = ["-x", "c++-header", "-isystem", ".", headers::PRELUDE, "-o", &target];
    arguments.extend(last.map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = compiler.toolchain.run(&arguments, "", Some(&folder.path))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Refused(folder.log(&output))),
    }
}

/// A preprocessed text whose line for a precompiled header has the header's folder again.
pub(crate) fn found(text: String, folder: &str) -> String {
    const LINE: &str = "#pragma GCC pch_preprocess \"";
    let whole = format!("{LINE}{folder}");
    match text.contains(LINE) {
        true => text.replacen(LINE, &whole, 1),
        false => text,
    }
}
