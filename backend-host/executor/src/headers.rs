//! The language's headers as files, which the compiler includes: in a temporary folder, or in one that all processes
//! share, precompiled by compilers that support it.
//!
//! If a file `name.gch` is next to a header `name`, and its options and macros match, GCC uses it instead of
//! the header. The preprocessed text then contains a line with the file's path instead of the header's text.

use crate::error::{Error, Result};
use crate::temporary::Folder;
use crate::toolchain::Toolchain;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The prefix of folder names.
const NAME: &str = "headers-";

/// A file that is written after all others. It contains the size of the precompiled header, and its
/// modification time is a day on which the folder was used.
const WHOLE: &str = "whole";

/// The number of folders that are kept, in addition to those used since yesterday. A folder takes 10 MiB.
const MOST_FOLDERS: usize = 8;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes the headers to a folder.
fn write(folder: &Path) -> io::Result<()> {
    cuda_c::write_headers(folder, cuda_c::headers())
}

/// Writes the headers to a subfolder of a temporary folder, and returns the subfolder.
pub(crate) fn write_below(temporary: &Folder) -> Result<PathBuf> {
    let folder = temporary.path.join(cuda_c::HEADER_PREFIX.trim_end_matches('/'));
    write(&folder).map_err(|error| temporary.failed(&error))?;
    Ok(folder)
}

/// Returns true if a folder contains all headers with the expected lengths.
fn are_whole(folder: &Path) -> bool {
    cuda_c::headers().all(|(name, text)| {
        fs::metadata(folder.join(name)).is_ok_and(|it| it.len() == text.len() as u64)
    })
}

/// Returns the folder below `kept` with the headers for a compiler of this identity and these arguments.
///
/// # Errors
/// `System` if it cannot be written; `Refused` if the compiler refuses the headers.
pub(crate) fn folder(
    toolchain: &Toolchain,
    identity: &str,
    kept: &Path,
    arguments: Vec<String>,
) -> Result<PathBuf> {
    let searched = ["CPATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"];
    let mut hasher = DefaultHasher::new();
    (identity, &arguments, searched.map(std::env::var_os)).hash(&mut hasher);
    let path = kept.join(format!("{NAME}{:016x}", hasher.finish()));
    if is_whole(&path) {
        return Ok(path);
    }
    let failed =
        |error| Error::System(format!("the headers of CUDA C in {}: {error}", kept.display()));
    // The compiler receives the path in a C string literal.
    let is_plain = |it: &str| !it.contains(['"', '\\']) && !it.contains(char::is_control);
    if !path.to_str().is_some_and(is_plain) {
        return Err(failed(io::Error::from(io::ErrorKind::InvalidFilename)));
    }
    fs::create_dir_all(kept).map_err(failed)?;
    let fresh = Folder::within(kept)?;
    write(&fresh.path).map_err(failed)?;
    let bytes = if toolchain.is_clang { 0 } else { precompile(toolchain, &fresh, arguments)? };
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

/// Precompiles the headers, and returns the size of the result in bytes.
fn precompile(toolchain: &Toolchain, folder: &Folder, mut arguments: Vec<String>) -> Result<u64> {
    let target = precompiled_name();
    // Relative names remain valid when the folder is renamed.
    let last = ["-x", "c++-header", "-isystem", ".", cuda_c::PRELUDE, "-o", &target];
    arguments.extend(last.map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = toolchain.run(&arguments, "", Some(&folder.path))?;
    if !output.status.success() {
        return Err(Error::Refused(folder.log(&output)));
    }
    let written = fs::metadata(folder.path.join(target));
    written.map(|it| it.len()).map_err(|error| folder.failed(&error))
}

fn precompiled_name() -> String {
    format!("{}.gch", cuda_c::PRELUDE)
}

/// Returns true if a folder is complete. After a power failure, files may be missing or truncated.
fn is_whole(folder: &Path) -> bool {
    let whole = folder.join(WHOLE);
    let Some(bytes) = fs::read_to_string(&whole).ok().and_then(|it| it.parse::<u64>().ok()) else {
        return false;
    };
    let precompiled = fs::metadata(folder.join(precompiled_name()));
    if precompiled.map_or(0, |it| it.len()) != bytes || !are_whole(folder) {
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

/// Removes the least recently used folders, and leftovers of interrupted processes.
fn tidy(kept: &Path) {
    let (mut folders, mut gone) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_string_lossy().starts_with(NAME) {
            folders.push((age(&path.join(WHOLE)).unwrap_or(Duration::MAX), path));
        } else if cuda_c::TemporaryFolder::is_one(&name) {
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

/// The line of a preprocessed text that stands for the prelude.
const LINE: &str = "#pragma GCC pch_preprocess \"";

/// Restores the folder of the precompiled header in a preprocessed text.
pub(crate) fn found(text: String, folder: &str) -> String {
    let line = format!("{LINE}{}", cuda_c::HEADER_PREFIX);
    if text.contains(&line) { text.replacen(&line, &format!("{LINE}{folder}"), 1) } else { text }
}

/// Returns true if the headers in `folder` may be the reason why a compiler failed: its log may say so, or
/// they are gone.
pub(crate) fn may_explain(error: &Error, folder: &Path) -> bool {
    let signs = ["PCH", "precompiled header", ".gch", "internal compiler error"];
    let is_named = |log: &String| signs.iter().any(|it| log.contains(it));
    matches!(error, Error::Refused(log) if is_named(log)) || !is_whole(folder)
}

/// Returns true if the precompiled header may be the reason why a compiler refused a text that refers to it.
pub(crate) fn is_to_blame(error: &Error, text: &str, folder: &str) -> bool {
    text.contains(LINE) && may_explain(error, Path::new(folder))
}

/// Removes the headers in `folder`, so that the next compilation creates them again.
pub(crate) fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        log::debug!("damaged headers stay in {}: {error}", folder.display());
    }
}

/// Returns a text with the prelude instead of the line that refers to the precompiled header.
pub(crate) fn replaced(text: &str, prelude: &str) -> String {
    let of_line = |line| if str::starts_with(line, LINE) { prelude } else { line };
    text.lines().flat_map(|line| [of_line(line), "\n"]).collect()
}
