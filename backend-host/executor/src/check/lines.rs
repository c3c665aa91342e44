//! Lines of the program for addresses of its code: binutils' `addr2line`, which is there where `g++` is.

use crate::temporary::Folder;
use std::process::{Command, Stdio};

/// What stands for the folder that the compiler ran in.
const FOLDER: &str = "/gpuarray-unit/";

/// The compiler's option that makes file names independent of the folder that it runs in.
pub(crate) fn folder_option() -> Option<String> {
    let folder = std::env::current_dir().ok()?;
    Some(format!("-fdebug-prefix-map={}={}", folder.display(), FOLDER.trim_end_matches('/')))
}

/// True for the language's headers by the file names that the compiler knows.
pub(super) fn is_of_language(file: &str) -> bool {
    let is_header = |name: &str| file == name || file.ends_with(&format!("/{name}"));
    cuda_c::HEADERS.iter().any(|(name, _)| is_header(name))
}

/// The lines of a unit.
#[derive(Debug)]
pub(crate) struct Lines {
    image: Vec<u8>,
    base: usize,
}

impl Lines {
    pub(super) fn new(image: &[u8], base: usize) -> Lines {
        Lines { image: image.to_vec(), base }
    }

    /// The address in the unit of one in memory, small enough to be kept for each access.
    pub(super) fn offset(&self, address: usize) -> u32 {
        u32::try_from(address.wrapping_sub(self.base)).unwrap_or(0)
    }

    /// `file:line` of the call that an address of [`Lines::offset`] follows; without `addr2line`, or without a
    /// line, a text that says so.
    pub(super) fn describe(&self, offset: u32) -> String {
        let found = self.frames(offset.wrapping_sub(1)).unwrap_or_default();
        let is_of_program = |line: &&String| {
            let (file, _) = line.rsplit_once(':').unwrap_or((line, ""));
            let is_own = ["kernel ", "name expression", "?", "<"];
            !is_of_language(file) && !is_own.iter().any(|prefix| file.starts_with(prefix))
        };
        found.iter().find(is_of_program).cloned().unwrap_or_else(|| "an unknown line".to_owned())
    }

    /// The place and those that it is inlined into, from the inside.
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
