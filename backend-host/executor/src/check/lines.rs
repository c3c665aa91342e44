//! Finds program lines for code addresses with binutils' `addr2line`, which is installed together with `g++`.

use crate::temporary::Folder;
use std::process::{Command, Stdio};

/// Stands for the folder in which the compiler ran.
const FOLDER: &str = "/gpuarray-unit/";

/// Returns the compiler option that makes file names independent of the current folder.
pub(crate) fn folder_option() -> Option<String> {
    let folder = std::env::current_dir().ok()?;
    Some(format!("-fdebug-prefix-map={}={}", folder.display(), FOLDER.trim_end_matches('/')))
}

/// Returns true for a file of the language's headers, given the name that the compiler uses.
pub(crate) fn is_of_language(file: &str) -> bool {
    let is_header = |name: &str| file == name || file.ends_with(&format!("/{name}"));
    cuda_c::headers().any(|(name, _)| is_header(name))
}

/// The lines of a unit.
#[derive(Debug)]
pub(crate) struct Lines {
    image: Vec<u8>,
    base: usize,
}

impl Lines {
    pub(crate) fn new(image: &[u8], base: usize) -> Lines {
        Lines { image: image.to_vec(), base }
    }

    /// Converts an address to an offset in the unit. An offset is small enough to be stored for each access.
    pub(crate) fn offset(&self, address: usize) -> u32 {
        u32::try_from(address.wrapping_sub(self.base)).unwrap_or(0)
    }

    /// Returns `file:line` of the call before an offset from [`Lines::offset`]. Without `addr2line`, or if no
    /// line is found, returns a text that says so.
    pub(crate) fn describe(&self, offset: u32) -> String {
        let found = self.frames(offset.wrapping_sub(1)).unwrap_or_default();
        let is_of_program = |line: &&String| {
            let (file, _) = line.rsplit_once(':').unwrap_or((line, ""));
            let is_own = ["kernel ", "name expression", "?", "<"];
            !is_of_language(file) && !is_own.iter().any(|prefix| file.starts_with(prefix))
        };
        found.iter().find(is_of_program).cloned().unwrap_or_else(|| "an unknown line".to_owned())
    }

    /// Returns the place and the places into which it is inlined, innermost first.
    fn frames(&self, offset: u32) -> Option<Vec<String>> {
        let folder = Folder::new().ok()?;
        let file = folder.file("unit.so");
        std::fs::write(&file, &self.image).ok()?;
        let output = Command::new("addr2line")
            .args(["-i", "-e", &file, &format!("{offset:#x}")])
            .env("LC_ALL", "C")
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .output()
            .inspect_err(|error| log::warn!("addr2line does not run: {error}"))
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let plain = |line: &str| {
            let line = line.split(" (discriminator").next().unwrap_or(line);
            line.strip_prefix(FOLDER).unwrap_or(line).to_owned()
        };
        Some(text.lines().map(plain).collect())
    }
}
