//! The language's headers on disk for all processes, precompiled by compilers that can.
//!
//! GCC takes `name.gch` in place of a header `name` beside it, if its options and macros fit; else the
//! header. What it preprocesses then has a line with the file's path in place of the header's text.

use crate::compiler::{Compiler, Preprocessed};
use crate::error::{Error, Result};
use crate::headers;
use crate::options::Options;
use crate::temporary::Folder;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What names of folders begin with.
const NAME: &str = "headers-";

/// A file that is written when all others are, with the bytes of the precompiled header, and whose time is that
/// of a day on which the folder was used.
const WHOLE: &str = "whole";

/// A folder takes 10 MiB. So many are kept, and those that were used since yesterday.
const MOST_FOLDERS: usize = 8;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the folder with the headers for texts of these options, below `kept`.
///
/// # Errors
/// `System` if it cannot be written; `Refused` if the compiler refuses the headers.
pub(crate) fn folder(compiler: &Compiler, kept: &Path, options: &Options) -> Result<PathBuf> {
    // Without what a program's own options add, most programs share one folder.
    let options = Options { code: Vec::new(), preprocessor: Vec::new(), ..options.clone() };
    let mut arguments = compiler.preprocessor_options(&options);
    arguments.extend(compiler.code_options(&options));
    let searched = ["CPATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"];
    let mut hasher = DefaultHasher::new();
    (compiler.identity(), &arguments, searched.map(std::env::var_os)).hash(&mut hasher);
    let path = kept.join(format!("{NAME}{:016x}", hasher.finish()));
    if is_whole(&path) {
        return Ok(path);
    }
    let failed =
        |error| Error::System(format!("the headers of CUDA C in {}: {error}", kept.display()));
    // The compiler is told the path in a string of its language.
    let is_plain = |it: &str| !it.contains(['"', '\\']) && !it.contains(char::is_control);
    if !path.to_str().is_some_and(is_plain) {
        return Err(failed(io::Error::from(io::ErrorKind::InvalidFilename)));
    }
    fs::create_dir_all(kept).map_err(failed)?;
    let fresh = Folder::within(kept)?;
    headers::write(&fresh.path).map_err(failed)?;
    let bytes = match compiler.toolchain.is_clang {
        true => 0,
        false => precompile(compiler, &fresh, arguments)?,
    };
    fs::write(fresh.path.join(WHOLE), bytes.to_string()).map_err(failed)?;
    if path.is_dir() && !is_whole(&path) {
        log::warn!("damaged headers of CUDA C in {} are replaced", path.display());
        fs::remove_dir_all(&path).map_err(failed)?;
    }
    match fs::rename(&fresh.path, &path) {
        Ok(()) => fresh.keep(),
        // Another process was faster.
        Err(_) if is_whole(&path) => {}
        Err(error) => return Err(failed(error)),
    }
    tidy(kept);
    Ok(path)
}

/// Returns the bytes of the precompiled header.
fn precompile(compiler: &Compiler, folder: &Folder, mut arguments: Vec<String>) -> Result<u64> {
    let target = precompiled_name();
    // Names without a folder stay right when this one gets another name.
    let last = ["-x", "c++-header", "-isystem", ".", cuda_c::PRELUDE, "-o", &target];
    arguments.extend(last.map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = compiler.toolchain.run(&arguments, "", Some(&folder.path))?;
    if !output.status.success() {
        return Err(Error::Refused(folder.log(&output)));
    }
    let written = fs::metadata(folder.path.join(target));
    written.map(|it| it.len()).map_err(|error| folder.failed(&error))
}

fn precompiled_name() -> String {
    format!("{}.gch", cuda_c::PRELUDE)
}

/// True if a folder has all that was written to it: a machine may have lost its power since.
pub(crate) fn is_whole(folder: &Path) -> bool {
    let whole = folder.join(WHOLE);
    let Some(bytes) = fs::read_to_string(&whole).ok().and_then(|it| it.parse::<u64>().ok()) else {
        return false;
    };
    let precompiled = fs::metadata(folder.join(precompiled_name()));
    if precompiled.map_or(0, |it| it.len()) != bytes || !headers::are_whole(folder) {
        return false;
    }
    if age(&whole).is_none_or(|age| age > DAY) {
        let file = File::options().write(true).open(&whole);
        if let Err(error) = file.and_then(|file| file.set_modified(SystemTime::now())) {
            log::debug!("headers keep their time of last use: {error}");
        }
    }
    true
}

fn age(file: &Path) -> Option<Duration> {
    fs::metadata(file).and_then(|it| it.modified()).ok()?.elapsed().ok()
}

/// Removes the folders that were not used for longest, and what interrupted processes left.
fn tidy(kept: &Path) {
    let (mut folders, mut gone) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_string_lossy().starts_with(NAME) {
            folders.push((age(&path.join(WHOLE)).unwrap_or(Duration::MAX), path));
        } else if Folder::is_one(&name) {
            gone.push((age(&path).unwrap_or_default(), path));
        }
    }
    folders.sort();
    gone.extend(folders.into_iter().skip(MOST_FOLDERS));
    for (_, path) in gone.iter().filter(|(age, _)| *age > DAY) {
        if let Err(error) = fs::remove_dir_all(path) {
            log::debug!("old headers stay in {}: {error}", path.display());
        }
    }
}

/// What a preprocessed text has in place of the prelude.
const LINE: &str = "#pragma GCC pch_preprocess \"";

/// A preprocessed text whose line for a precompiled header has the header's folder again.
pub(crate) fn found(text: String, folder: &str) -> String {
    let line = format!("{LINE}{}", cuda_c::HEADER_PREFIX);
    match text.contains(&line) {
        true => text.replacen(&line, &format!("{LINE}{folder}"), 1),
        false => text,
    }
}

/// True if a compiler may have refused a text for its precompiled header: its log says so, or may, or the
/// header is gone.
pub(crate) fn is_to_blame(log: &str, source: &Preprocessed) -> bool {
    let signs = ["PCH", ".gch", "internal compiler error"];
    source.text.contains(LINE)
        && (signs.iter().any(|it| log.contains(it)) || !is_whole(Path::new(&source.language)))
}

/// Removes the precompiled header that a text names, so that the next compilation makes another, and
/// returns the text with the prelude in the place of its line.
///
/// # Errors
/// As [`Compiler::preprocess`].
pub(crate) fn replaced(compiler: &Compiler, source: &Preprocessed) -> Result<String> {
    if let Err(error) = fs::remove_dir_all(&source.language) {
        log::debug!("damaged headers stay in {}: {error}", source.language);
    }
    let prelude = compiler.prelude(source)?;
    let mut lines: Vec<&str> = source.text.lines().collect();
    for line in lines.iter_mut().filter(|it| it.starts_with(LINE)) {
        *line = &prelude;
    }
    Ok(lines.join("\n") + "\n")
}
