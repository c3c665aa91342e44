//! The language's headers, which are part of the program.

use std::fs;
use std::io;
use std::path::Path;

macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each.
        pub(crate) const HEADERS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../include/", $name)))),*];
    };
}

headers!("gpuarray_abi.h", "gpuarray_prelude.h");

/// The header that each text is compiled behind.
pub(crate) const PRELUDE: &str = "gpuarray_prelude.h";

/// Writes the headers to a folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    for (name, text) in HEADERS {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::HEADERS;
    use std::path::Path;

    /// Paths of all files below a folder.
    fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => files(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }

    #[test]
    fn every_header_is_embedded() {
        let mut there = Vec::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("include"), "", &mut there);
        let mut embedded: Vec<_> = HEADERS.iter().map(|(name, _)| (*name).to_owned()).collect();
        there.sort();
        embedded.sort();
        assert_eq!(embedded, there);
    }
}
