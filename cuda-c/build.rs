//! Takes a fingerprint of the sources: kernels that are kept on disk were compiled by their rules, and those of another
//! build are not taken for its own.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let mut files = BTreeMap::new();
    read(Path::new("src"), &mut files)?;
    let mut fingerprint = DefaultHasher::new();
    files.hash(&mut fingerprint);
    println!("cargo::rustc-env=GPUARRAY_SOURCES={:016x}", fingerprint.finish());
    println!("cargo::rerun-if-changed=src");
    Ok(())
}

fn read(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, files)?;
        } else {
            let bytes = std::fs::read(&path)?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}
