//! Lists a crate's headers, if it has any, and takes a fingerprint of its sources: code that is kept on disk was
//! compiled by their rules, and another build does not take it for its own.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// The folder of headers for the compilers of GPUs alone.
const GPU: &str = "gpu/";

fn main() -> std::io::Result<()> {
    let mut files = BTreeMap::new();
    read(Path::new("src"), &mut files)?;
    let mut fingerprint = DefaultHasher::new();
    files.hash(&mut fingerprint);
    println!("cargo::rustc-env=GPUARRAY_SOURCES={:016x}", fingerprint.finish());
    println!("cargo::rerun-if-changed=src");

    let include = std::env::current_dir()?.join("include");
    if !include.is_dir() {
        return Ok(());
    }
    let mut files = BTreeMap::new();
    read(&include, &mut files)?;
    let (mut host, mut gpu) = (String::new(), String::new());
    for path in files.keys() {
        let name = path.strip_prefix(&include).expect("a file in the folder");
        let name = name.to_str().expect("an ASCII name").replace('\\', "/");
        let (list, name) = match name.strip_prefix(GPU) {
            Some(name) => (&mut gpu, name),
            None => (&mut host, name.as_str()),
        };
        let _ = writeln!(list, "    ({name:?}, include_str!({path:?})),");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("host_headers.rs"), format!("&[\n{host}]\n"))?;
    std::fs::write(out.join("gpu_headers.rs"), format!("&[\n{gpu}]\n"))?;
    println!("cargo::rerun-if-changed=include");
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
