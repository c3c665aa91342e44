//! The language's headers as files, which the compiler includes.

use crate::error::Result;
use crate::temporary::Folder;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes the headers to a folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    cuda_c::write_headers(folder, cuda_c::headers())
}

/// Writes the headers to a subfolder of a temporary folder, and returns the subfolder.
pub(crate) fn write_below(temporary: &Folder) -> Result<PathBuf> {
    let folder = temporary.path.join(cuda_c::HEADER_PREFIX.trim_end_matches('/'));
    write(&folder).map_err(|error| temporary.failed(&error))?;
    Ok(folder)
}

/// Returns true if a folder contains all headers with the expected lengths.
pub(crate) fn are_whole(folder: &Path) -> bool {
    cuda_c::headers().all(|(name, text)| {
        fs::metadata(folder.join(name)).is_ok_and(|it| it.len() == text.len() as u64)
    })
}
